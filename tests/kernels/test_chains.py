"""Chains of rows: look-ups against brute force, and no more chains than the longest antichain asks.

The examples are those of IncDC (VLDB Journal 2023): 5 to 12, and the index of 13. Equal numbers may
follow each other in our chains, so that an index can have fewer than the paper's (example 9).
Examples 11 and 12 put a row into a chain of a skip list; here a batch has an index of its own, and
merged segments a new one (in files: tests/tasks/test_compaction.py). Example 14 is in
tests/evidence/test_batch_indexes.py, whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import chains
from holdfast.kernels.chains import HIGHEST, LOWEST, Chains, RangeQueries
from tests.strategies import examples

NUMBERS = st.one_of(st.integers(0, 6), st.sampled_from([LOWEST, HIGHEST, -1]))
ROWS = st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS), max_size=24)
RANGES = st.one_of(
    st.tuples(NUMBERS, st.just(HIGHEST)),
    st.tuples(st.just(LOWEST), NUMBERS),
    st.tuples(NUMBERS, NUMBERS),
)


def built(rows: list[tuple[int, int, int]]) -> Chains:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return chains.build(*(np.ascontiguousarray(each) for each in columns))


def looked_up(
    index: Chains, code: int, first: tuple[int, int], second: tuple[int, int]
) -> list[int]:
    """The rows of a group whose numbers lie in two ranges."""
    lo, hi = (np.searchsorted(index.codes, [code], side) for side in ("left", "right"))
    found = chains.fetch(index, RangeQueries(lo, hi, np.array([first]), np.array([second])))
    return sorted(
        int(row) for _, start, stop in found.tolist() for row in index.positions[start:stop]
    )


Row = tuple[int, int, int]


def rising(one: Row, two: Row) -> bool:
    return one[1] <= two[1] and one[2] <= two[2]


def strictly_rising(one: Row, two: Row) -> bool:
    """As the paper has it: no two rows of a chain have a number in common."""
    return one[1] < two[1] and one[2] < two[2]


def longest_antichain(rows: list[Row], rising: Callable[[Row, Row], bool] = rising) -> int:
    """The most rows of a group no two of which may be in one chain: by a matching, as Dilworth's
    theorem goes, so that it has nothing in common with the kernel."""
    most = 0
    for code in {row[0] for row in rows}:
        group = [row for row in rows if row[0] == code]
        # Of equal rows the earlier one comes first.
        after = [
            [
                j
                for j, two in enumerate(group)
                if i != j and rising(one, two) and (not rising(two, one) or i < j)
            ]
            for i, one in enumerate(group)
        ]
        before: dict[int, int] = {}

        def matched(i: int, seen: set[int], after: list[list[int]], before: dict[int, int]) -> bool:
            for j in after[i]:
                if j not in seen:
                    seen.add(j)
                    if j not in before or matched(before[j], seen, after, before):
                        before[j] = i
                        return True
            return False

        pairs = sum(matched(i, set(), after, before) for i in range(len(group)))
        most = max(most, len(group) - pairs)
    return most


@given(ROWS)
@settings(max_examples=examples(150), deadline=None)
def test_chains_are_as_few_as_the_longest_antichain_has_rows(
    rows: list[tuple[int, int, int]],
) -> None:
    index = built(rows)
    assert sorted(index.positions.tolist()) == list(range(len(rows)))
    assert index.rank == longest_antichain(rows)
    placed = [rows[position] for position in index.positions]
    assert [row[0] for row in placed] == index.codes.tolist() == sorted(row[0] for row in rows)
    start = 0
    while start < len(rows):
        end = int(index.ends[start])
        assert (index.ends[start:end] == end).all()
        assert all(rising(one, two) for one, two in combinations(placed[start:end], 2))
        assert len({row[0] for row in placed[start:end]}) == 1
        start = end


@given(ROWS, st.integers(0, 2), RANGES, RANGES)
@settings(max_examples=examples(150), deadline=None)
def test_look_ups_are_those_of_brute_force(
    rows: list[tuple[int, int, int]], code: int, first: tuple[int, int], second: tuple[int, int]
) -> None:
    expected = [
        i
        for i, (group, one, two) in enumerate(rows)
        if group == code and first[0] <= one <= first[1] and second[0] <= two <= second[1]
    ]
    assert looked_up(built(rows), code, first, second) == expected


@pytest.mark.parametrize("noise", [1, 5, 40])
def test_the_rank_follows_how_columns_go_together_not_the_rows(noise: int) -> None:
    dice = np.random.default_rng(3)
    ranks = []
    for rows in (2_000, 20_000):
        one = np.arange(rows)
        two = one + dice.integers(0, noise, rows)
        ranks.append(chains.build(np.zeros(rows, np.int64), one, two).rank)
    assert max(ranks) <= noise
    if noise > 1:
        assert min(ranks) > 1
    other_way = chains.build(np.zeros(2_000, np.int64), one[:2_000], -two[:2_000])
    assert other_way.rank > 1_000 // noise


# --- the examples of the paper --------------------------------------------------------------------

TAX: dict[str, list[Any]] = {  # t0 to t6 of table 1, t7 to t9 of table 2
    "Date": [
        20140410, 20140224, 20140413, 20130403, 20140329, 20130404, 20150324,
        20130322, 20140218, 20150213,
    ],
    "NUM": [1448, 1401, 1486, 1386, 1427, 1386, 1547, 1368, 1478, 1533],
    "SAL": [32000, 50000, 30000, 55000, 7500, 6500, 95000, 40000, 33000, 32000],
    "RATE": [1.24, 1.42, 1.21, 2.04, 1.21, 0.24, 2.85, 1.43, 2.05, 1.23],
    "TXA": [3000, 1500, 3400, 1300, 0, 900, 1100, 3300, 1400, 3200],
}  # fmt: skip
SAMPLE = {  # t0 to t5 of table 8, t6 of table 9
    "A": [7, 8, 30, 40, 15, 25, 3],
    "B": [5, 6, 8, 0, 7, 2, 22],
    "C": [7, 3, 9, 2, 17, 15, 20],
    "D": [9, 25, 11, 15, 22, 30, 10],
}


def above(number: int) -> tuple[int, int]:
    return number + 1, HIGHEST


def below(number: int) -> tuple[int, int]:
    return LOWEST, number - 1


def index_of(
    table: dict[str, list[int]], one: str, two: str, rows: int | Sequence[int], falling: bool
) -> Chains:
    """The index of the first so many rows, or of some, by their numbers in the paper."""
    some = np.arange(rows) if isinstance(rows, int) else np.array(rows)
    first, second = (np.array(table[name])[some] for name in (one, two))
    none = np.zeros(len(some), np.int64)
    index = chains.build(none, first, ~second if falling else second)
    return index._replace(positions=some[index.positions].astype(np.int32))


def from_index(
    index: Chains, falling: bool, first: tuple[int, int], second: tuple[int, int]
) -> list[int]:
    return looked_up(index, 0, first, (~second[1], ~second[0]) if falling else second)


def chain_rows(index: Chains) -> list[list[int]]:
    starts = np.unique(index.ends, return_index=True)[1].tolist()
    return [index.positions[a : index.ends[a]].tolist() for a in starts]


@pytest.mark.parametrize("falling", [True, False])
def test_examples_5_to_7(falling: bool) -> None:
    index = index_of(TAX, "TXA", "SAL", 7, falling)
    if falling:
        assert sorted(chain_rows(index)) == [[4, 5], [6, 3, 1, 0, 2]]
    txa, sal = TAX["TXA"][8], TAX["SAL"][8]
    assert from_index(index, falling, below(txa), above(sal)) == [3, 6]
    assert from_index(index, falling, above(txa), below(sal)) == [0, 2]
    violating = [t for t in (3, 6) if TAX["RATE"][8] > TAX["RATE"][t]]
    assert violating == [3]


@pytest.mark.parametrize("falling", [True, False])
def test_example_8(falling: bool) -> None:
    """t.A > t'.B and t.C < t'.D: t6 as t' in one index, as t in the other."""
    as_second = index_of(SAMPLE, "A", "C", 6, falling)
    as_first = index_of(SAMPLE, "B", "D", 6, falling)
    if falling:
        # The rows of the chains are not the paper's: the nearest end for t3 is t1, not t2.
        assert as_second.rank == as_first.rank == 2
    a, b, c, d = (SAMPLE[name][6] for name in "ABCD")
    assert from_index(as_second, falling, above(b), below(d)) == [2, 3]
    assert from_index(as_first, falling, below(a), above(c)) == [5]


