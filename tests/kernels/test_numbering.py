"""Numbers of rows, groups, and what groups explain, against dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import evidence
from holdfast.kernels.explained import FRACTION, explained
from holdfast.kernels.numbering import (
    Numbers,
    cell_hashes,
    grouped,
    numbered,
    numbered_pairs,
    tallied,
)
from holdfast.tasks.encode import encode, layout
from tests.strategies import examples

quick = settings(deadline=None, max_examples=examples(100))

CODES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=60)


def by_first(values: Sequence[object]) -> list[int]:
    """Numbers in the order in which the first of each value comes."""
    known: dict[object, int] = {}
    return [known.setdefault(value, len(known)) for value in values]


@given(CODES, st.integers(0, (1 << 64) - 1))
@quick
def test_rows_are_numbered_by_two_hashes(codes: list[tuple[int, int]], offset: int) -> None:
    words = (np.array(codes, np.uint64).reshape(-1, 2) + np.uint64(offset)).T
    numbers = numbered(*np.ascontiguousarray(words))
    assert numbers.of_rows.tolist() == by_first(codes)
    assert numbers.count == len({*codes})


@given(CODES, st.sampled_from([1, 1000]))
@quick
def test_rows_are_numbered_by_two_numbers(codes: list[tuple[int, int]], spread: int) -> None:
    """With few numbers each pair has a place of its own; with many there are slots."""
    one, two = np.array(codes, np.int32).reshape(-1, 2).T
    numbers = numbered_pairs(Numbers(one * spread, 6 * spread), Numbers(two * spread, 4 * spread))
    assert numbers.of_rows.tolist() == by_first(codes)
    assert numbers.count == len({*codes})


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 9)), max_size=60))
@quick
def test_groups_explain_what_the_definition_says(rows: list[tuple[int, int, int]]) -> None:
    left = np.array([x for x, _, _ in rows], np.uint64)
    right = np.array([a for _, a, _ in rows], np.uint64)
    weights = np.array([w for _, _, w in rows], np.int64)
    numbers = numbered(left, left)
    groups = grouped(numbers, weights)
    assert sorted(groups.order.tolist()) == list(range(len(rows)))
    assert (np.diff(numbers.of_rows[groups.order]) >= 0).all()
    sizes, pairs = Counter[int](), Counter[tuple[int, int]]()
    for x, a, weight in rows:
        sizes[x] += weight
        pairs[x, a] += weight
    assert groups.sizes.tolist() == [*sizes.values()]
    shares = {x: Fraction(0) for x in sizes}
    for (x, _), count in pairs.items():
        shares[x] += Fraction(count * count, sizes[x])
    unexplained = sum(sizes.values()) - sum(shares.values())
    result = explained(groups, numbered(right, right), weights, float(unexplained) + 0.5)
    assert result is not None
    whole, fraction, majority = result
    units = [share * (1 << FRACTION) // 1 for share in shares.values()]
    assert whole * (1 << FRACTION) + fraction == sum(units)
    largest = {x: max(count for (y, _), count in pairs.items() if y == x) for x in sizes}
    assert majority == sum(largest.values())
    if unexplained > 1:
        assert explained(groups, numbered(right, right), weights, float(unexplained) - 0.5) is None


@given(CODES)
@quick
def test_equal_rows_are_counted_together(codes: list[tuple[int, int]]) -> None:
    entries = tallied(np.array(codes, np.uint64).reshape(-1, 2))
    counted = Counter[tuple[int, int]]()
    for one, two, count in entries.tolist():
        counted[one, two] += count
    assert counted == Counter(codes)
    assert len(entries) <= len(codes)


def test_what_does_not_fit_comes_out_more_than_once() -> None:
    numbers = np.random.default_rng(1).integers(0, 100_000, 200_000).astype(np.uint64)
    entries = tallied(numbers[:, None])
    counted = np.bincount(entries[:, 0].astype(np.int64), entries[:, 1].astype(np.float64))
    assert (counted == np.bincount(numbers.astype(np.int64))).all()
    assert len(entries) > len(np.unique(numbers))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0, 1, 0x9E3779B97F4A7C15 - (1 << 64)]),
            st.sampled_from([None, "", "a", "b"]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
@quick
def test_hashes_of_cells_are_equal_where_cells_are(
    rows: list[tuple[int | None, str | None]], nulls_equal: bool
) -> None:
    batch = pa.record_batch(
        [pa.array([a for a, _ in rows], pa.int64()), pa.array([b for _, b in rows], pa.string())],
        names=["c0", "c1"],
    )
    words = np.ascontiguousarray(encode(batch, layout(batch.schema)).view(np.uint64).T)
    shape = evidence.shape(list(layout(batch.schema).widths), nulls_equal)
    hashes = np.empty((2, 2, len(rows)), np.uint64)
    ids = np.arange(len(rows)) + 1_000
    cell_hashes(words, np.arange(len(rows)), ids, np.array([0, 1]), shape, hashes)
    cells = [
        (column, row[column] if row[column] is not None or nulls_equal else ("null", number))
        for column in range(2)
        for number, row in enumerate(rows)
    ]
    for seed in range(2):
        assert by_first(hashes[seed].ravel().tolist()) == by_first(cells)
    assert not {*hashes[0].ravel().tolist()} & {*hashes[1].ravel().tolist()}
