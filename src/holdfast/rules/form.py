"""The form of a rule: what rows are judged by, whatever kind of constraint says it.

A kind of constraint turns each of its rules into a form (:meth:`holdfast.kinds.base.Kind.form`),
and everything else asks the form: how far rows are from the rule, counted from scratch
(:meth:`RuleForm.measure`) or kept under batches (:meth:`RuleForm.change`, :meth:`RuleForm.tally`),
and which rows break it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from holdfast.input.row_input import Columns
from holdfast.model.commits import unknown_table
from holdfast.model.tuples import TupleSide

if TYPE_CHECKING:
    from holdfast.kernels.arrays import I64
    from holdfast.model.constraints import Constraint
    from holdfast.model.expectations import Tally
    from holdfast.model.explanation import Violations
    from holdfast.model.near import NearRule
    from holdfast.rules.question import Question
    from holdfast.runtime.run import Run
    from holdfast.table.change import RowChange, TableRows
    from holdfast.table.state import Table
    from holdfast.tasks.groups import ExampleLimits
    from holdfast.values.tuples import TupleCounts

_ENTRY_BYTES = 28
"""What a counted tuple takes in its file."""

Tables = Mapping[str, Columns]
"""The columns of all tables, by name."""


def _tuples(side: TupleSide, table: Table, near: NearRule) -> int:
    """How many tuples a side has, as far as that is estimated."""
    distinct = dict(zip(table.columns.names, table.distinct, strict=False))
    sizes = [distinct.get(name, table.rows) for name in side.columns]
    tuples = int(min(math.prod(sizes), table.rows))
    return tuples if side.rhs is None else tuples + near.removal


class Clashes(NamedTuple):
    """Rows that take part in violations of a rule."""

    ids: I64
    with_rows: I64  # of each, a row of the form's table that it clashes with; -1: it needs none


class RuleForm(ABC):
    """How rows are judged by one rule."""

    table: str
    """Whose rows break it."""

    # How far rows are from it, kept under batches

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """The columns whose tuples are counted for it."""
        return ()

    @property
    def looked_up(self) -> tuple[str, ...]:
        """The columns of its table by which rows of a batch are looked up."""
        return ()

    @property
    def references(self) -> tuple[tuple[TupleSide, TupleSide], ...]:
        """Sides of which it is counted how much one has of the other."""
        return ()

    @classmethod
    def change(
        cls,
        run: Run,  # noqa: ARG003
        forms: Sequence[Self],  # noqa: ARG003
        changes: Sequence[RowChange],  # noqa: ARG003
        before: Sequence[int | None],
    ) -> list[int | None]:
        """How many violations several rules of this form have after batches, as far as these do
        not follow from counted tuples. None: some, and nobody knows how many."""
        return [*before]

    @abstractmethod
    def tally(
        self, counts: TupleCounts, violations: int | None, tables: Mapping[str, Table]
    ) -> Tally:
        """How far the rows are from it, by the counted tuples or the number of violations."""

    def near(
        self,
        rule: Constraint,
        counts: TupleCounts,
        violations: int | None,
        tables: Mapping[str, Table],
    ) -> NearRule:
        """How far the rows are from a rule that nearly holds, by the same."""
        raise NotImplementedError(f"{rule} is not among the rules that nearly hold")

    @classmethod
    def recounted(
        cls,
        run: Run,
        forms: Sequence[Self],
        before: Sequence[NearRule],
        counts: TupleCounts,
        changes: Sequence[RowChange],
        tables: Mapping[str, Table],
    ) -> list[NearRule]:
        """How far the rows are from several rules of this form that nearly hold, after batches."""
        numbers = cls.change(run, forms, changes, [each.removal for each in before])
        return [
            form.near(old.rule, counts, number, tables)
            for form, old, number in zip(forms, before, numbers, strict=True)
        ]

    def near_bytes(self, near: NearRule, tables: Mapping[str, Table]) -> int:
        """About what is stored to keep that under batches."""
        return _ENTRY_BYTES * sum(_tuples(side, tables[side.table], near) for side in self.sides)

    def measured(self, rule: Constraint, question: Question) -> NearRule:
        """The same, counted in all rows."""
        raise NotImplementedError(f"{rule} is not among the rules that nearly hold")

    def expect_countable(self, rule: str, violations: int | None, table: Table) -> None:  # noqa: B027
        """Refuse a bound on its error where violations cannot be counted."""

    def with_removal(self, rule: str) -> RuleForm:  # noqa: ARG002
        """The same, of which it is kept how many rows would have to go; where that cannot be, it is
        an error, which names the ``rule``."""
        return self

    # How far rows are from it, from scratch

    @abstractmethod
    def measure(self, question: Question, limits: ExampleLimits) -> Violations:
        """What violates it now: numbers, and examples of the largest groups of rows."""

    def tested(self, question: Question, measured: Violations) -> int | None:  # noqa: ARG002
        """How many pairs of rows could have violated a rule that holds: of a key those that agree
        on all but one of its columns, of a dependency those that agree on the left. For an
        inclusion, rows."""
        return measured.tested

    @abstractmethod
    def error(self, question: Question) -> float:
        """The share of what is counted that violates it: pairs of rows, rows or values."""

    # Which rows break it

    @abstractmethod
    def witnesses(self, question: Question, most: int | None) -> I64:
        """The ids of rows that show violations, one line for each, at most so many: a row, or two
        that violate it together, row t first."""

    @abstractmethod
    def groups(self, question: Question, violations: int | None) -> list[tuple[int, I64]]:
        """Rows that violate an expected rule together, by their ids, and how many each group has.
        Where a batch brought rows that take part, their groups, and in these they come first."""

    @abstractmethod
    def taking_part(self, question: Question, rows: TableRows) -> Clashes:
        """Which rows of its table take part in violations of an expected rule."""

    def taken_away(self, question: Question, change: RowChange) -> Clashes | None:  # noqa: ARG002
        """Rows that a batch takes from a table though others need them; None: nobody needs any."""
        return None


def columns_of(table: str, tables: Tables) -> Columns:
    """The columns of a table; an unknown one is an error."""
    if table not in tables:
        raise unknown_table(table, tables)
    return tables[table]


def in_order(names: tuple[str, ...], table: str, columns: Columns) -> tuple[str, ...]:
    """Columns in table order, each once; an unknown one is an error."""
    return tuple(sorted(set(names), key=lambda name: columns.position(name, table)))
