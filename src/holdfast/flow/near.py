"""Rules that nearly hold: looked for in a version's rows, kept under batches, and the cells that
break them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from holdfast.cover.dependencies import KEY
from holdfast.flow.commits import publish
from holdfast.input.row_input import Columns
from holdfast.kernels import bitsets
from holdfast.kinds import registry
from holdfast.kinds.ranking import ranked
from holdfast.kinds.suggested import suggested
from holdfast.kinds.table_state import TableState
from holdfast.model.changes import BatchChanges
from holdfast.model.commits import Commit
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Constraint, Key
from holdfast.model.errors import InputError
from holdfast.model.grammar import Rule, parse
from holdfast.model.lazily import Lazily
from holdfast.model.near import (
    LISTED,
    NearBounds,
    NearList,
    NearRule,
    Suspects,
    has_suspects,
    near_changes,
)
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.report.snapshot import Snapshot, snapshot
from holdfast.rules import near as rules
from holdfast.rules.form import RuleForm
from holdfast.rules.near import Exact
from holdfast.rules.near_kept import NearState, affordable, counted, holds
from holdfast.rules.suspects import suspects as cells_of
from holdfast.rules.tuples import TupleCounts
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.table.state import Table

WATCHED = 20
"""So many rules that hold are watched in a table: where a few rows break one, it nearly holds."""

WORTHWHILE = 0.15
"""The score from which on a dependency that holds is watched, if no others imply it."""

WIDE = 40
"""In tables with more columns, rules that nearly hold are looked for only with dependencies."""


# Looking for them


def is_wanted(options: Options, table: Table) -> bool:
    """Whether near rules are looked for in a table."""
    named = registry.FDS.name in (options.named or ())
    is_narrow = len(table.columns.names) <= WIDE or named
    return options.near == "on" and is_narrow and registry.compare_pairs(options.kinds)


def listed(run: Run, state: TableState, base: Commit, now: Snapshot, version: int) -> NearList:
    """The near rules of a table, looked for in all rows for this version. ``now`` is what ``base``
    says, which tells which rules matter."""
    table, bounds = state.table, NearBounds.of(run.options)
    dismissed = state.near.dismissed if state.near else ()
    looked_for = "fds" in run.options.kinds, "keys" in run.options.kinds
    best = _best_key(now, table.name)

    def matters(key: Key) -> bool:
        """Many columns are nearly unique by chance."""
        return registry.of(key).score(key, now, table.name) >= best

    def order(near: NearRule) -> float:
        """Keys by their scores, then dependencies, the strongest first, as they were found."""
        is_key = near.strength is None
        return -registry.of(near.rule).score(near.rule, now, table.name) if is_key else 0.0

    result = rules.near_rules(run, table, bounds, _exact(state, bounds.columns), matters)
    found = [
        each
        for each in result.rules
        if str(each.rule) not in dismissed and looked_for[each.strength is None]
    ]
    found.sort(key=order)
    kept = affordable(found[:LISTED], table)
    return NearList(
        tuple(kept),
        version,
        table.rows,
        result.complete_up_to,
        len(found) - len(kept),
        dismissed,
        _watched(base, now, table.name),
    )


def _best_key(now: Snapshot, name: str) -> float:
    """The score of the key of a table that holds and matters most."""
    keys = [kind.rank(now, name)[:1] for kind in registry.with_role("key")]
    return max((each.score for first in keys for each in first), default=0.0)


def _exact(state: TableState, columns: int) -> Exact:
    """What the evidence of a table says of keys and left sides of at most so many columns."""
    known = state.evidence.get(AGREEMENTS)
    if known is None:
        return Exact()
    short = {
        rhs: bitsets.to_columns(cover.minimal[bitsets.popcount(cover.minimal) <= columns])
        for rhs, cover in known.covers.by_rhs.items()
    }
    return Exact(short.pop(KEY, ()), short)


def _watched(base: Commit, now: Snapshot, name: str) -> tuple[str, ...]:
    """The rules of a table that hold and matter: its grain, what is suggested, and the dependencies
    that are shown first."""
    ranking = ranked(now, [name])
    grain = ranking[name].grain.key
    first = [str(grain)] if grain is not None and grain.columns else []
    first += [each.rule for each in suggested(now, ranking, base)]
    first += [
        str(each.constraint)
        for kind in registry.named_in(ranking[name].kinds)
        for each in ranking[name].kinds[kind.field]
        if kind.role != "key" and each.score >= WORTHWHILE and not each.implied_by
    ]
    watched = [rule for rule in dict.fromkeys(first) if has_suspects(parse(rule))]
    return tuple(watched[:WATCHED])


def look_for_near(
    runner: Runner, store: Store, names: Sequence[str], asked: Mapping[str, Any], progress: Progress
) -> int:
    """Look for near rules in the rows of some tables, with these options; the version that has
    them."""
    with (
        store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        version = store.read(lease.version)
        options = replace(version.options, near="on", **asked)
        now = snapshot(store, lease.version)
        states = {name: TableState.load(store, version, name) for name in names}
        run = Run(runner, store, options, lease, progress)
        lists = {
            name: listed(
                Run(runner, store, options, lease, about(progress, name)),
                state,
                version,
                now,
                version.version + 1,
            )
            for name, state in states.items()
        }
        tables = {name: replace(version.tables[name], near=near) for name, near in lists.items()}
        after = replace(version, tables=version.tables | tables, options=options)
        counts = declared(run, after, TupleCounts.of(version.tuples))
        return publish(
            store,
            lease,
            replace(_alone(after, "near rules looked for"), tuples=counts.stored),
        )


def _alone(version: Commit, event: str) -> Commit:
    """A version without a batch."""
    return replace(version, batch=None, changes=None, seconds={}, values_seconds={}, event=event)


def declared(run: Run, version: Commit, counts: TupleCounts) -> TupleCounts:
    """The counted tuples of exactly the rules that a version expects or lists as nearly holding:
    new ones are counted in all rows."""
    tables = {name: Table.stored(name, each) for name, each in version.tables.items()}
    expected = [standing.expectation for standing in version.expectations]
    forms = registry.forms(expected, tables, run.options)
    return counts.declare(run, [*forms, *forms_of(version, tables)], tables)


def forms_of(version: Commit, tables: Mapping[str, Table]) -> list[RuleForm]:
    """What the near rules of all tables are judged by."""
    return [
        form
        for name, record in version.tables.items()
        if record.near is not None
        for form in NearState.of(record.near, tables[name], version.options).forms
    ]


# Keeping them


def changed(
    run: Run,
    base: Commit,
    before: TableState,
    after: TableState,
    counts: TupleCounts,
    dry_run: bool,
) -> tuple[TableState, TupleCounts]:
    """A table with its near rules after a batch, whose tuples are counted already; and the counted
    tuples with those of rules that nearly hold from now on. ``base`` is what the batch builds on.
    Rules that are expected are watched like those that matter."""
    if before.near is None:
        return after, counts
    table, name = after.table, after.table.name
    near = NearState.of(before.near, table, run.options).recounted(counts, table)
    near = near.still_near(run.options, counts)
    expected = [standing.rule for standing in base.expectations]
    watched = [rule for rule in near.watched(expected) if rule.tables == (name,)]
    watched = [rule for rule in watched if holds(rule, before.table, before.evidence)]
    broken = [rule for rule in watched if not holds(rule, table, after.evidence)]
    if broken:
        run.progress("near", rules=len(broken))
        counts, began = counted(run, broken, counts, table)
        near = near.joined(began)
    after = replace(after, near=near.near)
    if not dry_run and is_wanted(run.options, table) and _is_outgrown(after):
        now = snapshot(run.store, base.version)
        found = listed(run, after, base, now, base.version + 1)
        found = found.joined(near.near.near)
        forms = NearState.of(found, table, run.options).forms
        counts = counts.also(run, forms, {name: table})
        after = replace(after, near=found)
    return after, counts


def with_changes(
    changes: BatchChanges, before: Mapping[str, TableState], after: Mapping[str, TableState]
) -> BatchChanges:
    """What a batch did to each table, with what it did to the near rules."""
    told = {
        name: near_changes(before[name].near or NearList(), state.near or NearList())
        for name, state in after.items()
    }
    tables = {name: replace(each, near=told[name]) for name, each in changes.tables.items()}
    return replace(changes, tables=tables)


def _is_outgrown(state: TableState) -> bool:
    """Whether a table has doubled or halved since its near rules were looked for."""
    near, rows = state.near, state.table.rows
    return near is not None and not near.rows / 2 < max(rows, 1) < max(near.rows, 1) * 2


def dismiss(store: Store, rule: Rule, undo: bool = False) -> None:
    """Neither list a rule nor suspect cells because of it any more; or allow it again."""
    with store.writing() as lease:
        version = store.read(lease.version)
        text, name = str(_judged(version, rule)), rule.tables[0]
        near = version.table(name).near or NearList()
        if undo and text not in near.dismissed:
            raise InputError(f"{text} is not dismissed")
        if not undo and text in near.dismissed:
            raise InputError(f"{text} is dismissed already")
        near = replace(
            near,
            rules=tuple(each for each in near.rules if str(each.rule) != text),
            dismissed=tuple(each for each in near.dismissed if each != text)
            if undo
            else (*near.dismissed, text),
        )
        record = replace(version.table(name), near=near)
        after = replace(version, tables=version.tables | {name: record})
        publish(store, lease, _alone(after, "1 rule allowed" if undo else "1 rule dismissed"))
    store.clean()


# The cells that break them


def suspects(
    runner: Runner,
    store: Store,
    rule: Rule | None,
    tables: Sequence[str],
    limit: int | None,
    progress: Progress,
) -> Suspects:
    """The cells that a rule suspects, or else those that the near rules of some tables do; at most
    so many."""
    if rule is not None:
        tables = [rule.tables[0]]
    found = []
    with _tables(runner, store, progress, tables) as opened:
        for run, table, near in opened:
            suspecting: Sequence[NearRule] = near.near
            if rule is not None:
                version = store.read(run.lease.version)
                suspecting = [rules.measured(run, table, _judged(version, rule))]
            found.append(cells_of(run, table, suspecting, limit))
    cells = sorted((cell for each in found for cell in each.cells), key=lambda cell: -cell.score)
    broken = tuple(rule for each in found for rule in each.near)
    return Suspects(broken, tuple(cells[:limit]), sum(each.total for each in found))


def _judged(version: Commit, rule: Rule) -> Constraint:
    """The rule as Holdfast writes it, if it has suspects."""
    columns = Lazily(version.tables, lambda name: Columns.stored(version.tables[name].columns))
    rule = registry.of(rule).canonical(rule, columns)
    if not has_suspects(rule):
        raise InputError(
            f"{rule} has no suspects: they are cells that break a key or a functional dependency; "
            "holdfast explain shows what breaks other rules"
        )
    return rule


@contextmanager
def _tables(
    runner: Runner, store: Store, progress: Progress, names: Sequence[str]
) -> Iterator[list[tuple[Run, Table, NearList]]]:
    """Some tables of the current version, each with a run of its own and its near rules."""
    with store.asking() as lease:
        commit = store.read(lease.version)
        yield [
            (
                Run(runner, store, commit.options, lease, about(progress, name)),
                Table.stored(name, commit.table(name)),
                commit.table(name).near or NearList(),
            )
            for name in names
        ]
