"""The session stays the caller's, and an environment that cannot work says so."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Profile
from holdfast.model.errors import SetupError
from holdfast.runtime.result import TaskResult
from holdfast.spark import session as sessions
from holdfast.spark import workers
from holdfast.spark.runner import SparkRunner
from tests import suites
from tests.spark.conftest import KEYS

pytestmark = pytest.mark.spark

Make = Callable[..., DataFrame]


def settings(session: SparkSession) -> dict[str, str]:
    """Everything that is set in a session."""
    return {row["key"]: row["value"] for row in session.sql("set").collect()}


def test_what_a_first_run_loads_is_left_out_of_collections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for each task: what later runs leave may be garbage."""
    frozen: list[None] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(None))
    monkeypatch.setattr(workers, "_frozen", set())
    for task in ("one", "one", "two", "one"):
        workers.freeze(task)
    assert len(frozen) == 2


def test_socket_files_where_their_names_fit() -> None:
    name = "spark.python.unix.domain.socket"
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder), Path(folder, "x" * 100)
        long.mkdir()
        assert sessions._sockets(short) == {f"{name}.enabled": "true", f"{name}.dir": folder}
        assert sessions._sockets(long) == {}


# The caller's


def test_a_session_is_left_as_it_was(spark: SparkSession, frame: Make, tmp_path: Path) -> None:
    before = settings(spark)
    rows = frame("id int, name string", (1, "a"), (2, "b"))
    kept = Profile.create(tmp_path / "p", {"t": rows}, options=KEYS, session=spark)
    kept.apply("t", inserts=frame("id int, name string", (3, "a")))
    kept.check("t", deletes=frame("id int", (3,)), row_key=["id"])
    assert settings(spark) == before
    assert spark.getTags() == set()
    assert SparkSession.getActiveSession() is spark
    assert rows.count() == 2, "the session is not stopped"
    assert not rows.is_cached


def test_a_frame_brings_its_session(spark: SparkSession, tmp_path: Path) -> None:
    other = spark.newSession()
    other.sql("select 1 as id").createOrReplaceTempView("only_there")
    kept = Profile.create(tmp_path / "p", {"t": other.table("only_there")})
    assert kept._session is other
    assert kept.apply("t", inserts=other.sql("select 2 as id")).rows == 2


def test_without_one_the_active_session_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    kept = Profile.create(tmp_path / "p", {"t": tmp_path / "t.csv"})
    assert kept._session is spark
    assert not sessions.is_own(spark)


class Conf:
    """Settings of a session."""

    def __init__(self, held: dict[str, str]) -> None:
        self.held = {f"spark.{name.replace('_', '.')}": value for name, value in held.items()}

    def get(self, name: str, default: Any) -> Any:
        return self.held.get(name, default)


