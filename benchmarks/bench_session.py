"""A check of 1,000 rows from a fresh process, with a session that was started before and without.

The floor is an empty query: from a process that starts Spark for it, and (what any command with a
session takes at least) a question to the session.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

_TARGET = 2.0
_TIMES = 5
_EMPTY = """
from holdfast.spark.session import open_session
open_session().range(0).collect()
"""


def main() -> None:
    """Time both."""
    with tempfile.TemporaryDirectory(prefix="hf-") as name:
        folder = Path(name)
        os.environ["XDG_RUNTIME_DIR"] = name  # nobody else's session
        _write(folder / "orders.csv", 0, 100_000)
        _write(folder / "new.csv", 100_000, 101_000)
        check = ["check", "shop", "--table", "orders", "--inserts", "new.csv", "--quiet"]
        _seconds(folder, "-m", "holdfast", "profile", "orders.csv", "--into", "shop", "--quiet")
        print(f"an empty query, Spark started for it      {_seconds(folder, '-c', _EMPTY):6.2f} s")
        alone = _seconds(folder, "-m", "holdfast", *check)
        print(f"check of 1,000 rows, Spark started for it {alone:6.2f} s")
        _seconds(folder, "-m", "holdfast", "session", "start", "--quiet")
        try:
            asked = median(
                _seconds(folder, "-m", "holdfast", "session", "status") for _ in range(_TIMES)
            )
            print(f"a question to the session                 {asked:6.2f} s")
            first = _seconds(folder, "-m", "holdfast", *check)
            later = median(_seconds(folder, "-m", "holdfast", *check) for _ in range(_TIMES))
        finally:
            _seconds(folder, "-m", "holdfast", "session", "stop")
        print(f"check of 1,000 rows in it, the first      {first:6.2f} s")
        print(f"check of 1,000 rows in it, the next ones  {later:6.2f} s (target {_TARGET:.0f} s)")


def _write(path: Path, start: int, end: int) -> None:
    rows = (
        f"{i},{i * 7919 % 5003},{'abcdef'[i * i % 6]},{i * 31 % 9973 / 100},2026-01-{i % 28 + 1:02}"
        for i in range(start, end)
    )
    path.write_text("id,customer,kind,price,day\n" + "\n".join(rows) + "\n")


def _seconds(folder: Path, *arguments: str) -> float:
    """How long a fresh process takes, from end to end."""
    start = time.perf_counter()
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1) or (done.returncode and not done.stdout):
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}")
    return time.perf_counter() - start
