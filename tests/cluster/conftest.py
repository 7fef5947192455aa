"""A cluster on this machine: a master, two workers and their executors, each in its own process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",  # a port and a second that nobody looks at
    "spark.ui.showConsoleProgress": "false",  # bars between pytest's dots
    "spark.driver.bindAddress": "127.0.0.1",  # a build machine's name may not resolve
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.cores.max": "2",
}


GPU = "3"
"""The address of the GPU that every worker says it has: Spark believes it, and schedules it."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    script = tmp_path_factory.mktemp("gpus") / "addresses.sh"
    addresses = json.dumps({"name": "gpu", "addresses": [GPU]})
    script.write_text(f"#!/bin/sh\necho '{addresses}'\n")
    script.chmod(0o700)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.worker.resource.gpu.discoveryScript", str(script))
    for part in ("worker", "executor", "task"):
        builder = builder.config(f"spark.{part}.resource.gpu.amount", "1")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
