"""Kernels run interpreted, and compiled with bounds checks: the same tests, in a process each.

Compiled code reads past the end of an array without a word; these two ways do not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MODES = ["NUMBA_DISABLE_JIT", "HOLDFAST_BOUNDS"]

# Searches of many sets and pairs take seconds each, and others call the same kernels.
LARGE = "not (search_that_is or error_of_one_thread or too_many or many_pairs_in_all)"


def run(mode: str, examples: int, *more: str) -> None:
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-m", "not slow and not long",
        "tests/kernels", "tests/cover/test_approximate.py",
        "tests/families/test_denial_reported.py", "tests/tasks/test_compaction.py",
        "tests/pipeline/test_law.py",
        # Interpreted, 64-bit arithmetic that is meant to wrap around warns that it does.
        "-W", "ignore:overflow encountered:RuntimeWarning",
        *more,
    ]  # fmt: skip
    told = {**os.environ, mode: "1", "HOLDFAST_EXAMPLES": str(examples)}
    ran = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-2_000:]


@pytest.mark.slow
def test_kernels_and_a_share_of_the_law() -> None:
    """Interpreted: to compile all kernels once more would take longer than all else here."""
    run("NUMBA_DISABLE_JIT", 2, "-k", LARGE)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_kernels_and_the_law(mode: str) -> None:
    run(mode, 40)
