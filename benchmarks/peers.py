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


_FASTADC = """
import json, os, sys, time
import desbordante
algorithm = desbordante.dc.algorithms.FastADC()
start = time.perf_counter()
algorithm.load_data(table=(sys.argv[1], ",", True))
loaded = time.perf_counter()
algorithm.execute(
    allow_cross_columns=False, evidence_threshold=0.0, threads=os.cpu_count(), shard_length=0
)
done = time.perf_counter()
found = sorted(map(str, algorithm.get_dcs()))
print(json.dumps({"load": loaded - start, "search": done - loaded, "found": found}))
"""


@dataclass(frozen=True)
class DenialPeer:
    """A from-scratch run of Desbordante's FastADC, over same-column predicates."""

    load: float
    search: float
    found: list[str]

    @property
    def total(self) -> float:
        return self.load + self.search


@dataclass(frozen=True)
class DependencyPeer:
    """A from-scratch run of Desbordante's HyFD: left-hand sides by column number, and right-hand
    sides."""

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
    answer = _run(_PROGRAM, str(path))
    return None if answer is None else Peer(**answer)


def hyfd(path: Path) -> DependencyPeer | None:
    """Run it where it is installed."""
    answer = _run(_HYFD, str(path))
    if answer is None:
        return None
    dependencies = [(tuple(left), right) for left, right in answer["found"]]
    return DependencyPeer(answer["load"], answer["search"], dependencies)


def spider(paths: list[Path]) -> InclusionPeer | None:
    """Run it where it is installed."""
    answer = _run(_SPIDER, *map(str, paths))
    return None if answer is None else InclusionPeer(**answer)


def fastadc(path: Path, seconds: float = 600) -> DenialPeer | None:
    """Run it where it is installed; None also where it has no answer in time."""
    answer = _run(_FASTADC, str(path), seconds=seconds)
    return None if answer is None else DenialPeer(**answer)


def _run(program: str, *arguments: str, seconds: float | None = None) -> dict[str, Any] | None:
    python = os.environ.get("HOLDFAST_DESBORDANTE", sys.executable)
    there = subprocess.run([python, "-c", "import desbordante"], capture_output=True, check=False)
    if there.returncode:
        return None
    command = [python, "-c", program, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
