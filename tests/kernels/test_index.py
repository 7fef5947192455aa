"""Index kernels against plain Python: sorting, looking up, matching, duplicates and estimates."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.kernels import evidence, index
from holdfast.kernels.checksums import in_memory
from holdfast.kernels.evidence import NumberedRows
from holdfast.kernels.index import Ranges, SegmentRows
from tests.kernels.blocks import (
    KEY,
    WIDE,
    Cells,
    agree,
    block,
    candidates,
    harvested,
    refutes,
    tables,
    told,
)
from tests.strategies import examples

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

quick = settings(deadline=None, max_examples=examples(60))

Table = tuple[Cells, list[int], bool]


def look_up(words: NDArray[np.uint64], wanted: NDArray[np.uint64], at: int) -> Ranges:
    """Ranges in the sorted column whose first word is at ``at``."""
    codes, positions = index.sort(np.ascontiguousarray(words[:, at]))
    asked = np.ascontiguousarray(wanted[:, at]).view(np.int64)
    lo, hi = np.searchsorted(codes, asked), np.searchsorted(codes, asked, "right")
    return Ranges(lo, hi, positions)


def bitmap(dead: set[int], rows: int) -> NDArray[np.uint8]:
    """Deleted rows as a bitmap; none at all is the empty one."""
    if not dead:
        return np.empty(0, np.uint8)
    bits = [row in dead for row in range(rows)]
    return np.packbits(np.array(bits, np.uint8), bitorder="little")


def some(data: st.DataObject, rows: int) -> set[int]:
    return data.draw(st.sets(st.sampled_from(range(rows)))) if rows else set()


def has_null(row: tuple[int | None, ...]) -> bool:
    return None in row


@given(st.lists(st.integers(0, 3) | st.integers(0, WIDE - 1)))
@settings(deadline=None)
def test_sort(values: list[int]) -> None:
    codes, positions = index.sort(np.array(values, np.uint64))
    signed = [value - WIDE if value >= WIDE // 2 else value for value in values]
    assert codes.tolist() == sorted(signed)
    assert positions.tolist() == sorted(range(len(values)), key=lambda at: signed[at])


@pytest.mark.parametrize("values", [3, 500, 4_000, 1 << 62])
def test_sort_is_stable_however_many_codes_are_equal(values: int) -> None:
    codes = np.random.default_rng(values).integers(-values, values, 6_000)
    ordered, positions = index.sort(codes.view(np.uint64))
    assert np.array_equal(positions, np.argsort(codes, kind="stable"))
    assert np.array_equal(ordered, np.sort(codes))


@given(st.lists(st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 3))))
@settings(deadline=None)
def test_repeated_codes(parts: list[list[int]]) -> None:
    codes = [np.array(sorted(part), np.int64) for part in parts]
    every = [code for part in parts for code in part]
    for part, flags in zip(codes, index.repeated(codes), strict=True):
        assert all(flag or every.count(code) == 1 for code, flag in zip(part, flags, strict=True))


def test_few_codes_are_taken_for_repeated_ones() -> None:
    parts = [np.sort(np.random.default_rng(k).integers(-(1 << 62), 1 << 62, 5_000)) for k in (1, 2)]
    assert sum(flags.sum() for flags in index.repeated(parts)) < 1_500


@given(st.sets(st.integers(0, 40)), st.integers(1, 41))
@settings(deadline=None)
def test_is_dead(dead: set[int], rows: int) -> None:
    dead = {row for row in dead if row < rows}
    bits = bitmap(dead, rows)
    assert {row for row in range(rows) if index.is_dead(bits, row)} == dead


@quick
@given(tables(), st.data())
def test_probe(table: Table, data: st.DataObject) -> None:
    """Exactly the pairs of a batch row and an earlier living row that violate a candidate."""
    cells, widths, nulls_equal = table
    columns = len(widths)
    cut = data.draw(st.integers(0, len(cells)))
    held, arrived = cells[:cut], cells[cut:]
    dead = some(data, cut)
    column = data.draw(st.sampled_from(sorted({0, columns - 1})))
    rest = data.draw(st.lists(st.sets(st.sampled_from(sorted({0, 1 % columns, columns - 1})))))
    sets = [1 << column | sum(1 << c for c in each) for each in rest] or [1 << column]
    filters = sorted({c for k in sets for c in range(columns) if k >> c & 1 and c != column})
    if 1 << column in sets:
        filters = []
    shape = evidence.shape(widths, nulls_equal)
    words, batch = block(held, widths), block(arrived, widths)
    base, ids = 5 << 32, (6 << 32) + np.arange(len(arrived))
    found = evidence.findings(shape.full.size)
    at = int(shape.first[column])
    index.probe(
        NumberedRows(batch, ids),
        look_up(words, batch, at),
        SegmentRows(words, base, bitmap(dead, cut)),
        column,
        np.array(filters, np.int64),
        shape,
        candidates(sets, columns),
        found,
    )
    expected: dict[int, set[tuple[int, int]]] = {}
    for j, new in enumerate(arrived):
        for i, old in enumerate(held):
            mask = agree(old, new, nulls_equal)
            violates = any(k & ~mask == 0 for k in sets)
            if i not in dead and violates and mask != (1 << columns) - 1:
                expected.setdefault(mask, set()).add((base + i, (6 << 32) + j))
    kept, complete = harvested(found, columns)
    assert complete
    assert set(kept) == set(expected)
    for mask, pairs in kept.items():
        assert set(pairs) <= expected[mask]
        assert len(set(pairs)) == min(len(expected[mask]), evidence.WITNESSES)


@quick
@given(tables(wide=False), st.data())
def test_probe_of_groups(table: Table, data: st.DataObject) -> None:
    """One row of a group that has one value on the right tells whether a new row breaks that."""
    cells, widths, nulls_equal = table
    columns = len(widths)
    cut = data.draw(st.integers(0, len(cells)))
    held, arrived = cells[:cut], cells[cut:]
    dead = some(data, cut)
    lhs = data.draw(st.integers(0, (1 << columns) - 1))
    full = (1 << columns) - 1
    living = [row for i, row in enumerate(held) if i not in dead]
    holds = set()
    for rhs in [KEY, *(c for c in range(columns) if not lhs >> c & 1)]:
        pairs = combinations(living, 2)
        if not any(refutes(agree(*pair, nulls_equal), lhs, {rhs}, full) for pair in pairs):
            holds.add(rhs)
    shape = evidence.shape(widths, nulls_equal)
    wanted = candidates([lhs], columns, [holds])
    partial = np.zeros_like(wanted.rhs)
    words, batch = block(held, widths), block(arrived, widths)
    base, ids = 5 << 32, (6 << 32) + np.arange(len(arrived))
    found = evidence.findings(shape.full.size)
    lo, hi = np.zeros(len(arrived), np.int64), np.full(len(arrived), cut)
    positions = data.draw(st.permutations(range(cut)))
    index.probe_group(
        NumberedRows(batch, ids),
        Ranges(lo, hi, np.array(positions, np.int32)),
        SegmentRows(words, base, bitmap(dead, cut)),
        in_memory(),
        in_memory(),
        shape,
        wanted,
        0,
        data.draw(st.sampled_from([1, 100])),
        found,
        partial,
    )
    kept, complete = harvested(found, columns)
    broken = {
        rhs
        for old in living
        for new in arrived
        for rhs in refutes(agree(old, new, nulls_equal), lhs, holds, full)
    }
    assert complete
    assert told(partial[0], columns) == broken
    assert {rhs for mask in kept for rhs in refutes(mask, lhs, holds, full)} == broken
    for mask, shown in kept.items():
        for one, two in shown:
            assert one - base not in dead
            assert agree(held[one - base], arrived[two - (6 << 32)], nulls_equal) == mask


@quick
@given(tables())
def test_probe_takes_pairs_within_a_batch_once(table: Table) -> None:
    cells, widths, nulls_equal = table
    shape = evidence.shape(widths, nulls_equal)
    rows = block(cells, widths)
    found = evidence.findings(shape.full.size)
    ids = (3 << 32) + np.arange(len(cells))
    index.probe(
        NumberedRows(rows, ids),
        look_up(rows, rows, 0),
        SegmentRows(rows, 3 << 32, np.empty(0, np.uint8)),
        0,
        np.empty(0, np.int64),
        shape,
        candidates([1], len(widths)),
        found,
    )
    expected: dict[int, int] = {}
    for j in range(len(cells)):
        for i in range(j):
            mask = agree(cells[i], cells[j], nulls_equal)
            if mask & 1 and mask != (1 << len(widths)) - 1:
                expected[mask] = expected.get(mask, 0) + 1
    kept, _ = harvested(found, len(widths))
    counted = {mask: min(count, evidence.WITNESSES) for mask, count in expected.items()}
    assert {mask: len(pairs) for mask, pairs in kept.items()} == counted


@quick
@given(tables(), st.data())
def test_match(table: Table, data: st.DataObject) -> None:
    """Living rows that equal a wanted one in some columns; nulls equal nulls here, always."""
    cells, widths, nulls_equal = table
    picks = data.draw(st.lists(st.sampled_from(range(len(cells))), unique=True)) if cells else []
    columns = sorted(data.draw(st.sets(st.sampled_from(range(len(widths))), min_size=1)))
    dead = some(data, len(cells))
    need = np.array([data.draw(st.integers(0, 3)) for _ in picks], np.int64)
    shape = evidence.shape(widths, nulls_equal)
    words = block(cells, widths)
    wanted = block([cells[i] for i in picks], widths)
    counts = np.zeros(len(picks), np.int64)
    out = np.full(int(need.sum()), -9, np.int64)
    at = int(shape.first[columns[0]])
    kept = index.match(
        wanted,
        need,
        look_up(words, wanted, at),
        SegmentRows(words, 0, bitmap(dead, len(cells))),
        np.array(columns, np.int64),
        shape,
        counts,
        out,
    )
    matches = [
        [
            i
            for i, row in enumerate(cells)
            if i not in dead and all(row[c] == cells[pick][c] for c in columns)
        ]
        for pick in picks
    ]
    assert counts.tolist() == [len(each) for each in matches]
    sizes = np.minimum(need, counts)
    assert kept == sizes.sum()
    for mine, each in zip(np.split(out[:kept], np.cumsum(sizes)[:-1]), matches, strict=False):
        assert set(mine.tolist()) <= set(each)
        assert len(set(mine.tolist())) == len(mine)


@quick
@given(tables(), st.data())
def test_duplicates(table: Table, data: st.DataObject) -> None:
    cells, widths, nulls_equal = table
    dead = some(data, len(cells))
    shape = evidence.shape(widths, nulls_equal)
    rows = block(cells, widths)
    ids = (3 << 32) + np.arange(len(cells))
    out = np.full(len(cells), -7, np.int64)
    index.duplicates(
        NumberedRows(rows, ids),
        look_up(rows, rows, 0),
        SegmentRows(rows, 3 << 32, bitmap(dead, len(cells))),
        np.arange(len(widths)),
        shape,
        out,
    )
    for i, row in enumerate(cells):
        earlier = {(3 << 32) + j for j in range(i) if cells[j] == row and j not in dead}
        if has_null(row) and not nulls_equal:
            earlier = set()
        assert out[i] in earlier if earlier else out[i] == -1


@given(
    st.lists(st.integers(0, 9) | st.integers(0, WIDE - 1)),
    st.lists(st.integers(0, 9) | st.integers(0, WIDE - 1)),
)
@settings(deadline=None)
def test_members(codes: list[int], wanted: list[int]) -> None:
    found = index.members(np.array(codes, np.uint64), np.array(wanted, np.uint64))
    assert found.tolist() == [i for i, code in enumerate(codes) if code in set(wanted)]


@given(st.lists(st.integers(0, WIDE - 1)), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_fingerprint_knows_content_and_not_order(hashes: list[int], random: object) -> None:
    one = index.fingerprint(np.array(hashes, np.uint64))
    shuffled = hashes.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert np.array_equal(one, index.fingerprint(np.array(shuffled, np.uint64)))
    for other in ([*hashes, 1], [*hashes, *hashes[:1], *hashes[:1], *hashes[:1]]):
        if len(other) != len(hashes):
            assert not np.array_equal(one, index.fingerprint(np.array(other, np.uint64)))


def sketched(
    words: NDArray[np.uint64],
    column: int,
    shape: evidence.RowShape,
    spread: NDArray[np.int64] | None = None,
) -> NDArray[np.uint64]:
    out = np.zeros(index.SKETCH, np.uint64)
    spread = np.zeros(index.SPREAD, np.int64) if spread is None else spread
    size = 0
    for part in np.array_split(words, 3):
        size = index.sketch(np.ascontiguousarray(part.T), column, shape, out, size, spread)
    assert (np.diff(out[:size].astype(object)) > 0).all()
    return out[:size]


@pytest.mark.parametrize("values", [1, 2, 100, 511])
def test_few_values_are_counted_exactly(values: int) -> None:
    cells: Cells = [(row % values or None, 1) for row in range(2 * values)]
    shape = evidence.shape([2, 1], True)
    words = block(cells, [2, 1])
    assert index.distinct([sketched(words, 0, shape)]) == values
    assert index.distinct([sketched(words, 1, shape)]) == 1


@pytest.mark.parametrize("values", [600, 3_000, 20_000])
@pytest.mark.parametrize("column", [0, 1])
def test_many_values_are_estimated(values: int, column: int) -> None:
    shape = evidence.shape([1, 2], True)
    words = np.zeros((values, 4), np.uint64)
    words[:, shape.first[column]] = np.arange(values)
    halves = [words[: 2 * values // 3], words[values // 3 :]]
    estimate = index.distinct([sketched(half, column, shape) for half in halves])
    assert 0.8 * values < estimate < 1.2 * values


def test_nothing_has_no_values() -> None:
    assert index.distinct([]) == 0


def test_a_null_has_a_code_of_its_own() -> None:
    """Also beside values that differ from it in one bit."""
    cells: Cells = [(0, None), (0, 0), (0, 1), (0, 2), (1, None), (1, 0), (None, 0), (None, None)]
    shape = evidence.shape([1, 1], True)
    for seed in (0, 1):
        out = np.empty(len(cells), np.uint64)
        columns = np.array([0, 1], np.int64)
        index.combine(block(cells, [1, 1]), columns, shape, np.uint64(seed), out)
        assert len(set(out.tolist())) == len(cells)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60))
@settings(deadline=None)
def test_what_two_look_ups_share(cells: list[tuple[int, int]]) -> None:
    wanted = np.arange(5, dtype=np.int64)
    looks = []
    for column in range(2):
        codes, positions = index.sort(np.array([row[column] for row in cells], np.uint64))
        assert positions.tolist() == sorted(
            range(len(cells)),
            key=lambda at, c=column: (cells[at][c], at),  # type: ignore[misc]
        )
        lo, hi = np.searchsorted(codes, wanted, "left"), np.searchsorted(codes, wanted, "right")
        looks.append(Ranges(lo, hi, positions))
    looks[1].hi[::2] = looks[1].lo[::2]  # an empty look-up shares nothing
    lo, hi, positions = index.shared(*looks)
    for value in range(5):
        here = [at for at, row in enumerate(cells) if row == (value, value)]
        assert positions[lo[value] : hi[value]].tolist() == (here if value % 2 else [])


@pytest.mark.parametrize("hot", [0.0, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("values", [3, 300, 20_000])
def test_pairs_that_agree_are_estimated(values: int, hot: float) -> None:
    """However many values there are, what most rows have counts."""
    random = np.random.default_rng(values)
    shape = evidence.shape([1, 1], True)
    words = np.zeros((20_000, 3), np.uint64)
    words[:, 1] = np.where(random.random(20_000) < hot, 0, random.integers(0, values, 20_000))
    counts = np.unique(words[:, 1], return_counts=True)[1].astype(float)
    expected = (counts * (counts - 1)).sum() / (20_000 * 19_999.0)
    spreads = [np.zeros(index.SPREAD, np.int64) for _ in range(2)]
    for half, spread in zip(np.array_split(words, 2), spreads, strict=True):
        sketched(half, 1, shape, spread)
    estimate = index.agreeing(spreads, 20_000)
    assert abs(estimate - expected) < 0.2 * expected + 1e-5
    assert index.agreeing([], 0) == index.agreeing(spreads, 1) == 0
