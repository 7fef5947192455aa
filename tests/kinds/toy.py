"""A kind of constraint that Holdfast does not have: columns with the same value in every row.

It is all that a kind can be: found, shown, told of by a batch, compared, ranked, written down,
expected, explained and exported. It is read from the estimates of distinct values that a table's
part of a commit has: exact where there are as few as here, and made anew by a batch that more than
doubles the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from holdfast.cli import command, program
from holdfast.export.queries import Queries
from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.examine import Examiner
from holdfast.kinds.exporter import Exporter
from holdfast.kinds.parts import TablePart
from holdfast.kinds.stored import StoredTable
from holdfast.kinds.table_state import Step, TableState
from holdfast.model import grammar, names
from holdfast.model.changes import Broken, KindChanges
from holdfast.model.constraints import OfTable
from holdfast.model.names import quoted
from holdfast.model.options import Options
from holdfast.model.ranking import Ranked
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.form import RuleForm, Tables, columns_of
from holdfast.runtime.run import Run


@dataclass(frozen=True)
class Constant(OfTable):
    """A column with the same value in every row."""

    FORM = ("column",)

    column: str

    @property
    def body(self) -> str:
        return f"{quoted(self.column)} constant"

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


class ConstantExaminer(Examiner[Constant]):
    """Rows agree in no column at all, and have to agree in this one."""

    kind = "constant_columns"

    def checked(self, rule: Constant, tables: Tables) -> Constant:
        columns_of(rule.table, tables).position(rule.column, rule.table)
        return rule

    def form(self, rule: Constant, tables: Tables, options: Options) -> RuleForm:
        return AgreeingTuples.of(rule.table, (), rule.column, tables[rule.table], options)

    def cells(self, rule: Constant) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (), (rule.column,)


class ConstantExporter(Exporter[Constant]):
    """A query; everything else is as it is by default."""

    def query(self, rule: Constant, sql: Queries) -> str:
        column = sql.dialect.name_of(rule.column)
        number = f"count(DISTINCT {column})"
        return f"SELECT {number}\nFROM {sql.rows(rule.table)}\nHAVING {number} > 1"


class ConstantColumns(Kind):
    name = "constants"
    field = "constant_columns"
    nouns = ("constant column", "constant columns")
    classes = (Constant,)
    default = False
    gates = False
    pairs = True  # distinct values are estimated where pairs of rows are compared
    compares_rows = True
    sharing = "are in the table"
    parts = (ConstantList(),)

    def of_table(self, stored: StoredTable) -> list[Constant] | None:
        if self.name not in stored.options["kinds"]:
            return None
        return constants(stored.name, stored.columns, stored.record.distinct)

    def rank(self, snapshot: Snapshot, table: str) -> list[Ranked]:
        found: Sequence[Constant] = snapshot.tables[table].found[self.name]
        return [Ranked(constant, 0.5, ("one value",)) for constant in found]

    def examiner(self) -> ConstantExaminer:
        return ConstantExaminer()

    def exporter(self) -> ConstantExporter:
        return ConstantExporter(self)

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
    """The kind, in the registry and in the grammar while a test runs."""
    kind = ConstantColumns()
    monkeypatch.setitem(registry.REGISTRY, kind.name, kind)
    monkeypatch.setattr(names, "KEYWORDS", names.KEYWORDS | {"constant"})
    monkeypatch.setitem(grammar.COLUMN_RULES, "constant", Constant)
    # They know the kinds that there were.
    caches = (program.parser, command._options_of)
    for each in caches:
        each.cache_clear()
    yield kind
    for each in caches:
        each.cache_clear()
