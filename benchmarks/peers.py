"""Other systems, run as separate programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Peer:
    """A from-scratch run of Desbordante's HPIValid, the fastest of its key finders here."""

    load: float
    search: float
    keys: list[list[int]]

    @property
    def total(self) -> float:
        return self.load + self.search


def desbordante(path: Path) -> Peer | None:
    """Run it where it is installed."""
    python = os.environ.get("HOLDFAST_DESBORDANTE", sys.executable)
    there = subprocess.run([python, "-c", "import desbordante"], capture_output=True, check=False)
    if there.returncode:
        return None
    done = subprocess.run(
        [python, "-c", _PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    return Peer(**json.loads(done.stdout))
