"""Tables of counted masks added up, against plain counters."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import agree

Table = dict[tuple[int, ...], int]

NUMBERS = st.integers(-2, 2).filter(bool)


def tables(words: int) -> st.SearchStrategy[Table]:
    word = st.sampled_from([0, 1, 2, 2**63])
    return st.dictionaries(st.tuples(*[word] * words), NUMBERS, max_size=12)


def arrays(table: Table, words: int) -> tuple[agree.U64, agree.I64]:
    ordered = sorted(table)
    masks = np.array(ordered, np.uint64).reshape(-1, words)
    return masks, np.array([table[mask] for mask in ordered], np.int64)


def as_dict(masks: agree.U64, counts: agree.I64) -> Table:
    return dict(zip(map(tuple, masks.tolist()), counts.tolist(), strict=True))


@given(st.data(), st.integers(1, 3))
@settings(deadline=None)
def test_tables_add_up(data: st.DataObject, words: int) -> None:
    parts = data.draw(st.lists(tables(words), max_size=3))
    sums: Counter[tuple[int, ...]] = Counter()
    for part in parts:
        sums.update(part)
    found = [arrays(part, words) for part in parts]
    masks, counts = agree.total([m for m, _ in found], [n for _, n in found], words)
    expected = {mask: number for mask, number in sums.items() if number}
    assert as_dict(masks, counts) == expected
    assert list(map(tuple, masks.tolist())) == sorted(expected)

    more = data.draw(tables(words))
    after, _, new, gone = agree.added(masks, counts, *arrays(more, words))
    now = set(map(tuple, after.tolist()))
    assert set(map(tuple, new.tolist())) == now - set(expected)
    assert set(map(tuple, gone.tolist())) == set(expected) - now


def test_codes_fit_16_bits_or_stay() -> None:
    codes = np.array([[-1, 0, 65_534], [0, 1, 2]], np.int32)
    assert agree.narrow(codes).dtype == np.uint16
    wider = codes + np.array([[1], [0]], np.int32) * np.array([0, 0, 1], np.int32)
    assert agree.narrow(wider) is wider
    for table in (codes, wider):
        masks, counts = agree.count(table, np.arange(3))
        assert as_dict(masks, counts) == {(0,): 3}


@given(st.data(), st.sampled_from([1, 3, 16, 17, 65]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_pairs_that_agree_nowhere_are_counted_without_a_look(
    data: st.DataObject, columns: int, sparse: bool
) -> None:
    rows = data.draw(st.integers(0, 40))
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    values = data.draw(st.sampled_from([2, 10, 1_000]))
    codes = random.integers(-1, values, (columns, rows)).astype(np.int32)
    ones = np.arange(rows)
    if data.draw(st.booleans()):
        ones = ones[random.integers(0, 2, rows) > 0]
    expected: Counter[tuple[int, ...]] = Counter()
    for one in ones.tolist():
        for other in range(one):
            mask = sum(1 << c for c in range(columns) if codes[c, one] == codes[c, other])
            expected[tuple(mask >> 64 * w & 2**64 - 1 for w in range(-(-columns // 64)))] += 1
    usual, agree.SPARSE = agree.SPARSE, 0 if sparse else 1 << 60
    try:
        masks, counts = agree.count(codes, ones)
    finally:
        agree.SPARSE = usual
    assert as_dict(masks, counts) == expected
    assert list(map(tuple, masks.tolist())) == sorted(expected)
