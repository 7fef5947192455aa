"""Plain JSON in a topic as change rows: a record has the columns of a table, and perhaps one that
says what happened to the row. A record without a value says that the row of its key went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.model.errors import SchemaError, SourceError
from holdfast.model.names import to_alter
from holdfast.tasks import text_files
from holdfast.tasks.event_rows import flags_of
from holdfast.tasks.json_records import split
from holdfast.tasks.json_rows import Reader
from holdfast.tasks.text import Trouble
from holdfast.tasks.topics import Access, Range, records

_CAME = "insert"


@dataclass(frozen=True)
class RowRange:
    """A range of a partition whose records are rows."""

    access: Access
    range: Range
    table: str
    columns: pa.Schema
    row_key: tuple[str, ...]
    op_column: str
    given: bool  # whether records say what happened; else every one with a value came
    went: str  # what the column says of a row that went

    @property
    def schema(self) -> pa.Schema:
        """The columns of change rows."""
        if self.op_column in self.columns.names:
            return self.columns
        return self.columns.append(pa.field(self.op_column, pa.string()))


def json_rows(item: RowRange) -> Iterator[pa.RecordBatch]:
    """The change rows of a range."""
    for batch in records(item.access, item.range):
        values, keys = batch.column("value"), batch.column("key")
        offsets = batch.column("offset")
        gone = pc.is_null(values)
        if pc.any(gone).as_py() and not item.row_key:
            at = f"{item.range}, offset {pc.filter(offsets, gone)[0]}"
            raise SourceError(
                f"{at}: a record without a value says that the row of its key went; say which "
                f"columns are the key with --row-key (table {item.table!r})"
            )
        lost = pc.and_(gone, pc.is_null(keys))
        if pc.any(lost).as_py():
            at = pc.filter(offsets, lost)[0]
            raise SourceError(
                f"{item.range}, offset {at}: the record has neither a key nor a value"
            )
        rows = [
            _read(item, values.filter(pc.invert(gone)), offsets.filter(pc.invert(gone)), "value"),
            _read(item, keys.filter(gone), offsets.filter(gone), "key"),
        ]
        order = np.argsort(np.argsort(flags_of(gone), kind="stable"), kind="stable")
        table = pa.concat_tables(rows).take(pa.array(order))
        yield from table.combine_chunks().to_batches()


def lines(item: RowRange) -> Iterator[pa.RecordBatch]:
    """The values of a range as lines of JSON."""
    for batch in records(item.access, item.range):
        values = batch.column("value").drop_null().cast(pa.large_binary())
        origins = pa.array(np.ones(len(values), np.int64))
        yield pa.record_batch([values, origins], schema=text_files.SCHEMA)


def _read(item: RowRange, texts: pa.Array, offsets: pa.Array, what: str) -> pa.Table:
    """Rows from values, or from the keys of rows that went."""
    if not len(texts):
        return item.schema.empty_table()
    names = [*item.row_key] if what == "key" else item.columns.names
    if what == "value" and item.given and item.op_column not in names:
        names = [*names, item.op_column]
    schema = pa.schema([item.schema.field(name) for name in names])
    reader = Reader(schema, [(name,) for name in names], complete=what == "key")
    given = split(texts, whole=False)
    parsed = reader.parse(given)
    if isinstance(parsed, Trouble):
        raise _error(item, parsed, schema, int(offsets[int(given.lines[parsed.row])].as_py()), what)
    if not np.array_equal(given.lines, np.arange(len(texts))):
        counts = np.bincount(given.lines, minlength=len(texts))
        place = int(np.argmax(counts != 1))
        raise SourceError(
            f"{item.range}, offset {offsets[place]}: the {what} is not one record in JSON: "
            f"{_shown(texts[place].as_py())}"
        )
    if item.op_column in names and what == "value" and parsed.column(item.op_column).null_count:
        place = int(np.argmax(flags_of(pc.is_null(parsed.column(item.op_column)))))
        raise SourceError(
            f"{item.range}, offset {offsets[place]}: the value does not say what happened, in "
            f"{item.op_column!r}: {_shown(texts[place].as_py())}"
        )
    said = item.went if what == "key" else _CAME
    columns = [
        parsed.column(field.name) if field.name in names
        else pa.repeat(pa.scalar(said), len(texts)).cast(field.type) if field.name == item.op_column
        else pa.nulls(len(texts), field.type)
        for field in item.schema
    ]  # fmt: skip
    return pa.table(columns, schema=item.schema)


def _error(
    item: RowRange, trouble: Trouble, schema: pa.Schema, offset: int, what: str
) -> SourceError | SchemaError:
    where = f"{item.range}, offset {offset}"
    if trouble.kind == "field":
        return SchemaError(
            f"{where}: the {what} has the column {trouble.expected!r}, which table {item.table!r} "
            f"does not; it has {', '.join(item.columns.names)}"
            f"{to_alter([], [trouble.expected], item.table)}"
        )
    if trouble.kind == "lacks":
        return SchemaError(
            f"{where}: the {what} lacks the column {trouble.expected!r}; expected are "
            f"{', '.join(schema.names)}"
        )
    column = "" if trouble.column is None else f", column {schema.names[trouble.column]!r}"
    return SourceError(
        f"{where}{column}: unfit {what}, expected {trouble.expected}: {trouble.line!r}"
    )


def _shown(text: bytes) -> str:
    return repr(text[:80].decode("utf-8", "replace"))