def test_examples_9_10_and_13() -> None:
    """The index that the correlation of 0.88 asks for, used in reverse."""
    assert np.corrcoef(TAX["Date"][:7], TAX["NUM"][:7])[0, 1] == pytest.approx(0.88, abs=0.01)
    index = index_of(TAX, "Date", "NUM", 7, falling=False)
    # The paper's has two: t3 and t5 have one NUM.
    assert chain_rows(index) == [[3, 5, 1, 4, 0, 2, 6]]
    date, number = TAX["Date"][8], TAX["NUM"][8]
    assert from_index(index, False, above(date), below(number)) == [0, 1, 4]
    assert from_index(index, False, below(date), above(number)) == []
    assert index_of(TAX, "Date", "NUM", 7, falling=True).rank > 2


OLD, NEW = [*range(7)], [7, 8, 9]
WAYS = [*product((above, below), repeat=2)]
"""Both numbers of a row are above, or below, those that are looked for."""


def dated(rows: Sequence[int]) -> Chains:
    return index_of(TAX, "Date", "NUM", rows, falling=False)


def dates(rows: Sequence[int]) -> list[Row]:
    return [(0, TAX["Date"][row], TAX["NUM"][row]) for row in rows]


def test_example_11() -> None:
    """t9 goes between t6 and t2 of the chain of the old rows: p = q. Until segments are merged it
    has a chain of its own, so two are looked at; afterwards it is where the paper puts it, and
    there are as few chains as before."""
    old, own, merged = dated(OLD), dated([9]), dated([*OLD, 9])
    date, number = TAX["Date"][9], TAX["NUM"][9]
    assert from_index(old, False, above(date), above(number)) == [6]
    assert from_index(old, False, below(date), below(number)) == [0, 1, 2, 3, 4, 5]
    # No row is above t9 in one column and below it in the other, which is what p = q says.
    assert from_index(old, False, above(date), below(number)) == []
    assert from_index(old, False, below(date), above(number)) == []
    assert chain_rows(merged) == [[3, 5, 1, 4, 0, 2, 9, 6]]
    assert (old.rank, own.rank, merged.rank) == (1, 1, 1)
    for rows in (OLD, [*OLD, 9]):
        assert dated(rows).rank == longest_antichain(dates(rows))
        # The paper's chains are two, before and after: t3 and t5 have one NUM.
        assert longest_antichain(dates(rows), strictly_rising) == 2


