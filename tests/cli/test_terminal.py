"""What a terminal of 80 columns shows, and what is said to whom who asks for one thing only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.kinds.inclusion_dependencies.foreign_keys import Facts
from holdfast.kinds.inclusion_dependencies.reading import Inclusions
from holdfast.model.constraints import FunctionalDependency, Key, NonKey
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.versions import Entry
from holdfast.report import terminal
from holdfast.report.snapshot import Snapshot
from holdfast.screen.page import Page
from holdfast.values.shared import Shared
from tests.cli.conftest import Run, write
from tests.cli.test_report import OPTIONS, Screen, changes, row, snapshot, table
from tests.shared import overlaps

ORDERS = "id,customer_id\n1,7\n2,7\n3,8\n4,9\n"
CUSTOMERS = "id,name\n7,Ann\n8,Bob\n9,Cid\n10,Dan\n"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    return Screen()


@pytest.fixture
def shop(in_process: None, run: Run, tmp_path: Path) -> Path:
    orders = write(tmp_path, "orders", ORDERS)
    people = write(tmp_path, "customers", CUSTOMERS)
    result = run("profile", orders, people, "--into", tmp_path / "shop")
    assert result.code == 0, result.err
    return tmp_path / "shop"


@pytest.mark.parametrize("value", ["v", "a longer value", "x" * 500])
@pytest.mark.parametrize("width", [2, 6, 13])
def test_the_names_of_non_keys_are_shown_whole(screen: Screen, width: int, value: str) -> None:
    columns = [f"some_column_{c}" for c in range(width)]
    pair = (row(columns, value), row(columns, value))
    wide = table(columns, non_keys=(NonKey("t", tuple(columns), pair),))
    terminal.show(Page(screen), "p", snapshot(wide), ["non-keys"])
    shown = screen.getvalue()
    # No name is broken in two, whatever stands beside or below it.
    words = set(re.findall(r"[\w…]+", shown))
    assert {*columns} <= words
    assert value[:10] in shown
    assert max(map(len, shown.splitlines())) <= 80


def wide_rows(**cells: tuple[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two rows of twenty columns, which agree but for these cells."""
    same = {f"some_column_{c:02}": "the same" for c in range(20)}
    one, two = ({**same, **{name: both[k] for name, both in cells.items()}} for k in (0, 1))
    return one, two


def test_columns_in_which_rows_differ_come_after_those_of_the_rule(screen: Screen) -> None:
    rows = wide_rows(some_column_19=("here", "there"), some_column_12=(None, "null"))
    Page(screen).rows(rows, ["some_column_07"], 2, ["some_column_15"])
    header, one, two, rest = screen.getvalue().splitlines()
    assert header.split()[:4] == [f"some_column_{c}" for c in ("07", "15", "12", "19")]
    assert "null" in one.split()
    assert "'null'" in two.split()
    assert "here" in one.split()
    assert "there" in two.split()
    assert rest.strip() == "… and 15 more columns"


@pytest.mark.parametrize("cells", [(1, "1"), (True, 1), (1, 1.0)])
def test_values_that_look_alike_do_not_differ_at_first_sight(
    screen: Screen, cells: tuple[Any, Any]
) -> None:
    """A cell that is written differently comes first; 1 and true are not the same."""
    rows = wide_rows(some_column_19=cells)
    Page(screen).rows(rows, [], 2)
    first = screen.getvalue().split()[0]
    assert first == ("some_column_00" if cells == (1, "1") else "some_column_19")


def test_rows_that_look_the_same_say_where_they_differ(screen: Screen) -> None:
    """Where the columns of the rule leave no room for the others."""
    rows = wide_rows(**{f"some_column_{c}": (1, 2) for c in (16, 17, 18, 19)})
    Page(screen).rows(rows, [f"some_column_{c:02}" for c in range(10)], 2)
    said = " ".join(screen.getvalue().split("\n")[-3:]).replace("\n", " ")
    assert "the rows differ in some_column_16, some_column_17, some_column_18 and 1 more" in (
        " ".join(said.split())
    )


