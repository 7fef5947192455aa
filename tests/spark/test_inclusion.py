"""Inclusion dependencies on Spark: across tables, kept current, in few jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from holdfast.model.errors import BatchError, InputError
from tests.spark.test_jobs import counted

pytestmark = pytest.mark.spark

ORDERS = "id bigint, customer int, product int, size int"
CUSTOMERS = "id decimal(10,2), name string"
STOCK = "product bigint, size bigint, amount int"

Frame = Callable[..., DataFrame]


@pytest.fixture
def shop(spark: SparkSession, frame: Frame, tmp_path: Path) -> Profile:
    orders = [(100 + i, 1 + i % 4, 50 + i % 3, 7 + i % 2) for i in range(24)]
    customers = [(str(i), f"n{i % 3}") for i in range(1, 6)]
    stock = [(50 + i % 3, 7 + i // 3, 9) for i in range(6)]
    tables = {
        "orders": frame(ORDERS, *orders),
        "customers": frame("id string, name string", *customers).selectExpr(
            "cast(id as decimal(10,2)) id", "name"
        ),
        "stock": frame(STOCK, *stock),
    }
    return Profile.create(tmp_path / "p", tables, options=Options(max_arity=2), session=spark)


def held(profile: Profile) -> set[str]:
    return {str(each) for each in profile.inclusion_dependencies()}


def test_kept_current_across_tables(spark: SparkSession, shop: Profile, frame: Frame) -> None:
    assert "orders(customer) in customers(id)" in held(shop)
    assert "orders(product, size) in stock(product, size)" in held(shop)
    keys = {str(each): each.score for each in shop.foreign_keys()}
    assert max(keys, key=lambda each: keys[each]).startswith("orders(product")
    assert keys["orders(customer) in customers(id)"] > 0.5
    assert sum(each.values for each in shop.clusters()) == 24 + 5 + 3 + 2 + 3 + 1

    told = shop.apply("orders", inserts=frame(ORDERS, (200, 9, 50, 7), (201, 8, 52, 7)))
    assert "orders(customer) in customers(id)" in map(str, told["inclusion_dependencies"].lost)
    assert sorted(shop.missing_values("orders.customer", "customers.id")) == [8, 9]
    (partial,) = [
        each
        for each in shop.inclusion_dependencies(0.5)
        if str(each) == "orders(customer) in customers(id)"
    ]
    assert partial.coverage == pytest.approx(4 / 6)

    told = shop.apply("orders", deletes=frame(ORDERS, (200, 9, 50, 7), (201, 8, 52, 7)))
    assert "orders(customer) in customers(id)" in map(str, told["inclusion_dependencies"].gained)
    shop.apply("stock", deletes=frame(STOCK, (50, 7, 9)))
    assert "orders(product, size) in stock(product, size)" not in held(shop)
    assert shop.verify().equal


@pytest.mark.parametrize(
    ("kinds", "evidence", "most"),
    [
        (("keys", "inds"), "auto", 3),  # read, probed, and its values moved
        (("keys", "fds"), "witnessed", 2),  # one probe for keys and dependencies
        (("keys", "fds", "inds"), "counted", 4),  # and its pairs counted
    ],
)
def test_what_an_insert_costs(
    spark: SparkSession,
    frame: Frame,
    tmp_path: Path,
    kinds: tuple[str, ...],
    evidence: str,
    most: int,
) -> None:
    # One row breaks a dependency, which is kept, too.
    rows = [(i, i % 4, i % 3, i % 2) for i in range(40)] + [(40, 1, 2, 0)]
    options = Options(kinds=kinds, evidence=evidence)
    source = {"t": frame(ORDERS, *rows)}
    kept = Profile.create(tmp_path / "p", source, session=spark, options=options)
    assert [each.removal for each in kept.near("t")] == ([1] if "fds" in kinds else [])
    with counted(spark) as jobs:
        changes = kept.apply("t", inserts=frame(ORDERS, (100, 1, 2, 0)))
    assert [each.more for each in changes.near] == ([1] if "fds" in kinds else [])
    assert jobs.number <= most


def test_refusals(spark: SparkSession, frame: Frame, tmp_path: Path) -> None:
    rows = frame(ORDERS, (1, 2, 3, 4))
    only = Options(kinds=("inds",), insert_only=True)
    kept = Profile.create(tmp_path / "p", {"t": rows}, options=only, session=spark)
    with pytest.raises(BatchError, match="--insert-only"):
        kept.apply("t", deletes=rows)
    with pytest.raises(InputError, match="write table"):
        kept.missing_values("t", "t.id")
    keys = Options(kinds=("keys",))
    other = Profile.create(tmp_path / "q", {"t": rows}, options=keys, session=spark)
    with pytest.raises(InputError, match="--kinds keys,inds"):
        other.inclusion_dependencies()
