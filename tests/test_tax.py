"""The tax records: what is planted in them holds, and they are the same every time."""

from __future__ import annotations

from itertools import permutations
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from benchmarks import tax
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.grammar import parse

OPERATORS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def violations(rule: str, rows: list[dict[str, Any]]) -> int:
    constraint = parse(rule)
    assert isinstance(constraint, DenialConstraint)
    found = 0
    for t, s in permutations(rows, 2):
        pair = {"t": t, "s": s}
        found += all(
            OPERATORS[p.op](pair[p.left[0]][p.left[1]], pair[p.right[0]][p.right[1]])
            for p in constraint.predicates
        )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_rules_hold(seed: int) -> None:
    # Few states, so that many rows share one.
    table = tax.rows(20_000, seed)
    some = pa.compute.is_in(table["state"], pa.array(["AL", "CA"]))
    rows = table.filter(some).slice(0, 300).to_pylist()
    assert {rule: violations(rule, rows) for rule in tax.planted()} == dict.fromkeys(
        tax.planted(), 0
    )


def test_planted_rules_would_show_violations() -> None:
    """No rule holds because nothing satisfies its predicates but the last."""
    rows = tax.rows(20_000).filter(pa.compute.field("state") == "AK").slice(0, 300).to_pylist()
    for rule in tax.planted():
        constraint = parse(rule)
        assert isinstance(constraint, DenialConstraint)
        shorter = DenialConstraint(constraint.table, constraint.predicates[:1])
        assert violations(str(shorter), rows), rule


def test_rows_depend_on_the_seed_and_their_number_alone() -> None:
    assert tax.rows(1_000).slice(0, 100).equals(tax.rows(100))
    assert not tax.rows(100, seed=1).equals(tax.rows(100))
    assert tax.rows(0).num_rows == 0


def test_area_code_and_phone_are_a_key_of_many_rows() -> None:
    table = tax.rows(100_000).select(["area_code", "phone"])
    assert table.group_by(["area_code", "phone"]).aggregate([]).num_rows == table.num_rows
    assert table["phone"].combine_chunks().unique().__len__() == tax.NUMBERS


def test_files(tmp_path: Path) -> None:
    tax.write(tmp_path / "tax.parquet", 50)
    tax.write(tmp_path / "tax.csv", 50)
    assert pq.read_table(tmp_path / "tax.parquet").equals(tax.rows(50))
    types = pyarrow.csv.ConvertOptions(column_types=tax.SCHEMA)
    assert pyarrow.csv.read_csv(tmp_path / "tax.csv", convert_options=types).equals(tax.rows(50))
