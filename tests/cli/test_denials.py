"""Denial constraints on the command line: what is shown of them, added, and asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from holdfast import Profile
from holdfast.cli import main
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.grammar import parse
from holdfast.model.records import from_form
from tests.cli.conftest import Run, write
from tests.cli.test_report import Screen

STAFF = """\
id,dept,hired,salary,rate
1,ops,2015,31000,10
2,ops,2016,36000,15
3,dev,2017,52000,20
4,dev,2018,61000,25
5,ops,2019,39000,15
6,hr,2019,45000,20
7,dev,2020,61000,25
8,hr,2021,48000,20
9,ops,2022,41000,20
10,dev,2023,75000,30
"""
PAID_LESS = "id,dept,hired,salary,rate\n11,hr,2024,30000,40\n"


@pytest.fixture
def staff(in_process: None, run: Run, tmp_path: Path) -> Path:
    """A profile that looks for keys, functional dependencies and denial constraints."""
    path = write(tmp_path, "staff", STAFF)
    result = run("profile", path, "--into", tmp_path / "p", "--kinds", "keys,fds,dcs")
    assert result.code == 0, result.err
    return tmp_path / "p"


def shown(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> list[str]:
    """What a terminal of 80 columns shows of a command."""
    screen = Screen()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", screen)
        patch.setattr("sys.argv", ["holdfast", *map(str, arguments)])
        with pytest.raises(SystemExit):
            main()
    return screen.getvalue().splitlines()


def test_rules_are_sentences(staff: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, "show", staff, "dcs")
    at = lines.index("  20 denial constraints, 6 of them keys or dependencies (--all shows them)")
    assert lines[at + 1 : at + 7] == [
        "    hired rises with id",
        "      not (t.id <= s.id and t.hired > s.hired)",
        "    rate rises with salary",
        "      not (t.salary <= s.salary and t.rate > s.rate)",
        "    hired rises with id, without ties, within dept",
        "      not (t.id <= s.id and t.dept = s.dept and t.hired >= s.hired)",
    ]
    assert "    not (t.id = s.id)" not in lines
    assert "    not (t.id = s.id)" in shown(monkeypatch, "show", staff, "dcs", "--all")


def test_lines_end_between_predicates(
    staff: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = ("--table", "staff", "--inserts", write(tmp_path, "less", PAID_LESS))
    lines = shown(monkeypatch, "show", staff, "dcs")
    whole = "t.id <= s.id and t.dept = s.dept and t.salary >= s.salary and\n      t.rate != s.rate)"
    assert f"    not ({whole}" in "\n".join(lines)
    changed = shown(monkeypatch, "check", staff, *batch)
    assert any(line.endswith(" and") for line in changed)
    for line in [*lines, *changed]:
        assert len(line) <= 80
        assert not re.search(r" (<=|>=|!=|<|>|=)$|^ *(<=|>=|!=|<|>|=) ", line), line


@pytest.mark.parametrize(
    ("kinds", "heading"),
    [
        ("dcs", "1 denial constraint"),
        ("keys,dcs", "1 denial constraint, a key (--all shows it)"),
    ],
)
def test_a_table_without_two_rows(
    kinds: str, heading: str, in_process: None, run: Run, tmp_path: Path
) -> None:
    for name, rows in (("empty", ""), ("one", "a,b\n")):
        into = tmp_path / f"{name}-profile"
        path = write(tmp_path, name, f"day,note\n{rows}")
        printed = run("profile", path, "--into", into, "--kinds", kinds)
        assert "  1 denial constraint" in printed.out
        assert run("show", into).code == 0
        assert f"  {heading}\n" in run("show", into, "dcs").out
        everything = run("show", into, "dcs", "--all").out
        assert "    there are no two rows\n      not ()\n" in everything
        form = json.loads(run("show", into, "dcs", "--format", "json").out)["tables"][name]
        told = [{"form": "key", "predicates": [], "error": 0.0}]
        assert form["denial_constraints"] == told
        [constraint] = Profile.open(into).denial_constraints(name)
        assert parse(str(constraint)) == constraint == DenialConstraint(name, ())
        assert from_form(DenialConstraint, told[0], table=name) == constraint
        assert Profile.open(into).error(f"{name}: not ()") == 0


def test_a_second_row_breaks_what_holds_without_one(
    in_process: None, run: Run, tmp_path: Path
) -> None:
    path = write(tmp_path, "one", "day,note\na,b\n")
    run("profile", path, "--into", tmp_path / "p", "--kinds", "dcs")
    batch = ("--table", "one", "--inserts", write(tmp_path, "more", "day,note\na,c\n"))
    applied = run("apply", tmp_path / "p", *batch)
    assert "1 denial constraint broken: two rows satisfy it\n    not ()\n" in applied.out
    assert "2 denial constraints gained, which may well be chance" in applied.out
    gained = run("diff", tmp_path / "p", 1, 2, "--all").out
    assert "not (t.note = s.note)" in gained
    assert Profile.open(tmp_path / "p").error("one: not ()") == 1


def test_none_of_them_stops_a_load_unless_it_is_asked_for(
    staff: Path, run: Run, tmp_path: Path
) -> None:
    batch = (staff, "--table", "staff", "--inserts", write(tmp_path, "less", PAID_LESS))
    checked = run("check", *batch)
    assert "5 denial constraints would break: two rows satisfy each\n" in checked.out
    assert "not (t.salary <= s.salary and t.rate > s.rate)" in checked.out
    assert checked.code == 0
    assert run("check", *batch, "--kinds", "dcs").code == 1


# What is shown of long lists


def test_a_limit_says_how_many_there_are(staff: Path, run: Run) -> None:
    whole = json.loads(run("show", staff, "--format", "json").out)["tables"]["staff"]
    assert "counts" not in whole
    some = json.loads(run("show", staff, "--limit", 2, "--format", "json").out)["tables"]["staff"]
    lists = ("keys", "non_keys", "functional_dependencies", "denial_constraints")
    assert some["counts"] == {name: len(whole[name]) for name in lists}
    assert some["counts"]["denial_constraints"] == 20
    for name in lists:
        assert some[name] == whole[name][:2]
    none = json.loads(run("show", staff, "dcs", "--limit", 0, "--format", "json").out)
    assert none["tables"]["staff"]["denial_constraints"] == []
    assert none["tables"]["staff"]["counts"] == {"denial_constraints": 20}


def test_a_limit_on_the_terminal(staff: Path, run: Run) -> None:
    few = run("show", staff, "dcs", "--limit", 3).out
    assert few.count("not (") == 3
    assert few.endswith("    … and 11 more (--all shows them)\n")
    more = run("show", staff, "fds", "--limit", 1).out
    assert "salary -> dept\n" in more
    assert "salary -> rate\n" not in more
    for part in ("keys", "non-keys", "agree-sets"):
        nothing = run("show", staff, part, "--limit", 0)
        assert nothing.code == 0, nothing.err
        assert re.search(r"… and \d+ more \(--all shows them\)\n$", nothing.out)


def test_a_limit_of_agree_sets(staff: Path, run: Run) -> None:
    whole = json.loads(run("show", staff, "agree-sets", "--format", "json").out)["tables"]["staff"]
    some = run("show", staff, "agree-sets", "--limit", 1, "--format", "json").out
    sets = whole["agree_sets"]
    told = {"agree_sets": sets[:1], "counts": {"agree_sets": len(sets)}}
    assert len(sets) > 1
    assert json.loads(some)["tables"]["staff"] == told


def test_a_limit_of_inclusions(in_process: None, run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "t", "a,b,c\n1,1,1\n2,2,2\n")
    run("profile", path, "--into", tmp_path / "p", "--kinds", "inds", "--within-tables")
    form = json.loads(run("show", tmp_path / "p", "--limit", 2, "--format", "json").out)
    assert form["counts"] == {"inclusion_dependencies": 6, "foreign_keys": 0}
    assert len(form["inclusion_dependencies"]) == 2
    assert form["inclusion_nulls"] == "ignored"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--limit", -1], "--limit must be a number of entries, 0 or more, not -1"),
        (["--limit", 1, "--all"], "--limit shortens lists and --all shows all of them"),
    ],
)
def test_limits_that_are_none(options: list[object], why: str, staff: Path, run: Run) -> None:
    result = run("show", staff, *options)
    assert result.code == 2
    assert why in result.err


# Kinds that are added


def test_other_kinds_can_be_added(in_process: None, run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "staff", STAFF)
    run("profile", path, "--into", tmp_path / "p", "--kinds", "keys")
    added = run("add", tmp_path / "p", "--kinds", "fds,inds")
    assert added.code == 0, added.err
    assert "13 functional dependencies" in added.out
    added = run("add", tmp_path / "p", "--kinds", "dcs", "--columns", "dept, salary, rate")
    assert "    rate rises with salary\n" in added.out
    assert "hired" not in added.out
    assert Profile.open(tmp_path / "p").snapshot().options["cross_columns"] == 0.3
    lines = run("history", tmp_path / "p").out.splitlines()
    happened = [re.search(r"first profile|kinds added", line) for line in lines]
    assert [each[0] for each in happened if each] == ["first profile", "kinds added", "kinds added"]


def test_options_that_do_not_concern_a_kind(staff: Path, run: Run) -> None:
    result = run("add", staff, "--kinds", "inds", "--max-predicates", 2)
    assert result.code == 2
    assert "max_predicates does not concern inds" in result.err
    result = run("add", staff, "--kinds", "inds", "--columns", "")
    assert "--columns ''" in result.err


def test_predicates(staff: Path, run: Run) -> None:
    text = run("predicates", staff).out
    assert "  dept    equality\n" in text
    assert "Today's rows would choose the same.\n" in text
    form = json.loads(run("predicates", staff, "--stored", "--format", "json").out)
    ways = {"id": "ordered", "dept": "equality", "hired": "ordered", "salary": "ordered"}
    chosen = {"columns": {**ways, "rate": "ordered"}, "pairs": [], "atoms": 14}
    assert form == {"tables": {"staff": {"chosen": chosen}}}
