"""Killed at any step of following: the next run goes on where the profile is, and every change is
applied once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast import flow
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.feeds.following import feed, follow, stored, write
from tests.flow.tables import row_input
from tests.strategies import Rows

START: Rows = [(1, 1), (2, 2)]
FILES = {"a.jsonl": [("insert", (3, 3)), ("delete", (1, 1))], "b.jsonl": [("insert", (3, 3))]}
END = sorted([(2, 2), (3, 3), (3, 3)])

STEPS = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.utime")


def prepare(root: Path) -> None:
    store = Store.create(root / "p")
    options = Options(kinds=("keys",))
    flow.profile(InProcess(1), store, {"t": row_input(2, START)}, options, no_progress)
    for name, changes in FILES.items():
        write(root / "in", name, changes)


def work(root: Path) -> None:
    """Follow in a process that is killed before its first step, then in one that is killed before
    its second, until one comes to the end; each in a folder of its own."""
    prepare(root / "base")
    shutil.copytree(root / "base", root / "whole")
    follow(Store.open(root / "whole" / "p"), feed(root / "whole" / "in"), files=1)
    for step in count():
        place = root / f"step{step}"
        shutil.copytree(root / "base", place)
        child = os.fork()
        if not child:
            killed_before(step, place)
            follow(Store.open(place / "p"), feed(place / "in"), files=1)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            break


def killed_before(step: int, root: Path) -> None:
    watched = tuple(str(root / each) for each in ("p/log", "p/leases"))
    steps = count()

    def hook(event: str, given: Sequence[Any]) -> None:
        if event in STEPS and str(given[0]).startswith(watched) and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path) -> None:
    worker: list[str | Path] = [sys.executable, "-m", "tests.feeds.test_kill", tmp_path]
    subprocess.run(worker, check=True)
    places = sorted(tmp_path.glob("step*"))
    assert len(places) > 15
    heads = []
    for root in places:
        store = Store.open(root / "p")
        heads.append(store.head())
        course = follow(store, feed(root / "in"), files=1)
        assert not course.failed
        assert (course.steps, store.head()) == (3 - heads[-1], 3)
        assert sorted(stored(store)) == END, root.name
    assert {*heads} == {1, 2, 3}


if __name__ == "__main__":
    work(Path(sys.argv[1]))
