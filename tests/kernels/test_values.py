"""Codes of values are equal iff the values are, whatever the types that hold them."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import values
from holdfast.tasks.coding import word_form
from holdfast.tasks.encode import encode, layout
from holdfast.tasks.values import family, salt
from tests.strategies import examples

WIDE = Context(prec=80)
# The first example waits for the compiler.
quick = settings(deadline=None, max_examples=examples(200))

INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(1 << 63), (1 << 63) - 1))
DECIMALS = st.one_of(
    st.integers(-500, 500),
    st.integers(-(10**18) + 1, 10**18 - 1),
    st.integers(-(10**38) + 1, 10**38 - 1),
)
DOUBLES = st.one_of(
    st.floats(),
    st.integers(-(1 << 60), 1 << 60).map(float),
    st.integers(-50, 50).map(lambda i: i / 8),
)
CELLS = st.one_of(
    st.tuples(st.just(pa.int64()), INTEGERS),
    st.tuples(st.just(pa.int8()), st.integers(-128, 127)),
    st.tuples(st.just(pa.float64()), DOUBLES),
    st.tuples(st.just(pa.float32()), st.floats(width=32)),
    st.integers(0, 38).flatmap(
        lambda scale: st.tuples(
            st.just(pa.decimal128(38, scale)),
            DECIMALS.map(lambda i: Decimal(i).scaleb(-scale, WIDE)),
        )
    ),
    st.integers(0, 18).flatmap(
        lambda scale: st.tuples(
            st.just(pa.decimal128(18, scale)),
            st.integers(-(10**18) + 1, 10**18 - 1).map(lambda i: Decimal(i).scaleb(-scale, WIDE)),
        )
    ),
)


def codes(type_: pa.DataType, cells: list[Any], nulls: bool = False) -> list[tuple[int, int, int]]:
    """The entries of a column, in order: (code, code, count)."""
    batch = pa.record_batch([pa.array(cells, type_)], names=["c0"])
    where = layout(batch.schema)
    rows = np.ascontiguousarray(encode(batch, where).view(np.uint64).T)
    (kind, scale), first = word_form(type_), 0
    named = family("string", type_)
    column = values.CodedColumn(7, kind, first, scale, where.value_words, 0, nulls, salt(named))
    out = np.empty((len(cells), 4), np.uint64)
    with np.errstate(over="ignore"):
        size = values.tally(rows, np.arange(len(cells)), column, np.uint64(1), out)
        entries = values.merged([out[:size]])
    assert (entries[:, 2] == 7).all()
    return [(int(e[0]), int(e[1]), int(e[3])) for e in entries]


def exact(cell: Any) -> object:
    if isinstance(cell, float) and not math.isfinite(cell):
        return "nan" if math.isnan(cell) else str(cell)
    return Fraction(cell)


@quick
@given(CELLS, CELLS)
def test_numbers_have_one_code_iff_they_are_equal(one: Any, two: Any) -> None:
    same = exact(one[1]) == exact(two[1])
    assert (codes(one[0], [one[1]]) == codes(two[0], [two[1]])) == same


@quick
@given(INTEGERS, st.integers(0, 10))
def test_a_number_has_one_code_at_every_width(number: int, scale: int) -> None:
    expected = codes(pa.int64(), [number])
    assert codes(pa.decimal128(38, scale), [Decimal(number)]) == expected
    if int(float(number)) == number:
        assert codes(pa.float64(), [float(number)]) == expected


def test_what_is_next_to_a_double_differs_from_it() -> None:
    assert codes(pa.int64(), [2**53]) == codes(pa.float64(), [2.0**53])
    assert codes(pa.int64(), [2**53 + 1]) != codes(pa.float64(), [2.0**53])
    assert codes(pa.decimal128(10, 1), [Decimal("0.1")]) != codes(pa.float64(), [0.1])
    assert codes(pa.float64(), [-0.0]) == codes(pa.int32(), [0])


@quick
@given(st.lists(st.one_of(st.none(), st.integers(0, 3), INTEGERS)), st.booleans())
def test_values_are_counted(cells: list[int | None], nulls: bool) -> None:
    counted = codes(pa.int64(), cells, nulls)
    assert counted == sorted(counted)
    expected = Counter(cell for cell in cells if nulls or cell is not None)
    assert sorted(n for _, _, n in counted) == sorted(expected.values())


def test_families_are_apart() -> None:
    types = [pa.int64(), pa.date32(), pa.bool_(), pa.timestamp("us"), pa.timestamp("us", "UTC")]
    found = [codes(type_, [0 if type_ != pa.bool_() else False])[0] for type_ in types]
    assert len(set(found)) == len(types)
    assert codes(pa.string(), ["a"]) != codes(pa.binary(), [b"a"])
    assert codes(pa.string(), ["a"]) == codes(pa.large_string(), ["a"])
    assert codes(pa.timestamp("s"), [1]) == codes(pa.timestamp("us"), [1_000_000])


ENTRIES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 70), st.integers(-2, 2)),
    max_size=40,
)


def entries(rows: list[tuple[int, int, int, int]], spread: int = 1) -> Any:
    table = np.array(rows, np.int64).reshape(-1, 4)
    table[:, 0] *= spread
    return table.view(np.uint64)


@quick
@given(ENTRIES, st.integers(0, 40), st.sampled_from([1, 1 << 40, 1 << 61]))
def test_blocks_are_merged(rows: list[tuple[int, int, int, int]], at: int, spread: int) -> None:
    got = values.merged([entries(rows[:at], spread), entries(rows[at:], spread)])
    totals: Counter[tuple[int, int, int]] = Counter()
    for high, low, attribute, number in rows:
        totals[high * spread, low, attribute] += number
    expected = sorted((*key, number) for key, number in totals.items() if number)
    assert [tuple(each) for each in got.view(np.int64).tolist()] == expected


def test_many_entries_of_one_code_are_sorted() -> None:
    random = np.random.default_rng(1)
    block = np.zeros((5_000, 4), np.uint64)
    block[:, 2] = random.permutation(5_000)
    block[:, 3] = 1
    assert values.merged([block])[:, 2].tolist() == list(range(5_000))


@quick
@given(ENTRIES, ENTRIES)
def test_values_move_between_clusters(
    before: list[tuple[int, int, int, int]], change: list[tuple[int, int, int, int]]
) -> None:
    old = values.merged([entries([(*row[:3], abs(row[3])) for row in before])])
    delta = values.merged([entries(change)])
    kept = old[np.isin(old[:, 0] * 3 + old[:, 1], delta[:, 0] * 3 + delta[:, 1])]
    masks, counts, wrong = values.transitions(delta, kept, 2)
    held: Counter[tuple[int, int, int]] = Counter()
    for high, low, attribute, number in old.view(np.int64).tolist():
        held[high, low, attribute] += number
    after = held.copy()
    for high, low, attribute, number in delta.view(np.int64).tolist():
        after[high, low, attribute] += number
    assert wrong == any(number < 0 for number in after.values())

    def cluster(state: Counter[tuple[int, int, int]], code: tuple[int, int]) -> int:
        return sum(1 << key[2] for key, number in state.items() if key[:2] == code and number > 0)

    moves: Counter[tuple[int, int]] = Counter()
    for code in {key[:2] for key in after}:
        pair = cluster(held, code), cluster(after, code)
        moves[pair] += pair[0] != pair[1]
    told = {
        tuple(int(row[i]) | int(row[i + 1]) << 64 for i in (0, 2)): int(n)
        for row, n in zip(masks, counts, strict=True)
    }
    assert told == +moves
