"""The cells that rules which nearly hold suspect, those that are suspected most first.

In a group of rows that agree on a lhs, where more than half of the rows, and at least two, agree on
the right, the others are suspected, and the majority's value is suggested. Of a key, rows that
share their values are. A cell scores the sum of the strengths of the rules that suspect it: a wrong
cell is mostly suspected by several rules, a right one by one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain

import numpy as np

from holdfast.model.near import NearRule, Suspect, Suspects
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.exchange import exchanged
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import suspects as tasks
from holdfast.tasks.near import NearCandidate, WriteGroups, write_groups
from holdfast.tasks.shown import rows_as_text


def suspects(run: Run, table: Table, near: Sequence[NearRule], most: int | None) -> Suspects:
    """At most so many cells that some rules of a table suspect."""
    if not near:
        return Suspects((), (), 0)
    run.progress("suspects", rules=len(near))
    view = table.view(run.store.path, run.options)
    runner, root, prefix = run.runner, run.store.path, run.destination.prefix
    by_lhs = _by_lhs(table, near)
    candidates = tuple(candidate for candidate, _ in by_lhs)
    writes: list[Call] = [
        (write_groups, WriteGroups(share, candidates, prefix, with_ids=True))
        for share in shares(view, runner.tasks)
    ]
    number = parts(runner, view)
    with exchanged(runner, root, writes) as files:
        finds: list[Call] = []
        for own, (candidate, rules) in zip(zip(*files, strict=True), by_lhs, strict=True):
            finds += [
                (
                    tasks.find_suspects,
                    tasks.FindSuspects(root, own, candidate, rules, part, number, prefix),
                )
                for part in range(number)
            ]
        with exchanged(runner, root, finds) as found:
            files_found = tuple(chain.from_iterable(found))
            cells, scores = _cells(table, near), tuple(map(_strength, near))
            ranks: list[Call] = [
                (
                    tasks.rank_suspects,
                    tasks.RankSuspects(root, files_found, cells, scores, most, part, number),
                )
                for part in range(number)
            ]
            results = [result for answers in runner.run(ranks) for result in answers]
    return _joined(run, table, near, results, most)


def _strength(near: NearRule) -> float:
    return 1.0 if near.strength is None else near.strength


def _cells(table: Table, near: Sequence[NearRule]) -> tuple[int, ...]:
    """What each rule suspects of a row: a column, or, of a key, a number of its own."""
    names = table.columns.names
    return tuple(
        len(names) + place if each.rhs is None else names.index(each.rhs)
        for place, each in enumerate(near)
    )


def _by_lhs(table: Table, near: Sequence[NearRule]) -> list[tuple[NearCandidate, tuple[int, ...]]]:
    """Dependencies with one lhs together, and every key for itself, with the places of the
    rules."""
    position = table.columns.names.index
    places_of: dict[tuple[tuple[str, ...], bool], list[int]] = {}
    for place, each in enumerate(near):
        places_of.setdefault((each.lhs, each.rhs is None), []).append(place)
    by_lhs = []
    for (lhs, _), places in places_of.items():
        rhs = tuple(position(name) for place in places if (name := near[place].rhs) is not None)
        by_lhs.append((NearCandidate(tuple(map(position, lhs)), rhs, ()), tuple(places)))
    return by_lhs


def _joined(
    run: Run,
    table: Table,
    near: Sequence[NearRule],
    results: Sequence[TaskResult],
    most: int | None,
) -> Suspects:
    """What all tasks found, with the rows."""
    findings, numbers, scores = (
        np.concatenate([each.arrays[name] for each in results])
        for name in ("findings", "rules", "scores")
    )
    order = np.lexsort((findings[:, 1], findings[:, 0], -scores))[:most]
    ids = np.unique(findings[order][:, [0, 2]])
    text = rows_as_text(run.store.path, table.segments, table.columns.names, ids)
    rows = {row: json.loads(content) for row, content in text.items()}
    cells = []
    for at in order.tolist():
        row, place, other, agreeing, size = findings[at].tolist()
        rule = near[place]
        cells.append(
            Suspect(
                table.name,
                rule.lhs if rule.rhs is None else (rule.rhs,),
                rows[row],
                None if rule.rhs is None else rows[other].get(rule.rhs),
                agreeing,
                size,
                rule.rule,
                int(numbers[at]),
                round(float(scores[at]), 6),
            )
        )
    total = sum(each.facts.get("cells", 0) for each in results)
    return Suspects(tuple(near), tuple(cells), total)
