"""``holdfast explain``: what a user reads, and what a program gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, write
from tests.cli.test_denials import shown


@pytest.fixture
def broken(shop: Path, run: Run, tmp_path: Path) -> Path:
    """The shop after a batch that breaks {customer, day}, and so a dependency."""
    batch = write(tmp_path, "monday", "id,customer,day,first name,note\n5,7,2026-01-02,Ada,\n")
    done = run("apply", shop, "--table", "orders", "--inserts", batch, "--batch-id", "monday")
    assert done.code == 0, done.err
    return shop


def test_a_key_that_broke(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, "explain", broken, "orders: key(day, customer)", "-q")
    assert lines[0] == "orders: key(customer, day)"
    assert lines[1].startswith("  does not hold, since version 2 of 20")
    told = " ".join(line.strip() for line in lines[1:3])
    assert told.endswith("UTC: batch 'monday' for orders (1 inserted)")
    assert lines[3:] == [
        "  before that it held in version 1",
        "  2 of 5 rows violate it, in 1 group",
        "  1 row would have to go (20%)",
        "  1 of 10 row pairs violate it (error 0.1)",
        "    2 rows",
        "      customer  day         id  first name  note",
        "      7         2026-01-02  2   Ann         late",
        "      7         2026-01-02  5   Ada         null",
        "  what holds instead:",
        "    key(id, customer, day)",
        "    key(customer, day, `first name`)",
        "    key(customer, day, note)",
    ]


def test_a_key_that_holds(broken: Path, run: Run) -> None:
    assert run("explain", broken, "orders: key(id, day)").out.splitlines() == [
        "orders: key(id, day)",
        "  holds, since the first version",
        "  held through 1 batch with 1 changed row (confidence 0.67)",
        "  2 pairs of rows could have broken it",
        "  already enough:",
        "    key(id)",
    ]


def test_pairs_have_names(broken: Path, run: Run) -> None:
    rule = "orders: not (t.id < s.id and t.customer > s.customer)"
    lines = run("explain", broken, rule, "--limit", 1).out.splitlines()
    assert lines[1] == "  does not hold; since when is not known"
    assert "  3 of 5 rows violate it" in lines
    assert "  1 row would have to go (20%)" in lines
    assert "    rows t and s" in lines
    assert "denial constraints of these comparisons are not looked for" in lines[-1]


def test_values_can_be_masked(broken: Path, run: Run) -> None:
    for form in ("text", "json"):
        out = run("explain", broken, "orders: customer -> day", "--mask", "--format", form).out
        for value in ("2026-01-0", "Ann", "Ada"):
            assert value not in out
    shown = json.loads(out)["violations"]["examples"][0]["shown"]
    assert [row["customer"] for row in shown] == ["value 1"] * 2
    assert [row["day"] for row in shown] == ["value 1", "value 2"]
    assert [row["note"] for row in shown] == [None, "value 1"]


def test_what_a_program_gets(broken: Path, run: Run) -> None:
    told = json.loads(run("explain", broken, "orders: customer -> day", "--format", "json").out)
    assert told["kind"] == "functional_dependencies"
    assert told["constraint"] == {"lhs": ["customer"], "rhs": "day", "error": 0.0}
    assert told["violations"]["removal"] == {"at_least": 1, "at_most": 1, "exact": True}
    assert told["violations"]["rows"] == 3
    assert told["apart"] == ["day"]
    assert told["history"]["stretches"] == [{"first": 1, "last": 2, "holds": False}]
    none = json.loads(
        run("explain", broken, "orders: key(day)", "--limit", 0, "--format", "json").out
    )
    assert none["violations"]["examples"] == []


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("orders key(id)", "this is not a constraint"),
        ("orders: key(nobody)", "'nobody'"),
        ("people: key(id)", "no table 'people'"),
        ("orders(id) in orders(day)", "never equal"),
    ],
)
def test_rules_that_cannot_be_asked(
    broken: Path, run: Run, sessions: list[tuple[object, ...]], rule: str, told: str
) -> None:
    sessions.clear()
    result = run("explain", broken, rule)
    assert result.code == 2
    assert told in result.err
    assert not sessions, "what needs no Spark is told before it starts"
