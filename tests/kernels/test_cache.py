"""Code with bounds checks and code without are never taken for one another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.kernels import jit

pytestmark = pytest.mark.slow
KERNELS = Path(jit.__file__).parent

PROGRAM = """
import numpy as np
from holdfast.kernels.jit import kernel
from holdfast.kernels.trial import at

cells = np.arange(8)[:4]
try:
    told = str(at(cells, 6))
except IndexError:
    told = "refused"
print(told, sum(at.stats.cache_hits.values()))
"""

TRIAL = """
from holdfast.kernels.jit import kernel

@kernel
def at(cells, place):
    return cells[place]
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the kernels' own rules, with one kernel that reads where it is told to."""
    folder = tmp_path / "holdfast" / "kernels"
    folder.mkdir(parents=True)
    for init in (folder.parent / "__init__.py", folder / "__init__.py"):
        init.touch()
    (folder / "jit.py").write_bytes((KERNELS / "jit.py").read_bytes())
    (folder / "trial.py").write_text(TRIAL)
    return tmp_path


def run(package: Path, bounds: bool, **more: str) -> tuple[str, int]:
    """What the kernel tells of a cell beyond the end, and how often it came from a cache."""
    mine = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    told = {**mine, "HOLDFAST_BOUNDS": "1" if bounds else "0", "PYTHONPATH": str(package), **more}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=told, capture_output=True, text=True, check=True
    )
    answer, hits = done.stdout.split()
    return answer, int(hits)


@pytest.mark.parametrize(
    ("first", "named"),
    [(False, False), (True, True)],
    ids=["beside, without first", "named, with first"],
)
def test_each_has_a_cache_of_its_own(package: Path, first: bool, named: bool) -> None:
    more = {"NUMBA_CACHE_DIR": str(package / "cache")} if named else {}
    expected = {False: "6", True: "refused"}
    for bounds in (first, not first):
        assert run(package, bounds, **more) == (expected[bounds], 0)
    for bounds in (first, not first):
        assert run(package, bounds, **more) == (expected[bounds], 1)


def test_a_changed_source_is_compiled_again(package: Path) -> None:
    assert run(package, True) == ("refused", 0)
    other = package / "holdfast" / "kernels" / "called.py"
    other.write_text("# a kernel that others call\n")
    assert run(package, True) == ("refused", 0)
    assert len(list(other.parent.glob("__pycache__/bounds-*"))) == 1


def test_a_cache_that_names_types_which_are_gone_is_empty(package: Path) -> None:
    trial = package / "holdfast" / "kernels" / "trial.py"
    program = "from holdfast.kernels import trial; print(trial.at(trial.{name}(2)))"
    for name in ("Place", "Position"):
        trial.write_text(
            "from typing import NamedTuple\n"
            "from holdfast.kernels.jit import kernel\n"
            f"class {name}(NamedTuple):\n    number: int\n"
            "@kernel\ndef at(place):\n    return place.number\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(package)}
        command = [sys.executable, "-c", program.format(name=name)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.stdout.strip(), done.stderr) == ("2", "")
