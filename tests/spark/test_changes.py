"""Change rows on Spark: files that tasks read in their order, DataFrames, and tables in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyspark.sql import DataFrame, SparkSession

from holdfast import FeedFailure, FeedStep, FeedTable, Followed, Profile, Source
from holdfast.model.errors import BatchError, InputError, SchemaError, SourceError
from tests.spark.conftest import KEYS

START = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
CDF = "id bigint, name string, _change_type string, _commit_version bigint, _commit_timestamp date"


@pytest.fixture
def profile(spark: SparkSession, tmp_path: Path) -> Profile:
    return Profile.create(tmp_path / "p", {"t": START}, options=KEYS, session=spark)


def rows(profile: Profile) -> int:
    return profile.snapshot().tables["t"].rows


def test_the_change_feed_of_a_delta_table(
    profile: Profile, frame: Callable[..., DataFrame]
) -> None:
    changes = frame(
        CDF,
        (1, "z", "update_postimage", 5, None),
        (1, "a", "update_preimage", 5, None),
        (1, "y", "update_postimage", 4, None),
        (2, "b", "delete", 4, None),
        (4, "d", "insert", 4, None),
    )
    outcome = profile.apply("t", changes=changes, row_key=["id"])
    assert (outcome.inserted, outcome.updated, outcome.deleted) == (1, 1, 1)
    again = profile.apply("t", changes=frame(CDF, (1, "z", "update_postimage", 6, None)),
                          row_key="id")  # fmt: skip
    assert (again.updated, again.unchanged) == (0, 1)
    whole = frame(CDF, (1, "z", "delete", 7, None), (9, "i", "insert", 7, None))
    assert profile.check("t", changes=whole).deleted == 1
    profile.apply("t", changes=whole)
    assert rows(profile) == 3
    assert profile.verify().equal


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "parquet"])
def test_the_rows_of_files_are_in_order(profile: Profile, tmp_path: Path, form: str) -> None:
    ops = [("I", 5, "v"), ("U", 5, "w"), ("D", 2, None), ("U", 1, "x,y")]
    path = tmp_path / f"changes.{form}"
    if form == "parquet":
        names = ["op", "id", "name"]
        columns = [pa.array(column) for column in zip(*ops, strict=True)]
        pq.write_table(pa.table(columns, names=names), path)
    elif form == "jsonl":
        lines = [json.dumps({"op": op, "id": i, "name": name, "_commit_timestamp": 3})
                 for op, i, name in ops]  # fmt: skip
        path.write_text("\n".join(lines))
    else:
        import gzip

        text = "name,op,id\n" + "".join(f'"{name or ""}",{op},{i}\n' for op, i, name in ops)
        path.write_bytes(gzip.compress(text.encode()) if form.endswith("gz") else text.encode())
    given = Source(str(path))
    outcome = profile.apply(
        "t", changes=given, row_key=["id"], op_column="op",
        op={"insert": "I", "update": "U", "delete": "D"},
    )  # fmt: skip
    assert (outcome.inserted, outcome.updated, outcome.deleted) == (1, 1, 1)
    assert profile.verify().equal
    assert profile.explain("t: key(name)").holds
    gone = profile.apply("t", deletes=pa.table({"id": [5], "name": ["w"]}))
    assert gone.deleted == 1


def test_what_is_wrong_with_changes_is_an_error(
    profile: Profile, tmp_path: Path, frame: Callable[..., DataFrame]
) -> None:
    (tmp_path / "bad.csv").write_text("op,id,name\nI,1,a\nI,x,b\n")
    (tmp_path / "more.csv").write_text("op,id,name,more\nI,1,a,b\n")
    ops = {"op_column": "op", "op": {"insert": "I"}}
    with pytest.raises(SourceError, match=r"bad\.csv, line 3, column 'id': unfit cell.*'I,x,b'"):
        profile.apply("t", changes=tmp_path / "bad.csv", **ops)  # type: ignore[call-overload]
    with pytest.raises(SchemaError, match=r"more\.csv has the column 'more'"):
        profile.apply("t", changes=tmp_path / "more.csv", **ops)  # type: ignore[call-overload]
    with pytest.raises(SourceError, match="no such file"):
        profile.apply("t", changes=tmp_path / "none.csv")
    twice = frame(CDF, (7, "z", "insert", 1, None), (7, "a", "insert", 1, None))
    with pytest.raises(BatchError, match="at the same place in their order"):
        profile.apply("t", changes=twice, row_key=["id"])
    with pytest.raises(InputError, match="leave inserts out, or changes"):
        profile.apply("t", changes=twice, inserts=START)
    with pytest.raises(InputError, match="op_column, op and order are about changes"):
        profile.apply("t", inserts=START, op_column="op")
    assert profile.snapshot().version == 1


def test_a_profile_follows_events_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    profile = Profile.create(tmp_path / "p", {"t": START}, options=KEYS, session=spark)
    folder = tmp_path / "in"
    folder.mkdir()

    def event(op: str, id_: int, name: str, lsn: int) -> str:
        row = {"id": id_, "name": name}
        before, after = (row, None) if op == "d" else (None, row)
        source = {
            "lsn": lsn,
            "snapshot": "false",
            "sequence": f'["{lsn - 1}","{lsn}"]',
            "txId": lsn,
        }
        value = {"before": before, "after": after, "op": op, "source": source}
        return json.dumps({"key": {"id": id_}, "value": value})

    first = [event("c", 4, "d", 10), event("u", 1, "__debezium_unavailable_value", 20)]
    (folder / "a.jsonl").write_text("\n".join(first))
    (folder / "b.jsonl").write_text("\n".join([event("d", 2, "b", 30), event("c", 4, "d", 10)]))
    feed = Followed(
        "events", str(folder), (FeedTable("t", ("id",)),), debezium=True,
        reading=Source(".", "json"),
    )  # fmt: skip
    told: list[FeedStep | FeedFailure] = []
    run = profile.follow(feed, max_files=1, told=told.append)
    assert (run.steps, run.failed) == (2, []), run.failed
    assert rows(profile) == 3
    assert profile.apply("t", deletes=pa.table({"id": [1], "name": ["a"]})).deleted == 1
    (status,) = profile.feeds(feed)
    assert (status.version, status.behind) == (3, "")
