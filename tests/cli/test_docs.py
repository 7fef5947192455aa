"""The pages about the command line say what the program does, no more and no less."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from holdfast.cli import app
from holdfast.cli.usage import RENAMED
from holdfast.kinds.denial_constraints.predicate_listing import Predicates
from holdfast.kinds.inclusion_dependencies.foreign_keys import Facts
from holdfast.kinds.inclusion_dependencies.reading import Inclusions
from holdfast.kinds.keys.reading import FoundKeys
from holdfast.kinds.ranking import TableRanking
from holdfast.model.changes import BatchChanges, Broken, Changes, KindChanges, Superseded
from holdfast.model.column_values import Bounds, Domain, Pattern
from holdfast.model.columns import ColumnFacts
from holdfast.model.commits import Choice, EvidenceRecord
from holdfast.model.comparisons import EQUALITY, FIRST, ORDER, SECOND, Comparison, Space
from holdfast.model.constraints import AgreeSet, FunctionalDependency, Key, NonKey, NotNull
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.expectations import (
    Expectation,
    ExpectationChange,
    Group,
    Quarantine,
    Standing,
    Suggestion,
    Tally,
)
from holdfast.model.explanation import (
    ChangedRows,
    Event,
    Example,
    Explanation,
    Nearby,
    Past,
    Removal,
    Stretch,
    Violations,
)
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.limits import Limits
from holdfast.model.near import NearChange, NearList, NearRule, Suspect, Suspects
from holdfast.model.ranking import Grain, Ranked, Stability
from holdfast.model.versions import Entry, KindDiff, TableDiff, Verification
from holdfast.report import forms
from holdfast.report.snapshot import Index, Snapshot, TableSnapshot
from holdfast.values.shared import Shared
from tests.shared import overlaps

DOCS = Path(__file__).parent.parent.parent / "docs"
EVERYWHERE = "Options of every command"
SPARK = "Options of the commands that run Spark"


def sections(page: str) -> dict[str, str]:
    """The text under each heading."""
    parts = re.split(r"^## (.+)$", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def listed(section: str) -> set[str]:
    """The options in the first column of a section's table."""
    cells = re.findall(r"^\| (`-.*?) \|", section, flags=re.MULTILINE)
    return {option for cell in cells for option in re.findall(r"`(-[\w-]+)`", cell)}


def commands() -> dict[str, set[str]]:
    """The options of each command."""
    found: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {
            option for parameter in command.params for option in parameter.opts if option[0] == "-"
        }
        | {"--help", "-h"}
        for name, command in found.items()
    }


def test_every_command_and_option_is_described() -> None:
    page = sections("cli.md")
    described = {name.removeprefix("holdfast ") for name in page if name.startswith("holdfast ")}
    assert described == set(commands())
    for name, options in commands().items():
        shared = listed(page[EVERYWHERE])
        if "--remote" in options:
            shared |= listed(page[SPARK])
        assert listed(page[f"holdfast {name}"]) | shared == options, name


def test_no_option_is_made_up() -> None:
    known = {option for options in commands().values() for option in options} | {"--version"}
    text = (DOCS / "cli.md").read_text("utf-8") + (DOCS / "json.md").read_text("utf-8")
    old = {name for names in RENAMED.values() for name in names}
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) <= known | old


