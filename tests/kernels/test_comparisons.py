"""Comparison words of real cells, through the encoder, against plain Python over the values."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import bitsets, comparisons, gpu, pairs, ranks
from holdfast.kernels.gpu import count as gpu_count
from holdfast.kernels.gpu import plan as gpu_plan
from holdfast.kernels.gpu import source as gpu_source
from holdfast.kernels.values import FLOAT, HASHED, INTEGER, WIDE
from holdfast.model.comparisons import (
    AGREEMENT,
    BOTH,
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
    agreements,
)
from holdfast.tasks import encode
from tests import oracle
from tests.card import counted
from tests.data import MISSING, data_dir, read_table
from tests.strategies import examples

Column = list[object]

MISSING_GPU = gpu.device().missing
"""Why what follows is not tried on a GPU, where it is not."""

on_both = pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("gpu", marks=pytest.mark.skipif(bool(MISSING_GPU), reason=MISSING_GPU))],
)

WHOSE = {"ts": BOTH, "tt": FIRST, "ss": SECOND}

NUMBERS = {
    pa.int64(): (INTEGER, 0, [0, 1, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]),
    pa.int8(): (INTEGER, 0, [0, 1, -1, 127]),
    pa.float64(): (
        FLOAT,
        0,
        [0.0, -0.0, 1.0, 0.1, 2.0**53, 1e300, 5e-324, math.nan, -math.nan, math.inf, -math.inf],
    ),
    pa.float32(): (FLOAT, 0, [0.0, 1.0, -1.5, math.nan]),
    pa.decimal128(10, 1): (INTEGER, 1, [Decimal(each) for each in ("0.0", "0.1", "-1.5", "1")]),
    pa.decimal128(38, 2): (
        WIDE,
        2,
        [Decimal(each) for each in (0, "0.10", "-0.01", 2**53, 2**64, 10**30, -(10**30))],
    ),
}
OTHERS = {
    pa.string(): (HASHED, 0, ["", "a", "b", "long enough for more than one block"]),
    pa.date32(): (INTEGER, 0, [date(1969, 12, 31), date(1970, 1, 1), date(2026, 2, 28)]),
    pa.timestamp("us"): (INTEGER, 0, [datetime(1960, 1, 1), datetime(2026, 1, 1, 0, 0, 1)]),
    pa.bool_(): (INTEGER, 0, [False, True]),
}
TYPES: dict[Any, Any] = {**NUMBERS, **OTHERS}


def to_words(types: list[pa.DataType], columns: list[Column]) -> tuple[np.ndarray, np.ndarray]:
    """Rows as segments hold them, and the first word of every column."""
    schema = pa.schema([(f"c{c}", each) for c, each in enumerate(types)])
    arrays = [pa.array(cells, each) for cells, each in zip(columns, types, strict=True)]
    layout = encode.layout(schema)
    words = encode.encode(pa.RecordBatch.from_arrays(arrays, schema=schema), layout)
    rows = np.ascontiguousarray(words.T).view(np.uint64)
    return rows, np.array([*layout.offsets, layout.value_words])


def to_codes(types: list[pa.DataType], columns: list[Column], together: bool) -> ranks.Codes:
    """All columns as planes; the numbers' are ranked together where they are compared."""
    rows, first = to_words(types, columns)
    cells = [ranks.cells(rows, first, c, *TYPES[each][:2]) for c, each in enumerate(types)]
    out = np.empty((len(types), len(rows)), np.int32)
    numeric = [c for c, each in enumerate(types) if each in NUMBERS]
    if together and numeric:
        out[numeric] = ranks.ranks([cells[c] for c in numeric])
    for c, each in enumerate(types):
        if not (together and c in numeric):
            code = ranks.numbers if TYPES[each][0] == HASHED else ranks.ranks
            out[c] = code([cells[c]])[0]
    return out


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.DataType], list[Column]]:
    types = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    rows = draw(st.integers(0, 9))
    columns = [
        draw(
            st.lists(
                st.sampled_from([*TYPES[each][2], *([None] if draw(st.booleans()) else [])]),
                min_size=rows,
                max_size=rows,
            )
        )
        for each in types
    ]
    return types, columns


