"""Functional dependencies and their errors, against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cover.approximate import Atoms, allowed, within
from holdfast.cover.counts import EvidenceCounts
from holdfast.cover.dependencies import KEY, Covers
from holdfast.kernels import bitsets
from holdfast.kernels.pairs import agree_sets
from holdfast.model.limits import Limits
from tests import oracle
from tests.strategies import Rows, examples, rows_of, tables


def counted(rows: Rows, columns: int) -> EvidenceCounts:
    """Agree-sets through the kernel, nulls equal."""
    codes = np.array(
        [[-1 if cell is None else cell for cell in column] for column in zip(*rows, strict=True)],
        np.int32,
    ).reshape(columns, len(rows))
    masks, counts = agree_sets(codes, np.arange(len(rows)), True)
    return EvidenceCounts.none(columns).changed([masks], [counts])[0]


@given(tables(max_rows=20, max_columns=6))
@settings(max_examples=examples(200), deadline=None)
def test_counts(table: tuple[int, Rows]) -> None:
    columns, rows = table
    sets = counted(rows, columns)
    found = dict(zip(bitsets.to_columns(sets.masks), sets.counts.tolist(), strict=True))
    assert found == oracle.counted_agree_sets(rows, columns)


def test_counts_of_wide_rows() -> None:
    generator = np.random.default_rng(5)
    for columns in (16, 17, 64, 65, 130):
        rows = [tuple(row) for row in generator.integers(0, 3, (40, columns)).tolist()]
        sets = counted(rows, columns)
        found = dict(zip(bitsets.to_columns(sets.masks), sets.counts.tolist(), strict=True))
        assert found == oracle.counted_agree_sets(rows, columns)


@given(st.data(), tables(max_rows=10, max_columns=5))
@settings(max_examples=examples(150), deadline=None)
def test_dependencies_kept(data: st.DataObject, table: tuple[int, Rows]) -> None:
    columns, rows = table
    most = data.draw(st.sampled_from([None, 1, 2]))
    sets = counted(rows, columns)
    kept = Covers.build(columns, [KEY, *range(columns)], sets.masks, Limits.both(most))
    for _ in range(3):
        rows = [row for row in rows if data.draw(st.booleans())] + data.draw(rows_of(columns, 4))
        now = counted(rows, columns)
        sets, appeared, vanished = sets.changed([sets.masks, now.masks], [-sets.counts, now.counts])
        kept = kept.changed(appeared, vanished, sets.masks)
        left, right = kept.dependencies
        found = set(zip(bitsets.to_columns(left), right.tolist(), strict=True))
        assert found == oracle.dependencies(rows, columns, "equal", most)
        shown = oracle.agree_sets(rows, columns, "equal")
        keys = oracle.minimal_sets(columns, oracle.maximal_sets(shown), most)
        assert bitsets.to_columns(kept.keys.minimal) == keys
        again = Covers.restored(columns, *kept.parts, kept.minimal, Limits.both(most))
        for rhs, cover in kept.by_rhs.items():
            assert np.array_equal(cover.evidence, again.by_rhs[rhs].evidence)
        apart = kept.only(kept.columns).joined(kept.only([KEY]))
        assert all(map(np.array_equal, apart.parts, kept.parts))
        order = bitsets.canonical_order(kept.evidence)
        assert np.array_equal(order, np.arange(len(order)))


@given(
    tables(max_rows=12, max_columns=5),
    st.sampled_from([0.0, 0.01, 0.1, 0.25, 0.5, 1.0]),
    st.sampled_from([None, 2]),
)
@settings(max_examples=examples(200), deadline=None)
def test_approximate(table: tuple[int, Rows], bound: float, longest: int | None) -> None:
    columns, rows = table
    sets = counted(rows, columns)
    most = allowed(sets.pairs, bound)
    for right in [*range(columns), None]:
        found = within(sets, Atoms(columns, right), most, longest)
        told = dict(zip(bitsets.to_columns(found.masks), found.violations.tolist(), strict=True))
        assert told == oracle.approximate(rows, columns, right, bound, longest)


def test_allowed_counts_decimal_shares_exactly() -> None:
    for pairs in range(1, 300):
        for violations in range(pairs + 1):
            assert allowed(pairs, violations / pairs) >= violations
            assert allowed(pairs, violations / pairs) / pairs <= violations / pairs + 1e-12


def test_satisfying() -> None:
    rows: Rows = [(1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 2, 2)]
    sets = counted(rows, 3)
    for size in range(4):
        for left in combinations(range(3), size):
            pairs = list(combinations(rows, 2))
            same = [(a, b) for a, b in pairs if all(a[c] == b[c] for c in left)]
            assert sets.satisfying(left) == len(same)
