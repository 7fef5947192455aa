"""Times in nanoseconds: exactly what was given, in every unit that holds it, or an error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.model.errors import SchemaError, SourceError
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import TableSnapshot, snapshot
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests import oracle
from tests.flow.tables import SECRET, folder
from tests.flow.test_law import law

PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
TYPES = {
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ntz(9)": pa.timestamp("ns"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp(9)": pa.timestamp("ns", "UTC"),
    "time(6)": pa.time64("us"),
    "time(9)": pa.time64("ns"),
    "interval day to second": pa.duration("us"),
    "interval day to second(9)": pa.duration("ns"),
}
PAIRS = [("timestamp_ntz", "timestamp_ntz(9)"), ("timestamp", "timestamp(9)"),
         ("time(6)", "time(9)"),
         ("interval day to second", "interval day to second(9)")]  # fmt: skip
OFTEN = (0, 1, 999, 1_000, 1_001, 2_000, 3_600_000_000_000)
Row = tuple[int, int | None]


def rows_in(name: str, rows: list[Row], label: str = "rows", rounds: bool = False) -> RowInput:
    """Rows of a number and a time; the time is given in nanoseconds, and whole in its unit."""
    kind = TYPES[name]
    times = [None if cell is None else cell // PER_UNIT[kind.unit] for _, cell in rows]
    table = pa.table(
        {
            "c0": pa.array([number for number, _ in rows], pa.int64()),
            # As Spark carries them where it has no such type.
            "c1": pa.array(times, pa.int64() if kind.unit == "ns" else kind),
        }
    )
    columns = Columns.of(["number", "at"], ["bigint", name], [pa.int64(), kind])
    return RowInput(label, columns, table, rounds=rounds)


class Kept:
    """A profile of the keys of one table."""

    def __init__(self, path: Path, name: str, rows: list[Row], **how: Any) -> None:
        self.name, self.rows = name, rows
        self.runner, self.store = InProcess(2), Store.create(path)
        options = Options(kinds=("keys", "inds"), **how)
        secret = None if options.keep_values else SECRET
        self.secret = secret
        row_input = rows_in(name, rows)
        flow.profile(self.runner, self.store, {"t": row_input}, options, no_progress, secret)

    def apply(self, name: str, rounds: bool = False, **batch: list[Row]) -> None:
        row_inputs: dict[str, Any] = {
            kind: rows_in(name, rows, kind, rounds) for kind, rows in batch.items()
        }
        given_ = flow.Batch(**row_inputs)
        flow.apply(self.runner, self.store, "t", given_, no_progress, secret=self.secret)

    @property
    def now(self) -> TableSnapshot:
        return snapshot(self.store).tables["t"]

    def assert_exact(self) -> None:
        now = self.now
        assert now.rows == len(self.rows)
        shown = oracle.agree_sets(self.rows, 2, "equal")
        expected = oracle.minimal_sets(2, oracle.maximal_sets(shown), None)
        names = ("number", "at")
        assert sorted(key.columns for key in now.keys) == sorted(
            tuple(names[c] for c in key) for key in expected
        )
        assert flow.verify(self.runner, self.store, no_progress).equal


def rows_of(name: str) -> st.SearchStrategy[list[Row]]:
    unit = PER_UNIT[TYPES[name].unit]
    times = st.sampled_from([time for time in OFTEN if time % unit == 0])
    return st.lists(st.tuples(st.integers(0, 2), st.none() | times), max_size=6)


@pytest.mark.slow
@law(20)
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_batches_of_either_unit_are_exact_or_refused(
    data: st.DataObject, pair: tuple[str, str]
) -> None:
    first = data.draw(st.sampled_from(pair))
    with folder() as path:
        kept = Kept(Path(path) / "p", first, data.draw(rows_of(first)))
        kept.assert_exact()
        for _ in range(data.draw(st.integers(1, 3))):
            name = data.draw(st.sampled_from(pair))
            inserts = data.draw(rows_of(name))
            unit = PER_UNIT[TYPES[first].unit]
            if all(cell is None or cell % unit == 0 for _, cell in inserts):
                there = [row for row in kept.rows if row[1] is None or row[1] % 1_000 == 0]
                deletes = there[:1]
                kept.apply(name, inserts=inserts, deletes=deletes)
                for row in deletes:
                    kept.rows.remove(row)
                kept.rows = kept.rows + inserts
            else:
                with pytest.raises(SourceError, match=r"column 'at'.*whole microseconds"):
                    kept.apply(name, inserts=inserts)
            kept.assert_exact()


@pytest.mark.parametrize("name", ["timestamp_ntz(9)", "time(9)", "interval day to second(9)"])
@pytest.mark.parametrize("keep_values", [True, False])
def test_a_nanosecond_tells_rows_apart(tmp_path: Path, name: str, keep_values: bool) -> None:
    kept = Kept(tmp_path / "p", name, [(1, 1_000), (1, 1_001)], keep_values=keep_values)
    assert [key.columns for key in kept.now.keys] == [("at",)]
    kept.apply(name, deletes=[(1, 1_001)])
    kept.apply(name, inserts=[(2, 1_000)])
    assert [key.columns for key in kept.now.keys] == [("number",)]


def test_what_is_shown(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "p", "timestamp(9)", [(1, 1_000), (1, 1_001)])
    (non_key,) = kept.now.non_keys
    assert [row["at"] for row in non_key.witness or ()] == [
        "1970-01-01T00:00:00.000001+00:00",
        "1970-01-01T00:00:00.000001001+00:00",
    ]
    _, at = kept.now.facts
    assert (at.minimum, at.maximum) == (
        "1970-01-01T00:00:00.000001+00:00",
        "1970-01-01T00:00:00.000001001+00:00",
    )


def test_a_batch_that_would_lose_digits(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "p", "timestamp_ntz", [(1, 0)])
    before = kept.store.read()
    told = (
        r"inserts, column 'at': unfit cell, expected whole microseconds \(round it "
        r"first, .*profile the table again.*'1970-01-01T00:00:00.000000001'"
    )
    with pytest.raises(SourceError, match=told):
        kept.apply("timestamp_ntz(9)", inserts=[(2, 2_000), (2, 1), (3, 2)])
    assert kept.store.read() == before
    kept.apply("timestamp_ntz(9)", rounds=True, inserts=[(2, 1_999)])
    kept.apply("timestamp_ntz", deletes=[(2, 1_000)])
    assert kept.now.rows == 1


def test_years_that_nanoseconds_do_not_reach(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "p", "timestamp_ntz(9)", [(1, 0)])
    with pytest.raises(SourceError, match=r"column 'at'.*1677-09-21 and 2262-04-11.*'9999-01-01T"):
        kept.apply("timestamp_ntz", inserts=[(2, 253_370_764_800 * 10**9)])
    with pytest.raises(SourceError, match=r"column 'at'.*2262-04-11.*'1000000000000000000'"):
        kept.apply("timestamp_ntz", inserts=[(2, 10**21)])


def test_other_types_stay_apart(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "p", "timestamp_ntz", [(1, 0)])
    for name in ("timestamp", "timestamp(9)", "time(6)"):
        with pytest.raises(SchemaError, match=r"column 'at' is"):
            kept.apply(name, inserts=[(2, 0)])


def test_nested_times(tmp_path: Path) -> None:
    kind = pa.struct([("of", pa.list_(pa.timestamp("ns")))])
    name = "struct<of:array<timestamp_ntz(9)>>"
    cells = [{"of": [1, None]}, {"of": [1, 2]}, None]
    columns = Columns.of(["a", "b"], ["bigint", name], [pa.int64(), kind])
    table = pa.table({"c0": [1, 1, 1], "c1": pa.array(cells, kind)})
    store = Store.create(tmp_path / "p")
    row_inputs = {"t": RowInput("rows", columns, table)}
    flow.profile(InProcess(), store, row_inputs, Options(kinds=("keys",)), no_progress)
    now = snapshot(store).tables["t"]
    assert [key.columns for key in now.keys] == [("b",)]
    (non_key,) = now.non_keys
    assert {"of": ["1970-01-01T00:00:00.000000001", None]} in [
        row["b"] for row in non_key.witness or ()
    ]
    micros = pa.struct([("of", pa.list_(pa.timestamp("us")))])
    coarse = Columns.of(["a", "b"], ["bigint", name.replace("(9)", "")], [pa.int64(), micros])
    store = Store.create(tmp_path / "q")
    some = pa.table({"c0": [1], "c1": pa.array([None], micros)})
    row_inputs = {"t": RowInput("rows", coarse, some)}
    flow.profile(InProcess(), store, row_inputs, Options(kinds=("keys",)), no_progress)
    batch = flow.Batch(inserts=replace(RowInput("more", columns, table), rounds=True))
    with pytest.raises(SourceError, match=r"more, column 'b'.*whole microseconds"):
        flow.apply(InProcess(), store, "t", batch, no_progress)
