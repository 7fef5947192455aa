"""Kernels run interpreted, and compiled with bounds checks: the same tests, in a process each.

Compiled code reads past the end of an array without a word; these two ways do not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MODES = ["NUMBA_DISABLE_JIT", "HOLDFAST_BOUNDS"]

TESTS = (
    "tests/kernels", "tests/cover/test_approximate.py", "tests/kinds/test_denial_reported.py",
    "tests/tasks/test_compaction.py", "tests/flow/test_law.py",
)  # fmt: skip
SLOW = (
    "tests/kernels/test_cover.py::test_containment_over_many_members",
    "tests/cover/test_approximate.py::test_many_atoms",
    "tests/flow/test_law.py::test_more_columns_than_a_word_has_bits",
)


def run(mode: str, examples: int, tests: Sequence[str], marked: str) -> None:
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marked, *tests,
        # Interpreted, 64-bit arithmetic that is meant to wrap around warns that it does.
        "-W", "ignore:overflow encountered:RuntimeWarning",
    ]  # fmt: skip
    told = {**os.environ, mode: "1", "HOLDFAST_EXAMPLES": str(examples)}
    ran = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-2_000:]


@pytest.mark.slow
def test_kernels_and_a_share_of_the_law() -> None:
    run("HOLDFAST_BOUNDS", 2, TESTS, "not slow and not long")


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_kernels_and_the_law(mode: str) -> None:
    run(mode, 40, TESTS, "not slow and not long")
    run(mode, 40, SLOW, "slow")
