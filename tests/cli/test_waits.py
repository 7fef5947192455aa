"""Whoever waits for Spark twice is told what is quicker, once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.cli import session, waits


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody at a terminal, who has waited for nothing yet."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("HOLDFAST_SESSION")
    monkeypatch.setattr(waits, "_is_terminal", lambda: True)


def told(capsys: pytest.CaptureFixture[str], seconds: float = 9.2, *, quiet: bool = False) -> str:
    waits.note(seconds)
    waits.suggest(quiet=quiet)
    return capsys.readouterr().err


def test_the_second_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == ""
    said = told(capsys)
    assert said.startswith("note: of this command, 9 s were Spark's start.")
    assert "`holdfast session start`" in said
    assert "--engine process" in said
    assert told(capsys) == ""


def test_what_does_not_count(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(capsys) == ""
    assert told(capsys, seconds=1.0) == ""
    assert told(capsys, quiet=True) == ""
    with monkeypatch.context() as patch:
        patch.setenv("HOLDFAST_SESSION", "off")
        assert told(capsys) == ""
    with monkeypatch.context() as patch:
        patch.setattr(waits, "_is_terminal", lambda: False)
        assert told(capsys) == ""
    waits.suggest(quiet=False)  # a command that did not wait
    assert told(capsys) != ""


def test_it_is_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == ""
    os.utime(session.folder() / "waited", (0, 0))
    assert told(capsys) == ""
    assert told(capsys) != ""


def test_a_folder_of_somebody_else_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    session.folder().mkdir()
    session.folder().chmod(0o777)
    assert told(capsys) + told(capsys) == ""
    assert [*session.folder().iterdir()] == []
