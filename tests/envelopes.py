"""Change events as Debezium writes them: those that were recorded, and small ones made by tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from holdfast.tasks.change_events import RECORDS
from tests.data import MISSING, data_dir

NO_SCHEMA = "pg15-dbz3.6-json-noschema-precise.jsonl"
CONNECT = "pg15-dbz3.6-kafka-connect-schema-txmeta.jsonl"
DUPLICATES = "pg15-dbz3.6-kafka-connect-duplicates-after-kill.jsonl"
CHANGED_KEYS = ("__debezium.oldkey", "__debezium.newkey")

ORDERS = {
    "id": pa.int32(),
    "name": pa.string(),
    "amount": pa.decimal128(10, 2),
    "wide": pa.decimal128(20, 3),
    "at": pa.timestamp("us", "UTC"),
    "local_at": pa.timestamp("us"),
    "day": pa.date32(),
    "tm": pa.time64("us"),
    "paid": pa.bool_(),
    "big": pa.string(),
    "doc": pa.string(),
    "arr": pa.list_(pa.int32()),
    "raw": pa.binary(),
    "u": pa.string(),
    "f": pa.float64(),
}
"""The columns of the recorded table."""


def recorded(file: str, topic: str = "shop.public.orders") -> pa.RecordBatch:
    """The recorded events of a topic."""
    folder = data_dir()
    path = folder / "envelopes" / file if folder else None
    if path is None or not path.is_file():
        pytest.skip(MISSING)
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return records([*_recorded(line for line in lines if line["topic"] == topic)])


def _recorded(lines: Iterator[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    for number, line in enumerate(lines):
        headers = dict(line.get("headers", ()))
        other = next((headers[name] for name in CHANGED_KEYS if name in headers), None)
        yield (
            line.get("partition", 0), line.get("offset", number),
            _bytes(line["key"]), _bytes(line["value"]), _bytes(other),
        )  # fmt: skip


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def records(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Records of a topic: partition, offset, key, value, and the other key of a changed one."""
    columns = list(zip(*rows, strict=True)) or [()] * len(RECORDS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
    return pa.record_batch(arrays, schema=RECORDS)


def envelope(
    op: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    lsn: int = 1,
    commit: int = 0,
    order: int | None = None,
    **source: Any,
) -> dict[str, Any]:
    """The value of an event, without a schema block."""
    snapshot = "true" if op == "r" else "false"
    transaction = None if order is None else {"id": f"9:{commit}", "total_order": order}
    return {
        "before": before,
        "after": after,
        "source": {
            "connector": "postgresql",
            "snapshot": snapshot,
            "sequence": json.dumps([str(commit) if commit else None, str(lsn)]),
            "txId": 9,
            "lsn": lsn,
            **source,
        },
        "transaction": transaction,
        "op": op,
        "ts_ms": 1,
    }


def topic(values: Sequence[dict[str, Any] | None], key: str | None = "id") -> pa.RecordBatch:
    """One partition with these values, each with the key that its row has; a
    tombstone has that of the row before."""
    rows: list[tuple[Any, ...]] = []
    row: dict[str, Any] = {}
    for offset, value in enumerate(values):
        row = row if value is None else value.get("after") or value.get("before") or {}
        own = {key: row[key]} if key and key in row else None
        rows.append((0, offset, _bytes(own), _bytes(value), None))
    return records(rows)


def in_block(value: Any, schema: Any) -> dict[str, Any]:
    """A value with a schema block around it."""
    return {"schema": schema, "payload": value}


def unscaled(number: int) -> str:
    """An integer as base64, as decimals are written.

    >>> unscaled(12345)
    'MDk='
    """
    size = max(1, (number.bit_length() + 8) // 8)
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()
