"""The tutorial, and the first screen of the README, show what happens with the sample shop."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from holdfast.sample import copy_to
from tests.steps import run_steps

ROOT = Path(__file__).parent.parent
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def steps(sessions: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Each command with the lines that are shown of what it prints."""
    parts = re.split(r"^\$ ", "".join(sessions), flags=re.MULTILINE)[1:]
    return [(command, shown) for command, *shown in (part.splitlines() for part in parts)]


@pytest.mark.spark
@pytest.mark.slow
def test_it_shows_what_happens(tmp_path: Path) -> None:
    """Every line that is shown is printed, in this order; others are left out."""
    copy_to(tmp_path)
    told = steps(blocks(TUTORIAL, "console"))
    assert len(told) > 5
    printed, errors = run_steps(tmp_path, [shlex.split(command) for command, _ in told])
    by_command = {}
    for (command, shown), (out, code) in zip(told, printed, strict=True):
        by_command[command] = out
        assert code == ("tuesday" in command), errors
        _expect_lines(shown, out)
    # The README begins with the same commands.
    (first,) = [
        each for each in blocks(README, "") if each.startswith("$ holdfast profile customers")
    ]
    for command, shown in steps([first]):
        _expect_lines(shown, by_command[command])


def _expect_lines(shown: list[str], out: str) -> None:
    lines = iter(out.splitlines())
    for each in shown:
        assert each in ("", "…") or each in lines, f"{each!r} is not printed, or not here:\n{out}"


def test_the_nightly_job_is_a_program() -> None:
    (script,) = blocks(TUTORIAL, "bash")
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
