"""Rules of columns in their one form, and as what rows must not be: with the values of their
types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.input.row_input import Columns
from holdfast.model.column_values import Bounds, Domain, Pattern, ValueRule
from holdfast.model.commits import ColumnsRecord, Extreme
from holdfast.model.errors import InputError
from holdfast.model.literals import BOOLEAN, NUMBER, TEXT, written
from holdfast.model.names import quoted
from holdfast.tasks import literals
from holdfast.tasks.columns import number_of
from holdfast.tasks.single_rows import IsForeign, IsOutside, IsUnlike, RowRule

_WRITTEN = {
    NUMBER: "numbers",
    TEXT: "texts in quotes",
    BOOLEAN: "true and false",
}


def canonical(rule: ValueRule, columns: Columns) -> ValueRule:
    """The rule in its one form; an error if the column cannot have one like it."""
    place = columns.position(rule.column, rule.table)
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


def row_rule(rule: ValueRule, columns: Columns) -> RowRule:
    """Another value."""
    place = columns.position(rule.column, rule.table)
    if isinstance(rule, Pattern):
        return IsUnlike(place, rule.pattern)
    kind = columns.schema.field(place).type
    if isinstance(rule, Domain):
        values = [literals.value_of(value, kind) for value in rule.values]
        return IsForeign(place, tuple(map(tuple, literals.words(values, kind).T.tolist())))
    return IsOutside(place, *_as_integers(rule, kind))


def within(rule: Bounds, record: ColumnsRecord, lowest: Extreme, highest: Extreme) -> bool:
    """Whether the lowest and the highest value of a column lie within bounds."""
    columns = Columns.stored(record)
    kind = columns.schema.field(columns.position(rule.column, rule.table)).type
    low, high = _as_integers(rule, kind)
    return (low is None or low <= number_of(lowest.key)) and (
        high is None or number_of(highest.key) <= high
    )


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
