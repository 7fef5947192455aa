"""Killed at any step of a batch with a quarantine: every quarantined row is found exactly once, and
what belongs to others in the folder stays as it is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from holdfast import Profile, flow
from holdfast.model.expectations import Expectation, Quarantine
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.flow.tables import row_input
from tests.strategies import Rows

START: Rows = [(1, 1), (2, 2)]
GOOD: Rows = [(3, 3), (4, 4)]
BAD: Rows = [(1, 7), (2, 8), (5, 5), (5, 6)]
LATER: Rows = [(9, 9), (1, 10)]

OTHERS = (
    "notes.txt",
    ".notes.pending",
    "u-1-0123456789ab-inserts-1.parquet",
    ".t-2-0123456789ab-inserts-1.parquet.pending",  # another profile's, at work just now
    ".t-3-0123456789ab-inserts-1.parquet.pending.0123456789abcdef0123456789abcdef",
)

STEPS = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.utime")


def apply(root: Path, rows: Rows, batch_id: str, quarantine: bool = True) -> Any:
    store = Store.open(root / "p")
    batch = flow.Batch(inserts=row_input(2, rows), batch_id=batch_id)
    shelf = str(root / "q") if quarantine else None
    return flow.apply(InProcess(1), store, "t", batch, no_progress, quarantine=shelf)


def prepare(root: Path) -> None:
    store = Store.create(root / "p")
    options = Options(kinds=("keys",))
    flow.profile(InProcess(1), store, {"t": row_input(2, START)}, options, no_progress)
    flow.expect(InProcess(1), store, [Expectation("t: key(c0)")], no_progress)
    (root / "q").mkdir()
    for name in OTHERS:
        (root / "q" / name).write_text(name)


def work(root: Path) -> None:
    """Apply a batch in a process that is killed before its first step, then one that is killed
    before its second, until one comes to the end; each in a folder of its own."""
    prepare(root / "base")
    shutil.copytree(root / "base", root / "whole")
    apply(root / "whole", GOOD + BAD, "monday")  # loads what the others then have
    for step in count():
        place = root / f"step{step}"
        shutil.copytree(root / "base", place)
        child = os.fork()
        if not child:
            killed_before(step, place)
            apply(place, GOOD + BAD, "monday")
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            break


def killed_before(step: int, root: Path) -> None:
    watched = tuple(str(root / each) for each in ("q", "p/log", "p/leases"))
    steps = count()

    def hook(event: str, given: Sequence[Any]) -> None:
        if event not in STEPS or not str(given[0]).startswith(watched):
            return
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def committed(root: Path) -> list[Quarantine]:
    """What the history says of quarantined rows."""
    entries = Profile.open(root / "p").history()
    told = [changes for entry in entries for changes in entry.by_table.values()]
    return [changes.quarantined for changes in told if changes.quarantined is not None]


def named(root: Path) -> set[str]:
    return {name for each in committed(root) for name in each.files}


def in_folder(root: Path) -> set[str]:
    return {path.name for path in (root / "q").iterdir()}


def read(paths: Sequence[Path]) -> Counter[tuple[int, int]]:
    tables = [pq.read_table(path) for path in paths]
    return Counter((row["c0"], row["c1"]) for table in tables for row in table.to_pylist())


def by_history(root: Path) -> Counter[tuple[int, int]]:
    """The documented way that is exact at any time: the files that the history names; one that is
    not there has its pending name still."""
    paths = [root / "q" / name for name in named(root)]
    return read([p if p.exists() else p.with_name(f".{p.name}.pending") for p in paths])


def visible(root: Path) -> Counter[tuple[int, int]]:
    """The simple way: all files of the folder but hidden ones."""
    paths = [path for path in (root / "q").glob("*.parquet") if path.name not in OTHERS]
    return read([path for path in paths if not path.name.startswith(".")])


@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path) -> None:
    worker: list[str | Path] = [sys.executable, "-m", "tests.rules.test_kill_quarantine", tmp_path]
    subprocess.run(worker, check=True)
    bad = Counter(BAD)
    seen = set()
    places = sorted(tmp_path.glob("step*"))
    assert len(places) > 15
    for place, root in enumerate(places):
        head = Store.open(root / "p").head()
        expected = bad if head == 3 else Counter()
        assert by_history(root) == expected, root.name
        before = visible(root)
        assert before in (Counter(), expected), root.name
        seen.add((head, before.total()))
        if place % 2:
            # Any command that commits finishes it: the lease of the killed one names the folder.
            apply(root, [(20, 20)], "plain", quarantine=False)
            assert visible(root) == expected, root.name
            assert in_folder(root) == named(root) | {*OTHERS}
        # The same batch again: its rows are there now, each once, by both ways.
        again = apply(root, GOOD + BAD, "monday")
        assert again.applied_before == (head == 3)
        assert by_history(root) == visible(root) == bad
        # Once another version is committed, nothing is left that no version names.
        apply(root, LATER, "tuesday")
        assert by_history(root) == visible(root) == bad + Counter(LATER[1:])
        assert in_folder(root) == named(root) | {*OTHERS}
        assert all((root / "q" / name).read_text() == name for name in OTHERS)
    assert {(2, 0), (3, 0), (3, 4)} <= seen


if __name__ == "__main__":
    work(Path(sys.argv[1]))
