"""Tables of counted masks added up, against plain counters."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import counts as kernels
from holdfast.kernels.arrays import I64, U64

Table = dict[tuple[int, ...], int]

NUMBERS = st.integers(-2, 2).filter(bool)


def tables(words: int) -> st.SearchStrategy[Table]:
    word = st.sampled_from([0, 1, 2, 2**63])
    return st.dictionaries(st.tuples(*[word] * words), NUMBERS, max_size=12)


def arrays(table: Table, words: int) -> tuple[U64, I64]:
    ordered = sorted(table)
    masks = np.array(ordered, np.uint64).reshape(-1, words)
    return masks, np.array([table[mask] for mask in ordered], np.int64)


def as_dict(masks: U64, counts: I64) -> Table:
    return dict(zip(map(tuple, masks.tolist()), counts.tolist(), strict=True))


@given(st.data(), st.integers(1, 3))
@settings(deadline=None)
def test_tables_add_up(data: st.DataObject, words: int) -> None:
    parts = data.draw(st.lists(tables(words), max_size=3))
    sums: Counter[tuple[int, ...]] = Counter()
    for part in parts:
        sums.update(part)
    found = [arrays(part, words) for part in parts]
    masks, counts = kernels.total([m for m, _ in found], [n for _, n in found], words)
    expected = {mask: number for mask, number in sums.items() if number}
    assert as_dict(masks, counts) == expected
    assert list(map(tuple, masks.tolist())) == sorted(expected)

    # Of every mask a pair that some table tells; -1 stands for none.
    pairs = [
        data.draw(st.lists(st.integers(-1, 5), min_size=len(m), max_size=len(m))) for m, _ in found
    ]
    known = [
        np.array([[one, one + 1 if one >= 0 else -1] for one in each], np.int64).reshape(-1, 2)
        for each in pairs
    ]
    told: dict[tuple[int, ...], set[int]] = {}
    for (table, _), ones in zip(found, pairs, strict=True):
        for mask, one in zip(map(tuple, table.tolist()), ones, strict=True):
            told.setdefault(mask, set()).update({one} - {-1})
    shown = kernels.pairs_showing(masks, [m for m, _ in found], known)
    for mask, (one, two) in zip(map(tuple, masks.tolist()), shown.tolist(), strict=True):
        assert one in (told[mask] or {-1})
        assert two == (one + 1 if one >= 0 else -1)

    more = data.draw(tables(words))
    after, _, new, gone = kernels.added(masks, counts, *arrays(more, words))
    now = set(map(tuple, after.tolist()))
    assert set(map(tuple, new.tolist())) == now - set(expected)
    assert set(map(tuple, gone.tolist())) == set(expected) - now
