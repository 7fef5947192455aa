"""What is shown first of tables that are known: the lists that decision 37 judges."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from benchmarks import tax, tpch
from holdfast import Options, Profile, flow, sample
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds import registry
from holdfast.kinds.denial_constraints.show import sentence
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.data import MISSING, data_dir

SHOP = Path(sample.__file__).with_name("shop")
TYPES = {pa.int64(): "bigint", pa.float64(): "double", pa.date32(): "date", pa.string(): "string"}


def row_input(name: str, rows: pa.Table) -> RowInput:
    columns = Columns.of(
        rows.column_names, [TYPES[t] for t in rows.schema.types], rows.schema.types
    )
    return RowInput(name, columns, rows.rename_columns(columns.schema.names))


def profiled(folder: Path, tables: dict[str, pa.Table], most: int | None = None) -> Profile:
    store = Store.create(folder / "p")
    options = registry.completed(Options(kinds="keys,fds,inds,dcs", max_predicates=most))
    inputs = {name: row_input(name, rows) for name, rows in tables.items()}
    flow.profile(InProcess(), store, inputs, options, no_progress)
    return Profile(store)


def shown(profile: Profile) -> dict[str, list[str]]:
    """The denial constraints that are shown of each table, in words where there are some."""
    now = profile.snapshot()
    of_tables = {
        name: [
            sentence(each.constraint, now.tables[name]) or each.constraint.body
            for each in profile.rank(name)["denial_constraints"]
            if registry.REGISTRY["dcs"].matters(each)
            and isinstance(each.constraint, DenialConstraint)
        ]
        for name in now.tables
    }
    return {name: rules for name, rules in of_tables.items() if rules}


def test_the_shop(tmp_path: Path) -> None:
    paths = SHOP.glob("*.csv")
    profile = profiled(tmp_path, {path.stem: pa.csv.read_csv(path) for path in paths})
    assert shown(profile) == {
        "orders": [
            "not (t.ordered_on > t.shipped_on)",
            "ordered_on rises with order_id",
        ],
        "order_items": [
            "discount rises with quantity",
            "total rises with quantity, within product_id",
        ],
    }


def dependencies(profile: Profile) -> dict[str, list[str]]:
    """The functional dependencies that are shown of each table."""
    return {
        name: [
            each.constraint.body
            for each in profile.rank(name)["functional_dependencies"]
            if not each.near and registry.REGISTRY["fds"].matters(each)
        ]
        for name in profile.tables
    }


def test_dependencies_of_the_shop(tmp_path: Path) -> None:
    paths = SHOP.glob("*.csv")
    profile = profiled(tmp_path, {path.stem: pa.csv.read_csv(path) for path in paths})
    assert dependencies(profile) == {
        "customers": ["city -> country"],
        "products": ["name -> category"],
        "orders": [],
        "order_items": [
            "quantity -> discount",
            "product_id -> unit_price",
            "total -> discount",
            "quantity, unit_price -> total",
        ],
    }


def test_tax(tmp_path: Path) -> None:
    profile = profiled(tmp_path, {"tax": tax.rows(5_000)}, 4)
    assert shown(profile) == {
        "tax": [
            "never both single_exemption above 0 and married_exemption above 0",
            "rate rises with salary, within state",
        ]
    }


def test_adult(tmp_path: Path) -> None:
    folder = data_dir()
    if folder is None:
        pytest.skip(MISSING)
    profile = profiled(tmp_path, {"adult": pa.csv.read_csv(folder / "adult.csv")}, 3)
    assert shown(profile) == {"adult": ["never both capital_gain above 0 and capital_loss above 0"]}


def tpch_tables(*names: str) -> dict[str, Path]:
    """Tables of TPC-H at scale factor 0.01."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    if not tool.exists() and shutil.which(tool.name) is None:
        pytest.skip("no tables of TPC-H: tpchgen-cli is missing")
    return tpch.tables("0.01", names)


@pytest.mark.slow
def test_orders_and_parts_of_tpch(tmp_path: Path) -> None:
    """No denial constraint of theirs is more than chance."""
    tables = tpch_tables("orders", "part")
    kinds = ["keys", "fds", "dcs"]
    profile = Profile.create(
        tmp_path / "p", tables, engine="process", kinds=kinds, max_predicates=3
    )
    assert shown(profile) == {}
    assert dependencies(profile) == {
        "orders": ["{} -> o_shippriority"],
        "part": ["p_brand -> p_mfgr"],
    }


@pytest.mark.slow
def test_lines_of_tpch(tmp_path: Path) -> None:
    tables = tpch_tables("lineitem")
    profile = Profile.create(tmp_path / "p", tables, engine="process", kinds=["keys", "fds"])
    assert dependencies(profile) == {
        "lineitem": ["l_shipdate -> l_linestatus", "l_partkey, l_quantity -> l_extendedprice"]
    }
