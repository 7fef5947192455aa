"""A row input: rows to be read, from whatever source, and what is known about them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from holdfast.input.type_names import widens
from holdfast.model.commits import ColumnsRecord, SourceRecord
from holdfast.model.errors import BatchError, SchemaError
from holdfast.model.names import lacking, to_alter
from holdfast.model.precision import in_microseconds
from holdfast.tasks.row_format import RowFormat


@dataclass(frozen=True)
class Columns:
    """The columns of a table: their names, the names of their types, and their Arrow types.

    Inside Holdfast columns go by position, so the Arrow schema calls them ``c0``, ``c1``, …
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    given: pa.Schema  # of rows as they come
    concealed: bool = False  # whether keyed hashes are kept in place of the cells

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow types of the stored cells."""
        if not self.concealed:
            return self.given
        from holdfast.tasks.concealing import concealed_schema

        return concealed_schema(self.given)

    @staticmethod
    def of(names: list[str], types: list[str], arrow: list[pa.DataType]) -> Columns:
        """Columns from their parts."""
        schema = pa.schema([(f"c{i}", kind) for i, kind in enumerate(arrow)])
        return Columns(tuple(names), tuple(types), schema)

    def pick(self, places: list[int]) -> Columns:
        """Only these columns, in this order."""
        picked = Columns.of(
            [self.names[p] for p in places],
            [self.types[p] for p in places],
            [self.given.field(p).type for p in places],
        )
        return replace(picked, concealed=self.concealed)

    def family(self, place: int) -> str:
        """The family of a column: only values of one family can be equal."""
        from holdfast.tasks.values import family

        return family(self.types[place], self.given.field(place).type)

    def position(self, name: str, table: str) -> int:
        """The position of a column; an error that lists all columns if there is none of this
        name."""
        if name not in self.names:
            raise SchemaError(lacking(f"table {table!r}", "column", name, self.names))
        return self.names.index(name)

    @property
    def record(self) -> ColumnsRecord:
        """What a commit stores."""
        packed = base64.b64encode(self.given.serialize().to_pybytes()).decode()
        return ColumnsRecord(self.names, self.types, packed, self.concealed)

    @staticmethod
    def stored(record: ColumnsRecord) -> Columns:
        """The columns that a commit stored."""
        given = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(record.arrow)))
        return Columns(record.names, record.types, given, record.concealed)


@dataclass(frozen=True)
class RowInput(RowFormat):
    """Rows to be read once: ``rows`` is a DataFrame, an Arrow table, or parts that tasks fetch."""

    label: str  # what messages call it: a file, or "the inserts"
    columns: Columns
    rows: Any
    source: SourceRecord = field(default_factory=SourceRecord)  # stored with a table
    file: Callable[[int], str | None] = lambda _: None  # the name of the file with an origin

    @property
    def is_json(self) -> bool:
        """Whether the rows are records of JSON, whose columns may not be known yet."""
        return self.source.format == "json"

    def typed(self, columns: Columns) -> RowInput:
        """The same rows, read as these columns."""
        return replace(self, columns=columns, guessed=False)


def fitted(row_input: RowInput, table: str, expected: Columns) -> RowInput:
    """The row input of a batch with the columns of its table, in the table's order; an error if
    they differ.

    Text has no types of its own, so lines and JSON are read as the types of the table.
    """
    missing = [name for name in expected.names if name not in row_input.columns.names]
    added = [name for name in row_input.columns.names if name not in expected.names]
    if missing or added:
        lacks = f"lacks the column {missing[0]!r}" if missing else ""
        has = f"has the column {added[0]!r}, which the table does not" if added else ""
        raise SchemaError(
            f"{row_input.label} {' and '.join(filter(None, [lacks, has]))}; "
            f"table {table!r} has {', '.join(expected.names)}"
            f"{to_alter(missing, added, table)}"
        )
    order = tuple(expected.names.index(name) for name in row_input.columns.names)
    if row_input.json:
        paths = dict(zip(row_input.columns.names, row_input.json, strict=True))
        return replace(
            row_input, columns=expected, json=tuple(paths[name] for name in expected.names)
        )
    if row_input.lines is None:
        # A column of nulls alone fits every type; times of both precisions fit, value by value.
        for place, column in enumerate(order):
            given, stored = row_input.columns.types[place], expected.types[column]
            if given != "void" and in_microseconds(given) != in_microseconds(stored):
                kinds = (
                    (stored, expected.given.field(column).type),
                    (given, row_input.columns.given.field(place).type),
                )
                what = "--evolve makes it wider, too" if widens(*kinds) else "cast it"
                raise SchemaError(
                    f"{row_input.label}: column {expected.names[column]!r} is {given}, but "
                    f"{stored} in table {table!r}; {what}, or profile the table again"
                )
        # Typed rows are picked column by column, so the order says where to take each from.
        order = tuple(row_input.columns.names.index(name) for name in expected.names)
    return replace(
        row_input,
        columns=expected,
        given=row_input.given or row_input.columns.given,
        order=() if order == tuple(range(len(order))) else order,
        guessed=False,
    )


def expect_batch(
    table: str,
    columns: Columns,
    given: Collection[str],
    row_key: Sequence[str] = (),
    batch_id: str | None = None,
    insert_only: bool = False,
    if_exists: bool = False,
    allow_shrink: bool = False,
) -> None:
    """Raise an error for a batch that makes no sense, whatever its rows are.

    ``given`` are its kinds of changes: inserts, deletes, updates, upserts; or a snapshot.
    """
    if not given:
        raise BatchError(
            f"table {table!r}: an empty batch: give inserts, deletes, updates or upserts, or a "
            "snapshot"
        )
    if "snapshot" in given and len(given) > 1:
        raise BatchError(
            f"table {table!r}: a snapshot has all rows as they are now, so there is nothing beside "
            "it to insert, delete or update; give it alone"
        )
    if "snapshot" in given and row_key:
        raise BatchError(
            f"table {table!r}: --row-key says which rows deletes and updates mean; a snapshot is "
            "compared row by row, so leave --row-key out"
        )
    if allow_shrink and "snapshot" not in given:
        raise BatchError(
            f"table {table!r}: --allow-shrink is about snapshots, and there is none; leave it out"
        )
    if if_exists and "deletes" not in given:
        raise BatchError(
            f"table {table!r}: --if-exists is about deletes, and there are none: give them, or "
            "leave it out"
        )
    _expect_id(batch_id)
    if insert_only and set(given) != {"inserts"}:
        raise BatchError(
            f"table {table!r}: this profile was made with --insert-only and counts no values, "
            "so it takes inserts only; profile the tables anew without it to delete or update"
        )
    for kind in ("updates", "upserts"):
        if kind in given and not row_key:
            raise BatchError(
                f"table {table!r}: {kind} need --row-key: the columns that tell which row is meant"
            )
    if row_key and set(given) == {"inserts"}:
        raise BatchError(
            f"table {table!r}: --row-key says which rows deletes and updates mean, but there are "
            "inserts alone, which add every row as a new one; give the rows as --updates to "
            "replace those with the same key, as --upserts to insert the others, or "
            "leave --row-key out"
        )
    for name in row_key:
        columns.position(name, table)


def expect_changes(
    table: str, columns: Columns, row_key: Sequence[str] = (), batch_id: str | None = None
) -> None:
    """Raise an error for change rows that make no sense, whatever they are."""
    _expect_id(batch_id)
    for name in row_key:
        columns.position(name, table)


def _expect_id(batch_id: str | None) -> None:
    if batch_id is not None and not batch_id.strip():
        raise BatchError(
            "the batch id is empty, so the batch could not be known again; give --batch-id a name "
            "that is the batch's own, or leave it out to apply the rows as a new batch every time"
        )