@pytest.mark.parametrize(
    ("cores", "settings", "tasks"),
    [
        (2, {"master": "local[2]"}, 2),
        (2, {"master": "local[2]", "executor_instances": "9"}, 2),
        (48, {"master": "spark://host:7077"}, 48),
        (48, {"master": "yarn", "executor_cores": "4"}, 48),
        (2, {"master": "yarn", "executor_instances": "4", "executor_cores": "2"}, 8),
        (12, {"master": "yarn", "executor_instances": "4", "default_parallelism": "12"}, 12),
        (2, {"master": "yarn", "dynamicAllocation_enabled": "true",
             "dynamicAllocation_maxExecutors": "10", "executor_cores": "4"}, 40),
        (2, {"master": "yarn", "dynamicAllocation_enabled": "true",
             "dynamicAllocation_maxExecutors": str(2**31 - 1), "executor_instances": "3"}, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("remote", [False, True])
def test_tasks_are_as_many_as_run_at_once(
    cores: int, settings: dict[str, str], tasks: int, remote: bool
) -> None:
    """A classic session has a context that tells, a remote one only partitions that were seen."""
    space: dict[str, Any] = {"conf": Conf(settings)}
    if remote:
        space["__module__"] = "pyspark.sql.connect.session"
    else:
        space["sparkContext"] = SimpleNamespace(defaultParallelism=cores)
    session = type("Session", (), space)()
    assert sessions.parallelism(session, cores if remote else 1) == tasks


def test_as_many_tasks_as_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    assert SparkRunner(spark).tasks == spark.sparkContext.defaultParallelism == 2
    runner = SparkRunner(spark, 5)
    assert (runner.tasks, runner.sharing(str(tmp_path / "token-")).tasks) == (5, 5)
    assert workers.prepare(spark) == 2, "Spark's own number, whatever was asked for"


# Workers


def test_workers_with_other_versions(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    here = workers._here()
    for name, remedy in (("numba", "install numba==0.1"), ("python", "PYSPARK_PYTHON")):
        monkeypatch.setattr(workers, "_here", lambda name=name: {**here, name: "0.1"})
        with pytest.raises(SetupError, match=f"the workers have {name} {here[name]}.*{remedy}"):
            SparkRunner(spark.newSession())


def test_workers_with_a_python_that_lacks_packages(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(SetupError, match=r"pyarrow.*set PYSPARK_PYTHON") as caught:
        SparkRunner(spark.newSession())
    assert "\n" not in str(caught.value)


HIDE = """
import sys
from importlib.machinery import PathFinder

class Hidden:
    def find_spec(name, path=None, target=None):
        if name != "holdfast":
            return None
        zips = [each for each in sys.path if each.endswith(".zip")]
        found = PathFinder.find_spec(name, zips)
        if found is None:
            raise ModuleNotFoundError(name)
        return found

sys.meta_path.insert(0, Hidden)
"""


def test_workers_without_holdfast_are_sent_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the workers have no folder to keep compiled kernels in."""
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    context = spark.sparkContext
    monkeypatch.setitem(context.environment, "PYTHONPATH", str(tmp_path))
    # What is sent stays for all sessions of the process: the workers of later tests would run it,
    # too, and compile every kernel that they load.
    monkeypatch.setattr(context, "_python_includes", list(context._python_includes or ()))
    monkeypatch.setattr(sys, "path", [*sys.path])

    def work(_: None) -> Iterator[TaskResult]:
        import numpy as np

        import holdfast
        from holdfast.kernels import bitsets

        turned = bitsets.transpose(np.array([[5]], np.uint64))  # compiled
        yield TaskResult({"file": holdfast.__file__, "turned": turned[:3, 0].tolist()})

    for home in (str(tmp_path / "home"), "/dev/null"):
        monkeypatch.setitem(context.environment, "HOME", home)
        runner = SparkRunner(spark.newSession(), tasks=1)
        ((task_result,),) = runner.run([(work, None)])
        assert ".zip" in task_result.facts["file"]
        assert task_result.facts["turned"] == [1, 0, 1]


# Java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A Java of any version, on the PATH."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(version: str) -> None:
        program = tmp_path / "java"
        program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
        program.chmod(0o755)

    return install


def test_java_missing(java: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"Java 17 or newer.*no java on the PATH.*JAVA_HOME"):
        sessions.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"has no bin/java"):
        sessions.check_java()


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is 11"),
        ('java version "1.8.0_292"', "is 8"),
        ("something else", "does not tell its version"),
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "25-ea"', None),
    ],
)
def test_java_versions(java: Callable[[str], None], told: str, wrong: str | None) -> None:
    java(told)
    if wrong is None:
        sessions.check_java()
    else:
        with pytest.raises(SetupError, match=f"{wrong}.*install one"):
            sessions.check_java()


# Interrupts


def test_an_interrupt_cancels_our_jobs_only(spark: SparkSession, tmp_path: Path) -> None:
    suites.interrupt_a_batch(spark, tmp_path)


def test_an_interrupt_between_jobs_leaves_the_callers_alone(
    spark: SparkSession, frame: Make, tmp_path: Path
) -> None:
    begun, over = tmp_path / "begun", tmp_path / "over"
    theirs: list[Any] = []

    def waiting(batches: Any) -> Any:
        for batch in batches:
            begun.touch()
            while not over.exists():
                time.sleep(0.05)
            yield batch

    def other() -> None:
        theirs.extend(spark.range(0, 1, 1, 1).mapInArrow(waiting, "id long").collect())

    def interrupt(stage: str, **_: Any) -> None:
        if stage == "commit":
            while not begun.exists():
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

    rows = frame("id int", (1,))
    Profile.create(tmp_path / "p", {"t": rows}, options=KEYS, session=spark)
    kept = Profile.open(tmp_path / "p", session=spark, progress=interrupt)
    thread = threading.Thread(target=other)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            kept.apply("t", inserts=frame("id int", (2,)))
    finally:
        over.touch()
    thread.join()
    assert [row["id"] for row in theirs] == [0]
    assert kept.snapshot().version == 1
