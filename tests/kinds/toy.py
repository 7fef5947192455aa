"""A kind of constraint that Holdfast does not have: columns with the same value in every row.

It is read from the estimates of distinct values that a table's part of a commit has: exact where
there are as few as here, and made anew by a batch that more than doubles the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from holdfast.cli import program
from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.parts import TablePart
from holdfast.kinds.stored import StoredTable
from holdfast.kinds.table_state import Step, TableState
from holdfast.model.changes import Broken, KindChanges
from holdfast.model.constraints import OfTable
from holdfast.report.snapshot import TableSnapshot
from holdfast.runtime.run import Run


@dataclass(frozen=True)
class Constant(OfTable):
    """A column with the same value in every row."""

    FORM = ("column",)

    column: str

    @property
    def body(self) -> str:
        return f"{self.column} is constant"

    @property
    def involved(self) -> tuple[str, ...]:
        return (self.column,)


def constants(table: str, columns: Sequence[str], distinct: Sequence[float]) -> list[Constant]:
    found = zip(columns, distinct, strict=True)
    return [Constant(table, column) for column, number in found if round(number) == 1]


class ConstantList(TablePart):
    name = "constant-columns"
    field = "constant_columns"
    nouns = ("constant column", "constant columns")

    def listed(self, table: TableSnapshot) -> Sequence[Constant]:
        found: Sequence[Constant] = table.found["constants"]
        return found


class ConstantColumns(Kind):
    name = "constants"
    field = "constant_columns"
    nouns = ("constant column", "constant columns")
    classes = (Constant,)
    default = False
    gates = False
    pairs = True  # distinct values are estimated where pairs of rows are compared
    parts = (ConstantList(),)

    def of_table(self, stored: StoredTable) -> list[Constant] | None:
        if self.name not in stored.options["kinds"]:
            return None
        return constants(stored.name, stored.columns, stored.record.distinct)

    def count(self, known: TableState) -> int:
        return len(constants("", known.table.columns.names, known.table.distinct))

    def changes(self, run: Run, step: Step) -> KindChanges:
        old, new = (
            constants(known.table.name, known.table.columns.names, known.table.distinct)
            for known in (step.before, step.after)
        )
        gained = tuple(each for each in new if each not in old)
        return KindChanges(gained, tuple(Broken(each) for each in old if each not in new))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    """The kind, in the registry while a test runs."""
    kind = ConstantColumns()
    monkeypatch.setitem(registry.REGISTRY, kind.name, kind)
    program.parser.cache_clear()  # it knows the kinds that there were
    yield kind
    program.parser.cache_clear()
