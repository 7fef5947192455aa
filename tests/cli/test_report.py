"""What the terminal shows of values that are wide, many, strange or missing."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import holdfast
from holdfast.cli.progress import Progress, describe
from holdfast.kinds import registry
from holdfast.kinds.keys.reading import FoundKeys
from holdfast.model.changes import Broken, Changes, KindChanges, Superseded
from holdfast.model.commits import Choice, EvidenceRecord
from holdfast.model.constraints import AgreeSet, FunctionalDependency, Key, NonKey, Row
from holdfast.model.limits import Limits
from holdfast.model.records import JsonObject
from holdfast.model.versions import Entry, KindDiff, TableDiff, Verification
from holdfast.report import forms, terminal
from holdfast.report.snapshot import Index, Snapshot, TableSnapshot
from holdfast.screen.page import Page

OPTIONS = {"kinds": ["keys"], "nulls": "equal", "max_columns": None}


def table(columns: list[str], **facts: Any) -> TableSnapshot:
    known: dict[str, Any] = {
        "name": "t",
        "rows": 3,
        "types": ("bigint",) * len(columns),
        "duplicates": 0,
        "duplicated": (),
    }
    of_keys = {field.name for field in dataclasses.fields(FoundKeys)}
    found: dict[str, Any] = {
        "keys": FoundKeys(**{name: facts.pop(name) for name in of_keys & facts.keys()})
    }
    if "functional_dependencies" in facts:
        found["fds"] = facts.pop("functional_dependencies")
    if "limits" in facts:
        choice = Choice("counted", 0.1, 60.0, "asked for")
        facts["evidence"] = {"agreement": EvidenceRecord(choice, facts.pop("limits"))}
    return TableSnapshot(columns=tuple(columns), found=found, **{**known, **facts})


def snapshot(one: TableSnapshot, **options: Any) -> Snapshot:
    return Snapshot(1, "2026-11-15T08:52:11.123+00:00", {**OPTIONS, **options}, {one.name: one})


SHORTER = Superseded(Key("t", ("a", "b")), Key("t", ("a",)))


def changes(**facts: Any) -> Changes:
    known: dict[str, Any] = {
        "table": "t",
        "version": 2,
        "batch_id": None,
        "applied": True,
        "inserted": 0,
        "deleted": 0,
        "updated": 0,
        "rows": 3,
        "duplicates": 0,
        "duplicates_before": 0,
    }
    return Changes(**{**known, **facts})


def keys(**lists: Any) -> dict[str, KindChanges]:
    """What happened to keys alone."""
    return {"keys": KindChanges(**lists)}


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True

    def getvalue(self) -> str:
        """What is to be read, without colours and weights."""
        return re.sub(r"\x1b\[[0-9;]*m", "", super().getvalue())


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal of 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    return Screen()


def row(columns: list[str], value: Any) -> Row:
    return dict.fromkeys(columns, value)


def test_everything_fits_the_screen(screen: Screen) -> None:
    columns = [f"a_rather_long_name_{c}" for c in range(40)]
    pair = (row(columns, "値" * 30), row(columns, "x" * 500))
    wide = table(
        columns,
        keys=(Key("t", tuple(columns[:9])),),
        non_keys=(NonKey("t", tuple(columns[:30]), pair), NonKey("t", (columns[0],), pair)),
        duplicates=2,
        duplicated=pair[:1],
        segments=1,
        indexes=(Index((columns[0],), 3, 1.0), Index((columns[1], columns[2]), 3, 1.0)),
    )
    page = Page(screen)
    for verbose in (False, True):
        terminal.show(page, "p", snapshot(wide), verbose=verbose, sizes={"log": 10})
    broken = Broken(Key("t", tuple(columns[5:30])), pair)
    happened = keys(broken=(broken,), gained=(Key("t", tuple(columns)),))
    terminal.changes(page, changes(kinds=happened), verbose=True)
    terminal.history(
        page, [Entry(1, "2026-11-15T08:52:11", changes(kinds=happened), {}, {"t": {"keys": 1}}, {})]
    )
    differs = {"keys": KindDiff((Key("t", tuple(columns)),))}
    terminal.diff(page, 1, 2, {"t": TableDiff((1, 2), kinds=differs)})
    terminal.verification(page, "p", Verification(1, {"t": ("a difference " * 20,)}))
    assert max(map(cell_len, screen.getvalue().splitlines())) <= 60


def test_history_tells_keys_of_distinct_rows_apart(screen: Screen) -> None:
    rows, repeated = {"a": 3, "b": 4}, {"a": 0, "b": 1}
    counts = {"a": {"keys": 2}, "b": {"keys": 1}}
    entry = Entry(1, "2026-11-15T08:52:11", None, rows, counts, repeated)
    terminal.history(Page(screen), [entry])
    told = screen.getvalue()
    assert "0 (1)\n" in told
    assert "0 (2)" not in told
    assert "the distinct rows have n" in told


def test_agree_sets_and_approximate_keys(screen: Screen) -> None:
    page = Page(screen)
    terminal.agree_sets(page, {"a": [AgreeSet(("x",), 2)], "wide": None})
    near = table(columns=["x", "y"], approximate_keys=(Key("t", ("x",), 0.25),))
    terminal.show(page, "p", snapshot(near))
    told = " ".join(screen.getvalue().split())
    assert "2 pairs x" in told
    assert "wide: pairs of rows are not counted" in told
    assert "1 approximate key x (shared by 0.25 of the row pairs)" in told


def test_the_keys_columns_come_first_and_the_rest_is_counted(screen: Screen) -> None:
    columns = [f"column{c:02}" for c in range(20)]
    broken = Broken(Key("t", ("column18", "column19")), (row(columns, 1), row(columns, 1)))
    terminal.changes(Page(screen), changes(kinds=keys(broken=(broken,))))
    lines = screen.getvalue().splitlines()
    header = next(line.split() for line in lines if line.split()[0] == "column18")
    assert header[:3] == ["column18", "column19", "column00"]
    assert f"… and {20 - len(header)} more columns" in screen.getvalue()


def test_a_pipe_gets_one_line_per_key() -> None:
    columns = [f"a_rather_long_name_{c}" for c in range(40)]
    stream = io.StringIO()
    terminal.show(Page(stream), "p", snapshot(table(columns, keys=(Key("t", tuple(columns)),))))
    assert "    " + ", ".join(columns) in stream.getvalue().splitlines()


def test_the_shortest_first_and_how_many_more(screen: Screen) -> None:
    columns = [f"c{i}" for i in range(30)]
    keys = [Key("t", (columns[i], columns[i + 1])) for i in range(25)]
    many = table(columns, keys=(*keys, Key("t", ("c29",))))
    terminal.show(Page(screen), "p", snapshot(many), ["keys"])
    lines = screen.getvalue().splitlines()
    at = lines.index("  26 keys")
    assert lines[at + 1 : at + 3] == ["    c29", "    c0, c1"]
    assert lines[-1] == "    … and 6 more (--all shows them)"
    terminal.show(Page(screen, everything=True), "p", snapshot(many), ["keys"])
    assert screen.getvalue().splitlines()[-1] == "    c24, c25"
    assert len(forms.show(snapshot(many))["tables"]["t"]["keys"]) == 26


def test_values_cannot_take_over_the_screen(screen: Screen) -> None:
    columns = ["a\x1b[2J", "b"]
    pair = ({"a\x1b[2J": "x\r\n\u202e", "b": None}, {"a\x1b[2J": "x\r\n\u202e", "b": "null"})
    strange = table(columns, name="t\x07", non_keys=(NonKey("t", ("a\x1b[2J",), pair),))
    for verbose in (False, True):
        terminal.show(Page(screen), "p", snapshot(strange), verbose=verbose)
    shown = screen.getvalue()
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "x\\r\\n\\u202e" in shown
    assert "'null'" in shown


def test_a_table_of_one_row_has_the_empty_key(screen: Screen) -> None:
    terminal.show(Page(screen), "p", snapshot(table(["a"], rows=1, keys=(Key("t", ()),))))
    assert "    {}\n" in screen.getvalue()


def test_a_limit_beyond_the_columns_limits_nothing() -> None:
    form = forms.show(snapshot(table(["a", "b"]), max_columns=2))
    assert "incomplete" not in form["tables"]["t"]
    form = forms.show(snapshot(table(["a", "b"]), max_columns=1))
    assert form["tables"]["t"]["incomplete"] == ["keys", "non_keys"]


def test_json_has_no_numbers_that_json_lacks() -> None:
    form: JsonObject = {"a": [float("nan"), float("inf"), float("-inf"), 1.5], "é": "é"}
    told = forms.dumps(form, ascii_only=True)
    assert told.isascii()
    assert json.loads(told) == {"a": ["NaN", "Infinity", "-Infinity", 1.5], "é": "é"}


class Many(Sequence[FunctionalDependency]):
    """Dependencies that are made when they are asked for, and how many were."""

    def __init__(self, number: int) -> None:
        self.number, self.made = number, 0

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[place] for place in range(self.number)[at]]
        made = FunctionalDependency("t", ("a",), f"c{range(self.number)[at]}")
        self.made += 1
        return made


def test_json_of_many_is_not_held_at_once() -> None:
    many = Many(10_000)
    form = forms.show(snapshot(table(["a", "b"], functional_dependencies=many)), ["fds"])
    assert many.made == 0
    chunks = forms.chunks(form)
    first = next(chunks)
    assert 0 < many.made < 2_000
    told = json.loads(first + "".join(chunks))
    assert many.made == 10_000
    assert told == form
    assert told["tables"]["t"]["functional_dependencies"][-1]["rhs"] == "c9999"


def test_json_of_a_few_makes_no_more() -> None:
    many = Many(10_000)
    found = snapshot(table(["a", "b"], functional_dependencies=many))
    told = json.loads(forms.dumps(forms.show(found, ["fds"], limit=3)))["tables"]["t"]
    assert many.made == 3
    assert [each["rhs"] for each in told["functional_dependencies"]] == ["c0", "c1", "c2"]
    assert told["counts"] == {"functional_dependencies": 10_000}


def test_json_is_printed_as_the_library_does() -> None:
    form: JsonObject = {"a": [], "b": [[1, (2.5, None)], {"c": [True]}], "d": {}, "é": "\u2028"}
    assert forms.dumps(form) == json.dumps(form, indent=2, ensure_ascii=False)


@pytest.mark.parametrize(
    ("facts", "breaks"),
    [
        ({}, False),
        ({"kinds": {"keys": KindChanges(broken=(Broken(Key("t", ("a",))),))}}, True),
        ({"kinds": {"functional_dependencies": KindChanges(counts={"broken": 3})}}, True),
        ({"kinds": {"keys": KindChanges(superseded=(SHORTER,))}}, False),
        ({"kinds": {"keys": KindChanges(counts={"broken": 1})}, "applied_before": True}, False),
        ({"duplicates": 2, "duplicates_before": 1}, False),
    ],
)
def test_what_breaks_a_key(facts: dict[str, Any], breaks: bool) -> None:
    assert registry.breaks(changes(**facts)) is breaks
    assert not registry.breaks(changes(**facts), ["inclusion_dependencies"])


def test_shorter_keys_are_not_broken(screen: Screen) -> None:
    happened = keys(superseded=(SHORTER,), gained=(Key("t", ("a",)),))
    terminal.changes(Page(screen), changes(deleted=1, kinds=happened))
    assert "a, b → a" in screen.getvalue()
    assert "broken" not in screen.getvalue()


def test_duplicates_that_went_away(screen: Screen) -> None:
    terminal.changes(Page(screen), changes(deleted=1, duplicates_before=2))
    assert "no row repeats another one any more (2 did)" in screen.getvalue()


def test_witnesses_without_raw_rows(screen: Screen) -> None:
    bare = table(["a", "b"], non_keys=(NonKey("t", ("a",), ({"row": 1}, {"row": 4294967297})),))
    terminal.show(Page(screen), "p", snapshot(bare))
    assert '{"row": 1}' in screen.getvalue()


def test_every_stage_has_words() -> None:
    sources = Path(holdfast.__file__).parent.rglob("*.py")
    stages = {
        name for each in sources for name in re.findall(r'progress\("(\w+)"', each.read_text())
    }
    assert len(stages) > 10
    assert {stage for stage in stages if describe(stage, {}) == stage} == set()


def test_progress_says_nothing_at_first() -> None:
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress("read", table="t", rows=5)
    assert stream.getvalue() == ""


def test_progress_without_a_terminal() -> None:
    stream = io.StringIO()
    with Progress(stream, after=0.01, every=0.05) as progress:
        progress("search", table="t", round=2, candidates=1000, refuted=3)
        while stream.getvalue().count("\n") < 3:
            time.sleep(0.01)
    line = r"t: searching for counterexamples, round 2, 1,000 candidates, 3 refuted \(\d+ s\)\n"
    assert re.search(line, stream.getvalue())


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    with Progress(screen, after=0.01) as progress:
        progress("read", table="t", rows=5)
        while "reading" not in screen.getvalue():
            time.sleep(0.01)
    assert "t: reading, 5 rows" in screen.getvalue()


def test_progress_stops_when_the_block_fails() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress(stream, after=60):
        raise KeyboardInterrupt


def test_a_depth_that_a_time_budget_ended_at_is_said(screen: Screen) -> None:
    """For keys and for left sides each, apart from what was asked for."""
    found = [FunctionalDependency("t", ("a",), "b")]
    deep = table(
        ["a", "b", "c", "d"],
        functional_dependencies=found,
        limits=Limits(3, 1),
    )
    options = {"kinds": ["keys", "fds"], "time_budget": 30.0, "max_columns": 3}
    terminal.show(Page(screen), "p", snapshot(deep, **options))
    told = " ".join(screen.getvalue().split())
    assert "(searched up to 3 columns: there may be more)" in told
    assert "(searched up to 1 column: the time budget of 30 s ended there)" in told
    form = forms.show(snapshot(deep, **options))["tables"]["t"]
    assert form["complete_up_to"] == {"functional_dependencies": 1}
    assert form["max_columns"] == 3