def test_a_wrapped_set_is_not_taken_for_two(screen: Screen) -> None:
    columns = [f"some_column_{c}" for c in range(10)]
    two = table(columns, keys=(Key("t", tuple(columns[:9])), Key("t", tuple(columns[1:]))))
    terminal.show(Page(screen), "p", snapshot(two), ["keys"])
    lines = screen.getvalue().splitlines()
    starts = [line for line in lines if line.startswith("    some")]
    assert len(starts) == 2
    assert sum(line.startswith("      some") for line in lines) >= 2
    assert all(line == line.rstrip() for line in lines)


def test_blank_lines_stand_between_tables(screen: Screen) -> None:
    one = table(["a"], keys=(Key("t", ("a",)),))
    two = table(["b"], name="u", keys=(Key("u", ("b",)),))
    shown = Snapshot(1, "2026-11-15T08:52:11", OPTIONS, {"t": one, "u": two})
    terminal.show(Page(screen), "p", shown, ["keys"])
    assert "\n\nt: 3 rows" in screen.getvalue()
    assert "    a\n\nu: 3 rows" in screen.getvalue()


def test_only_the_foreign_keys(shop: Path, run: Run) -> None:
    told = run("show", shop, "foreign-keys").out
    assert "4 rows" not in told
    assert "Two nulls" not in told
    assert "1 foreign key\n" in told
    assert "orders(customer_id) in customers(id)" in told
    assert "4 rows" not in run("show", shop, "inds").out
    assert "orders: 4 rows" in run("show", shop, "inds", "--verbose").out


def dependent(**facts: Any) -> Snapshot:
    found = (
        FunctionalDependency("t", ("id",), "city"),
        FunctionalDependency("t", ("id",), "land"),
        FunctionalDependency("t", ("city",), "land"),
        *facts.pop("found", ()),
    )
    known = table(
        ["id", "city", "land"], keys=(Key("t", ("id",)),), functional_dependencies=found, **facts
    )
    return snapshot(known, kinds=["keys", "fds"])


@pytest.mark.parametrize("parts", [["fds"], ["keys", "fds", "inds", "foreign-keys"]])
def test_what_a_key_implies_is_counted(screen: Screen, parts: list[str]) -> None:
    terminal.show(Page(screen), "p", dependent(), parts)
    told = screen.getvalue()
    assert "  3 functional dependencies, 2 with a key on the left (--all shows them)\n" in told
    assert "    city -> land\n" in told
    assert "id ->" not in told
    terminal.show(Page(screen, everything=True), "p", dependent(), parts)
    told = screen.getvalue().removeprefix(told)
    assert "  3 functional dependencies, 2 with a key on the left\n    id -> city\n" in told


def test_what_an_approximate_key_implies_is_counted(screen: Screen) -> None:
    near = (
        FunctionalDependency("t", ("city",), "id", 0.1),
        FunctionalDependency("t", ("land",), "id", 0.2),
    )
    shown = dependent(found=near, approximate_keys=(Key("t", ("city",), 0.1),))
    terminal.show(Page(screen), "p", shown, ["fds"])
    told = screen.getvalue()
    assert "5 functional dependencies, 3 with a key on the left" in told
    assert "city -> land\n" in told
    assert "land -> id  (violated by 0.2 of the row pairs)" in told
    assert "city -> id" not in told


def test_history_tells_each_table(screen: Screen) -> None:
    rows = {"customers": 151, "order_items": 1_798}
    counts = {"customers": {"keys": 2}, "order_items": {"keys": 3}}
    repeated = {"customers": 0, "order_items": 4}
    first = Entry(1, "2026-11-15T08:52:11", None, rows, counts, repeated)
    batch = changes(table="customers", inserted=21, rows=172, batch_id="tuesday")
    then = Entry(2, "2026-11-16T08:52:11", batch, rows, counts, {})
    terminal.history(Page(screen), [first, then])
    lines = screen.getvalue().splitlines()
    words = [line.split() for line in lines]
    (one,) = [line for line in words if "customers" in line and line[0] == "1"]
    (two,) = [line for line in words if line and line[0] == "order_items"]
    assert one[:5] == ["1", "2026-11-15", "08:52", "customers", "first"]
    assert one[-2:] == ["151", "2"]
    assert two[-4:] == ["profile", "1,798", "0", "(3)"]
    assert sum("2026-11-16 08:52" in line for line in lines) == 1


