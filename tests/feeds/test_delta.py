"""The change feed of Delta tables, which deltalake writes."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.feeds.addresses import opened
from holdfast.feeds.contract import Bounds, Feed, Given
from holdfast.feeds.followed import FeedTable, Followed
from holdfast.input.row_input import Columns
from holdfast.model.errors import InputError, SetupError, SourceError, UnreachableError
from tests.feeds.following import follow, profiled, stored
from tests.feeds.reading import EVERYTHING, Multiset, applied, read, steps
from tests.strategies import examples

deltalake = pytest.importorskip("deltalake")

FEED = {"delta.enableChangeDataFeed": "true"}
COLUMNS = ("id", "s")


def feed(path: Path, **options: str) -> Feed:
    return opened(f"delta:{path}", Given("t", Columns.of([], [], []), options=options))


def rows(*ids: int, s: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": pa.array([s] * len(ids), pa.string())})


def write(path: Path, table: pa.Table, mode: str = "append", **settings: Any) -> None:
    deltalake.write_deltalake(path, table, mode=mode, configuration=FEED, **settings)


def content(path: Path) -> Multiset:
    table = pa.table(deltalake.DeltaTable(path).scan())
    return Counter((row["id"], row["s"]) for row in table.to_pylist())


def brief(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(
        (row["_commit_version"], row["_change_type"], row["id"], row["s"])
        for row in table.to_pylist()
    )


def followed(feed: Feed, bounds: Bounds = EVERYTHING) -> Multiset:
    rows: Multiset = Counter()
    for step in steps(feed, None, bounds):
        rows = applied(rows, step.changes, COLUMNS)
    return rows


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table of five versions: rows that come, an update, a delete, and an overwrite."""
    path = tmp_path / "lake"
    write(path, rows(1, 2, 3))
    write(path, rows(4))
    deltalake.DeltaTable(path).update(predicate="id = 2", updates={"s": "'B'"})
    deltalake.DeltaTable(path).delete("id = 1")
    write(path, rows(9, s="z"), "overwrite")
    return path


def test_every_change_is_read_with_its_version(lake: Path) -> None:
    step = feed(lake).read(None, EVERYTHING)
    assert step is not None
    assert step.span == "versions 0 to 4"
    assert step.position == feed(lake).head()
    assert step.changes is not None
    assert step.changes.order == ("_commit_version",)
    table = read(step)
    assert table.schema == pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.string()),
            ("_change_type", pa.string()),
            ("_commit_version", pa.int64()),
        ]
    )
    assert brief(table) == [
        (0, "insert", 1, "a"),
        (0, "insert", 2, "a"),
        (0, "insert", 3, "a"),
        (1, "insert", 4, "a"),
        (2, "update_postimage", 2, "B"),
        (2, "update_preimage", 2, "a"),
        (3, "delete", 1, "a"),
        (4, "delete", 2, "B"),
        (4, "delete", 3, "a"),
        (4, "delete", 4, "a"),
        (4, "insert", 9, "z"),
    ]
    assert feed(lake).read(step.position, EVERYTHING) is None
    assert feed(lake).behind(step.position) == ""
    assert feed(lake).behind(None) == "5 versions"


@pytest.mark.parametrize("bounds", [Bounds(versions=1), Bounds(versions=2), Bounds(rows=1)])
def test_a_bounded_step_goes_on_where_the_one_before_ended(lake: Path, bounds: Bounds) -> None:
    spans = [step.span for step in steps(feed(lake), None, bounds)]
    assert len(spans) == (3 if bounds.versions == 2 else 5)
    assert followed(feed(lake), bounds) == content(lake) == {(9, "z"): 1}


def test_rows_bound_a_step_to_whole_versions(lake: Path) -> None:
    spans = [step.span for step in steps(feed(lake), None, Bounds(rows=5))]
    assert spans == ["versions 0 to 1", "versions 2 to 3", "version 4"]


def test_maintenance_changes_no_rows(tmp_path: Path) -> None:
    write(tmp_path, rows(1))
    write(tmp_path, rows(2))
    before = feed(tmp_path).head()
    deltalake.DeltaTable(tmp_path).optimize.compact()
    step = feed(tmp_path).read(before, EVERYTHING)
    assert read(step).num_rows == 0


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["append", "overwrite", "update", "delete", "compact", "restore"]),
        st.integers(0, 5),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(OPERATIONS, st.integers(1, 4), st.booleans())
