"""Expectations: what is kept under batches is what the rows say, whatever the rule."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.batch_files import CHANGES
from holdfast.kinds import registry
from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.errors import (
    ConflictError,
    InputError,
    SchemaError,
    StoreError,
    UnknownTableError,
)
from holdfast.model.expectations import (
    Expectation,
    ExpectationChange,
    Group,
    Quarantine,
    Standing,
    Tally,
)
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.model.records import from_form, to_form
from holdfast.rules.expectations import Expected
from holdfast.rules.question import GROUP_ROWS
from holdfast.runtime.run import Run
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.store.disk import Disk
from holdfast.store.storage import UndecidedError
from holdfast.table.state import Table
from holdfast.tasks import quarantine as quarantine_tasks
from tests import oracle
from tests.flow.batches import Change, batches
from tests.flow.tables import BIGINT, KINDS, Kind, folder, picked, row_input, small_limits
from tests.flow.test_law import law
from tests.strategies import Rows, rows_of

COLUMNS = 3
Named = list[dict[str, Any]]


class Tables:
    """A profile of tables of three columns, in process, and the rows that it should hold."""

    def __init__(
        self,
        path: Path,
        tables: dict[str, Rows],
        options: Options | None = None,
        tasks: int = 2,
        kinds: Sequence[Kind] = (BIGINT,) * COLUMNS,
    ) -> None:
        self.kinds = kinds
        self.options = options or Options(kinds=("keys",))
        self.runner = InProcess(tasks)
        self.store = Store.create(path)
        self.rows = dict(tables)
        inputs = {name: row_input(kinds, rows) for name, rows in tables.items()}
        flow.profile(self.runner, self.store, inputs, self.options, no_progress)

    def expect(self, *rules: str, **settings: Any) -> list[ExpectationChange]:
        wanted = [Expectation(rule, **settings) for rule in rules]
        return flow.expect(self.runner, self.store, wanted, no_progress)

    def apply(
        self,
        table: str,
        after: Rows | None = None,
        dry_run: bool = False,
        strict: bool = False,
        quarantine: str | None = None,
        **batch: Any,
    ) -> Changes:
        together = {table: batch}
        told = self.apply_together(
            together, dry_run=dry_run, strict=strict, quarantine=quarantine
        ).alone(table)
        if after is not None and told.applied:
            self.rows[table] = after
        return told

    def apply_together(self, batch: dict[str, dict[str, Any]], **settings: Any) -> BatchChanges:
        read = {table: self._batch(dict(each)) for table, each in batch.items()}
        return flow.apply_together(self.runner, self.store, read, no_progress, **settings)

    def _batch(self, batch: dict[str, Any]) -> flow.Batch:
        given: dict[str, Any] = {
            kind: row_input(self.kinds, rows, kind)
            for kind in CHANGES
            if (rows := batch.pop(kind, None)) is not None
        }
        if batch.pop("key_only", False) and "deletes" in given:
            given["deletes"] = picked(given["deletes"], batch["row_key"])
        return flow.Batch(**given, **batch)

    @property
    def held(self) -> dict[str, tuple[int | None, int | None, int]]:
        standings = self.store.read().expectations
        tallies = {each.rule: each.tally for each in standings}
        return {rule: (each.violations, each.wrong, each.total) for rule, each in tallies.items()}

    @property
    def true(self) -> dict[str, tuple[int, int, int]]:
        """What the oracle says."""
        nulls = self.options.nulls, self.options.inclusion_nulls
        rows = named(self.rows)
        return {rule: oracle.tally(parse(rule), rows, *nulls) for rule in self.held}

    @property
    def removals(self) -> dict[str, int | None]:
        """How many rows would have to go."""
        return {each.rule: each.removal for each in self.store.read().expectations}

    @property
    def true_removals(self) -> dict[str, int | None]:
        """What the oracle says; of a dependency that does not hold only where a bound asks."""
        nulls = self.options.nulls, self.options.inclusion_nulls
        rows, removals = named(self.rows), {}
        for each in self.store.read().expectations:
            rule, bound = parse(each.rule), each.expectation.max_rows
            pairs = getattr(rule, "plain", None) or rule
            removal = oracle.removal(rule, rows, *nulls)
            unasked = isinstance(pairs, FunctionalDependency) and bound is None
            removals[each.rule] = None if unasked and removal else removal
        return removals


NAMES = [f"c{c}" for c in range(COLUMNS)]
OPS = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def rules(draw: st.DrawFn, numbers: bool = True) -> str:
    """Any rule over tables t and u of three columns of numbers; or of other types, of which each
    column is compared with itself, by equality."""
    table, other = draw(st.sampled_from("tu")), draw(st.sampled_from("tu"))
    some = draw(st.lists(st.sampled_from(NAMES), max_size=3))
    what = draw(
        st.sampled_from(["key", "fd", "null", "in", *(["dc", "dc", "value"] if numbers else [])])
    )
    if what == "key":
        return f"{table}: key({', '.join(some)})"
    if what == "fd":
        return f"{table}: {', '.join(some) or '{}'} -> {draw(st.sampled_from(NAMES))}"
    if what == "null":
        return f"{table}: {draw(st.sampled_from(NAMES))} not null"
    if what == "value":
        low, high = sorted(draw(st.tuples(st.integers(-1, 4), st.integers(-1, 4))))
        bounds = [f"between {low} and {high}", f"> {low}", f">= {low}", f"< {high}", f"<= {high}"]
        value = draw(st.sampled_from([f"in ({high}, {low})", *bounds]))
        return f"{table}: {draw(st.sampled_from(NAMES))} {value}"
    if what == "in":
        left = some or ["c0"]
        right = draw(st.permutations(NAMES))[: len(left)] if numbers else left
        return f"{table}({', '.join(left)}) in {other}({', '.join(right)})"
    cells = st.tuples(st.sampled_from("ts"), st.sampled_from(NAMES))
    predicates = draw(
        st.lists(
            st.tuples(cells, st.sampled_from(OPS), cells).filter(lambda each: each[0] != each[2]),
            max_size=3,
        )
    )
    said = (f"{a}.{left} {op} {b}.{right}" for (a, left), op, (b, right) in predicates)
    return f"{table}: not ({' and '.join(said)})"


OPTIONS = st.builds(
    Options,
    kinds=st.sampled_from([("keys",), ("inds",), ("keys", "fds", "inds")]),
    nulls=st.sampled_from(["equal", "unequal"]),
    inclusion_nulls=st.sampled_from(["ignored", "values"]),
    keep_rows=st.booleans(),
)
LIMITS = st.fixed_dictionaries(
    {
        "segment_rows": st.sampled_from([1 << 20, 3]),
        "task_cells": st.sampled_from([1 << 20, 1]),
        "task_entries": st.sampled_from([1 << 20, 4]),
        "merged_runs": st.sampled_from([2, 4]),
        "merged_segments": st.sampled_from([2, 8]),
        "tile_rows": st.sampled_from([32_767, 2]),
    }
)


@law(25)
@given(data=st.data(), options=OPTIONS, limits=LIMITS, tasks=st.integers(1, 3))
def test_kept_counts_are_those_of_the_rows(
    data: st.DataObject, options: Options, limits: dict[str, Any], tasks: int
) -> None:
    tables = {name: data.draw(rows_of(COLUMNS, 8)) for name in "tu"}
    kinds = data.draw(st.sampled_from([(BIGINT,) * COLUMNS, KINDS[1:4], KINDS[4:7], KINDS[-3:]]))
    numbers = {*kinds} == {BIGINT}
    with folder() as path, small_limits(**limits):
        kept = Tables(Path(path) / "p", tables, options, tasks, kinds)
        for _ in range(data.draw(st.integers(1, 4))):
            step = data.draw(st.sampled_from(["expect", "apply", "apply", "forget"]))
            if step == "expect" or not kept.held:
                try:
                    rule = data.draw(st.one_of(rules(numbers), *map(st.just, kept.held)))
                    severity = data.draw(st.sampled_from(["error", "warn"]))
                    bound = data.draw(st.none() | st.integers(0, 3))
                    told = kept.expect(rule, severity=severity, max_rows=bound)
                except InputError as refused:
                    assert "says nothing" in str(refused) or "is not kept" in str(refused)  # noqa: PT017
                    continue
                assert all(each.groups for each in told if not each.after.holds)
                for each in told if numbers and options.keep_rows else ():
                    check_groups(each, kept, {})
            elif step == "forget":
                flow.forget(kept.store, data.draw(st.sampled_from(sorted(kept.held))))
            else:
                changed = data.draw(st.sampled_from(["t", "u", "tu"]))
                changes = {name: data.draw(batches(COLUMNS, kept.rows[name])) for name in changed}
                before, removals = kept.held, kept.removals
                told_of = kept.apply_together({n: each.batch for n, each in changes.items()})
                kept.rows |= {name: each.after for name, each in changes.items()}
                for each in told_of.expectations or ():
                    bound = each.after.expectation.max_rows
                    was, now = before[each.rule][0], kept.true[each.rule][0]
                    if bound is not None:
                        was, now = removals[each.rule], kept.true_removals[each.rule] or 0
                    most = bound or 0
                    assert each.after.holds == (now <= most)
                    assert each.breaks == (now > max(was or 0, most))
                    assert bool(each.groups) == each.breaks
                    if numbers and options.keep_rows:
                        check_groups(each, kept, changes)
            assert kept.held == kept.true
            assert kept.removals == kept.true_removals
        assert flow.verify(kept.runner, kept.store, no_progress).equal


def check_groups(each: ExpectationChange, kept: Tables, changes: dict[str, Change]) -> None:
    """The rows that are shown violate the rule, and those of the batch come first."""
    rule = parse(each.rule)
    rule = (isinstance(rule, DenialConstraint) and rule.plain) or rule
    table, other = rule.tables[0], rule.tables[-1]
    new = changes[table].arrived if table in changes else []
    rows = named(kept.rows)
    nulls = kept.options.nulls, kept.options.inclusion_nulls

    def violates(row: dict[str, Any]) -> bool:
        others = list(rows[table])
        others.remove(row)
        return oracle.takes_part(rule, row, others, rows[other], *nulls)

    arrived = [row for row in named({table: new})[table] if violates(row)]
    pairs = isinstance(rule, DenialConstraint) and not rule.is_within_a_row
    for group in each.groups:
        shown = [{name: row[name] for name in NAMES} for row in group.rows]
        assert 1 <= len(shown) == len(group.new) <= min(GROUP_ROWS, group.number)
        assert not counted(shown) - counted(rows[table])
        of_batch = [row for row, is_new in zip(shown, group.new, strict=True) if is_new]
        assert not counted(of_batch) - counted(arrived)
        assert any(group.new) == bool(arrived)
        assert all(map(violates, shown))
        if pairs:
            assert len(shown) == 2
            assert oracle.tally(rule, {table: shown}, *nulls)[0]
        else:
            assert list(group.new) == sorted(group.new, reverse=True)
        if isinstance(rule, Key | FunctionalDependency):
            check_agreeing(rule, group, shown, rows[table], arrived, nulls[0])


def check_agreeing(
    rule: Key | FunctionalDependency,
    group: Group,
    shown: Named,
    rows: Named,
    new: Named,
    nulls: str,
) -> None:
    """Of rows that agree on the left, one for each value on the right, a new one if there is."""
    lhs = rule.columns if isinstance(rule, Key) else rule.lhs
    mine = [row for row in rows if all(row[c] == shown[0][c] for c in lhs)]
    assert group.number == len(mine)
    if isinstance(rule, Key):
        assert len(shown) == min(GROUP_ROWS, len(mine))
        return
    value = rule.rhs
    apart = [row[value] for row in mine if row[value] is None and nulls == "unequal"]
    values = {row[value] for row in mine} - {*apart}
    assert len(shown) == min(GROUP_ROWS, len(values) + len(apart))
    known = [row[value] for row in shown if row[value] not in apart]
    assert len(known) == len({*known})
    for row, is_new in zip(shown, group.new, strict=True):
        came = [each for each in new if all(each[c] == row[c] for c in (*lhs, value))]
        assert is_new == bool(came) or row[value] in apart


def counted(rows: Named) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in NAMES) for row in rows)


def told_of(changes: Changes) -> ExpectationChange:
    (only,) = changes.expectations or ()
    return only


def test_the_row_that_breaks_a_dependency_is_shown_first(tmp_path: Path) -> None:
    """And one row for every value on the right, however often it is there."""
    old: Rows = [(id_, 1, 7) for id_ in range(29)]
    kept = Tables(tmp_path / "p", {"t": old})
    kept.expect("t: c1 -> c2")
    for dry_run in (True, False):
        (group,) = told_of(kept.apply("t", inserts=[(100, 1, 8)], dry_run=dry_run)).groups
        assert (group.number, group.new) == (30, (True, False))
        assert [(row["c0"], row["c2"]) for row in group.rows] == [(100, 8), (0, 7)]
    stored = kept.store.read().changes
    assert stored is not None
    [form] = stored["expectations"]
    assert form["groups"] == [group.to_dict()]
    assert ExpectationChange.from_dict(form).groups == (group,)
    (declared,) = kept.expect("t: {} -> c2")
    (group,) = declared.groups
    assert (group.number, group.new) == (30, (False, False))
    assert [(row["c0"], row["c2"]) for row in group.rows] == [(0, 7), (100, 8)]


def test_a_row_that_was_there_is_among_many_new_ones(tmp_path: Path) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 0, 0), (2, 0, 0)]})
    kept.expect("t: key(c0)")
    (group,) = told_of(kept.apply("t", inserts=[(1, 1, c) for c in range(20)])).groups
    assert (group.number, group.new) == (21, (True,) * (GROUP_ROWS - 1) + (False,))
    assert group.rows[-1] == {"c0": 1, "c1": 0, "c2": 0}


def test_pairs_that_a_batch_adds_are_shown_where_there_were_others(tmp_path: Path) -> None:
    rule = "t: not (t.c0 < s.c0 and t.c1 > s.c1)"
    old: Rows = [(n, -n, 0) for n in range(40)]
    kept = Tables(tmp_path / "p", {"t": [*old, (100, 100, 0)]})
    kept.expect(rule)
    (told,) = kept.apply("t", inserts=[(101, 99, 1)]).expectations or ()
    assert told.breaks
    for group in told.groups:
        t, s = group.rows
        assert (t["c0"] < s["c0"], t["c1"] > s["c1"]) == (True, True)
        assert (t["c2"], s["c2"], group.new) == (0, 1, (False, True))


def test_orphans_that_a_batch_brings_come_first(tmp_path: Path) -> None:
    """Also where it takes away some of others, whose numbers it therefore changes, too."""
    old: Rows = [(n, 5, 0) for n in range(20)]
    kept = Tables(tmp_path / "p", {"t": old * 2, "u": [(99, 0, 0)]})
    kept.expect("t(c0) in u(c0)")
    new: Rows = [(50, 6, 0), (50, 7, 0), (99, 8, 0), (60, 1, 1), (51, 1, 1), *((70, 0, 0),) * 16]
    told = told_of(kept.apply("t", inserts=new, deletes=old[:19]))
    assert (told.breaks, told.after.violations) == (True, 41)
    (group,) = told.groups
    assert (group.number, group.new) == (41, (True,) * GROUP_ROWS)
    assert {row["c0"] for row in group.rows[:4]} == {50, 51, 60, 70}
    assert {row["c0"] for row in group.rows[4:]} == {50, 70}


def test_one_rule_has_one_form(tmp_path: Path) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 2, 3)], "u": []})
    for text, form in {
        "t: key(c2, c0, c2)": "t: key(c0, c2)",
        "t: c2, c0 -> c1": "t: c0, c2 -> c1",
        "t(c2, c0) in u(c0, c1)": "t(c0, c2) in u(c1, c0)",
        "t: not (s.c0 < t.c0)": "t: not (t.c0 < s.c0)",
        "t: not (s.c1 < s.c0)": "t: not (t.c0 > t.c1)",
        "t: not (t.c0 <= s.c0 and t.c0 != s.c0)": "t: not (t.c0 < s.c0)",
    }.items():
        assert [each.rule for each in kept.expect(text)] == [form]
        assert [each.rule for each in kept.expect(form)] == [form]
    assert len(kept.held) == 5  # two of them say the same
    version = kept.store.head()
    kept.expect("t: key(c2, c0)")
    assert kept.store.head() == version  # nothing new, so no version


@pytest.mark.parametrize(
    ("rule", "error", "said"),
    [
        ("v: key(a)", UnknownTableError, "no table 'v'"),
        ("t: key(a)", SchemaError, "no column 'a'"),
        ("t: a not null", SchemaError, "no column 'a'"),
        ("t(a) in u(c0)", SchemaError, "no column 'a'"),
        ("t: not (t.c0 = s.c0 and t.c0 != s.c0)", InputError, "says nothing"),
        ("t: not (t.c0 = t.c0)", InputError, "with itself"),
    ],
)
def test_what_the_tables_cannot_have(
    tmp_path: Path, rule: str, error: type[Exception], said: str
) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 2, 3)], "u": []})
    with pytest.raises(error, match=said):
        kept.expect(rule)
    assert kept.store.head() == 1


def test_a_bound_on_the_error_is_a_decimal(tmp_path: Path) -> None:
    rows: Rows = [(1, c, None if c < 3 else 1) for c in range(10)]
    kept = Tables(tmp_path / "p", {"t": rows})
    (told,) = kept.expect("t: c2 not null", max_error=0.3)
    assert told.after.holds
    assert told.after.error == 0.3
    (told,) = kept.expect("t: c2 not null", max_error=0.29)
    assert not told.after.holds


def test_a_bound_in_rows_is_about_those_that_would_have_to_go(tmp_path: Path) -> None:
    """Not about the rows that take part: of three that share a key, two are too many."""
    rows: Rows = [(1, 1, 1), (1, 2, 2), (1, 3, 3), (2, None, 9)]
    kept = Tables(tmp_path / "p", {"t": rows, "u": [(2, 0, 0)]})
    rules = ["t: key(c0)", "t: c1 not null", "t(c0) in u(c0)", "t: not (t.c0 < t.c1)"]
    assert [each.after.removal for each in kept.expect(*rules)] == [2, 1, 3, 2]
    told = kept.expect(*rules, max_rows=2)
    assert [each.after.holds for each in told] == [True, True, False, True]
    assert [bool(each.groups) for each in told] == [False, False, True, False]
    changes = {each.rule: each for each in kept.apply("t", inserts=[(2, 5, 5)]).expectations or ()}
    key, not_null, inclusion, order = (changes[rule] for rule in rules)
    assert (key.breaks, key.after.removal, key.before and key.before.removal) == (True, 3, 2)
    assert [each.breaks for each in (not_null, inclusion, order)] == [False, False, True]
    assert not kept.apply("t", deletes=[(2, 5, 5)]).stops
    assert kept.apply("t", inserts=[(7, 0, 0)], strict=True).refused  # a fourth without a match
    assert kept.apply("t", inserts=[(2, 1, 1)], strict=True).refused
    assert kept.apply("t", inserts=[(2, 1, 1)], quarantine=str(tmp_path / "q")).rows == 4


def test_of_a_dependency_all_but_the_most_frequent_values_would_have_to_go(tmp_path: Path) -> None:
    rows: Rows = [(1, 1, n) for n in range(5)] + [(1, 2, 5), (2, 3, 6), (2, 4, 7)]
    kept = Tables(tmp_path / "p", {"t": rows})
    (told,) = kept.expect("t: c0 -> c1", max_error=0.5)
    assert (told.after.violations, told.after.removal) == (6, None)
    (told,) = kept.expect("t: c0 -> c1", max_rows=2)
    assert (told.after.violations, told.after.removal, told.after.holds) == (6, 2, True)
    (told,) = kept.apply("t", inserts=[(2, 3, 8)]).expectations or ()  # one more of the majority
    assert (told.after.violations, told.after.removal, told.breaks) == (7, 2, False)
    (told,) = kept.apply("t", dry_run=True, inserts=[(1, 9, 9)]).expectations or ()
    assert (told.after.removal, told.breaks, told.groups[0].number) == (3, True, 7)
    (told,) = kept.expect("t: not (t.c0 = s.c0 and t.c1 != s.c1)", max_rows=2)
    assert (told.after.violations, told.after.removal, told.after.holds) == (14, 2, True)


def test_bounds_that_cannot_be(tmp_path: Path) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1)], "u": []})
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("t: {} -> c0", {"max_rows": 3}, "where nothing is on the left; give --max-error"),
        ("t: key(c0)", {"max_rows": 3, "max_error": 0.1}, "give one of them"),
        ("t: key(c0)", {"max_rows": -1}, "a number of rows from 0, not -1"),
        ("t: key(c0)", {"max_rows": True}, "a number of rows from 0, not True"),
        ("t: not (t.c0 < s.c0 and t.c1 > s.c1)", {"max_rows": 3}, "give --max-error in place of"),
    ]
    for rule, settings, said in refused:
        with pytest.raises(InputError, match=said):
            kept.expect(rule, **settings)
    assert kept.store.head() == 1


def test_versions_from_before_bounds_in_rows_are_read(tmp_path: Path) -> None:
    """They have neither the bound nor the number, which the next batch brings."""
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1), (1, 2, 2)]})
    kept.expect("t: key(c0)")
    [standing] = kept.store.read().expectations
    form = to_form(standing)
    del form["expectation"]["max_rows"], form["tally"]["removal"]
    old = from_form(Standing, form)
    assert (old.expectation, old.violations, old.removal) == (standing.expectation, 1, None)
    tables = {"t": Table.stored("t", kept.store.read().table("t"))}
    with kept.store.writing() as lease:
        run = Run(kept.runner, kept.store, kept.options, lease, no_progress)
        forms = registry.forms([old.expectation], tables, kept.options)
        assert not [*Expected((old,), forms).compare(run, tables)]
        wrong = replace(old, tally=Tally(2, 2, 2))
        [(_, why)] = Expected((wrong,), forms).compare(run, tables)
    assert "counts 2 violations of the expected rule t: key(c0), but the rows have 1" in why


def test_kinds_that_are_added_leave_expectations_alone(tmp_path: Path) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1), (1, 2, 2)]})
    kept.expect("t: key(c0)", "t: key(c1)")
    before = kept.held
    flow.extend(kept.runner, kept.store, ["fds"], {}, no_progress)
    assert kept.held == before
    kept.apply("t", [(1, 1, 1), (1, 2, 2), (1, 1, 3)], inserts=[(1, 1, 3)])
    assert kept.held == kept.true
    assert flow.verify(kept.runner, kept.store, no_progress).equal


def test_a_strict_batch_that_breaks_an_expected_rule_is_not_applied(tmp_path: Path) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1), (2, 1, 1)], "u": [(1, 0, 0)]})
    kept.expect("t: key(c0)")
    kept.expect("t(c0) in u(c0)", severity="warn", name="parents")
    refused = kept.apply("t", inserts=[(2, 5, 5), (3, 6, 6)], strict=True)
    assert (refused.applied, refused.refused, refused.stops) == (False, True, True)
    assert kept.store.head() == 3
    key, parents = refused.expectations or ()
    assert (key.breaks, parents.breaks) == (True, True)
    (group,) = key.groups
    assert (group.number, [row["c1"] for row in group.rows]) == (2, [5, 1])
    assert group.new == (True, False)
    (orphans,) = parents.groups
    assert orphans.number == 3  # one was there, two come
    assert {row["c0"] for row in orphans.rows} <= {2, 3}
    told = kept.apply("t", inserts=[(3, 6, 6)], strict=True)  # a warning does not stop it
    assert (told.applied, told.stops) == (True, False)
    assert kept.store.head() == 4


def test_a_batch_that_leaves_a_broken_rule_alone_is_not_stopped_by_it(tmp_path: Path) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1), (1, 2, 2)]})
    (told,) = kept.expect("t: key(c0)")
    assert (told.after.holds, told.after.violations, told.groups[0].number) == (False, 1, 2)
    assert kept.apply("t", inserts=[(2, 3, 3)], strict=True).applied
    assert kept.apply("t", inserts=[(1, 3, 3)], strict=True).refused


def test_counts_of_a_long_table_are_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.rules import pairs

    monkeypatch.setattr(pairs, "_MOST", -1.0)
    rule = "t: not (t.c0 < s.c0 and t.c1 > s.c1)"
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 0), (2, 2, 0)]})
    kept.expect(rule)
    assert kept.held[rule] == (0, 0, 2)
    told = kept.apply("t", inserts=[(3, 0, 0)])
    (each,) = told.expectations or ()
    assert (each.breaks, each.after.violations, each.after.error) == (True, None, None)
    assert len(each.groups[0].rows) == 2
    with pytest.raises(InputError, match="too many to count"):
        kept.expect(rule, max_error=0.1)
    kept.apply("t", deletes=[(3, 0, 0)])
    assert kept.held[rule] == (0, 0, 2)


# Quarantine


def test_what_a_row_clashes_with(tmp_path: Path) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1), (2, 2, 2)], "u": [(1, 0, 0)]})
    kept.expect("t: key(c0)", "t: c1 -> c2", "t: not (t.c0 < s.c0 and t.c2 > s.c2)")
    shelf = tmp_path / "q"
    # The first clashes with the table, two with each other, one in order, and one is fine.
    new: Rows = [(1, 7, 1), (5, 5, 5), (5, 6, 5), (9, 1, 8), (0, 0, 3), (8, 8, 8)]
    told = kept.apply("t", inserts=new, quarantine=str(shelf))
    left = told.quarantined
    assert left is not None
    assert (told.inserted, told.rows, left.rows) == (1, 3, 5)
    rows = [row for name in left.files for row in pq.read_table(shelf / name).to_pylist()]
    clashes = {
        (row["c0"], row["c1"], row["c2"]): (
            row["_holdfast_rule"].partition(": ")[2],
            list(json.loads(row["_holdfast_clash"]).values()),
        )
        for row in rows
    }
    order = "not (t.c0 < s.c0 and t.c2 > s.c2)"
    assert clashes == {
        (1, 7, 1): ("key(c0)", [1, 1, 1]),
        (5, 5, 5): ("key(c0)", [5, 6, 5]),
        (5, 6, 5): ("key(c0)", [5, 5, 5]),
        (9, 1, 8): ("c1 -> c2", [1, 1, 1]),
        (0, 0, 3): (order, [1, 1, 1]),
    }


def test_a_batch_that_is_not_applied_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1)]})
    shelf = tmp_path / "q"
    with pytest.raises(InputError, match="none is expected"):
        kept.apply("t", inserts=[(1, 1, 1)], quarantine=str(shelf))
    kept.expect("t: key(c0)")

    def publish(*_: Any) -> int:
        assert len([*shelf.iterdir()]) == 1
        raise ConflictError("another writer was first")

    monkeypatch.setattr(Store, "publish", publish)
    with pytest.raises(ConflictError):
        kept.apply("t", inserts=[(1, 1, 1)], quarantine=str(shelf))
    assert not [*shelf.iterdir()]
    shelf.rmdir()
    shelf.write_text("a file")
    with pytest.raises(InputError, match="not a folder"):
        kept.apply("t", inserts=[(1, 1, 1)], quarantine=str(shelf))


def test_an_interrupt_right_after_the_commit_loses_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run does not know that it has committed; the log does."""
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1)]})
    kept.expect("t: key(c0)")
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        with pytest.raises(KeyboardInterrupt):
            kept.apply("t", inserts=[(1, 2, 2)], quarantine=str(tmp_path / "q"))
    assert in_folder(tmp_path / "q") == ([(1, 2, 2)], [])
    assert kept.store.head() == 3


