"""Following feeds on the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from holdfast import flow
from holdfast.api import Profile
from tests.cli.conftest import Run, write

HEADER = "_change_type,id,customer,day,first name,note\n"
KEY = ("--row-key", "id")


def arrive(tmp_path: Path, name: str, *rows: str) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir(exist_ok=True)
    write(folder, name, HEADER + "\n".join(rows) + "\n")
    return folder


def test_files_are_followed_as_they_arrive(run: Run, shop: Path, tmp_path: Path) -> None:
    folder = arrive(tmp_path, "a", "insert,5,9,2026-01-04,Eve,new")
    given = ("follow", shop, "--table", "orders", "--from", folder, *KEY)
    first = run(*given)
    assert first.code == 0, first.err
    assert first.out.startswith(f"{folder}: a.csv: version 2, 1 row changed, ")
    assert run(*given).out == ""
    arrive(tmp_path, "b", "delete,5,9,2026-01-04,Eve,new")
    arrive(tmp_path, "c", "update_postimage,1,8,2026-01-01,Ann,x")
    told = run(*given, "--max-files", 1, "--format", "json")
    lines = [json.loads(line) for line in told.out.splitlines()]
    assert [(line["span"], line["version"], line["behind"]) for line in lines] == [
        ("b.csv", 3, "1 file"),
        ("c.csv", 4, ""),
    ]
    assert Profile.open(shop).snapshot().tables["orders"].rows == 4


def test_the_status_says_how_far_the_profile_is(run: Run, shop: Path, tmp_path: Path) -> None:
    assert "follows no feed" in run("follow", shop, "--status").out
    folder = arrive(tmp_path, "a", "insert,5,9,2026-01-04,Eve,new")
    given = ("--table", "orders", "--from", folder, "--name", "arrivals")
    assert run("follow", shop, *given).code == 0
    arrive(tmp_path, "b", "insert,6,9,2026-01-04,Eve,new")
    (status,) = json.loads(run("follow", shop, *given, "--status", "--format", "json").out)["feeds"]
    assert (status["name"], status["table"], status["version"]) == ("arrivals", "orders", 2)
    assert (status["behind"], [*status["position"]["files"]]) == ("1 file", ["a.csv"])
    write(folder, "a", "another\n1\n")
    assert "changed after it was applied" in run("follow", shop, *given).err


def test_a_refused_step_has_exit_code_1(run: Run, shop: Path, tmp_path: Path) -> None:
    run("expect", shop, "orders: key(id)")
    folder = arrive(tmp_path, "a", "insert,1,9,2026-01-04,Eve,new")
    given = ("follow", shop, "--table", "orders", "--from", folder, "--on-violation", "stop")
    for _ in range(2):
        result = run(*given)
        assert result.code == 1
        assert "a.csv: refused" in result.out
        assert "orders: key(id)" in result.out
    assert Profile.open(shop).snapshot().version == 2


def test_sigterm_ends_after_the_step(
    run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = arrive(tmp_path, "a", "insert,5,9,2026-01-04,Eve,new")
    arrive(tmp_path, "b", "insert,6,9,2026-01-04,Eve,new")
    take = flow.Follower.step

    def step(*given: object) -> object:
        os.kill(os.getpid(), signal.SIGTERM)
        return take(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(flow.Follower, "step", step)
    given = ("--table", "orders", "--from", folder, "--max-files", 1, "--forever")
    result = run("follow", shop, *given)
    assert result.code == 0, result.err
    assert Profile.open(shop).snapshot().version == 2
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_versions_are_published(run: Run, shop: Path, tmp_path: Path) -> None:
    run("expect", shop, "orders: key(customer, day)")
    folder, out = arrive(tmp_path, "a", "insert,5,9,2026-01-03,Eve,new"), tmp_path / "out"
    given = ("follow", shop, "--table", "orders", "--from", folder, "--publish", out)
    assert run(*given).code == 0

    def read(name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(out / name).to_pylist()
        return rows

    names = [path.name for path in sorted((out / "batches").iterdir())]
    assert names == [f"{version:012}.parquet" for version in (1, 2, 3)]
    (batch,) = read(f"batches/{names[-1]}")
    assert (batch["table"], batch["inserted"], batch["rows"]) == ("orders", 1, 5)
    (rule,) = [each for each in read(f"changes/{names[-1]}") if each["kind"] == "expectations"]
    assert (rule["what"], rule["constraint"]) == ("broken", "orders: key(customer, day)")
    keys = [each["constraint"] for each in read("constraints.parquet") if each["kind"] == "keys"]
    assert "orders: key(id)" in keys
    assert len(read("expectations.parquet")) == 1
    # What a run was killed over is published by the next one.
    (out / "batches" / names[-1]).unlink()
    assert run(*given).code == 0
    assert (out / "batches" / names[-1]).exists()
    shutil.rmtree(out / "changes")
    (out / "changes").write_text("in the way")
    arrive(tmp_path, "b", "insert,6,9,2026-01-04,Eve,new")
    result = run(*given)
    assert result.code == 0
    assert "not published" in result.err


def test_a_command_gets_each_step(run: Run, shop: Path, tmp_path: Path) -> None:
    folder = arrive(tmp_path, "a", "insert,5,9,2026-01-03,Eve,new")
    script = tmp_path / "notify.py"
    script.write_text(
        "import pathlib, sys\npathlib.Path(sys.argv[1]).write_text(sys.stdin.read())\n"
        "sys.exit('no answer' if sys.argv[1].endswith('x') else 0)\n"
    )
    given = ("follow", shop, "--table", "orders", "--from", folder, "--on-change")
    told = tmp_path / "told.json"
    assert run(*given, f"{sys.executable} {script} {told}").err == ""
    assert json.loads(told.read_text())["version"] == 2
    arrive(tmp_path, "b", "insert,6,9,2026-01-04,Eve,new")
    result = run(*given, f"{sys.executable} {script} {told}x")
    assert result.code == 0
    assert "failed after version 3: exit code 1: no answer" in result.err
    arrive(tmp_path, "c", "insert,7,9,2026-01-04,Eve,new")
    assert "failed after version 4" in run(*given, tmp_path / "nothing").err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "say what to follow"),
        (("--from", "in"), "say which table follows the feed"),
        (("--config", "x.yml", "--from", "in"), "leave out --from and --table"),
        (("--from", "in", "--table", "orders"), "in: there is no such folder"),
        (("--from", "in", "--table", "order"), "no table 'order'"),
        (("--from", "in", "--table", "orders", "--row-key", "x"), "no column 'x'"),
        (("--from", "in", "--table", "orders", "--on-violation", "x"), "expected continue, stop"),
        (("--from", "in", "--table", "orders", "--quarantine", "q"), "belong together"),
        (("--from", "in", "--table", "orders", "--encoding-of", "a=us"), "give --debezium"),
    ],
)
def test_what_is_wrong_is_said(run: Run, shop: Path, options: tuple[str, ...], told: str) -> None:
    result = run("follow", shop, *options)
    assert result.code == 2
    assert told in result.err
