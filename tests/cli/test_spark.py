"""The command line on Spark, in processes of its own, as a user would run it."""

from __future__ import annotations

import subprocess
import sys
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
    change = ["holdfast", "apply", "shop", "--table", "customers", "--inserts", "x.csv", "--quiet"]
    told = run_steps(tmp_path, [profile, verify, change])
    assert [code for _, code in told.steps] == [0, 0, 2]
    assert told.steps[-1][0] == ""
    # Neither Spark nor what went well has said a word.
    assert told.errors.startswith("error: x.csv")
    assert told.errors.count("\n") == 1

    batch = ["shop", "--table", "customers", "--inserts", "tuesday/customers-inserts.csv"]
    gate = subprocess.run(
        [sys.executable, "-m", "holdfast", "check", *batch, *SPARK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (gate.returncode, gate.stderr) == (1, "")
    assert "1 key would break" in gate.stdout
    assert "femi.dubois42@example.com" in gate.stdout
