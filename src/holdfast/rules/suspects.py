"""The cells that rules which nearly hold suspect, those that are suspected most first.

In a group of rows that agree on a lhs, where more than half of the rows, and at least two, agree on
the right, the others are suspected, and the majority's value is suggested. Of a key, rows that
share their values are; of a foreign key, those whose value is missing (:mod:`rules.missing`). A
cell scores the sum of the strengths of the rules that suspect it: a wrong cell is mostly suspected
by several rules, a right one by one.

Tasks rank the cells of some rows each, and write them into files with the rows as they came; these
are merged while they are read, so that there can be any number of cells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import chain
from pathlib import Path

from holdfast.model.near import NearRule, Suspect
from holdfast.rules.form import RuleForm
from holdfast.rules.missing import missing_rows
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.exchange import exchanged_by_place, exchanged_results, files_of
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import suspects as tasks
from holdfast.tasks.near import NearCandidate, WriteGroups, write_groups
from holdfast.tasks.suspects import RankedCell, Suggesting, ranked_in


@dataclass(frozen=True)
class SuspectedCells:
    """The cells that some rules of a table suspect: how many, in how many groups, and one after the
    other."""

    total: int
    groups: int
    cells: Iterator[Suspect]


@contextmanager
def suspected(
    run: Run,
    tables: Mapping[str, Table],
    near: Mapping[NearRule, RuleForm],
    row_key: Sequence[str],
    most: int | None,
) -> Iterator[SuspectedCells]:
    """The cells that some rules of one table suspect, each with what it is judged by: the highest
    scores first, at most so many. They are in files that are removed at the end of the block."""
    if not near:
        yield SuspectedCells(0, 0, iter(()))
        return
    run.progress("suspects", rules=len(near))
    rules, forms = [*near], [*near.values()]
    table = tables[rules[0].table]
    runner, root, prefix = run.runner, run.store.path, run.destination.prefix
    number = parts(runner, table.view(run.store.path, run.options))
    with ExitStack() as stack:
        found: list[TaskResult] = []
        grouped = [place for place, form in enumerate(forms) if not form.references]
        if grouped:
            found += stack.enter_context(_disagreeing(run, table, rules, grouped, number))
        for place, form in enumerate(forms):
            for sides in form.references:
                found += stack.enter_context(missing_rows(run, tables, sides, place))
        ranks: list[Call] = [
            (
                tasks.rank_suspects,
                tasks.RankSuspects(
                    root, tuple(file for result in found for file in files_of(result)),
                    _cells(table, rules),
                    tuple(_suggesting(tables, *pair) for pair in zip(rules, forms, strict=True)),
                    tuple(map(_strength, rules)), most, table.segments, table.columns.names,
                    part, number, prefix,
                ),
            )
            for part in range(number)
        ]  # fmt: skip
        ranked = stack.enter_context(exchanged_results(runner, root, ranks))
        results = [*chain.from_iterable(ranked)]
        total = sum(result.facts["cells"] for result in results)
        every = chain.from_iterable(map(files_of, results))
        pairs = zip(every, every, strict=True)  # each of numbers, and then of texts
        merged = merge(
            *(ranked_in(Path(root), *pair) for pair in pairs), key=lambda cell: cell.order
        )
        cells = (_suspect(table, rules, row_key, cell) for cell in merged)
        yield SuspectedCells(total, sum(result.facts["groups"] for result in found), cells)


@contextmanager
def _disagreeing(
    run: Run, table: Table, near: Sequence[NearRule], grouped: Sequence[int], number: int
) -> Iterator[list[TaskResult]]:
    """Files of the rows that break keys and dependencies, which are at these places."""
    view = table.view(run.store.path, run.options)
    runner, root, prefix = run.runner, run.store.path, run.destination.prefix
    by_lhs = _by_lhs(table, near, grouped)
    candidates = tuple(candidate for candidate, _ in by_lhs)
    writes: list[Call] = [
        (write_groups, WriteGroups(share, candidates, prefix, with_ids=True))
        for share in shares(view, runner.tasks)
    ]
    with exchanged_by_place(runner, root, writes, len(candidates)) as files:
        finds: list[Call] = []
        for own, (candidate, rules) in zip(files, by_lhs, strict=True):
            finds += [
                (
                    tasks.find_suspects,
                    tasks.FindSuspects(root, own, candidate, rules, part, number, prefix),
                )
                for part in range(number)
            ]
        with exchanged_results(runner, root, finds) as found:
            yield [*chain.from_iterable(found)]


def _strength(near: NearRule) -> float:
    return 1.0 if near.strength is None else near.strength


def _cells(table: Table, near: Sequence[NearRule]) -> tuple[int, ...]:
    """What each rule suspects of a row: a column, or, of a key or of several columns, a number of
    its own."""
    names = table.columns.names
    return tuple(
        len(names) + place if (column := each.suspected_column) is None else names.index(column)
        for place, each in enumerate(near)
    )


def _suggesting(tables: Mapping[str, Table], near: NearRule, form: RuleForm) -> Suggesting | None:
    """Where values lie that a rule suggests: its right side."""
    for _, right in form.references:
        if len(right.columns) > 1:
            return None
        table = tables[right.table]
        return Suggesting(table.segments, table.columns.names, right.columns[0])
    if near.rhs is None:
        return None
    table = tables[near.table]
    return Suggesting(table.segments, table.columns.names, near.rhs)


def _by_lhs(
    table: Table, near: Sequence[NearRule], grouped: Sequence[int]
) -> list[tuple[NearCandidate, tuple[int, ...]]]:
    """Dependencies with one lhs together, and every key for itself, with the places of the
    rules."""
    position = table.columns.names.index
    places_of: dict[tuple[tuple[str, ...], bool], list[int]] = {}
    for place in grouped:
        places_of.setdefault((near[place].lhs, near[place].rhs is None), []).append(place)
    by_lhs = []
    for (lhs, _), places in places_of.items():
        rhs = tuple(position(name) for place in places if (name := near[place].rhs) is not None)
        by_lhs.append((NearCandidate(tuple(map(position, lhs)), rhs, ()), tuple(places)))
    return by_lhs


def _suspect(
    table: Table, near: Sequence[NearRule], row_key: Sequence[str], cell: RankedCell
) -> Suspect:
    """A cell with its row."""
    said, rule = json.loads(cell.text), near[cell.rule]
    row = said["row"]
    columns = rule.lhs if rule.rhs is None else (rule.rhs,)
    values = [row.get(name) for name in columns]
    return Suspect(
        table.name,
        cell.row,
        {name: row[name] for name in row_key if name in row} or None,
        columns,
        values[0] if len(values) == 1 else values,
        said["suggested"],
        cell.agreeing,
        cell.size,
        rule.rule,
        cell.rules,
        cell.score,
        row,
    )
