"""One rule on Spark: as tasks over files, in few jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from tests.spark.test_jobs import counted

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, day string, seat int, name string"


def test_every_form_of_rule(
    spark: SparkSession, frame: Callable[..., DataFrame], tmp_path: Path
) -> None:
    rows = [(i, f"d{i % 7}", i // 7, None if i % 5 else "n") for i in range(60)]
    seats = frame("seat int", *[(i,) for i in range(8)])
    tables = {"t": frame(SCHEMA, *rows), "seats": seats}
    kept = Profile.create(tmp_path / "p", tables, options=Options(), session=spark)
    with counted(spark) as jobs:
        told = kept.explain("t: key(day)")
    assert jobs.number == 1
    assert (told.violations.rows, told.violations.groups) == (60, 7)
    assert told.violations.removal is not None
    assert told.violations.removal.at_least == 53
    with counted(spark) as jobs:
        assert kept.explain("t: seat -> name").violations.groups == 8
        told = kept.explain("t(seat) in seats(seat)")
        assert kept.explain("t: name not null").violations.rows == 48
    assert jobs.number == 3
    assert (told.violations.rows, told.violations.groups) == (4, 1)
    assert [row["id"] for row in told.violations.examples[0].shown] == [56, 57, 58, 59]
    with counted(spark) as jobs:
        told = kept.explain("t: not (t.id < s.id and t.seat > s.seat)")
    assert told.holds
    assert jobs.number <= 4, "cells are coded and compared, for the rule and for its parts"
    told = kept.explain("t: not (t.id < s.id and t.seat < s.seat)")
    assert told.violations.rows == 60
