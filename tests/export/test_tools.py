"""Other people's tools read what is exported for them, pass it on rows in which it holds, and fail
it on rows in which it does not. ``make test-exports`` installs them in their own environment."""

from __future__ import annotations

import functools
import html
import json
import os
import re
import shutil
import subprocess
import threading
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.export import exported
from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import DIALECTS, DUCKDB, SQLITE, Dialect
from holdfast.model.constraints import NotNull
from holdfast.screen.text import plain
from tests.export.contracts import (
    ODD,
    ODD_BROKEN,
    ODD_ROWS,
    Rows,
    broken_shop,
    dirty_shop,
    nearly,
    odd,
    shop,
    shop_cells,
)

pytestmark = [pytest.mark.tools, pytest.mark.slow]

NAMES = ("my odd table", "the parent")
"""Of the tables with odd columns, where a tool cannot quote the names of tables."""

SILENT = {
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "SODA_CORE_TELEMETRY_ENABLED": "false",
    "PYTHONIOENCODING": "utf-8",
}
"""Tests tell nobody that they run."""


@pytest.fixture(scope="module")
def python() -> str:
    """The Python that has the tools."""
    found = os.environ.get("HOLDFAST_EXPORTS")
    if not found:
        pytest.skip("make test-exports installs dbt, Great Expectations, Soda and the rest")
    return found


