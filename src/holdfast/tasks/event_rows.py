"""Change events as rows of a table that say what happened to them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64
from holdfast.model.errors import HoldfastError, SchemaError, SourceError
from holdfast.model.names import to_alter
from holdfast.tasks.change_events import ROW, TOMBSTONE, Events, block_of
from holdfast.tasks.envelope_cells import Cells, Encoding
from holdfast.tasks.json_records import split
from holdfast.tasks.json_rows import Reader
from holdfast.tasks.json_values import Unfit
from holdfast.tasks.text import Trouble
from holdfast.tasks.unavailable import FORMER_KEY, UNAVAILABLE, completed

Flags = NDArray[np.bool_]

PLACEHOLDER = "__debezium_unavailable_value"
"""What Debezium sends for a large value that did not change, unless it is told otherwise."""

CHANGE_TYPE = "_change_type"
"""The column that says what happened to a row."""

_CAME = pa.array(["c", "r", "u", ROW])
_WENT = pa.array(["d", TOMBSTONE])
_NO_KEY = "the row has no key in the feed"


@dataclass(frozen=True)
class EventTable:
    """The table that events belong to, and what was said of how they are written."""

    topic: str
    table: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    row_key: tuple[str, ...] = ()
    encodings: Mapping[str, Encoding] = field(default_factory=dict)
    placeholder: str = PLACEHOLDER
    divided: bool = False  # whether the topic has several partitions

    @property
    def columns(self) -> pa.Schema:
        """The columns of the table."""
        return pa.schema(list(zip(self.names, self.types, strict=True)))

    @property
    def key(self) -> pa.Schema:
        """The columns of the row key."""
        return pa.schema([(name, self.columns.field(name).type) for name in self.row_key])

    @property
    def schema(self) -> pa.Schema:
        """The columns of change rows."""
        about = [
            (CHANGE_TYPE, pa.string()),
            (UNAVAILABLE, pa.list_(pa.string())),
            (FORMER_KEY, pa.struct(list(self.key))),
        ]
        return pa.schema([*self.columns, *map(pa.field, *zip(*about, strict=True))])


def change_rows(events: Events, table: EventTable) -> pa.Table:
    """The change rows of events of one partition, in their order; no event among them truncates the
    table."""
    where = f"{table.topic}, partition {events.partition}"
    came, went = (flags_of(pc.is_in(events.ops, ops)) for ops in (_CAME, _WENT))
    updated, had = flags_of(pc.equal(events.ops, "u")), flags_of(pc.is_valid(events.before))
    _expect(events, table, where, went, updated & ~had)
    images = _Images(events, table, where)
    old = np.flatnonzero((went | updated) & had)
    keyed = np.flatnonzero(went & ~had) if table.row_key else old[:0]
    new = np.flatnonzero(came)
    rows = pa.concat_tables(
        [
            images.of(old, events.before, "before"),
            images.of_keys(keyed),
            images.of(new, events.after, "after"),
        ]
    )
    of_event = np.concatenate((old, keyed, new))
    order = np.argsort(of_event, kind="stable")
    rows, of_event = rows.take(pa.array(order)), of_event[order]
    is_new = order >= len(old) + len(keyed)
    missing = _unavailable(rows, is_new, table)
    types = np.where(is_new, "insert", "delete").astype(object)
    types[is_new & updated[of_event]] = "update_postimage"
    types[~is_new & updated[of_event]] = "update_preimage"
    columns: list[Any] = rows.columns
    cells: list[list[str] | None] = [None] * len(order)
    former = pa.nulls(len(order), table.schema.field(FORMER_KEY).type)
    if missing.any():
        columns, cells, former = completed(rows, missing, is_new, of_event, events, table, where)
    return pa.table(
        [
            *columns,
            pa.array(types, pa.string()),
            pa.array(cells, pa.list_(pa.string())),
            former,
        ],
        schema=table.schema,
    )


def flags_of(values: pa.Array) -> Flags:
    """Where values are true."""
    flags: Flags = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return flags


def _expect(events: Events, table: EventTable, where: str, went: Flags, unpaired: Flags) -> None:
    """Raise an error for what cannot be applied, whatever the rows are."""

    def at_(flags: Flags) -> str:
        return f"{where}, offset {events.offsets[int(np.argmax(flags))]}"

    known = flags_of(pc.is_in(events.ops, pa.array(["c", "r", "u", "d", "m", ROW, TOMBSTONE])))
    if not known.all():
        op = events.ops[int(np.argmin(known))].as_py()
        raise SourceError(f"{at_(~known)}: the operation {op!r} is not one of c, r, u, d, t and m")
    keyed = flags_of(pc.is_valid(events.keys))
    if not table.row_key:
        rows = flags_of(pc.equal(events.ops, ROW))
        if rows.any():
            raise SourceError(
                f"{at_(rows)}: this is a row without its envelope, which does not tell what was "
                f"there before; say which row it is with --row-key (table {table.table!r})"
            )
        changed = (unpaired | went) & keyed & ~flags_of(pc.equal(events.ops, TOMBSTONE))
        if changed.any():
            raise SourceError(
                f"{at_(changed)}: a row with a key changes or goes; say which columns are the key "
                f"with --row-key {_key_of(events, changed)} (table {table.table!r})"
            )
        lacking = unpaired | (went & ~flags_of(pc.is_valid(events.before)))
        lacking &= ~flags_of(pc.equal(events.ops, TOMBSTONE))
        if lacking.any():
            raise SourceError(
                f"{at_(lacking)}: the event does not say which row changed, because table "
                f"{table.table!r} has no key; run ALTER TABLE {table.table} REPLICA IDENTITY FULL "
                "in the source, and give the rows as they are now as --snapshot"
            )
        return
    by_key = (unpaired | (went & ~flags_of(pc.is_valid(events.before)))) & keyed
    if by_key.any():
        names = _key_of(events, by_key).split(",")
        if {*names} != {*table.row_key}:
            raise SchemaError(
                f"{at_(by_key)}: the row is known by its key {', '.join(names)}, but the row "
                f"key is {', '.join(table.row_key)}; give --row-key {','.join(names)}, or let the "
                "source send whole rows (REPLICA IDENTITY FULL)"
            )
    lacking = (unpaired | went) & ~keyed & ~flags_of(pc.is_valid(events.before))
    if lacking.any():
        raise SourceError(
            f"{at_(lacking)}: the event has neither the row before nor a key; run ALTER TABLE "
            f"{table.table} REPLICA IDENTITY FULL in the source"
        )


def _key_of(events: Events, flags: Flags) -> str:
    """The columns of a key, as an option takes them."""
    return ",".join(json.loads(events.keys[int(np.argmax(flags))].as_py()))


@dataclass(frozen=True)
class _Images:
    """Reads the rows in events."""

    events: Events
    table: EventTable
    where: str

    def of(self, rows: I64, texts: pa.Array, side: str) -> pa.Table:
        """The rows that some events have on one side."""
        table = self.table
        parts, places = [], []
        enveloped = self.events.enveloped
        for schema, is_in, which in _groups(rows, self.events.schemas, enveloped):
            names, types = table.names, table.types
            cells = (
                Cells.said(names, types, table.encodings)
                if schema is None
                else Cells.of_block(names, types, block_of(schema, side if is_in else None))
            )
            others = (lambda _: False) if is_in else (lambda name: name.startswith("__"))
            reader = Reader(cells.schema, [(n,) for n in names], others=others, complete=True)
            parts.append(self._read(reader, cells, texts, which))
            places.append(which)
        return _in_order(parts, places, table.columns)

    def of_keys(self, rows: I64) -> pa.Table:
        """Rows of which only the key is known."""
        key = self.keys(rows, self.events.keys, self.events.key_schemas)
        columns = [
            key.column(field.name) if field.name in key.column_names
            else pa.nulls(len(rows), field.type)
            for field in self.table.columns
        ]  # fmt: skip
        return pa.table(columns, schema=self.table.columns)

    def keys(self, rows: I64, texts: pa.Array, schemas: pa.Array) -> pa.Table:
        """The row keys in the keys of events."""
        key = self.table.key
        parts, places = [], []
        for schema, _, which in _groups(rows, schemas, self.events.enveloped):
            cells = (
                Cells.said(key.names, key.types, self.table.encodings)
                if schema is None
                else Cells.of_block(key.names, key.types, block_of(schema, None))
            )
            reader = Reader(
                cells.schema, [(n,) for n in key.names], others=lambda _: True, complete=True
            )
            parts.append(self._read(reader, cells, texts, which))
            places.append(which)
        return _in_order(parts, places, key)

    def _read(self, reader: Reader, cells: Cells, texts: pa.Array, which: I64) -> pa.Table:
        parsed = reader.parse(split(texts.take(pa.array(which)).cast(pa.binary()), whole=False))
        if isinstance(parsed, Trouble):
            raise self._error(parsed, cells, int(which[parsed.row]))
        columns = []
        for column, array in enumerate(parsed.columns):
            try:
                columns.append(cells.converted(column, array))
            except Unfit as unfit:
                row = cells.first_unfit(column, array)
                value = array[row].as_py()
                differ = cells.differ(column)
                raise (SchemaError if differ else SourceError)(
                    f"{self._at(int(which[row]))}, column {cells.names[column]!r}: unfit value, "
                    f"expected {unfit}: {str(value)[:80]!r}{differ}"
                ) from None
            except SchemaError as untold:
                raise SchemaError(f"{self._at(int(which[0]))}: {untold}") from None
        fields = zip(cells.names, cells.types, strict=True)
        return pa.table(columns, schema=pa.schema(list(fields)))

    def _error(self, trouble: Trouble, cells: Cells, event: int) -> HoldfastError:
        where, table = self._at(event), self.table.table
        if trouble.kind == "field":
            return SchemaError(
                f"{where}: the row has the column {trouble.expected!r}, which table {table!r} does "
                f"not; it has {', '.join(cells.names)}{to_alter([], [trouble.expected], table)}"
            )
        if trouble.kind == "lacks":
            return SchemaError(
                f"{where}: the row lacks the column {trouble.expected!r}; table {table!r} has "
                f"{', '.join(cells.names)}{to_alter([trouble.expected], [], table)}"
            )
        if trouble.column is None:
            return SourceError(
                f"{where}: unfit value, expected {trouble.expected}: {trouble.line!r}"
            )
        differ = cells.differ(trouble.column)
        return (SchemaError if differ else SourceError)(
            f"{where}, column {cells.names[trouble.column]!r}: unfit value, expected "
            f"{trouble.expected}: {trouble.line!r}{differ}"
        )

    def _at(self, event: int) -> str:
        return f"{self.where}, offset {self.events.offsets[event]}"


def _groups(
    rows: I64, schemas: pa.Array, enveloped: pa.Array
) -> Iterator[tuple[str | None, bool, I64]]:
    """The events that are written in the same way: their schema block, whether they have an
    envelope, and which they are."""
    if not rows.size:
        return
    taken = schemas.take(pa.array(rows)).dictionary_encode()
    codes = pc.fill_null(taken.indices, -1).to_numpy(zero_copy_only=False)
    inside = flags_of(enveloped)[rows]
    for code in np.unique(codes):
        schema = taken.dictionary[int(code)].as_py() if code >= 0 else None
        for is_in in (True, False):
            which = rows[(codes == code) & (inside == is_in)]
            if which.size:
                yield schema, is_in, which


def _in_order(parts: list[pa.Table], places: list[I64], schema: pa.Schema) -> pa.Table:
    """Parts of some rows, put together in the order of the rows."""
    if not parts:
        return schema.empty_table()
    together = pa.concat_tables(parts).combine_chunks()
    if len(parts) == 1:
        return together
    return together.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))


def _unavailable(rows: pa.Table, is_new: Flags, table: EventTable) -> Flags:
    """Which cells of which rows are not given, because they are large and did not change."""
    missing = np.zeros((rows.num_rows, len(table.names)), np.bool_)
    for column, kind in enumerate(table.types):
        forms = _placeholders(table.placeholder, kind)
        cells = rows.column(column).combine_chunks() if forms else None
        if cells is None:
            continue
        if at.is_list(kind):
            lengths = pc.list_value_length(cells)
            likely = pc.is_in(lengths, pa.array({len(form) for form in forms}, lengths.type))
            for row in np.flatnonzero(flags_of(likely)).tolist():
                missing[row, column] = cells[row].as_py() in forms
        else:
            missing[:, column] = flags_of(pc.is_in(cells, pa.array(forms, kind)))
    missing &= is_new[:, None]
    return missing


def _placeholders(text: str, kind: pa.DataType) -> list[Any]:
    """What stands for an unavailable value of a type."""
    if at.is_string(kind):
        return [text]
    if at.is_binary(kind):
        return [text.encode()]
    if at.is_list(kind):
        inner = kind.value_type
        if at.is_string(inner):
            name = uuid.UUID(bytes=_md5(text.encode()), version=3)
            return [[text], [str(name)]]
        if at.is_binary(inner):
            return [[text.encode()]]
        if at.is_integer(inner):
            return [list(text.encode())]
    return []


def _md5(data: bytes) -> bytes:
    import hashlib

    return hashlib.md5(data, usedforsecurity=False).digest()
