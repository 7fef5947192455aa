"""Rules about tables as a whole, one by one."""

from __future__ import annotations

from typing import Any

from holdfast.kinds.examine import Examiner
from holdfast.model.commits import ColumnRecord, TableRecord
from holdfast.model.errors import InputError
from holdfast.model.names import quoted
from holdfast.model.options import Options
from holdfast.model.whole_tables import UNITS, Newest, TableRule
from holdfast.rules.form import RuleForm, Tables, columns_of
from holdfast.rules.version import Version


class WholeTableExaminer(Examiner[TableRule]):
    """Numbers of rows, and newest values."""

    kind = "whole_tables"

    def checked(self, rule: TableRule, tables: Tables) -> TableRule:
        """A column that the rule is about has dates or timestamps, and the profile keeps them."""
        import pyarrow.types as at

        columns = columns_of(rule.table, tables)
        if not isinstance(rule, Newest):
            return rule
        place = columns.position(rule.column, rule.table)
        if columns.concealed:
            raise InputError(
                f"{rule}: the profile keeps no values (--no-values), so it does not know which is "
                "the newest"
            )
        kind = columns.schema.field(place).type
        of_type = f"column {quoted(rule.column)} is of type {columns.types[place]}"
        if not (at.is_date32(kind) or at.is_timestamp(kind)):
            raise InputError(f"{rule}: {of_type}, and newest is said of dates and timestamps")
        if at.is_date32(kind) and rule.seconds % UNITS["days"]:
            raise InputError(f"{rule}: {of_type}, and dates are days or weeks old")
        return rule

    def form(self, rule: TableRule, tables: Tables, options: Options) -> RuleForm:  # noqa: ARG002
        """The table as a whole."""
        from holdfast.kinds.whole_tables.form import WholeTable

        return WholeTable(rule.table, rule)

    def source(self, version: Version, rule: TableRule) -> Any:
        """The rows of the table, when they changed, and the highest value of the column."""
        record = _table(version, rule)
        if record is None or not isinstance(rule, Newest):
            return record and record.rows
        return record.changed, _facts(record, rule)

    def held(self, version: Version, rule: TableRule) -> bool | None:
        """By the same, where the version says it."""
        record = _table(version, rule)
        if record is None:
            return None
        if not isinstance(rule, Newest):
            return not rule.wrong(record.rows)
        facts = _facts(record, rule)
        if facts is None or record.changed is None:
            return None
        from holdfast.input.row_input import Columns
        from holdfast.kinds.whole_tables.form import found

        columns = Columns.stored(record.columns)
        kind = columns.schema.field(columns.position(rule.column, rule.table)).type
        return not found(rule, record.rows, facts, kind, record.changed).wrong


def _table(version: Version, rule: TableRule) -> TableRecord | None:
    return version.commit.tables.get(rule.table)


def _facts(record: TableRecord, rule: Newest) -> ColumnRecord | None:
    """What is known of the column; None: nothing, or it was not there."""
    if rule.column not in record.columns.names or not record.facts:
        return None
    return record.facts[record.columns.names.index(rule.column)]
