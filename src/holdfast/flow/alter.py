"""Changing the columns of a table: a version of its own, which keeps the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.flow.commits import publish, said
from holdfast.flow.near import is_wanted
from holdfast.flow.profile import discovered, expect_options, with_near_rules, with_values
from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.kinds.table_state import TableState, bounded
from holdfast.model.column_types import column_type
from holdfast.model.commits import Commit
from holdfast.model.errors import HoldfastError, InputError
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.names import quoted
from holdfast.model.near import NearList
from holdfast.model.progress import Progress
from holdfast.model.records import from_form
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner, run_all
from holdfast.store import Store
from holdfast.table.columns import of_nulls
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import reshape as tasks
from holdfast.tasks.segments import Segment
from holdfast.values.state import ValueState


@dataclass(frozen=True)
class Alteration:
    """What happens to the columns of a table."""

    add: Mapping[str, str] = field(default_factory=dict)  # types by name
    drop: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)  # new names by old ones

    @property
    def event(self) -> str:
        """What the history says."""
        parts = [f"{quoted(name)} added as {kind}" for name, kind in self.add.items()]
        parts += [f"{quoted(name)} dropped" for name in self.drop]
        parts += [f"{quoted(old)} renamed to {quoted(new)}" for old, new in self.rename.items()]
        return ", ".join(parts)


@dataclass(frozen=True)
class Plan:
    """The columns of a table afterwards, and which they are before."""

    columns: Columns
    places: tasks.Places
    moves: bool  # whether columns come or go, so that rows have other words
    event: str


def planned(version: Commit, name: str, alteration: Alteration) -> Plan:
    """What will be done; an error if it cannot be, before anything is."""
    before = Columns.stored(version.table(name).columns)
    where = f"table {name!r}"
    if not (alteration.add or alteration.drop or alteration.rename):
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
    added = [column_type(kind) for kind in alteration.add.values()]
    names = [alteration.rename.get(before.names[p], before.names[p]) for p in kept]
    after = Columns.of(
        [*names, *alteration.add],
        [*(before.types[p] for p in kept), *(kind for kind, _ in added)],
        [*(before.given.field(p).type for p in kept), *(arrow for _, arrow in added)],
    )
    plan = Plan(
        replace(after, concealed=before.concealed),
        (*kept, *(None for _ in added)),
        bool(alteration.add or alteration.drop),
        f"table {name}: column {alteration.event}",
    )
    _expect_rules(version, name, plan)
    return plan


def _expect_rules(version: Commit, name: str, plan: Plan) -> None:
    """Refuse to take a column away that an expected rule or an option is about."""
    columns = {each: Columns.stored(table.columns) for each, table in version.tables.items()}
    columns[name] = plan.columns
    for standing in version.expectations:
        try:
            registry.canonical(standing.rule, columns)
            registry.form(standing.expectation, columns, version.options)
        except HoldfastError as error:
            raise InputError(
                f"the rule {standing.rule} is expected: {error}; forget it first, with holdfast "
                f"forget DIR '{standing.rule}', and expect it of another column afterwards"
            ) from error
    for kind in registry.named(version.options.kinds):
        kind.expect(version.options, {each: of.names for each, of in columns.items()})


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
        return replace(state, table=replace(table, columns=plan.columns)).save(run, state)
    fresh = replace(state, table=reshaped(run, table, plan), evidence={})
    return discovered(run, fresh).save(run, None)


def reshaped(run: Run, table: Table, plan: Plan) -> Table:
    """The table with its rows written anew; only the hashes of whole rows are indexed."""
    view, schema = table.view(run.store.path, run.options), plan.columns.schema
    with run.stage("alter"):
        run.progress("alter", rows=table.rows)
        calls = [
            (tasks.reshape, tasks.Reshape(share, schema, plan.places, run.destination.prefix))
            for share in shares(view, run.runner.tasks)
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

    return replace(
        table,
        columns=plan.columns,
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
    return replace(values, attributes=attributes).save(run, values)
