"""Run the benchmarks: ``make bench``, or ``python -m benchmarks keys values``.

Data is made with tpchgen-cli under benchmarks/data (1.1 GB at scale factor 1). Desbordante is run
as a separate program where one is installed: in this environment, or in the one whose Python
``HOLDFAST_DESBORDANTE`` names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

STAGES = (
    "encode", "evidence", "keys", "skew", "agree", "dependencies", "denials", "lookups", "values",
    "rank", "near", "cost", "session", "tables", "scale", "feeds", "cold",
)  # fmt: skip
ASKED = ("gpu", "exchange", "store", "placement", "far", "model")
"""Stages that run only when named: they need what few machines have, an idle disk of 60 GB, or were
run for a decision."""


def main() -> None:
    """Run the named stages, or all."""
    chosen = sys.argv[1:] or list(STAGES)
    for stage in chosen:
        if stage not in STAGES + ASKED:
            sys.exit(f"no benchmark {stage!r}; there are: {', '.join(STAGES + ASKED)}")
    if len(chosen) == 1:
        load = os.getloadavg()[0]
        print(f"\n== {chosen[0]} (load of the machine before: {load:.1f})", flush=True)
        import_module(f"benchmarks.bench_{chosen[0]}").main()
        return
    for stage in chosen:
        # Each in a process of its own: Spark's JVM keeps the environment that it began with.
        subprocess.run([sys.executable, "-m", "benchmarks", stage], check=True)


if __name__ == "__main__":
    main()
