"""Inclusion dependencies and foreign keys on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, write

SIDES = {
    "dependent": {"table": "orders", "columns": ["customer_id"]},
    "referenced": {"table": "customers", "columns": ["id"]},
}
ORDERS = "id,customer_id\n1,7\n2,7\n3,8\n4,9\n"
CUSTOMERS = "id,name\n7,Ann\n8,Bob\n9,Cid\n10,Dan\n"


@pytest.fixture
def shop(in_process: None, run: Run, tmp_path: Path) -> Path:
    orders = write(tmp_path, "orders", ORDERS)
    people = write(tmp_path, "customers", CUSTOMERS)
    result = run("profile", orders, people, "--into", tmp_path / "shop")
    assert result.code == 0, result.err
    assert "orders(customer_id) in customers(id)" in result.out
    return tmp_path / "shop"


def test_as_json(shop: Path, run: Run) -> None:
    told = json.loads(run("show", shop, "inds", "--format", "json").out)
    assert told["inclusion_dependencies"] == [{**SIDES, "coverage": 1.0}]
    assert "keys" not in told["tables"]["orders"]
    told = json.loads(run("show", shop, "foreign-keys", "--format", "json").out)
    (key,) = told["foreign_keys"]
    assert {name: key[name] for name in SIDES} == SIDES
    assert 0.8 < key["score"] <= 1
    told = json.loads(run("show", shop, "--table", "customers", "--format", "json").out)
    assert len(told["inclusion_dependencies"]) == len(told["foreign_keys"]) == 1


def test_partial(shop: Path, run: Run) -> None:
    told = run("show", shop, "inds", "--min-coverage", "0.7").out
    assert "customers(id) in orders(customer_id)  (75% of the values)" in told
    assert run("show", shop, "inds", "--min-coverage", "2").code == 2


def test_kept_current(shop: Path, run: Run, tmp_path: Path) -> None:
    new = write(tmp_path, "new", "id,customer_id\n5,11\n")
    checked = run("check", shop, "--table", "orders", "--inserts", new)
    assert checked.code == 1
    assert "    orders(customer_id) in customers(id)" in checked.out
    told = run("apply", shop, "--table", "orders", "--inserts", new, "--format", "json")
    changes = json.loads(told.out)["changes"]["inclusion_dependencies"]
    assert changes["broken"] == [{**SIDES, "coverage": 0.75, "witness": []}]
    assert "no inclusion dependency" in run("show", shop, "inds").out
    assert "1 inclusion dependency lost" in run("diff", shop, 1, 2).out
    assert "orders(customer_id) in customers(id)" in run("show", shop, "inds", "--at", 1).out
    assert run("verify", shop).code == 0


def test_not_looked_for(in_process: None, run: Run, tmp_path: Path) -> None:
    orders = write(tmp_path, "orders", ORDERS)
    assert run("profile", orders, "--into", tmp_path / "k", "--kinds", "keys").code == 0
    told = run("show", tmp_path / "k", "foreign-keys")
    assert told.code == 2
    assert "--kinds keys,inds" in told.err
    assert run("profile", orders, "--into", tmp_path / "i", "--kinds", "inds").code == 0
    told = run("show", tmp_path / "i")
    assert "key" not in told.out.replace("foreign key", "")
    assert run("apply", tmp_path / "i", "--table", "orders", "--deletes", orders).code == 0
    assert run("verify", tmp_path / "i").code == 0
