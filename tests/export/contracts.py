"""Contracts to export: one with names that hurt, and one of the sample shop as it was designed."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import holdfast.sample
from holdfast.export.contract import Column, Contract, TableContract
from holdfast.model.constraints import Constraint, FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.grammar import Rule, parse
from holdfast.model.inclusion_dependencies import Attribute, ForeignKey
from tests import oracle

ODD = ("first name", 'a"b', "c`d", "order", "größe 🙂", "new\nline", "x; DROP TABLE t --", "{e}'f")
"""Names with spaces, quotes, words that SQL reserves, other scripts, line breaks and braces."""

ODD_TABLE, ODD_PARENT = 'my "odd"\ntable', "the `parent`"

SHOP = Path(holdfast.sample.__file__).parent / "shop"

Rows = dict[str, list[tuple[Any, ...]]]
"""The rows of some tables."""


def odd(
    nulls: str = "equal",
    required: bool = True,
    names: tuple[str, str] = (ODD_TABLE, ODD_PARENT),
) -> Contract:
    """Two tables whose names hurt, with a constraint of every kind about every column."""
    table, other = names
    parent = TableContract(
        other,
        (Column("select", "bigint"), Column("no,te", "string")),
        2,
        (*([NotNull(other, "select")] if required else []), Key(other, ("select",))),
    )
    predicates = {
        "two": [("t", ODD[3], "<", "s", ODD[3]), ("t", ODD[5], ">=", "s", ODD[6])],
        "one": [("t", ODD[3], ">", "t", ODD[6])],
    }
    child = TableContract(
        table,
        tuple(Column(name, "bigint") for name in ODD),
        3,
        (
            *([NotNull(table, ODD[0])] if required else []),
            *(Key(table, each) for each in ((ODD[0],), (ODD[1], ODD[2], ODD[5]), (ODD[2],))),
            FunctionalDependency(table, (ODD[1], ODD[7]), ODD[4]),
            *(DenialConstraint(table, tuple(map(_predicate, e))) for e in predicates.values()),
        ),
    )
    reference = ForeignKey((Attribute(table, ODD[3]),), (Attribute(other, "select"),), 0.9)
    return Contract("odd", 1, nulls, "ignored", (child, parent), (reference,))


ODD_ROWS: dict[str, list[tuple[Any, ...]]] = {
    ODD_TABLE: [
        (1, 1, 1, 10, 5, 0, 20, 7),
        (2, 1, 2, 10, 5, 0, 20, 7),
        (3, None, None, 20, None, 0, 30, 8),
    ],
    ODD_PARENT: [(10, "a"), (20, None)],
}
"""Rows in which all of that holds."""

ODD_BROKEN: dict[str, list[tuple[Any, ...]]] = {
    ODD_TABLE: [(1, 1, 1, 99, 5, 50, 20, 7), (1, 1, 1, 98, 6, 50, 10, 7)],
    ODD_PARENT: [(10, "a"), (10, "b")],
}
"""Rows in which none of it does."""


def _predicate(words: tuple[str, str, str, str, str]) -> Predicate:
    row, column, op, other_row, other = words
    return Predicate((row, column), op, (other_row, other))


_TYPES = {
    "customers": {"customer_id": "bigint", "joined_on": "date"},
    "products": {"product_id": "bigint", "price": "double"},
    "orders": {
        "order_id": "bigint", "customer_id": "bigint", "ordered_on": "date", "shipped_on": "date",
    },
    "order_items": {
        "order_id": "bigint", "line_no": "bigint", "product_id": "bigint", "quantity": "bigint",
        "unit_price": "double", "discount": "double", "total": "double",
    },
}  # fmt: skip

_RULES = """
customers: key(customer_id)
customers: key(email)
customers: city -> country
products: key(product_id)
products: key(name, size)
orders: key(order_id)
orders: key(customer_id, ordered_on)
orders: not (t.ordered_on > t.shipped_on)
orders: not (t.order_id <= s.order_id and t.ordered_on > s.ordered_on)
order_items: key(order_id, line_no)
order_items: key(order_id, product_id)
order_items: product_id -> unit_price
order_items: not (t.quantity < s.quantity and t.discount > s.discount)
"""

_REFERENCES = (
    ("orders", "customer_id", "customers", "customer_id"),
    ("order_items", "order_id", "orders", "order_id"),
    ("order_items", "product_id", "products", "product_id"),
)


def shop() -> Contract:
    """The sample shop, with what was planted in it."""
    rules = [parse(line) for line in _RULES.split("\n") if line]
    tables = []
    for name, types in _TYPES.items():
        mine: list[Any] = [rule for rule in rules if rule.table == name]  # type: ignore[union-attr]
        header, *rows = shop_rows(name)
        cells = zip(header, zip(*rows, strict=True), strict=True)
        columns = tuple(Column(str(each), types.get(str(each), "string")) for each in header)
        present = [NotNull(name, str(each)) for each, values in cells if None not in values]
        tables.append(TableContract(name, columns, len(rows), (*present, *mine)))
    references = tuple(
        ForeignKey((Attribute(a, b),), (Attribute(c, d),), 1.0) for a, b, c, d in _REFERENCES
    )
    return Contract("shop", 1, "equal", "ignored", tuple(tables), references)


@cache
def nearly() -> Contract:
    """The shop, whose rules as many rows may break as do in the dirty shop; without the rules about
    pairs, of which that is not said."""
    whole, dirty = shop(), dirty_shop(1)
    known = {
        table.name: [dict(zip(table.names, row, strict=True)) for row in dirty[table.name]]
        for table in whole.tables
    }
    inclusions = tuple(key.inclusion for key in whole.foreign_keys)
    bounds: dict[Constraint, int] = {}
    tables = []
    for table in whole.tables:
        found = {rule: oracle.removal(cast(Rule, rule), known) for rule in table.rules}
        mine = {rule: number for rule, number in found.items() if number is not None}
        bounds |= mine
        size = len(dirty[table.name])
        tables.append(replace(table, rows=size, rules=tuple(mine), bounds=mine))
    bounds |= {rule: oracle.removal(rule, known) or 0 for rule in inclusions}
    return replace(whole, tables=tuple(tables), foreign_keys=(), across=inclusions, bounds=bounds)


def shop_rows(table: str) -> list[list[str | None]]:
    """The header and the rows of a table of the sample shop."""
    with (SHOP / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return [[*header], *([cell or None for cell in row] for row in rows)]


def shop_cells() -> Rows:
    """The rows of the sample shop, with their types."""
    found: Rows = {}
    for table in shop().tables:
        cast = {"bigint": int, "double": float}
        kinds = [cast.get(column.type, str) for column in table.columns]
        found[table.name] = [
            tuple(
                None if cell is None else kind(cell) for kind, cell in zip(kinds, row, strict=True)
            )
            for row in shop_rows(table.name)[1:]
        ]
    return found


def broken_shop() -> Rows:
    """The same, with rows that break all that was planted."""
    found = shop_cells()
    first = {name: rows[0] for name, rows in found.items()}
    found["customers"] += [
        first["customers"],
        (*first["customers"][:4], "XX", *first["customers"][5:]),
    ]
    found["products"].append(first["products"])
    order, customer, ordered, _, *rest = first["orders"]
    found["orders"] += [
        (order, customer, ordered, "2020-01-01", *rest),
        (99_999, 99_999, "2020-01-01", "2020-01-02", *rest),
    ]
    order_id, line, product, *_ = first["order_items"]
    found["order_items"] += [
        (order_id, line, product, 1, 0.5, 0.9, 1.0),
        (88_888, 1, 88_888, 900, 1.0, 0.0, 1.0),
    ]
    return found


def dirty_shop(times: int) -> Rows:
    """The shop, in which every rule is broken, each time by more rows."""
    clean, broken = shop_cells(), broken_shop()
    return {
        name: rows + [*broken[name][len(rows) :], (None,) * len(rows[0])] * times
        for name, rows in clean.items()
    }