@pytest.mark.parametrize("done", [True, False])
def test_rows_stay_pending_where_nobody_knows_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    """As when an object store does not answer: a clean-up decides when the lease is old."""
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1)]})
    kept.expect("t: key(c0)")
    real = Disk.create

    def create(storage: Disk, name: str, data: bytes, run: str) -> None:
        if done:
            real(storage, name, data, run)
        raise UndecidedError(errno.EIO, "no answer")

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "create", create)
        with pytest.raises(StoreError, match="did not answer"):
            kept.apply("t", inserts=[(1, 2, 2)], quarantine=str(tmp_path / "q"))
    kept.store.clean()
    assert in_folder(tmp_path / "q") == ([], [(1, 2, 2)])
    (lease,) = (tmp_path / "p" / "leases").iterdir()
    os.utime(lease, (0, 0))
    kept.store.clean()
    assert in_folder(tmp_path / "q") == ([(1, 2, 2)] if done else [], [])


def test_a_folder_that_the_driver_does_not_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Tables(tmp_path / "p", {"t": [(1, 1, 1)]})
    kept.expect("t: key(c0)")
    monkeypatch.setattr(quarantine_tasks, "write", lambda _item: iter(()))
    with pytest.raises(InputError, match="the driver does not see them; name a folder"):
        kept.apply("t", inserts=[(1, 2, 2)], quarantine=str(tmp_path / "q"))
    assert kept.store.head() == 2


