"""The sample shop, profiled in process, with the batches of three days; and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from holdfast import Options, Profile, flow, sample
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds import registry
from holdfast.model.expectations import Expectation
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.browser import Browser, executable
from tests.cli.conftest import _any_width, run
from tests.kinds.toy import toy

__all__ = ["_any_width", "run", "toy"]

TYPES = {
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.float64(): "double",
    pa.date32(): "date",
}
FOLDER = Path(sample.__file__).parent / "shop"
TABLES = ("customers", "products", "orders", "order_items")
BATCHES = (
    ("monday", "orders", "inserts"),
    ("tuesday", "customers", "inserts"),
    ("tuesday", "orders", "inserts"),
    ("wednesday", "customers", "deletes"),
    ("wednesday", "orders", "updates"),
)


def profiled(path: Path, tables: dict[str, pa.Table], **options: Any) -> Profile:
    """A profile of Arrow tables, without Spark."""
    asked = registry.completed(Options(**options))
    store = Store.create(path)
    inputs = {name: row_input(name, table) for name, table in tables.items()}
    flow.profile(InProcess(), store, inputs, asked, no_progress)
    return Profile.open(path)


def applied(
    profile: Profile, table: str, batch_id: str, quarantine: str | None = None, **changes: Any
) -> None:
    """One version more."""
    row_key = changes.pop("row_key", ())
    inputs: dict[str, Any] = {kind: row_input(kind, rows) for kind, rows in changes.items()}
    batch = flow.Batch(**inputs, row_key=row_key, batch_id=batch_id)
    store = Store.open(profile.path)
    flow.apply(InProcess(), store, table, batch, no_progress, quarantine=quarantine)


def row_input(label: str, table: pa.Table) -> RowInput:
    types = [TYPES[each] for each in table.schema.types]
    columns = Columns.of(table.column_names, types, table.schema.types)
    return RowInput(label, columns, table.rename_columns(columns.schema.names))


def read(path: Path, like: pa.Schema | None = None) -> pa.Table:
    options = pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True, column_types=like)
    return pa.csv.read_csv(path, convert_options=options)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The sample shop; not to be changed."""
    tables = {name: read(FOLDER / f"{name}.csv") for name in TABLES}
    path = tmp_path_factory.mktemp("report") / "shop"
    profile = profiled(path, tables, kinds="keys,fds,inds,dcs")
    for day, table, kind in BATCHES:
        rows = read(FOLDER / day / f"{table}-{kind}.csv", tables[table].schema)
        key = ("order_id",) if kind == "updates" else ()
        applied(profile, table, day, row_key=key, **{kind: rows})
    return profile


