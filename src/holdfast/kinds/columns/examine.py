"""The values of one column that are to lie in a domain, or within bounds, or match a pattern."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.input.row_input import Columns
from holdfast.kinds.column_rules import ColumnExaminer
from holdfast.model.column_values import Bounds, Domain, Pattern, ValueRule
from holdfast.model.errors import InputError
from holdfast.model.literals import BOOLEAN, NUMBER, TEXT, written
from holdfast.model.names import quoted
from holdfast.rules.form import Tables, columns_of
from holdfast.rules.version import Version
from holdfast.tasks import literals

if TYPE_CHECKING:
    from holdfast.model.commits import ColumnRecord
    from holdfast.model.options import Options
    from holdfast.rules.single_rows import SingleRows
    from holdfast.tasks.single_rows import RowRule

_WRITTEN = {
    NUMBER: "numbers",
    TEXT: "texts in quotes",
    BOOLEAN: "true and false",
}


class ValueExaminer(ColumnExaminer[ValueRule]):
    """Domains, bounds and patterns."""

    kind = "column_rules"

    def checked(self, rule: ValueRule, tables: Tables) -> ValueRule:
        """The rule in its one form: values as their type has them, those of a domain in order, each
        once. A value that the column cannot have is an error, and so are bounds of columns
        without an order, and patterns of columns that are no text."""
        columns = columns_of(rule.table, tables)
        place = columns.position(rule.column, rule.table)
        if columns.concealed:
            raise InputError(
                f"{rule}: the profile keeps no values (--no-values), so they cannot be compared "
                "with any that are written down"
            )
        kind = columns.schema.field(place).type
        if isinstance(rule, Pattern):
            return _compiled(rule, columns)
        own = literals.literal_type(kind)
        if own is None or (isinstance(rule, Bounds) and not literals.has_bounds(kind)):
            lacks = "order" if own else "values that can be written down"
            raise InputError(f"{rule}: {_of_type(rule, columns)}, which has no {lacks} here")
        if rule.type != own:
            raise InputError(
                f"{rule}: {_of_type(rule, columns)}, whose values are written as {_WRITTEN[own]}"
            )
        if isinstance(rule, Domain):
            values = {_value(rule, value, columns) for value in rule.values}
            return _domain(rule, values, kind)
        given = {name: _value(rule, value, columns) for name, value in rule.given.items()}
        if len(given) > 1 and given["at_least"] >= given["at_most"]:
            if given["at_least"] > given["at_most"]:
                raise InputError(f"{rule}: no value lies between them; the smaller one comes first")
            return _domain(rule, {given["at_least"]}, kind)
        texts = {name: literals.text_of(value, kind) for name, value in given.items()}
        return replace(rule, **texts)

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
        from holdfast.tasks.single_rows import IsForeign, IsOutside, IsUnlike

        place = columns.position(rule.column, rule.table)
        if isinstance(rule, Pattern):
            return IsUnlike(place, rule.pattern)
        kind = columns.schema.field(place).type
        if isinstance(rule, Domain):
            values = [literals.value_of(value, kind) for value in rule.values]
            return IsForeign(place, tuple(map(tuple, literals.words(values, kind).T.tolist())))
        return IsOutside(place, *_as_integers(rule, kind))

    def source(self, version: Version, rule: ValueRule) -> Any:
        """What is counted, and the lowest and highest value."""
        return self._counted(version, rule), _facts(version, rule)

    def held(self, version: Version, rule: ValueRule) -> bool | None:
        """Whether no row had another value, where it was expected or the extremes tell."""
        counted, facts = self._counted(version, rule), _facts(version, rule)
        if counted is not None:
            return not counted
        if facts is None or not isinstance(rule, Bounds):
            return None
        record = version.commit.table(rule.table)
        if facts.lowest is None or facts.highest is None:
            return True if facts.nulls == record.rows else None
        from holdfast.tasks.columns import number_of

        columns = Columns.stored(record.columns)
        kind = columns.schema.field(columns.position(rule.column, rule.table)).type
        lowest, highest = _as_integers(rule, kind)
        return (lowest is None or lowest <= number_of(facts.lowest.key)) and (
            highest is None or number_of(facts.highest.key) <= highest
        )

    def _counted(self, version: Version, rule: ValueRule) -> int | None:
        """The rows that violate it, in a version where it was expected."""
        text = str(rule)
        for standing in version.commit.expectations:
            if standing.rule == text:
                return standing.violations
        return None


def _of_type(rule: ValueRule, columns: Columns) -> str:
    type_ = columns.types[columns.position(rule.column, rule.table)]
    return f"column {quoted(rule.column)} is of type {type_}"


def _compiled(rule: Pattern, columns: Columns) -> Pattern:
    """A pattern of a column of texts; an error if it is none."""
    kind = columns.schema.field(columns.position(rule.column, rule.table)).type
    if not literals.is_text(kind):
        raise InputError(f"{rule}: {_of_type(rule, columns)}, and patterns are of texts")
    try:
        # By itself, too: it must not end the group that it is put into.
        for pattern in (rule.pattern, literals.whole(rule.pattern)):
            pc.match_substring_regex(pa.array([""]), pattern)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        why = str(error).removeprefix("Invalid regular expression: ")
        raise InputError(f"{rule}: this is no regular expression as RE2 has it ({why})") from error
    return rule


def _value(rule: Domain | Bounds, text: str, columns: Columns) -> Any:
    """A value as the column has it; an error if it cannot."""
    kind = columns.schema.field(columns.position(rule.column, rule.table)).type
    try:
        return literals.value_of(text, kind)
    except literals.UnfitLiteral as error:
        value = written(rule.type, text)
        raise InputError(
            f"{rule}: {_of_type(rule, columns)}, which has no value {value}: {error}"
        ) from error


def _domain(rule: Domain | Bounds, values: set[Any], kind: pa.DataType) -> Domain:
    texts = tuple(literals.text_of(value, kind) for value in sorted(values))
    return Domain(rule.table, rule.column, rule.type, texts)


def _as_integers(rule: Bounds, kind: pa.DataType) -> tuple[int | None, int | None]:
    """The lowest and highest value that pass, as the words of cells are integers."""
    given = {}
    for name, text in rule.given.items():
        low, *high = literals.words([literals.value_of(text, kind)], kind)[:, 0].tolist()
        given[name] = (high[0] << 64) + low % (1 << 64) if high else low
    lowest, highest = given.get("at_least"), given.get("at_most")
    if "above" in given:
        lowest = given["above"] + 1
    if "below" in given:
        highest = given["below"] - 1
    return lowest, highest


def _facts(version: Version, rule: ValueRule) -> ColumnRecord | None:
    """What a version knows of the column."""
    record = version.commit.table(rule.table)
    if not record.facts:
        return None
    return record.facts[record.columns.names.index(rule.column)]
