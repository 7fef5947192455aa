"""The command line on Spark, in a process of its own, as a user would run it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from holdfast.sample import copy_to
from tests.cli.test_tutorial import README, blocks
from tests.steps import run_steps

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPARK = ["--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1", "--quiet"]
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
NEXT = "import os; os.chdir('readme'); print('And now the README', file=sys.stderr, flush=True)"


def test_a_gate_before_a_load_and_what_the_readme_shows(tmp_path: Path) -> None:
    """The README's sessions and its program are run in order, on its own tables, and print what it
    says. All of this in one process, as most of what it takes is the start of Spark."""
    copy_to(tmp_path)
    profile = ["holdfast", "profile", "customers.csv", "--into", "shop", *SPARK]
    verify = ["holdfast", "verify", "shop", "--quiet"]
    batch = ["shop", "--table", "customers", "--quiet", "--inserts"]
    check = ["holdfast", "check", *batch, "tuesday/customers-inserts.csv"]
    change = ["holdfast", "apply", *batch, "x.csv"]

    (tmp_path / "readme").mkdir()
    for name, table in zip(("bookings.csv", "new.csv"), blocks(README, "csv"), strict=True):
        (tmp_path / "readme" / name).write_text(table, "utf-8")
    sessions = "".join(blocks(README, "console"))
    shown = [step.partition("\n")[::2] for step in re.split(r"^\$ ", sessions, flags=re.M)[1:]]
    (program,) = blocks(README, "python")
    printed = README.split(program)[1].split("```\n")[2]

    gate = [profile, verify, check, change]
    readme = [*(shlex.split(command) for command, _ in shown), program]
    told, errors = run_steps(tmp_path, [*gate, NEXT, *readme])

    assert [code for _, code in told[:4]] == [0, 0, 1, 2]
    refused, nothing = (out for out, _ in told[2:4])
    assert "1 key would break" in refused
    assert "femi.dubois42@example.com" in refused
    assert nothing == ""
    # Neither Spark nor what went well has said a word.
    said = errors.split("And now the README")[0]
    assert said.startswith("error: x.csv")
    assert said.count("\n") == 1

    expected = [(out, int(" check " in command)) for command, out in shown] + [(printed, 0)]
    for (out, code), (promised, expected_code) in zip(told[5:], expected, strict=True):
        assert (MOMENT.sub("", out), code) == (MOMENT.sub("", promised), expected_code), errors