def in_folder(shelf: Path) -> tuple[list[Any], list[Any]]:
    """The rows in files that have their names, and in pending ones."""
    found: tuple[list[Any], list[Any]] = [], []
    for path in sorted(shelf.iterdir()):
        rows = pq.read_table(path).to_pylist()
        cells = [tuple(row[name] for name in NAMES) for row in rows]
        found[path.name.startswith(".")].extend(cells)
        assert path.name.endswith(".parquet.pending" if path.name.startswith(".") else ".parquet")
    return found


class Request(NamedTuple):
    """A change of a batch: the row that it brings, and the one that it takes, by its place."""

    kind: str
    row: tuple[int | None, ...]
    taken: int | None = None
    key: tuple[int, ...] = ()

    def means(self, row: tuple[int | None, ...]) -> bool:
        """Whether it asks for such a row."""
        return self.kind != "inserts" and all(self.row[c] == row[c] for c in self.key)

    @property
    def brings(self) -> bool:
        return self.kind != "deletes"


def requests(rows: Rows, batch: dict[str, Any]) -> list[Request]:
    """A batch, each change by itself."""
    if "snapshot" in batch:
        now, then = Counter(rows), Counter(batch["snapshot"])
        batch = {"inserts": [*(then - now).elements()], "deletes": [*(now - then).elements()]}
    key = tuple(int(name[1:]) for name in batch.get("row_key", ())) or tuple(range(COLUMNS))
    taken: set[int] = set()

    def find(row: tuple[int | None, ...]) -> int | None:
        for place, each in enumerate(rows):
            if all(each[c] == row[c] for c in key) and place not in taken:
                taken.add(place)
                return place
        return None

    found = [Request("inserts", row) for row in batch.get("inserts") or []]
    for kind in ("updates", "upserts", "deletes"):
        found += [Request(kind, row, find(row), key) for row in batch.get(kind) or []]
    return found


