"""``holdfast suspects``: what a user reads, and what a program gets."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pytest
from pyarrow import parquet

from holdfast.api import Profile
from holdfast.report import written
from holdfast.report.terminal.suspects import suspects
from holdfast.screen.page import Page
from holdfast.tasks import suspects as tasks
from tests.cli.conftest import Run, write

FIRST = 1 << 32
"""The number of the first row of the first segment."""


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
        "  1  key(id)          1 value is used twice (2 rows)",
        "  2  city -> country  1 row of 300 differs from the rest of their city",
        "  3  country -> city  1 row of 300 differs from the rest of their country",
        "4 cells are suspected",
        "  score  row      column   value  suggested               by rule",
        "   1.00  6, Graz  id       4      used by 2 rows          1",
        "   1.00  2, Lyon  id       4      used by 2 rows          1",
        "   0.99  9        country  AT     IT (99 of 100 rows)     2",
        "   0.99  9        city     Rome   Graz (100 of 101 rows)  3",
    ]


def test_rules_that_are_not_shown_have_no_number(
    dirty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written out, and wrapped where they are too wide."""
    monkeypatch.setenv("COLUMNS", "72")
    printed = StringIO()
    found = Profile.open(dirty, engine="process").suspects()
    suspects(Page(printed, limit=2), found)
    lines = printed.getvalue().splitlines()
    assert max(map(len, lines)) <= 72
    assert lines[3].strip() == "… and 1 more (--all shows them)"
    cells = [line.split() for line in lines[6:]]
    assert [cell[0] for cell in cells[:4]] == ["1.00", "1.00", "0.99", "0.99"]
    assert [cell[-1] for cell in cells[:3]] == ["1", "1", "2"]
    assert " ".join(" ".join(cell) for cell in cells[3:]).split()[-4:] == [
        "orders:", "country", "->", "city"
    ]  # fmt: skip


def test_one_rule(dirty: Path, run: Run) -> None:
    done = run("suspects", dirty, "orders: city -> country", "--format", "json", "-q")
    form = json.loads(done.out)
    assert form["total"] == 1
    assert form["near"][0]["removal"] == 1
    [suspect] = form["suspects"]
    assert suspect["row"] == {"id": 9, "customer": 8, "city": "Rome", "country": "AT"}
    assert (suspect["suggested"], suspect["agreeing"], suspect["group"]) == ("IT", 99, 100)
    assert (suspect["id"], suspect["row_key"], suspect["value"]) == (FIRST + 9, {"id": 9}, "AT")
    assert form["groups"] == 1
    assert run("suspects", dirty, "orders: key(id)", "--limit", 1, "-q").out.splitlines()[-1] == (
        "    … and 1 more (--all shows them)"
    )
    assert run("suspects", dirty, "orders: city -> country", "-q").out.splitlines() == [
        "orders: city -> country",
        "  1 cell in 1 group disagrees with the rest of the group",
        "    id  city  country  suggested",
        "    9   Rome  AT       IT  (99 of 100 rows)",
    ]
    assert run("suspects", dirty, "orders: key(id)", "-q").out.splitlines() == [
        "orders: key(id)",
        "  2 rows share 1 value",
        "    id  customer  city  country",
        "    4   6         Graz  AT",
        "    4   2         Lyon  FR",
    ]
    done = run("suspects", dirty, "orders: customer -> customer", "-q")
    assert done.out.splitlines()[1:] == ["  no cell is suspected"]


@pytest.fixture
def stray(in_process: None, run: Run, tmp_path: Path) -> Path:
    """A profile of visits to cities, of which two do not exist: one of them may be a typing
    error."""
    names = ["Rome", "Graz", "Lyon", "Bonn", "Oslo", "Cork", "Faro", "Turku"]
    cities = write(
        tmp_path, "cities", "\n".join(["city", *(f"{n}{k}" for n in names for k in "abcdef")])
    )
    visited = [f"{number},{names[number % 8]}{'abcdef'[number % 6]}" for number in range(400)]
    visited[7], visited[9], visited[11] = "7,Tuirkub", "9,Atlantis", "11,Atlantis"
    visits = write(tmp_path, "visits", "\n".join(["id,city", *visited]))
    into = tmp_path / "trips"
    done = run("profile", cities, visits, "--into", into, "--near-missing", 0.1)
    assert done.code == 0, done.err
    return into


def test_values_that_are_missing_elsewhere(stray: Path, run: Run) -> None:
    """One edit away from one value alone, this is suggested."""
    rule = "visits(city) in cities(city)"
    assert run("suspects", stray, rule, "-q").out.splitlines() == [
        rule,
        "  3 rows refer to 2 values that are missing",
        "    id  city      suggested",
        "    9   Atlantis",
        "    11  Atlantis",
        "    7   Tuirkub   Turkub",
    ]
    assert run("suspects", stray, "-q").out.splitlines() == [
        "visits: 1 rule nearly holds",
        "  1  visits(city) in cities(city)  2 values are missing (3 rows)",
        "3 cells are suspected",
        "  score  row  column  value     suggested            by rule",
        "   1.00  9    city    Atlantis  not in cities(city)  1",
        "   1.00  11   city    Atlantis  not in cities(city)  1",
        "   1.00  7    city    Tuirkub   Turkub               1",
    ]
    form = json.loads(run("suspects", stray, rule, "--format", "json", "-q").out)
    assert (form["total"], form["groups"]) == (3, 2)
    assert form["near"][0]["removal"] == 3