@pytest.fixture(scope="session")
def expecting(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Two tables of which rules are expected, not all of which hold; not to be changed."""
    tables = {
        "orders": pa.table(
            {"id": [1, 2, 3, 4], "customer": [7, 8, 9, 9], "day": [1, 1, 2, 3],
             "note": ["a", "b", None, "c"]}
        ),
        "customers": pa.table({"id": [7, 8]}),
    }  # fmt: skip
    profile = profiled(tmp_path_factory.mktemp("expecting") / "shop", tables)
    rules = [
        Expectation("orders: key(id)"),
        Expectation("orders: day -> customer"),
        Expectation(
            "orders(customer) in customers(id)", "warn", name="every order has its customer"
        ),
        Expectation("orders: note not null", max_error=0.5),
    ]
    flow.expect(InProcess(), Store.open(profile.path), rules, no_progress)
    return profile


@pytest.fixture(scope="session")
def sifted(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """A table of which a batch was applied without three of its rows; not to be changed."""
    rows = pa.table({"id": [1, 2], "customer": [7, 8]})
    folder = tmp_path_factory.mktemp("sifted")
    profile = profiled(folder / "shop", {"orders": rows})
    rules = [Expectation("orders: key(id)"), Expectation("orders: customer not null")]
    flow.expect(InProcess(), Store.open(profile.path), rules, no_progress)
    more = pa.table({"id": [3, 2, 4, 4], "customer": pa.array([9, 8, None, 9], pa.int64())})
    applied(profile, "orders", "monday", quarantine=str(folder / "aside"), inserts=more)
    applied(profile, "orders", "tuesday", inserts=rows.slice(0, 0))
    return profile


@pytest.fixture(scope="session")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Orders of which rules are expected, two of whose cities are in a wrong country; a good batch
    of copied orders, which breaks what held by chance, and a bad one. Not to be changed."""
    numbers = range(120)
    orders = pa.table(
        {
            "order_id": [20_001 + n for n in numbers],
            "customer_id": [1 + n * 7 % 40 for n in numbers],
            "city": [CITIES[n % 4][0] for n in numbers],
            "country": [CITIES[(n + (n in (17, 50))) % 4][1] for n in numbers],
            "year": [1990 + n % 30 for n in numbers],
            "amount": [n * 37 % 113 / 4 for n in numbers],
        }
    )
    customers = pa.table({"customer_id": [*range(1, 41)], "segment": ["a", "b"] * 20})
    path = tmp_path_factory.mktemp("gated") / "shop"
    profile = profiled(path, {"orders": orders, "customers": customers})
    rules = [
        Expectation("orders: key(order_id)", name="one row per order"),
        Expectation("orders(customer_id) in customers(customer_id)"),
        Expectation("orders: city -> country", "warn", max_rows=2),
    ]
    flow.expect(InProcess(), Store.open(profile.path), rules, no_progress)

    def copied(first: int, rows: int, new_id: int, country: str | None = None) -> pa.Table:
        some = orders.slice(first, rows)
        columns = {name: some[name].to_pylist() for name in some.column_names}
        columns["order_id"] = [new_id + n for n in range(rows)]
        if country:
            columns["country"] = [country] * rows
        return pa.table(columns)

    applied(profile, "orders", "monday", inserts=copied(60, 30, 30_001))
    applied(profile, "orders", "tuesday", inserts=copied(60, 2, 20_005))
    applied(profile, "orders", "wednesday", inserts=copied(0, 1, 40_001, "XX"))
    return profile


CITIES = (("Graz", "AT"), ("Bern", "CH"), ("Lyon", "FR"), ("Turin", "IT"))


@pytest.fixture(scope="session")
def chained(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Tables that refer to each other in five steps, over several of them, and by two columns. Not
    to be changed."""
    tables = {
        "regions": pa.table({"region_id": [*range(1, 6)], "label": list("abcde")}),
        "nations": pa.table(
            {"nation_id": [*range(1, 26)], "region_id": [1 + n % 5 for n in range(25)]}
        ),
        "clients": pa.table(
            {"client_id": [*range(1, 61)], "nation_id": [1 + n * 3 % 25 for n in range(60)]}
        ),
        "orders": pa.table(
            {"order_id": [*range(1, 151)], "client_id": [1 + n * 7 % 60 for n in range(150)]}
        ),
        "stock": pa.table(
            {"part_no": [1 + n // 8 for n in range(80)], "store_no": [1 + n % 8 for n in range(80)]}
        ),
        "items": pa.table(
            {
                "order_id": [1 + n // 2 for n in range(300)],
                "part_no": [1 + n * 3 % 80 // 8 for n in range(300)],
                "store_no": [1 + n * 3 % 80 % 8 for n in range(300)],
                "nation_id": [1 + n * 7 % 25 for n in range(300)],
                "region_id": [1 + n * 3 % 5 for n in range(300)],
            }
        ),
    }
    path = tmp_path_factory.mktemp("chained") / "chain"
    return profiled(path, tables, max_arity=2)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser that all tests of a process share."""
    program = executable()
    if program is None:
        pytest.skip("there is no Chromium (apt-get install chromium, or say where by CHROMIUM)")
    browser = Browser(program)
    yield browser
    browser.close()
