"""The tutorials, and the first screen of the README, show what happens with the samples."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from holdfast.api import Profile
from holdfast.sample import copy_to, invoices
from tests.cli.conftest import Run

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
DIRTY = (ROOT / "docs" / "dirty-tables.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [block for named, block in fenced if named == language]


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
    assert len(steps([first])) == 3
    for command, shown in steps([first]):
        expect_lines(shown, printed[command])


@pytest.mark.slow
def test_the_errors_of_dirty_tables_are_found(
    in_process: None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows what happens; all that is planted is suspected, and what else is little."""
    invoices.write_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")
    printed: dict[str, str] = {}
    for command, shown in steps(blocks(DIRTY, "console")):
        done = run(*shlex.split(command)[1:])
        assert done.code == 0, done.err
        expect_lines(shown, done.out)
        printed.setdefault(command, done.out)
    (first,) = [each for each in blocks(README, "") if each.startswith("$ holdfast suspects")]
    for command, shown in steps([first]):
        expect_lines(shown, printed[command])
    with Path("suspects.csv").open(newline="") as file:
        found = {
            (json.loads(cell["row"])["invoice_no"], cell["columns"])
            for cell in csv.DictReader(file)
        }
    wrong = {(f"INV-{place + 1:06}", column) for place, column in invoices.ERRORS}
    repeated = {(f"INV-{place:06}", "invoice_no") for place in invoices.REPEATED}
    assert found - wrong - repeated == {("INV-005101", "country")}
    assert wrong | repeated <= found


def expect_lines(shown: list[str], out: str) -> None:
    """See that lines are printed in this order."""
    lines = iter(out.splitlines())
    for each in shown:
        assert each in ("", "…") or each in lines, f"{each!r} is not printed, or not here:\n{out}"


def nightly(folder: Path) -> Path:
    """The script, beside a load that writes down what it is called with."""
    (script,) = blocks(TUTORIAL, "bash")
    for name, text in (("nightly.sh", script), ("load.sh", '#!/bin/sh\necho "$1" >> loaded\n')):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder / "nightly.sh"


def bash(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, text=True, capture_output=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("check", "apply", "code", "said"),
    [
        (0, 0, 0, ""),
        (1, 0, 1, "it would break something, see reports/monday.txt"),
        (2, 0, 2, "the check itself failed with exit code 2"),
        (70, 0, 70, "the check itself failed with exit code 70"),
        (75, 0, 75, "another job was at work, run this again"),
        (130, 0, 130, "the check itself failed with exit code 130"),
        (0, 75, 75, ""),
    ],
)
def test_the_nightly_job_knows_the_exit_codes(
    tmp_path: Path, check: int, apply: int, code: int, said: str
) -> None:
    """With a command in place of Holdfast's that ends as it is told."""
    command = tmp_path / "bin" / "holdfast"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\necho "$*"; [ "$1" = check ] && exit {check}; exit {apply}\n')
    command.chmod(0o755)
    done = bash(
        tmp_path, str(nightly(tmp_path)), "monday",
        PATH=f"{command.parent}{os.pathsep}{os.environ['PATH']}",
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)
    assert (tmp_path / "loaded").exists() == (check == 0)
    assert (tmp_path / "reports" / "monday.txt").read_text().startswith("check shop/ --batch")
    assert done.stdout.startswith("apply shop/ --batch landing/monday/") == (check == 0)


@pytest.mark.spark
@pytest.mark.slow
def test_the_nightly_job_on_all_days_of_the_sample(tmp_path: Path) -> None:
    """The commands share a session, because most of the time that one takes is Spark's start."""
    copy_to(tmp_path / "landing")
    script = str(nightly(tmp_path))
    (by_hand,) = [each for each in blocks(TUTORIAL, "") if "./nightly.sh wednesday" in each]
    tables = [f"landing/{name}.csv" for name in ("customers", "products", "orders", "order_items")]
    options = ("--into", "shop", "--kinds", "keys,inds", "--quiet")  # what the job looks at
    with tempfile.TemporaryDirectory(
        prefix="hf-", dir="/tmp"
    ) as home:  # names of sockets are short
        here = {
            "XDG_RUNTIME_DIR": home,
            "HOLDFAST_SESSION": "on",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return bash(tmp_path, *command, **here)

        started = run("holdfast", "session", "start", "--master", "local[1]")
        assert started.returncode == 0, started.stderr
        try:
            assert run("holdfast", "profile", *tables, *options).returncode == 0
            assert run("holdfast", "expect", "shop", "--suggest", "--yes").returncode == 0
            monday, tuesday, early = (
                run(script, day) for day in ("monday", "tuesday", "wednesday")
            )
            mended = run("bash", "-c", by_hand)
        finally:
            run("holdfast", "session", "stop")
    assert (monday.returncode, monday.stderr) == (0, "")
    assert (tuesday.returncode, tuesday.stderr.count("\n")) == (1, 1)
    assert "would break something, see reports/tuesday.txt" in tuesday.stderr
    assert "1 expected rule would break" in (tmp_path / "reports" / "tuesday.txt").read_text()
    # It mends rows of Tuesday, which were not loaded: that is no bad batch.
    assert early.returncode == 2
    assert "matches no row" in early.stderr
    assert "the check itself failed with exit code 2" in early.stderr
    assert mended.returncode == 0, mended.stderr
    loaded = (tmp_path / "loaded").read_text().split()
    assert loaded == ["landing/monday", "landing/tuesday", "landing/wednesday"]
    versions = Profile.open(tmp_path / "shop").history()
    batches = [each.changes.batch_id for each in versions if each.changes is not None]
    assert batches == ["monday", "tuesday", "wednesday"]
