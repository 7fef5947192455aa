"""The document that the report page is made of, and the page around it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast import Profile, flow
from holdfast.flow import Asked
from holdfast.kinds.base import Kind
from holdfast.model.changes import Broken, Changes, KindChanges, Superseded
from holdfast.model.constraints import Key
from holdfast.model.errors import InputError
from holdfast.model.expectations import Expectation
from holdfast.model.progress import no_progress
from holdfast.model.versions import Entry
from holdfast.report.page import is_report, page, policy
from holdfast.rules.history import lifetimes
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.report.conftest import applied, profiled, row_input

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'`&lt;{{title}}",
    "\u2028\u2029\u0000\x1b[2J",
    "javascript:alert(1)",
    "‮evil",
)


def table_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [each for each in document["tables"] if each["name"] == name]
    return found


def list_of(table: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [each for each in table["lists"] if each["name"] == name]
    return found


def test_it_has_what_a_version_says(shop: Profile) -> None:
    now, found = shop.snapshot(), shop.document()
    assert (found["name"], found["version"], found["nulls"]) == ("shop", 6, "equal")
    for name, table in now.tables.items():
        told = table_of(found, name)
        assert told["rows"] == table.rows
        assert [each["name"] for each in told["columns"]] == list(table.columns)
        assert [each["type"] for each in told["columns"]] == list(table.types)
        texts = [each["text"] for each in list_of(told, "keys")["entries"]]
        assert texts == [key.body for key in shop.keys(name)]
        dependencies = list_of(told, "fds")
        assert dependencies["total"] == len(shop.functional_dependencies(name))
        assert all({"lhs", "rhs", "text"} <= each.keys() for each in dependencies["entries"])
    likeliest = max(found["lists"][1]["entries"], key=lambda each: each["score"])
    assert likeliest["text"] == "order_items(product_id) in products(product_id)"


def test_columns_have_their_facts(shop: Profile) -> None:
    columns = {each["name"]: each for each in table_of(shop.document(), "orders")["columns"]}
    assert columns["ordered_on"]["facts"]["nulls"] == 0
    for known in shop.columns("orders"):
        assert columns[known.name] == {
            "name": known.name,
            "type": known.type,
            "facts": {
                "nulls": known.nulls,
                "distinct": known.distinct,
                "estimated": known.estimated,
                "minimum": known.minimum,
                "maximum": known.maximum,
            },
        }
    assert {each["facts"]["estimated"] for each in columns.values()} <= {True, False}
    without = table_of(shop.document(values=False), "orders")["columns"]
    assert {*without[0]["facts"]} == {"nulls", "distinct", "estimated"}


def test_a_whole_number_that_a_browser_cannot_hold_is_a_text(tmp_path: Path) -> None:
    rows = pa.table({"id": [-(2**53) + 1, 2**53 + 1]})
    (column,) = profiled(tmp_path / "p", {"t": rows}).document()["tables"][0]["columns"]
    assert column["facts"]["minimum"] == -(2**53) + 1
    assert column["facts"]["maximum"] == "9007199254740993"


def test_what_is_expected_stands_there_with_its_state(expecting: Profile) -> None:
    found = expecting.document(values=False)["expectations"]
    told = [(each["text"], each["tables"], each["holds"], each["violated_by"]) for each in found]
    assert told == [
        ("orders: key(id)", ["orders"], True, None),
        ("orders: day -> customer", ["orders"], False, "1 pair of rows"),
        ("orders(customer) in customers(id)", ["orders", "customers"], False,
         "2 rows without a match: 1 of 3 values missing"),
        ("orders: note not null", ["orders"], True, "1 row of 4; 50% may be"),
    ]  # fmt: skip
    assert [(each["severity"], each["name"]) for each in found[1:3]] == [
        ("error", None), ("warn", "every order has its customer"),
    ]  # fmt: skip
    # Those of an earlier version are those that were expected then.
    assert expecting.document(version=1)["expectations"] == []


def test_the_newest_value_is_not_told_where_values_are_not(tmp_path: Path) -> None:
    days = pa.table({"day": pa.array([date(2001, 2, 3), date(1999, 1, 1)])})
    profile = profiled(tmp_path / "p", {"t": days}, kinds=("keys",))
    rules = [Expectation(f"t: {rule}") for rule in ("newest(day) within 90 weeks", "rows >= 3")]
    flow.expect(InProcess(), Store.open(profile.path), rules, no_progress)
    applied(profile, "t", "again", inserts=days.slice(1))
    with_values, without = (profile.document(values=values) for values in (True, False))
    assert "newest day is 2001-02-03, more than 90 weeks before" in json.dumps(with_values)
    assert "newest day is value 1, more than 90 weeks before" in json.dumps(without)
    assert "2001" not in json.dumps(without)
    newest, rows = (each["violated_by"] for each in profile.document()["expectations"])
    assert newest.startswith("the newest day is")
    assert rows is None


def test_a_batch_has_what_became_of_expected_rules(gated: Profile) -> None:
    batches = {each["version"]: each["batches"] for each in gated.document()["versions"]}
    assert batches[2] == []
    (good,), (bad,), (warned,) = (batches[version] for version in (3, 4, 5))
    assert good["expected"] == {"holding": 3, "violated": []}
    assert good["changes"]["functional_dependencies"]["counts"]["broken"] > 0
    assert bad["expected"]["holding"] == 2
    (broken,) = bad["expected"]["violated"]
    (group, *_) = broken.pop("groups")
    assert broken == {
        "text": "orders: key(order_id)", "name": "one row per order", "severity": "error",
        "breaks": True, "violated_by": "2 pairs of rows", "columns": ["order_id"],
    }  # fmt: skip
    assert (group["number"], group["new"], group["about"]) == (2, [True, False], "2 rows share it")
    assert {row["order_id"] for row in group["rows"]} == {20_005}
    told = {each["text"]: each["breaks"] for each in warned["expected"]["violated"]}
    assert told == {"orders: key(order_id)": False, "orders: city -> country": True}
    assert warned["near"][0].startswith("city -> country: 1 more row breaks it")
    without = gated.document(values=False)["versions"][3]["batches"][0]["expected"]
    assert without["violated"][0]["groups"] == []


def test_near_rules_are_there_with_their_suspects(
    gated: Profile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    near = table_of(gated.document(values=False), "orders")
    assert near["suspects"] is None
    (city,) = [each for each in near["near"]["rules"] if each["text"] == "city -> country"]
    assert city["sentence"] == "3 rows of 153 differ from the rest of their city"
    suspects = table_of(gated.document(), "orders")["suspects"]
    asked = Asked(None, ["orders"], 20)
    found = flow.suspects(InProcess(), Store.open(gated.path), asked, no_progress)
    assert suspects["total"] == found.total
    assert suspects["cells"] == [
        {**each.to_dict(), "suspicion": each.suspicion} for each in found.cells
    ]
    # Rows of earlier versions are gone, some profiles keep none, and long tables take long.
    rows = pa.table(
        {"city": [n % 4 for n in range(60)], "country": [*[9], *[n % 4 for n in range(1, 60)]]}
    )
    for keep_rows in (True, False):
        profile = profiled(tmp_path / f"p{keep_rows}", {"t": rows}, keep_rows=keep_rows)
        (table,) = profile.document()["tables"]
        assert len(table["near"]["rules"]) == 1
        assert (table["suspects"] is not None) == keep_rows
    assert table_of(gated.document(version=4), "orders")["suspects"] is None
    monkeypatch.setattr("holdfast.api.LOOKED_THROUGH", 152)
    assert table_of(gated.document(), "orders")["suspects"] is None


def test_the_grain_is_a_key_or_why_there_is_none(shop: Profile, tmp_path: Path) -> None:
    assert table_of(shop.document(), "orders")["grain"]["columns"] == ["order_id"]
    twice = profiled(tmp_path / "p", {"t": pa.table({"a": [1, 1, 2]})})
    (table,) = twice.document()["tables"]
    assert table["grain"]["columns"] is None
    assert table["grain"]["reason"].startswith("1 row repeats another one")
    assert table["duplicated"] == [{"a": 1}]


def test_a_kind_that_nobody_has_heard_of_is_a_list(toy: Kind, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "land": ["Italy", "Italy"]})
    found = profiled(tmp_path / "p", {"t": rows}, kinds="keys,constants").document()
    assert list_of(found["tables"][0], "constant-columns")["entries"] == [
        {
            "column": "land",
            "text": "land constant",
            "rank": {"score": 0.5, "reasons": ["one value"]},
        }
    ]
    assert {"field": "constant_columns", "nouns": ["constant column", "constant columns"]} in found[
        "kinds"
    ]


def test_what_matters_comes_first(shop: Profile) -> None:
    orders = table_of(shop.document(), "orders")
    entries = list_of(orders, "dcs")["entries"]
    ranks = [each["rank"] for each in entries if "rank" in each]
    scores = [
        (rank.get("by_chance", False), "implied_by" in rank, -rank["score"]) for rank in ranks
    ]
    assert scores == sorted(scores)
    assert {(False, False), (False, True), (True, False)} == {each[:2] for each in scores}
    assert (
        len({each["text"] for each in entries}) == len(entries) == list_of(orders, "dcs")["total"]
    )
    assert all("rank" in each for each in entries[: len(scores)])
    (key,) = [
        each for each in list_of(orders, "keys")["entries"] if each["columns"] == ["order_id"]
    ]
    assert "referenced by order_items" in key["rank"]["reasons"]
    implied = [each["rank"].get("implied_by") for each in list_of(orders, "fds")["entries"]]
    assert implied[0] is None
    assert implied[-1] is not None


def test_a_batch_of_several_tables_is_one_version(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2]})
    profile = profiled(tmp_path / "p", {"a": rows, "b": rows})
    batch = {name: flow.Batch(inserts=row_input("inserts", rows.slice(1))) for name in "ab"}
    flow.apply_together(InProcess(), Store.open(profile.path), batch, no_progress)
    found = profile.document()
    assert [each["table"] for each in found["versions"][1]["batches"]] == ["a", "b"]
    assert found["versions"][1]["seconds"]
    assert found["lives"]["b"][0]["spans"] == [[1, 2, "broken"]]


@pytest.mark.slow
def test_rows_that_were_left_out_of_a_batch_are_told(sifted: Profile) -> None:
    """As history tells them, and without values too: they are numbers, rules and names of files."""
    for values in (True, False):
        *_, monday, tuesday = sifted.document(values=values)["versions"]
        left = monday["batches"][0]["quarantined"]
        assert (left["rows"], left["kinds"]) == (3, {"inserts": 3})
        assert left["rules"] == {"orders: key(id)": 3}
        assert left["files"]
        assert tuesday["batches"][0]["quarantined"] is None
    [entry] = [each for each in sifted.history() if each.version == monday["version"]]
    assert entry.by_table["orders"].to_dict()["quarantined"] == left


def test_long_lists_are_cut_and_counted(shop: Profile) -> None:
    found = list_of(table_of(shop.document(limit=3), "order_items"), "dcs")
    assert len(found["entries"]) == 3
    assert found["total"] == len(shop.denial_constraints("order_items")) > 400
    whole = list_of(table_of(shop.document(limit=None), "order_items"), "dcs")
    assert len(whole["entries"]) == whole["total"]


def test_rows_are_drawn_as_numbers(shop: Profile) -> None:
    points = table_of(shop.document(), "orders")["points"]
    assert points["rows"] == 353
    assert points["scales"]["ordered_on"] == "date"
    assert points["scales"]["order_id"] == "number"
    numbers, days = points["columns"]["order_id"], points["columns"]["ordered_on"]
    assert len(numbers) == len(days) == 240
    assert len(set(numbers)) == 240  # each row once
    assert {*numbers} <= {*range(1, 354)}
    assert all(day % 86_400_000 == 0 for day in days)
    # The rows are whole: a higher number is never ordered earlier.
    assert [day for _, day in sorted(zip(numbers, days, strict=True))] == sorted(days)
    assert None in points["columns"]["shipped_on"]


def test_deleted_rows_are_not_drawn(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(50)), "day": list(range(50))})
    profile = profiled(tmp_path / "p", {"t": rows}, kinds="dcs")
    applied(profile, "t", "gone", deletes=rows.slice(10, 30))
    points = profile.document()["tables"][0]["points"]
    assert sorted(points["columns"]["id"]) == [*range(10), *range(40, 50)]


def test_without_rows_nothing_is_drawn(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "day": [1, 2, 3]})
    kept = profiled(tmp_path / "p", {"t": rows}, kinds="keys,dcs", keep_rows=False)
    assert kept.document()["tables"][0]["points"] is None


def test_without_values_no_cell_is_in_it(tmp_path: Path) -> None:
    names = ["secret-one", "secret-one", "secret-two", "secret-two"]
    rows = pa.table({"id": [1, 2, 3, 4], "name": names, "amount": [777, 778, 779, 780]})
    profile = profiled(tmp_path / "p", {"t": rows}, kinds="keys,fds,dcs,columns")
    assert "secret-one" in json.dumps(profile.document())
    more = pa.table({"id": [3, 3], "name": ["secret-three"] * 2, "amount": [781, 781]})
    applied(profile, "t", "b", inserts=more)
    assert "secret-three" in json.dumps(profile.document())
    without = profile.document(values=False)
    assert not any(cell in json.dumps(without) for cell in ("secret", "777", "780", "781"))
    assert without["tables"][0]["points"] is None
    assert without["tables"][0]["duplicated"] == []


# Lives


def entry(version: int, **changes: Any) -> Entry:
    told = changes and Changes(
        "t", version, None, True, 1, 0, 0, 9, kinds={"keys": KindChanges(**changes)}
    )
    return Entry(version, "2026", told or None, {"t": 9}, {"t": {"keys": 1}}, {"t": 0})


A, B, AB = Key("t", ("a",)), Key("t", ("b",)), Key("t", ("a", "b"))


def test_lives_are_what_changes_tell() -> None:
    entries = [
        entry(1),
        entry(2, broken=(Broken(A),), gained=(AB,)),
        entry(3, gained=(A,), superseded=(Superseded(AB, A),)),
    ]
    told = lifetimes(entries, {"t": {"keys": {"key(a)"}}})["t"]
    spans = {life.text: [each.to_list() for each in life.spans] for life in told}
    assert spans == {
        "key(a)": [[1, 2, "broken"], [3, None, None]],
        "key(a, b)": [[2, 3, "superseded"]],
    }


def test_a_life_whose_end_was_not_listed_has_ended_all_the_same() -> None:
    cut = entry(3, broken=(Broken(A),), counts={"broken": 7})
    told = lifetimes([entry(1), entry(2, gained=(B,)), cut], {"t": {"keys": set()}})["t"]
    spans = {life.text: [each.to_list() for each in life.spans] for life in told}
    assert spans == {"key(a)": [[1, 3, "broken"]], "key(b)": [[2, 3, "broken"]]}


def test_lives_in_the_shop(shop: Profile) -> None:
    told = {each["text"]: each["spans"] for each in shop.document()["lives"]["orders"]}
    assert told["key(customer_id, ordered_on)"] == [[1, 4, "broken"], [6, None, None]]


# The page


def test_the_page_lets_only_its_own_script_run(shop: Profile) -> None:
    text = page(shop.document())
    (told,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    assert told == policy()
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in told
    assert "default-src 'none'" in told
    assert "unsafe" not in told
    assert "connect-src 'none'" in told
    assert "connect-src 'self'" in policy(live=True)
    # Nothing is loaded, and no markup is made of text.
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", text)
    script = text.rpartition("<script>")[2]
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)


def test_hostile_data_stays_data(tmp_path: Path) -> None:
    rows = pa.table({name: pa.array([*HOSTILE, *HOSTILE]) for name in HOSTILE})
    profile = profiled(tmp_path / HOSTILE[1], dict.fromkeys(HOSTILE[:2], rows))
    document = profile.document()
    text = page(document)
    for each in HOSTILE[:4]:
        assert each not in text
    assert text.count("<script") == text.count("</script") == 2
    (embedded,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', text)
    assert embedded.isascii()
    assert not {*"<>&"} & {*embedded}
    assert json.loads(embedded) == json.loads(json.dumps(document))


# The file


@pytest.mark.slow
def test_it_is_written_whole_beside_nothing_else(
    shop: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shop.report() == "shop.html"
    assert is_report(tmp_path / "shop.html")
    assert (tmp_path / "shop.html").stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert shop.report() == "shop.html"  # a report gives way to a newer one
    assert [*tmp_path.iterdir()] == [tmp_path / "shop.html"]


@pytest.mark.slow
def test_a_file_that_is_no_report_stays(
    shop: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.html").write_text("mine")
    with pytest.raises(InputError, match=r"shop\.html: there is a file that is no report"):
        shop.report()
    assert (tmp_path / "shop.html").read_text() == "mine"
    assert shop.report("shop.html") == "shop.html"  # unless it is named
    assert is_report(tmp_path / "shop.html")


def test_a_folder_that_is_not_there_is_told(shop: Profile, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.x\.html: the report cannot be written: No such"):
        shop.report(tmp_path / "none" / "x.html")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
