"""Every command takes an address where it takes a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import ORDERS, Run, in_process, run, sessions  # noqa: F401

pytestmark = pytest.mark.usefixtures("in_process")


def test_commands(address: str, run: Run, tmp_path: Path) -> None:  # noqa: F811
    orders, more = tmp_path / "orders.csv", tmp_path / "more.csv"
    orders.write_text(ORDERS)
    more.write_text(ORDERS.splitlines()[0] + "\n4,1,2026-01-01,Cy,\n")

    def done(*arguments: object, code: int = 0) -> str:
        result = run(*arguments)
        assert result.code == code, result.err
        return result.out

    assert done("profile", orders, "--into", address).startswith(f"{address}, version 1 of")
    batch = ("--table", "orders", "--inserts", more)
    assert "1 key would break" in done("check", address, *batch, code=1)
    assert "version 2" in done("apply", address, *batch, "--batch-id", "monday")
    assert "applied before" in done("apply", address, *batch, "--batch-id", "monday")
    assert done("show", f"{address}/", "keys").startswith(f"{address}, version 2 of")
    assert "monday" in done("history", address)
    assert "1 key lost" in done("diff", address, 1, 2)
    done("expect", address, "orders: id not null")
    assert "id not null" in done("expectations", address)
    done("verify", address)
    page = tmp_path / "page.html"
    done("report", address, "--output", page)
    assert address.rpartition("/")[2] in page.read_text()
    assert "orders" in done("export", address, "--to", "markdown")
    refused = run("profile", orders, "--into", address)
    assert (refused.code, address in refused.err) == (2, True)
    elsewhere = run("profile", orders, "--into", "hdfs://host/p")
    assert elsewhere.code == 2
    assert "hdfs://host/p: a profile is kept on a file system or an object store" in elsewhere.err
