"""Inclusion dependencies of real and generated tables that are known, and their foreign keys."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import flow
from holdfast.input.row_input import RowInput
from holdfast.kinds.inclusion_dependencies.reading import Inclusions, clusters
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.data import MISSING, data_dir, read_table
from tests.flow.tables import text_input

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
DECLARED = {
    "nation.n_regionkey": "region.r_regionkey",
    "supplier.s_nationkey": "nation.n_nationkey",
    "customer.c_nationkey": "nation.n_nationkey",
    "partsupp.ps_partkey": "part.p_partkey",
    "partsupp.ps_suppkey": "supplier.s_suppkey",
    "orders.o_custkey": "customer.c_custkey",
    "lineitem.l_orderkey": "orders.o_orderkey",
    "lineitem.l_partkey": "part.p_partkey",
    "lineitem.l_suppkey": "supplier.s_suppkey",
}


def profiled(path: Path, row_inputs: dict[str, RowInput], options: Options | None = None) -> Store:
    store = Store.create(path)
    flow.profile(InProcess(2), store, row_inputs, options or Options(), no_progress)
    return store


def inclusions(store: Store) -> Inclusions:
    found = snapshot(store).inclusions
    assert found is not None
    return found


def csv_feed(path: Path) -> RowInput:
    """Every cell as text, an empty one as a null."""
    header, rows = read_table(path)
    row_input = text_input(header, rows, path.stem)
    cells = [column.combine_chunks() for column in row_input.rows.columns]
    import pyarrow.compute as pc

    emptied = [pc.if_else(pc.equal(column, ""), None, column) for column in cells]
    table = row_input.rows.from_arrays(emptied, names=row_input.rows.column_names)
    return RowInput(row_input.label, row_input.columns, table)


@pytest.mark.skipif(data_dir() is None, reason=MISSING)
def test_web_tables_about_planets(tmp_path: Path) -> None:
    folder = data_dir()
    assert folder is not None
    known = json.loads((folder / "known-results.json").read_text())["wdc"]
    row_inputs = {path.stem: csv_feed(path) for path in sorted((folder / "wdc").glob("*.csv"))}
    store = profiled(tmp_path / "p", row_inputs, Options(within_tables=True))
    kept = inclusions(store)
    found = kept.dependencies()
    assert {(str(each.dependent[0]), str(each.referenced[0])) for each in found} == {
        tuple(each) for each in known["inclusion_dependencies"]
    }
    counted = sum(each.values for each in clusters(store))
    cells = {
        cell
        for row_input in row_inputs.values()
        for c in row_input.rows.columns
        for cell in c.to_pylist()
    }
    assert counted == len(cells - {None})


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RowInput]:
    """TPC-H at scale factor 0.01, cells as text."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    tool = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if tool is None:
        pytest.skip("tpchgen-cli is not installed")
    folder = tmp_path_factory.mktemp("tpch")
    subprocess.run([tool, "csv", "-s", "0.01", f"--output-dir={folder}"], check=True)
    return {name: text_input(*read_table(folder / f"{name}.csv"), name) for name in TABLES}


@pytest.mark.long
def test_the_composite_foreign_key_of_tpch(tpch: dict[str, RowInput], tmp_path: Path) -> None:
    some = {name: tpch[name] for name in ("part", "supplier", "partsupp", "lineitem")}
    options = Options(max_arity=2, max_columns=3)
    found = inclusions(profiled(tmp_path / "p", some, options)).foreign_keys()
    best = next(each for each in found if len(each.dependent) == 2)
    assert str(best) == "lineitem(l_partkey, l_suppkey) in partsupp(ps_partkey, ps_suppkey)"


@pytest.mark.long
def test_foreign_keys_of_tpch(tpch: dict[str, RowInput], tmp_path: Path) -> None:
    """Each declared one is found, and is the best candidate of its column."""
    found = inclusions(profiled(tmp_path / "p", tpch)).foreign_keys()
    best: dict[str, str] = {}
    for each in found:
        assert 0 <= each.score <= 1
        best.setdefault(str(each.dependent[0]), str(each.referenced[0]))
    assert {column: best[column] for column in DECLARED} == DECLARED
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    declared = [
        each.score
        for each in found
        if DECLARED.get(str(each.dependent[0])) == str(each.referenced[0])
    ]
    assert min(declared) > max(set(scores) - set(declared))
