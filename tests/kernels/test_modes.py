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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "examples"), [("NUMBA_DISABLE_JIT", "20"), ("HOLDFAST_BOUNDS", "10")]
)
def test_kernels_and_a_share_of_the_law(variable: str, examples: str) -> None:
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-m", "not slow and not long",
        "tests/kernels", "tests/cover/test_approximate.py", "tests/families/test_denial_reading.py",
        "tests/tasks/test_compaction.py",
        "tests/pipeline/test_law.py",
        # Interpreted, 64-bit arithmetic that is meant to wrap around warns that it does.
        "-W", "ignore:overflow encountered:RuntimeWarning",
    ]  # fmt: skip
    told = {**os.environ, variable: "1", "HOLDFAST_EXAMPLES": examples}
    ran = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-2_000:]