def test_example_11_with_all_new_rows() -> None:
    """t8 does not fit: the three rows that are looked up for it in example 10 stand between. The
    least rank grows by one, and what is returned stays the same."""
    old, own, merged = dated(OLD), dated(NEW), dated([*OLD, *NEW])
    assert (old.rank, own.rank, merged.rank) == (1, 1, 2)
    for rows in (OLD, NEW, [*OLD, *NEW]):
        assert dated(rows).rank == longest_antichain(dates(rows))
    for row, (one, two) in product(NEW, WAYS):
        first, second = one(TAX["Date"][row]), two(TAX["NUM"][row])
        parts = [from_index(each, False, first, second) for each in (old, own)]
        assert sorted([*parts[0], *parts[1]]) == from_index(merged, False, first, second)
        assert from_index(merged, False, first, second) == [
            each
            for each, (_, date, number) in enumerate(dates(range(10)))
            if first[0] <= date <= first[1] and second[0] <= number <= second[1]
        ]
    # In the order of the dates t8 comes after t9, and is found beside it.
    later = above(TAX["Date"][8]), above(TAX["NUM"][8])
    assert [from_index(each, False, *later) for each in (old, own)] == [[2, 6], [9]]


def test_example_12() -> None:
    """The search for the place of t9 ends between t2 and t6 by either number, as in the skip list,
    and t9 stands there once segments are merged."""
    everything = LOWEST, HIGHEST
    date, number = below(TAX["Date"][9]), below(TAX["NUM"][9])
    for index, above_it in ((dated(OLD), 6), (dated([*OLD, 9]), 9)):
        whole = np.array([0]), np.array([len(index.positions)])
        for first, second in ((date, everything), (everything, number)):
            boxes = RangeQueries(*whole, np.array([first]), np.array([second]))
            [[_, start, stop]] = chains.fetch(index, boxes).tolist()
            assert index.positions[start:stop].tolist() == [3, 5, 1, 4, 0, 2]
            assert index.positions[stop] == above_it
