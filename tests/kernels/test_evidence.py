"""Evidence kernels against plain Python: agree-sets, findings, neighbours and the search."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import evidence
from holdfast.tasks.evidence import _trie
from tests.kernels.blocks import (
    WIDE,
    Cells,
    agree,
    block,
    harvested,
    masks,
    tables,
    to_number,
    to_words,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

quick = settings(deadline=None, max_examples=60)


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
        found = evidence.contains(to_words(mask, 70), to_words(inside, 70))
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
    candidates = masks(wanted, columns)
    for number, mask in enumerate(seen):
        pair = (number + 100, number)
        evidence.record(to_words(mask, columns), *pair, candidates, to_words(full, columns), found)
    expected: dict[int, list[tuple[int, int]]] = {}
    for number, mask in enumerate(seen):
        if is_wanted(mask, wanted, full):
            expected.setdefault(mask, []).append((number, number + 100))
    kept, complete = harvested(found, columns)
    assert complete == (len(expected) <= capacity)
    assert len(kept) == min(len(expected), capacity)
    for mask, pairs in kept.items():
        assert pairs == expected[mask][: evidence.WITNESSES]


@quick
@given(tables(), st.integers(1, 3))
def test_neighbours(table: tuple[Cells, list[int], bool], reach: int) -> None:
    cells, widths, nulls_equal = table
    shape = evidence.shape(widths, nulls_equal)
    rows = block(cells, widths)
    found = evidence.findings(shape.full.size)
    ids = np.arange(len(cells)) + 1000
    evidence.neighbours(rows, ids, shape, reach, masks([0], len(widths)), found)
    kept, complete = harvested(found, len(widths))
    assert complete
    order = list(range(len(cells)))
    expected = set()
    for column in range(len(widths)):
        order.sort(key=lambda i: int(evidence.column_key(rows[i], column, shape)))
        for at, one in enumerate(order):
            for two in order[at + 1 : at + 1 + reach]:
                expected.add(agree(cells[one], cells[two], nulls_equal))
    assert set(kept) == expected - {(1 << len(widths)) - 1}
    for mask, pairs in kept.items():
        for one, two in pairs:
            assert one < two
            assert agree(cells[one - 1000], cells[two - 1000], nulls_equal) == mask


@given(st.lists(st.integers(0, 3) | st.integers(0, WIDE - 1), max_size=120), st.data())
@settings(deadline=None, max_examples=40)
def test_sort(keys: list[int], data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, len(keys)))
    hi = data.draw(st.integers(lo, len(keys)))
    sorted_ = np.array(keys, np.uint64)
    values = np.arange(len(keys))
    evidence._sort(sorted_, values, lo, hi)
    expected = keys[:lo] + sorted(keys[lo:hi]) + keys[hi:]
    assert sorted_.tolist() == expected
    assert [keys[i] for i in values.tolist()] == expected
    assert sorted(values.tolist()) == list(range(len(keys)))


def check_search(
    cells: Cells, widths: list[int], nulls_equal: bool, candidates: list[int], capacity: int
) -> None:
    """What a search must not miss, and must not make up."""
    columns = len(widths)
    shape = evidence.shape(widths, nulls_equal)
    found = evidence.findings(shape.full.size, capacity)
    partial = np.zeros(len(candidates), np.bool_)
    matrix = masks(candidates, columns)
    trie = _trie(matrix, tuple(reversed(range(columns))))
    ids = np.arange(len(cells)) + 7
    evidence.search(block(cells, widths), ids, shape, trie, matrix, found, partial)
    kept, complete = harvested(found, columns)
    full = (1 << columns) - 1
    shown: dict[int, set[tuple[int, int]]] = {}
    for (i, j), mask in all_masks(cells, nulls_equal).items():
        if is_wanted(mask, candidates, full):
            shown.setdefault(mask, set()).add((i + 7, j + 7))
    assert set(kept) <= set(shown)
    for mask, pairs in kept.items():
        assert set(pairs) <= shown[mask]
    for k, candidate in enumerate(candidates):
        against = {mask for mask in shown if candidate & ~mask == 0}
        if partial[k] or not complete:
            # A search that did not see all must have learned something, or it never ends.
            assert against & set(kept) or (not partial[k] and len(kept) == capacity)
        else:
            assert against <= set(kept)


@quick
@given(tables(wide=False), st.data())
def test_search(table: tuple[Cells, list[int], bool], data: st.DataObject) -> None:
    cells, widths, nulls_equal = table
    sets = st.lists(st.integers(1, (1 << len(widths)) - 1), max_size=4)
    candidates = antichain(data.draw(sets))
    check_search(cells, widths, nulls_equal, candidates, data.draw(st.sampled_from([1, 2, 1024])))


@pytest.mark.parametrize("seed", range(30))
def test_search_of_large_groups(seed: int) -> None:
    random = np.random.default_rng(seed)
    columns = int(random.integers(2, 6))
    widths = random.integers(1, 3, columns).tolist()
    count = int(random.integers(30, 300))
    values = [None, 1, 0x9E3779B97F4A7C15, WIDE - 1, 0][: int(random.integers(2, 6))]
    picks = random.integers(0, random.integers(1, len(values) + 1, columns), (count, columns))
    cells: Cells = [tuple(values[p] for p in row) for row in picks.tolist()]
    cells += [cells[0]] * int(random.integers(0, 40))
    for _ in range(4):
        sets = random.integers(1, 1 << columns, int(random.integers(1, 5))).tolist()
        check_search(cells, widths, bool(random.integers(2)), antichain(sets), 1 << 10)


def test_search_of_a_large_group_of_copies_is_not_partial() -> None:
    """A candidate that only copies agree on holds, and has to be left alone as such."""
    shape = evidence.shape([1, 1], True)
    found = evidence.findings(1)
    partial = np.zeros(1, np.bool_)
    cells: Cells = [(1, 1)] * 100 + [(2, 1)]
    trie = _trie(masks([1], 2), (0, 1))
    evidence.search(
        block(cells, [1, 1]), np.arange(101), shape, trie, masks([1], 2), found, partial
    )
    assert harvested(found, 2) == ({}, True)
    assert not partial.any()


def test_trie_shares_beginnings() -> None:
    trie = _trie(masks([0b011, 0b101, 0b110], 3), (0, 1, 2))
    assert trie.column.tolist() == [-1, 0, 1, 2, 1, 2]
    assert sorted(trie.candidate[trie.candidate >= 0].tolist()) == [0, 1, 2]
