"""Real tables whose keys are known, every cell as text, then kept through changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast import flow
from holdfast.model.constraints import Key
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import TableSnapshot, snapshot
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.data import MISSING, data_dir, read_table
from tests.flow.tables import small_limits, text_input

pytestmark = pytest.mark.skipif(data_dir() is None, reason=MISSING)

SMALL = ["abalone", "breast-cancer", "bridges", "hepatitis", "iris"]
LARGE = ["adult", pytest.param("flight", marks=pytest.mark.long)]

Rows = list[list[str]]


class Real:
    """A profile of a real table."""

    def __init__(self, path: Path, name: str, options: Options | None = None) -> None:
        folder = data_dir()
        assert folder is not None
        self.known: dict[str, Any] = json.loads((folder / "known-results.json").read_text())[name]
        self.header, self.rows = read_table(folder / f"{name}.csv")
        self.options = options or Options()
        self.runner = InProcess(2)
        self.path = path
        self.store = self.fresh(self.rows)

    def fresh(self, rows: Rows) -> Store:
        number = len(list(self.path.iterdir())) if self.path.exists() else 0
        store = Store.create(self.path / str(number))
        row_inputs = {"t": text_input(self.header, rows)}
        flow.profile(self.runner, store, row_inputs, self.options, no_progress)
        return store

    def apply(self, inserts: Rows, deletes: Rows) -> None:
        batch = flow.Batch(text_input(self.header, inserts), text_input(self.header, deletes))
        flow.apply(self.runner, self.store, "t", batch, no_progress)

    @property
    def now(self) -> TableSnapshot:
        return snapshot(self.store).tables["t"]


def sets(keys: tuple[Key, ...]) -> set[frozenset[str]]:
    return {frozenset(key.columns) for key in keys}


def same(one: TableSnapshot, two: TableSnapshot) -> bool:
    return (
        set(one.keys) == set(two.keys)
        and {n.columns for n in one.non_keys} == {n.columns for n in two.non_keys}
        and (one.rows, one.duplicates) == (two.rows, two.duplicates)
    )


def changed(real: Real, few: int, seed: int = 0) -> tuple[Rows, Rows, Rows]:
    """Some rows to delete, rows with cells of two others to insert, and what there is then."""
    random = np.random.default_rng(seed)
    gone = set(random.choice(len(real.rows), few, replace=False).tolist())
    inserts = []
    for one, two in random.choice(len(real.rows), (few, 2)).tolist():
        cut = int(random.integers(1, len(real.header)))
        inserts.append(real.rows[one][:cut] + real.rows[two][cut:])
    after = [row for i, row in enumerate(real.rows) if i not in gone] + inserts
    return inserts, [real.rows[i] for i in gone], after


def check(real: Real, few: int) -> None:
    known = real.known
    now = real.now
    distinct = {tuple(row) for row in real.rows}
    assert (now.rows, now.duplicates) == (known["rows"], known["rows"] - len(distinct))
    if now.duplicates:
        assert known["keys"] == []
        assert now.duplicated
        if "keys_of_distinct_rows" in known:
            assert sets(now.keys) == {frozenset(key) for key in known["keys_of_distinct_rows"]}
    elif "keys" in known:
        assert sets(now.keys) == {frozenset(key) for key in known["keys"]}
    else:
        assert len(now.keys) == known["key_count"]
    inserts, deletes, after = changed(real, few)
    real.apply(inserts, deletes)
    expected = snapshot(real.fresh(after)).tables["t"]
    assert same(real.now, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_keys(tmp_path: Path, name: str) -> None:
    with small_limits(segment_rows=500, undivided_rows=100):
        check(Real(tmp_path, name), 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_keys_of_larger_tables(tmp_path: Path, name: str) -> None:
    with small_limits():
        check(Real(tmp_path, name), 6)


@pytest.mark.slow
def test_keys_from_a_sample(tmp_path: Path) -> None:
    with small_limits(segment_rows=1_000):
        check(Real(tmp_path, "abalone", Options(start="sample")), 12)


@pytest.mark.slow
def test_short_keys_of_a_very_wide_table(tmp_path: Path) -> None:
    """222 columns have too many keys to list, but not too many of up to two columns."""
    with small_limits():
        real = Real(tmp_path, "uniprot", Options(max_columns=2))
        columns = [
            np.unique(cells, return_inverse=True)[1] for cells in zip(*real.rows, strict=True)
        ]
        rows = len(real.rows)
        single = {c for c, codes in enumerate(columns) if len(np.unique(codes)) == rows}
        expected = {frozenset([real.header[c]]) for c in single}
        others = [c for c in range(len(columns)) if c not in single]
        for i, one in enumerate(others):
            for two in others[i + 1 :]:
                if len(np.unique(columns[one] * rows + columns[two])) == rows:
                    expected.add(frozenset([real.header[one], real.header[two]]))
        assert sets(real.now.keys) == expected
        inserts, deletes, after = changed(real, 5)
        real.apply(inserts, deletes)
        assert set(real.now.keys) == set(snapshot(real.fresh(after)).tables["t"].keys)
