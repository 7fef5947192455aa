"""Ordered pairs of rows that satisfy all predicates: what denial constraints are judged by.

A batch changes their number by the pairs of its new rows with all rows, less those of its deleted
ones. Where that would be too many pairs to compare, a search tells whether there is any violating
pair; their number is then known only where it is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.evidence import counting, devices, strategy, tiles
from holdfast.evidence.comparison import completion
from holdfast.evidence.scope import Scope
from holdfast.kernels import violations as kernels
from holdfast.kernels.arrays import I64, Flags
from holdfast.model.comparisons import Space
from holdfast.model.errors import InputError
from holdfast.model.expectations import Tally
from holdfast.model.explanation import Example, Removal, Violations
from holdfast.model.limits import Time
from holdfast.rules.form import Clashes, RuleForm
from holdfast.rules.question import Question
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import RowChange, TableRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import row_pairs as tasks
from holdfast.tasks.groups import ExampleLimits
from holdfast.values.tuples import SHOWN, TupleCounts

_MOST = 60.0
"""Seconds that comparing pairs may take before they are searched for instead."""


@dataclass(frozen=True)
class RowPairs(RuleForm):
    """Ordered pairs of rows that satisfy all atoms."""

    table: str
    space: Space
    atoms: tuple[int, ...]
    tries: tuple[tuple[int, ...], ...] = ()
    """Sets of atoms, exactly one of which a pair satisfies that could have broken it."""

    @classmethod
    def change(
        cls,
        run: Run,
        forms: Sequence[RowPairs],
        changes: Sequence[RowChange],
        before: Sequence[int | None],
    ) -> list[int | None]:
        """By the pairs that have a row which came or went; table by table."""
        numbers = [*before]
        for change in changes:
            places = [k for k, form in enumerate(forms) if form.table == change.after.name]
            counted = [k for k in places if numbers[k] is not None]
            if counted and _is_quick(run, change, [forms[k] for k in counted]):
                asked = [(forms[k].space, forms[k].atoms) for k in counted]
                for k, more in zip(counted, counting.change_of(run, change, asked), strict=True):
                    numbers[k] = (numbers[k] or 0) + more
            else:
                counted = []
            question = Question(run, {change.after.name: change.after})
            for k in (k for k in places if k not in counted):
                numbers[k] = None if len(forms[k].witnesses(question, 1)) else 0
        return numbers

    def tally(
        self,
        counts: TupleCounts,  # noqa: ARG002
        violations: int | None,
        tables: Mapping[str, Table],
    ) -> Tally:
        """Of all ordered pairs."""
        removal = None if violations else violations
        return Tally(violations, violations, _all_pairs(tables[self.table]), removal)

    def expect_countable(self, rule: str, violations: int | None, table: Table) -> None:
        """There may be too many pairs to compare."""
        if violations is None:
            raise InputError(
                f"{rule}: table {table.name!r} has {table.rows:,} rows, too many to count the "
                "pairs that violate it, which --max-error needs; expect it without"
            )

    def with_removal(self, rule: str) -> RuleForm:
        """Batches change the number of pairs alone."""
        raise InputError(
            f"{rule}: pairs of rows violate it, and how many rows would have to go is not kept; "
            "give --max-error in place of --max-rows"
        )

    def measure(self, question: Question, limits: ExampleLimits) -> Violations:
        """Which rows would have to go is a vertex cover, so that bounds are given."""
        table = question.tables[self.table]
        every = _all_pairs(table)
        if table.rows < 2:
            return Violations(0, None, 0, every, Removal(0, 0))
        scope = Scope.of(question.run, table, self.space)
        planes = question.coded(scope)
        examined = completion.examined(scope, planes, self.atoms, limits.groups)
        rows = question.rows(table, [*examined.shown])
        removal = None
        if examined.matched is not None and examined.covering is not None:
            removal = Removal(examined.matched, examined.covering)
        groups = examined.groups if self._has_equality else None
        examples = tuple(Example(2, pair) for pair in rows)
        return Violations(examined.rows, groups, examined.pairs, every, removal, examples)

    def tested(self, question: Question, measured: Violations) -> int | None:
        """The pairs that are equal where it says so, and differ where it compares by order: in one
        order, unless it compares columns with each other."""
        table = question.tables[self.table]
        if table.rows < 2:
            return measured.tested
        pairs: int | None = _all_pairs(table)
        if self.tries != ((),):
            scope = Scope.of(question.run, table, self.space)
            pairs = completion.satisfying(scope, question.coded(scope), self.tries)
        alone = all(each.is_own for each in self.space.comparisons)
        return pairs // 2 if pairs is not None and alone else pairs

    def error(self, question: Question) -> float:
        """The share of the ordered pairs, all of which are compared."""
        run, table, space = question.run, question.tables[self.table], self.space
        comparisons, gpu_rate = len(space.comparisons), devices.gpu_rate(run)
        strategy.expect_countable(table.name, table.rows, comparisons, run.runner.tasks, gpu_rate)
        counts = counting.count_all(run, table, [space], Time())[space.name].sets
        return counts.satisfying(self.atoms) / counts.pairs if counts.pairs else 0.0

    def witnesses(self, question: Question, most: int | None) -> I64:
        """Pairs of rows, row t first."""
        table = question.tables[self.table]
        most = _all_pairs(table) if most is None else most
        if table.rows < 2:
            return np.empty((0, 2), np.int64)
        return completion.violating(Scope.of(question.run, table, self.space), self.atoms, most)

    def groups(self, question: Question, violations: int | None) -> list[tuple[int, I64]]:
        """Pairs, row t first: with new rows, if there are any. A search may find others alone; then
        the new rows are compared with all, unless that is too much to count, too."""
        table = question.tables[self.table]
        pairs = self.witnesses(question, SHOWN)
        with_new = pairs[question.are_new(table, pairs).any(axis=1)]
        new = question.new_rows(table)
        if not len(with_new) and new.count and violations is not None:
            (ids, clashes), is_t = self._beside(question, new)
            with_new = np.where(
                is_t[:, None], np.stack([ids, clashes], 1), np.stack([clashes, ids], 1)
            )
        return [(2, pair) for pair in (with_new[:SHOWN] if len(with_new) else pairs)]

    def taking_part(self, question: Question, rows: TableRows) -> Clashes:
        """Those that violate it with another one. All of them are compared with all rows."""
        return self._beside(question, rows)[0]

    def _beside(self, question: Question, rows: TableRows) -> tuple[Clashes, Flags]:
        """Rows that violate it with another one, of those the one with the least id; and whether
        the row itself is row t."""
        run, table = question.run, question.tables[self.table]
        asked = kernels.terms(self.space, self.atoms)
        assert asked is not None
        view = table.view(run.store.path, run.options)
        calls: list[Call] = [
            (tasks.beside, tasks.Beside(share, rows.segments, table.columns.schema, tuple(asked)))
            for share in shares(view, run.runner.tasks)
        ]
        results = run_all(run.runner, calls)
        ids, clashes, is_t = (
            np.concatenate([result.arrays[name] for result in results])
            for name in ("ids", "clashes", "is_t")
        )
        order = np.lexsort((clashes, ids))
        ids, clashes, is_t = ids[order], clashes[order], is_t[order]
        _, first = np.unique(ids, return_index=True)
        return Clashes(ids[first], clashes[first]), is_t[first]

    @property
    def _has_equality(self) -> bool:
        """Whether rows that violate it have to be equal in something, so that they are groups."""
        operators: dict[int, set[str]] = {}
        for atom in self.atoms:
            number = self.space.comparison_of[atom]
            operator = self.space.comparisons[number].operators[atom - self.space.first[number]]
            operators.setdefault(number, set()).add(operator)
        return any("=" in each or {"<=", ">="} <= each for each in operators.values())


def _all_pairs(table: Table) -> int:
    return table.rows * (table.rows - 1)


def _is_quick(run: Run, change: RowChange, forms: Sequence[RowPairs]) -> bool:
    pairs = tiles.pairs_of(*counting.lines_of(change))
    comparisons = sum(len(form.space.comparisons) for form in forms)
    seconds = strategy.seconds_on_cpu(pairs, comparisons, run.runner.tasks)
    if seconds > _MOST:
        rate = devices.gpu_rate(run)(comparisons)
        seconds = min(seconds, pairs / rate) if rate else seconds
    return seconds <= _MOST