Asked = dict[str, list[Request]]
"""The changes of a batch, by table."""


def applied(tables: dict[str, Rows], asked: Asked) -> dict[str, Rows]:
    """The rows after a batch: those that stay, then those that come."""
    after = dict(tables)
    for name, some in asked.items():
        gone = {each.taken for each in some}
        kept = [row for place, row in enumerate(tables[name]) if place not in gone]
        after[name] = kept + [each.row for each in some if each.brings]
    return after


def named(tables: dict[str, Rows]) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [{f"c{c}": cell for c, cell in enumerate(row)} for row in rows]
        for name, rows in tables.items()
    }


def sift(tables: dict[str, Rows], rules: list[str], asked: Asked, options: Options) -> Asked:
    """The changes that stay, by the words of the docs."""
    nulls = options.nulls, options.inclusion_nulls
    while True:
        before, after = named(tables), named(applied(tables, asked))
        stopping = [
            rule
            for rule in map(parse, rules)
            if oracle.tally(rule, after, *nulls)[0] > oracle.tally(rule, before, *nulls)[0]
        ]
        leaving = {name: new_rows(name, asked, after, stopping, options) for name in asked}
        if not any(leaving.values()):
            leaving = {
                name: taking_away(name, tables, asked, after, stopping, options) for name in asked
            }
        if not any(leaving.values()):
            return asked
        asked = {
            name: [each for place, each in enumerate(some) if place not in leaving[name]]
            for name, some in asked.items()
        }


