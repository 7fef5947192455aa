"""Files of quarantined rows are read back as the rows that they were."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc
from pyarrow import parquet as pq

from holdfast.tasks import quarantine
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.text import parse, plain, records
from tests.strategies import examples

TEXT = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(';,"\\\n\r ä')), min_size=1
)
DIALECTS = st.builds(
    Dialect, delimiter=st.sampled_from(",;\t|"), escape=st.sampled_from([None, "\\"])
)


@settings(max_examples=examples(60), deadline=None)
@given(
    rows=st.lists(st.tuples(st.none() | TEXT, st.none() | TEXT), min_size=1, max_size=4),
    dialect=DIALECTS,
)
def test_lines_are_read_back(rows: list[tuple[str | None, ...]], dialect: Dialect) -> None:
    # A file of quarantined rows has a rule in every row, so that no line is empty.
    rows = [(*row, "rule") for row in rows]
    text = "".join(quarantine._line(row, dialect) for row in rows)
    schema = pa.schema([(f"c{c}", pa.string()) for c in range(3)])
    lines = plain(records(text.encode()), dialect) if dialect.escape else records(text.encode())
    read = parse(lines, schema, dialect.delimiter)
    assert isinstance(read, pa.RecordBatch), read
    assert [tuple(row.values()) for row in read.to_pylist()] == rows


ROWS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), [1, -(1 << 63), None]),
    "x": (pa.float64(), [0.1, 1e300, None]),
    "d": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.05"), None]),
    "day": (pa.date32(), [dt.date(2026, 1, 2), dt.date(1, 1, 1), None]),
    "at": (pa.timestamp("us"), [dt.datetime(2026, 1, 2, 3, 4, 5, 678901), None, None]),
    "ok": (pa.bool_(), [True, False, None]),
    "text": (pa.string(), ["a;b", 'say "x"', None]),
    quarantine.RULE: (pa.string(), ["r"] * 3),
}


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "orc"])
def test_every_format(tmp_path: Path, form: str) -> None:
    table = pa.table({name: pa.array(cells, type_) for name, (type_, cells) in ROWS.items()})
    names = tuple(name for name in ROWS if name != quarantine.RULE)
    dialect = Dialect(delimiter=";")
    clash = pa.array([None, '{"n": 1}', None], pa.string())
    table = table.append_column(quarantine.CLASH, clash)
    path = tmp_path / "rows"
    quarantine._written(table, path, quarantine.Layout(form, names, dialect, True))
    if form == "csv":
        header, _, body = path.read_bytes().partition(b"\n")
        assert header.decode().split(";") == table.column_names
        schema = pa.schema([(f"c{c}", type_) for c, type_ in enumerate(table.schema.types)])
        read = parse(records(body), schema, ";")
        assert isinstance(read, pa.RecordBatch), read
        columns = [column.to_pylist() for column in read.columns]
        assert columns == [column.to_pylist() for column in table.columns]
    elif form == "json":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["n"] for row in rows] == table.column("n").to_pylist()
        assert [row[quarantine.CLASH] for row in rows] == clash.to_pylist()
    else:
        read_back = pq.read_table(path) if form == "parquet" else orc.read_table(path)
        columns = [column.to_pylist() for column in table.columns]
        assert [column.to_pylist() for column in read_back.columns] == columns
