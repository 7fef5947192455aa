"""What is exported of a profile: the constraints that matter, or every one that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.export import contract_of
from holdfast.export.contract import TableContract
from holdfast.kinds.inclusion_dependencies.foreign_keys import Facts
from holdfast.kinds.inclusion_dependencies.reading import Inclusions
from holdfast.kinds.keys.reading import FoundKeys
from holdfast.model.columns import ColumnFacts
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.errors import UnknownTableError
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.values.shared import Shared
from tests.shared import overlaps

COLUMNS = ("id", "customer_id", "zip", "city", "planet", "paid")
TYPES = ("bigint", "bigint", "string", "string", "string", "bigint")
OPTIONS = {"kinds": ["keys", "fds", "inds", "dcs"], "nulls": "equal", "inclusion_nulls": "ignored"}


def fd(text: str, error: float = 0.0) -> FunctionalDependency:
    """A dependency of the orders, as it is written."""
    found = parse(f"orders: {text}")
    assert isinstance(found, FunctionalDependency)
    return replace(found, error=error)


def dc(text: str, error: float = 0.0) -> DenialConstraint:
    """A denial constraint of the orders."""
    found = parse(f"orders: not ({text})")
    assert isinstance(found, DenialConstraint)
    return replace(found, error=error)


class Rules(list[DenialConstraint]):
    """Denial constraints as a version's files have them."""

    space = counts = sampled = None  # of pairs, none of which are counted or drawn

    def besides(self, forms: Sequence[str]) -> list[DenialConstraint]:
        """Those that have none of these forms."""
        return [each for each in self if each.form not in forms]


def of(table: TableContract, kind: type) -> list[Any]:
    """The rules of a class."""
    return [rule for rule in table.rules if isinstance(rule, kind)]


ORDER = dc("t.id <= s.id and t.paid > s.paid")
SETS = (("zip", "paid"), ("id",), ("city", "paid"), ("planet", "paid"))
KEYS = [Key("orders", columns) for columns in SETS]
ORDERS = TableSnapshot(
    "orders", 9, COLUMNS, TYPES, 0, (),
    {
        "keys": FoundKeys(tuple(KEYS)),
        "fds": [fd("{} -> planet"), fd("id -> city"), fd("zip -> city"), fd("paid -> zip", 0.01)],
        "dcs": Rules([ORDER, dc("t.id = s.id"), dc("t.zip = s.zip and t.city != s.city"),
            dc("t.id > t.paid", 0.1)]),
    },
)  # fmt: skip
CUSTOMERS = TableSnapshot("customers", 4, ("customer_id", "age"), ("bigint", "bigint"), 0, (),
    {"keys": FoundKeys((Key("customers", ("customer_id",)),))})  # fmt: skip


def snapshot() -> Snapshot:
    """Two tables: the customers of orders are among the customers, and so are by chance their
    ages."""
    attributes = (
        Attribute("orders", "customer_id"),
        Attribute("customers", "customer_id"),
        Attribute("customers", "age"),
    )
    values = overlaps([[3, 3, 1], [3, 4, 2], [1, 2, 2]])
    facts = {
        each.name: Facts(each.keys, dict(zip(each.columns, each.types, strict=True)), each.rows)
        for each in (ORDERS, CUSTOMERS)
    }
    found = Inclusions(Shared(attributes, ("number",) * 3, values), facts)
    tables = {"customers": CUSTOMERS, "orders": ORDERS}
    return Snapshot(3, "", dict(OPTIONS), tables, {"inds": found})


def test_the_constraints_that_matter() -> None:
    chosen = contract_of(snapshot(), "shop")
    orders = chosen.table("orders")
    assert orders is not None
    # The best first, and no more than three.
    assert orders.keys[0].columns == ("id",)
    assert len(orders.keys) == 3
    # Not what a key implies, nor what nearly holds.
    assert {each.body for each in of(orders, FunctionalDependency)} == {
        "zip -> city",
        "{} -> planet",
    }
    assert of(orders, DenialConstraint) == [ORDER]
    assert [str(each) for each in chosen.foreign_keys] == [
        "orders(customer_id) in customers(customer_id)"
    ]


def test_every_constraint_that_holds() -> None:
    chosen = contract_of(snapshot(), "shop", everything=True)
    orders = chosen.table("orders")
    assert orders is not None
    assert len(orders.keys) == len(KEYS)
    assert len(of(orders, FunctionalDependency)) == 3
    assert len(of(orders, DenialConstraint)) == 3
    texts = [str(rule) for rule in chosen.rules]
    assert len(texts) == len(set(texts))


def test_a_key_that_is_referred_to_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its place, because a foreign key needs it."""
    monkeypatch.setattr("holdfast.kinds.keys.export.KEYS", 0)
    customers, orders = contract_of(snapshot(), "shop").tables
    assert [key.columns for key in customers.keys] == [("customer_id",)]
    assert orders.keys == ()


def test_repeated_rows_have_no_key() -> None:
    found = snapshot()
    twice = replace(found, tables={"orders": replace(ORDERS, duplicates=1)})
    (orders,) = contract_of(twice, "shop").tables
    assert orders.keys == ()


def test_columns_that_are_never_null() -> None:
    """A primary key needs them; a profile that has no rows, or does not know, has none."""
    facts = tuple(
        ColumnFacts("orders", name, "bigint", nulls=int(name == "zip")) for name in COLUMNS
    )
    known = replace(ORDERS, facts=facts)
    for table, primary in ((known, ("id",)), (replace(known, rows=0), None), (ORDERS, None)):
        (orders,) = contract_of(replace(snapshot(), tables={"orders": table}), "shop").tables
        assert (orders.primary and orders.primary.columns) == primary
    (orders,) = contract_of(replace(snapshot(), tables={"orders": known}), "shop").tables
    assert orders.required == {*COLUMNS} - {"zip"}


def test_what_is_expected_comes_first() -> None:
    """Also what would not be found, or not be among the best; once."""
    texts = (
        "orders: key(city, paid)",
        "orders: paid, zip -> city",
        "orders: not (t.id < s.id and t.zip = s.zip)",
        "orders: zip not null",
        "orders(customer_id) in customers(customer_id)",
        "customers(age) in customers(customer_id)",
        "orders(paid) in customers(age)",
    )
    for everything in (False, True):
        chosen = contract_of(
            snapshot(), "shop", everything=everything, expected=[parse(text) for text in texts]
        )
        rules = [str(rule) for rule in chosen.rules]
        assert {*texts} <= {*rules}
        assert len(rules) == len({*rules})
        orders = chosen.table("orders")
        assert orders is not None
        assert str(orders.keys[0]) == texts[0]
        assert str(of(orders, FunctionalDependency)[0]) == texts[1]
        assert str(of(orders, DenialConstraint)[0]) == texts[2]
        assert [str(each) for each in chosen.foreign_keys][:2] == [*texts[4:6]]
        assert str(chosen.across[0]) == texts[6], "no key on its right side"


def test_some_tables() -> None:
    chosen = contract_of(snapshot(), "shop", tables=["orders"])
    assert [table.name for table in chosen.tables] == ["orders"]
    assert chosen.foreign_keys == (), "what it refers to is not there"
    with pytest.raises(UnknownTableError, match="did you mean 'orders'"):
        contract_of(snapshot(), "shop", tables=["order"])
