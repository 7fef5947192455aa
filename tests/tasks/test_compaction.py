"""Segments merged, sorted and described: the rows stay the same, and ids say where they went."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from holdfast.model import thresholds
from holdfast.model.records import from_form
from holdfast.table import compaction as upkeep
from holdfast.tasks import compaction as tasks
from holdfast.tasks.encode import layout
from holdfast.tasks.ingest import Ingest, ingest
from holdfast.tasks.segments import (
    ROWS,
    Segment,
    chain_name,
    live_positions,
    map_arrays,
    map_chains,
    map_words,
    read_raw,
    row_codes,
    with_dead,
)
from holdfast.tasks.view import Among, View, bounds, divided
from tests.kernels.test_chains import TAX

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
PREFIX = "data/*-0123456789ab-"


def written(root: Path, numbers: range, first: int = 1) -> list[Segment]:
    """Rows ``(n, "n mod 7")`` as segments; nulls in between."""
    cells = [
        pa.array([None if n % 11 == 0 else n for n in numbers], pa.int64()),
        pa.array([str(n % 7) for n in numbers]),
    ]
    return segments_of(root, pa.table(cells, schema=SCHEMA), (ROWS, "0"), first)


def segments_of(
    root: Path, rows: pa.Table, indexes: tuple[str, ...], first: int = 1
) -> list[Segment]:
    (root / "data").mkdir(exist_ok=True)
    spec = Ingest(str(root), PREFIX, rows.schema, tuple(rows.column_names), indexes=indexes)
    *task_results, _counts = ingest(iter(rows.to_batches(max_chunksize=6)), spec)
    return [
        Segment(first + k, p.facts["rows"], p.facts["rows"], p.facts["words"], p.facts["raw"],
                None, p.facts["indexes"])
        for k, p in enumerate(task_results)
    ]  # fmt: skip


def view(root: Path, segments: list[Segment], nulls_equal: bool = True) -> View:
    return View(str(root), tuple(segments), layout(SCHEMA).widths, nulls_equal)


def raw(root: Path, segment: Segment) -> list[tuple[int | None, str]]:
    table = read_raw(root, segment, live_positions(root, segment))
    return list(zip(table["c0"].to_pylist(), table["c1"].to_pylist(), strict=True))


@pytest.mark.parametrize("keep_raw", [True, False])
def test_merge(tmp_path: Path, keep_raw: bool) -> None:
    parts = [written(tmp_path, range(20))[0], written(tmp_path, range(20, 45), 2)[0]]
    parts += written(tmp_path, range(45, 48), 3)
    parts[0] = with_dead(tmp_path, parts[0], np.arange(0, 20, 2), "data/dead-0123456789ab-1")
    parts[2] = with_dead(tmp_path, parts[2], np.arange(3), "data/dead-0123456789ab-2")
    expected = raw(tmp_path, parts[0]) + raw(tmp_path, parts[1])
    words = np.concatenate(
        [view(tmp_path, parts).rows(s, live_positions(tmp_path, s)) for s in parts]
    )
    if not keep_raw:
        parts = [replace(s, raw=None) for s in parts]
    ids = np.array([(1 << 32) + 1, (1 << 32) + 19, (2 << 32) + 0, (2 << 32) + 24])
    (task_result,) = tasks.merge(
        tasks.MergeSegments(view(tmp_path, parts), PREFIX, 9, (ROWS, "1"), ids)
    )
    merged = from_form(Segment, task_result.facts["segment"])
    assert (merged.number, merged.rows, merged.live, merged.dead) == (9, 35, 35, None)
    assert np.array_equal(map_words(tmp_path, merged).whole(), words)
    assert task_result.arrays["old"].tolist() == ids.tolist()
    assert (task_result.arrays["new"] - merged.base).tolist() == [0, 9, 10, 34]
    assert set(merged.indexes) == {ROWS, "1"}
    assert (merged.raw is None) == (not keep_raw)
    if keep_raw:
        assert raw(tmp_path, merged) == expected


def test_examples_11_and_12_of_chains_in_segments(tmp_path: Path) -> None:
    """IncDC's row t9: an index of its own beside that of the old rows, then in its place."""
    name = chain_name([], [0, 1])
    numbers = pa.table([pa.array(TAX[each]) for each in ("Date", "NUM")], names=["c0", "c1"])
    [old] = segments_of(tmp_path, numbers.slice(0, 7), (name,))
    [batch] = segments_of(tmp_path, numbers.slice(9), (name,), 2)
    whole = View(str(tmp_path), (old, batch), layout(numbers.schema).widths, True)
    none = np.empty(0, np.int64)
    [task_result] = tasks.merge(tasks.MergeSegments(whole, PREFIX, 3, (name,), none))
    merged = from_form(Segment, task_result.facts["segment"])
    chains = [map_chains(tmp_path, each, name) for each in (old, batch, merged)]
    assert [facts["rank"] for _, facts in chains] == [1, 1, 1]
    # The batch's row is the eighth of the merged ones.
    rows = [index.positions.tolist() for index, _ in chains]
    assert rows == [[3, 5, 1, 4, 0, 2, 6], [0], [3, 5, 1, 4, 0, 2, 7, 6]]


