"""The command line on Spark, in processes of its own, as a user would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.sample import copy_to

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def holdfast(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_gate_before_a_load(tmp_path: Path) -> None:
    copy_to(tmp_path)
    spark = ["--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1", "--quiet"]
    made = holdfast(tmp_path, "profile", "customers.csv", "--into", "shop", *spark)
    assert (made.returncode, made.stderr) == (0, "")

    batch = ["shop", "--table", "customers", "--inserts", "tuesday/customers-inserts.csv"]
    gate = holdfast(tmp_path, "check", *batch, *spark)
    assert (gate.returncode, gate.stderr) == (1, "")
    assert "1 key would break" in gate.stdout
    assert "femi.dubois42@example.com" in gate.stdout

    verified = holdfast(tmp_path, "verify", "shop", *spark)
    assert (verified.returncode, verified.stderr) == (0, "")

    missing = holdfast(
        tmp_path, "apply", "shop", "--table", "customers", "--inserts", "x.csv", *spark
    )
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("error: x.csv")
    assert missing.stderr.count("\n") == 1
