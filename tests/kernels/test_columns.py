"""The lowest and highest text, held against Python's own order of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import columns
from tests.strategies import examples

CELLS = st.binary(max_size=3) | st.sampled_from([b"", b"\0", b"aaaaaaaab", b"aaaaaaaa"])


@settings(max_examples=examples(100), deadline=None)
@given(texts=st.lists(CELLS, min_size=1))
def test_text_ends(texts: list[bytes]) -> None:
    data = np.frombuffer(b"".join(texts), np.uint8)
    ends = np.cumsum([0, *map(len, texts)])
    # Any numbers serve as hashes that are equal iff the texts are.
    numbers = [sorted(set(texts)).index(text) for text in texts]
    hashes = np.array([[n % 2 for n in numbers], [n // 2 for n in numbers]], np.uint64)
    out = np.empty(4, np.int64)
    columns.text_ends(data, ends, hashes, out)
    low, lows, high, highs = out.tolist()
    assert (texts[low], lows) == (min(texts), texts.count(min(texts)))
    assert (texts[high], highs) == (max(texts), texts.count(max(texts)))
