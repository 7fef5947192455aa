"""Databases that are there for a test, asked through one small interface."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.export.contract import Contract
from holdfast.export.dialects import Dialect


def statements(script: str) -> list[str]:
    """The statements of a script that ends each with a semicolon at the end of a line."""
    lines = [line for line in script.split("\n") if not line.startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";\n") if each.strip()]


def sqlite_of(contract: Contract, dialect: Dialect, rows: dict[str, Any]) -> sqlite3.Connection:
    """Tables without any constraint, in memory."""
    database = sqlite3.connect(":memory:")
    for table in contract.tables:
        columns = dialect.names(table.names)
        database.execute(f"CREATE TABLE {dialect.name_of(table.name)} ({columns})")
        insert(database, dialect, table.name, rows[table.name])
    return database


def insert(database: Any, dialect: Dialect, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Rows into a table."""
    if rows:
        marks = ", ".join("?" for _ in rows[0])
        statement = f"INSERT INTO {dialect.name_of(table)} VALUES ({marks})"
        database.executemany(statement, rows)


class Postgresql:
    """A server of its own on a socket in a folder."""

    def __init__(self, programs: Path, folder: Path, user: str | None) -> None:
        self._programs, self._folder, self._user = programs, folder, user

    def _run(self, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        # The server refuses to run as root.
        other = ["runuser", "-u", self._user, "--"] if self._user else []
        return subprocess.run(
            [*other, *command],
            input=given,
            cwd=self._folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    @contextmanager
    def running(self) -> Iterator[Postgresql]:
        """Start it, and stop it at the end."""
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        data, log = self._folder / "data", self._folder / "log"
        program = str(self._programs / "pg_ctl")
        made = self._run(
            str(self._programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "tests",
            "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync",
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        options = f"-k {self._folder} -h '' -F"
        started = self._run(program, "-D", str(data), "-o", options, "-l", str(log), "-w", "start")
        assert started.returncode == 0, started.stderr + log.read_text()
        try:
            yield self
        finally:
            self._run(program, "-D", str(data), "-m", "immediate", "stop")

    def execute(self, script: str) -> str:
        """Run a script; its output, or its first error."""
        command = ["-h", str(self._folder), "-U", "tests", "-d", "postgres", "-v",
            "ON_ERROR_STOP=1", "-q", "-t", "-A", "-f", "-"]  # fmt: skip
        done = self._run(str(self._programs / "psql"), *command, given=script)
        return done.stdout if done.returncode == 0 else f"failed: {done.stderr}"


@contextmanager
def postgresql() -> Iterator[Postgresql]:
    """A server that runs; the test is skipped where there is none."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = str(homes[-1]) if homes else shutil.which("initdb")
    if found is None:
        pytest.skip("there is no PostgreSQL here: apt-get install -y postgresql")
    user = None
    if os.geteuid() == 0:
        user = next((name for name in ("postgres", "nobody") if _exists(name)), None)
        if user is None or shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is nobody else")
    # A short path: that of a socket has an end.
    with (
        tempfile.TemporaryDirectory(prefix="pg-") as folder,
        Postgresql(Path(found).parent, Path(folder), user).running() as server,
    ):
        yield server


def _exists(user: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
