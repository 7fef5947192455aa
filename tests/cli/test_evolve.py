"""Columns that change, end to end, on both engines: they join with batches, changes and feeds, and
are altered by hand."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.steps import run_steps

SPARK = ["--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1"]

FEED = "--table t --from in --row-key id"
STEPS = [
    "profile t.json --into p",
    "apply p --table t --inserts new.json",  # a field that the table lacks
    "apply p --table t --inserts new.json --evolve",
    "apply p --table t --changes changes.json --row-key id",
    "apply p --table t --changes changes.json --row-key id --evolve",
    f"follow p {FEED}",
    f"follow p {FEED} --evolve --max-files 10",
    "alter p --table t --rename-column paid=was_paid --drop-column z",
    "alter p --table t --add-column c=bigint",
    f"follow p {FEED} --status --format json",
    "verify p",
    "show p columns --format json",
    "history p --format json",
]
FAIL = {1, 3, 5}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["process", pytest.param("spark", marks=pytest.mark.spark)])
def test_columns_that_change(tmp_path: Path, engine: str) -> None:
    (tmp_path / "t.json").write_text('{"id": 1, "n": "a"}\n{"id": 2}\n')
    (tmp_path / "new.json").write_text('{"id": 3, "z": 1}\n{"id": 4, "z": 2.5, "n": "b"}\n')
    (tmp_path / "changes.json").write_text(
        '{"_change_type": "delete", "id": 3}\n{"_change_type": "insert", "id": 5, "paid": true}\n'
    )
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text('{"id": 6, "n": "c"}\n')
    (folder / "2.csv").write_text("id,n,z,paid,city\n6,d,7.5,false,Rome\n")
    amount = pa.array([Decimal("1.50")], pa.decimal128(10, 2))
    columns = {"id": [7], "n": ["e"], "z": [0.5], "paid": [False], "city": ["Oslo"]}
    pq.write_table(pa.table({**columns, "amount": amount}), folder / "3.parquet")
    more = SPARK if engine == "spark" else ["--engine", "process"]
    commands = [["holdfast", *step.split()] for step in STEPS]
    commands = [[*each, *more] if each[1] not in ("show", "history") else each for each in commands]
    told, errors = run_steps(tmp_path, commands)
    assert [code for _, code in told] == [2 if k in FAIL else 0 for k in range(len(STEPS))], errors
    assert errors.count("--evolve lets it join as nulls in the rows that are there") == 3
    assert "3.parquet" in told[6][0]
    (status,) = json.loads(told[9][0])["feeds"]
    assert (status["behind"], status["stopped"]) == ("", None)
    (table,) = json.loads(told[11][0])["tables"].values()
    assert [(each["name"], each["type"], each["nulls"]) for each in table["column_facts"]] == [
        ("id", "bigint", 0), ("n", "string", 2), ("was_paid", "boolean", 3), ("city", "string", 4),
        ("amount", "decimal(10,2)", 5), ("c", "bigint", 6),
    ]  # fmt: skip
    versions = json.loads(told[12][0])["versions"]
    assert [each["event"] for each in versions if "column" in (each.get("event") or "")] == [
        "table t: column z added as double",
        "table t: column paid added as boolean",
        "table t: column city added as string",
        "table t: column amount added as decimal(10,2)",
        "table t: column z dropped, paid renamed to was_paid",
        "table t: column c added as bigint",
    ]
