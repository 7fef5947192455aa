"""Every kind of job on Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import suites

pytestmark = [pytest.mark.connect, pytest.mark.slow]


def test_frames(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites.walk_through_every_job(spark, tmp_path, monkeypatch)


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    suites.walk_through_files(spark, tmp_path)


def test_an_interrupt(spark: SparkSession, tmp_path: Path) -> None:
    suites.interrupt_a_batch(spark, tmp_path)