def test_what_has_no_suspects(dirty: Path, run: Run) -> None:
    done = run("suspects", dirty, "orders: city not null", "-q")
    assert done.code == 2
    assert "orders: city not null has no suspects" in done.err
    done = run("suspects", dirty, "orders: key(id)", "--table", "orders", "-q")
    assert done.code == 2
    assert "a rule names its table" in done.err


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def test_every_cell_is_written(dirty: Path, run: Run, tmp_path: Path) -> None:
    """As CSV, JSON lines and Parquet, the same cells in the same order."""
    listed = json.loads(run("suspects", dirty, "--format", "json", "-q").out)["suspects"]
    for ending in ("csv", "jsonl", "parquet"):
        file = tmp_path / "new folder" / f"suspects.{ending}"
        done = run("suspects", dirty, "-o", file, "-q")
        assert (done.code, done.out) == (0, f"{file}: 4 cells\n"), done.err
        assert [each.name for each in file.parent.iterdir() if each.name.startswith(".")] == []
    lines = (tmp_path / "new folder" / "suspects.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == listed
    in_csv = read_csv(tmp_path / "new folder" / "suspects.csv")
    assert [*in_csv[2]] == [*listed[0]]
    assert in_csv[2] == {
        "table": "orders",
        "id": str(FIRST + 9),
        "row_key": '{"id": 9}',
        "columns": "country",
        "value": "AT",
        "suggested": "IT",
        "agreeing": "99",
        "group": "100",
        "rule": "orders: city -> country",
        "rules": "1",
        "score": str(listed[2]["score"]),
        "row": '{"id": 9, "customer": 8, "city": "Rome", "country": "AT"}',
    }
    assert in_csv[0]["suggested"] == ""
    in_parquet = parquet.read_table(tmp_path / "new folder" / "suspects.parquet").to_pylist()
    assert [each["id"] for each in in_parquet] == [each["id"] for each in listed]
    assert in_parquet[2]["columns"] == ["country"]
    assert json.loads(in_parquet[2]["row"]) == listed[2]["row"]


def test_files_that_cannot_be_written(dirty: Path, run: Run, tmp_path: Path) -> None:
    done = run("suspects", dirty, "-o", tmp_path / "suspects.xlsx", "-q")
    assert done.code == 2
    assert "end its name in .csv, .jsonl, .ndjson, .parquet" in done.err
    done = run("suspects", dirty, "orders: city -> town", "-o", tmp_path / "s.csv", "-q")
    assert done.code == 2
    assert not (tmp_path / "s.csv").exists()
    form = json.loads(
        run(
            *("suspects", dirty, "orders: city -> country", "-o", tmp_path / "s.csv"),
            *("--format", "json", "-q"),
        ).out
    )
    assert form == {"file": str(tmp_path / "s.csv"), "suspects": 1}


@pytest.mark.parametrize("option", ["--no-rows", "--no-values"])
def test_without_rows_there_are_numbers_of_rows(
    option: str, in_process: None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET", "a secret that is long enough")
    rows = "\n".join(f"{k},{k % 3},{5 if k == 7 else k % 3}" for k in range(60))
    table = write(tmp_path, "t", f"id,a,b\n{rows}\n")
    done = run("profile", table, "--into", tmp_path / "p", "--kinds", "keys,fds", option, "-q")
    assert done.code == 0, done.err
    [suspect] = json.loads(
        run("suspects", tmp_path / "p", "t: a -> b", "--format", "json", "-q").out
    )["suspects"]
    assert suspect["row"] == {"row": suspect["id"]}
    assert (suspect["row_key"], suspect["value"], suspect["suggested"]) == (None, None, None)
    assert run("suspects", tmp_path / "p", "t: a -> b", "-q").out.splitlines()[2:] == [
        "    row         suggested",
        f"    {FIRST + 7}  (19 of 20 rows)",
    ]
    assert run("suspects", tmp_path / "p", "-o", tmp_path / "s.csv", "-q").code == 0
    assert {each["suggested"] for each in read_csv(tmp_path / "s.csv")} == {""}


def test_suspects_are_a_table_in_python(dirty: Path) -> None:
    found = Profile.open(dirty).suspects()
    table = found.to_arrow()
    assert table.num_rows == found.total == 4
    assert table.column("suggested").to_pylist() == [None, None, "IT", "Graz"]
    assert table.column("columns").to_pylist()[3] == ["city"]
    assert found.to_pandas()["score"].tolist() == [each.score for each in found.cells]
    assert "IT" in found._repr_html_()
    assert found.groups == 3


def test_any_number_of_cells_is_merged_from_files(
    dirty: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile = Profile.open(dirty)
    whole = profile.suspects().to_dict()["suspects"]
    monkeypatch.setattr(tasks, "_AT_ONCE", 1)
    monkeypatch.setattr(written, "_AT_ONCE", 3)
    assert profile.suspects().to_dict()["suspects"] == whole
    assert profile.write_suspects(tmp_path / "s.jsonl", limit=3) == 3
    assert profile.suspects(limit=3).to_dict()["suspects"] == whole[:3]
    assert profile.suspects(limit=3).total == 4
    assert not [*Path(dirty, "data").glob("*suspects*")]
