"""Inclusion dependencies of several columns, from those of fewer, level by level.

A candidate of k columns is worth a test only if leaving any column out leaves a dependency that
holds. A test compares sets of tuples; a tuple has a code like a value. A refuted candidate keeps
the code of one missing tuple with its number of rows, and is tested again only when a batch takes
the last of them from the left or brings the tuple to the right. One that holds is tested on what a
batch brings to its left or takes from its right side. A tuple with a null on the left is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.model import thresholds
from holdfast.model.commits import ValueRun
from holdfast.model.inclusion_dependencies import EMPTY, HOLDS, REFUTED
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Call, Runner
from holdfast.table.change import Rows
from holdfast.table.placement import shares
from holdfast.tasks import values as tasks
from holdfast.tasks.encode import layout
from holdfast.tasks.values import Cells, cut
from holdfast.tasks.view import View

Side = tuple[str, tuple[int, ...]]
"""A table and some of its columns."""


@dataclass(frozen=True)
class Candidate:
    """Columns of one table that may be contained in as many of another, or of the same."""

    table: str
    columns: tuple[int, ...]  # ascending
    other: str
    others: tuple[int, ...]

    @property
    def left(self) -> Side:
        """The dependent side."""
        return self.table, self.columns

    @property
    def right(self) -> Side:
        """The referenced side."""
        return self.other, self.others

    def without(self, at: int) -> Candidate:
        """The candidate with one pair of columns left out."""
        return replace(
            self,
            columns=self.columns[:at] + self.columns[at + 1 :],
            others=self.others[:at] + self.others[at + 1 :],
        )


@dataclass(frozen=True)
class Verdict:
    """What is known of a candidate; ``missing`` is the code of a tuple that refutes it, which so
    many ``rows`` of the left side have."""

    status: int
    missing: tuple[int, int] = (0, 0)
    rows: int = 0


Verdicts = dict[Candidate, Verdict]


@dataclass(frozen=True)
class Batch:
    """What a batch did to a table."""

    added: Rows
    gone: Rows

    @property
    def count(self) -> int:
        """How many rows came and went."""
        return self.added.count + self.gone.count


Batches = Mapping[str, Batch]
"""What a batch did to each table that it changed."""


@dataclass(frozen=True)
class Search:
    """Where and how candidates are tested: all tables as they are now."""

    runner: Runner
    destination: Destination
    options: Options
    tables: Mapping[str, Rows]

    def cells(self, rows: Rows, sides: Iterable[tuple[int, Side]]) -> Cells:
        """Rows seen as tuples, one attribute for each side, with its number."""
        schema = rows.table.columns.schema
        attributes = tuple(
            tasks.Attribute(number, columns, tuple(map(rows.table.columns.family, columns)))
            for number, (_, columns) in sides
        )
        widths = layout(schema).widths
        view = View(self.destination.root, rows.segments, widths, self.options.nulls == "equal")
        nulls = self.options.inclusion_nulls == "values"
        return Cells(view, schema, attributes, nulls, 1, rows.ids, rows.later)


def all_verdicts(
    search: Search,
    unary: Iterable[Candidate],
    before: Verdicts,
    batches: Batches,
    progress: Progress,
) -> Verdicts:
    """The verdicts on all candidates of two columns and more, given the dependencies of one.

    ``before`` are those of the version before the batch, none where there is no such version.
    """
    verdicts: Verdicts = {}
    holding = set(unary)
    for arity in range(2, search.options.max_arity + 1):
        candidates = list(_candidates(holding, arity))
        if not candidates:
            break
        progress("tuples", arity=arity, candidates=len(candidates))
        known = {each: before[each] for each in candidates if each in before}
        known = _kept(search, known, batches)
        verdicts |= known
        verdicts |= _tested(search, [each for each in candidates if each not in known])
        wanted = {HOLDS, EMPTY} if search.options.empty_columns else {HOLDS}
        holding = {each for each in candidates if verdicts[each].status in wanted}
    return verdicts


def _candidates(holding: set[Candidate], arity: int) -> Iterator[Candidate]:
    """Candidates that hold without any one of their columns."""
    groups: dict[tuple[Side, Side], list[Candidate]] = {}
    for each in holding:
        first = (each.table, each.columns[:-1]), (each.other, each.others[:-1])
        groups.setdefault(first, []).append(each)
    for group in groups.values():
        group.sort(key=lambda each: (each.columns, each.others))
        for one, two in combinations(group, 2):
            if one.columns[-1] == two.columns[-1] or one.others[-1] == two.others[-1]:
                continue
            joined = replace(
                one,
                columns=(*one.columns, two.columns[-1]),
                others=(*one.others, two.others[-1]),
            )
            if arity == 2 or all(joined.without(k) in holding for k in range(arity)):
                yield joined


# Tests


def _tested(search: Search, candidates: list[Candidate]) -> Verdicts:
    """Compare the sets of tuples in full."""
    if not candidates:
        return {}
    sides = sorted({side for each in candidates for side in (each.left, each.right)})
    number = {side: k for k, side in enumerate(sides)}
    cells = [
        search.cells(
            search.tables[table], [(number[side], side) for side in sides if side[0] == table]
        )
        for table in dict.fromkeys(side[0] for side in sides)
    ]
    size = sum(s.rows for each in cells for s in each.view.segments) * len(sides)
    runs: tuple[ValueRun, ...] = ()
    parts = 1
    if size > thresholds.current.task_cells:
        runs = _counted(search, cells)
        entries = sum(run.entries for run in runs)
        parts = max(search.runner.tasks, -(-entries // thresholds.current.task_entries))
    left = tuple(number[each.left] for each in candidates)
    right = tuple(number[each.right] for each in candidates)
    calls: list[Call] = [
        (
            tasks.trial,
            tasks.Trial(
                search.destination.root, cut(k, parts), cut(k + 1, parts), runs,
                () if runs else tuple(cells), left, right,
            ),
        )
        for k in range(parts)
    ]  # fmt: skip
    seen = np.zeros(len(candidates), np.bool_)
    refuted: dict[int, Verdict] = {}
    for result in search.runner.run(calls):
        for task_result in result:
            seen |= task_result.arrays["seen"]
            for k in np.flatnonzero(task_result.arrays["rows"]).tolist():
                refuted[k] = _refuted(task_result.arrays["codes"], task_result.arrays["rows"], k)
    return {
        each: refuted.get(k, Verdict(HOLDS if seen[k] else EMPTY))
        for k, each in enumerate(candidates)
    }


def _refuted(codes: U64, rows: I64, at: int) -> Verdict:
    high, low = codes[at].tolist()
    return Verdict(REFUTED, (high, low), int(rows[at]))


def _counted(search: Search, cells: list[Cells]) -> tuple[ValueRun, ...]:
    calls: list[Call] = [
        (tasks.count, tasks.Count(replace(each, view=share), search.destination.prefix))
        for each in cells
        for share in shares(each.view, search.runner.tasks)
    ]
    task_results = [task_result for result in search.runner.run(calls) for task_result in result]
    return tuple(ValueRun((p.facts["part"],), p.facts["entries"]) for p in task_results)


def _kept(search: Search, known: Verdicts, batches: Batches) -> Verdicts:
    """The verdicts that a batch leaves as they are or replaces at once; the others are tested."""
    most = thresholds.current.looked_up_rows
    many = {table for table, batch in batches.items() if batch.count > most}
    filled = {table for table, batch in batches.items() if batch.added.count}
    kept = {
        each: verdict
        for each, verdict in known.items()
        if not many & {each.table, each.other}
        and not (verdict.status == EMPTY and each.table in filled)
    }
    answers = _looked_up(
        search,
        [
            (each, what, look)
            for each, verdict in kept.items()
            for what, look in _looks(search, each, verdict, batches)
        ],
    )
    doubtful: dict[Candidate, U64] = {}
    for each, answer in answers.items():
        number = {what: int(rows.sum()) for what, (_, rows) in answer.items()}
        if kept[each].status == REFUTED:
            left = kept[each].rows + number.get("come", 0) - number.get("gone", 0)
            kept[each] = replace(kept[each], rows=0 if number.get("supplied") else left)
            continue
        if number.get("left") == 0:
            kept[each] = Verdict(EMPTY)
        lost = [codes[rows == 0] for what, (codes, rows) in answer.items() if what != "left"]
        if any(map(len, lost)):
            doubtful[each] = np.concatenate(lost)
    kept |= _missed(search, doubtful)
    return {
        each: verdict for each, verdict in kept.items() if verdict.status != REFUTED or verdict.rows
    }


def _missed(search: Search, doubtful: Mapping[Candidate, U64]) -> Verdicts:
    """Verdicts on candidates whose right side lacks some tuples, if the left side has any."""
    looks = []
    for each, codes in doubtful.items():
        cells = search.cells(search.tables[each.table], [(0, each.left)])
        looks += [
            (each, "left", tasks.Look((), codes, (replace(cells, view=share),)))
            for share in shares(cells.view, search.runner.tasks)
        ]
    on_the_left = {each: answer["left"] for each, answer in _looked_up(search, looks).items()}
    return {
        each: _refuted(codes, rows, int(rows.argmax()))
        for each, (codes, rows) in on_the_left.items()
        if rows.any()
    }


Answers = dict[Candidate, dict[str, tuple[U64, I64]]]
"""What was looked up: tuples, and how many rows have each."""


def _looked_up(search: Search, looks: list[tuple[Candidate, str, tasks.Look]]) -> Answers:
    results = search.runner.run([(tasks.look, look) for _, _, look in looks]) if looks else []
    answers: Answers = {}
    for (each, what, _), result in zip(looks, results, strict=True):
        for task_result in result:
            answer = answers.setdefault(each, {})
            codes, rows = task_result.arrays["codes"], task_result.arrays["rows"]
            answer[what] = (codes, rows + answer[what][1]) if what in answer else (codes, rows)
    return answers


def _looks(
    search: Search, each: Candidate, verdict: Verdict, batches: Batches
) -> Iterator[tuple[str, tasks.Look]]:
    """What has to be looked up to know what a batch does to a verdict."""
    none = np.empty((0, 2), np.uint64)
    left, right = batches.get(each.table), batches.get(each.other)
    if verdict.status == REFUTED:
        code = np.array([verdict.missing], np.uint64)
        for what, rows, side in (
            ("gone", left and left.gone, each.left),
            ("come", left and left.added, each.left),
            ("supplied", right and right.added, each.right),
        ):
            if rows and rows.count:
                yield what, tasks.Look((), code, (search.cells(rows, [(0, side)]),))
    elif verdict.status == HOLDS:
        if left and left.gone.count:
            mine = search.cells(search.tables[each.table], [(0, each.left)])
            yield "left", tasks.Look((), none, (mine,))
        wanted = []
        if left and left.added.count:
            wanted.append(("arrived", search.cells(left.added, [(0, each.left)])))
        if right and right.gone.count:
            wanted.append(("departed", search.cells(right.gone, [(0, each.right)])))
        others = search.cells(search.tables[each.other], [(0, each.right)])
        for what, cells in wanted:
            for share in shares(others.view, search.runner.tasks) or [others.view]:
                yield what, tasks.Look((cells,), none, (replace(others, view=share),))
