"""Partners of drawn rows, against a search of all rows for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels.numbering import numbered
from holdfast.kernels.partners import (
    Wanted,
    add_partners,
    add_rings,
    bits_of,
    halved,
    marked,
    merge,
    offer,
    offers,
    paired_off,
)
from tests.strategies import examples

COLUMNS = 3


def hashes(rows: Sequence[tuple[int, ...]]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """A hash for each cell ``(columns, rows)``, other ones in every column."""
    table = np.random.default_rng(3).integers(0, 1 << 63, (COLUMNS, 2_000)).astype(np.uint64)
    cells = np.array(rows, np.int64).reshape(-1, COLUMNS).T
    return np.ascontiguousarray(np.stack([own[c] for own, c in zip(table, cells, strict=True)]))


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 1)), min_size=1),
    st.sets(st.integers(0, 1), min_size=1),
    st.integers(1, 20),
    st.integers(0, 60),
)
@settings(deadline=None, max_examples=examples(100))
def test_partners_are_rows_of_the_group(
    rows: list[tuple[int, int, int]], columns: set[int], drawn: int, cut: int
) -> None:
    """Rows are offered by two tasks, which see those before and after a cut."""
    cells = hashes(rows)
    by_row = np.ascontiguousarray(cells.T)
    ids = np.arange(len(rows)) + 7
    drawn = min(drawn, len(rows))
    lhs = np.array(sorted(columns))
    codes = cells[lhs].sum(axis=0, dtype=np.uint64)
    rings, wanted = paired_off(codes[:drawn], ids[:drawn], COLUMNS)
    for block in (slice(0, cut), slice(cut, None)):
        _, seen = paired_off(codes[:drawn], ids[:drawn], COLUMNS)
        offered = np.ascontiguousarray(cells[:, block])
        every = np.arange(len(ids[block]), dtype=np.int32)
        offer(offered, by_row[block], ids[block], every, lhs, by_row[:drawn], seen)
        merge(offers(seen), wanted)

    groups = numbered(codes, codes).of_rows
    sizes = np.bincount(groups)
    together = np.bincount(groups[:drawn], minlength=len(sizes))
    alone = [row for row in range(drawn) if together[groups[row]] == 1]
    assert wanted.rows.tolist() == alone
    assert wanted.found[:, 3].tolist() == [sizes[groups[row]] - 1 for row in alone]
    _assert_one_is_in_the_group(wanted, rows, groups)

    differing = np.zeros(COLUMNS)
    others = [1 - 1 / sizes[groups[row]] for row in alone]
    assert add_partners(wanted, differing) == pytest.approx(sum(others))
    assert (differing <= sum(others) + 1e-9).all()
    in_rings, least = add_rings(rings, by_row[:drawn], differing)
    ringed = [row for row in range(drawn) if together[groups[row]] > 1]
    assert in_rings == len(ringed)
    assert least == pytest.approx(sum(1 - 1 / together[groups[row]] for row in ringed))
    assert (differing[lhs] == 0).all()


def _assert_one_is_in_the_group(
    wanted: Wanted,
    rows: list[tuple[int, int, int]],
    groups: np.ndarray[tuple[int], np.dtype[np.int32]],
) -> None:
    """What a partner agrees in is what some other row of the group does."""
    for at, row in enumerate(wanted.rows.tolist()):
        members = [k for k in np.flatnonzero(groups == groups[row]).tolist() if k != row]
        if not members:
            continue
        agreeing = [int(wanted.agreeing[at, 0] >> np.uint64(c) & np.uint64(1)) for c in range(3)]
        assert agreeing in [
            [int(one == other) for one, other in zip(rows[row], rows[k], strict=True)]
            for k in members
        ]


def test_rows_are_halved_again_and_again() -> None:
    ids = np.arange(100_000) * 7
    rows = np.arange(len(ids), dtype=np.int32)
    for times in range(1, 6):
        fewer = halved(ids, rows, times)
        assert np.isin(fewer, rows).all()
        assert len(fewer) == pytest.approx(len(ids) / 2**times, rel=0.1)
        rows = fewer


@given(st.lists(st.integers(0, 40)), st.sets(st.integers(0, 40), min_size=1))
def test_no_row_with_a_wanted_code_is_left_out(codes: list[int], wanted: set[int]) -> None:
    bits = bits_of(np.array(sorted(wanted), np.uint64))
    every = np.arange(len(codes), dtype=np.int32)
    found = marked(np.array(codes, np.uint64), every, bits).tolist()
    assert {row for row, code in enumerate(codes) if code in wanted} <= {*found}
    assert found == sorted({*found})


def test_each_other_row_of_a_group_is_a_partner_as_often() -> None:
    """Row 0 is drawn; of the others that agree with it every one is chosen in its turn."""
    count = 40
    chosen = np.zeros(count, np.int64)
    for number in range(2_000):
        rows = [(number, k, 0) for k in range(count)]
        cells = hashes(rows)
        by_row = np.ascontiguousarray(cells.T)
        ids = np.arange(count) + number * count
        lhs = np.array([0])
        _, wanted = paired_off(cells[0, :1], ids[:1], COLUMNS)
        # The partner agrees in the second column if it is the one that is asked about.
        asked = 1 + number % (count - 1)
        drawn = by_row[asked : asked + 1]
        offer(cells, by_row, ids, np.arange(count, dtype=np.int32), lhs, drawn, wanted)
        chosen[asked] += int(wanted.agreeing[0, 0] >> np.uint64(1) & np.uint64(1))
    assert chosen.sum() == pytest.approx(2_000 / (count - 1), rel=0.5)
