"""The same rows as a file of some format, or as a table in memory."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast import Source
from tests.strategies import Rows

FORMS = ("csv", "json", "parquet", "table")

_numbers = count()


def given_as(form: str, folder: Path, width: int, rows: Rows) -> Any:
    """Rows of integers, in columns c0, c1, …"""
    names = [f"c{c}" for c in range(width)]
    columns = [pa.array([row[c] for row in rows], pa.int64()) for c in range(width)]
    table = pa.table(columns, names=names)
    if form == "table":
        return table
    path = folder / f"rows-{next(_numbers)}.{form}"
    if form == "parquet":
        pq.write_table(table, path, row_group_size=2)
        return str(path)
    if form == "json":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    else:
        cells = [['""' if cell is None else str(cell) for cell in row] for row in rows]
        lines = [",".join(names), *map(",".join, cells)]
    path.write_text("".join(line + "\n" for line in lines))
    return Source(str(path), schema=", ".join(f"{name} bigint" for name in names))
