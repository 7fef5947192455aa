"""Every command without Spark: where neither PySpark nor Java is there."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli import session
from tests.cli.conftest import ORDERS, Run, run, write  # noqa: F401
from tests.cli.test_setup import HIDE
from tests.steps import run_steps

IMPORTED = """
import sys
print(*sys.modules)
"""

SHOP = """\
id,customer,day,city,country
1,7,2026-01-01,Rome,IT
2,7,2026-01-02,Rome,IT
3,8,2026-01-01,Oslo,NO
4,9,2026-01-03,Oslo,NO
"""


@pytest.mark.slow
def test_all_commands(tmp_path: Path) -> None:
    write(tmp_path, "orders", SHOP)
    write(tmp_path, "customers", "id,name\n7,Ann\n8,Bob\n9,Cyd\n")
    write(tmp_path, "new", SHOP.splitlines()[0] + "\n5,9,2026-01-03,Oslo,NO\n")
    write(tmp_path, "twice", SHOP.splitlines()[0] + "\n1,9,2026-01-03,Oslo,NO\n")
    write(tmp_path, "gone", "id\n2\n")
    write(tmp_path, "changed", SHOP.splitlines()[0] + "\n3,8,2026-01-01,Bari,NO\n")
    commands = [
        "profile orders=orders.csv customers.csv --into p",
        "check p --table orders --inserts twice.csv --kinds keys",
        "apply p --table orders --inserts new.csv",
        "apply p --table orders --deletes gone.csv --updates changed.csv --row-key id",
        "add p --kinds dcs",
        "add p --near",
        "expect p",
        "expect p orders:key(id)",
        "apply p --table orders --inserts twice.csv --quarantine kept",
        "explain p orders:city->country",
        "explain p orders:key(customer)",
        "suspects p orders:country->city",
        "predicates p",
        "verify p",
        "show p",
        "show p foreign-keys",
        "history p",
        "export p --to sql",
        "forget p orders:key(id)",
    ]
    steps = [["holdfast", *each.split()] for each in commands]
    hidden = HIDE.format(name="pyspark")
    engine = 'import os; os.environ.update(HOLDFAST_ENGINE="process", PATH="", JAVA_HOME="/none")'
    told = run_steps(tmp_path, [hidden, engine, *steps, IMPORTED])
    codes = dict(zip(commands, (code for _, code in told.steps[2:]), strict=False))
    expected = dict.fromkeys(commands, 0)
    expected |= {commands[1]: 1, "expect p": 2}
    assert codes == expected, told.errors
    printed = dict(zip(commands, (text for text, _ in told.steps[2:]), strict=False))
    assert "keys would break" in printed[commands[1]]
    assert "1 deleted, 1 updated" in printed[commands[3]], printed[commands[3]]
    assert "equal" in printed["verify p"]
    assert "orders(customer) in customers(id)" in printed["show p foreign-keys"]
    assert len(list((tmp_path / "kept").rglob("*.csv"))) == 1
    imported = told.steps[-1][0].split()
    assert not {"pyspark", "py4j"} & set(imported)


@pytest.mark.slow
def test_standard_input(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "profile", "orders=-", "--input-format", "csv",
         "--into", "p", "--engine", "process", "--format", "json"],
        cwd=tmp_path,
        input=gzip.compress(ORDERS.encode()),
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tables"]["orders"]["rows"] == 4


def test_what_only_spark_reads(
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_ENGINE", "process")
    orders = write(tmp_path, "orders", ORDERS)
    into = tmp_path / "p"
    for source, more, said in (
        ("sales.orders", ["--input-format", "table"], "only Spark reads a table of the catalog"),
        (orders, ["--input-format", "orc"], "only Spark reads the format 'orc'"),
        (orders, ["--input-format", "jdbc"], "only Spark reads the format 'jdbc'"),
        ("s3://bucket/orders.csv", [], "only files that this machine sees"),
        (orders, ["--input-format", "parquet", "--option", "a=b"], "an option of Spark's reader"),
        (orders, ["--input-format", "parquet"], "cannot be read as Parquet"),
        (tmp_path / "*.csv.gz", [], "no file or folder matches"),
    ):
        result = run("profile", f"t={source}", "--into", into, *more)
        assert result.code == 2
        assert said in result.err, result.err
        assert result.err.count("\n") == 1
        assert not into.exists()
    squeezed = tmp_path / "orders.csv.lz4"
    squeezed.write_bytes(b"whatever")
    assert "only Spark reads .lz4 files" in run("profile", squeezed, "--into", into).err


def test_options_that_contradict_each_other(
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders = write(tmp_path, "orders", ORDERS)
    into = tmp_path / "p"
    result = run("profile", orders, "--into", into, "--engine", "process", "--master", "local")
    assert (result.code, "--master is about Spark" in result.err) == (2, True)
    result = run("profile", orders, "--into", into, "--engine", "flink")
    assert (result.code, "must be spark or process, not 'flink'" in result.err) == (2, True)
    monkeypatch.setenv("HOLDFAST_ENGINE", "flink")
    result = run("profile", orders, "--into", into)
    assert "HOLDFAST_ENGINE must be spark or process, not 'flink'" in result.err


def test_a_session_takes_no_command_of_this_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOLDFAST_SESSION", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(variable, raising=False)
    assert session._fits(["profile", "a.csv"])
    assert not session._fits(["profile", "a.csv", "--engine", "process"])
    assert not session._fits(["profile", "a.csv", "--engine=process"])
    monkeypatch.setenv("HOLDFAST_ENGINE", "process")
    assert not session._fits(["profile", "a.csv"])
    assert session._fits(["profile", "a.csv", "--engine", "spark"])
