"""Counting on a GPU: what can be told without one, and what only a large tile shows.

That both ways count the same is in ``test_comparisons.py``.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import comparisons, gpu, pairs, ranks
from holdfast.kernels.gpu import plan as plans
from holdfast.kernels.gpu.count import cells
from holdfast.kernels.gpu.plan import EQUAL, ORDERED, OWN, PackingPlan
from holdfast.model.comparisons import BOTH, FIRST, SECOND
from tests.card import counted
from tests.strategies import examples

# Keys, with NumPy.


def packed(
    plan: PackingPlan, rows: pairs.TileRows, layout: comparisons.WordLayout, which: int, equal: bool
) -> np.ndarray:
    """Rows of one side as the packing kernel lays them out."""
    out = np.zeros((rows.codes.shape[1], plan.columns), np.int64)
    for word in plan.words:
        for field in word.fields:
            k = field.comparison
            bit = int(layout.bit[k])
            if word.kind == OWN:
                assert rows.own is not None
                value = (rows.own[:, bit >> 6] >> np.uint64(bit & 63)).astype(np.int64)
                value &= (1 << field.bits) - 1
            else:
                codes = rows.codes[(layout.left, layout.right)[which][k]].astype(np.int64)
                null = plans.null_codes(plan.cells[k].largest, word.kind, equal)[which]
                value = np.where(codes == ranks.NULL, null, codes)
                if word.nulls:
                    mask = field.guard | field.guard >> 1
                    out[:, word.column + 1] |= np.where(codes == ranks.NULL, mask, 0)
            assert (value >> field.bits == 0).all(), "a code is larger than its field"
            assert (out[:, word.column] >> field.low == 0).all(), "fields overlap"
            out[:, word.column] |= value << field.low
    return out


def gathered(plan: PackingPlan, a: np.ndarray, b: np.ndarray, equal: bool) -> np.ndarray:
    """Keys of all pairs as the counting kernel gathers them, without their highest bits."""
    a, b = a[:, None, :], b[None, :, :]
    keys = np.zeros((a.shape[0], b.shape[1], plan.length), np.int64)
    for w, word in enumerate(plan.words):
        x, y, guards = a[..., word.column], b[..., word.column], word.guards
        if word.kind == ORDERED:
            shown = ((x - y + guards) & guards) | ((y - x + guards) >> 1 & ~guards)
            if word.nulls:
                x, y = a[..., word.column + 1], b[..., word.column + 1]
                shown &= ~(x ^ y if equal else x | y)
        elif word.kind == EQUAL:
            shown = guards - (x ^ y)
        else:
            shown = x | y
        for part in plan.parts:
            if part.word == w:
                bits = shown & part.mask
                moved = (bits << part.turn | bits >> 32 - part.turn) & plans.FULL
                assert (keys[..., part.target] & moved == 0).all(), "bits of a key overlap"
                keys[..., part.target] |= moved
    return keys


@given(st.data())
@settings(deadline=None, max_examples=examples(100))
def test_keys_say_what_words_say(data: st.DataObject) -> None:
    """Whatever the sizes of codes: every bit of every pair's word is where the plan says."""
    planes = data.draw(st.integers(1, 6))
    rows = data.draw(st.integers(1, 6))
    largest = [
        data.draw(st.sampled_from([0, 1, 2, 3, 200, 70_000, 2**31 - 4])) for _ in range(planes)
    ]
    random = np.random.default_rng(data.draw(st.integers(0, 1_000)))
    codes = np.array([random.choice([0, most // 2, most], rows) for most in largest], np.int32)
    for c in range(planes):
        if data.draw(st.booleans()):
            codes[c, random.random(rows) < 0.4] = ranks.NULL
    space = [
        (c, c, BOTH, data.draw(st.booleans()))
        for c in range(planes)
        for _ in range(data.draw(st.sampled_from([0, 1, 1, 9])))
    ]
    if planes > 1:
        ordered = data.draw(st.booleans())
        space += [(0, 1, BOTH, ordered), (1, 0, BOTH, ordered)]
        space += [(0, 1, FIRST, ordered), (0, 1, SECOND, ordered)]
    layout = comparisons.layout(space)
    for equal in (False, True):
        own = comparisons.own_words(codes, layout, equal)
        ones, others = pairs.TileRows(codes, own[0]), pairs.TileRows(codes, own[1])
        plan = plans.plan(cells(layout, ones, others), equal)
        assert plan.direct == (24 if len(plan.bits) <= 24 else 0)
        assert len({bit for bit, _, _ in plan.bits}) == len(plan.bits)
        assert all(bit % 32 < (24 if plan.direct else 31) for bit, _, _ in plan.bits)
        assert plan.length == max(1, -(-len(plan.bits) // 31))
        left, right = (
            packed(plan, side, layout, which, equal) for which, side in enumerate((ones, others))
        )
        keys = gathered(plan, left, right, equal)
        for i in range(rows):
            for j in range(rows):
                word = np.zeros(layout.width, np.uint64)
                for bit, comparison, which in plan.bits:
                    at = int(layout.bit[comparison]) + which
                    shown = int(keys[i, j, bit >> 5]) >> (bit & 31) & 1
                    word[at >> 6] |= np.uint64(shown << (at & 63))
                one = pairs.TileRows(codes[:, [i]], own[0][[i]])
                other = pairs.TileRows(codes[:, [j]], own[1][[j]])
                assert [word.tolist()] == counted("cpu", layout, one, other, equal).words.tolist()


def test_a_code_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="dense"):
        plans.plan((plans.CellFacts(EQUAL, 2**31 - 1, True),), True)


# Devices.


class Refused(RuntimeError):
    """What CUDA raises."""


def cuda(**changed: Any) -> Any:
    """As much of CuPy as is asked what there is."""

    def told(name: str, usual: Any) -> Any:
        def call(*_: Any) -> Any:
            value = changed.get(name, usual)
            if isinstance(value, Exception):
                raise value
            return value

        return call

    properties = {"name": b"A card", "major": 9, "minor": 0}
    runtime = SimpleNamespace(
        getDeviceCount=told("count", 1),
        getDeviceProperties=told("properties", properties),
        memGetInfo=told("memory", (8 << 30, 16 << 30)),
    )
    nvrtc = SimpleNamespace(getVersion=told("compiler", (12, 9)))
    device = SimpleNamespace(id=0)
    return SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, nvrtc=nvrtc, Device=lambda: device),
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
    )


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (None, "CuPy is not installed; pip install 'holdfast[gpu]' brings it."),
        (cuda(count=Refused("cudaErrorInsufficientDriver: too old\nand more")),
         "CUDA finds no GPU that it can use: cudaErrorInsufficientDriver: too old."),
        (cuda(count=0), "CUDA finds no GPU."),
        (cuda(properties={"name": b"A card", "major": 6, "minor": 1}),
         "A card is too old: compute capability 6.1 of 7.0 or more."),
        (cuda(memory=(100 << 20, 16 << 30)), "A card is full: 100 MiB free of 1,024 at least."),
        (cuda(compiler=Refused("libnvrtc.so.12: cannot open")),
         "CUDA finds no GPU that it can use: libnvrtc.so.12: cannot open."),
    ],
)  # fmt: skip
def test_why_there_is_no_gpu_is_one_sentence(
    module: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)
    there = gpu.device()
    assert (there.missing, there.usable) == (says, False)


def test_a_gpu_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cuda())
    assert gpu.device() == ("A card", 16 << 30, "")


