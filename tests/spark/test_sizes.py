"""What Spark makes of work and of sources: tasks, partitions and files, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast import Profile, Source
from holdfast.runtime.result import TaskResult
from holdfast.spark.runner import SparkRunner
from holdfast.spark.source import from_arrow, from_source
from holdfast.tasks.ingest import Ingest
from tests.limits import varied

pytestmark = pytest.mark.spark

Make = Callable[..., Any]
Batches = Iterator[pa.RecordBatch]


def partitions(rows: DataFrame) -> int:
    """How many partitions with rows there are."""
    return rows.select(f.spark_partition_id()).distinct().count()


def test_heavy_calls_have_a_task_each(spark: SparkSession) -> None:
    def where(_: object) -> Iterator[TaskResult]:
        from pyspark import TaskContext

        context = TaskContext.get()
        yield TaskResult({"task": context.partitionId() if context else None})

    def tasks(runner: SparkRunner, work: int) -> list[int]:
        results = runner.run([(where, SimpleNamespace(work=work))] * 6)
        return [each.facts["task"] for result in results for each in result]

    runner = SparkRunner(spark)
    assert runner.tasks == 2
    assert sorted(tasks(runner, 1 << 20)) == [0, 1, 2, 3, 4, 5]
    assert sorted(tasks(runner, 10)) == [0, 0, 0, 1, 1, 1]
    assert sorted(tasks(SparkRunner(spark, 3), 10)) == [0, 0, 1, 1, 2, 2]


def test_the_first_rows_are_those_of_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    """Types are guessed from them: a look into every split would be a task and a request each."""

    def noted(batches: Batches) -> Batches:
        for batch in batches:
            (tmp_path / f"from {batch.column(0)[0].as_py() // 100}").touch()
            yield batch

    def count(batches: Batches, _: Ingest) -> Iterator[TaskResult]:
        yield TaskResult({"rows": sum(batch.num_rows for batch in batches)})

    rows = spark.range(0, 1_600, 1, 16).mapInArrow(noted, "id long")
    (result,) = SparkRunner(spark).head(count, rows, cast(Ingest, None), 50)
    assert result.facts == {"rows": 50}
    assert [path.name for path in tmp_path.iterdir()] == ["from 0"]
    (result,) = SparkRunner(spark).head(count, rows, cast(Ingest, None), 250)
    assert result.facts == {"rows": 250}, "more than one has"
    assert len([*tmp_path.iterdir()]) == 3


def test_small_files_are_read_by_one_task(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "8")  # a partition for every file
    (tmp_path / "t").mkdir()
    for number in range(16):
        (tmp_path / "t" / f"{number}.csv").write_text(f"id\n{number}\n")
    source = Source(str(tmp_path / "t"), "csv")
    assert len(from_source(session, source).rows.parts) == 1
    # As on a cluster, where Spark reads them.
    monkeypatch.setattr("holdfast.spark.source._of_tasks", lambda *_: [])
    assert partitions(from_source(session, source).rows) == 1
    varied(monkeypatch, joined_bytes=32)
    assert partitions(from_source(session, source).rows) == 3, "of 91 bytes, in parts of 32"
    varied(monkeypatch, joined_bytes=1)
    assert partitions(from_source(session, source).rows) == 16


def test_a_small_table_in_memory_is_one_partition(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"id": range(100)})
    assert partitions(from_arrow(spark, table, "rows").rows) == 1
    varied(monkeypatch, joined_bytes=1)
    assert partitions(from_arrow(spark, table, "rows").rows) == 2


@pytest.mark.long
def test_many_small_partitions_leave_few_files(
    spark: SparkSession, profile: Make, tmp_path: Path
) -> None:
    rows = spark.range(0, 160, 1, 16).selectExpr("id", "id % 7 as day", "id div 7 as seat")
    kept: Profile = profile(rows)
    (segment,) = kept._store.read().tables["t"].segments
    assert segment.rows == 160
    data = [path.name.partition("-")[0] for path in Path(kept.path, "data").iterdir()]
    assert data.count("words") == data.count("raw") == 1
    assert data.count("index") == len(segment.indexes)
    assert [str(key) for key in kept.keys("t")] == ["t: key(id)", "t: key(day, seat)"]
    assert kept.verify().equal