def test_the_rows_after_all_steps_are_those_of_the_table(
    tmp_path_factory: pytest.TempPathFactory,
    operations: list[tuple[str, int, int]],
    bound: int,
    by_rows: bool,
) -> None:
    path = tmp_path_factory.mktemp("law") / "t"
    write(path, rows(0, 1, 1))
    for number, (what, id_, other) in enumerate(operations):
        table = deltalake.DeltaTable(path)
        if what in ("append", "overwrite"):
            write(path, rows(*range(id_), *[other] * 2, s=f"{number}"), what)
        elif what == "update":
            table.update(predicate=f"id >= {id_}", updates={"s": f"'{number}'"})
        elif what == "delete":
            table.delete(f"id = {id_} or id = {other}")
        elif what == "compact":
            table.optimize.compact()
        elif table.version():
            table.restore(min(id_, table.version() - 1))
    bounds = Bounds(rows=bound) if by_rows else Bounds(versions=bound)
    assert followed(feed(path), bounds) == content(path)
    deltalake.DeltaTable(path).create_checkpoint()
    assert followed(feed(path, start="snapshot"), bounds) == content(path)
    shutil.rmtree(path)


@pytest.mark.parametrize("versions", [1, 2, None])
def test_a_profile_follows_a_table(lake: Path, tmp_path: Path, versions: int | None) -> None:
    store = profiled(tmp_path / "p", {"t": {"id": pa.int64(), "s": pa.string()}})
    table = Followed("lake", f"delta:{lake}", (FeedTable("t"),))
    follow(store, table, versions=versions)
    assert sorted(stored(store)) == [(9, "z")]
    write(lake, rows(1, 9, 9, s="z"))
    deltalake.DeltaTable(lake).update(predicate="id = 1", updates={"s": "'B'"})
    course = follow(store, table, versions=versions)
    assert not course.failed
    assert sorted(stored(store)) == [(1, "B"), (9, "z"), (9, "z"), (9, "z")]
    assert store.read().feeds["lake"].position["version"] == 6
    assert follow(store, table).steps == 0
    snapshot = replace(table, options={"start": "snapshot"})
    assert follow(store, snapshot, reset=True).steps == 1
    assert Counter(stored(store)) == content(lake)


def test_types_are_those_that_holdfast_reads(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901)
    table = pa.table(
        {
            "day": pa.array(["x", "y"]),  # the partitions
            "b": pa.array([b"\0", None], pa.binary()),
            "l": pa.array([["a"], None], pa.list_(pa.string())),
            "r": pa.array([{"k": "v"}, None], pa.struct([("k", pa.string())])),
            "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "local": pa.array([moment, None], pa.timestamp("us")),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "i": pa.array([1, None], pa.int8()),
        }
    )
    write(tmp_path, table, partition_by=["day"])
    for start in ("beginning", "snapshot"):
        given = read(feed(tmp_path, start=start).read(None, EVERYTHING)).sort_by("day")
        assert given.select(table.column_names) == table
    assert given.column("at")[0].as_py() == moment.replace(tzinfo=UTC)


def test_the_rows_of_a_step_have_the_columns_of_its_last_version(tmp_path: Path) -> None:
    write(tmp_path, rows(1))
    write(tmp_path, rows(2).append_column("n", pa.array([5])), schema_mode="merge")
    first, second = steps(feed(tmp_path), None, Bounds(versions=1))
    assert "n" not in read(first).column_names
    both = read(feed(tmp_path).read(None, EVERYTHING)).sort_by("id")
    assert both.column("n").to_pylist() == [None, 5]
    assert read(second).column("n").to_pylist() == [5]


def test_a_snapshot_takes_the_place_of_all_rows(lake: Path) -> None:
    step = feed(lake, start="snapshot").read(None, EVERYTHING)
    assert step is not None
    assert step.changes is not None
    assert step.changes.replaces
    assert step.span == "all rows of version 4"
    assert read(step).select(["id", "s", "_change_type"]).to_pylist() == [
        {"id": 9, "s": "z", "_change_type": "insert"}
    ]
    assert feed(lake, start="snapshot").read(step.position, EVERYTHING) is None


def test_a_feed_starts_after_the_version_that_the_profile_has(lake: Path) -> None:
    step = feed(lake, start="3").read(None, EVERYTHING)
    assert {row[0] for row in brief(read(step))} == {4}
    assert feed(lake, start="4").read(None, EVERYTHING) is None
    assert feed(lake, start="3").behind(None) == "1 version"


