"""Every kind of job with executors in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast import Profile
from holdfast.model.errors import SetupError
from holdfast.runtime.result import TaskResult
from holdfast.spark.runner import SparkRunner
from holdfast.tasks import devices
from tests import suites
from tests.cluster.conftest import GPU

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_frames(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites.walk_through_every_job(spark, tmp_path, monkeypatch)


def test_tasks_have_the_gpus_that_spark_schedules(spark: SparkSession) -> None:
    def told(_: None) -> Iterator[TaskResult]:
        yield TaskResult({"gpus": list(devices.handed_over())})

    runner = SparkRunner(spark)
    assert (runner.here, runner.gpus) == (False, 1)
    assert runner.tasks == 2
    results = runner.run([(told, None)] * 4)
    assert [each.facts["gpus"] for result in results for each in result] == [[GPU]] * 4


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    suites.walk_through_files(spark, tmp_path)


def test_places(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    suites.run_in_places(spark, monkeypatch)


@pytest.mark.parametrize("there", [False, True])
def test_executors_with_another_disk_under_the_profiles_path(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """Under one path every process finds its own folder here, as on machines without a shared
    disk; there may be a profile's folders in it, too."""
    monkeypatch.chdir(tmp_path)
    path = Path("/proc/self/cwd") / tmp_path.name

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (path / "data").mkdir(parents=True, exist_ok=True)
        yield from batches

    if there:
        spark.range(0, 8, 1, 8).mapInArrow(make, "id long").collect()
    rows = spark.range(100).repartition(4)
    with pytest.raises(SetupError, match=f"{path}/data: the worker on .* does not see a file"):
        Profile.create(path, {"t": rows}, session=spark)
    assert not (tmp_path / tmp_path.name).exists()
