"""Tokens tell whether a driver and its workers see one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model.errors import SetupError
from holdfast.runtime import shared


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker process that has answered nobody."""
    monkeypatch.setattr(shared, "_answered", {})


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return str(tmp_path / "token-0123456789ab-")


def test_one_folder(prefix: str, tmp_path: Path) -> None:
    token = shared.leave(prefix)
    answer = shared.answer_of(prefix, token)
    assert answer is not None
    assert answer.sees
    assert len(list(tmp_path.iterdir())) == 2
    shared.compare(token, [answer])
    shared.remove(token)
    assert not list(tmp_path.iterdir())


def test_a_process_answers_a_run_once(prefix: str, tmp_path: Path) -> None:
    assert shared.answer_of(prefix, shared.leave(prefix))
    assert shared.answer_of(prefix, shared.leave(prefix)) is None
    other = str(tmp_path / "token-ba9876543210-")
    assert shared.answer_of(other, shared.leave(other))


def test_a_worker_that_does_not_see_the_drivers_file(prefix: str, tmp_path: Path) -> None:
    token = shared.leave(prefix)
    Path(token).rename(tmp_path / "elsewhere")
    for _ in range(2):  # it is asked again, because it has not been seen there
        answer = shared.answer_of(prefix, token)
        assert answer is not None
        with pytest.raises(SetupError) as caught:
            shared.compare(token, [answer])
        said = f"{tmp_path}: the worker on {answer.host} does not see a file that the driver"
        assert str(caught.value).startswith(said)
        assert "mount it on every machine" in str(caught.value)


def test_a_token_of_another_disk(prefix: str) -> None:
    token = shared.leave(prefix)
    Path(token).write_text("something else")
    answer = shared.answer_of(prefix, token)
    assert answer is not None
    with pytest.raises(SetupError, match="does not see a file that the driver wrote"):
        shared.compare(token, [answer])


def test_a_worker_whose_file_the_driver_does_not_see(prefix: str) -> None:
    token = shared.leave(prefix)
    answer = shared.answer_of(prefix, token)
    assert answer is not None
    assert answer.left is not None
    Path(answer.left).unlink()
    with pytest.raises(SetupError, match="wrote a file there that the driver does not see"):
        shared.compare(token, [answer])


def test_a_worker_that_may_not_write(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    token = shared.leave(prefix)

    def refuse(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shared, "leave", refuse)
    answer = shared.answer_of(prefix, token)
    assert answer is not None
    with pytest.raises(SetupError, match=r"cannot write there \(Permission denied\)"):
        shared.compare(token, [answer])