# On a device.

needs_gpu = pytest.mark.skipif(
    not gpu.device().usable, reason=gpu.device().missing or "there is one"
)


def table(columns: int, rows: int, ordered: int) -> tuple[np.ndarray, comparisons.WordLayout]:
    """Skewed codes with nulls; the first columns are ordered."""
    random = np.random.default_rng(columns)
    codes = np.minimum(random.geometric(0.3, (columns, rows)), 9).astype(np.int32) - 1
    codes[random.random(codes.shape) < 0.05] = ranks.NULL
    return codes, comparisons.layout([(c, c, BOTH, c < ordered) for c in range(columns)])


def compare(
    layout: comparisons.WordLayout, ones: np.ndarray, others: np.ndarray, ends: np.ndarray | None
) -> None:
    """Both ways count the same, and the pairs that the GPU tells show their words."""
    for equal in (False, True):
        tile = layout, pairs.TileRows(ones), pairs.TileRows(others), equal, ends
        here, there = (counted(device, *tile, with_pairs=True) for device in ("cpu", "gpu"))
        assert np.array_equal(here.words, there.words)
        assert np.array_equal(here.counts, there.counts)
        for k in range(0, len(there.words), 1 + len(there.words) // 100):
            i, j = there.pairs[k].tolist()
            assert ends is None or j < ends[i]
            one, other = pairs.TileRows(ones[:, [i]]), pairs.TileRows(others[:, [j]])
            alone = counted("cpu", layout, one, other, equal)
            assert alone.words.tolist() == [there.words[k].tolist()]


@needs_gpu
@pytest.mark.parametrize(
    ("columns", "ordered", "rows"), [(8, 3, 3_000), (40, 20, 1_500), (222, 0, 400), (120, 60, 400)]
)
def test_usual_shapes_of_blocks(columns: int, ordered: int, rows: int) -> None:
    codes, layout = table(columns, rows, ordered)
    compare(layout, codes, codes, np.arange(rows))
    compare(layout, codes[:, :30].copy(), codes, None)
    compare(layout, codes[:, 100:130].copy(), codes, np.arange(100, 130))
    compare(layout, codes, codes[:, :30].copy(), None)


@needs_gpu
def test_frequent_words_are_found_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.kernels.gpu import count

    monkeypatch.setattr(count, "SAMPLED", 0)
    for columns, ordered in ((8, 3), (20, 12)):
        codes, layout = table(columns, 3_000, ordered)
        compare(layout, codes, codes, np.arange(3_000))


@needs_gpu
def test_a_table_of_words_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.kernels.gpu import count, source

    monkeypatch.setattr(source, "shape", lambda *_: source.LaunchShape(32, 1, 1, 4, 64))
    grown: list[int] = []
    grow = count._Count._grow

    def noted(self: count._Count) -> None:
        grown.append(1)
        grow(self)

    monkeypatch.setattr(count._Count, "_grow", noted)
    codes, layout = table(40, 1_500, 20)
    compare(layout, codes, codes, np.arange(1_500))
    assert grown


@needs_gpu
def test_a_full_device_is_an_error_of_memory() -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    codes, layout = table(8, 500, 3)
    pool.set_limit(size=1 << 20)
    try:
        with pytest.raises(MemoryError):
            compare(layout, codes, codes, None)
    finally:
        pool.set_limit(size=0)
