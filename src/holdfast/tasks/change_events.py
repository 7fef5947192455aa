"""Records of a topic as change events: what Debezium writes in JSON, in each of its forms.

An *envelope* has what happened (``op``), the row before and after it, and where in the source it
was. The transform ``ExtractNewRecordState`` leaves the row alone (it is *unwrapped*). Both come
with a schema block around them or without one. A record without a value, a *tombstone*, follows a
delete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64
from holdfast.model.errors import SourceError
from holdfast.tasks.json_records import Records, split
from holdfast.tasks.json_rows import Reader
from holdfast.tasks.text import Trouble

RECORDS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("other_key", pa.binary()),  # where a key changed the new or the old one, from the headers
    ]
)
"""Records of a topic, in the order of their offsets."""

TOMBSTONE = "tombstone"
"""What happened, according to a record without a value: its row went, if it had not before."""

ROW = "row"
"""What happened, according to a row without an envelope: it is as it is now."""

_ENVELOPE = ("op", "before", "after", "source", "transaction")
_BLOCK = ("schema", "payload")
_UNWRAPPED = ("__op", "__deleted")
_TOP = (*_BLOCK, *_ENVELOPE, *_UNWRAPPED)
_NOTHING = r'^\s*\{\s*"schema"\s*:\s*null\s*,\s*"payload"\s*:\s*null\s*\}\s*$'
_SOURCE = pa.schema(
    [
        ("lsn", pa.int64()),
        ("txId", pa.string()),
        ("sequence", pa.string()),
        ("snapshot", pa.string()),
        ("schema", pa.string()),
        ("table", pa.string()),
    ]
)
_TRANSACTION = pa.schema([("id", pa.string()), ("total_order", pa.int64())])


@dataclass(frozen=True)
class Events:
    """Change events of one partition, in the order of their offsets. Texts are JSON."""

    partition: int
    offsets: I64
    ops: pa.Array  # of the envelope: c, r, u, d, t, m; or TOMBSTONE or ROW
    before: pa.Array
    after: pa.Array
    enveloped: pa.Array  # whether there was an envelope
    keys: pa.Array
    other_keys: pa.Array  # of a delete the new one, of a create the old one, where a key changed
    schemas: pa.Array  # the schema blocks of the values
    key_schemas: pa.Array
    lsn: pa.Array
    transaction: pa.Array  # an id
    sequence: pa.Array
    snapshot: pa.Array
    order: pa.Array  # in the transaction
    collection: pa.Array  # the table in the source, with its schema

    def __len__(self) -> int:
        return len(self.offsets)

    def taken(self, which: NDArray[np.bool_]) -> Events:
        """Some of them."""
        mask = pa.array(which)
        parts = {name: part.filter(mask) for name, part in self._arrays()}
        return Events(self.partition, self.offsets[which], **parts)

    def _arrays(self) -> Iterator[tuple[str, pa.Array]]:
        for name, part in vars(self).items():
            if isinstance(part, pa.Array):
                yield name, part


def events_of(records: pa.RecordBatch, topic: str) -> Events:
    """The events of records of one partition; a SourceError for one that is none."""
    offsets = records.column("offset").to_numpy()
    partition = int(records.column("partition")[0].as_py()) if len(offsets) else 0
    values = records.column("value")
    blank = pc.fill_null(pc.match_substring_regex(values, _NOTHING.encode()), False)
    bodies, schemas, tops = _bodies(pc.if_else(blank, None, values), topic, partition, offsets)
    keys, key_schemas, _ = _bodies(records.column("key"), topic, partition, offsets, "key")
    is_envelope = _is_nested(tops["source"], tops["op"])
    is_gone = pc.and_not(pc.fill_null(pc.equal(tops["__deleted"], "true"), False), is_envelope)
    told = pc.fill_null(pc.is_in(tops["__op"], pa.array(["c", "r"])), False)
    unwrapped = pc.if_else(is_gone, "d", pc.if_else(told, tops["__op"], ROW))
    ops = pc.if_else(is_envelope, tops["op"], unwrapped)
    source = _inside(pc.if_else(is_envelope, tops["source"], None), _SOURCE)
    transaction = _inside(pc.if_else(is_envelope, tops["transaction"], None), _TRANSACTION)
    return Events(
        partition,
        offsets,
        pc.if_else(pc.is_null(bodies), TOMBSTONE, ops),
        pc.if_else(is_envelope, tops["before"], pc.if_else(is_gone, bodies, None)),
        pc.if_else(is_envelope, tops["after"], pc.if_else(is_gone, None, bodies)),
        is_envelope,
        keys,
        records.column("other_key").cast(pa.string()),
        schemas,
        key_schemas,
        source.column("lsn"),
        pc.coalesce(source.column("txId"), transaction.column("id")),
        source.column("sequence"),
        source.column("snapshot"),
        transaction.column("total_order"),
        pc.binary_join_element_wise(source.column("schema"), source.column("table"), "."),
    )


def _bodies(
    values: pa.Array, topic: str, partition: int, offsets: I64, what: str = "value"
) -> tuple[pa.Array, pa.Array, dict[str, pa.Array]]:
    """The values without their schema blocks, these blocks, and the parts of the values."""
    texts, top = _top(values, topic, partition, offsets, what)
    is_block = _is_nested(top["schema"], top["payload"])
    if not pc.any(is_block).as_py():
        return texts, pa.nulls(len(texts), pa.string()), top
    schemas = pc.if_else(is_block, top["schema"], None)
    inner = pc.if_else(is_block, top["payload"], texts).cast(pa.binary())
    texts, top = _top(inner, topic, partition, offsets, what)
    return texts, schemas, top


def _is_nested(record: pa.Array, beside: pa.Array) -> pa.Array:
    """Where there is a record, and something beside it."""
    return pc.and_(pc.fill_null(pc.starts_with(record, "{"), False), pc.is_valid(beside))


def _top(
    values: pa.Array, topic: str, partition: int, offsets: I64, what: str
) -> tuple[pa.Array, dict[str, pa.Array]]:
    """The values as text, and the texts of the parts that an envelope or a block has."""
    schema = pa.schema([(name, pa.string()) for name in _TOP])
    there = values.drop_null()
    given = split(there, whole=False)
    reader = Reader(schema, [(name,) for name in _TOP], others=lambda _: True)
    parsed = reader.parse(given)
    if isinstance(parsed, Trouble) or not np.array_equal(given.lines, np.arange(len(there))):
        offsets = offsets[values.is_valid().to_numpy(zero_copy_only=False)]
        raise _no_record(there, given, parsed, f"{topic}, partition {partition}", offsets, what)
    places = _places(values)
    return values.cast(pa.string()), {name: parsed.column(name).take(places) for name in _TOP}


def _places(values: pa.Array) -> pa.Array:
    """Where each value stands among those that are not null."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.cumsum(valid) - 1, mask=~valid)


