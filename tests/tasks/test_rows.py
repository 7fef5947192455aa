"""Rows that requests mean, and rows that repeat others: found in ranges, whatever their number."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.input.reading import read
from holdfast.model.progress import no_progress
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Call, InProcess
from holdfast.table.matching import Requests, TableRequests, find_rows
from holdfast.tasks import rows as tasks
from holdfast.tasks.encode import layout
from holdfast.tasks.rows import Duplicates, duplicates, even_ranges
from holdfast.tasks.segments import ROWS
from holdfast.tasks.view import View
from tests.flow.tables import folder, row_input, small_limits
from tests.strategies import Rows, examples
from tests.traffic import Counting

CELLS = st.one_of(st.none(), st.integers(0, 3))


def stored(place: str, rows: Rows, first: int, nulls: str = "equal", names: Any = ()) -> View:
    row = row_input(2, rows)
    intake = read(InProcess(3), row, Destination(place, "x-*-"), first, no_progress, names)
    return View(place, intake.segments, layout(row.columns.schema).widths, nulls == "equal")


def requests(table: View, asked: View, rows: Rows, index: str = ROWS) -> TableRequests:
    own = row_input(2, rows).columns
    columns = (0, 1) if index == ROWS else (int(index),)
    some = Requests("delete", "rows", own, asked.segments, columns, columns, index, True)
    return TableRequests("t", table, (some,), own.schema)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS), max_size=30),
    wanted=st.lists(st.tuples(CELLS, CELLS), max_size=10),
    tasks=st.integers(1, 9),
    nulls=st.sampled_from(["equal", "unequal"]),
)
@settings(deadline=None, max_examples=examples(60))
def test_rows_are_located_in_any_number_of_ranges(
    rows: Rows, wanted: Rows, tasks: int, nulls: str
) -> None:
    with folder() as place, small_limits(segment_rows=8):
        table, asked = stored(place, rows, 0, nulls), stored(place, wanted, 100)
        found = find_rows(InProcess(tasks), [requests(table, asked, wanted)])[0]
        ids = [s.base + at for s in table.segments for at in found.positions(s).tolist()]
    assert len({*ids}) == found.count
    held = Counter(rows)
    gone = {row: min(number, held[row]) for row, number in Counter(wanted).items()}
    by_id = dict(zip(_ids(table), rows, strict=True))
    assert Counter(by_id[id_] for id_ in ids) == +Counter(gone)
    left = held - Counter(gone)
    assert found.fewer_duplicates == _repeated(held, nulls) - _repeated(left, nulls)


def _ids(view: View) -> list[int]:
    return [s.base + at for s in view.segments for at in range(s.rows)]


def _repeated(rows: Counter[Any], nulls: str) -> int:
    return sum(n - 1 for row, n in rows.items() if nulls == "equal" or None not in row)


@pytest.mark.parametrize("index", [ROWS, "0", "1"])
def test_more_tasks_send_no_more_back(tmp_path: Path, index: str) -> None:
    rows: Rows = [(i, i % 2000 if index == ROWS else 3 * i) for i in range(4_000)]
    wanted = rows[1_000:3_000]
    returned, read = {}, {}
    with small_limits(located_rows=10, sent_positions=1 << 16):
        names = () if index == ROWS else (index,)
        table, asked = (
            stored(str(tmp_path), each, first, names=names)
            for each, first in ((rows, 0), (wanted, 9))
        )
        for tasks in (2, 64):
            runner = Counting(tasks)
            found = find_rows(runner, [requests(table, asked, wanted, index)])[0]
            assert found.count == len(wanted)
            returned[tasks], read[tasks] = (
                runner.bytes_returned["locate"],
                runner.bytes_read["locate"],
            )
    assert returned[64] < 1.5 * returned[2] + 64 * 250
    assert read[64] < 1.5 * read[2]


@given(
    rows=st.lists(st.tuples(CELLS, CELLS), max_size=30),
    parts=st.integers(1, 9),
    nulls=st.sampled_from(["equal", "unequal"]),
)
@settings(deadline=None, max_examples=examples(60))
def test_repeated_rows_are_counted_in_any_number_of_ranges(
    rows: Rows, parts: int, nulls: str
) -> None:
    with folder() as place, small_limits(segment_rows=8):
        view = stored(place, rows, 0, nulls)
        calls: list[Call] = [(duplicates, Duplicates(view, *each)) for each in even_ranges(parts)]
        results = [result for some in InProcess(1).run(calls) for result in some]
    assert sum(r.facts["duplicates"] for r in results) == _repeated(Counter(rows), nulls)
    by_id = dict(zip(_ids(view), rows, strict=True))
    for one, two in (pair for r in results for pair in r.facts["pairs"]):
        assert one < two
        assert by_id[one] == by_id[two]


def test_ranges_have_all_codes() -> None:
    for parts in (1, 2, 3, 64):
        ranges = even_ranges(parts)
        assert len(ranges) == parts
        assert ranges[0][0] is None
        assert ranges[-1][1] is None
        assert all(one[1] == two[0] for one, two in itertools.pairwise(ranges))
        assert all(-(2**63) < cut < 2**63 for _, cut in ranges[:-1] if cut is not None)


WORDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=12)


@given(WORDS.filter(bool), WORDS, st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_rows_among_others_are_counted(
    some: list[tuple[int, int]], others: list[tuple[int, int]], colliding: bool
) -> None:
    """Also where different rows have one hash."""
    with pytest.MonkeyPatch.context() as patch:
        if colliding:
            patch.setattr(tasks, "row_codes", lambda words: words[:, 0].copy())
        among = tasks.Sorted.of(np.array(some, np.uint64))
        found = among.having(np.array(others, np.uint64).reshape(-1, 2))
    assert found == sum(each in some for each in others)
