"""When something is wrong: one line, the right exit code, and nothing changed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import SetupError
from holdfast.store import Store
from tests.cli.conftest import ORDERS, Run, write


def one_line(message: str) -> str:
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert "Traceback" not in message
    return message


def test_not_a_profile(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        result = run("show", path)
        assert (result.code, result.out) == (2, "")
        assert str(path) in one_line(result.err)


def test_unknown_table(run: Run, shop: Path) -> None:
    result = run("show", shop, "--table", "order")
    assert result.code == 2
    assert "'order'" in one_line(result.err)
    assert "orders" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a/x.csv", "b/x.csv"], "two tables are called 'x'"),
        (["=x.csv"], "NAME=PATH"),
        (["x.csv", "--nulls", "maybe"], "'maybe'"),
        (["x.csv", "--kinds", "keys,dreams"], "'dreams'"),
        (["x.csv", "--max-columns", "0"], "at least 1"),
        (["x.csv", "--option", "novalue"], "--option 'novalue'"),
        (["x.csv", "--conf", "=1"], "--conf '=1'"),
        (["x.csv", "y.csv", "--schema", "id int"], "say which one"),
        (["x.csv", "--schema", "id int", "--schema", "x=id int"], "twice"),
        (["x.csv", "--format", "csv", "--format", "orc"], "csv and orc"),
        (["x.csv", "--format", "csv", "--input-format", "json"], "csv and json"),
        (["x.csv", "--format", "text", "--format", "json"], "text and json"),
    ],
)
def test_bad_arguments_of_profile(
    run: Run, sessions: list[Any], tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = run("profile", *arguments, "--into", tmp_path / "p")
    assert result.code == 2
    assert said in one_line(result.err)
    assert not sessions
    assert not (tmp_path / "p").exists()


def test_a_directory_that_is_taken_is_told_before_spark_starts(
    run: Run, shop: Path, sessions: list[Any], tmp_path: Path
) -> None:
    sessions.clear()
    for path in (shop, tmp_path):
        result = run("profile", tmp_path / "orders.csv", "--into", path)
        assert result.code == 2
        one_line(result.err)
    assert run("apply", tmp_path, "--table", "t", "--inserts", "x.csv").code == 2
    assert not sessions


def test_a_batch_needs_a_change(run: Run, shop: Path) -> None:
    result = run("apply", shop, "--table", "orders")
    assert result.code == 2
    assert "--inserts" in one_line(result.err)


def test_a_delete_that_matches_nothing(run: Run, shop: Path, tmp_path: Path) -> None:
    gone = write(tmp_path, "gone", ORDERS.splitlines()[0] + "\n99,1,2026-01-01,Ann,\n")
    result = run("apply", shop, "--table", "orders", "--deletes", gone)
    assert result.code == 2
    one_line(result.err)
    assert Store.open(shop).head() == 1


@pytest.mark.parametrize(
    "arguments", [["show"], ["diff", "x", "one", "2"], ["fly"], ["show", "-x"]]
)
def test_usage_errors(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err


def test_a_format_that_cannot_be_printed(run: Run, shop: Path) -> None:
    assert run("show", shop, "--format", "csv").code == 2


def test_setup_errors(run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise SetupError("Spark needs Java 17\nor newer \x1b[2J")

    monkeypatch.setattr(sys.modules["holdfast.spark.session"], "open_session", fail)
    result = run("verify", shop)
    assert result.code == 2
    assert result.err == "error: Spark needs Java 17 or newer \\x1b[2J\n"


def test_unexpected_errors_leave_a_log(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_: Any) -> None:
        raise TypeError("a bug\nof ours")

    monkeypatch.setattr("holdfast.api.Profile.history", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run("history", shop)
    assert result.code == 70
    assert "unexpected TypeError: a bug (details in" in one_line(result.err)
    (log,) = tmp_path.glob("holdfast-*.log")
    assert "Traceback" in log.read_text()
    assert str(log) in result.err

    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    with pytest.raises(TypeError, match="a bug"):
        run("history", shop)


def test_interrupted_before_and_after_the_commit(
    run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    batch = write(tmp_path, "new", ORDERS.splitlines()[0] + "\n5,5,2026-01-05,Eve,\n")
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.api.Profile.apply", interrupt)
        result = run("apply", shop, "--table", "orders", "--inserts", batch)
    assert (result.code, result.err) == (130, "interrupted: nothing was committed\n")
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.report.terminal.changes", interrupt)
        result = run("apply", shop, "--table", "orders", "--inserts", batch)
    assert (result.code, result.err) == (130, "interrupted, but version 2 is committed\n")


def test_an_interrupt_that_another_error_hides(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Any) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("the connection is gone")

    monkeypatch.setattr("holdfast.api.Profile.verify", interrupt)
    result = run("verify", shop)
    assert (result.code, result.err) == (130, "interrupted: nothing was committed\n")


def test_notes_follow_quiet_and_verbose(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(_: Any) -> list[Any]:
        logging.getLogger("holdfast").warning("careful")
        logging.getLogger("holdfast.store").info("by the way")
        return []

    monkeypatch.setattr("holdfast.api.Profile.history", told)
    assert run("history", shop).err == "warning: careful\n"
    assert run("history", shop, "--quiet").err == ""
    assert run("history", shop, "--verbose").err == "warning: careful\ninfo: by the way\n"


def test_a_closed_pipe_is_no_error(shop: Path) -> None:
    read, written = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "holdfast", "show", shop],
        stdout=written,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(written)
    assert (result.returncode, result.stderr) == (141, b"")


def test_a_terminal_without_unicode(shop: Path) -> None:
    for form in ("text", "json"):
        result = subprocess.run(
            [sys.executable, "-m", "holdfast", "show", shop, "--format", form],
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, b"")
