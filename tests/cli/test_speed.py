"""Looking at a profile needs neither a JVM nor kernels, and takes less than a second."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["show", "SHOP"],
        ["show", "SHOP", "keys", "--format", "json"],
        ["history", "SHOP"],
        ["diff", "SHOP", "1", "1"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_it_is_quick(shop: Path, arguments: list[str]) -> None:
    command = [str(shop) if each == "SHOP" else each for each in arguments]
    # Processor time, because the machine may be busy with other tests.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr
    imported = {line.rsplit("|", 1)[-1].strip() for line in result.stderr.splitlines()}
    assert imported.isdisjoint({"pyspark", "numba", "pandas", "py4j"})
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0