def new_rows(
    table: str, asked: Asked, after: dict[str, Any], stopping: list[Any], options: Options
) -> set[int]:
    """The changes of a table that bring a row which takes part in a violation."""
    leaving = set()
    rows = after[table]
    new = [place for place, each in enumerate(asked[table]) if each.brings]
    for rule in stopping:
        inclusion = isinstance(rule, InclusionDependency)
        if table == (rule.dependent[0].table if inclusion else rule.table):
            right = after[rule.referenced[0].table] if inclusion else []
            for number, place in enumerate(new, start=len(rows) - len(new)):
                others = rows[:number] + rows[number + 1 :]
                nulls = options.nulls, options.inclusion_nulls
                if oracle.takes_part(rule, rows[number], others, right, *nulls):
                    leaving.add(place)
    return leaving


def taking_away(
    table: str,
    tables: dict[str, Rows],
    asked: Asked,
    after: dict[str, Any],
    stopping: list[Any],
    options: Options,
) -> set[int]:
    """The changes of a table that take the last row which others refer to."""
    leaving: set[int] = set()
    for rule in stopping:
        if not isinstance(rule, InclusionDependency) or rule.referenced[0].table != table:
            continue
        left, right = (
            {tuple(row[each.column] for each in side) for row in after[side[0].table]}
            for side in (rule.dependent, rule.referenced)
        )
        for taken in [each.taken for each in asked[table] if each.taken is not None]:
            row = tables[table][taken]
            cells = tuple(row[int(each.column[1:])] for each in rule.referenced)
            ignored = None in cells and options.inclusion_nulls != "values"
            if cells in left and cells not in right and not ignored:
                leaving |= {p for p, each in enumerate(asked[table]) if each.means(row)}
    return leaving