@st.composite
def spaces(draw: st.DrawFn, types: list[pa.DataType], together: bool) -> list[oracle.Comparison]:
    """Comparisons with their mirror images."""
    space: list[oracle.Comparison] = []
    for c, each in enumerate(types):
        way = draw(st.sampled_from(["ordered", "equality", "off"]))
        if way != "off":
            space.append((c, c, "ts", way == "ordered" and each != pa.string()))
    numeric = [c for c, each in enumerate(types) if each in NUMBERS] if together else []
    for a in numeric:
        for b in numeric:
            if a < b and draw(st.booleans()):
                ordered = draw(st.booleans())
                space += [(a, b, "ts", ordered), (b, a, "ts", ordered)]
                if draw(st.booleans()):
                    space += [(a, b, "tt", ordered), (a, b, "ss", ordered)]
    return draw(st.permutations(space))


def to_layout(space: list[oracle.Comparison]) -> comparisons.WordLayout:
    return comparisons.layout([(a, b, WHOSE[whose], ordered) for a, b, whose, ordered in space])


def decoded(word: list[int], layout: comparisons.WordLayout) -> tuple[str, ...]:
    """The outcomes in a word."""
    number = sum(part << 64 * w for w, part in enumerate(word))
    shown = []
    for bit, ordered in zip(layout.bit.tolist(), layout.ordered.tolist(), strict=True):
        bits = number >> bit
        shown.append(("?", "<", ">", "=")[bits & 3] if ordered else ("!=", "=")[bits & 1])
    return tuple(shown)


@contextmanager
def paths(way: str) -> Iterator[None]:
    """Make counting go one way, in small blocks and tables."""
    with pytest.MonkeyPatch.context() as patch, small_gpu(way == "direct"):
        patch.setattr(pairs, "BLOCK", 4)
        patch.setattr(pairs, "ROOM", 2)
        patch.setattr(pairs, "DIRECT", 0 if way == "hashed" else pairs.DIRECT)
        patch.setattr(pairs, "SPARSE", 0 if way == "sparse" else 1 << 60)
        patch.setattr(pairs, "SORTED", 0)
        yield


