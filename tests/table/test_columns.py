"""Facts about columns: what is kept is what the rows have, whatever came and went."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.model.commits import ColumnRecord
from holdfast.model.expectations import Expectation
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess
from holdfast.store import Store
from holdfast.tasks import columns as tasks
from holdfast.tasks.columns import ColumnSummary
from holdfast.tasks.shown import plain
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, Kind, Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.limits import varied
from tests.strategies import Rows, rows_of

EVE = datetime(1969, 12, 31)
MORE = (
    *KINDS,
    Kind("float", pa.float32(), (0.0, math.nan, -1.5, 2.0, math.inf, -math.inf)),
    Kind(
        "timestamp_ntz", pa.timestamp("us"), tuple(EVE + timedelta(hours=9 * i) for i in range(6))
    ),
    Kind("string", pa.string(), ("z" * 9, "z" * 8 + "a", "zz", "é", "", "z" * 10)),
    Kind("decimal(38,0)", pa.decimal128(38, 0), tuple(Decimal(10) ** 30 * i for i in range(-3, 3))),
)


def shown(value: Any) -> Any:
    """A value as a profile tells it."""
    if isinstance(value, float) and value == 0:
        value = 0.0
    return json.loads(json.dumps(plain(value)))


def assert_exact(shop: Shop, rows: Rows, most_bytes: int) -> None:
    """Every fact is that of the rows, as brute force finds it."""
    now = shop.now
    assert [each.name for each in now.facts] == [f"c{c}" for c in range(shop.columns)]
    for c, (kind, facts) in enumerate(zip(shop.kinds, now.facts, strict=True)):
        cells = pa.array([kind.cell(row[c], i) for i, row in enumerate(rows)], kind.arrow)
        nulls, distinct, lowest, highest = oracle.column_facts(cells.to_pylist())
        assert (facts.type, facts.nulls) == (kind.name, nulls)
        if "inds" in shop.options.kinds:
            assert (facts.distinct, facts.estimated) == (distinct, False)
        elif facts.distinct is not None and not facts.estimated:
            assert facts.distinct == distinct
        if not shop.options.keep_rows and kind.name in ("string", "binary"):
            assert (facts.minimum, facts.maximum) == (None, None)
            continue
        for mine, theirs in ((facts.minimum, lowest), (facts.maximum, highest)):
            if isinstance(theirs, str) and len(theirs.encode()) > most_bytes:
                assert mine == theirs.encode()[:most_bytes].decode("utf-8", "ignore") + "…"
            elif isinstance(theirs, bytes):
                assert mine == shown(theirs[:most_bytes])
            else:
                assert mine == shown(theirs)


@pytest.mark.slow
@law(15)
@given(data=st.data(), tasks_=st.integers(1, 3))
def test_kept_equals_fresh(data: st.DataObject, tasks_: int) -> None:
    options = Options(
        kinds=data.draw(st.sampled_from([("keys",), ("inds",), ("keys", "fds", "inds")])),
        nulls=data.draw(st.sampled_from(["equal", "unequal"])),
        inclusion_nulls=data.draw(st.sampled_from(["ignored", "values"])),
        keep_rows=data.draw(st.sampled_from([True, True, False])),
    )
    kinds = data.draw(st.lists(st.sampled_from(MORE), min_size=1, max_size=4))
    rows = data.draw(rows_of(len(kinds), 12))
    most_bytes = data.draw(st.sampled_from([256, 9, 2]))
    with folder() as path, small_limits(**data.draw(LIMITS)) as patch:
        varied(patch, shown_bytes=most_bytes)
        shop = Shop(Path(path) / "p", kinds, rows, options, tasks_)
        assert_exact(shop, rows, most_bytes)
        for _ in range(data.draw(st.integers(1, 4))):
            change = data.draw(batches(len(kinds), rows))
            shop.apply(**change.batch)
            rows = change.after
            assert_exact(shop, rows, most_bytes)
        assert shop.verify().equal


def test_booleans(tmp_path: Path) -> None:
    flags = Kind("boolean", pa.bool_(), (False, True))
    rows: Rows = [(1,), (0,), (None,), (1,)]
    shop = Shop(tmp_path / "p", [flags], rows, Options(kinds=("inds",)))
    assert_exact(shop, rows, 256)
    shop.apply(deletes=[(0,)])
    assert_exact(shop, [(1,), (None,), (1,)], 256)
    assert (shop.now.facts[0].minimum, shop.now.facts[0].nulls) == (True, 1)


@pytest.mark.parametrize("tasks_", [1, 2])
def test_a_text_and_longer_ones_that_begin_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks_: int
) -> None:
    """Of the longer ones only the beginning is kept, wherever they are: it is not the text."""
    varied(monkeypatch, shown_bytes=2)
    texts = Kind("string", pa.string(), ("zz", "zzzz", "zzz"))
    rows: Rows = [(0,), (1,), (1,), (0,)]
    shop = Shop(tmp_path / "p", [texts], rows, Options(kinds=("keys",)), tasks_)
    assert_exact(shop, rows, 2)
    batches: list[tuple[dict[str, Any], Rows]] = [
        ({"inserts": [(2,)]}, [*rows, (2,)]),
        ({"deletes": [(0,), (0,)], "inserts": [(2,)]}, [(1,), (1,), (2,), (2,)]),
        ({"inserts": [(0,)]}, [(1,), (1,), (2,), (2,), (0,)]),
    ]
    for batch, after in batches:
        shop.apply(**batch)
        assert_exact(shop, after, 2)
    assert shop.verify().equal


def test_a_table_of_more_columns_than_a_word_has_bits(tmp_path: Path) -> None:
    rows: Rows = [tuple(None if (r + c) % 3 == 0 else r * c for c in range(70)) for r in range(5)]
    options = Options(kinds=("inds",))
    shop = Shop(tmp_path / "p", 70, rows, options)
    assert_exact(shop, rows, 256)
    shop.apply(deletes=[rows[4], rows[0]])
    assert_exact(shop, rows[1:4], 256)


class Counted(InProcess):
    """A runner that notes which columns are looked at again."""

    def __init__(self) -> None:
        super().__init__(2)
        self.scans: list[tuple[int, ...]] = []

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        scans = {item.columns for _, item in calls if isinstance(item, tasks.Scan)}
        assert not scans or all(isinstance(item, tasks.Scan) for _, item in calls)
        self.scans += scans
        return super().run(calls)

    def sharing(self, prefix: str) -> InProcess:
        return self


def test_columns_are_looked_at_again_only_when_an_end_is_gone(tmp_path: Path) -> None:
    rows: Rows = [(i, i % 3, None) for i in range(9)]
    runner = Counted()
    shop = Shop(tmp_path / "p", 3, rows, Options(kinds=("keys",)), runner=runner)

    def after(**batch: Any) -> list[tuple[int, ...]]:
        runner.scans.clear()
        # Tasks say that they compile, and the calls are then not our own.
        flow.apply(runner, shop.store, "t", shop.batch(**batch), no_progress)
        return list(runner.scans)

    assert after(inserts=[(10, 1, None)]) == []
    assert after(deletes=[(4, 1, None)]) == []
    # The lowest of the first goes: told by the task that finds the row.
    assert after(deletes=[(0, 0, None)]) == []
    assert shop.now.facts[0].minimum == 1
    assert after(deletes=[(10, 1, None)], inserts=[(11, 1, None)]) == []  # a higher one comes
    assert after(updates=[(1, 0, None)], row_key=("c0",)) == []  # the lowest goes and comes again
    assert after(deletes=[row for row in rows if row[1] == 0 and row[0]]) == []
    # By a row key that says nothing of the second column, whose last 0 goes.
    assert after(deletes=[(1, 0, None)], row_key=("c0",), key_only=True) == []
    left = [row for row in rows if row[1] and row[0] not in (1, 4)]
    assert_exact(shop, [*left, (11, 1, None)], 256)
    # Two requests: what a task finds for one of them is not all that goes.
    assert after(deletes=[(11, 1, None)], updates=[(8, 7, None)], row_key=("c0",)) == [(0,)]
    left = [row for row in left if row[0] != 8]
    assert_exact(shop, [*left, (8, 7, None)], 256)
    # Nothing is left to look at.
    assert after(deletes=[*left, (8, 7, None)]) == []
    assert_exact(shop, [], 256)


def test_what_python_cannot_tell(tmp_path: Path) -> None:
    """Dates beyond its calendar, and text that is no text."""
    days = pa.array([0, 10_000_000], pa.int32()).view(pa.date32())
    odd = pa.array([b"\xff\xfe", b"a"], pa.binary()).view(pa.string())
    nested = pa.array([[1], None], pa.list_(pa.int64()))
    told = Columns.of(
        ["day", "odd", "list"],
        ["date", "string", "array<bigint>"],
        [days.type, odd.type, nested.type],
    )
    rows = RowInput("rows", told, pa.table([days, odd, nested], names=["c0", "c1", "c2"]))
    store = Store.create(tmp_path / "p")
    flow.profile(InProcess(), store, {"t": rows}, Options(kinds=("inds",)), no_progress)
    day, text, parts = snapshot(store).tables["t"].facts
    assert (day.minimum, day.maximum) == ("1970-01-01", "10000000")
    assert (text.minimum, text.maximum) == ("a", "��")
    assert (parts.minimum, parts.nulls, parts.distinct) == (None, 1, 1)
    assert parts.to_dict()["maximum"] is None


def test_a_profile_without_facts_stays_readable(tmp_path: Path) -> None:
    """Of an earlier Holdfast: nothing is known, and batches do not make it wrong."""
    shop = Shop(tmp_path / "p", 2, [(1, 1), (2, None)], Options(kinds=("keys",)))
    with shop.store.writing() as lease:
        old = shop.store.read()
        tables = {name: replace(each, facts=()) for name, each in old.tables.items()}
        shop.store.publish(replace(old, tables=old.tables | tables), lease)
    shop.apply(inserts=[(3, 3)], deletes=[(1, 1)])
    assert [(each.name, each.nulls, each.minimum) for each in shop.now.facts] == [
        ("c0", None, None),
        ("c1", None, None),
    ]
    assert shop.verify().equal


def test_verify_tells_of_wrong_facts(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 1), (2, None)], Options(kinds=("keys",)))
    with shop.store.writing() as lease:
        old = shop.store.read()
        record = old.tables["t"]
        facts = (replace(record.facts[0], nulls=1), *record.facts[1:])
        wrong = old.tables | {"t": replace(record, facts=facts)}
        shop.store.publish(replace(old, tables=wrong), lease)
    (sentence,) = shop.verify().differences["t"]
    assert sentence == "the profile has other facts about column c0 than its rows"


def test_forms_of_facts() -> None:
    facts = ColumnSummary(2, (tasks.End("00", 3), None))
    assert ColumnSummary.from_form(json.loads(json.dumps(facts.to_form()))) == facts
    assert ColumnRecord(0, None, None).nulls == 0


@pytest.mark.parametrize("keep_rows", [True, False])
def test_rows_that_are_left_out_are_in_no_fact(tmp_path: Path, keep_rows: bool) -> None:
    """Also where raw rows are kept for the quarantine alone: then texts stay unknown."""
    rows: Rows = [(1, 1), (2, 2)]
    options = Options(kinds=("keys",), keep_rows=keep_rows)
    shop = Shop(tmp_path / "p", [BIGINT, KINDS[2]], rows, options)
    flow.expect(shop.runner, shop.store, [Expectation("t: key(c0)")], no_progress)
    for number, inserts in enumerate([[(0, 3), (2, 0), (2, 4)], [(9, 3)]]):
        folder_ = str(tmp_path / f"q{number}")
        batch = shop.batch(inserts=inserts)
        flow.apply(shop.runner, shop.store, "t", batch, no_progress, quarantine=folder_)
    assert_exact(shop, [*rows, (0, 3), (9, 3)], 256)
    assert shop.verify().equal


@pytest.mark.parametrize("rows", [1, 3_000])
def test_an_index_is_walked_past_deleted_rows(tmp_path: Path, rows: int) -> None:
    cells: Rows = [(i, i % 2) for i in range(rows + 4)]
    options = Options(kinds=("keys",), index_quota=8)
    shop = Shop(tmp_path / "p", [BIGINT, BIGINT], cells, options)
    assert shop.store.read().tables["t"].indexed
    shop.apply(deletes=cells[:rows])
    assert_exact(shop, cells[rows:], 256)
    shop.apply(deletes=cells[-2:])
    assert_exact(shop, cells[rows:-2], 256)
