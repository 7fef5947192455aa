"""Rows become segments: all of them, whole, sorted as asked; bad data becomes a report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast.runtime.result import TaskResult, unpack
from holdfast.tasks import text
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.encode import encode, layout
from holdfast.tasks.ingest import Ingest, infer, ingest, learn
from holdfast.tasks.json_types import JsonForm
from holdfast.tasks.segments import (
    ROWS,
    Segment,
    look_up,
    map_arrays,
    map_words,
    read_raw,
    row_codes,
    with_dead,
)
from tests.limits import varied

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string()), ("c2", pa.float64())])


def spec(root: Path, **given: Any) -> Ingest:
    (root / "data").mkdir(exist_ok=True)
    names = tuple(field.name for field in given.get("schema", SCHEMA))
    settings = {"schema": SCHEMA, "names": names, **given}
    return Ingest(str(root), "data/*-0123456789ab-", **settings)


def table(count: int) -> pa.Table:
    return pa.table(
        [
            pa.array([None if n % 5 == 4 else n // 2 for n in range(count)], pa.int64()),
            pa.array([f"v{n % 3}" for n in range(count)]),
            pa.array([n * 0.5 for n in range(count)]),
        ],
        schema=SCHEMA,
    )


def segment(task_result: TaskResult, number: int = 1) -> Segment:
    facts = task_result.facts
    return Segment(
        number, facts["rows"], facts["rows"], facts["words"], facts["raw"], None, facts["indexes"]
    )


def ingested(batches: Iterator[pa.RecordBatch], told: Ingest) -> list[TaskResult]:
    """All task results but the last, which says that every record became a row."""
    *task_results, last = ingest(batches, told)
    counts = last.facts["counts"]
    assert counts["rows"] == sum(
        each.facts["rows"] for each in task_results if "words" in each.facts
    )
    if not any(each.facts.get("trouble") or each.facts.get("misfit") for each in task_results):
        assert counts["records"] == counts["rows"]
    return task_results


def lines(texts: list[str], origins: list[int | None] | None = None) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([f"{text}\n".encode() for text in texts], pa.binary()),
            pa.array(origins or [None] * len(texts), pa.int64()),
        ],
        names=["line", "origin"],
    )


@pytest.mark.parametrize("size", [3, 7, 1 << 20])
@pytest.mark.parametrize("chunk", [1, 5, 100])
def test_segments_hold_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, chunk: int
) -> None:
    varied(monkeypatch, segment_rows=size, raw_rows=2)
    rows = table(17)
    told = spec(tmp_path, indexes=(ROWS, "0", "1"))
    segments = [segment(p) for p in ingested(iter(rows.to_batches(max_chunksize=chunk)), told)]
    assert [s.rows for s in segments] == [size] * (17 // size) + [17 % size or size][: 17 % size]
    start = 0
    for each in segments:
        part = rows.slice(start, each.rows).combine_chunks()
        words = map_words(tmp_path, each).whole()
        fresh = encode(part.to_batches()[0], layout(SCHEMA)).view(np.uint64).T
        assert np.array_equal(words, fresh)
        order = np.random.default_rng(0).permutation(each.rows)
        assert read_raw(tmp_path, each, order).equals(part.take(pa.array(order)))
        for name in (ROWS, "0", "1"):
            at = {"0": 0, "1": 1}
            codes = row_codes(words) if name == ROWS else words[:, at[name]].copy()
            lo, hi, positions = look_up(tmp_path, each, name, codes)
            for row, code in enumerate(codes):
                found = set(positions[lo[row] : hi[row]].tolist())
                assert found == set(np.flatnonzero(codes == code).tolist())
        start += each.rows


def test_segments_are_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 100 columns of text have 202 words."""
    varied(monkeypatch, segment_bytes=10 * 202 * 8 + 7)
    schema = pa.schema([(f"c{c}", pa.string()) for c in range(100)])
    rows = pa.table([pa.array([f"{n}" for n in range(25)])] * 100, schema=schema)
    told = spec(tmp_path, schema=schema)
    segments = [segment(p) for p in ingested(iter(rows.to_batches()), told)]
    assert [s.rows for s in segments] == [10, 10, 5]
    assert [map_words(tmp_path, s).rows.nbytes for s in segments] == [16_160, 16_160, 8_080]
    varied(monkeypatch, segment_bytes=1)
    segments = [segment(p) for p in ingested(iter(rows.slice(0, 3).to_batches()), told)]
    assert [s.rows for s in segments] == [1, 1, 1], "never none"


