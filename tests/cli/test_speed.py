"""Looking at a profile starts no JVM and imports nothing that takes long to import."""

from __future__ import annotations

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
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    imported = {line.rsplit("|", 1)[-1].strip() for line in result.stderr.splitlines()}
    assert imported.isdisjoint({"pyspark", "numba", "pandas", "py4j", "scipy", "pyarrow.compute"})
    # What is imported is what such a command takes its time for, on a machine of any speed.
    assert len(imported) < 700
