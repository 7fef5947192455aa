"""Changing the columns of a table: a version of its own, which keeps the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from holdfast.flow.commits import publish, said
from holdfast.flow.near import is_wanted
from holdfast.flow.profile import (
    discovered,
    expect_options,
    tables_and_keys,
    with_near_rules,
    with_values,
)
from holdfast.input import type_names
from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.kinds.table_state import TableState, bounded
from holdfast.model.commits import Commit, SourceRecord
from holdfast.model.errors import HoldfastError, InputError
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.names import quoted
from holdfast.model.near import NearList
from holdfast.model.progress import Progress
from holdfast.model.records import from_form
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner, run_all
from holdfast.store import Store
from holdfast.table import columns
from holdfast.table.batch import columns_of
from holdfast.table.columns import of_nulls
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import reshape as tasks
from holdfast.tasks.segments import Segment
from holdfast.tasks.widening import keeps_words
from holdfast.values.state import ValueState

ColumnType = tuple[str, pa.DataType]
"""What Spark calls a type, and the Arrow type that stores its cells."""


@dataclass(frozen=True)
class Alteration:
    """What happens to the columns of a table."""

    add: Mapping[str, ColumnType] = field(default_factory=dict)  # types by name
    drop: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)  # new names by old ones
    widen: Mapping[str, ColumnType] = field(default_factory=dict)  # wider types by name

    @property
    def event(self) -> str:
        """What the history says."""
        parts = [f"{quoted(name)} added as {kind}" for name, (kind, _) in self.add.items()]
        parts += [f"{quoted(name)} widened to {kind}" for name, (kind, _) in self.widen.items()]
        parts += [f"{quoted(name)} dropped" for name in self.drop]
        parts += [f"{quoted(old)} renamed to {quoted(new)}" for old, new in self.rename.items()]
        return ", ".join(parts)


@dataclass(frozen=True)
class Plan:
    """The columns of a table afterwards, and which they are before."""

    columns: Columns
    source: SourceRecord  # how batches are read
    places: tasks.Places
    moves: bool  # whether columns come or go, or change, so that rows have other words
    recasts: bool  # whether raw rows have other types, and the same words
    event: str


def planned(version: Commit, name: str, alteration: Alteration) -> Plan:
    """What will be done; an error if it cannot be, before anything is."""
    before = Columns.stored(version.table(name).columns)
    where = f"table {name!r}"
    if not (alteration.add or alteration.drop or alteration.rename or alteration.widen):
        raise InputError(
            f"{where}: say what changes: --add-column NAME=TYPE, --drop-column NAME or "
            "--rename-column OLD=NEW"
        )
    for column in (*alteration.drop, *alteration.rename):
        before.position(column, name)
    if both := set(alteration.drop) & set(alteration.rename):
        raise InputError(f"{where}: column {min(both)!r} cannot be dropped and renamed at once")
    new = [*alteration.rename.values(), *alteration.add]
    for column in new:
        if not column.strip():
            raise InputError(f"{where}: a column needs a name")
        if column in before.names or new.count(column) > 1:
            raise InputError(
                f"{where} has a column {column!r} already; give the new one another name"
            )
    kept = [place for place, column in enumerate(before.names) if column not in alteration.drop]
    if not kept and not alteration.add:
        raise InputError(f"{where}: a table needs a column, and all of them would be dropped")
    names = [alteration.rename.get(before.names[p], before.names[p]) for p in kept]
    kinds = [(before.types[p], before.given.field(p).type) for p in kept]
    wider = [
        alteration.widen.get(before.names[p], kind) for p, kind in zip(kept, kinds, strict=True)
    ]
    kinds_after = [*wider, *alteration.add.values()]
    after = Columns.of(
        [*names, *alteration.add], [kind for kind, _ in kinds_after], [a for _, a in kinds_after]
    )
    same = before.concealed or all(
        keeps_words(old, new) for (_, old), (_, new) in zip(kinds, wider, strict=True)
    )
    plan = Plan(
        replace(after, concealed=before.concealed),
        _source(version.table(name).source, where, alteration),
        (*kept, *(None for _ in alteration.add)),
        bool(alteration.add or alteration.drop or not same),
        after.given != before.given,
        f"table {name}: column {alteration.event}",
    )
    _expect_rules(version, name, plan)
    return plan


def _source(source: SourceRecord, where: str, alteration: Alteration) -> SourceRecord:
    """How batches are read afterwards, where a schema says it."""
    if source.schema is None:
        return source
    fields = {field.name: field.type for field in type_names.parsed(source.schema)}
    for column in (*alteration.drop, *alteration.rename):
        if column not in fields:
            raise InputError(
                f"{where}: column {column!r} is a part of a nested field of its records; profile "
                "the table anew to read these differently"
            )
    fields |= {column: kind for column, (_, kind) in alteration.widen.items() if column in fields}
    kept = {
        alteration.rename.get(column, column): kind
        for column, kind in fields.items()
        if column not in alteration.drop
    }
    added = {column: kind for column, (_, kind) in alteration.add.items()}
    schema = type_names.written(pa.schema([*(kept | added).items()]))
    return replace(source, schema=schema)


def _expect_rules(version: Commit, name: str, plan: Plan) -> None:
    """Refuse to take a column away that an expected rule or an option is about."""
    known = {each: Columns.stored(table.columns) for each, table in version.tables.items()}
    known[name] = plan.columns
    for standing in version.expectations:
        try:
            registry.canonical(standing.rule, known)
            registry.form(standing.expectation, known, version.options)
        except HoldfastError as error:
            raise InputError(
                f"the rule {standing.rule} is expected: {error}; forget it first, with holdfast "
                f"forget DIR '{standing.rule}', and expect it of another column afterwards"
            ) from error
    for kind in registry.named(version.options.kinds):
        kind.expect(version.options, {each: of.names for each, of in known.items()})


def alter(
    runner: Runner, store: Store, name: str, alteration: Alteration, progress: Progress
) -> int:
    """Add, drop or rename columns of a table; the version that has them so. A new column is null in
    all rows. Where columns come or go, what the table's rows show is found again."""
    with (
        store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        before = store.read(lease.version)
        plan = planned(before, name, alteration)
        options = before.options
        run = Run(runner, store, options, lease, progress)
        of_table = Run(runner, store, options, lease, about(progress, name))
        states = {each: TableState.load(store, before, each) for each in before.tables}
        old = states[name]
        with bounded(name):
            states[name] = _altered(of_table, old, plan)
        tables = {each: state.table for each, state in states.items()}
        expect_options(options, states)
        values = _values(run, before, plan, name, states)
        listed = [each for each, state in states.items() if state.near is not None]
        listed = [each for each in listed if is_wanted(options, tables[each])]
        empty = {
            each: replace(state, near=_without_rules(state.near))
            for each, state in states.items()
            if state.near is not None or each == name
        }
        known = {each: state for each, state in empty.items() if each in {*listed, name}}
        kept = Commit(
            tables=before.tables,
            expectations=before.expectations,
            tuples=before.tuples,
            secret=before.secret,
            event=plan.event,
        )
        version = said(run, known, values, kept)
        version = with_near_rules(
            run, {each: of_table if each == name else run for each in listed},
            {each: known[each] for each in listed}, version,
        )  # fmt: skip
        number = publish(store, lease, replace(version, seconds={name: of_table.seconds}))
    store.clean()
    return number


def _without_rules(near: NearList | None) -> NearList | None:
    """What was dismissed stays; the rules are looked for again, as they may be about what
    changed."""
    return None if near is None else replace(near, rules=(), watched=())


def _altered(run: Run, state: TableState, plan: Plan) -> TableState:
    """The table with its new columns, and with what pairs of its rows show."""
    table = state.table
    if not plan.moves:
        if plan.recasts and not table.columns.concealed:
            table = recast(run, table, plan)
        table = replace(table, columns=plan.columns, source=plan.source)
        if plan.recasts:
            table = with_facts(run, table)
        return replace(state, table=table).save(run, state)
    fresh = replace(state, table=reshaped(run, table, plan), evidence={})
    return discovered(run, fresh).save(run, None)


def recast(run: Run, table: Table, plan: Plan) -> Table:
    """The table with raw rows of the new types, where it has them."""
    raw = tuple(segment for segment in table.segments if segment.raw)
    view, schema = table.view(run.store.path, run.options, raw), plan.columns.schema
    item = tasks.Reshape(view, table.columns.schema, schema, plan.places, run.destination.prefix)
    with run.stage("alter"):
        run.progress("alter", rows=table.rows)
        calls = [
            (tasks.recast, replace(item, view=share)) for share in shares(view, run.runner.tasks)
        ]
        results = run_all(run.runner, calls)
    files = {result.facts["number"]: result.facts["raw"] for result in results}
    segments = (replace(s, raw=files.get(s.number, s.raw)) for s in table.segments)
    return replace(table, segments=tuple(segments))


def reshaped(run: Run, table: Table, plan: Plan) -> Table:
    """The table with its rows written anew; only the hashes of whole rows are indexed."""
    view, schema = table.view(run.store.path, run.options), plan.columns.schema
    item = tasks.Reshape(view, table.columns.schema, schema, plan.places, run.destination.prefix)
    with run.stage("alter"):
        run.progress("alter", rows=table.rows)
        calls = [
            (tasks.reshape, replace(item, view=share)) for share in shares(view, run.runner.tasks)
        ]
        segments = tuple(
            replace(from_form(Segment, result.facts["segment"]), number=table.next_number + k)
            for k, result in enumerate(run_all(run.runner, calls))
        )
    facts = [
        of_nulls(table.rows, kind, run.options.keep_rows) if place is None else table.facts[place]
        for place, kind in zip(plan.places, schema.types, strict=True)
    ]

    def estimates(known: Sequence[float], of_new: float) -> list[float]:
        return [of_new if place is None else known[place] for place in plan.places]

    after = replace(
        table,
        columns=plan.columns,
        source=plan.source,
        segments=segments,
        next_number=table.next_number + len(segments),
        facts=tuple(facts) if table.facts else (),
        distinct=estimates(table.distinct, 0.0),
        agreeing=estimates(table.agreeing, 1.0) if table.agreeing else [],
        estimated_at=0,
        indexed=(),
        looked_up=(),
        duplicates=0,
        repeated=[],
    )
    return after if not plan.recasts else with_facts(run, after)


def with_facts(run: Run, table: Table) -> Table:
    """The table with the facts of its columns, which tell values as their types have them."""
    if not table.facts:
        return table
    known = columns_of(run, table, table.segments)
    return replace(table, facts=columns.records(table.columns, known))


def _values(
    run: Run, before: Commit, plan: Plan, name: str, states: Mapping[str, TableState]
) -> ValueState | None:
    """The values of all tables: counted again where columns come or go."""
    if before.inclusion is None:
        return None
    if plan.moves:
        return with_values(run, states)
    values = ValueState.load(run.store, before.inclusion)
    first, end = values.stretches[name]
    renamed = tuple(Attribute(name, column) for column in plan.columns.names)
    attributes = (*values.attributes[:first], *renamed, *values.attributes[end:])
    after = replace(values, attributes=attributes)
    return after.with_keys(run, *tables_and_keys(run.options, states)).save(run, values)
