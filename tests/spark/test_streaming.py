"""Batches of a stream of Spark, applied by foreachBatch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from holdfast import Profile
from holdfast.model.errors import BatchError, SchemaError
from holdfast.streaming import apply_batch
from tests.spark.conftest import KEYS

START = pa.table({"id": [1, 2], "name": ["a", "b"]})
SCHEMA = "id bigint, name string, _change_type string"


def test_a_refused_batch_is_not_committed_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    profile = Profile.create(tmp_path / "p", {"t": START}, options=KEYS, session=spark)
    profile.expect("t: key(id)")
    folder = tmp_path / "in"
    folder.mkdir()

    def arrive(name: str, *rows: tuple[int, str, str]) -> None:
        lines = [json.dumps({"id": i, "name": n, "_change_type": what}) for i, n, what in rows]
        (folder / name).write_text("\n".join(lines))

    def run(on_violation: str) -> None:
        stream = spark.readStream.schema(SCHEMA).json(str(folder))
        apply = apply_batch(tmp_path / "p", "t", on_violation=on_violation)
        query = stream.writeStream.foreachBatch(apply)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    arrive("a.json", (3, "c", "insert"), (1, "a", "delete"))
    run("stop")
    assert profile.snapshot().tables["t"].rows == 2
    arrive("b.json", (3, "again", "insert"))
    for _ in range(2):  # it is tried again
        with pytest.raises(StreamingQueryException, match=r"would break t: key\(id\)"):
            run("stop")
    assert profile.snapshot().tables["t"].rows == 2
    run("continue")
    assert profile.snapshot().tables["t"].rows == 3
    assert profile.verify().equal


def test_a_batch_that_is_repeated_is_applied_once(
    spark: SparkSession, tmp_path: Path, frame: Callable[..., DataFrame]
) -> None:
    profile = Profile.create(tmp_path / "p", {"t": START}, options=KEYS, session=spark)
    apply = apply_batch(tmp_path / "p", "t", row_key=["id"])
    for _ in range(2):
        apply(frame("id bigint, name string", (1, "x"), (5, "y")), 0)
    assert profile.snapshot().version == 2
    assert profile.snapshot().tables["t"].rows == 3
    with pytest.raises(BatchError, match="already used for other rows"):
        apply(frame("id bigint, name string", (6, "z")), 0)


def test_columns_of_a_stream_that_are_new_join(
    tmp_path: Path, frame: Callable[..., DataFrame], spark: SparkSession
) -> None:
    profile = Profile.create(tmp_path / "p", {"t": START}, options=KEYS, session=spark)
    rows = frame("id bigint, name string, at double, _change_type string", (2, "x", 0.5, "insert"))
    with pytest.raises(SchemaError, match="--evolve lets it join"):
        apply_batch(tmp_path / "p", "t", row_key=["id"])(rows, 0)
    apply_batch(tmp_path / "p", "t", row_key=["id"], evolve=True)(rows, 0)
    columns = profile.snapshot().tables["t"].facts
    assert [(each.name, each.nulls) for each in columns] == [("id", 0), ("name", 0), ("at", 1)]
    assert profile.verify().equal
