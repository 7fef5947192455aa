"""Spark sessions: the caller's as it is, or a local one of our own.

A session that we make keeps Spark's log out of the terminal (it goes to a file), runs workers with
the interpreter that runs us, and ignores a foreign ``SPARK_HOME``.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from holdfast.model.engine import WITHOUT_SPARK
from holdfast.model.errors import SetupError
from holdfast.spark.jobs import is_remote

log = logging.getLogger("holdfast")

_JAVA = 17

_INSTALL = (
    "install one, e.g. `apt-get install openjdk-17-jre-headless`, "
    "`dnf install java-17-openjdk-headless` or `brew install openjdk@17`, "
    f"or point JAVA_HOME to it, {WITHOUT_SPARK}"
)

_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""

_UNBOUNDED = (1 << 31) - 1
"""Executors that are as many as Spark can have, which says nothing."""

own_sessions: list[SparkSession] = []
"""Local sessions that we created: their workers run our interpreter, so they need no check."""


def open_session(
    master: str | None = None, remote: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """The session to use: one that is there, a remote one, or a new local one.

    Under ``spark-submit``, or with ``SPARK_REMOTE`` set, that session is used.
    """
    try:
        return _open(master, remote, conf)
    except ImportError as missing:
        # PySpark comes without what only its Connect client needs.
        raise SetupError(
            f"Spark Connect needs packages that are not there ({missing}); "
            "install them with: pip install 'holdfast[connect]'"
        ) from missing


def _open(master: str | None, remote: str | None, conf: Mapping[str, str] | None) -> SparkSession:
    settings = dict(conf or {})
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ
    active = SparkSession.getActiveSession()
    if active is not None and master is None and remote is None:
        return active
    builder = SparkSession.builder.appName("holdfast")
    for name, value in settings.items():
        builder = builder.config(name, value)
    if remote is not None:
        return builder.remote(remote).getOrCreate()
    if submitted and master is None:
        return builder.getOrCreate()
    return _own_session(builder, master or "local[*]", settings)


def is_own(session: SparkSession) -> bool:
    """Whether this is a local session of ours."""
    return any(session is own for own in own_sessions)


def parallelism(session: SparkSession, seen: int) -> int:
    """Into how many tasks Spark divides what says nothing about it: as many as run at once.

    A classic session tells at any time; of a remote one it is known from the partitions that were
    ``seen`` when a job left their number to Spark. Executors that are asked for and still to come
    are counted, too.
    """
    conf = session.conf
    if given := conf.get("spark.default.parallelism", None):
        return int(given)
    now = seen if is_remote(session) else session.sparkContext.defaultParallelism
    if (conf.get("spark.master", None) or "").startswith("local"):
        return now
    is_dynamic = conf.get("spark.dynamicAllocation.enabled", None) == "true"
    executors = conf.get(
        "spark.dynamicAllocation.maxExecutors" if is_dynamic else "spark.executor.instances", None
    )
    cores = int(conf.get("spark.executor.cores", None) or 1)
    asked = int(executors or 0)
    return max(now, asked * cores if asked < _UNBOUNDED else 0)


def log_file() -> Path:
    """Where Spark's log goes in a session of our own."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"holdfast-spark-{user}.log"


def _own_session(
    builder: SparkSession.Builder, master: str, settings: Mapping[str, str]
) -> SparkSession:
    check_java()
    os.environ.pop("SPARK_HOME", None)
    local = master.startswith("local")
    if local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    path = log_file()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    config = folder / "log4j2.properties"
    config.write_text(_LOGGING.format(path=path))
    ours = {
        "spark.ui.enabled": "false",  # a port and 0.3 s that nobody asked for
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",  # fewer, larger batches
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{config}",
    }
    if local:
        # A laptop's host name may not resolve; elsewhere executors must reach the driver.
        ours |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        ours |= _sockets(folder)
        ours["spark.python.daemon.module"] = "holdfast.imported"
    for name, value in ours.items():
        if name not in settings:
            builder = builder.config(name, value)
    # What the driver needs next is imported while it waits for the JVM.
    _meanwhile(_import_all, ("holdfast.spark.runner", "holdfast.flow"))
    with _quiet(path):
        try:
            session = builder.master(master).getOrCreate()
        except Exception as failure:
            raise SetupError(
                f"Spark could not be started with master {master!r}: {failure}; see {path}"
            ) from failure
    if local:
        own_sessions.append(session)
        _meanwhile(_start_workers, session)
    return session


def _meanwhile(work: Callable[[Any], Any], given: Any) -> None:
    threading.Thread(target=work, args=(given,), daemon=True).start()


def _import_all(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)


def _start_workers(session: SparkSession) -> None:
    """Start Python workers, which takes seconds, while the driver prepares its first job."""
    count = parallelism(session, 1)
    try:
        session.range(0, count, 1, count).mapInArrow(_same, "id bigint").count()
    except Exception as failure:  # noqa: BLE001  the first job says what is wrong
        log.debug("workers could not be started ahead: %s", failure)


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _sockets(folder: Path) -> dict[str, str]:
    """Socket files between Spark and its workers, in a folder that only we can open. Over TCP every
    task waits 40 ms for an acknowledgement that the other side delays."""
    try:
        with socket.socket(socket.AF_UNIX) as trial:  # with a longer name than Spark gives
            trial.bind(f"{folder}/.{uuid.uuid4()}.sock-trial")
    except (AttributeError, OSError):
        return {}
    name = "spark.python.unix.domain.socket"
    return {f"{name}.enabled": "true", f"{name}.dir": str(folder)}


def check_java() -> None:
    """Java must be there, and be new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME is {home}, but has no bin/java" if home else "no java on the PATH"
        raise SetupError(f"Spark needs Java {_JAVA} or newer, and there is {where}: {_INSTALL}")
    process = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)(?:\.(\d+))?', process.stderr + process.stdout)
    if not version:
        raise SetupError(f"{java} does not tell its version: {_INSTALL}")
    major = int(version[2] or 0) if version[1] == "1" else int(version[1])
    if major < _JAVA:
        raise SetupError(f"Spark needs Java {_JAVA} or newer, but {java} is {major}: {_INSTALL}")


@contextmanager
def _quiet(path: Path) -> Iterator[None]:
    """Give a starting JVM the log file in place of the terminal; it keeps what it inherits."""
    sys.stdout.flush()
    sys.stderr.flush()
    copies = [os.dup(1), os.dup(2)]
    sink = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(copies[0], 1)
        os.dup2(copies[1], 2)
        for descriptor in (sink, *copies):
            os.close(descriptor)
