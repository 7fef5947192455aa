"""A cluster of two workers that share nothing but an object store.

A path that is another folder for every process stands for the disks of two machines; what the store
needs to know is in the options of the session, not in the environment of the driver's Java.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast import Profile
from holdfast.model.errors import StoreError
from holdfast.spark.runner import SparkRunner
from holdfast.tasks import cached, objects, sealed
from holdfast.tasks.result import TaskResult
from tests import suites
from tests.cluster.conftest import SETTINGS
from tests.objects.server import SECRET, environment

pytestmark = [pytest.mark.store, pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def spark(server: int) -> Iterator[SparkSession]:
    """A session whose executors have each a disk of their own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    known = {**environment(server), "HOLDFAST_CACHE": "/proc/self/cwd/cache"}
    for name, value in known.items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def driver(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver needs to know."""
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)


def test_every_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    address = "s3://profiles/every-job"
    suites.walk_through_every_job(spark, tmp_path, monkeypatch, address)

    def disk(_: None) -> Iterator[TaskResult]:
        folder = cached.folder().resolve()
        yield TaskResult(
            {"folder": str(folder), "files": sorted(each.name for each in folder.iterdir())}
        )

    results = SparkRunner(spark).run([(disk, None)] * 8)
    disks = {one.facts["folder"]: set(one.facts["files"]) for each in results for one in each}
    assert len(disks) == 2
    assert str(cache) not in disks
    one, two = disks.values()
    # Each has what it wrote and what it read; so has the driver, and nobody has all of it.
    assert one - two
    assert two - one


def test_workers_without_credentials(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One sentence that names what could not be reached, and no secret."""
    profile = Profile.create("s3://profiles/mine", {"t": spark.range(50)}, session=spark)
    name = profile._store.read().tables["t"].segments[0].words

    def without(_: None) -> Iterator[TaskResult]:
        os.environ["AWS_SECRET_ACCESS_KEY"] = "another"
        try:
            cached.drop(Path("s3://profiles/mine", name))
            sealed.read(Path("s3://profiles/mine", name))
        finally:
            os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
        yield TaskResult({})

    with pytest.raises(StoreError, match=rf"s3://profiles/mine/{name}: .* cannot be read") as no:
        SparkRunner(spark).run([(without, None)])
    assert "another" not in str(no.value)
    assert profile.verify().equal


def test_a_worker_that_is_killed(spark: SparkSession, cache: Path) -> None:
    """It dies with a file half written and nothing reported; the task is run again, elsewhere or
    there, and what it reports is on the store."""
    root, note = "s3://profiles/killed", "s3://profiles/a-worker-was-killed"

    def write(number: int) -> Iterator[TaskResult]:
        sink = sealed.Sink(Path(root), f"data/words-0123456789ab-{number}.arrow")
        sink.write(b"words" * number)
        try:
            objects.put(note, b"", "create")
        except FileExistsError:
            yield TaskResult({"name": sink.seal()})
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    results = SparkRunner(spark).run([(write, number) for number in range(1, 5)])
    assert objects.exists(note)
    reported = [one.facts["name"] for each in results for one in each]
    assert len(reported) == 4
    for number, name in enumerate(reported, start=1):
        assert objects.get(f"{root}/{name}").data == b"words" * number
        assert sealed.read(Path(root, name)) == b"words" * number
    assert len(list(cache.glob("*-words-*"))) == 4
