"""The sample shop is what its generator says it is."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from holdfast import Options, flow, sample
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds import registry
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.runner import InProcess
from holdfast.sample import make
from holdfast.store import Store

SHOP = Path(sample.__file__).with_name("shop")
Rows = list[tuple[str, ...]]
Keys = set[frozenset[str]]
TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
}


def read(name: str) -> tuple[tuple[str, ...], Rows]:
    with (SHOP / name).open(encoding="utf-8", newline="") as file:
        header, *rows = (tuple(row) for row in csv.reader(file))
    return header, rows


def minimal_keys(columns: tuple[str, ...], rows: Rows) -> Keys:
    found: list[tuple[int, ...]] = []
    for size in range(len(columns) + 1):
        for chosen in combinations(range(len(columns)), size):
            if any(set(key) <= set(chosen) for key in found):
                continue
            if len({tuple(row[c] for c in chosen) for row in rows}) == len(rows):
                found.append(chosen)
    return {frozenset(columns[c] for c in key) for key in found}


def keys(*names: str) -> Keys:
    return {frozenset(name.split()) for name in names}


def test_the_files_are_what_the_generator_makes() -> None:
    on_disk = {
        path.relative_to(SHOP).as_posix(): path.read_bytes().decode()
        for path in SHOP.rglob("*.csv")
    }
    assert on_disk == make.files()


def test_the_sample_stays_small() -> None:
    assert sum(path.stat().st_size for path in SHOP.rglob("*.csv")) < 200_000


PLANTED = {
    "customers": keys("customer_id", "email"),
    "products": keys("product_id", "name size"),
    "orders": keys("order_id", "customer_id ordered_on"),
    "order_items": keys("order_id line_no", "order_id product_id"),
}
ON_TUESDAY = {
    "customers": keys("customer_id", "email joined_on"),
    "orders": keys("order_id", "customer_id ordered_on channel"),
    "order_items": keys("order_id product_id"),
}


@pytest.mark.parametrize("table", PLANTED)
def test_the_planted_keys_come_go_and_return(table: str) -> None:
    columns, rows = read(f"{table}.csv")
    assert minimal_keys(columns, rows) == PLANTED[table]
    for day, expected in (
        ("monday", PLANTED[table]),
        ("tuesday", ON_TUESDAY.get(table, PLANTED[table])),
        ("wednesday", PLANTED[table]),
    ):
        rows = after(table, day, columns, rows)
        assert minimal_keys(columns, rows) == expected, day


def after(table: str, day: str, columns: tuple[str, ...], rows: Rows) -> Rows:
    """The rows after a day's batch; updates go by the table's first column."""
    batch = {
        kind: read(f"{day}/{table}-{kind}.csv")[1]
        for kind in ("inserts", "deletes", "updates")
        if (SHOP / day / f"{table}-{kind}.csv").exists()
    }
    updated = {row[0]: row for row in batch.get("updates", [])}
    kept = Counter(rows)
    kept.subtract(batch.get("deletes", []))
    assert min(kept.values()) >= 0
    replaced = [updated.pop(row[0], row) for row in kept.elements()]
    assert not updated
    return replaced + batch.get("inserts", [])


@pytest.mark.parametrize(
    ("table", "column", "target"),
    [
        ("orders", "customer_id", "customers"),
        ("order_items", "order_id", "orders"),
        ("order_items", "product_id", "products"),
    ],
)
def test_the_foreign_keys_hold(table: str, column: str, target: str) -> None:
    def values(name: str) -> set[str]:
        header, rows = read(f"{name}.csv")
        return {row[header.index(column)] for row in rows}

    assert values(table) <= values(target)


def test_the_order_rules_hold() -> None:
    _, orders = read("orders.csv")
    assert all(row[3] == "" or row[2] <= row[3] for row in orders)
    days = [row[2] for row in sorted(orders, key=lambda row: int(row[0]))]
    assert days == sorted(days)
    _, items = read("order_items.csv")
    discounts = [float(row[5]) for row in sorted(items, key=lambda row: (int(row[3]), row[5]))]
    assert discounts == sorted(discounts)


def rules(table: str, folder: Path) -> list[str]:
    """The order rules of a table, in words, as they are listed."""
    read_in = pa.csv.read_csv(SHOP / f"{table}.csv")
    types = [TYPES[each] for each in read_in.schema.types]
    columns = Columns.of(read_in.column_names, types, read_in.schema.types)
    rows = RowInput(table, columns, read_in.rename_columns(columns.schema.names))
    store = Store.create(folder / table)
    options = registry.completed(Options(kinds="dcs", cross_columns=None))
    flow.profile(InProcess(), store, {table: rows}, options, no_progress)
    found = snapshot(store).tables[table].found["dcs"]
    return [each.sentence for each in found if each.sentence]


def test_the_rules_are_found(tmp_path: Path) -> None:
    assert rules("orders", tmp_path)[0] == "ordered_on rises with order_id"
    of_items = rules("order_items", tmp_path)
    assert of_items[0] == "discount rises with quantity"
    assert "total rises with quantity, within product_id" in of_items


def test_the_files_are_copied_by_the_command(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "holdfast.sample", tmp_path / "shop"], check=True)
    assert (tmp_path / "shop/orders.csv").read_bytes() == (SHOP / "orders.csv").read_bytes()
    assert (tmp_path / "shop/tuesday/orders-inserts.csv").exists()
