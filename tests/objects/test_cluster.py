"""A standalone cluster of two workers that share nothing but an object store.

A path that is another folder for every process stands for the disks of two machines; what the store
needs to know is in the options of the session, not in the environment of the driver's Java.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from holdfast.model.errors import StoreError
from holdfast.runtime import cached, objects, sealed
from holdfast.runtime.result import TaskResult
from holdfast.spark.places import may_place, places_of
from holdfast.spark.runner import SparkRunner
from tests import suites
from tests.cluster.conftest import SETTINGS
from tests.limits import varied
from tests.objects.server import SECRET, Proxy, environment
from tests.objects.standalone import Cluster, standalone

pytestmark = [pytest.mark.store, pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def between(server: int) -> Iterator[Proxy]:
    """What is between the executors and the store."""
    proxy = Proxy(server)
    yield proxy
    proxy.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster."""
    with standalone(tmp_path_factory.mktemp("cluster"), 2) as running:
        yield running


@pytest.fixture(scope="module")
def spark(cluster: Cluster, between: Proxy) -> Iterator[SparkSession]:
    """A session whose executors have each a disk of their own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(cluster.address).appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    known = {**environment(between.port), "HOLDFAST_CACHE": "/proc/self/cwd/cache"}
    for name, value in known.items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    # A busy machine is no reason to run a task where its files are not.
    builder = builder.config("spark.locality.wait", "10min")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def driver(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver needs to know."""
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)


def machines(session: SparkSession, count: int = 2) -> list[dict[str, Any]]:
    """Of each executor, once there are so many: its process, its cache, and what is in that."""

    def look(_: None) -> Iterator[TaskResult]:
        folder = cached.folder().resolve()
        files = sorted(each.name for each in folder.iterdir())
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        executor = int(daemon.rpartition(")")[2].split()[1])
        yield TaskResult({"executor": executor, "folder": str(folder), "files": files})

    found: dict[int, dict[str, Any]] = {}
    while len(found) < count:
        results = SparkRunner(session).run([(look, None)] * 8)
        found |= {one.facts["executor"]: one.facts for each in results for one in each}
    return [*found.values()]


def test_every_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    address = "s3://profiles/every-job"
    suites.walk_through_every_job(spark, tmp_path, monkeypatch, address)

    disks = {each["folder"]: {*each["files"]} for each in machines(spark)}
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


class Table:
    """A table of some large segments, to which batches add small ones, and its profile, on a store
    from which no executor has fetched anything."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self.session, self.batches = session, 0
        self.profile = Profile.create(
            f"s3://profiles/{name}",
            {"t": self.rows(0, 8000, 8)},
            options=Options(kinds="keys,fds", evidence="witnessed"),
            session=session,
        )
        for each in machines(session):
            for file in each["files"]:
                Path(each["folder"], file).unlink(missing_ok=True)

    def rows(self, first: int, count: int, partitions: int) -> DataFrame:
        return self.session.range(first, first + count, 1, partitions).selectExpr(
            "id", "id % 97 as a", "id % 60 as b", "concat('name ', id * 7 % 130) as c"
        )

    def apply(self) -> None:
        """A batch that breaks nothing."""
        self.batches += 1
        self.profile.apply("t", inserts=self.rows(10_000 + 10 * self.batches, 10, 1))

    @property
    def files(self) -> set[str]:
        segments = self.profile._store.read().tables["t"].segments
        return {Path(file).name for segment in segments for file in segment.files}


def test_placement(spark: SparkSession, between: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine fetches what it needs once, and is asked for that from then on; without placement
    the other one has to fetch it, too, sooner or later. When an executor is lost another one has
    its work, and when one comes back it is given some."""
    varied(monkeypatch, merged_segments=1000)

    def batches(table: Table, enough: Callable[[int, int], bool]) -> tuple[int, int]:
        """Bytes of the large segments that were fetched for the first batch, and for others."""
        large, between.fetched = table.files, Counter()

        def fetched() -> int:
            paths = between.fetched.items()
            return sum(size for path, size in paths if path.rpartition("/")[2] in large)

        table.apply()
        first = fetched()
        while not enough(table.batches, fetched() - first):
            table.apply()
        return first, fetched() - first

    with monkeypatch.context() as patch:
        patch.setattr("holdfast.spark.runner.may_place", lambda _: False)
        left_alone = Table(spark, "left-alone")
        without = batches(left_alone, lambda _, again: again > 0)
    placed = Table(spark, "placed")
    number = max(4, left_alone.batches)
    with_placement = batches(placed, lambda done, _: done == number)
    assert with_placement[0] > 0
    assert with_placement[1] == 0 < without[1]
    assert sum(with_placement) < sum(without)

    def known() -> set[str]:
        places = places_of(spark, 2)
        return {*places.machines} if places and places.are_known else set()

    monkeypatch.setattr("holdfast.spark.places.PAUSE", 2)
    before = known()
    assert len(before) == 2
    os.kill(machines(spark)[0]["executor"], signal.SIGKILL)
    placed.apply()
    machines(spark)  # until the executor that takes its place is there
    while len(now := known()) < 2 or now == before:
        placed.apply()
    assert len(now & before) == 1
    for table in (left_alone, placed):
        assert [str(key) for key in table.profile.keys("t")] == ["t: key(id)", "t: key(a, c)"]
        assert table.profile.verify().equal


def test_where_placement_is_worth_it(spark: SparkSession, tmp_path: Path) -> None:
    """Not for a profile on a disk that all share, and not where executors come and go."""
    runner = SparkRunner(spark)
    assert runner.sharing("s3://profiles/p/data/token-x")._placing
    assert not runner.sharing(str(tmp_path / "data" / "token-x"))._placing
    dynamic: Any = SimpleNamespace(conf={"spark.dynamicAllocation.enabled": "true"})
    assert not may_place(dynamic)


def test_a_machine_that_is_lost(spark: SparkSession, cluster: Cluster) -> None:
    """With its executor and all that it had fetched: the other one goes on, and has what it needs
    from the store. The last test of this cluster."""
    table = Table(spark, "lost")
    table.apply()
    cluster.workers[0].kill()
    cluster.workers[0].wait()
    table.profile.apply("t", deletes=table.rows(0, 2_000, 2))
    table.apply()
    assert [str(key) for key in table.profile.keys("t")] == ["t: key(id)", "t: key(a, c)"]
    assert table.profile.verify().equal
    assert len(machines(spark, 1)) == 1
