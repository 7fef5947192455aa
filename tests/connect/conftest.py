"""A Spark Connect server that PySpark starts beside the tests."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",  # a port and a second that nobody looks at
    "spark.driver.bindAddress": "127.0.0.1",  # a build machine's name may not resolve
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[2]").appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        # The server has all settings from its start; the client sets them again and complains.
        warnings.filterwarnings("ignore", "Failed to set", UserWarning)
        session = builder.getOrCreate()
    yield session
    session.stop()
