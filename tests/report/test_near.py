"""Rules that nearly hold, wherever a version of a profile is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.kinds.keys.reading import FoundKeys
from holdfast.kinds.ranking import ranked, sentence
from holdfast.model.constraints import Constraint, FunctionalDependency, Key
from holdfast.model.explanation import Explanation, Violations
from holdfast.model.near import NearChange, NearList, NearRule
from holdfast.model.versions import Entry
from holdfast.report import forms, terminal
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.report.versions import differences
from holdfast.screen.page import Page
from tests.cli.test_report import OPTIONS, Screen, changes, keys

NUMBER = NearRule(Key("orders", ("o_orderkey",)), "orders", 9, 60_000, values=9, rows=18)
COUNTRY = NearRule(FunctionalDependency("orders", ("city",), "country"), "orders", 12, 60_000, 0.99)
LISTED = NearList((NUMBER, COUNTRY), since=1, rows=60_000, columns=2)
COLUMNS = ("o_orderkey", "o_custkey", "o_totalprice", "city", "country")
BY_CHANCE = Key("orders", ("o_custkey", "o_totalprice"))


def orders(near: NearList | None = LISTED, **facts: Any) -> Snapshot:
    """Orders with two rules that nearly hold, and what holds by chance."""
    found = {
        "keys": FoundKeys((BY_CHANCE, Key("orders", ("o_orderkey", "o_totalprice")))),
        "fds": [
            FunctionalDependency("orders", ("o_custkey", "city"), "country"),
            FunctionalDependency("orders", ("o_orderkey",), "city"),
            FunctionalDependency("orders", ("country",), "city"),
        ],
    }
    types = ("bigint", "bigint", "decimal(15,2)", "string", "string")
    distinct = (59_991.0, 4_000.0, 50_000.0, 8.0, 8.0)
    table = TableSnapshot(
        "orders", 60_000, COLUMNS, types, 0, (), found, distinct=distinct, near=near
    )
    options = {**OPTIONS, "kinds": ["keys", "fds"]}
    return Snapshot(1, "2026-11-15T08:52:11", options, {"orders": replace(table, **facts)})


def shown(snapshot: Snapshot, **limit: Any) -> list[str]:
    screen = Screen()
    rankings = ranked(snapshot, snapshot.tables)
    terminal.overview(Page(screen, **limit), "shop", snapshot, rankings)
    return screen.getvalue().splitlines()


def unwrapped(lines: list[str]) -> list[str]:
    """The grain in one line, which it needs two for in 80 columns."""
    if len(lines) > 2 and lines[2].startswith("    identifier"):
        return [lines[0], f"{lines[1]} {lines[2].strip()}", *lines[3:]]
    return lines


@pytest.fixture(autouse=True, params=[80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def test_what_is_shown_first_has_them_below_the_grain() -> None:
    assert unwrapped(shown(orders())[3:]) == [
        "orders: 60,000 rows, 5 columns",
        "  one row per o_orderkey, but for 9 rows too many: one column, called like an identifier",
        "  2 rules nearly hold",
        "    key(o_orderkey)  9 values are used twice (18 rows)",
        "    city -> country  12 rows of 60,000 differ from the rest of their city",
        "  holdfast suspects shop --table orders lists the rows",
        "  2 keys",
        "    o_custkey, o_totalprice",
        "    … and 1 more (--all shows them)",
        "  3 functional dependencies; those that matter:",
        "    country -> city",
        "    … and 2 more (--all shows them)",
    ]


def test_what_follows_from_one_says_so_and_stays_behind() -> None:
    ranking = ranked(orders(), ["orders"])["orders"]
    implied = {
        str(each): [*map(str, each.implied_by)] for some in ranking.kinds.values() for each in some
    }
    assert implied == {
        "orders: key(o_custkey, o_totalprice)": [],
        "orders: key(o_orderkey, o_totalprice)": ["orders: key(o_orderkey)"],
        "orders: country -> city": [],
        "orders: o_custkey, city -> country": ["orders: city -> country"],
        "orders: o_orderkey -> city": ["orders: key(o_orderkey)"],
    }


def test_they_are_ranked_beside_those_that_hold() -> None:
    ranking = ranked(orders(), ["orders"])["orders"]
    first = ranking.together("keys")
    assert [str(each) for each in first[:2]] == ["orders: key(o_orderkey)", str(BY_CHANCE)]
    assert (first[0].near, first[1].near) == (NUMBER, None)
    form: dict[str, Any] = ranking.to_dict(1)
    assert form["grain"] == {
        "columns": ["o_orderkey"],
        "reason": "one column, called like an identifier",
        "removal": 9,
    }
    [key] = form["first"]["keys"]
    assert key["near"]["removal"] == 9


def test_a_key_that_holds_is_the_grain_if_it_scores_better() -> None:
    better = FoundKeys((Key("orders", ("o_orderkey",)),))
    worse = replace(NUMBER, rule=Key("orders", ("o_totalprice",)))
    now = orders(NearList((worse,)), found={"keys": better})
    assert sentence(ranked(now, ["orders"])["orders"].grain).startswith("one row per o_orderkey: ")


def test_a_table_with_repeated_rows_can_have_a_grain_that_nearly_holds() -> None:
    lines = shown(orders(duplicates=3))
    assert any(line.startswith("  one row per o_orderkey, but for 9 rows") for line in lines)
    assert not any("one row per" in line for line in shown(orders(None, duplicates=3)))


def test_at_most_twenty_are_shown() -> None:
    many = tuple(
        NearRule(FunctionalDependency("orders", (f"c{k}",), "city"), "orders", k, 60_000, 0.9)
        for k in range(1, 23)
    )
    lines = shown(orders(NearList(many, more=4)))
    assert "  26 rules nearly hold" in lines
    assert sum("differ" in line for line in lines) == 20
    assert "    … and 6 more, which are not listed" in lines
    assert sum("differ" in line for line in shown(orders(NearList(many)), everything=True)) == 20


def test_none_are_not_told() -> None:
    for near in (None, NearList(), NearList((replace(COUNTRY, removal=0),))):
        assert not any("nearly" in line for line in shown(orders(near)))


def test_they_are_a_part_of_their_own() -> None:
    def part(near: NearList | None) -> list[str]:
        screen = Screen()
        terminal.show(Page(screen), "my shop", orders(near), ["near"])
        lines = screen.getvalue().splitlines()
        return unwrapped(lines[lines.index("orders: 60,000 rows, 5 columns") :])

    assert part(replace(LISTED, dismissed=("orders: country -> city",))) == [
        "orders: 60,000 rows, 5 columns",
        "  one row per o_orderkey, but for 9 rows too many: one column, called like an identifier",
        "  2 rules nearly hold",
        "    key(o_orderkey)  9 values are used twice (18 rows)",
        "    city -> country  12 rows of 60,000 differ from the rest of their city",
        "  looked for in version 1: keys and left sides of up to 2 columns",
        "  dismissed: orders: country -> city",
        "  holdfast suspects 'my shop' --table orders lists the rows",
    ]
    assert part(None)[1].endswith("not looked for (holdfast add 'my shop' --near)")
    assert part(NearList(since=1, columns=2))[1] == "  no rule nearly holds"


def test_json_has_them_with_each_table() -> None:
    now = orders(replace(LISTED, more=3, watched=("orders: key(o_custkey)",)))
    form: dict[str, Any] = {
        "rules": [NUMBER.to_dict(), COUNTRY.to_dict()],
        "since": 1,
        "columns": 2,
        "more": 3,
        "dismissed": [],
    }
    assert forms.show(now)["tables"]["orders"]["near"] == form
    part: dict[str, Any] = forms.show(now, ["near"])
    assert part["tables"] == {
        "orders": {"rows": 60_000, "columns": [*COLUMNS], "near": form, "duplicates": 0}
    }
    part = forms.show(now, ["near"], limit=1)
    cut = part["tables"]["orders"]["near"]
    assert cut == {**form, "rules": form["rules"][:1], "counts": {"rules": 2}}
    assert "near" not in forms.show(now, ["keys"])["tables"]["orders"]
    assert "near" not in forms.show(orders(None))["tables"]["orders"]


def near_change(rule: Constraint, before: int | None, after: int | None) -> NearChange:
    def counted(removal: int | None) -> NearRule | None:
        return None if removal is None else NearRule(rule, "orders", removal, 60_300, 0.99)

    return NearChange(str(rule), counted(before), counted(after))


EVENTS = {
    (12, 15): "city -> country: 3 more rows break it (15 of 60,300)",
    (12, 13): "city -> country: 1 more row breaks it (13 of 60,300)",
    (12, 10): "city -> country: 2 fewer rows break it (10 of 60,300)",
    (12, 0): "city -> country: holds again",
    (0, 3): "city -> country: 3 more rows break it (3 of 60,300)",
    (None, 3): "city -> country: nearly holds now: 3 rows break it",
    (12, None): "city -> country: is not listed any more",
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("event", EVENTS)
def test_what_a_batch_did_to_one(event: tuple[int | None, int | None], check: bool) -> None:
    screen = Screen()
    outcome = changes(near=(near_change(COUNTRY.rule, *event),), kinds=keys())
    terminal.changes(Page(screen), outcome, check=check)
    counted = " (counted in one pass over the table)" if event[0] is None else ""
    _, *lines = screen.getvalue().splitlines()
    assert " ".join(" ".join(lines).split()) == f"{EVENTS[event]}{counted}"


def test_beside_expectations_they_are_told_in_short() -> None:
    screen = Screen()
    outcome = changes(near=(near_change(COUNTRY.rule, 12, 15),), kinds=keys(), expectations=())
    terminal.changes(Page(screen), outcome)
    assert f"    {EVENTS[12, 15]}" in screen.getvalue().splitlines()


def test_the_history_tells_what_batches_did_to_them() -> None:
    fewer, gone = near_change(COUNTRY.rule, 12, 10), near_change(NUMBER.rule, 9, 0)
    entries = [
        Entry(1, "2026-11-15T08:52:11", None, {"t": 3}, {"t": {}}, {"t": 0}),
        *(
            Entry(2 + k, "2026-11-15T08:52:11", each, {"t": 3}, {"t": {}}, {"t": 0})
            for k, each in enumerate((changes(near=(fewer,)), changes(near=(gone,))))
        ),
    ]
    screen = Screen()
    terminal.history(Page(screen), entries)
    assert screen.getvalue().splitlines()[-3:] == [
        "rules that nearly hold",
        "  version 2, t: city -> country: 2 fewer rows break it (10 of 60,300)",
        "  version 3, t: key(o_orderkey): holds again",
    ]
    told: dict[str, Any] = forms.history(entries)
    [form] = told["versions"][1]["changes"]["near"]
    assert (form["before"]["removal"], form["after"]["removal"]) == (12, 10)
    screen = Screen()
    terminal.history(Page(screen, limit=1), entries)
    assert "fewer" not in screen.getvalue()


def test_two_versions_differ_in_them() -> None:
    other = NearRule(FunctionalDependency("orders", ("country",), "city"), "orders", 1, 60_000, 0.9)
    keys_alone = {**OPTIONS, "kinds": ["keys"]}
    before = replace(orders(NearList((NUMBER, COUNTRY, other))), options=keys_alone)
    more = replace(COUNTRY, removal=15)
    came = replace(other, rule=FunctionalDependency("orders", ("o_custkey",), "city"))
    after = orders(NearList((replace(NUMBER, removal=0), more, came)))
    after = replace(after, options=keys_alone)
    differing = differences(before, after)
    screen = Screen()
    terminal.diff(Page(screen), 1, 2, differing)
    assert screen.getvalue().splitlines()[-4:] == [
        "  key(o_orderkey): 9 → 0 rows break it (holds again)",
        "  city -> country: 12 → 15 rows break it",
        "  country -> city: is not listed any more",
        "  o_custkey -> city: nearly holds now: 1 row breaks it",
    ]
    assert [each["rule"] for each in differing["orders"].to_dict()["near"]] == [
        *("orders: key(o_orderkey)", "orders: city -> country"),
        *("orders: country -> city", "orders: o_custkey -> city"),
    ]
    assert differences(before, before)["orders"].near == ()
    unknown = replace(orders(None), options=keys_alone)
    assert differences(unknown, after)["orders"].near == ()


@pytest.mark.parametrize(
    ("near", "lines"),
    [
        (
            COUNTRY,
            [
                "  nearly holds: 12 rows of 60,000 differ from the rest of their city, strength"
                " 0.99; listed since version 2",
                "  holdfast suspects shop 'orders: city -> country' lists the rows",
            ],
        ),
        (
            NUMBER,
            [
                "  nearly holds: 9 values are used twice (18 rows); listed since version 2",
                "  holdfast suspects shop 'orders: key(o_orderkey)' lists the rows",
            ],
        ),
        (
            replace(COUNTRY, removal=0),
            ["  listed among the rules that nearly hold, since version 2"],
        ),
        (None, []),
    ],
)
def test_an_explanation_says_how_a_rule_is_listed(near: NearRule | None, lines: list[str]) -> None:
    rule = COUNTRY.rule if near is None else near.rule
    explained = Explanation(
        rule, "fds", "orders", 3, False, 60_000, Violations(24, 8), near=near, listed_since=2
    )
    screen = Screen()
    terminal.explanation(Page(screen), "shop", explained)
    told = " ".join(" ".join(screen.getvalue().splitlines()[3:]).split())
    assert told == " ".join(" ".join(lines).split())
    assert explained.to_dict()["listed_since"] == 2