@contextmanager
def small_gpu(direct: bool, threads: int = 32) -> Iterator[None]:
    """Make a GPU count in small blocks that empty their counters often, and sides of a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        few = gpu_source.LaunchShape(threads, 1, 1, 4, 4)
        patch.setattr(gpu_source, "shape", lambda *_: few)
        patch.setattr(gpu_source, "MOST", 200)
        patch.setattr(gpu_count, "SHARE", 1 << 60)
        patch.setattr(gpu_count, "CODES", 500)
        patch.setattr(gpu_count, "SAMPLED", 20)
        patch.setattr(gpu_count, "SAMPLE", 5)
        patch.setattr(gpu_plan, "DIRECT", gpu_plan.DIRECT if direct else 0)
        gpu_plan.plan.cache_clear()
        yield
    gpu_plan.plan.cache_clear()


@on_both
@given(
    data=st.data(),
    way=st.sampled_from(["direct", "hashed", "sparse"]),
    repeated=st.sampled_from([1, 1, 12]),
)
@settings(deadline=None, max_examples=examples(300))
def test_words_of_every_tile(device: str, data: st.DataObject, way: str, repeated: int) -> None:
    types, columns = data.draw(tables())
    together = data.draw(st.booleans())
    space = data.draw(spaces(types, together))
    nulls = data.draw(st.sampled_from(["equal", "unequal"]))
    codes = to_codes(types, columns, together)
    if repeated > 1:
        # The same columns again and again, so that words become wide.
        width = len(types)
        space = [
            (a + width * k, b + width * k, whose, ordered)
            for k in range(repeated)
            for a, b, whose, ordered in space
        ]
        columns = columns * repeated
        codes = np.tile(codes, (repeated, 1))
    if data.draw(st.booleans()):
        codes = np.where(codes == ranks.NULL, codes, codes * 40_000).astype(np.int32)
    rows = list(zip(*columns, strict=True))
    layout = to_layout(space)
    own_t, own_s = comparisons.own_words(codes, layout, nulls == "equal")
    if not rows:
        ones, lo, hi = [], 0, 0
    else:
        ones = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True))
        lo, hi = sorted(data.draw(st.tuples(*[st.integers(0, len(rows))] * 2)))
    ends = [max(0, min(i, hi) - lo) for i in ones] if data.draw(st.booleans()) else None
    others = rows[lo:hi]
    among = [
        (i, j) for k, i in enumerate(ones) for j in range(lo, hi if ends is None else lo + ends[k])
    ]
    expected = oracle.counted_outcomes(((rows[i], rows[j]) for i, j in among), space, nulls)

    def count(with_pairs: bool) -> pairs.WordCounts:
        with paths(way):
            return counted(
                device,
                layout,
                pairs.TileRows(codes[:, ones], own_t[ones]),
                pairs.TileRows(codes[:, lo:hi], own_s[lo:hi]),
                nulls == "equal",
                None if ends is None else np.array(ends, np.int64),
                with_pairs=with_pairs,
            )

    plain, found = count(False), count(True)
    assert plain.pairs.size == 0
    words = found.words.tolist()
    assert words == sorted(words) == plain.words.tolist()
    assert plain.counts.tolist() == found.counts.tolist()
    shown = [decoded(word, layout) for word in words]
    assert dict(zip(shown, found.counts.tolist(), strict=True)) == expected
    assert len(set(shown)) == len(words)

    # Every word has a pair that shows it.
    assert len(found.pairs) == len(words)
    swapped = comparisons.mirror(found.words, layout).tolist()
    for k, (one, other) in enumerate(found.pairs.tolist()):
        t, s = rows[ones[one]], others[other]
        assert ends is None or other < ends[one]
        assert oracle.outcomes(t, s, space, nulls) == shown[k]
        assert oracle.outcomes(s, t, space, nulls) == decoded(swapped[k], layout)

    usual = [ORDER if ordered else EQUALITY for *_, ordered in space]
    fewest = [data.draw(st.sampled_from([(), AGREEMENT, EQUALITY])) for _ in space]
    for operators in (usual, fewest):
        chosen = [
            Comparison(a, b, each, WHOSE[whose])
            for (a, b, whose, _), each in zip(space, operators, strict=True)
            if each
        ]
        masks = comparisons.evidence(found.words, layout, Space("", len(columns), tuple(chosen)))
        for mask, each in zip(bitsets.to_columns(masks), shown, strict=True):
            assert set(mask) == oracle.satisfied(each, operators)


@given(st.data())
@settings(deadline=None)
def test_ranks_have_the_order_of_the_values(data: st.DataObject) -> None:
    types, columns = data.draw(tables())
    for together in (False, True):
        codes = to_codes(types, columns, together)
        numeric = [c for c, each in enumerate(types) if each in NUMBERS] if together else []
        for c, each in enumerate(types):
            for other in {c, *(numeric if c in numeric else [])}:
                for i, one in enumerate(columns[c]):
                    for j, two in enumerate(columns[other]):
                        assert (codes[c, i] == ranks.NULL) == (one is None)
                        if one is None or two is None:
                            continue
                        ordered = each != pa.string()
                        a, b = codes[c, i], codes[other, j]
                        told = "=" if a == b else "!=" if not ordered else "<" if a < b else ">"
                        assert told == oracle.outcome(one, two, ordered)
    some = [codes[c] for c in range(len(types)) if types[c] == pa.string()]
    for plane in some:
        assert set(plane.tolist()) - {ranks.NULL} == set(range(plane.max(initial=-1) + 1))


@given(st.data())
@settings(deadline=None)
def test_numbers_of_several_types_are_equal_where_values_are(data: st.DataObject) -> None:
    types, columns = data.draw(tables())
    rows, first = to_words(types, columns)
    some = [c for c, each in enumerate(types) if each in NUMBERS]
    if some:
        codes = ranks.numbers([ranks.cells(rows, first, c, *TYPES[types[c]][:2]) for c in some])
        told = {
            (c, i): code
            for c, plane in zip(some, codes, strict=True)
            for i, code in enumerate(plane)
        }
        for (c, i), one in told.items():
            for (d, j), two in told.items():
                a, b = columns[c][i], columns[d][j]
                if a is not None and b is not None:
                    assert (one == two) == (oracle.outcome(a, b, False) == "=")


def test_wide_numbers_are_ordered_by_all_their_bits() -> None:
    whole = [0, 1, -1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**64), 10**37, -(10**37)]
    rows, first = to_words([pa.decimal128(38, 0)], [[Decimal(each) for each in whole]])
    codes = ranks.ranks([ranks.cells(rows, first, 0, WIDE)])
    assert codes.tolist() == [[sorted(whole).index(each) for each in whole]]


@on_both
@pytest.mark.parametrize("direct", [0, 1 << 22])
def test_pairs_show_their_words_in_every_block(device: str, direct: int) -> None:
    """Rows differ in many ways, so that later blocks bring words that earlier ones have not."""
    codes = np.zeros((6, 36), np.int32)
    codes[:3] = np.arange(36) % np.array([[2], [3], [5]])
    codes[3:] = np.arange(36) // np.array([[6], [9], [12]])
    layout = comparisons.layout([(c, c, BOTH, True) for c in range(6)])
    side = pairs.TileRows(codes)
    with pytest.MonkeyPatch.context() as patch, small_gpu(direct > 0):
        patch.setattr(pairs, "BLOCK", 5)
        patch.setattr(pairs, "DIRECT", direct)
        found = counted(device, layout, side, side, True, with_pairs=True)
    assert found.pairs[:, 1].max() >= 5
    for word, (one, other) in zip(found.words, found.pairs.tolist(), strict=True):
        alone = counted(
            "cpu", layout, pairs.TileRows(codes[:, [one]]), pairs.TileRows(codes[:, [other]]), True
        )
        assert alone.words.tolist() == [word.tolist()]


def test_hashes_have_no_order() -> None:
    rows, first = to_words([pa.string()], [["a", "b"]])
    with pytest.raises(ValueError, match="no order"):
        ranks.ranks([ranks.cells(rows, first, 0, HASHED)])


def test_a_space_is_closed_under_mirroring() -> None:
    with pytest.raises(ValueError, match="mirror image"):
        comparisons.layout([(0, 1, BOTH, True)])
    with pytest.raises(ValueError, match="mirror image"):
        comparisons.layout([(0, 1, FIRST, False)])


@on_both
def test_a_tile_is_checked(device: str) -> None:
    count = partial(counted, device)
    layout = comparisons.layout([(0, 1, FIRST, True), (0, 1, SECOND, True)])
    rows = pairs.TileRows(np.zeros((2, 3), np.int32))
    with pytest.raises(ValueError, match="own words"):
        count(layout, rows, rows, True)
    for ends in ([0, 1], [0, 1, 4]):
        with pytest.raises(ValueError, match="needs an end"):
            count(comparisons.equalities(2), rows, rows, True, np.array(ends))


def test_bits_of_a_comparison_lie_in_one_piece() -> None:
    one, two = (0, 0, BOTH, False), (1, 1, BOTH, True)
    layout = comparisons.layout([one] * 15 + [two] + [one] * 46 + [two])
    assert layout.bit[15] == 16
    assert layout.bit[62] == 64
    assert layout.width == 2
    agree = comparisons.equalities(70)
    assert agree.bit.tolist() == list(range(70))
    assert agree.width == 2


@on_both
@pytest.mark.parametrize("nulls_equal", [False, True])
@pytest.mark.parametrize(
    ("columns", "ordered"), [(3, 1), (6, 3), (14, 0), (12, 9), (20, 0), (40, 30)]
)
def test_many_pairs_in_all_three_ways(
    device: str, columns: int, ordered: int, nulls_equal: bool
) -> None:
    """Counts beyond a byte, two pieces, several blocks: the same by every way, and by NumPy."""
    count = partial(counted, device)
    random = np.random.default_rng(columns)
    rows = 120
    codes = np.minimum(random.geometric(0.4, (columns, rows)), 5).astype(np.int32) - 1
    codes[columns // 2, ::7] = ranks.NULL
    layout = comparisons.layout([(c, c, BOTH, c >= columns - ordered) for c in range(columns)])
    side = pairs.TileRows(codes)
    ends = np.arange(rows)
    expected = np.zeros((rows, rows, layout.width), np.uint64)
    for c in range(columns):
        t, s = codes[c][:, None], codes[c][None, :]
        both = (t != ranks.NULL) & (s != ranks.NULL)
        same = (t == s) & (both | nulls_equal)
        bits = same.astype(np.uint64)
        if layout.ordered[c]:
            bits = (same | both & (t < s)) + 2 * (same | both & (t > s)).astype(np.uint64)
        expected[:, :, layout.bit[c] >> 6] |= bits << np.uint64(layout.bit[c] & 63)
    words, numbers = np.unique(expected[np.tril_indices(rows, -1)], axis=0, return_counts=True)
    assert columns > 3 or numbers.max() > 256
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "BLOCK", 50)
        for direct, sparse in ((1 << 22, 1 << 60), (0, 1 << 60), (1 << 22, 0)):
            patch.setattr(pairs, "DIRECT", direct)
            patch.setattr(pairs, "SPREAD", 1e-9)
            patch.setattr(pairs, "SPARSE", sparse)
            patch.setattr(pairs, "SORTED", 0)
            with small_gpu(direct > 0):
                found = count(layout, side, side, nulls_equal, ends)
            assert np.array_equal(found.words, words)
            assert np.array_equal(found.counts, numbers)

    # Tiles of any shape add up to the table.
    cuts = [0, 1, 37, 80, rows]
    sums: dict[tuple[int, ...], int] = {}
    for a, b in pairwise(cuts):
        for c, d in pairwise(cuts):
            if c > a:
                continue
            tile = count(
                layout,
                pairs.TileRows(codes[:, a:b]),
                pairs.TileRows(codes[:, c:d]),
                nulls_equal,
                np.arange(b - a) if a == c else None,
            )
            for word, number in zip(tile.words.tolist(), tile.counts.tolist(), strict=True):
                sums[tuple(word)] = sums.get(tuple(word), 0) + number
    assert sums == dict(zip(map(tuple, words.tolist()), numbers.tolist(), strict=True))


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nine million pairs are too many for Python"
)
@pytest.mark.skipif(data_dir() is None, reason=MISSING)
@on_both
@pytest.mark.parametrize(
    ("name", "evidences"),
    [("abalone", 7_036), pytest.param("adult", 99_316, marks=pytest.mark.slow)],
)
def test_known_evidence(device: str, name: str, evidences: int) -> None:
    folder = data_dir()
    assert folder is not None
    _, rows = read_table(folder / f"{name}.csv")
    planes, space = [], []
    for c, column in enumerate(zip(*rows, strict=True)):
        ordered = all(cell.replace(".", "").isdigit() for cell in column)
        cells = np.array([float(cell) for cell in column] if ordered else column)
        planes.append(np.unique(cells, return_inverse=True)[1])
        space.append(Comparison(c, c, ORDER if ordered else EQUALITY))
    side, layout = pairs.TileRows(np.array(planes, np.int32)), comparisons.layout_of(space)
    found = counted(device, layout, side, side, True, np.arange(len(rows)))
    assert found.counts.sum() == len(rows) * (len(rows) - 1) // 2
    both = np.concatenate([found.words, comparisons.mirror(found.words, layout)])
    known = Space("known", len(space), tuple(space))
    assert len(bitsets.distinct(comparisons.evidence(both, layout, known))) == evidences
    ends = np.arange(len(rows))
    equal = comparisons.evidence(found.words, layout, agreements(len(space)))
    agree_sets = bitsets.distinct(equal)
    every, _ = pairs.agree_sets(side.codes, ends, nulls_equal=True)
    assert np.array_equal(agree_sets, bitsets.distinct(every))
