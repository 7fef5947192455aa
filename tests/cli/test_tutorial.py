"""The tutorial, and the first screen of the README, show what happens with the sample shop."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from holdfast.sample import copy_to
from tests.cli.conftest import Run

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def steps(sessions: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Each command with the lines that are shown of what it prints."""
    parts = re.split(r"^\$ ", "".join(sessions), flags=re.MULTILINE)[1:]
    return [(command, shown) for command, *shown in (part.splitlines() for part in parts)]


@pytest.mark.slow
def test_it_shows_what_happens(
    in_process: None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line that is shown is printed, in this order; others are left out."""
    copy_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = {}
    told = steps(blocks(TUTORIAL, "console"))
    assert len(told) > 5
    for command, shown in told:
        done = run(*shlex.split(command)[1:])
        assert done.code == ("tuesday" in command), done.err
        expect_lines(shown, done.out)
        printed[command] = done.out
    # The README begins with the same commands.
    (first,) = [each for each in blocks(README, "") if each.startswith("$ holdfast profile")]
    assert len(steps([first])) == 2
    for command, shown in steps([first]):
        expect_lines(shown, printed[command])


def expect_lines(shown: list[str], out: str) -> None:
    """See that lines are printed in this order."""
    lines = iter(out.splitlines())
    for each in shown:
        assert each in ("", "…") or each in lines, f"{each!r} is not printed, or not here:\n{out}"


def test_the_nightly_job_is_a_program() -> None:
    (script,) = blocks(TUTORIAL, "bash")
    checked = subprocess.run(
        ["bash", "-n"], input=script, text=True, capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
