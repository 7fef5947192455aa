"""Where the real tables are, when they are there."""

from __future__ import annotations

import csv
import os
from pathlib import Path

MISSING = "no real tables: set HOLDFAST_DATA to their folder"


def data_dir() -> Path | None:
    """The folder of real tables: $HOLDFAST_DATA, or shared/data beside the checkout."""
    named = os.environ.get("HOLDFAST_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    return folder if (folder / "known-results.json").is_file() else None


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file, every cell as text."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows
