"""Following feeds on the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
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


def test_the_status_tells_the_last_step_and_why_a_feed_stopped(
    run: Run, shop: Path, tmp_path: Path
) -> None:
    run("expect", shop, "orders: key(id)")
    folder = arrive(tmp_path, "a", "insert,5,9,2026-01-04,Eve,new")
    given = ("--table", "orders", "--from", folder, "--name", "arrivals")
    before = run("follow", shop, *given, "--status", "--format", "json")
    (status,) = json.loads(before.out)["feeds"]
    assert (status["last"], status["stopped"], [*status["head"]["files"]]) == (
        None,
        None,
        ["a.csv"],
    )
    assert run("follow", shop, *given).code == 0
    arrive(tmp_path, "b", "insert,5,9,2026-01-04,Eve,new")

    def told(*more: str) -> tuple[str, dict[str, Any]]:
        text = run("follow", shop, "--status", *more).out
        (form,) = json.loads(run("follow", shop, "--status", "--format", "json").out)["feeds"]
        return text, form

    for _ in range(2):
        assert run("follow", shop, *given, "--on-violation", "stop").code == 1
        text, form = told()
        assert form["last"]["span"] == "a.csv"
        assert (form["last"]["rows"], form["last"]["time"]) == (1, form["time"])
        assert form["last"]["seconds"] > 0
        assert form["head"] is None
        assert form["stopped"]["error"] == (
            "b.csv was refused, because it would break orders: key(id)"
        )
        assert "arrivals: stopped at" in text
        assert form["stopped"]["error"] in text.replace("\n", " ")
    # The status outlives the version of the step.
    assert run("expire", shop, "--keep-versions", 1).code == 0
    write(folder, "b", HEADER + "insert,6,9,2026-01-04,Eve,new\n")
    run("expect", shop, "orders: key(customer, day)")
    run("expire", shop, "--keep-versions", 1)
    assert told()[1]["time"] == form["time"]
    assert run("follow", shop, *given).code == 0
    assert (told()[1]["stopped"], told()[1]["last"]["span"]) == (None, "b.csv")
    # An error of the feed itself, which goes when the feed is as it was.
    write(folder, "b", "another\n1\n")
    assert run("follow", shop, *given).code == 2
    assert "b.csv: this file changed" in told()[1]["stopped"]["error"]
    (folder / "b.csv").unlink()
    assert run("follow", shop, *given).code == 0
    assert told()[1]["stopped"] is None


def test_the_status_says_that_tables_are_at_different_moments(run: Run, tmp_path: Path) -> None:
    sources = [write(tmp_path, name, "id\n1\n2\n") for name in ("customers", "orders")]
    assert run("profile", *sources, "--into", tmp_path / "shop").code == 0
    for name in ("customers", "orders"):
        assert "not at the same moment" not in run("follow", tmp_path / "shop", "--status").out
        (tmp_path / name).mkdir()
        write(tmp_path / name, "more", "id\n3\n")
        given = ("--table", name, "--from", tmp_path / name)
        assert run("follow", tmp_path / "shop", *given).code == 0
    told = run("follow", tmp_path / "shop", "--status").out
    assert "not at the same moment" in told.replace("\n", " ")


def test_columns_join_while_a_feed_is_followed(run: Run, shop: Path, tmp_path: Path) -> None:
    folder = arrive(tmp_path, "a", "insert,5,9,2026-01-04,Eve,new")
    write(folder, "b", f"{HEADER.strip()},channel\ninsert,6,9,2026-01-04,Eve,new,web\n")
    given = ("follow", shop, "--table", "orders", "--from", folder)
    result = run(*given)
    assert (result.code, Profile.open(shop).snapshot().version) == (2, 1)
    assert "has the column 'channel'" in result.err
    assert "--evolve lets it join" in result.err
    assert run(*given, "--evolve").code == 0
    assert Profile.open(shop).snapshot().tables["orders"].columns[-1:] == ("channel",)
    added = [each.event for each in Profile.open(shop).history() if each.event]
    assert added == ["table orders: column channel added as string"]


def test_versions_expire_while_a_feed_is_followed(run: Run, shop: Path, tmp_path: Path) -> None:
    for number in range(5):
        folder = arrive(tmp_path, f"f{number}", f"insert,{5 + number},9,2026-01-04,Eve,new")
    given = ("follow", shop, "--table", "orders", "--from", folder, "--max-files", 1)
    assert run(*given, "--keep-versions", 2).code == 0
    assert [each.version for each in Profile.open(shop).history()] == [5, 6]
    arrive(tmp_path, "f5", "insert,99,9,2026-01-04,Eve,new")
    assert run(*given, "--keep-days", 1).code == 0
    assert [each.version for each in Profile.open(shop).history()] == [5, 6, 7]
    result = run(*given, "--keep-versions", 0)
    assert (result.code, "the last version always stays" in result.err) == (2, True)


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
    (stands,) = read("expectations.parquet")
    assert (stands["rule"], stands["holds"], stands["violations"]) == (rule["constraint"], False, 1)
    assert (stands["version"], stands["severity"], stands["name"]) == (3, "error", None)
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


def test_versions_are_published_as_delta_tables(run: Run, shop: Path, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    run("expect", shop, "orders: key(customer, day)")
    folder = arrive(tmp_path, "a", "insert,5,9,2026-01-03,Eve,new")
    out = f"delta:{tmp_path / 'out'}"
    given = ("follow", shop, "--table", "orders", "--from", folder, "--publish", out)

    def read(name: str) -> list[dict[str, Any]]:
        table = deltalake.DeltaTable(tmp_path / "out" / name)
        rows: list[dict[str, Any]] = pa.table(table.scan()).to_pylist()
        return rows

    def versions() -> list[int]:
        return sorted({row["version"] for row in read("batches")})

    result = run(*given)
    assert (result.code, result.err) == (0, "")
    assert versions() == [3]  # the others had no batch
    (batch,) = read("batches")
    assert (batch["table"], batch["inserted"], batch["rows"]) == ("orders", 1, 5)
    changes = read("changes")
    (rule,) = [each for each in changes if each["kind"] == "expectations"]
    assert (rule["what"], rule["constraint"]) == ("broken", "orders: key(customer, day)")
    assert {"orders: key(id)"} <= {each["constraint"] for each in read("constraints")}
    (stands,) = read("expectations")
    assert (stands["rule"], stands["holds"], stands["violations"]) == (rule["constraint"], False, 1)
    # A run that was killed before its last table writes the same rows again.
    shutil.rmtree(tmp_path / "out" / "batches")
    assert run(*given).code == 0
    assert versions() == [3]
    assert sorted(map(repr, read("changes"))) == sorted(map(repr, changes))
    # A version without batches is known as published, too.
    run("expect", shop, "orders: key(id)")
    assert Profile.open(shop).publish(out) == 1
    assert Profile.open(shop).publish(out) == 0
    assert len(read("expectations")) == 2
    arrive(tmp_path, "b", "delete,5,9,2026-01-03,Eve,new")
    assert run(*given).code == 0
    assert versions() == [3, 5]
    shutil.rmtree(tmp_path / "out" / "changes")
    (tmp_path / "out" / "changes").write_text("in the way")
    arrive(tmp_path, "c", "insert,6,9,2026-01-04,Eve,new")
    result = run(*given)
    assert (result.code, "not published" in result.err) == (0, True)


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
