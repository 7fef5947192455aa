"""Looking at a profile starts no JVM and imports nothing that takes long to import."""

from __future__ import annotations

from pathlib import Path

from tests.steps import run_steps

IMPORTED = """
import sys
print(*sys.modules)
"""


def test_it_is_quick(shop: Path) -> None:
    commands = [
        ["--version"],
        ["--help"],
        ["show", str(shop)],
        ["show", str(shop), "keys", "--format", "json"],
        ["history", str(shop)],
        ["diff", str(shop), "1", "1"],
    ]
    told = run_steps(shop, [*(["holdfast", *each] for each in commands), IMPORTED])
    assert [code for _, code in told.steps] == [0] * 7, told.errors
    imported = set(told.steps[-1][0].split())
    assert imported.isdisjoint({"pyspark", "numba", "pandas", "py4j", "scipy", "pyarrow.compute"})
    # What is imported is what such commands take their time for, on a machine of any speed.
    assert 100 < len(imported) < 700
