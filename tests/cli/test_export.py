"""Exports as a user asks for them."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from holdfast import Profile
from tests.cli.conftest import Run, write


def test_export_prints_or_writes(shop: Path, run: Run, tmp_path: Path) -> None:
    printed = run("export", shop, "--to", "sql", "--dialect", "postgresql")
    assert printed.code == 0, printed.err
    assert 'ALTER TABLE "orders" ADD CONSTRAINT "orders__pk" PRIMARY KEY ("id");' in printed.out
    made = run("export", shop, "--to", "sql", "--dialect", "sqlite", "--create-tables")
    assert made.out.startswith("-- Constraints of shop, version 1, for SQLite")
    assert '"first name" text' in made.out
    path = tmp_path / "constraints.sql"
    written = run("export", shop, "--to", "sql", "--dialect", "postgresql", "-o", path)
    assert written.out == f"{path}\n"
    assert path.read_text("utf-8") == printed.out
    assert str(Profile.open(shop).export("sql", dialect="postgresql")) == printed.out


def test_several_files_go_into_a_folder(shop: Path, run: Run, tmp_path: Path) -> None:
    project = tmp_path / "project"
    told = run("export", shop, "--to", "dbt", "--output", project, "--format", "json")
    written = json.loads(told.out)["written"]
    assert written == [
        str(project / "models/holdfast.yml"),
        str(project / "tests/generic/holdfast_violations.sql"),
    ]
    assert yaml.safe_load(Path(written[0]).read_text("utf-8"))["version"] == 2
    shown = json.loads(run("export", shop, "--to", "dbt", "--format", "json").out)["files"]
    assert shown["models/holdfast.yml"] == Path(written[0]).read_text("utf-8")
    refused = run("export", shop, "--to", "dbt", "--output", tmp_path / "file.yml")
    assert refused.code == 2
    assert "give a folder" in refused.err


def test_expected_rules_that_hold_are_exported_first(shop: Path, run: Run) -> None:
    holds, broken = "orders: key(id, customer, day)", "orders: key(customer)"
    assert run("expect", shop, holds).code == 0
    told = run("expect", shop, broken, "--severity", "warn")
    assert told.code in (0, 1), told.err
    keys = json.loads(run("export", shop, "--to", "json").out)["tables"]["orders"]["keys"]
    assert keys[0]["rule"] == holds
    assert broken not in [key["rule"] for key in keys]
    before = json.loads(run("export", shop, "--to", "json", "--at", 1).out)
    assert before["tables"]["orders"]["keys"][0]["rule"] == "orders: key(id)"


def test_expected_rules_that_some_rows_may_break_are_exported_with_their_bound(
    shop: Path, run: Run
) -> None:
    rules = ["orders: key(customer)", "orders: customer -> day", "orders: note not null"]
    assert run("expect", shop, *rules, "--max-rows", "2").code == 0
    assert run("expect", shop, "orders: key(`first name`)", "--max-rows", "1").code == 0  # broken
    form = json.loads(run("export", shop, "--to", "json").out)["tables"]["orders"]
    bounds = {
        each["rule"]: each["max_rows"]
        for part in ("keys", "functional_dependencies", "not_null")
        for each in form.get(part, [])
        if "max_rows" in each
    }
    assert {rule: bounds.get(rule) for rule in rules[:2]} == dict.fromkeys(rules[:2], 2)
    assert "orders: key(`first name`)" not in bounds
    sql = run("export", shop, "--to", "sql").out
    assert "--   orders: key(customer) (at most 2 rows may break it)\n" in sql
    assert "--   orders: note not null (at most 2 rows may break it)\n" in sql
    assert "`note` SET NOT NULL" not in sql


def test_what_is_expected_or_suggested_is_exported(shop: Path, run: Run) -> None:
    """And nothing that merely holds, unless all is asked for."""
    suggested = json.loads(run("expect", shop, "--suggest", "--format", "json").out)["suggestions"]
    rules = {each["rule"] for each in suggested}

    def checked(*arguments: str) -> set[str]:
        text = run("export", shop, "--to", "queries", *arguments).out
        return {line.removeprefix("-- ") for line in text.splitlines()[2:] if line[:2] == "--"}

    assert checked() == rules
    assert run("expect", shop, "orders: customer -> `first name`").code == 0
    assert checked() == rules | {"orders: customer -> `first name`"}
    assert checked("--all") > checked()


def test_where_nothing_was_chosen_an_export_says_so(
    in_process: None, run: Run, tmp_path: Path
) -> None:
    rows = write(tmp_path, "notes", "comment,text\na,x\na,y\nb,x\n")
    assert run("profile", rows, "--into", tmp_path / "p", "--kinds", "keys").code == 0
    told = run("export", tmp_path / "p", "--to", "queries")
    assert "-- notes: key(comment, text)\n" in told.out
    assert "no rule is expected or suggested" in told.err
    assert run("export", tmp_path / "p", "--to", "queries", "--quiet").err == ""
    assert run("export", tmp_path / "p", "--to", "queries", "--all").err == ""


def test_what_can_be_asked_for(shop: Path, run: Run) -> None:
    few = run("export", shop, "--to", "json").out
    every = run("export", shop, "--to", "json", "--all").out
    assert len(json.loads(every)["tables"]["orders"]["functional_dependencies"]) > len(
        json.loads(few)["tables"]["orders"]["functional_dependencies"]
    )
    placed = run("export", shop, "--to", "queries", "--namespace", "main.`my sales`")
    assert "FROM `main`.`my sales`.`orders`" in placed.out
    assert run("export", shop, "--to", "mermaid", "--table", "orders", "--at", "1").code == 0
    for wrong, words in (
        (["--to", "xml"], "unknown form 'xml'"),
        (["--to", "sql", "--dialect", "oracle"], "unknown dialect 'oracle'"),
        (["--to", "dbt", "--create-tables"], "only sql creates tables"),
        (["--to", "sql", "--table", "order"], "did you mean 'orders'"),
        (["--to", "sql", "--namespace", "a..b"], "expected names with dots"),
    ):
        told = run("export", shop, *wrong)
        assert told.code == 2
        assert words in told.err
