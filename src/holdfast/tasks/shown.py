"""Raw rows as JSON text, for witnesses and examples."""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.tasks import nanoseconds
from holdfast.tasks.segments import Segment, read_raw


def rows_as_text(
    root: str, segments: tuple[Segment, ...], names: tuple[str, ...], ids: NDArray[np.int64]
) -> dict[int, str]:
    """The rows with these ids as JSON objects; only with their ids if raw rows are not kept."""
    texts: dict[int, str] = {}
    for segment in segments:
        of_segment = np.unique(ids[ids >> 32 == segment.number])
        if not of_segment.size:
            continue
        if segment.raw is None:
            texts |= {id_: json.dumps({"row": id_}) for id_ in of_segment.tolist()}
            continue
        table = read_raw(Path(root), segment, of_segment - segment.base)
        columns = [cells(column) for column in table.columns]
        for id_, values in zip(of_segment.tolist(), zip(*columns, strict=True), strict=True):
            row = {name: plain(cell) for name, cell in zip(names, values, strict=True)}
            texts[id_] = json.dumps(row, ensure_ascii=False)
    return texts


def cells(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column. Invalid UTF-8 in texts from Spark becomes U+FFFD. Nanoseconds are
    texts, as Python has no type for them."""
    try:
        if nanoseconds.holds_nanos(column.type):
            return nanoseconds.cells(column)
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return [_cell(cell) for cell in column]


def _cell(cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        whole = isinstance(cell, pa.StringScalar)
        return str(cell.as_buffer(), "utf-8", "replace") if whole else "\ufffd"


def plain(value: Any) -> Any:
    """A cell in a form that JSON has."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(name): plain(cell) for name, cell in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