@pytest.mark.slow
@law(25)
@given(data=st.data(), options=OPTIONS, limits=LIMITS, tasks=st.integers(1, 3))
def test_a_quarantine_leaves_out_what_breaks_rules(
    data: st.DataObject, options: Options, limits: dict[str, Any], tasks: int
) -> None:
    tables = {name: data.draw(rows_of(COLUMNS, 6)) for name in "tu"}
    with folder() as path, small_limits(**limits):
        kept = Tables(Path(path) / "p", tables, options, tasks)
        for _ in range(data.draw(st.integers(1, 3))):
            with contextlib.suppress(InputError):
                kept.expect(data.draw(rules()))
        if not kept.held:
            return
        for number in range(data.draw(st.integers(1, 2))):
            changed = data.draw(st.sampled_from(["t", "u", "tu"]))
            # Rows that a snapshot lacks are written to files only where the profile has them.
            draw = [data.draw(batches(COLUMNS, kept.rows[n], options.keep_rows)) for n in changed]
            batch = {name: change.batch for name, change in zip(changed, draw, strict=True)}
            quarantined(kept, batch, f"b{number}", Path(path) / "q")


def quarantined(kept: Tables, batch: dict[str, dict[str, Any]], batch_id: str, shelf: Path) -> None:
    """Apply a batch with a quarantine, and look that all is as the oracle says."""
    asked = {name: requests(kept.rows[name], each) for name, each in batch.items()}
    staying = sift(kept.rows, list(kept.held), asked, kept.options)
    kept.rows = applied(kept.rows, staying)
    given = {name: {**each, "batch_id": batch_id} for name, each in batch.items()}
    told = kept.apply_together(given, quarantine=str(shelf))
    assert kept.held == kept.true
    assert flow.verify(kept.runner, kept.store, no_progress).equal
    assert not told.stops
    for name, each in told.tables.items():
        assert each.rows == len(kept.rows[name])
        left = Counter((one.kind, one.row) for one in asked[name])
        left -= Counter((one.kind, one.row) for one in staying[name])
        assert written(kept, batch[name], each.quarantined, shelf) == left
        assert (each.quarantined.rows if each.quarantined else 0) == left.total()
    again = kept.apply_together(given, quarantine=str(shelf))
    assert again.applied_before
    for name, each in again.tables.items():
        assert each.quarantined == told[name].quarantined


def written(
    kept: Tables, batch: dict[str, Any], quarantine: Quarantine | None, shelf: Path
) -> Counter[tuple[str, Any]]:
    """The rows in the files of a quarantine; of deletes that name a row key, the whole rows."""
    found: Counter[tuple[str, Any]] = Counter()
    for file in quarantine.files if quarantine else ():
        read = pq.read_table(shelf / file)
        kind = file.split("-")[-2]
        names = [name for name in read.column_names if not name.startswith("_holdfast")]
        whole = {tuple(row[int(name[1:])] for name in names): row for row in batch.get(kind) or []}
        for row in read.to_pylist():
            cells = tuple(row[name] for name in names)
            found[kind, whole[cells] if len(names) < COLUMNS else cells] += 1
            assert row["_holdfast_rule"] in kept.held
    return found
