"""Deletes that take all pairs of rows which evidence is shown with."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.batches import TABLE, timed
from benchmarks.tpch import random_lines, write
from holdfast import Profile

WITNESSES = {
    "deletes of all witnesses of ten agree-sets": False,
    "and of the ten largest": True,
}
"""What is deleted, and whether the largest maximal agree-sets are meant, which are alike and lack
the same columns; random ones otherwise."""

_BATCHES = 5


def without_witnesses_in_copies(profile: Profile, folder: Path, path: Path) -> dict[str, float]:
    """The median times for each of :data:`WITNESSES`; the profile itself keeps its rows."""
    figures = {}
    for what in WITNESSES:
        shutil.copytree(profile._store.path, folder / "copy", copy_function=os.link)
        copy = Profile.open(folder / "copy", session=profile._session)
        figures[what] = without_witnesses(copy, folder, path, what)
        shutil.rmtree(folder / "copy")
    return figures


def without_witnesses(profile: Profile, folder: Path, path: Path, what: str) -> float:
    """The median time of deletes that take all witnesses of ten maximal agree-sets."""
    header, _ = random_lines(path, 1, 3)
    random = None if WITNESSES[what] else np.random.default_rng(11)
    times = []
    for _ in range(_BATCHES):
        witnesses = _witnesses(profile, 10, random)
        lines = as_csv([["" if cell is None else str(cell) for cell in row] for row in witnesses])
        rows = write(folder / "witnesses.csv", header, lines)
        times.append(timed(profile, deletes=rows))
    spread = " ".join(f"{seconds:.2f}" for seconds in times)
    print(f"  {what:42} {median(times):7.2f} s  ({spread})", flush=True)
    return median(times)


def as_csv(rows: list[list[str]]) -> list[str]:
    """Lines of CSV."""
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows(rows)
    return sink.getvalue().splitlines(keepends=True)


def _witnesses(profile: Profile, count: int, random: np.random.Generator | None) -> list[list[Any]]:
    """All rows that some random agree-sets are shown with, or the largest ones."""
    from holdfast.kinds.table_state import TableState
    from holdfast.tasks.shown import rows_as_text

    store = profile._store
    known = TableState.load(store, store.read(), TABLE)
    table, witnesses = known.table, known.evidence["agreement"].evidence.witnesses
    places = np.arange(len(witnesses))
    chosen = places[-count:] if random is None else random.choice(places, count, replace=False)
    ids = np.unique(witnesses[chosen])
    texts = rows_as_text(store.path, table.segments, table.columns.names, ids[ids >= 0])
    return [[*json.loads(text).values()] for text in texts.values()]
