"""Rules that nearly hold, and the cells that break them: counted in the current version's rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.model.errors import InputError
from holdfast.model.grammar import Rule
from holdfast.model.lazily import Lazily
from holdfast.model.near import NearBounds, NearRule, Suspects, has_suspects
from holdfast.model.progress import Progress
from holdfast.report.snapshot import snapshot
from holdfast.rules import near as rules
from holdfast.rules.suspects import suspects as cells_of
from holdfast.runtime.run import Run, about
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.table.state import Table


def near(
    runner: Runner, store: Store, tables: Sequence[str], bounds: NearBounds, progress: Progress
) -> list[NearRule]:
    """The rules of some tables that nearly hold, table by table, the strongest first."""
    with _tables(runner, store, progress, tables) as opened:
        return [rule for run, table in opened for rule in _listed(store, run, table, bounds)]


def suspects(
    runner: Runner,
    store: Store,
    rule: Rule | None,
    tables: Sequence[str],
    bounds: NearBounds,
    limit: int | None,
    progress: Progress,
) -> Suspects:
    """The cells that a rule suspects, or else those that all rules of some tables do which nearly
    hold; at most so many."""
    if rule is not None:
        tables = [rule.tables[0]]
    found = []
    with _tables(runner, store, progress, tables) as opened:
        for run, table in opened:
            listed = (
                _listed(store, run, table, bounds)
                if rule is None
                else [rules.measured(run, table, _countable(store, run, rule))]
            )
            found.append(cells_of(run, table, listed, limit))
    cells = sorted((cell for each in found for cell in each.cells), key=lambda cell: -cell.score)
    near = tuple(rule for each in found for rule in each.near)
    return Suspects(near, tuple(cells[:limit]), sum(each.total for each in found))


def _listed(store: Store, run: Run, table: Table, bounds: NearBounds) -> list[NearRule]:
    """The rules of a table that nearly hold: of the keys those that matter as much as the best one
    that holds, because many columns are nearly unique by chance."""
    version = snapshot(store, run.lease.version)
    name = table.name
    near = rules.near_rules(run, table, bounds)
    scores = [registry.of(each.rule).score(each.rule, version, name) for each in near]
    best: dict[str, float] = {}
    for kind in registry.REGISTRY.values():
        if kind.name in run.options.kinds:
            best[kind.name] = max((e.score for e in kind.rank(version, name)[:1]), default=0.0)
    order = sorted(zip(scores, near, strict=True), key=lambda pair: -pair[0])
    return [
        each
        for score, each in order
        if each.strength is not None or score >= best.get(registry.of(each.rule).name, 0.0)
    ]


def _countable(store: Store, run: Run, rule: Rule) -> Rule:
    """The rule as Holdfast writes it, if it has suspects."""
    commit = store.read(run.lease.version)
    columns = Lazily(commit.tables, lambda name: Columns.stored(commit.tables[name].columns))
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
) -> Iterator[list[tuple[Run, Table]]]:
    """Some tables of the current version, each with a run of its own."""
    with store.asking() as lease:
        commit = store.read(lease.version)
        yield [
            (
                Run(runner, store, commit.options, lease, about(progress, name)),
                Table.stored(name, commit.table(name)),
            )
            for name in names
        ]
