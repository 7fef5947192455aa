"""Rules that nearly hold: looked for in a version's rows, and the cells that break them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from holdfast.model.commits import Commit, TableRecord, Tables
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Constraint, Key
from holdfast.model.errors import InputError
from holdfast.model.grammar import Rule, parse
from holdfast.model.lazily import Lazily
from holdfast.model.limits import OutOfTime
from holdfast.model.near import KEPT, NearBounds, NearList, NearRule, has_suspects
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.report.snapshot import Snapshot, snapshot
from holdfast.rules import looked_up
from holdfast.rules import near as rules
from holdfast.rules.form import RuleForm
from holdfast.rules.near import Exact, NearSearchResult
from holdfast.rules.near_kept import NearState, affordable
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.table.state import Table
from holdfast.values.state import ValueState
from holdfast.values.tuples import TupleCounts

WATCHED = 20
"""So many rules that hold are watched in a table: where a few rows break one, it nearly holds."""

WIDE = 40
"""In tables with more columns, rules that nearly hold are looked for only with dependencies."""


# Looking for them


def is_wanted(options: Options, table: Table) -> bool:
    """Whether near rules are looked for in a table."""
    named = registry.FDS.name in (options.named or ())
    is_narrow = len(table.columns.names) <= WIDE or named
    compares = any(kind.compares_rows for kind in registry.named(options.kinds))
    return options.near == "on" and is_narrow and compares


def found(run: Run, state: TableState, now: Snapshot) -> NearSearchResult:
    """The near rules of a table that its rows tell; of the keys those that matter, by what ``now``
    says."""
    table, bounds = state.table, NearBounds.of(run.options)
    looked_for = "fds" in run.options.kinds, "keys" in run.options.kinds
    best = _best_key(now, table.name)

    def matters(key: Key) -> bool:
        """Many columns are nearly unique by chance."""
        return registry.of(key).score(key, now, table.name) >= best

    wanted: list[NearRule] = []
    result = NearSearchResult((), 0)
    if any(looked_for):
        result = rules.near_rules(run, table, bounds, _exact(state, bounds.columns), matters)
        wanted += [each for each in result.rules if looked_for[each.strength is None]]
    left_out = []
    for kind in registry.named(run.options.kinds):
        try:
            wanted += kind.nearly_in_rows(run.bounded(), state, bounds)
        except OutOfTime:
            left_out.append(kind.nouns[1])
    return replace(result, rules=wanted, left_out=tuple(left_out))


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


def listed(
    run: Run,
    of_rows: Mapping[str, NearSearchResult],
    tables: Mapping[str, Table],
    base: Commit,
    now: Snapshot,
    version: int,
    values: ValueState | None = None,
) -> dict[str, NearList]:
    """The near rules of some tables for a version: those that rows tell, and those that values do.
    ``now`` is what ``base`` says, which tells which rules matter; ``values`` may be newer."""
    bounds = NearBounds.of(run.options)
    keys = {name: _keys(each.near_rules) for name, each in now.tables.items()}
    keys |= {name: _keys(result.rules) for name, result in of_rows.items()}
    columns = Lazily(tables, lambda name: tables[name].columns)
    lists = {}
    for name, result in of_rows.items():
        dismissed = near.dismissed if (near := now.tables[name].near) else ()
        # Keys by their scores, then dependencies, the strongest first, as they were found.
        scored = [
            (0.0 if near.strength else registry.of(near.rule).score(near.rule, now, name), near)
            for near in result.rules
        ]
        for kind in registry.named(run.options.kinds):
            scored += kind.nearly(now, name, bounds, keys, values)
        scored.sort(key=lambda pair: -pair[0])
        best = [each for _, each in scored if str(each.rule) not in dismissed]
        first = [
            looked_up.best_kept(each, form_of(each.rule, columns, run.options), tables)
            for each in best[:KEPT]
        ]
        kept = affordable(first, forms_of(first, tables, run.options), tables[name], tables)
        lists[name] = NearList(
            tuple(kept),
            version,
            tables[name].rows,
            result.complete_up_to,
            len(best) - len(kept),
            dismissed,
            _watched(base, now, name),
            result.left_out,
        )
    return lists


def _keys(near: Iterable[NearRule]) -> tuple[Any, ...]:
    return tuple(each.rule for each in near if registry.of(each.rule).role == "key")


def _watched(base: Commit, now: Snapshot, name: str) -> tuple[str, ...]:
    """The rules of a table that hold and matter: its grain, what is suggested, and what is shown
    first."""
    ranking = ranked(now, [name])
    grain = ranking[name].grain.key
    first = [str(grain)] if grain is not None else []
    first += [each.rule for each in suggested(now, ranking, base)]
    first += [
        str(each.constraint)
        for kind in registry.named_in(ranking[name].kinds)
        for each in ranking[name].kinds[kind.field]
        if kind.worthwhile is not None and each.score >= kind.worthwhile and not each.implied_by
    ]
    columns = _columns(base)
    forms = [(rule, form_of(parse(rule), columns, base.options)) for rule in dict.fromkeys(first)]
    return tuple([rule for rule, form in forms if form is not None][:WATCHED])


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
        tables = stored_tables(version)
        run = Run(runner, store, options, lease, progress)
        of_rows = {
            name: found(
                Run(runner, store, options, lease, about(progress, name)),
                TableState.load(store, version, name),
                now,
            )
            for name in names
        }
        lists = listed(run, of_rows, tables, version, now, version.version + 1)
        after = with_lists(run, replace(version, options=options), lists)
        return publish(store, lease, _alone(after, "near rules looked for"))


def _alone(version: Commit, event: str) -> Commit:
    """A version without a batch."""
    return replace(version, batch=None, changes=None, seconds={}, values_seconds={}, event=event)


def with_lists(run: Run, version: Commit, lists: Mapping[str, NearList]) -> Commit:
    """A version with the near rules of some tables, and with the counted tuples of exactly the
    rules that it expects or lists: new ones are counted in all rows."""
    version = replace(version, tables=with_near(version.tables, lists))
    tables = stored_tables(version)
    expected = [standing.expectation for standing in version.expectations]
    forms = [*registry.forms(expected, tables, run.options), *forms_listed(version, tables)]
    counts = TupleCounts.of(version.tuples).declare(run, forms, tables)
    records: dict[str, TableRecord] = {}
    for name, near in lists.items():
        state = NearState.of(near, forms_of(near.rules, tables, run.options))
        table = state.indexed(run, tables[name]).record
        near = state.recounted(run, counts, tables).near
        records[name] = replace(
            version.tables[name], near=near, segments=table.segments, looked_up=table.looked_up
        )
    return replace(version, tables=version.tables | records, tuples=counts.stored)


def with_near(tables: Tables, lists: Mapping[str, NearList]) -> Tables:
    """Tables, some of them with these near rules."""
    return tables | {name: replace(tables[name], near=near) for name, near in lists.items()}


def stored_tables(version: Commit) -> Lazily[Table]:
    """The tables of a version, each read when it is asked for."""
    return Lazily(version.tables, lambda name: Table.stored(name, version.tables[name]))


# What they are judged by


def form_of(rule: Constraint, columns: Mapping[str, Columns], options: Options) -> RuleForm | None:
    """What a rule that nearly holds is judged by; None: it is not kept how far it is from that."""
    return registry.of(rule).near_form(rule, columns, options)


def forms_of(
    near: Iterable[NearRule], tables: Mapping[str, Table], options: Options
) -> dict[Constraint, RuleForm]:
    """What rules that nearly hold are judged by."""
    columns = Lazily(tables, lambda name: tables[name].columns)
    forms = ((each, form_of(each.rule, columns, options)) for each in near)
    return {each.rule: looked_up.form_of(each, form) for each, form in forms if form is not None}


def forms_listed(version: Commit, tables: Mapping[str, Table]) -> list[RuleForm]:
    """What the near rules of all tables are judged by."""
    lists = [record.near for record in version.tables.values() if record.near is not None]
    near = [each for of_table in lists for each in of_table.rules]
    return [*forms_of(near, tables, version.options).values()]


def dismiss(store: Store, rule: Rule, undo: bool = False) -> None:
    """Neither list a rule nor suspect cells because of it any more; or allow it again."""
    with store.writing() as lease:
        version = store.read(lease.version)
        written = _canonical(version, rule)
        text, name = str(written), rule.tables[0]
        if form_of(written, _columns(version), version.options) is None:
            raise InputError(f"{text} is none of the rules that are looked for as nearly holding")
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


def _canonical(version: Commit, rule: Rule) -> Constraint:
    """The rule as Holdfast writes it."""
    written: Constraint = registry.of(rule).canonical(rule, _columns(version))
    return written


def _columns(version: Commit) -> Lazily[Columns]:
    """The columns of each table, read when they are asked for."""
    return Lazily(version.tables, lambda name: Columns.stored(version.tables[name].columns))


def suspecting(version: Commit, rule: Rule) -> tuple[Constraint, RuleForm]:
    """The rule as Holdfast writes it, if it has suspects, and what it is judged by."""
    written = _canonical(version, rule)
    if not has_suspects(written):
        raise InputError(
            f"{written} has no suspects: they are cells that break a key, a functional "
            "dependency or an inclusion; holdfast explain shows what breaks other rules"
        )
    form = registry.of(written).examiner().form(written, _columns(version), version.options)
    return written, form
