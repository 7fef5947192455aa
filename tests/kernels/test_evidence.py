"""Evidence kernels against plain Python: agree-sets, findings, neighbours and the search."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import bitsets, evidence, search
from holdfast.kernels.evidence import NumberedRows
from holdfast.kernels.index import SegmentRows
from holdfast.tasks.evidence import _trie
from tests.kernels.blocks import (
    KEY,
    WIDE,
    Cells,
    RhsOfEach,
    agree,
    block,
    candidates,
    harvested,
    masks,
    refutes,
    tables,
    to_number,
    to_words,
    told,
)
from tests.strategies import examples

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

quick = settings(deadline=None, max_examples=examples(60))


def is_wanted(mask: int, candidates: list[int], full: int) -> bool:
    return mask != full and any(candidate & ~mask == 0 for candidate in candidates)


def all_masks(cells: Cells, nulls_equal: bool) -> dict[tuple[int, int], int]:
    pairs = combinations(range(len(cells)), 2)
    return {(i, j): agree(cells[i], cells[j], nulls_equal) for i, j in pairs}


def antichain(sets: list[int]) -> list[int]:
    distinct = set(sets)
    return [
        one for one in sorted(distinct) if not any(o != one and o & ~one == 0 for o in distinct)
    ]


@quick
@given(tables())
def test_pair_mask(table: tuple[Cells, list[int], bool]) -> None:
    cells, widths, nulls_equal = table
    shape = evidence.shape(widths, nulls_equal)
    rows = block(cells, widths)
    out = np.full(shape.full.size, 12345, np.uint64)
    for (i, j), expected in all_masks(cells, nulls_equal).items():
        evidence.pair_mask(rows[i], rows[j], shape, out)
        assert to_number(out) == expected
        evidence.pair_mask(rows[j], rows[i], shape, out)
        assert to_number(out) == expected


@given(st.integers(0, 2**70 - 1), st.integers(0, 2**70 - 1))
@settings(deadline=None)
def test_contains(mask: int, subset: int) -> None:
    for inside in (subset, subset & mask):
        found = bitsets.contains(to_words(mask, 70), to_words(inside, 70))
        assert found == (inside & ~mask == 0)


@quick
@given(
    seen=st.lists(st.integers(0, 31).map(lambda m: m | m << 61), max_size=60),
    wanted=st.lists(st.integers(0, 31).map(lambda m: m | m << 61), max_size=3),
    capacity=st.sampled_from([1, 2, 4, 64]),
)
def test_findings(seen: list[int], wanted: list[int], capacity: int) -> None:
    columns = 66
    full = 31 | 31 << 61
    found = evidence.findings(2, capacity)
    keys = candidates(wanted, columns)
    for number, mask in enumerate(seen):
        pair = (number + 100, number)
        evidence.record(to_words(mask, columns), *pair, keys, to_words(full, columns), found)
    expected: dict[int, list[tuple[int, int]]] = {}
    for number, mask in enumerate(seen):
        if is_wanted(mask, wanted, full):
            expected.setdefault(mask, []).append((number, number + 100))
    kept, complete = harvested(found, columns)
    assert complete == (len(expected) <= capacity)
    assert len(kept) == min(len(expected), capacity)
    for mask, pairs in kept.items():
        assert pairs == expected[mask][: evidence.WITNESSES]


def column_keys(rows: Any, shape: evidence.RowShape, column: int, nulls: bool) -> dict[int, int]:
    """The keys of all rows that have one."""
    taken, keys = np.arange(len(rows)), np.empty(len(rows), np.int64)
    count = evidence.column_keys(rows, taken, column, shape, nulls, taken, keys)
    return dict(zip(taken[:count].tolist(), keys[:count].tolist(), strict=True))


@quick
@given(tables(), st.booleans())
def test_column_keys(table: tuple[Cells, list[int], bool], nulls: bool) -> None:
    cells, widths, nulls_equal = table
    shape = evidence.shape(widths, nulls_equal)
    for column, width in enumerate(widths):
        keys = column_keys(block(cells, widths), shape, column, nulls)
        assert list(keys) == [i for i, row in enumerate(cells) if nulls or row[column] is not None]
        for one, two in combinations(keys, 2):
            a, b = cells[one][column], cells[two][column]
            assert a != b or keys[one] == keys[two]
            if width == 1 and a is not None and b is not None:
                assert (keys[one] < keys[two]) == (signed(a) < signed(b))


def signed(word: int) -> int:
    return word - WIDE if word >= WIDE // 2 else word


@quick
@given(tables(), st.integers(1, 3))
def test_neighbours(table: tuple[Cells, list[int], bool], reach: int) -> None:
    cells, widths, nulls_equal = table
    shape = evidence.shape(widths, nulls_equal)
    rows = block(cells, widths)
    found = evidence.findings(shape.full.size)
    ids = np.arange(len(cells)) + 1000
    evidence.neighbours(NumberedRows(rows, ids), shape, reach, candidates([0], len(widths)), found)
    kept, complete = harvested(found, len(widths))
    assert complete
    order = list(range(len(cells)))
    expected = set()
    for column in range(len(widths)):
        keys = column_keys(rows, shape, column, True)
        order.sort(key=keys.__getitem__)
        for at, one in enumerate(order):
            for two in order[at + 1 : at + 1 + reach]:
                expected.add(agree(cells[one], cells[two], nulls_equal))
    assert set(kept) == expected - {(1 << len(widths)) - 1}
    for mask, pairs in kept.items():
        for one, two in pairs:
            assert one < two
            assert agree(cells[one - 1000], cells[two - 1000], nulls_equal) == mask


@given(st.lists(st.integers(0, 3) | st.integers(-WIDE // 2, WIDE // 2 - 1), max_size=120))
@settings(deadline=None, max_examples=examples(40))
def test_gather(keys: list[int]) -> None:
    n = len(keys)
    one, two, three = (np.empty(n, np.int64) for _ in range(3))
    room = search._Room(np.empty(4 * n + 16, np.int32), one, two, np.empty(n, np.int32), three)
    gathered, values = np.array(keys, np.int64), np.arange(n)
    count = search._gather(gathered, values, room)
    assert [keys[i] for i in values[:count].tolist()] == gathered[:count].tolist()
    shared = [i for i in range(n) if keys.count(keys[i]) > 1]
    if keys == sorted(keys):
        assert values[:count].tolist() == [*range(n)]
    else:
        assert sorted(values[:count].tolist()) == shared
    fresh = [i for i in range(count) if i == 0 or gathered[i] != gathered[i - 1]]
    assert len({keys[i] for i in values[:count].tolist()}) == len(fresh)


def check_found(
    cells: Cells,
    nulls_equal: bool,
    lhs: list[int],
    rhs: RhsOfEach,
    kept: dict[int, list[tuple[int, int]]],
    partial: Any,
    full_table: bool,
) -> None:
    """What was found refutes something; and against each rhs either everything was found,
    or at least something."""
    columns = len(cells[0]) if cells else 1
    full = (1 << columns) - 1
    shown: dict[int, set[tuple[int, int]]] = {}
    for (i, j), mask in all_masks(cells, nulls_equal).items():
        if any(refutes(mask, x, each, full) for x, each in zip(lhs, rhs, strict=True)):
            shown.setdefault(mask, set()).add((i + 7, j + 7))
    assert set(kept) <= set(shown)
    for mask, pairs in kept.items():
        assert set(pairs) <= shown[mask]
    for k, (x, each) in enumerate(zip(lhs, rhs, strict=True)):
        some = told(partial[k], columns)
        assert some <= each
        for one in each:
            against = {mask for mask in shown if one in refutes(mask, x, each, full)}
            if one in some or full_table:
                # A look that did not see all must have learned something, or it never ends.
                assert against & set(kept) or (one not in some and full_table)
            else:
                assert against <= set(kept)


def check_search(
    cells: Cells,
    widths: list[int],
    nulls_equal: bool,
    lhs: list[int],
    rhs: RhsOfEach,
    capacity: int,
) -> None:
    """What a search must not miss, and must not make up."""
    columns = len(widths)
    shape = evidence.shape(widths, nulls_equal)
    found = evidence.findings(shape.full.size, capacity)
    wanted = candidates(lhs, columns, rhs)
    partial = np.zeros_like(wanted.rhs)
    trie = _trie(wanted.lhs, tuple(reversed(range(columns))))
    ids = np.arange(len(cells)) + 7
    search.search(NumberedRows(block(cells, widths), ids), shape, trie, wanted, found, partial)
    kept, complete = harvested(found, columns)
    check_found(cells, nulls_equal, lhs, rhs, kept, partial, not complete)


def drawn_rhs(data: st.DataObject, lhs: list[int], columns: int) -> RhsOfEach:
    rhs = []
    for x in lhs:
        right = [c for c in range(columns) if not x >> c & 1]
        rhs.append(data.draw(st.sets(st.sampled_from([KEY, *right]), min_size=1)))
    return rhs


@quick
@given(tables(wide=False), st.data())
def test_search(table: tuple[Cells, list[int], bool], data: st.DataObject) -> None:
    cells, widths, nulls_equal = table
    sets = st.lists(st.integers(1, (1 << len(widths)) - 1), max_size=4, unique=True)
    lhs = data.draw(sets)
    rhs = drawn_rhs(data, lhs, len(widths))
    capacity = data.draw(st.sampled_from([1, 2, 1024]))
    check_search(cells, widths, nulls_equal, lhs, rhs, capacity)


def large_groups(seed: int) -> tuple[Cells, list[int], Any]:
    random = np.random.default_rng(seed)
    columns = int(random.integers(2, 6))
    widths = random.integers(1, 3, columns).tolist()
    count = int(random.integers(30, 300))
    values = [None, 1, 0x9E3779B97F4A7C15, WIDE - 1, 0][: int(random.integers(2, 6))]
    picks = random.integers(0, random.integers(1, len(values) + 1, columns), (count, columns))
    picks[:, columns - 1] = picks[:, 0]  # so that some dependency holds in large groups
    cells: Cells = [tuple(values[p] for p in row) for row in picks.tolist()]
    cells += [cells[0]] * int(random.integers(0, 40))
    return cells, widths, random


def random_candidates(random: Any, columns: int) -> tuple[list[int], RhsOfEach]:
    lhs = [*dict.fromkeys(random.integers(1, 1 << columns, int(random.integers(1, 5))).tolist())]
    rhs = []
    for x in lhs:
        right = [KEY, *(c for c in range(columns) if not x >> c & 1)]
        rhs.append({one for one in right if random.integers(2)} or {KEY})
    return lhs, rhs


@pytest.mark.parametrize("seed", range(examples(30)))
def test_search_of_large_groups(seed: int) -> None:
    cells, widths, random = large_groups(seed)
    for _ in range(4):
        lhs, rhs = random_candidates(random, len(widths))
        check_search(cells, widths, bool(random.integers(2)), lhs, rhs, 1 << 10)


@pytest.mark.parametrize("seed", range(examples(30)))
def test_representatives(seed: int) -> None:
    """One row for each combination is enough to tell whether a candidate holds."""
    cells, widths, random = large_groups(seed)
    columns = len(widths)
    nulls_equal = bool(random.integers(2))
    lhs, rhs = random_candidates(random, columns)
    lhs.append(0)
    rhs.append({KEY} | {c for c in range(columns) if random.integers(2)})
    wanted = candidates(lhs, columns, rhs)
    shape = evidence.shape(widths, nulls_equal)
    found = evidence.findings(shape.full.size)
    partial = np.zeros_like(wanted.rhs)
    room = int(random.choice([1, 4, 4096]))
    rows = block(cells, widths)
    kept = search.representatives(wanted, shape, room)
    dead = random.random(len(rows)) < random.choice([0, 0.2])
    bitmap = np.packbits(dead, bitorder="little") if dead.any() else np.empty(0, np.uint8)
    stored = SegmentRows(rows, 7, bitmap)
    living = np.flatnonzero(~dead)
    search.compare_with_representatives(stored, living, shape, wanted, kept, found, partial)
    shown, complete = harvested(found, columns)
    assert complete
    alive = {
        pair: mask
        for pair, mask in all_masks(cells, nulls_equal).items()
        if not dead[[*pair]].any()
    }
    for mask, witnesses in shown.items():
        assert all(alive[one - 7, two - 7] == mask for one, two in witnesses)
    full = (1 << columns) - 1
    for k, (x, each) in enumerate(zip(lhs, rhs, strict=True)):
        refuted = {one for mask in alive.values() for one in refutes(mask, x, each, full)}
        assert told(partial[k], columns) <= refuted
        if not kept.full[k]:
            assert told(partial[k], columns) == refuted
            against = {one for mask in shown for one in refutes(mask, x, each, full)}
            assert against == refuted


def test_search_of_a_large_group_of_copies_is_not_partial() -> None:
    """A candidate that only copies agree on holds, and has to be left alone as such."""
    shape = evidence.shape([1, 1], True)
    found = evidence.findings(1)
    wanted = candidates([1], 2)
    partial = np.zeros_like(wanted.rhs)
    cells: Cells = [*[(1, 1)] * 100, (2, 1)]
    trie = _trie(wanted.lhs, (0, 1))
    rows = NumberedRows(block(cells, [1, 1]), np.arange(101))
    search.search(rows, shape, trie, wanted, found, partial)
    assert harvested(found, 2) == ({}, True)
    assert not partial.any()


def test_trie_shares_beginnings() -> None:
    trie = _trie(masks([0b011, 0b101, 0b110], 3), (0, 1, 2))
    assert trie.column.tolist() == [-1, 0, 1, 2, 1, 2]
    assert sorted(trie.candidate[trie.candidate >= 0].tolist()) == [0, 1, 2]
