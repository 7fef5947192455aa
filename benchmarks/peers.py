"""Other systems, run as separate programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = """
import json, sys, time
import desbordante
algorithm = desbordante.ucc.algorithms.HPIValid()
start = time.perf_counter()
algorithm.load_data(table=(sys.argv[1], ",", True))
loaded = time.perf_counter()
algorithm.execute()
done = time.perf_counter()
keys = sorted(sorted(int(i) for i in key.indices) for key in algorithm.get_uccs())
print(json.dumps({"load": loaded - start, "search": done - loaded, "keys": keys}))
"""

_SPIDER = """
import json, sys, time
import desbordante
algorithm = desbordante.ind.algorithms.Spider()
start = time.perf_counter()
algorithm.load_data(tables=[(path, ",", True) for path in sys.argv[1:]])
loaded = time.perf_counter()
algorithm.execute()
done = time.perf_counter()
found = sorted(map(str, algorithm.get_inds()))
print(json.dumps({"load": loaded - start, "search": done - loaded, "dependencies": found}))
"""


_HYFD = """
import json, os, sys, time
import desbordante
algorithm = desbordante.fd.algorithms.HyFD()
start = time.perf_counter()
algorithm.load_data(table=(sys.argv[1], ",", True))
loaded = time.perf_counter()
algorithm.execute(threads=os.cpu_count())
done = time.perf_counter()
found = [[sorted(fd.lhs_indices), fd.rhs_index] for fd in algorithm.get_fds()]
print(json.dumps({"load": loaded - start, "search": done - loaded, "found": found}))
"""


@dataclass(frozen=True)
class DependencyPeer:
    """A from-scratch run of Desbordante's HyFD: left sides by column number, and right sides."""

    load: float
    search: float
    found: list[tuple[tuple[int, ...], int]]

    @property
    def total(self) -> float:
        return self.load + self.search


@dataclass(frozen=True)
class Peer:
    """A from-scratch run of Desbordante's HPIValid, the fastest of its key finders here."""

    load: float
    search: float
    keys: list[list[int]]

    @property
    def total(self) -> float:
        return self.load + self.search


@dataclass(frozen=True)
class InclusionPeer:
    """A from-scratch run of Desbordante's Spider over several tables."""

    load: float
    search: float
    dependencies: list[str]

    @property
    def total(self) -> float:
        return self.load + self.search


def desbordante(path: Path) -> Peer | None:
    """Run it where it is installed."""
    told = _run(_PROGRAM, str(path))
    return None if told is None else Peer(**told)


def hyfd(path: Path) -> DependencyPeer | None:
    """Run it where it is installed."""
    told = _run(_HYFD, str(path))
    if told is None:
        return None
    found = [(tuple(left), right) for left, right in told["found"]]
    return DependencyPeer(told["load"], told["search"], found)


def spider(paths: list[Path]) -> InclusionPeer | None:
    """Run it where it is installed."""
    told = _run(_SPIDER, *map(str, paths))
    return None if told is None else InclusionPeer(**told)


def _run(program: str, *arguments: str) -> dict[str, Any] | None:
    python = os.environ.get("HOLDFAST_DESBORDANTE", sys.executable)
    there = subprocess.run([python, "-c", "import desbordante"], capture_output=True, check=False)
    if there.returncode:
        return None
    done = subprocess.run(
        [python, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
