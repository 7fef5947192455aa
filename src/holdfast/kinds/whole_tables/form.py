"""Rules about tables as a whole, judged by what is stored of each table: its number of rows, the
highest value of a column, and when its rows last changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from holdfast.kernels.arrays import I64
from holdfast.model.commits import ColumnRecord, Extreme
from holdfast.model.errors import InputError
from holdfast.model.expectations import Tally
from holdfast.model.explanation import Violations
from holdfast.model.whole_tables import Finding, Newest, RowCount, TableRule
from holdfast.rules.form import Clashes, RuleForm
from holdfast.rules.question import Question
from holdfast.table.change import TableRows
from holdfast.table.state import Table
from holdfast.tasks import literals
from holdfast.tasks.coding import UNITS
from holdfast.tasks.columns import number_of
from holdfast.values.tuples import TupleCounts

if TYPE_CHECKING:
    from holdfast.tasks.groups import ExampleLimits

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400


@dataclass(frozen=True)
class WholeTable(RuleForm):
    """A table that is not as a rule says: no row of it breaks the rule by itself."""

    table: str
    rule: TableRule

    def tally(
        self,
        counts: TupleCounts,  # noqa: ARG002
        violations: int | None,  # noqa: ARG002
        tables: Mapping[str, Table],
    ) -> Tally:
        """How far the table is from it, whatever came before."""
        found = self._found(tables[self.table])
        return Tally(found.wrong, found.wrong, _most(self.rule, found), found=found)

    def expect_countable(self, rule: str, violations: int | None, table: Table) -> None:  # noqa: ARG002
        """It is a bound itself."""
        self._refuse_bound(rule)

    def with_removal(self, rule: str) -> RuleForm:
        """The same."""
        self._refuse_bound(rule)

    def measure(self, question: Question, limits: ExampleLimits) -> Violations:  # noqa: ARG002
        """What is found, without rows."""
        return Violations(None, found=self._found(question.tables[self.table]))

    def error(self, question: Question) -> float:
        """The share of the rows that there are, or should be, or 1."""
        return self.tally(question.counts, None, question.tables).error or 0.0

    def witnesses(self, question: Question, most: int | None) -> I64:  # noqa: ARG002
        """There is nothing to show."""
        raise InputError(
            f"{self.rule}: no row violates this rule by itself; holdfast explain says how far the "
            "table is from it"
        )

    def groups(self, question: Question, violations: int | None) -> list[tuple[int, I64]]:  # noqa: ARG002
        """None."""
        return []

    def taking_part(self, question: Question, rows: TableRows) -> Clashes:  # noqa: ARG002
        """None."""
        return Clashes(np.empty(0, np.int64), np.empty(0, np.int64))

    def _found(self, table: Table) -> Finding:
        columns = table.columns
        if isinstance(self.rule, RowCount):
            return found(self.rule, table.rows)
        place = columns.position(self.rule.column, table.name)
        if table.changed is None or not table.facts:
            raise InputError(
                f"{self.rule}: the profile does not say when the rows of {table.name!r} changed: "
                "an earlier Holdfast wrote them; apply a batch to the table first"
            )
        kind = columns.schema.field(place).type
        return found(self.rule, table.rows, table.facts[place], kind, table.changed)

    def _refuse_bound(self, rule: str) -> NoReturn:
        why = "this rule is a bound itself; give neither max_error nor max_rows"
        raise InputError(f"{rule}: {why}")


def found(
    rule: TableRule,
    rows: int,
    facts: ColumnRecord | None = None,
    kind: pa.DataType | None = None,
    changed: str | None = None,
) -> Finding:
    """What a rule finds in a table with so many rows; of the column that it is about, ``facts`` are
    known, and it is ``changed`` what the highest value is compared with."""
    if isinstance(rule, RowCount):
        return Finding(rows, wrong=rule.wrong(rows))
    assert facts is not None
    assert changed is not None
    if facts.highest is None:
        return Finding(rows, None, changed, 1)
    newest = number_of(facts.highest.key)
    wrong = not _is_within(rule, newest, datetime.fromisoformat(changed), kind)
    return Finding(rows, _written(facts.highest, newest, kind), changed, int(wrong))


def _is_within(rule: Newest, newest: int, moment: datetime, kind: pa.DataType) -> bool:
    """Whether a value is no older: dates are compared with the day of the moment, times with the
    moment, without rounding."""
    since = moment - _EPOCH
    if at.is_date32(kind):
        return newest >= since.days - rule.seconds // _DAY
    least = since // timedelta(microseconds=1) - rule.seconds * 10**6
    return newest * 10**6 >= least * int(10 ** UNITS[kind.unit])


def _written(highest: Extreme, newest: int, kind: pa.DataType) -> str:
    try:
        return literals.text_of(newest, kind)
    except (ValueError, OverflowError):  # a date that Python cannot tell
        return str(highest.value)


def _most(rule: TableRule, found: Finding) -> int:
    """What is wrong at most: all rows that there are, or that there should be."""
    return max(1, found.rows, rule.at_least or 0) if isinstance(rule, RowCount) else 1
