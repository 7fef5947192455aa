"""Several commands in one process, because most of the time that one takes is Spark's start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAM = """
import contextlib, io, json, sys
from holdfast.cli import main

told = []
for step in json.load(sys.stdin):
    printed, code = io.StringIO(), 0
    with contextlib.redirect_stdout(printed):
        if isinstance(step, str):
            exec(step)
        else:
            sys.argv = step
            try:
                main()
            except SystemExit as exit_:
                code = exit_.code or 0
    told.append([printed.getvalue(), code])
json.dump(told, sys.stdout)
"""


class Told(NamedTuple):
    """What each step printed with its exit code, and what all wrote to standard error."""

    steps: list[tuple[str, int]]
    errors: str


def run_steps(folder: Path, steps: Sequence[Sequence[str] | str]) -> Told:
    """Run commands, given as words, and programs, given as text, one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Told([(out, code) for out, code in json.loads(done.stdout)], done.stderr)