def _no_record(
    values: pa.Array, given: Records, parsed: Any, where: str, offsets: I64, what: str
) -> SourceError:
    """The error about the first value that is no record of JSON."""
    if isinstance(parsed, Trouble):
        row, expected = int(given.lines[parsed.row]), parsed.expected
    else:
        counts = np.bincount(given.lines, minlength=len(values))
        row, expected = int(np.argmax(counts != 1)), "a record in JSON"
    text = values[row].as_py()
    hint = ""
    if text[:1] == b"\0":
        hint = "; Avro and other forms of a schema registry are not read, use the JSON converter"
    shown = text[:80].decode("utf-8", "replace")
    return SourceError(
        f"{where}, offset {offsets[row]}: the {what} is no change event, expected {expected}"
        f"{hint}: {shown!r}"
    )


def _inside(texts: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """The fields of records that stand in a column, null where there is none."""
    nested = pc.fill_null(pc.starts_with(texts, "{"), False)
    given = split(texts.filter(nested).cast(pa.binary()), whole=False)
    reader = Reader(schema, [(name,) for name in schema.names], others=lambda _: True)
    parsed = reader.parse(given)
    if isinstance(parsed, Trouble):
        raise SourceError(
            f"a change event says {parsed.line!r} of its source; expected {parsed.expected}"
        )
    return parsed.take(_places(pc.if_else(nested, texts, None)))


def block_of(schema: str, field: str | None) -> Mapping[str, Any]:
    """The schema of a row, or of one side of an envelope, in a schema block."""
    block: Mapping[str, Any] = json.loads(schema)
    if field is None:
        return block
    for each in block.get("fields", ()):
        if each.get("field") == field:
            return dict(each)
    return {}