def test_build_sorts_only_what_is_missing(tmp_path: Path) -> None:
    (segment,) = written(tmp_path, range(30))
    (task_result,) = tasks.build(tasks.Build(view(tmp_path, [segment]), PREFIX, (ROWS, "0", "1")))
    assert list(task_result.facts["indexes"]) == ["1"]
    arrays, _ = map_arrays(tmp_path / task_result.facts["indexes"]["1"])
    column = map_words(tmp_path, segment).whole()[:, 1].view(np.int64)
    assert arrays["codes"].tolist() == sorted(column.tolist())
    assert arrays["codes"].tolist() == column[arrays["positions"]].tolist()
    rows, _ = map_arrays(tmp_path / segment.indexes[ROWS])
    assert np.array_equal(
        rows["codes"], np.sort(row_codes(map_words(tmp_path, segment).whole()).view(np.int64))
    )


def test_describe_counts_living_rows(tmp_path: Path) -> None:
    (segment,) = written(tmp_path, range(100))
    segment = with_dead(tmp_path, segment, np.arange(50, 100), "data/dead-0123456789ab-1")
    task_results = list(tasks.describe(tasks.Describe(view(tmp_path, [segment]))))
    known = tasks.estimates(task_results, 2)
    assert known.distinct == [46.0, 7.0]  # 45 numbers and a null
    assert 0.1 < known.agreeing[1] < 0.17  # one pair in 7
    assert known.agreeing[0] < 0.01
    assert tasks.estimates([], 2) == ([0.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize("nulls_equal", [True, False])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_ranges_of_codes_hold_every_row_once(tmp_path: Path, nulls_equal: bool, parts: int) -> None:
    segments = [*written(tmp_path, range(-20, 60)), *written(tmp_path, range(-20, 60), 2)]
    segments[0] = with_dead(tmp_path, segments[0], np.array([3, 4]), "data/dead-0123456789ab-1")
    whole = view(tmp_path, segments, nulls_equal)
    cuts = bounds(whole, "0", parts)
    assert cuts == sorted(set(cuts))
    assert len(cuts) < parts
    found = []
    for low, high in zip([-(1 << 63), *cuts], [*cuts, None], strict=True):
        rows, ids = whole.between("0", low, high)
        found += ids.tolist()
        codes = rows[:, 0].view(np.int64)
        assert (codes >= low).all()
        assert high is None or (codes < high).all()
    expected = []
    for segment in segments:
        live = live_positions(tmp_path, segment)
        if not nulls_equal:
            live = live[(map_words(tmp_path, segment).whole()[live, -1] & np.uint64(1)) == 0]
        expected += (live + segment.base).tolist()
    assert sorted(found) == sorted(expected)


def test_rows_that_are_alone_in_their_code_are_not_brought_together(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    numbers = np.random.default_rng(1).integers(-(1 << 62), 1 << 62, 2_000)
    numbers[[5, 1_500]] = 77
    segments = [numbered(tmp_path, numbers[:900].tolist(), 1)]
    segments.append(numbered(tmp_path, numbers[900:].tolist(), 2))
    _, ids = view(tmp_path, segments).between("0", -(1 << 63), None)
    assert {segments[0].base + 5, segments[1].base + 600} <= {*ids.tolist()}
    assert len(ids) < 400


def sized(number: int, live: int, rows: int | None = None) -> Segment:
    return Segment(number, rows or live, live, "w", None)


WORDS = 4
"""Of a row: few enough that rows bound a segment, and not bytes."""


def test_segments_are_merged_in_tiers() -> None:
    small = [sized(n, 100) for n in range(1, 9)]
    assert upkeep.due(tuple(small[:7]), WORDS) == []
    assert upkeep.due(tuple(small), WORDS) == [tuple(small)]
    large = [sized(n, 50_000) for n in range(20, 27)]
    assert upkeep.due((*large, *small[:7]), WORDS) == []
    assert upkeep.due((*large, *small), WORDS) == [tuple(small)]
    full = [sized(n, thresholds.current.segment_rows) for n in range(30, 50)]
    assert upkeep.due(tuple(full), WORDS) == []
    many = [sized(n, 100) for n in range(1, 65)]
    assert upkeep.due(tuple(many), WORDS) == [tuple(many)], "one file of each kind, not eight"


def test_large_segments_are_merged_when_they_fill_one() -> None:
    fifths = [sized(n, 200_000) for n in range(1, 7)]
    assert upkeep.due(tuple(fifths[:5]), WORDS) == []
    assert upkeep.due(tuple(fifths), WORDS) == [tuple(fifths[:5])]
    more_than_half = [sized(n, 600_000) for n in range(10, 20)]
    assert upkeep.due(tuple(more_than_half), WORDS) == []


@pytest.mark.parametrize("size", [900, 30_000, 150_000, 250_000, 400_000])
def test_segments_stay_few_and_rows_are_seldom_rewritten(size: int) -> None:
    """Batches of one size, one after the other: what is held, and what is written for that."""
    segments: tuple[Segment, ...] = ()
    numbers = count(1)
    batches, rewritten = 20_000_000 // size, 0
    for _ in range(batches):
        segments = (*segments, sized(next(numbers), size))
        for group in upkeep.due(segments, WORDS):
            live = sum(each.live for each in group)
            assert live <= thresholds.current.segment_rows
            rewritten += live
            gone = {each.number for each in group}
            segments = tuple(each for each in segments if each.number not in gone)
            segments = (*segments, sized(next(numbers), live))
    rows = sum(each.live for each in segments)
    assert rows == batches * size
    full = 2 * -(-rows // thresholds.current.segment_rows)
    assert len(segments) <= full + 4 * thresholds.current.merged_segments
    assert rewritten <= 4 * rows


def test_a_segment_that_is_mostly_deleted_is_rewritten() -> None:
    half = sized(1, 5_000, 10_000)
    less = sized(2, 4_999, 10_000)
    assert upkeep.due((half, less), WORDS) == [(less,)]
    assert upkeep.due((sized(3, 10, 100),), WORDS) == []


def test_wide_rows_fill_a_segment_sooner() -> None:
    """1,000 columns of text: 16 kB a row."""
    words, most = 2_016, 16_644
    quarters = [sized(n, 4_000) for n in range(1, 10)]
    groups = upkeep.due(tuple(quarters), words)
    assert [sum(s.live for s in group) for group in groups] == [16_000, 16_000]
    assert upkeep.due(tuple(sized(n, most) for n in range(20)), words) == []


def test_small_segments_are_joined_as_they_were_read() -> None:
    few = tuple(sized(n, 10) for n in range(64))
    assert upkeep.small(few, WORDS) == [few]
    worth = thresholds.current.joined_bytes // (8 * WORDS)
    medium = tuple(sized(n, worth // 4) for n in range(8))
    assert upkeep.small(medium, WORDS) == [medium[:4], medium[4:]]
    enough = tuple(sized(n, worth) for n in range(64))
    assert upkeep.small(enough, WORDS) == []
    assert upkeep.small((enough[0], few[1], enough[2]), WORDS) == []


def numbered(root: Path, numbers: list[int], first: int) -> Segment:
    """A segment of such rows, the second cell an empty text."""
    spec = Ingest(str(root), PREFIX, SCHEMA, ("a", "b"), indexes=("0",))
    cells = [pa.array(numbers, pa.int64()), pa.array([""] * len(numbers))]
    rows = pa.table(cells, schema=SCHEMA).to_batches()
    (facts,) = [each.facts for each in ingest(iter(rows), spec) if "words" in each.facts]
    files = (facts["words"], facts["raw"], None, facts["indexes"])
    return Segment(first, len(numbers), len(numbers), *files)


def test_many_small_segments_do_not_decide_where_a_large_one_is_cut(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    segments = [numbered(tmp_path, [*range(9_000)], 1)]
    segments += [numbered(tmp_path, [*range(9_000, 9_020)], 2 + k) for k in range(30)]
    cuts = bounds(view(tmp_path, segments), "0", 2)
    assert len(cuts) == 1
    assert abs(cuts[0] - 4_800) < 100


@pytest.mark.parametrize(("most", "heavy_from"), [(100, 100), (100, 500), (30, 30), (1_000, 1_000)])
def test_heavy_codes_are_left_out_of_ranges(tmp_path: Path, most: int, heavy_from: int) -> None:
    """All rows are in one range, or have a heavy code; no range has many more rows than asked for
    unless they have one code."""
    (tmp_path / "data").mkdir()
    random = np.random.default_rng(most)
    numbers = np.concatenate(
        [np.repeat([7, 8, 500], [900, 300, 120]), np.repeat(random.integers(0, 900, 450), 2)]
    )
    random.shuffle(numbers)
    segments = [
        numbered(tmp_path, each.tolist(), 1 + k)
        for k, each in enumerate(np.array_split(numbers, [1_000, 1_300]))
    ]
    whole = view(tmp_path, segments)
    ranges, heavy, share = divided(whole, "0", most, heavy_from)
    found: list[int] = []
    for low, high in ranges:
        rows, ids = whole.between("0", low, high)
        found += ids.tolist()
        codes = rows[:, 0].view(np.int64)
        # A step of an index is at most 3 rows here, in each of three segments.
        assert len(ids) <= max(most, heavy_from) + 9 or len(np.unique(codes)) == 1
        assert not np.isin(codes, heavy).any()
    among = Among("0", heavy)
    left = [whole.having(each, among) + each.base for each in segments]
    assert sorted([*found, *np.concatenate(left).tolist()]) == sorted(
        each.base + position for each in segments for position in range(each.rows)
    )
    expected = {code for code in (7, 8, 500) if (numbers == code).sum() > heavy_from}
    assert set(heavy.tolist()) == expected
    assert abs(share - np.isin(numbers, [*expected]).mean()) < 0.01
