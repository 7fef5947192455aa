"""Every kind of job on Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.spark import workers
from holdfast.spark.runner import SparkRunner
from tests import suites

pytestmark = [pytest.mark.connect, pytest.mark.slow]


def test_frames(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites.walk_through_every_job(spark, tmp_path, monkeypatch)


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    suites.walk_through_files(spark, tmp_path)


def test_places(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    suites.run_in_places(spark, monkeypatch)


def test_an_interrupt(spark: SparkSession, tmp_path: Path) -> None:
    suites.interrupt_a_batch(spark, tmp_path)


def test_as_many_tasks_as_the_server_divides_by(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no context to ask: the first job there, which is run in any case, tells."""
    name = "spark.sql.leafNodeDefaultParallelism"
    monkeypatch.setattr(workers, "_checked", {})
    spark.conf.set(name, "5")
    try:
        assert SparkRunner(spark).tasks == 5
    finally:
        spark.conf.unset(name)
    assert SparkRunner(spark, 7).tasks == 7
