"""The example notebook runs, and shows what it has stored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import notebooks

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_it_shows_what_it_has_stored(
    path: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = notebooks.run(path)
    assert any("text/html" in each for each in shown)
    for cell, told in zip(notebooks.code_cells(path), shown, strict=True):
        stored = {
            kind: "".join(lines) for each in cell["outputs"] for kind, lines in each["data"].items()
        }
        now = {k: MOMENT.sub("", text) for k, text in told.items()}
        assert now == {k: MOMENT.sub("", text) for k, text in stored.items()}
