"""Batches of several tables on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import Profile
from holdfast.model.changes import BatchChanges
from tests.cli.conftest import Run, write

ORDERS = "id,day\n1,a\n2,b\n"
LINES = "order_id,line\n1,10\n1,20\n2,10\n"


@pytest.fixture
def shop(in_process: None, run: Run, tmp_path: Path) -> Path:
    sources = [write(tmp_path, name, text) for name, text in (("orders", ORDERS), ("lines", LINES))]
    result = run("profile", *sources, "--into", tmp_path / "shop")
    assert result.code == 0, result.err
    return tmp_path / "shop"


@pytest.fixture
def monday(tmp_path: Path) -> Path:
    """An order and its lines."""
    for table, text in (("orders", "id,day\n3,c\n"), ("lines", "order_id,line\n3,10\n3,20\n")):
        (tmp_path / "monday" / table).mkdir(parents=True)
        write(tmp_path / "monday" / table, "inserts", text)
    return tmp_path / "monday"


def test_an_order_and_its_lines(run: Run, shop: Path, monday: Path) -> None:
    foreign = "lines(order_id) in orders(id)"
    result = run("check", shop, "--batch", monday, "--batch-id", "monday")
    assert result.code == 0, result.out + result.err
    assert "break" not in result.out
    lines = "--table", "lines", "--inserts", monday / "lines" / "inserts.csv"
    alone = run("check", shop, *lines)
    assert (alone.code, foreign in alone.out) == (1, True)

    result = run("apply", shop, "--batch", monday, "--batch-id", "monday")
    assert result.code == 0, result.err
    assert "lines, version 2: 2 inserted; 5 rows now\n" in result.out
    assert "\norders, version 2: 1 inserted; 3 rows now\n" in result.out
    assert "broken:" not in result.out
    again = run("apply", shop, "--batch", monday, "--batch-id", "monday")
    assert again.out == (
        "lines, orders: batch 'monday' was applied before, as version 2; nothing to do\n"
    )
    assert foreign in run("show", shop, "foreign-keys").out
    text = run("history", shop).out
    assert text.count("monday") == 1
    assert [line.split()[0] for line in text.splitlines()[-2:]] == ["2", "orders"]
    entry = json.loads(run("history", shop, "--format", "json").out)["versions"][1]
    assert set(entry["changes"]["tables"]) == {"lines", "orders"}
    (_, second) = Profile.open(shop).history()
    assert isinstance(second.changes, BatchChanges)
    assert second.by_table["orders"].inserted == 1


def test_json(run: Run, shop: Path, monday: Path) -> None:
    write(monday / "lines", "inserts", "order_id,line\n9,10\n")
    result = run("check", shop, "--batch", monday, "--format", "json")
    form = json.loads(result.out)
    assert (result.code, form["breaks"], form["version"], form["applied"]) == (1, True, 1, False)
    assert form["tables"]["lines"]["changes"]["inclusion_dependencies"]["counts"]["broken"]
    assert run("check", shop, "--batch", monday, "--kinds", "fds").code == 0
    form = json.loads(run("apply", shop, "--batch", monday, "--format", "json").out)
    assert (form["version"], form["tables"]["orders"]["inserted"]) == (2, 1)
    assert form["seconds"]


def test_a_yaml_file_and_row_keys(run: Run, shop: Path, tmp_path: Path) -> None:
    write(tmp_path, "new", "id,day\n1,z\n7,q\n")
    write(tmp_path, "gone", "order_id,line\n1,20\n8,8\n")
    told = "version: 1\ntables:\n  orders: {upserts: new.csv}\n  lines: {deletes: gone.csv}\n"
    (tmp_path / "batch.yml").write_text(told)
    batch = "--batch", tmp_path / "batch.yml"
    missing = run("apply", shop, *batch, "--if-exists")
    assert (missing.code, "table 'orders': upserts need --row-key" in missing.err) == (2, True)
    strict = run("apply", shop, *batch, "--row-key", "orders=id")
    assert (strict.code, "table 'lines': this delete matches no row" in strict.err) == (2, True)
    assert Profile.open(shop).snapshot().version == 1
    result = run("apply", shop, *batch, "--row-key", "orders=id", "--if-exists", "--retries", "2")
    assert result.code == 0, result.err
    assert "lines, version 2: 1 deleted, 1 skipped (not there); 2 rows now\n" in result.out
    assert "orders, version 2: 1 inserted, 1 updated; 3 rows now\n" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what changes: --table NAME and its rows, or --batch PATH"),
        (("--batch", "{monday}", "--table", "orders"), "leave out --table"),
        (("--batch", "{monday}", "--inserts", "x.csv"), "leave out --table, --inserts"),
        (("--batch", "{monday}", "--if-exists"), "--if-exists is about deletes"),
        (("--batch", "nowhere"), "nowhere: there is no such batch"),
        (("--table", "orders", "--row-key", "a", "--row-key", "b"), "--row-key was given twice"),
    ],
)
def test_what_is_refused(
    run: Run, shop: Path, monday: Path, arguments: tuple[str, ...], message: str
) -> None:
    given = [each.format(monday=monday) for each in arguments]
    for command in ("apply", "check"):
        result = run(command, shop, *given)
        assert result.code == 2
        assert message in result.err
    assert Profile.open(shop).snapshot().version == 1


def test_one_command_with_row_keys_fits_every_batch(
    run: Run, shop: Path, monday: Path, tmp_path: Path
) -> None:
    """Row keys are used where rows are looked for: not by inserts, nor by tables without rows."""
    keys = ("--row-key", "orders=id", "--row-key", "lines=order_id,line")
    result = run("apply", shop, "--batch", monday, *keys)
    assert result.code == 0, result.err
    (tmp_path / "tuesday").mkdir()
    write(tmp_path / "tuesday", "orders-updates", "id,day\n3,d\n")
    assert "1 updated" in run("apply", shop, "--batch", tmp_path / "tuesday", *keys).out
    wrong = run("apply", shop, "--batch", tmp_path / "tuesday", "--row-key", "ordres=id")
    assert (wrong.code, "no column 'ordres=id'" in wrong.err) == (2, True)


def test_a_table_that_there_is_not(run: Run, shop: Path, monday: Path) -> None:
    (monday / "lines").rename(monday / "line")
    result = run("apply", shop, "--batch", monday)
    assert result.code == 2
    assert (
        "the profile has no table 'line'; did you mean 'lines'? It has lines, orders" in result.err
    )


def test_strict_applies_all_tables_or_none(run: Run, shop: Path, monday: Path) -> None:
    write(monday / "lines", "inserts", "order_id,line\n9,10\n")
    strict = run("apply", shop, "--batch", monday, "--strict", "--batch-id", "monday")
    assert strict.code == 1
    assert "lines(order_id) in orders(id)" in strict.out
    assert "orders, " in strict.out
    kept = Profile.open(shop)
    assert (kept.snapshot().version, kept.snapshot().tables["orders"].rows) == (1, 2)
    write(monday / "lines", "inserts", "order_id,line\n3,10\n")
    again = run("apply", shop, "--batch", monday, "--strict", "--batch-id", "monday")
    assert again.code == 0, again.out
    assert kept.snapshot().version == 2
    # An expected rule is about all tables of the batch.
    assert run("expect", shop, "lines(order_id) in orders(id)").code == 0
    write(monday / "orders", "inserts", "id,day\n4,d\n")
    write(monday / "lines", "inserts", "order_id,line\n4,10\n9,10\n")
    assert run("apply", shop, "--batch", monday, "--strict").code == 1
