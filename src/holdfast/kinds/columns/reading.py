"""What holds of single columns, by what is stored of them: read without rows and without kernels.

A rule that a person wrote is held against the same: :func:`holds` says whether it does in a
version, as far as that is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from holdfast.model.column_values import Bounds, Domain, Pattern, ValueRule
from holdfast.model.commits import ColumnRecord
from holdfast.model.constraints import NotNull
from holdfast.model.literals import BOOLEAN, NUMBER, TEXT, plain_number
from holdfast.model.samples import VALUES, covers, pattern_of

FoundRule = ValueRule | NotNull
"""A rule that is found of a column."""

Role = str
"""What a rule says of its column: a column has one rule of each."""

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(\+00:00|Z)?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NATURAL = (1, 100)
"""Numbers that are the highest there can be where values come close: shares, and percentages."""


def found(
    table: str, names: Sequence[str], types: Sequence[str], facts: Sequence[ColumnRecord]
) -> tuple[FoundRule, ...]:
    """The rules of all columns of a table, in their order."""
    columns = zip(names, types, facts, strict=False)
    return tuple(rule for each in columns for rule in by_role(table, *each).values())


def by_role(table: str, name: str, type_: str, facts: ColumnRecord) -> dict[Role, FoundRule]:
    """The rules of a column, by what they say of it."""
    rules: dict[Role, FoundRule] = {}
    if not facts.nulls and (facts.lowest or (facts.values and facts.values.entries)):
        rules["never null"] = NotNull(table, name)
    if (domain := _domain(table, name, type_, facts)) is not None:
        rules["domain"] = domain
        return rules
    ends = _ends(type_, facts)
    if ends is not None and ends[0] != ends[1]:
        kind = TEXT if type_.startswith(("date", "timestamp")) else NUMBER
        rules["range"] = Bounds(table, name, kind, at_least=ends[0], at_most=ends[1])
        natural = _natural(ends, type_ in _WHOLE) if kind == NUMBER else {}
        if natural:
            rules["natural bound"] = Bounds(table, name, kind, **natural)
    pattern = None if facts.shapes is None else pattern_of(facts.shapes)
    if pattern is not None:
        rules["pattern"] = Pattern(table, name, pattern)
    return rules


def _domain(table: str, name: str, type_: str, facts: ColumnRecord) -> Domain | None:
    """Few values, each in several rows on average; true and false are no news."""
    values = facts.values
    if values is None or values.more or not values.entries:
        return None
    labels = [label for _, _, label in values.entries if label is not None]
    rows = sum(number for _, number, _ in values.entries)
    if len(labels) < len(values.entries) or rows < 2 * len(labels):
        return None
    kind = (
        BOOLEAN if type_ == "boolean" else TEXT if type_ == "string" or "char" in type_ else NUMBER
    )
    if kind == BOOLEAN and len(labels) > 1:
        return None
    order: Any = Decimal if kind == NUMBER else None if kind == TEXT else str
    return Domain(table, name, kind, tuple(sorted(labels, key=order)))


def _ends(type_: str, facts: ColumnRecord) -> tuple[str, str] | None:
    """The lowest and the highest value as rules write them; None: there are none."""
    if facts.lowest is None or facts.highest is None:
        return None
    low, high = (_written(end.value, type_) for end in (facts.lowest, facts.highest))
    return None if low is None or high is None else (low, high)


def _written(value: Any, type_: str) -> str | None:
    """A lowest or highest value, as a commit holds it, in the form of a rule."""
    if type_ in _WHOLE:
        return str(value)
    if type_ == "float" and isinstance(value, float):
        return plain_number(str(np.float32(value)))
    if type_ == "double" and isinstance(value, float | int):
        return plain_number(repr(value))
    if type_.startswith("decimal"):
        return plain_number(str(value))
    if type_ == "date":
        return value if _DAY.fullmatch(str(value)) else None
    if type_.startswith("timestamp") and (match := _MOMENT.fullmatch(str(value))):
        fraction = (match[3] or "").rstrip("0")
        return f"{match[1]} {match[2]}{'.' + fraction if fraction else ''}{'Z' if match[4] else ''}"
    return None


def _natural(ends: tuple[str, str], whole: bool) -> dict[str, str]:
    """A sign, or a bound that values come close to."""
    low, high = map(Decimal, ends)
    if high <= 0:
        return {"below" if high < 0 else "at_most": "0"}
    if low < 0:
        return {}
    for most in _NATURAL[whole:]:
        if Decimal("0.8") * most <= high <= most:
            return {"at_least": "0", "at_most": str(most)}
    return {"above" if low > 0 else "at_least": "0"}


# Rules that were found before, or written down


def holds(rule: FoundRule, type_: str, facts: ColumnRecord, rows: int) -> bool | None:
    """Whether a rule of a column holds, as far as what is stored tells; None: it does not tell."""
    if facts.nulls == rows:
        return not isinstance(rule, NotNull) or not rows
    if isinstance(rule, NotNull):
        return facts.nulls == 0
    if isinstance(rule, Pattern):
        return None if facts.shapes is None else covers(rule.pattern, facts.shapes)
    if isinstance(rule, Domain):
        return _in_domain(rule, facts)
    ends = _ends(type_, facts)
    if ends is None:
        return None
    order: Any = Decimal if rule.type == NUMBER else str
    try:
        low, high = map(order, ends)
        given = {bound: order(value) for bound, value in rule.given.items()}
    except ArithmeticError:
        return None
    if rule.type == TEXT and len({*map(len, given.values()), len(low), len(high)}) > 1:
        return None  # times of day with and without fractions
    outside = {
        "at_least": lambda value: low < value,
        "above": lambda value: low <= value,
        "at_most": lambda value: high > value,
        "below": lambda value: high >= value,
    }
    return not any(outside[bound](value) for bound, value in given.items())


def _in_domain(rule: Domain, facts: ColumnRecord) -> bool | None:
    values = facts.values
    if values is None:
        return None
    if values.more:
        return False if len(rule.values) <= VALUES.most else None
    labels = {label for _, _, label in values.entries}
    return None if None in labels else labels <= {*rule.values}
