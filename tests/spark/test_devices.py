"""Devices on Spark: where tasks run, and what a worker says of a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from holdfast.evidence import devices
from holdfast.kernels import gpu
from holdfast.spark.runner import SparkRunner

pytestmark = pytest.mark.spark


def test_tasks_of_a_local_session_are_here(spark: SparkSession) -> None:
    runner = SparkRunner(spark)
    assert (runner.here, runner.gpus) == (True, 1)


@pytest.mark.skipif(gpu.device().usable, reason="there is a GPU")
def test_why_workers_have_no_gpu_is_said_once(
    spark: SparkSession,
    frame: Callable[..., DataFrame],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "_said", set())
    rows = frame("a int, b int", *[(i % 7, i) for i in range(40)])
    options = Options(kinds=("keys", "fds"), evidence="counted", device="gpu")
    profile = Profile.create(tmp_path / "p", {"t": rows}, options=options, session=spark)
    profile.apply("t", inserts=frame("a int, b int", (8, 50)))
    assert [str(each) for each in profile.functional_dependencies("t")] == ["t: b -> a"]
    assert profile.snapshot().tables["t"].evidence["agreement"].choice.device == "cpu"
    said = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert said == [f"Pairs are counted on the processor. {gpu.device().missing}"]