def test_wide_rows_are_encoded_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []

    def note(batch: pa.RecordBatch, layout_: Any) -> Any:
        encoded.append(batch.num_rows)
        return encode(batch, layout_)

    monkeypatch.setattr("holdfast.tasks.encode.encode", note)
    varied(monkeypatch, piece_bytes=7 * layout(SCHEMA).total * 8)
    (task_result,) = ingested(iter(table(17).to_batches()), spec(tmp_path))
    assert encoded == [7, 7, 3]
    assert task_result.facts["rows"] == 17


@pytest.mark.parametrize("whole", [False, True])
def test_wide_rows_are_parsed_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """Spark sends as many rows at once as it likes; parsed they are as large again, and encoded."""
    parsed: list[int] = []
    real = text.parse

    def parse(records: pa.Array, *rest: Any, **how: Any) -> Any:
        parsed.append(records.nbytes)
        return real(records, *rest, **how)

    monkeypatch.setattr(text, "parse", parse)
    varied(monkeypatch, piece_bytes=1_000)
    told = spec(tmp_path, lines=Dialect(), header=True, whole=whole)
    rows = ["c0,c1,c2", *(f"{n},{'x' * 40},{n / 2}" for n in range(200))]
    batch = lines(["\n".join(rows)] * 3, [1, 3, 5]) if whole else lines(rows, [1] * 201)
    segments = [segment(p) for p in ingested(iter([batch]), told)]
    assert sum(s.rows for s in segments) == (600 if whole else 200)
    assert max(parsed) < 1_500
    assert len(parsed) >= 8


def test_no_rows_are_no_segment(tmp_path: Path) -> None:
    assert list(ingested(iter(table(0).to_batches()), spec(tmp_path))) == []
    assert list(ingested(iter([]), spec(tmp_path))) == []
    assert list((tmp_path / "data").iterdir()) == []


def test_without_raw_rows(tmp_path: Path) -> None:
    (task_result,) = ingested(iter(table(4).to_batches()), spec(tmp_path, keep_raw=False))
    assert task_result.facts["raw"] is None
    with pytest.raises(ValueError, match="keeps no raw rows"):
        read_raw(tmp_path, segment(task_result), np.array([0]))


def test_fingerprints_do_not_depend_on_partitions(tmp_path: Path) -> None:
    rows = table(20)

    def total(*parts: pa.Table) -> list[int]:
        sums = np.zeros(2, np.uint64)
        for part in parts:
            for task_result in ingested(iter(part.to_batches()), spec(tmp_path)):
                sums += task_result.arrays["fingerprint"]
        return sums.tolist()

    assert total(rows) == total(rows.slice(13), rows.slice(0, 13))
    assert total(rows) != total(rows.slice(1))


def test_sketches_estimate_columns(tmp_path: Path) -> None:
    (task_result,) = ingested(iter(table(100).to_batches()), spec(tmp_path, sketches=True))
    counts = [len(np.unique(row)) for row in task_result.arrays["sketch"]]
    assert counts == [51, 3, 100]


def test_columns_in_another_order(tmp_path: Path) -> None:
    rows = table(6)
    mixed = rows.select(["c2", "c0", "c1"])
    (task_result,) = ingested(iter(mixed.to_batches()), spec(tmp_path, order=(1, 2, 0)))
    (straight,) = ingested(iter(rows.to_batches()), spec(tmp_path))
    one, two = segment(task_result), segment(straight)
    assert np.array_equal(map_words(tmp_path, one).whole(), map_words(tmp_path, two).whole())


def test_lines(tmp_path: Path) -> None:
    told = spec(tmp_path, lines=Dialect(), header=True)
    batches = [
        lines(["c0,c1,c2", "1,x,0.5", ',"y,""z""",'], [7, 7, 7]),
        lines(["2,w,1"]),
        lines(["c0,c1,c2", "3,v,2"], [9, 9]),
    ]
    (task_result,) = ingested(iter(batches), told)
    shown = read_raw(tmp_path, segment(task_result), np.arange(4)).to_pylist()
    assert [tuple(row.values()) for row in shown] == [
        (1, "x", 0.5),
        (None, 'y,"z"', None),
        (2, "w", 1.0),
        (3, "v", 2.0),
    ]


def test_lines_in_another_order(tmp_path: Path) -> None:
    told = spec(tmp_path, lines=Dialect(), order=(2, 0, 1))
    (task_result,) = ingested(iter([lines(["0.5,1,x"])]), told)
    (row,) = read_raw(tmp_path, segment(task_result), np.arange(1)).to_pylist()
    assert tuple(row.values()) == (1, "x", 0.5)