def run(python: str, program: str, folder: Path, *arguments: str) -> str:
    """What a program prints that may import the tools."""
    done = subprocess.run(
        [python, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, **SILENT},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


CASES = ("shop", "equal", "unequal")
"""The shop, and the odd tables with nulls that are equal or not."""


def chosen(case: str, names: tuple[str, str] = NAMES) -> tuple[Contract, Rows, Rows]:
    """Constraints, rows in which they hold, and rows in which none of them does, but that columns
    are never null; ``names`` are those of the odd tables."""
    if case == "shop":
        return shop(), shop_cells(), broken_shop()
    holding, broken = (
        dict(zip(names, rows.values(), strict=True)) for rows in (ODD_ROWS, ODD_BROKEN)
    )
    return odd(case, names=names), holding, broken


def table_script(table: TableContract, rows: list[tuple[Any, ...]], dialect: Dialect) -> str:
    """Statements that make and fill a table without constraints."""
    name = dialect.name_of(table.name)
    columns = ", ".join(
        f"{dialect.name_of(each.name)} {dialect.type_of(each.type)}" for each in table.columns
    )
    cells = (", ".join(map(_literal, row)) for row in rows)
    values = ", ".join(f"({row})" for row in cells)
    return f"CREATE TABLE {name} ({columns});\nINSERT INTO {name} VALUES {values};\n"


def _literal(cell: Any) -> str:
    if cell is None:
        return "NULL"
    return str(cell) if isinstance(cell, int | float) else "'" + cell.replace("'", "''") + "'"


def script(contract: Contract, rows: Rows, dialect: Dialect) -> str:
    """All tables."""
    return "".join(table_script(table, rows[table.name], dialect) for table in contract.tables)


DUCKDB_PROGRAM = """
import json, sys, duckdb
database = duckdb.connect(sys.argv[1])
told = []
for statement in json.load(open(sys.argv[2])):
    try:
        told.append(database.execute(statement).fetchall())
    except duckdb.Error as error:
        told.append(str(error))
print(json.dumps(told, default=str))
"""


def duckdb(python: str, folder: Path, statements: list[str], name: str = ":memory:") -> list[Any]:
    """The rows that each statement gives, or its error."""
    (folder / "statements.json").write_text(json.dumps(statements))
    told: list[Any] = json.loads(run(python, DUCKDB_PROGRAM, folder, name, "statements.json"))
    return told


# Databases


@pytest.mark.parametrize("case", CASES)
def test_duckdb_takes_the_constraints(python: str, tmp_path: Path, case: str) -> None:
    contract, rows, broken = chosen(case)
    made = str(exported(contract, "sql", "duckdb", create=True))
    fills = {
        name: table_script(table, rows[name], DUCKDB).partition(";\n")[2]
        for table in contract.tables
        for name in [table.name]
    }
    parents = ("customers", "products", "orders", "order_items") if case == "shop" else NAMES[::-1]
    assert duckdb(python, tmp_path, [made, *(fills[name] for name in parents)])[0] == []
    told = duckdb(python, tmp_path, [made, *(fills[name] for name in parents)])
    assert not [each for each in told if isinstance(each, str)]
    indexes = str(exported(contract, "sql", "duckdb"))
    told = duckdb(python, tmp_path, [script(contract, rows, DUCKDB), indexes])
    assert not isinstance(told[1], str)
    told = duckdb(python, tmp_path, [script(contract, broken, DUCKDB), indexes])
    assert "onstraint" in told[1]


@pytest.mark.parametrize("case", CASES)
def test_duckdb_runs_the_queries(python: str, tmp_path: Path, case: str) -> None:
    from holdfast.export.queries import Queries

    contract, rows, broken = chosen(case)
    rules = [rule for rule in contract.rules if not isinstance(rule, NotNull)]
    queries = [Queries(DUCKDB, contract).of(rule) for rule in rules]
    for content, found in ((rows, False), (broken, True)):
        told = duckdb(python, tmp_path, [script(contract, content, DUCKDB), *queries])[1:]
        assert {str(r): bool(t) for r, t in zip(rules, told, strict=True)} == {
            str(rule): found for rule in rules
        }, told


PARSE = """
import sys, sqlglot
for name in sys.argv[1:]:
    dialect = name.partition("-")[0]
    parsed = sqlglot.parse(open(name).read(), dialect=dialect)
    assert not [each for each in parsed if isinstance(each, sqlglot.exp.Command)], name
    print(name, len(parsed))
"""


def test_every_dialect_is_parsed(python: str, tmp_path: Path) -> None:
    """By a parser that knows all of them; MySQL and Databricks are not at hand. (It does not know
    how PostgreSQL compares nulls, nor that Spark keeps constraints.)"""
    names = []
    for case in CASES:
        contract, _, _ = chosen(case)
        for dialect in DIALECTS:
            forms = {"queries": False, "sql": True}
            if dialect in ("postgresql", "spark"):
                forms.pop("sql")
            for form, create in forms.items():
                name = f"{'postgres' if dialect == 'postgresql' else dialect}-{form}-{case}.sql"
                exported(contract, form, dialect, create=create).write(tmp_path / name)
                names.append(name)
    assert len(run(python, PARSE, tmp_path, *names).splitlines()) == len(names)


# dbt


PROJECT = """\
name: shop
version: "1.0"
profile: shop
models:
  +materialized: table
  +contract: {enforced: %s}
"""

PROFILE = "shop: {target: dev, outputs: {dev: {type: duckdb, path: shop.duckdb, threads: 1}}}\n"

DBT = """
import sys
from dbt.cli.main import dbtRunner
done = dbtRunner().invoke(sys.argv[1:])
assert done.exception is None, done.exception
"""


@pytest.mark.parametrize("case", CASES)
def test_dbt_builds_and_tests(python: str, tmp_path: Path, case: str) -> None:
    contract, rows, broken = chosen(case)
    for content, holds in ((rows, True), (broken, False)):
        # dbt itself does not write the odd columns of an enforced contract in the right quotes.
        enforced = holds and case == "shop"
        project = tmp_path / str(holds)
        exported(contract, "dbt", "duckdb").write(f"{project}/")
        (project / "dbt_project.yml").write_text(PROJECT % str(enforced).lower())
        (project / "profiles.yml").write_text(PROFILE)
        for table in contract.tables:
            name = f"from {DUCKDB.name_of('given')}.{DUCKDB.name_of(table.name)}"
            path = project / "models" / f"{_model(project, table.name)}.sql"
            path.write_text(f"select * {name}\n")
        given = "CREATE SCHEMA given; USE given;\n" + script(contract, content, DUCKDB)
        assert not isinstance(duckdb(python, project, [given], "shop.duckdb")[0], str)
        run(python, DBT, project, "run" if not holds else "build", "--no-use-colors")
        if not holds:
            run(python, DBT, project, "test", "--no-use-colors")
        results = json.loads((project / "target" / "run_results.json").read_text())["results"]
        tests = {
            each["unique_id"].split(".")[2]: each["status"]
            for each in results
            if each["unique_id"].startswith("test.")
        }
        expected = {
            name: "pass" if holds or name.startswith("not_null") else "fail" for name in tests
        }
        assert tests == expected
        assert len(tests) == len([*contract.rules])


def test_dbt_fails_where_more_rows_break_a_rule_than_may(python: str, tmp_path: Path) -> None:
    contract = nearly()
    for times, status in ((1, "warn"), (2, "fail")):
        assert {*statuses(python, tmp_path / str(times), contract, dirty_shop(times)).values()} == {
            status
        }
    passed = statuses(python, tmp_path / "clean", contract, shop_cells())
    assert {*passed.values()} == {"pass"}
    assert len(passed) == len([*contract.rules])


def statuses(python: str, project: Path, contract: Contract, rows: Rows) -> dict[str, str]:
    """The status of each test of dbt, by its name."""
    exported(contract, "dbt", "duckdb").write(f"{project}/")
    (project / "dbt_project.yml").write_text(PROJECT % "false")
    (project / "profiles.yml").write_text(PROFILE)
    for table in contract.tables:
        name = f"from {DUCKDB.name_of('given')}.{DUCKDB.name_of(table.name)}"
        (project / "models" / f"{table.name}.sql").write_text(f"select * {name}\n")
    given = "CREATE SCHEMA given; USE given;\n" + script(contract, rows, DUCKDB)
    assert not isinstance(duckdb(python, project, [given], "shop.duckdb")[0], str)
    run(python, DBT, project, "run", "--no-use-colors")
    run(python, DBT, project, "test", "--no-use-colors")
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    return {each["unique_id"].split(".")[2]: each["status"] for each in results}


def _model(project: Path, table: str) -> str:
    """What the model of a table is called."""
    import yaml

    models = yaml.safe_load((project / "models" / "holdfast.yml").read_text("utf-8"))["models"]
    (name,) = [
        each["name"]
        for each in models
        if each.get("config", {}).get("alias", each["name"]) == table
    ]
    assert isinstance(name, str)
    return name


# Great Expectations


SUITE = """
import json, sys
import great_expectations as gx

context = gx.get_context(mode="ephemeral")
source = context.data_sources.add_sqlite("db", connection_string=f"sqlite:///{sys.argv[1]}")
told = {}
for path in sys.argv[2:]:
    form = json.load(open(path, encoding="utf-8"))
    suite = context.suites.add(gx.ExpectationSuite(**form))
    asset = source.add_table_asset(path, table_name=form["name"])
    batch = asset.add_batch_definition_whole_table("all").get_batch()
    for each in batch.validate(suite).results:
        assert '"raised_exception": true' not in json.dumps(each.exception_info), each
        told[each.expectation_config.meta["rule"]] = each.success
print(json.dumps(told))
"""


@pytest.mark.parametrize("case", CASES)
def test_great_expectations_validates(python: str, tmp_path: Path, case: str) -> None:
    import sqlite3

    # It writes the names of tables without quotes.
    contract, rows, broken = chosen(case, ("odd_table", "parent"))
    paths = exported(contract, "gx", "sqlite").write(f"{tmp_path}/")
    for content, holds in ((rows, True), (broken, False)):
        database = sqlite3.connect(tmp_path / f"{holds}.db")
        database.executescript(script(contract, content, SQLITE))
        database.close()
        printed = run(python, SUITE, tmp_path, f"{holds}.db", *paths)
        told = json.loads(printed.splitlines()[-1])
        assert told == {str(rule): holds or isinstance(rule, NotNull) for rule in contract.rules}, (
            case
        )


def test_great_expectations_takes_so_many_violations(python: str, tmp_path: Path) -> None:
    import sqlite3

    contract = nearly()
    paths = exported(contract, "gx", "sqlite").write(f"{tmp_path}/")
    for times, holds in ((0, True), (1, True), (2, False)):
        database = sqlite3.connect(tmp_path / f"{times}.db")
        database.executescript(script(contract, dirty_shop(times), SQLITE))
        database.close()
        told = json.loads(run(python, SUITE, tmp_path, f"{times}.db", *paths).splitlines()[-1])
        assert told == {str(rule): holds for rule in contract.rules}


# Soda


VERIFY = """
import json, sys
from soda_core.contracts.contract_verification import ContractVerificationSession
from soda_core.common.yaml import ContractYamlSource, DataSourceYamlSource

told = {}
for path in sys.argv[1:]:
    done = ContractVerificationSession.execute(
        contract_yaml_sources=[ContractYamlSource.from_file_path(path)],
        data_source_yaml_sources=[DataSourceYamlSource.from_file_path("source.yml")],
    )
    assert not done.has_errors, done.get_errors_str()
    for result in done.contract_verification_results:
        for each in result.check_results:
            told[each.check.name] = each.outcome.name
print(json.dumps(told))
"""


@pytest.mark.parametrize("case", CASES)
def test_soda_verifies(python: str, tmp_path: Path, case: str) -> None:
    contract, rows, broken = chosen(case)
    placed = replace(contract, namespace=("duck", "main"))
    for content, holds in ((rows, True), (broken, False)):
        folder = tmp_path / str(holds)
        paths = exported(placed, "soda", "duckdb").write(f"{folder}/")
        source = "type: duckdb\nname: duck\nconnection: {database: main.duckdb, schema: main}\n"
        (folder / "source.yml").write_text(source)
        duckdb(python, folder, [script(contract, content, DUCKDB)], "main.duckdb")
        told = json.loads(run(python, VERIFY, folder, *paths).splitlines()[-1])
        outcomes = {
            name: outcome for name, outcome in told.items() if ":" in name or " in " in name
        }
        assert len(outcomes) == len([*contract.rules])
        for name, outcome in outcomes.items():
            passed = holds or name.endswith("not null")
            assert outcome == ("PASSED" if passed else "FAILED"), name


def test_soda_takes_so_many_violations(python: str, tmp_path: Path) -> None:
    contract = replace(nearly(), namespace=("duck", "main"))
    for times, outcome in ((0, "PASSED"), (1, "PASSED"), (2, "FAILED")):
        folder = tmp_path / str(times)
        paths = exported(contract, "soda", "duckdb").write(f"{folder}/")
        source = "type: duckdb\nname: duck\nconnection: {database: main.duckdb, schema: main}\n"
        (folder / "source.yml").write_text(source)
        duckdb(python, folder, [script(contract, dirty_shop(times), DUCKDB)], "main.duckdb")
        told = json.loads(run(python, VERIFY, folder, *paths).splitlines()[-1])
        outcomes = [told[name] for name in told if "may break it" in name]
        assert outcomes == [outcome] * len([*contract.rules])


# Mermaid


PAGE = """<html><body><iframe src="index.html" width="999" height="999"></iframe><pre></pre><script>
const frame = document.querySelector("iframe"), code = %s;
addEventListener("message", event => {
  if (event.data && event.data.type === "streamlit:componentReady")
    frame.contentWindow.postMessage({type: "streamlit:render", args: {code: code, key: "k"},
      disabled: false, theme: null, dfs: []}, "*");
});
setInterval(() => {
  const inside = frame.contentDocument;
  if (inside && inside.querySelector("svg"))
    document.querySelector("pre").textContent = JSON.stringify(inside.body.innerText);
}, 100);
</script></body></html>"""
"""What shows a diagram: the build of Mermaid that a package for another framework brings."""

PLACE = """
import importlib.util
print(importlib.util.find_spec("streamlit_mermaid").submodule_search_locations[0])
"""


def test_mermaid_draws_the_diagram(python: str, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium here: apt-get install -y chromium")
    build = Path(run(python, PLACE, tmp_path).strip()) / "frontend" / "build"
    shutil.copytree(build, tmp_path / "build")
    handler = functools.partial(_Quiet, directory=tmp_path / "build")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for contract in (shop(), odd(), odd(names=NAMES)):
            page = PAGE % json.dumps(str(exported(contract, "mermaid")))
            (tmp_path / "build" / "page.html").write_text(page, "utf-8")
            drawn = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                    "--virtual-time-budget=60000", f"--user-data-dir={tmp_path / 'browser'}",
                    f"http://127.0.0.1:{server.server_port}/page.html"],
                capture_output=True, text=True, encoding="utf-8", check=True,
            ).stdout  # fmt: skip
            (text,) = re.findall("<pre>(.*?)</pre>", drawn, flags=re.DOTALL)
            words = html.unescape(text)
            assert "Syntax error" not in words
            for table in contract.tables:
                for column in table.names:
                    shown = json.dumps(plain(column), ensure_ascii=False)[1:-1]
                    assert shown in words, (shown, words)
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


# The Open Data Contract Standard


VALIDATE = """
import json, pathlib, sys, jsonschema, yaml
import open_data_contract_standard as standard
from open_data_contract_standard.model import OpenDataContractStandard

schema = json.loads((pathlib.Path(standard.__file__).parent / "schema.json").read_text())
form = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
validator = jsonschema.validators.validator_for(schema)(schema)
print(json.dumps([f"{each.json_path}: {each.message}" for each in validator.iter_errors(form)]))
OpenDataContractStandard.from_file(sys.argv[1])
"""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_data_contract_is_one(python: str, tmp_path: Path, dialect: str) -> None:
    contracts = {case: chosen(case)[0] for case in CASES}
    for case, contract in {**contracts, "near": nearly(), "hard": odd()}.items():
        path = tmp_path / f"{case}.yaml"
        exported(contract, "odcs", dialect).write(path)
        assert json.loads(run(python, VALIDATE, tmp_path, str(path))) == []
    assert ODD[0] in path.read_text("utf-8")
