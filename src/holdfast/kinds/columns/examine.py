"""The values of one column that are to lie in a domain, or within bounds, or match a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.kinds.column_rules import ColumnExaminer
from holdfast.kinds.columns.reading import holds
from holdfast.model.column_values import Bounds, Pattern, ValueRule
from holdfast.model.errors import InputError
from holdfast.rules.form import Tables, columns_of
from holdfast.rules.version import Version

if TYPE_CHECKING:
    from holdfast.input.row_input import Columns
    from holdfast.model.commits import ColumnRecord
    from holdfast.model.options import Options
    from holdfast.rules.single_rows import SingleRows
    from holdfast.tasks.single_rows import RowRule


class ValueExaminer(ColumnExaminer[ValueRule]):
    """Domains, bounds and patterns."""

    kind = "column_rules"

    def checked(self, rule: ValueRule, tables: Tables) -> ValueRule:
        """The rule in its one form: values as their type has them, those of a domain in order, each
        once. A value that the column cannot have is an error, and so are bounds of columns
        without an order, and patterns of columns that are no text."""
        from holdfast.kinds.columns.canonical import canonical

        columns = columns_of(rule.table, tables)
        columns.position(rule.column, rule.table)
        if columns.concealed:
            raise InputError(
                f"{rule}: the profile keeps no values (--no-values), so they cannot be compared "
                "with any that are written down"
            )
        return canonical(rule, columns)

    def form(self, rule: ValueRule, tables: Tables, options: Options) -> SingleRows:
        """Patterns need the texts themselves, which only raw rows have."""
        if isinstance(rule, Pattern) and not options.keep_rows:
            raise InputError(
                f"{rule}: the profile keeps no texts (--no-rows), so they cannot be compared with "
                "a pattern"
            )
        return super().form(rule, tables, options)

    def row_rule(self, rule: ValueRule, columns: Columns) -> RowRule:
        """Another value."""
        from holdfast.kinds.columns.canonical import row_rule

        return row_rule(rule, columns)

    def source(self, version: Version, rule: ValueRule) -> Any:
        """What is counted, and what is known of the column."""
        return self._counted(version, rule), _facts(version, rule)

    def held(self, version: Version, rule: ValueRule) -> bool | None:
        """Whether no row had another value, where it was expected or what is known tells."""
        counted, facts = self._counted(version, rule), _facts(version, rule)
        if counted is not None:
            return not counted
        if facts is None:
            return None
        record = version.commit.table(rule.table)
        type_ = record.columns.types[record.columns.names.index(rule.column)]
        known = holds(rule, type_, facts, record.rows)
        if known is None and isinstance(rule, Bounds) and facts.lowest and facts.highest:
            from holdfast.kinds.columns.canonical import within

            return within(rule, record.columns, facts.lowest, facts.highest)
        return known

    def _counted(self, version: Version, rule: ValueRule) -> int | None:
        """The rows that violate it, in a version where it was expected."""
        text = str(rule)
        for standing in version.commit.expectations:
            if standing.rule == text:
                return standing.violations
        return None


def _facts(version: Version, rule: ValueRule) -> ColumnRecord | None:
    """What a version knows of the column."""
    record = version.commit.table(rule.table)
    if not record.facts:
        return None
    return record.facts[record.columns.names.index(rule.column)]
