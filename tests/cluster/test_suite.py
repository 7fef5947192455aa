"""Every kind of job with executors in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import suites

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_frames(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites.walk_through_every_job(spark, tmp_path, monkeypatch)


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    suites.walk_through_files(spark, tmp_path)