# Deletion vectors, which deltalake reads and does not write: their log is written here.


def _z85(data: bytes) -> str:
    letters = (
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    text = ""
    for word in struct.iter_unpack(">I", data + bytes(-len(data) % 4)):
        text += "".join(letters[word[0] // 85**place % 85] for place in (4, 3, 2, 1, 0))
    return text


def _vector(positions: list[int]) -> dict[str, Any]:
    """The deletion vector of some rows, as it stands in the log."""
    array = struct.pack(f"<{len(positions)}H", *positions)
    roaring = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + array
    data = struct.pack("<IQI", 1681511377, 1, 0) + roaring
    size = {"sizeInBytes": len(data), "cardinality": len(positions)}
    return {"storageType": "i", "pathOrInlineDv": _z85(data), **size}


def _versions(folder: Path, dead: list[list[int]]) -> Iterator[list[dict[str, Any]]]:
    file = folder / "a.parquet"
    pq.write_table(rows(*range(10)), file)
    about: dict[str, Any] = {"path": file.name, "partitionValues": {}, "dataChange": True}
    about["size"] = file.stat().st_size
    times = {"modificationTime": 1, "stats": json.dumps({"numRecords": 10})}
    kinds = {"id": "long", "s": "string"}
    fields = [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in kinds.items()]
    features = {"readerFeatures": ["deletionVectors"]}
    features |= {"writerFeatures": ["deletionVectors", "changeDataFeed"]}
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata: dict[str, Any] = {"id": "3f1b", "format": {"provider": "parquet", "options": {}}}
    metadata |= {"schemaString": schema, "partitionColumns": [], "createdTime": 1}
    metadata["configuration"] = FEED | {"delta.enableDeletionVectors": "true"}
    yield [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": metadata},
        {"add": about | times},
    ]
    for before, after in zip([[], *dead], dead, strict=False):
        old = {"deletionVector": _vector(before)} if before else {}
        new = {"deletionVector": _vector(after)} if after else {}
        yield [
            {"remove": about | {"deletionTimestamp": 1, "extendedFileMetadata": True} | old},
            {"add": about | times | new},
        ]


def test_rows_that_deletion_vectors_take_away_and_give_back(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version, actions in enumerate(_versions(tmp_path, [[2, 5], [2, 5, 7], [2]])):
        lines = [{"commitInfo": {"timestamp": version, "operation": "DELETE"}}, *actions]
        (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, lines)))
    assert content(tmp_path) == Counter((i, "a") for i in range(10) if i != 2)
    for bounds in (EVERYTHING, Bounds(versions=1)):
        assert followed(feed(tmp_path), bounds) == content(tmp_path)
    assert followed(feed(tmp_path, start="snapshot")) == content(tmp_path)
    step = feed(tmp_path, start="0").read(None, EVERYTHING)
    assert [(v, op, i) for v, op, i, _ in brief(read(step))] == [
        (1, "delete", 2),
        (1, "delete", 5),
        (2, "delete", 7),
        (3, "insert", 5),
        (3, "insert", 7),
    ]


# What cannot be followed


@pytest.mark.parametrize("start", ["beginning", "snapshot"])
@pytest.mark.parametrize(("mode", "named"), [("name", "col-1"), ("id", "another")])
def test_a_table_with_column_mapping(tmp_path: Path, mode: str, named: str, start: str) -> None:
    """Of which deltalake reads no changes, and in the mode ``id`` nulls, without a word."""
    ids = pa.field(named, pa.int64(), metadata={b"PARQUET:field_id": b"1"})
    pq.write_table(pa.table({named: [1, 2]}, pa.schema([ids])), tmp_path / "a.parquet")
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    field = {"name": "id", "type": "long", "nullable": True, "metadata": mapped}
    schema = json.dumps({"type": "struct", "fields": [field]})
    metadata: dict[str, Any] = {"id": "3f1b", "format": {"provider": "parquet", "options": {}}}
    metadata |= {"schemaString": schema, "partitionColumns": [], "createdTime": 1}
    metadata["configuration"] = FEED | {"delta.columnMapping.mode": mode}
    size = (tmp_path / "a.parquet").stat().st_size
    about = {"path": "a.parquet", "partitionValues": {}, "dataChange": True, "size": size}
    lines = [
        {"commitInfo": {"timestamp": 1, "operation": "WRITE"}},
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": metadata},
        {"add": about | {"modificationTime": 1}},
    ]
    (tmp_path / "_delta_log").mkdir()
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(SourceError, match=rf"column mapping .*'{mode}'.*--snapshot"):
        feed(tmp_path, start=start).read(None, EVERYTHING)


def test_a_table_without_a_change_data_feed(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, rows(1))
    for start in ("beginning", "snapshot"):
        with pytest.raises(SourceError, match=r"has no change data feed; turn it on with ALTER"):
            feed(tmp_path, start=start).read(None, EVERYTHING)
    deltalake.DeltaTable(tmp_path).alter.set_table_properties(FEED)
    with pytest.raises(SourceError, match="version 0 was written without a change data feed"):
        feed(tmp_path).read(None, EVERYTHING)
    step = feed(tmp_path, start="snapshot").read(None, EVERYTHING)
    assert read(step).num_rows == 1


def test_a_feed_that_was_turned_off_for_a_while(tmp_path: Path) -> None:
    write(tmp_path, rows(1))
    before = feed(tmp_path).head()
    for on in ("false", "true"):
        table = deltalake.DeltaTable(tmp_path)
        table.alter.set_table_properties({"delta.enableChangeDataFeed": on})
    with pytest.raises(SourceError, match="version 1 was written without a change data feed"):
        feed(tmp_path).read(before, EVERYTHING)


def test_a_vacuumed_version_is_an_error_that_says_what_to_do(lake: Path) -> None:
    table = deltalake.DeltaTable(lake)
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    step = feed(lake).read(None, EVERYTHING)
    with pytest.raises(SourceError, match=r"is not there any more.*--reset-position and.*snapshot"):
        read(step)


def test_a_cleaned_log_is_an_error_that_says_what_to_do(lake: Path) -> None:
    deltalake.DeltaTable(lake).create_checkpoint()
    for version in range(4):
        (lake / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(SourceError, match="start=snapshot"):
        feed(lake).read(None, EVERYTHING)
    assert followed(feed(lake, start="snapshot")) == content(lake)


def test_a_future_version_and_another_table(lake: Path, tmp_path: Path) -> None:
    head = feed(lake).head()
    shutil.rmtree(lake)
    write(lake, rows(1))
    with pytest.raises(SourceError, match="this is another table than the one that was followed"):
        feed(lake).read(head, EVERYTHING)
    there = feed(lake).head()
    with pytest.raises(SourceError, match="at version 7, but the newest one of the table is 0"):
        feed(lake).read({**there, "version": 7}, EVERYTHING)
    with pytest.raises(SourceError, match="at version 3, but the newest one of the table is 0"):
        feed(lake, start="3").read(None, EVERYTHING)
    with pytest.raises(SourceError, match="gone: there is no Delta table"):
        feed(tmp_path / "gone").head()
    (lake / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(SourceError, match="the Delta table cannot be read"):
        feed(lake).head()


def test_what_makes_no_sense_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no option 'bootstrap'; it has start"):
        feed(tmp_path, bootstrap="x")
    with pytest.raises(InputError, match="start is 'now'; expected beginning, snapshot"):
        feed(tmp_path, start="now")
    with pytest.raises(InputError, match="give the path of the table"):
        opened("delta:", Given("t", Columns.of([], [], [])))
    with pytest.raises(InputError, match="says itself what happened"):
        opened("delta:x", Given("t", Columns.of([], [], []), op_column="op"))
    for address in ("delta:abfss://c@a.net/t?sig=s3cret", "delta:s3://key:s3cret@bucket/t"):
        with pytest.raises(InputError, match="a key or a password in it") as refused:
            opened(address, Given("t", Columns.of([], [], [])))
        assert "s3cret" not in str(refused.value)


def test_a_store_that_does_not_answer_may_later(monkeypatch: pytest.MonkeyPatch) -> None:
    about = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "AWS_REGION": "us-east-1",
    }
    for name, value in about.items():
        monkeypatch.setenv(name, value)
    away = opened("delta:s3://bucket/lake", Given("t", Columns.of([], [], [])))
    with pytest.raises(UnreachableError, match=r"s3://bucket/lake: .* cannot be read") as error:
        away.head()
    assert "\x1b" not in str(error.value)
    assert "s3cret" not in str(error.value)


def test_what_has_to_be_installed_is_said(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(deltalake.DeltaTable, "scan")
    with pytest.raises(SetupError, match="the one that is installed is too old"):
        feed(lake).head()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SetupError, match=r"pip install 'holdfast\[delta\]'"):
        feed(lake).head()