def test_history_on_a_narrow_screen_breaks_no_word(screen: Screen) -> None:
    rows = {"customers": 151, "order_items": 1_798}
    counts = {name: {"keys": 2, "functional_dependencies": 3_343} for name in rows}
    counts["order_items"]["denial_constraints"] = 28_296
    first = Entry(1, "2026-11-15T08:52:11", None, rows, counts, dict.fromkeys(rows, 0))
    batch = changes(table="customers", inserted=21, rows=172, batch_id="tuesday")
    then = Entry(2, "2026-11-16T08:52:11", batch, rows, counts, {})
    terminal.history(Page(screen), [first, then])
    text = screen.getvalue()
    lines = [line.split() for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= 60
    assert "version 2, 2026-11-16 08:52 UTC, batch tuesday\n" in text
    assert ["table", "rows", "changed", "rows", "keys", "fds", "dcs"] in lines
    assert ["order_items", "first", "profile", "1,798", "2", "3,343", "28,296"] in lines
    assert ["customers", "21", "inserted", "172", "2", "3,343"] in lines


@pytest.mark.parametrize(
    "command", [[], ["profile"], ["apply"], ["check"], ["show"], ["history"], ["diff"], ["verify"]]
)
def test_help_shows_no_type_of_a_flag(run: Run, command: list[str]) -> None:
    told = run(*command, "--help").out
    assert "--help" in told
    assert "bool" not in told.lower()


def test_help_speaks_of_all_constraints(run: Run) -> None:
    told = " ".join(re.sub(r"[│╭╮╰╯─]", " ", run("--help").out).split())
    assert "Finds the keys, foreign keys, functional and inclusion dependencies" in told
    assert "diff Show which keys and dependencies were gained and lost" in told


def test_what_is_left_of_an_inclusion_that_breaks(shop: Path, run: Run, tmp_path: Path) -> None:
    new = write(tmp_path, "new", "id,customer_id\n5,11\n")
    arguments = (shop, "--table", "orders", "--inserts", new)
    told = run("check", *arguments)
    line = "    orders(customer_id) in customers(id)  (still 75% of the values)\n"
    assert line in told.out
    for command in ("check", "apply"):
        form = json.loads(run(command, *arguments, "--format", "json").out)
        broken = form["changes"]["inclusion_dependencies"]["broken"]
        assert [each["coverage"] for each in broken] == [0.75]
    assert line in run("diff", shop, 1, 2).out
    (version,) = json.loads(run("history", shop, "--format", "json").out)["versions"][1:]
    changes = version["changes"]["changes"]["inclusion_dependencies"]
    assert changes["broken"][0]["coverage"] == 0.75


def test_what_is_left_where_nothing_is() -> None:
    a, b = Attribute("t", "a"), Attribute("u", "b")
    emptied = Shared((a, b), ("text", "text"), overlaps([[0, 0], [0, 3]]))
    assert emptied.lost(InclusionDependency((a,), (b,))).coverage is None
    assert emptied.lost(InclusionDependency((a, a), (b, b))).coverage is None


def test_partial_foreign_keys_have_their_coverage(screen: Screen) -> None:
    a, b = Attribute("orders", "customer_id"), Attribute("customers", "id")
    shared = Shared((a, b), ("number", "number"), overlaps([[10_000, 9_999], [9_999, 20_000]]))
    facts = {
        "orders": Facts((), {"customer_id": "bigint"}, 20_000),
        "customers": Facts((Key("customers", ("id",)),), {"id": "bigint"}, 20_000),
    }
    partial = Inclusions(shared, facts, min_coverage=0.9)
    assert [each.to_dict()["coverage"] for each in partial.foreign_keys()] == [0.9999]
    tables = {"orders": table(["customer_id"])}
    shown = Snapshot(1, "2026-11-15T08:52:11", OPTIONS, tables, {"inds": partial})
    terminal.show(Page(screen), "p", shown, ["foreign-keys"])
    told = screen.getvalue()
    assert "orders(customer_id) in customers(id)  (99.99% of the values)\n" in told
