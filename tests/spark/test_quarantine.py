"""Quarantined rows, in the format in which they came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast import Options, Profile, Source

pytestmark = pytest.mark.spark


def test_rows_stay_in_their_format(spark: SparkSession, tmp_path: Path) -> None:
    orders, people = tmp_path / "orders.csv", tmp_path / "people.csv"
    orders.write_text("id;customer;note\n1;1;a\n2;2;\n")
    people.write_text("id;name\n1;Ann\n2;Bob\n3;Eve\n")
    source = {each.stem: Source(str(each), delimiter=";") for each in (orders, people)}
    profile = Profile.create(
        tmp_path / "shop", source, options=Options(kinds=("keys",)), session=spark
    )
    profile.expect("orders: key(id)", "orders(customer) in people(id)")
    shelf = tmp_path / "quarantine"

    new = tmp_path / "new.csv"
    new.write_text('id;customer;note\n1;3;"x;y"\n4;9;\n5;3;\n')
    told = profile.apply("orders", inserts=new, quarantine=shelf, batch_id="monday")
    assert (told.applied, told.inserted, told.stops) == (True, 1, False)
    left = told.quarantined
    assert left is not None
    assert left.rules == {"orders: key(id)": 1, "orders(customer) in people(id)": 1}
    lines = sorted(line for name in left.files for line in (shelf / name).read_text().splitlines())
    assert lines == sorted(
        [
            *["id;customer;note;_holdfast_rule;_holdfast_clash"] * len(left.files),
            '1;3;"x;y";orders: key(id);"{""id"": 1, ""customer"": 1, ""note"": ""a""}"',
            "4;9;;orders(customer) in people(id);",
        ]
    )
    again = profile.apply("orders", inserts=new, quarantine=shelf, batch_id="monday")
    assert (again.applied_before, again.quarantined) == (True, left)
    assert sorted(each.name for each in shelf.iterdir()) == sorted(left.files)

    # A row that others refer to stays, and so does the old row of an update that breaks a rule.
    gone = tmp_path / "gone.json"
    gone.write_text('{"id": 1, "name": "Ann"}\n')
    told = profile.apply("people", deletes=gone, quarantine=shelf)
    assert (told.deleted, told.rows) == (0, 3)
    assert told.quarantined is not None
    (name,) = told.quarantined.files
    (row,) = map(json.loads, (shelf / name).read_text().splitlines())
    assert (row["id"], row["_holdfast_rule"]) == (1, "orders(customer) in people(id)")
    assert json.loads(row["_holdfast_clash"])["id"] == 1
    frame = spark.createDataFrame([(5, 7, "z")], "id bigint, customer bigint, note string")
    told = profile.apply("orders", updates=frame, row_key=["id"], quarantine=shelf)
    assert (told.updated, told.rows) == (0, 3)
    assert told.quarantined is not None
    assert told.quarantined.kinds == {"updates": 1}
    assert told.quarantined.files[0].endswith(".parquet")
    assert profile.history()[2].by_table["orders"].quarantined == left
    assert profile.verify().equal