def test_the_json_page_shows_what_is_printed() -> None:
    columns = ("id", "city", "day")
    rows: list[dict[str, Any]] = [
        {"id": 1, "city": "Rome", "day": "2026-11-14"},
        {"id": 3, "city": "Rome", "day": "2026-11-14"},
    ]
    pair = (rows[0], rows[1])
    key = Key("orders", ("id",))
    orders = TableSnapshot(
        "orders", 1000, columns, ("bigint", "string", "date"), 0, (),
        {"keys": FoundKeys((key,), (), (NonKey("orders", ("city", "day"), pair),))},
        evidence={"agreement": EvidenceRecord(Choice("counted", 0.002, 60.0, "asked for"))},
        segments=1, indexes=(Index(("id",), 1000, 1.0),),
    )  # fmt: skip
    facts = (ColumnFacts("orders", "id", "bigint", 0, 1000, False, 1, 1000),)
    short = replace(orders.evidence["agreement"], limits=Limits(2, 1))
    hurried = replace(orders, evidence={"agreement": short})
    twice = TableSnapshot("log", 9, ("at", "what"), (), 1, ({"at": 5, "what": "start"},),
        {"keys": FoundKeys((Key("log", ("at",)),))})  # fmt: skip
    dependencies = [FunctionalDependency("orders", ("id",), "city")]
    depending = replace(orders, found={"keys": FoundKeys((key,)), "fds": dependencies})
    created = "2026-11-15T08:52:11.123+00:00"
    options = {"kinds": ["keys"], "nulls": "equal", "max_columns": None, "max_error": None,
        "inclusion_nulls": "ignored", "index_quota": 8, "start": "full",
        "keep_rows": True, "keep_values": True}  # fmt: skip
    happened = KindChanges(
        (Key("orders", ("id", "day")),),
        (Broken(Key("orders", ("id",)), pair),),
        (Superseded(Key("orders", ("city", "day")), Key("orders", ("city",))),),
        counts={"non_keys_gained": 1, "non_keys_lost": 0},
    )
    cities = FunctionalDependency("orders", ("city",), "country")
    near = NearRule(cities, "orders", 12, 1000, 0.984512)
    more = NearRule(cities, "orders", 15, 1008, 0.980213)
    changes = Changes(
        "orders", 4, "2026-11-15", True, 10, 2, 0, 1008, kinds={"keys": happened},
        seconds={"read": 0.2, "validate": 0.4}, near=(NearChange(str(cities), near, more),),
    )  # fmt: skip
    together_ = BatchChanges(
        {"lines": Changes("lines", 4, "2026-11-15", True, 20, 0, 0, 3020)}, changes.seconds
    )
    city, other = Attribute("orders", "city"), Attribute("geo.places", "city")
    shared = Shared((city, other), ("text", "text"), overlaps([[10, 10], [10, 40]]))
    tables = {
        "orders": Facts((Key("orders", ("id",)),), {"city": "string"}, 1000),
        "geo.places": Facts((Key("geo.places", ("city",)),), {"city": "string"}, 40),
    }
    contained = Inclusions(shared, tables)
    gone = InclusionDependency((city,), (other,), 0.8)
    differs = TableDiff(
        (1000, 1008),
        (0, 0),
        {
            "keys": KindDiff(
                (Key("orders", ("id", "day")),),
                (Key("orders", ("id",)),),
                {"gained": 1, "lost": 1},
                {"gained": 0, "lost": 0},
            ),
            "inclusion_dependencies": KindDiff(
                (), (gone,), {"gained": 0, "lost": 0}, {"gained": 0, "lost": 0}
            ),
        },
    )
    shown = Snapshot(3, created, options, {"orders": orders})
    compared = (
        Comparison(0, 0, ORDER),
        Comparison(1, 1, EQUALITY),
        Comparison(2, 2, ORDER),
        Comparison(3, 3, ORDER),
    )
    together = [(2, 3, 0), (3, 2, 0), (2, 3, FIRST), (2, 3, SECOND)]
    space = Space(
        "denial", 4, (*compared, *(Comparison(a, b, ORDER, rows) for a, b, rows in together))
    )
    rules = [
        DenialConstraint(
            "orders",
            tuple(Predicate(("t", c), op, ("s", c)) for c, op in (("id", "<="), ("day", ">"))),
        ),
        DenialConstraint("orders", (Predicate(("t", "day"), ">", ("t", "sent")),)),
    ]
    wide = ("id", "city", "day", "sent")
    known = EvidenceRecord(orders.evidence["agreement"].choice, space=space)
    denied = TableSnapshot("orders", 1000, wide, (), 0, (), {"dcs": rules},
        evidence={"denial": known})  # fmt: skip
    ruled = Snapshot(3, created, {"kinds": ["dcs"], "nulls": "equal", "max_predicates": None},
        {"orders": denied})  # fmt: skip
    of_columns = (
        NotNull("orders", "id"),
        Domain("orders", "city", "text", ("Oslo", "Rome")),
        Bounds("orders", "day", "text", at_least="2026-01-01", at_most="2026-11-15"),
        Pattern("orders", "code", "[A-Z]{2}-[0-9]{4}"),
    )
    coded = TableSnapshot("orders", 1000, (*columns, "code"), (), 0, (), {"columns": of_columns})
    chosen = Predicates(wide, space, Space("denial", 4, compared))
    explained = Explanation(
        Key("orders", ("city", "day")), "keys", "orders", 3, False, 1000,
        Violations(2, 1, 1, 499_500, Removal(1, 1), (Example(2, pair),)),
        Past(
            (Stretch(1, 2, True), Stretch(3, 3, False)),
            Event(3, created, "monday", (ChangedRows("orders", 10),)), broke=1,
        ),
        Nearby((Key("orders", columns),)), ("city", "day"),
    )  # fmt: skip
    ids = Expectation("orders: key(id)")
    days = zip(("Oslo", "Rome"), ("2026-11-15", "2026-11-14"), strict=True)
    clashing = tuple({"id": 1, "city": city, "day": day} for city, day in days)
    sharing = Group(clashing, 2, (True, False))
    breaking = ExpectationChange(
        Standing(ids, Tally(0, 0, 499500, 0)), Standing(ids, Tally(1, 1, 507528, 1)), (sharing,)
    )
    left_out = Quarantine(
        2, {"inserts": 2}, {"orders: key(id)": 2}, ("orders-4-9f1c02d4aa10-inserts-1.csv",)
    )
    parents = Expectation(
        "orders(customer) in customers(id)", "warn", 0.01, "every order has its customer"
    )
    reasons = ("one column", "called like an identifier")
    country = FunctionalDependency("orders", ("city",), "country")
    nearly = (
        NearRule(Key("orders", ("id",)), "orders", 1, 1000, values=1, rows=2),
        NearRule(country, "orders", 12, 1000, 0.984512),
    )
    list_of_near = NearList(nearly, 1, 1000, 2, 0, ("orders: country -> city",))
    dirty = Snapshot(3, created, options, {"orders": replace(orders, near=list_of_near)})
    customers = InclusionDependency(
        (Attribute("orders", "customer"),), (Attribute("customers", "id"),)
    )
    suspected = Suspects(
        (*nearly, NearRule(customers, "orders", 3, 1000, values=2, of_values=150)),
        (
            Suspect(
                "orders", 7, {"id": 7}, ("country",), "FR", "IT", 310, 312, country, 1, 0.984512,
                {"id": 7, "city": "Rome", "country": "FR"},
            ),
        ),
        14, 9,
    )  # fmt: skip
    page = sections("json.md")
    expected = {
        "show": [
            forms.show(shown),
            TableRanking(
                Grain("orders", key, ", ".join(reasons)),
                {"keys": [Ranked(key, 0.778, reasons, stability=Stability(2, 12, 2))]},
            ).to_dict(),
            forms.show(dirty, ["near"]),
            forms.show(Snapshot(3, created, options, {"orders": depending})),
            forms.show(ruled),
            forms.show(Snapshot(3, created, options, {"orders": coded})),
            forms.columns(Snapshot(3, created, options, {"orders": replace(orders, facts=facts)})),
            forms.agree_sets(shown, {"orders": [AgreeSet(("city", "day"), 17)]}),
            forms.show(replace(shown, found={"inds": contained}), ["inds"]),
            forms.show(replace(shown, found={"inds": contained}), ["foreign-keys"]),
            forms.show(Snapshot(3, created, options, {"log": twice}), ["keys"]),
            forms.show(Snapshot(3, created, {**options, "max_columns": 2}, shown.tables), ["keys"]),
            forms.show(Snapshot(3, created, options, {"orders": hurried}), ["keys"]),
            forms.show(ruled, limit=1),
            forms.show(shown, ["keys"], verbose=True, sizes={"words": 24000, "log": 1200}),
        ],
        "explain": [explained.to_dict()],
        "suspects": [suspected.to_dict()],
        "predicates": [forms.predicates({"orders": chosen})],
        "apply": [
            replace(changes, expectations=(breaking,), quarantined=left_out).to_dict(),
            together_.to_dict(),
        ],
        "expectations": [
            forms.expectations([Standing(parents, Tally(3, 1, 200, 3))]),
            forms.forgotten(ids),
            forms.suggestions([Suggestion(ids.rule, f"its grain: {', '.join(reasons)}")]),
        ],
        "check": [{"breaks": forms.check(changes)["breaks"]}],
        "history": [
            forms.history(
                [Entry(1, created, None, {"orders": 1000}, {"orders": {"keys": 1}}, {"orders": 0})]
            ),
        ],
        "diff": [
            forms.diff(3, 7, {"orders": differs}),
        ],
        "verify": [Verification(3, {"orders": ()}).to_dict()],
    }  # fmt: skip
    for name, printed in expected.items():
        blocks = re.findall(r"```json\n(.*?)```", page[name], flags=re.DOTALL)
        told = [forms.dumps(form) for form in printed]
        assert [*map(json.loads, blocks)] == [*map(json.loads, told)], "\n".join(told)
