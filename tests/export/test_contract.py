"""What is exported of a profile: the rules that were chosen, or every constraint that holds."""

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
from holdfast.model.comparisons import ORDER as ORDER_ATOMS
from holdfast.model.comparisons import Comparison, Space
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

    space = Space("denial", 6, tuple(Comparison(c, c, ORDER_ATOMS) for c in range(6)))
    counts = sampled = None  # no pairs are counted or drawn

    def besides(self, forms: Sequence[str]) -> list[DenialConstraint]:
        """Those that have none of these forms."""
        return [each for each in self if each.form not in forms]

    def of_forms(self, forms: Sequence[str]) -> list[DenialConstraint]:
        """Those that have one of these forms."""
        return [each for each in self if each.form in forms]


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


def test_where_nothing_was_chosen_it_is_the_grain_and_foreign_keys() -> None:
    known = replace(ORDERS, facts=facts())
    found = replace(snapshot(), tables={"customers": CUSTOMERS, "orders": known})
    exported = contract_of(found, "shop")
    assert exported.unchosen
    assert [str(rule) for rule in exported.rules] == [
        "customers: key(customer_id)",
        "orders: id not null",
        "orders: key(id)",
        "orders(customer_id) in customers(customer_id)",
    ]
    # A rule about another table is none about these.
    other = [parse("orders: zip -> city")]
    assert contract_of(found, "shop", tables=["customers"], chosen=other).unchosen


def test_only_what_was_chosen() -> None:
    texts = ("orders: zip -> city", "orders(customer_id) in customers(customer_id)")
    exported = contract_of(snapshot(), "shop", chosen=[parse(text) for text in texts])
    assert not exported.unchosen
    # A foreign key needs the key that it refers to.
    assert [str(rule) for rule in exported.rules] == ["customers: key(customer_id)", *texts]


def test_what_was_chosen_may_have_a_bound() -> None:
    """Then a database cannot be told: not as a key, and not as a foreign key or one's parent."""
    texts = ("orders: key(paid)", "orders(customer_id) in customers(customer_id)",
        "orders(paid) in orders(zip)", "orders: key(zip)")  # fmt: skip
    rules: list[Any] = [parse(text) for text in texts]
    bounds = dict(zip(rules[:2], (3, 4), strict=True)) | {rules[3]: 5}
    exported = contract_of(snapshot(), "shop", chosen=rules, bounds=bounds)
    orders = exported.table("orders")
    assert orders is not None
    assert (orders.keys, orders.bounds) == ((), {rules[0]: 3, rules[3]: 5})
    assert (exported.foreign_keys, exported.across) == ((), (rules[1], rules[2]))
    assert exported.bounds == bounds


def test_every_constraint_that_holds() -> None:
    chosen = contract_of(snapshot(), "shop", everything=True)
    orders = chosen.table("orders")
    assert orders is not None
    assert len(orders.keys) == len(KEYS)
    assert len(of(orders, FunctionalDependency)) == 3
    assert len(of(orders, DenialConstraint)) == 3
    texts = [str(rule) for rule in chosen.rules]
    assert len(texts) == len(set(texts))


def test_repeated_rows_have_no_key() -> None:
    found = snapshot()
    twice = replace(found, tables={"orders": replace(ORDERS, duplicates=1)})
    (orders,) = contract_of(twice, "shop").tables
    assert orders.keys == ()


def test_columns_that_are_never_null() -> None:
    """A primary key needs them; a profile that has no rows, or does not know, has none."""
    known = replace(ORDERS, facts=facts())
    for table, primary in ((known, ("id",)), (replace(known, rows=0), None), (ORDERS, None)):
        (orders,) = contract_of(replace(snapshot(), tables={"orders": table}), "shop").tables
        assert (orders.primary and orders.primary.columns) == primary
    found = replace(snapshot(), tables={"orders": known})
    (orders,) = contract_of(found, "shop", everything=True).tables
    assert orders.required == {*COLUMNS} - {"zip"}


def facts() -> tuple[ColumnFacts, ...]:
    """Only zip codes are sometimes null."""
    return tuple(
        ColumnFacts("orders", name, "bigint", nulls=int(name == "zip")) for name in COLUMNS
    )


def test_what_was_chosen_comes_first() -> None:
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
        exported = contract_of(
            snapshot(), "shop", everything=everything, chosen=[parse(text) for text in texts]
        )
        rules = [str(rule) for rule in exported.rules]
        assert {*texts} <= {*rules}
        assert len(rules) == len({*rules})
        orders = exported.table("orders")
        assert orders is not None
        assert str(orders.keys[0]) == texts[0]
        assert str(of(orders, FunctionalDependency)[0]) == texts[1]
        assert str(of(orders, DenialConstraint)[0]) == texts[2]
        assert [str(each) for each in exported.foreign_keys][:2] == [*texts[4:6]]
        assert str(exported.across[0]) == texts[6], "no key on its right side"


def test_some_tables() -> None:
    chosen = contract_of(snapshot(), "shop", tables=["orders"])
    assert [table.name for table in chosen.tables] == ["orders"]
    assert chosen.foreign_keys == (), "what it refers to is not there"
    with pytest.raises(UnknownTableError, match="did you mean 'orders'"):
        contract_of(snapshot(), "shop", tables=["order"])