@pytest.mark.parametrize(
    ("line", "kind", "column"),
    [("1,x", "line", None), ("1,x,2,3", "line", None), ("one,x,2", "cell", "c0")],
)
def test_a_bad_line_is_reported_and_nothing_else_is_written(
    tmp_path: Path, line: str, kind: str, column: str | None
) -> None:
    told = spec(tmp_path, lines=Dialect())
    batches = iter([lines(["1,x,2"]), lines(["1,x,2", line]), lines(["4,x,2"])])
    (task_result,) = ingested(batches, told)
    trouble = task_result.facts["trouble"]
    assert (trouble["kind"], trouble["column"], trouble["line"]) == (kind, column, line)
    assert next(batches, None) is None  # the rest was read


def test_records_of_json_are_written_or_reported(tmp_path: Path) -> None:
    paths = (("id",), ("in", "name"), ("x",))
    texts = ['{"id": 1, "in": {"name": "a"}, "x": 0.5}', "", '[{"id": 2}, {"id": 3}]']
    for whole in (False, True):
        told = spec(tmp_path, json=paths, whole=whole)
        (task_result,) = ingested(iter([lines(texts, [4, 4, 6])]), told)
        assert task_result.facts["rows"] == 3
        (report,) = ingested(iter([lines([*texts, '{"id": "x"}'], [4, 4, 6, 8])]), told)
        trouble = report.facts["trouble"]
        assert (trouble["column"], trouble["expected"], trouble["origin"]) == ("c0", "bigint", 8)


def test_records_of_json_tell_their_types_or_what_is_malformed(tmp_path: Path) -> None:
    batches = [lines(['{"a": 1}', '{"b": [true]}']), lines(['{"a": 0.5}'])]
    (task_result,) = learn(iter(batches), spec(tmp_path))
    form = JsonForm.unpacked(task_result.facts["form"])
    assert {name: each.kind for name, each in form.fields.items()} == {"a": "double", "b": "array"}
    (report,) = learn(iter([*batches, lines(["{oops"], [6])]), spec(tmp_path))
    assert (report.facts["trouble"]["line"], report.facts["trouble"]["origin"]) == ("{oops", 6)


def test_types_are_guessed_from_all_lines(tmp_path: Path) -> None:
    told = spec(tmp_path, lines=Dialect(), header=True)
    batches = [lines(["c0,c1,c2", "1,x,1", "2,y,1.5"], [1, 1, 1]), lines(["3,,2"])]
    (task_result,) = infer(iter(batches), told)
    assert len(task_result.facts["votes"]) == 3
    guessed = spec(tmp_path, lines=Dialect(), header=True, guessed=True)
    votes, written = ingested(iter(batches), guessed)
    assert votes.facts == task_result.facts
    assert votes.facts["misfit"] is None
    assert written.facts["rows"] == 3
    # Types that do not fit: only the votes come back.
    narrow = pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("c2", pa.int64())])
    wrong = spec(tmp_path, schema=narrow, lines=Dialect(), header=True, guessed=True)
    (votes,) = ingested(iter(batches), wrong)
    assert votes.facts["votes"] == task_result.facts["votes"]
    assert votes.facts["misfit"]["line"] == "1,x,1"


def test_deleting_more_rows_keeps_those_that_were_deleted(tmp_path: Path) -> None:
    (task_result,) = ingested(iter(table(20).to_batches()), spec(tmp_path))
    one = with_dead(tmp_path, segment(task_result), np.array([3, 19]), "data/dead-0123456789ab-1")
    two = with_dead(tmp_path, one, np.array([0]), "data/dead-0123456789ab-2")
    assert (one.live, two.live) == (18, 17)
    bits = np.unpackbits(map_arrays(tmp_path / str(two.dead))[0]["dead"], bitorder="little")
    assert np.flatnonzero(bits).tolist() == [0, 3, 19]


def test_a_parcel_travels(tmp_path: Path) -> None:
    arrays = {
        "masks": np.arange(6, dtype=np.uint64).reshape(2, 3),
        "none": np.empty((0, 4, 2), np.int64),
        "flags": np.array([True, False]),
    }
    row = TaskResult({"ä": [1, None]}, arrays).batch()
    back = unpack(row.column(0)[0].as_py(), row.column(1)[0].as_py())
    assert back.facts == {"ä": [1, None]}
    for name, array in arrays.items():
        assert back.arrays[name].dtype == array.dtype
        assert np.array_equal(back.arrays[name], array)
