"""PostgreSQL, Kafka, and Kafka Connect with Debezium, for tests: on loopback, in folders of their
own, and gone with the test. ``make test-feeds`` installs what they need."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = "HOLDFAST_FEEDS"
"""The variable with the folder of the jars, which ``make test-feeds`` sets."""

MOST_S = 3600
"""No server lives longer, whatever becomes of the tests."""

_HOST = "127.0.0.1"
_PATIENCE_S = 120
_JAVA = ["java", "-Xmx384m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def jars(what: str) -> str | None:
    """The class path of Kafka (``kafka``) or of Connect with Debezium (``connect``)."""
    folder = Path(os.environ.get(FOLDER) or "nowhere") / what
    return f"{folder}/*" if any(folder.glob("*.jar")) and shutil.which("java") else None


def postgres_programs() -> Path | None:
    """The folder of initdb and postgres."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    needed = ("initdb", "postgres", "psql", "pg_isready")
    return next((f for f in folders if all((f / each).exists() for each in needed)), None)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(what: str, sign: Callable[[], Any], process: subprocess.Popen[bytes]) -> Any:
    """What a sign returns, as soon as there is one."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"{what} ended with {process.returncode}")
        if found := sign():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen in {_PATIENCE_S} s")


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, port)) == 0


@contextmanager
def _running(command: list[str], log: Path, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process for as long as the block, with all that it starts."""
    limited = ["timeout", "--signal=KILL", str(MOST_S), *command]
    with log.open("ab") as output:
        process = subprocess.Popen(
            limited, stdout=output, stderr=output, start_new_session=True, **how
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, with all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _properties(path: Path, settings: Mapping[str, Any]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


# Kafka


USER, SECRET = "somebody-who-tests", "a-secret-of-the-tests"


class Broker(NamedTuple):
    """Where a broker listens: to everybody, and to a user with a password."""

    open: str
    guarded: str


@contextmanager
def kafka(class_path: str, folder: Path) -> Iterator[Broker]:
    """A broker that is its own controller."""
    port, guarded, controller = free_port(), free_port(), free_port()
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    folder.mkdir()
    settings = _properties(
        folder / "server.properties",
        {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://{_HOST}:{port},GUARDED://{_HOST}:{guarded},"
            f"CONTROLLER://{_HOST}:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "GUARDED:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": f"{login} required "
            f'user_{USER}="{SECRET}";',
            "controller.quorum.voters": f"1@{_HOST}:{controller}",
            "log.dirs": folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "offsets.topic.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.cleaner.backoff.ms": 50,
        },
    )
    java = [*_JAVA, "-cp", class_path]
    formatted = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c"]
    subprocess.run([*java, *formatted, str(settings)], check=True, capture_output=True)
    with _running([*java, "kafka.Kafka", str(settings)], folder / "log") as process:
        wait_for("the start of Kafka", lambda: _answers(port), process)
        yield Broker(f"{_HOST}:{port}", f"{_HOST}:{guarded}")


# PostgreSQL


@dataclass(frozen=True)
class Postgres:
    """A database server."""

    programs: Path
    port: int
    log: Path

    def run(self, sql: str) -> str:
        """Run statements, each as a transaction unless they say otherwise; what they print."""
        result = subprocess.run(
            [
                f"{self.programs}/psql", "-X", "-q", "-h", _HOST, "-p", str(self.port),
                "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=1",
            ],
            input=sql, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert result.returncode == 0, f"{result.stderr}\n{self.log.read_text()[-2000:]}"
        return result.stdout

    def table(self, query: str) -> str:
        """The rows of a query, as CSV."""
        return self.run(f"copy ({query}) to stdout (format csv, header)")


@contextmanager
def postgres(programs: Path) -> Iterator[Postgres]:
    """A server with logical replication."""
    with tempfile.TemporaryDirectory(prefix="holdfast-postgres-") as place:
        # Not in a folder of pytest, which every run of it closes for other users again.
        yield from _postgres(programs, Path(place))


def _postgres(programs: Path, folder: Path) -> Iterator[Postgres]:
    as_user: dict[str, Any] = {}
    if os.getuid() == 0:  # as which it refuses to run
        user = pwd.getpwnam("postgres" if _is_user("postgres") else "nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "cwd": folder}
    data = folder / "data"
    create = [f"{programs}/initdb", "-D", f"{data}", "-U", "postgres", "-A", "trust", "--no-sync"]
    subprocess.run([*create, "-E", "UTF8"], check=True, capture_output=True, **as_user)
    port = free_port()
    settings = {
        "wal_level": "logical", "listen_addresses": _HOST, "unix_socket_directories": "",
        "fsync": "off", "shared_buffers": "32MB", "TimeZone": "UTC",
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [f"{programs}/postgres", "-D", f"{data}", "-p", str(port), *options]
    with _running(command, folder / "log", **as_user) as process:
        ready = [f"{programs}/pg_isready", "-q", "-h", _HOST, "-p", f"{port}"]
        wait_for("the start of PostgreSQL", lambda: not subprocess.call(ready), process)
        yield Postgres(programs, port, folder / "log")


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


# Kafka Connect with Debezium


@dataclass
class Connect:
    """A connector from a database to Kafka. If it is killed and started again, it sends again all
    that it sent since it was stopped in peace."""

    class_path: str
    folder: Path
    bootstrap: str
    settings: Mapping[str, Any]
    rest: int = field(default_factory=free_port)
    _block: Any = None
    _process: Any = None

    def start(self) -> None:
        """Start it; it runs when this returns."""
        self.folder.mkdir(exist_ok=True)
        converter = "org.apache.kafka.connect.json.JsonConverter"
        worker = {
            "bootstrap.servers": self.bootstrap,
            "key.converter": converter,
            "value.converter": converter,
            "offset.storage.file.filename": self.folder / "offsets",
            "offset.flush.interval.ms": 3_600_000,  # a kill repeats all since the start
            "listeners": f"http://{_HOST}:{self.rest}",
        }
        command = [
            *_JAVA, "-cp", self.class_path, "org.apache.kafka.connect.cli.ConnectStandalone",
            str(_properties(self.folder / "worker.properties", worker)),
            str(_properties(self.folder / "connector.properties", self.settings)),
        ]  # fmt: skip
        self._block = _running(command, self.folder / "log")
        self._process = self._block.__enter__()
        self.wait_for("the start of Connect", self._runs)

    def wait_for(self, what: str, sign: Callable[[], Any]) -> None:
        """Wait for something that needs the connector."""
        wait_for(what, sign, self._process)

    def stop(self) -> None:
        """End it in peace: it says how far it was."""
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(_PATIENCE_S)

    def kill(self) -> None:
        """End it at once."""
        self._block.__exit__(None, None, None)

    def _runs(self) -> bool:
        address = f"http://{_HOST}:{self.rest}/connectors/{self.settings['name']}/status"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                status = json.load(answer)
        except (urllib.error.URLError, OSError):
            return False
        states = [status["connector"], *status["tasks"]]
        failed = [state for state in states if state["state"] == "FAILED"]
        assert not failed, failed
        return len(states) > 1 and all(state["state"] == "RUNNING" for state in states)


def debezium(database: Postgres, tables: str, prefix: str) -> dict[str, Any]:
    """The settings of a connector that reads some tables, into topics with a prefix."""
    return {
        "name": "shop",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": prefix,
        "slot.name": prefix,
        "publication.name": prefix,
        "database.hostname": _HOST,
        "database.port": database.port,
        "database.user": "postgres",
        "database.password": "unused",
        "database.dbname": "postgres",
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "filtered",
        "table.include.list": tables,
        "skipped.operations": "none",
        "provide.transaction.metadata": "true",
        "poll.interval.ms": 50,
    }
