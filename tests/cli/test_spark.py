"""The command line on Spark, in a process of its own, as a user would run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.sample import copy_to
from tests.steps import run_steps

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPARK = ["--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1", "--quiet"]


def test_a_gate_before_a_load(tmp_path: Path) -> None:
    copy_to(tmp_path)
    profile = ["holdfast", "profile", "customers.csv", "--into", "shop", *SPARK]
    verify = ["holdfast", "verify", "shop", "--quiet"]
    batch = ["shop", "--table", "customers", "--quiet", "--inserts"]
    check = ["holdfast", "check", *batch, "tuesday/customers-inserts.csv"]
    change = ["holdfast", "apply", *batch, "x.csv"]
    told = run_steps(tmp_path, [profile, verify, check, change])
    assert [code for _, code in told.steps] == [0, 0, 1, 2]
    gate, nothing = (printed for printed, _ in told.steps[2:])
    assert "1 key would break" in gate
    assert "femi.dubois42@example.com" in gate
    assert nothing == ""
    # Neither Spark nor what went well has said a word.
    assert told.errors.startswith("error: x.csv")
    assert told.errors.count("\n") == 1
