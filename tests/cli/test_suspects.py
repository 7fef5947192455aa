"""``holdfast suspects``: what a user reads, and what a program gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, write


@pytest.fixture
def dirty(run: Run, tmp_path: Path) -> Path:
    """A profile of orders, of which two share a number and one has a wrong country."""
    cities = ["Rome,IT", "Graz,AT", "Lyon,FR"]
    lines = [f"{number},{number * 7 % 11},{cities[number % 3]}" for number in range(300)]
    lines[5], lines[9] = "4,2,Lyon,FR", "9,8,Rome,AT"
    table = write(tmp_path, "orders", "id,customer,city,country\n" + "\n".join(lines) + "\n")
    done = run("profile", table, "--into", tmp_path / "shop", "--kinds", "keys,fds")
    assert done.code == 0, done.err
    return tmp_path / "shop"


def test_rules_that_nearly_hold_and_their_cells(dirty: Path, run: Run) -> None:
    done = run("suspects", dirty, "-q")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "orders: 3 rules nearly hold",
        "  key(id)          1 value is used twice (2 rows)",
        "  city -> country  1 row of 300 differs from the rest of their city",
        "  country -> city  1 row of 300 differs from the rest of their country",
        "4 cells are suspected",
        "  score  row      column   value  suggested               by",
        "   1.00  6, Graz  id       4      used by 2 rows          orders: key(id)",
        "   1.00  2, Lyon  id       4      used by 2 rows          orders: key(id)",
        "   0.99  9, 8     country  AT     IT (99 of 100 rows)     orders: city -> country",
        "   0.99  9, 8     city     Rome   Graz (100 of 101 rows)  orders: country -> city",
    ]


def test_one_rule(dirty: Path, run: Run) -> None:
    done = run("suspects", dirty, "orders: city -> country", "--format", "json", "-q")
    form = json.loads(done.out)
    assert form["total"] == 1
    assert form["near"][0]["removal"] == 1
    [suspect] = form["suspects"]
    assert suspect["row"] == {"id": 9, "customer": 8, "city": "Rome", "country": "AT"}
    assert (suspect["suggested"], suspect["agreeing"], suspect["group"]) == ("IT", 99, 100)
    assert run("suspects", dirty, "orders: key(id)", "--limit", 1, "-q").out.splitlines()[-1] == (
        "  … and 1 more (--all shows them)"
    )


def test_what_has_no_suspects(dirty: Path, run: Run) -> None:
    done = run("suspects", dirty, "orders: city not null", "-q")
    assert done.code == 2
    assert "orders: city not null has no suspects" in done.err
    done = run("suspects", dirty, "orders: key(id)", "--table", "orders", "-q")
    assert done.code == 2
    assert "a rule names its table" in done.err
