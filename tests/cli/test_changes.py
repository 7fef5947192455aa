"""Change rows on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.api import Profile
from tests.cli.conftest import Run, write

FEED = """\
op,id,customer,day,first name,note
I,5,9,2026-01-04,Eve,new
U,5,9,2026-01-05,Eve,newer
D,1,7,2026-01-01,Ann,
"""


def test_the_changes_of_a_file_are_applied(run: Run, shop: Path, tmp_path: Path) -> None:
    feed = write(tmp_path, "feed", FEED)
    told = ("--row-key", "id", "--op-column", "op", "--op", "insert=I,update=U", "--op", "delete=D")
    checked = run("check", shop, "--table", "orders", "--changes", feed, *told, "--format", "json")
    assert json.loads(checked.out)["inserted"] == 1
    result = run("apply", shop, "--table", "orders", "--changes", feed, *told, "--format", "json")
    assert result.code == 0, result.err
    outcome = json.loads(result.out)
    assert [outcome[name] for name in ("inserted", "deleted", "updated", "rows")] == [1, 1, 0, 4]
    assert Profile.open(shop).snapshot().tables["orders"].rows == 4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "has the column 'op', which is not expected"),
        (("--op-column", "what"), "lacks the column 'what'"),
        (("--op-column", "op"), "what happened to a row is 'I'; expected one of insert, delete"),
        (("--op", "insert"), "--op insert: expected WHAT=VALUE"),
        (("--op", "come=I"), "what happened to a row cannot be 'come'; expected one of insert"),
        (("--op", "insert=I,delete=I"), "the operation 'I' has two meanings"),
        (("--inserts", "feed.csv"), "leave --inserts out, or it"),
        (("--if-exists",), "--if-exists is about --deletes"),
    ],
)
def test_what_is_wrong_is_said(
    run: Run, shop: Path, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    feed = write(tmp_path, "feed", FEED)
    result = run("apply", shop, "--table", "orders", "--changes", feed, *options)
    assert result.code == 2
    assert told in result.err
    assert Profile.open(shop).snapshot().version == 1


def test_events_of_debezium_in_a_file_are_applied(run: Run, shop: Path, tmp_path: Path) -> None:
    after = {"id": 1, "customer": 7, "day": "2026-01-09", "first name": "Ann", "note": None}
    value = {"before": None, "after": after, "op": "u", "source": {}}
    (tmp_path / "events.jsonl").write_text(json.dumps({"key": {"id": 1}, "value": value}))
    given = ("--table", "orders", "--changes", tmp_path / "events.jsonl", "--row-key", "id")
    result = run("apply", shop, *given, "--debezium", "--format", "json")
    assert result.code == 0, result.err
    assert (json.loads(result.out)["updated"], json.loads(result.out)["rows"]) == (1, 4)
    refused = run("apply", shop, *given, "--debezium", "--op-column", "op")
    assert "leave out the rest" in refused.err


def test_new_columns_of_events_join_and_wider_types_are_taken(tmp_path: Path, run: Run) -> None:
    write(tmp_path, "t", "id,amount\n1,2\n2,3\n")
    schema = ("--schema", "id int, amount int")
    assert run("profile", tmp_path / "t.csv", "--into", tmp_path / "p", *schema).code == 0
    fields = {"id": "int32", "amount": "int64", "note": "string"}
    inside = [{"field": name, "type": kind} for name, kind in fields.items()]
    after = {"id": 1, "amount": 1 << 40, "note": "a"}
    value = {
        "schema": {"type": "struct", "fields": [{"field": "after", "fields": inside}]},
        "payload": {"before": None, "after": after, "op": "u", "source": {}},
    }
    (tmp_path / "events.jsonl").write_text(json.dumps({"key": {"id": 1}, "value": value}))
    events = ("--changes", tmp_path / "events.jsonl", "--row-key", "id", "--debezium")
    given = ("apply", tmp_path / "p", "--table", "t", *events)
    refused = run(*given)
    assert refused.code == 2
    assert "--evolve" in refused.err
    result = run(*given, "--evolve", "--format", "json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["updated"] == 1
    profile = Profile.open(tmp_path / "p")
    facts = profile.snapshot().tables["t"].facts
    assert [(each.name, each.type, each.nulls) for each in facts] == [
        ("id", "int", 0), ("amount", "bigint", 0), ("note", "string", 1),
    ]  # fmt: skip
    assert profile.verify().equal


def test_options_of_changes_need_changes(run: Run, shop: Path, tmp_path: Path) -> None:
    feed = write(tmp_path, "feed", FEED)
    result = run("apply", shop, "--table", "orders", "--inserts", feed, "--order", "id")
    assert result.code == 2
    assert "--order is about --changes" in result.err


def test_new_columns_of_changes_join(run: Run, shop: Path, tmp_path: Path) -> None:
    feed = write(
        tmp_path, "feed", "_change_type,id,customer,day,first name,note,vip\n"
        "update_postimage,1,9,2026-01-04,Eve,new,5\n",
    )  # fmt: skip
    given = ("apply", shop, "--table", "orders", "--changes", feed, "--row-key", "id")
    assert "--evolve lets it join" in run(*given).err
    assert run(*given, "--evolve", "--format", "json").code == 0
    (vip,) = Profile.open(shop).columns("orders")[-1:]
    assert (vip.name, vip.type, vip.nulls) == ("vip", "bigint", 3)
    assert Profile.open(shop).verify().equal
