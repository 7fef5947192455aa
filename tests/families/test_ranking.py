"""What matters first: scores put what somebody would declare before what holds by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Options, families, flow, sample
from holdfast.families.functional_dependencies.rank import covered
from holdfast.families.ranking import grain, ranked, sentence
from holdfast.input.row_input import Columns, RowInput
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.grammar import parse
from holdfast.model.progress import no_progress
from holdfast.model.ranking import Ranked
from holdfast.report.snapshot import Snapshot, snapshot
from holdfast.store import Store
from holdfast.tasks.runner import InProcess

SHOP = Path(sample.__file__).with_name("shop")
TABLES = ("customers", "products", "orders", "order_items")
TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
}

DESIGNED = (
    "customers: key(customer_id)",
    "customers: key(email)",
    "customers: city -> country",
    "products: key(product_id)",
    "products: key(name, size)",
    "orders: key(order_id)",
    "orders: key(customer_id, ordered_on)",
    "orders: not (t.ordered_on > t.shipped_on)",
    "orders: not (t.order_id <= s.order_id and t.ordered_on > s.ordered_on)",
    "orders(customer_id) in customers(customer_id)",
    "order_items: key(order_id, line_no)",
    "order_items: key(order_id, product_id)",
    "order_items: product_id -> unit_price",
    "order_items: quantity, unit_price -> total",
    "order_items: not (t.quantity <= s.quantity and t.discount > s.discount)",
    "order_items: not (t.product_id = s.product_id and t.quantity <= s.quantity"
    " and t.total > s.total)",
    "order_items(order_id) in orders(order_id)",
    "order_items(product_id) in products(product_id)",
)
"""What ``sample/make.py`` says that holds by design."""


def rows_of(path: Path) -> RowInput:
    table = pa.csv.read_csv(path)
    types = [TYPES[each] for each in table.schema.types]
    columns = Columns.of(table.column_names, types, table.schema.types)
    return RowInput(path.stem, columns, table.rename_columns(columns.schema.names))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The sample shop, with all kinds."""
    store = Store.create(tmp_path_factory.mktemp("ranking") / "shop")
    options = families.completed(Options(kinds="keys,fds,inds,dcs"))
    rows = {name: rows_of(SHOP / f"{name}.csv") for name in TABLES}
    flow.profile(InProcess(), store, rows, options, no_progress)
    return snapshot(store)


def test_every_designed_rule_of_the_shop_is_among_the_first_ten(shop: Snapshot) -> None:
    by_table = {name: ranked(shop, name) for name in TABLES}
    first = {
        str(each) for kinds in by_table.values() for found in kinds.values() for each in found[:10]
    }
    assert {str(parse(rule)) for rule in DESIGNED} <= first


def test_the_grain_of_the_shops_tables(shop: Snapshot) -> None:
    assert {name: sentence(grain(shop, name)).partition(" (")[0] for name in TABLES} == {
        "customers": "one row per customer_id",
        "products": "one row per product_id",
        "orders": "one row per order_id",
        "order_items": "one row per order_id, line_no",
    }
    assert grain(shop, "orders").reason == (
        "one column, called like an identifier, referenced by order_items"
    )


# Covers of dependencies, against closures by brute force

COLUMNS = "abcde"


def closure(columns: set[str], known: Sequence[tuple[set[str], set[str]]]) -> set[str]:
    for _ in known:
        columns = columns.union(*(rhs for lhs, rhs in known if lhs <= columns))
    return columns


SIDES = st.sampled_from([*chain.from_iterable(combinations(COLUMNS, size) for size in range(4))])
DEPENDENCIES = st.lists(
    st.tuples(SIDES, st.sampled_from(COLUMNS)).filter(lambda each: each[1] not in each[0]),
    max_size=12,
    unique=True,
)


@given(DEPENDENCIES, st.lists(SIDES, max_size=2, unique=True))
def test_a_cover_implies_the_others_and_nothing_in_it_is_implied(
    dependencies: list[tuple[tuple[str, ...], str]], keys: list[tuple[str, ...]]
) -> None:
    scored = [
        Ranked(FunctionalDependency("t", lhs, rhs), 1 - at / 100)
        for at, (lhs, rhs) in enumerate(dependencies)
    ]
    found = covered(scored, [Key("t", key) for key in keys], COLUMNS)
    assert {each.constraint for each in found} == {each.constraint for each in scored}
    cover = [each.constraint for each in found if not each.implied_by]
    steps: Mapping[object, tuple[set[str], set[str]]] = {
        **{Key("t", key): (set(key), set(COLUMNS)) for key in keys},
        **{e: (set(e.lhs), {e.rhs}) for e in cover if isinstance(e, FunctionalDependency)},
    }
    for each in found:
        fd = each.constraint
        assert isinstance(fd, FunctionalDependency)
        if each.implied_by:
            used = [steps[by] for by in each.implied_by]
            assert fd.rhs in closure(set(fd.lhs), used)
        else:
            others = [step for of, step in steps.items() if of != fd]
            assert fd.rhs not in closure(set(fd.lhs), others)
