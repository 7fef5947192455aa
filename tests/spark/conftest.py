"""One Spark session for all tests of this folder, and tables made of plain rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from holdfast.model.errors import HoldfastError
from holdfast.model.names import listed

KEYS = Options(kinds=("keys",))
"""What these tests are about is the same for all kinds; keys alone are the quickest."""

SETTINGS = {
    "spark.ui.enabled": "false",  # a port and a second that nobody looks at
    "spark.ui.showConsoleProgress": "false",  # bars between pytest's dots
    "spark.driver.bindAddress": "127.0.0.1",  # a build machine's name may not resolve
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",  # small tables, and machines that do other things too
    "spark.sql.shuffle.partitions": "2",  # the default of 200 would be all that tests wait for
    "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than reading ten rows
    "spark.sql.session.timeZone": "America/St_Johns",  # half an hour off: UTC by luck would show
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The caller's session: made by the tests, not by Holdfast."""
    # Workers run what we run, whatever `python3` is on the PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    # Tables that tests save must not end up in the folder that pytest was started from.
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # failing jobs are what half of the tests are about
    yield session
    session.stop()


@pytest.fixture
def frame(spark: SparkSession) -> Callable[..., DataFrame]:
    """Makes DataFrames: ``frame("a int, b string", (1, "x"), …)``."""

    def make(schema: str, *rows: Sequence[Any]) -> DataFrame:
        return spark.createDataFrame(list(rows), schema)

    return make


@pytest.fixture
def profile(spark: SparkSession, tmp_path: Path) -> Callable[..., Profile]:
    """Makes a profile of the keys of one table ``t``, in a new folder each time."""
    made = iter(range(100))

    def make(rows: Any) -> Profile:
        path = tmp_path / f"profile-{next(made)}"
        return Profile.create(path, {"t": rows}, options=KEYS, session=spark)

    return make


def columns(profile: Profile, table: str = "t") -> list[str]:
    """The minimal keys, each as it is printed under its table."""
    return [listed(key.columns) for key in profile.keys(table)]


@contextmanager
def refused(
    profile: Profile, kind: type[HoldfastError], *words: str
) -> Iterator[pytest.ExceptionInfo[HoldfastError]]:
    """The block must raise one clear sentence with these words, and change nothing."""
    before = profile._store.read()
    with pytest.raises(kind) as caught:
        yield caught
    told = str(caught.value)
    for word in words:
        assert word in told, told
    assert "Traceback" not in told
    assert "\tat " not in told
    assert profile._store.read() == before
    data, leases = Path(profile.path, "data"), Path(profile.path, "leases")
    named = {name.removeprefix("data/") for name in profile._store.files()}
    assert {path.name for path in data.iterdir()} >= named
    assert not list(leases.iterdir())
