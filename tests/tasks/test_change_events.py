"""Change events of Debezium as rows: each trap of its envelopes, recorded or made here."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.errors import InputError, SchemaError, SourceError
from holdfast.tasks.change_events import TOMBSTONE, events_of
from holdfast.tasks.envelope_cells import Encoding
from holdfast.tasks.event_rows import PLACEHOLDER, EventTable, change_rows
from holdfast.tasks.repeated_events import Applied
from tests.envelopes import (
    CONNECT,
    DUPLICATES,
    NO_SCHEMA,
    ORDERS,
    envelope,
    in_block,
    recorded,
    records,
    topic,
    unscaled,
)
from tests.strategies import examples

SAID = {"amount": Encoding("base64", 2), "local_at": Encoding("us"), "tm": Encoding("us")}


def table(columns: dict[str, pa.DataType], *row_key: str, **encodings: Encoding) -> EventTable:
    return EventTable("t", "orders", tuple(columns), tuple(columns.values()), row_key, encodings)


def recorded_table(**encodings: Encoding) -> EventTable:
    return table(ORDERS, "id", **encodings)


SMALL = {"id": pa.int64(), "name": pa.string(), "big": pa.string()}


def small(*row_key: str) -> EventTable:
    return table(SMALL, *row_key)


def row(id_: int, name: str | None = "n", big: str | None = "b") -> dict[str, Any]:
    return {"id": id_, "name": name, "big": big}


def rows_of(batch: pa.RecordBatch, target: EventTable) -> list[dict[str, Any]]:
    changes = change_rows(events_of(batch, "t"), target)
    changes.validate(full=True)
    assert changes.schema == target.schema
    rows: list[dict[str, Any]] = changes.to_pylist()
    return rows


def brief(changes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What happened to which row, and its last column but those about the change."""
    return [
        (change["_change_type"], *list(change.values())[:3], change["_unavailable"])
        for change in changes
    ]


# What was recorded


def test_the_same_changes_are_read_with_and_without_a_schema_block() -> None:
    target = recorded_table()
    with_schema = rows_of(recorded(CONNECT).slice(0, 15), target)
    without = rows_of(recorded(NO_SCHEMA).slice(0, 15), replace(target, encodings=SAID))
    assert repr(with_schema) == repr(without)  # a NaN equals none
    assert with_schema[0] == {
        "id": 1,
        "name": "n1",
        "amount": Decimal("1.25"),
        "wide": Decimal("12345.678"),
        "at": datetime(2026, 1, 2, 1, 4, 5, 678901, UTC),
        "local_at": datetime(2026, 1, 2, 3, 4, 5, 678901),
        "day": date(2026, 1, 2),
        "tm": time(3, 4, 5),
        "paid": False,
        "big": "x" * 9000,
        "doc": '{"k": 1}',
        "arr": [1, 2],
        "raw": b"\x00\xff",
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "f": 0.1,
        "_change_type": "insert",
        "_unavailable": None,
        "_former_key": None,
    }
    assert np.isnan(with_schema[1]["f"])


def test_a_recorded_placeholder_is_the_value_of_the_event_before() -> None:
    changes = rows_of(recorded(CONNECT).slice(0, 9), recorded_table())
    by_key = {change["id"]: change for change in changes if change["_change_type"] != "delete"}
    assert by_key[1]["amount"] == Decimal("5.55")
    assert by_key[1]["big"] == by_key[30]["big"] == "x" * 9000
    assert by_key[2]["big"] == "z" * 9000


@pytest.mark.parametrize("file", [CONNECT, NO_SCHEMA])
def test_a_recorded_placeholder_is_the_value_of_the_stored_row(file: str) -> None:
    target = replace(recorded_table(), encodings=SAID if file == NO_SCHEMA else {})
    updated, *_, renamed = rows_of(recorded(file).slice(4, 5), target)
    assert updated["id"] == 1
    assert updated["big"] is None
    assert (updated["_unavailable"], updated["_former_key"]) == (["big"], {"id": 1})
    # The embedded engine has no headers: there the delete before tells the former key.
    assert renamed["id"] == 30
    assert (renamed["_unavailable"], renamed["_former_key"]) == (["big"], {"id": 3})


def test_recorded_decimals_without_a_schema_block_have_no_scale() -> None:
    batch = recorded(NO_SCHEMA)
    with pytest.raises(SchemaError, match=r"column 'amount'.*--encoding amount=base64:SCALE"):
        rows_of(batch.slice(0, 1), recorded_table())
    # After ALTER TABLE ... TYPE numeric(14,4) the same bytes mean another number.
    columns = {**ORDERS, "amount": pa.decimal128(14, 4), "note": pa.string()}
    target = table(columns, "id", **{**SAID, "amount": Encoding("base64", 4)})
    changed = rows_of(batch.slice(16, 1), target)
    assert changed[0]["amount"] == Decimal("1.2345")
    target = replace(target, encodings={**SAID, "amount": Encoding("base64", 2)})
    assert rows_of(batch.slice(16, 1), target)[0]["amount"] == Decimal("123.4500")


def test_a_recorded_new_column_and_a_dropped_one_are_named() -> None:
    batch = recorded(CONNECT)
    with pytest.raises(SchemaError, match="offset 15: the row has the column 'note', which table"):
        rows_of(batch.slice(15, 1), recorded_table())
    target = table({**ORDERS, "amount": pa.decimal128(14, 4), "note": pa.string()}, "id")
    with pytest.raises(SchemaError, match="offset 17: the row lacks the column 'f'"):
        rows_of(batch.slice(17, 1), target)


def test_a_recorded_update_with_replica_identity_full_has_both_images() -> None:
    columns = {**ORDERS, "amount": pa.decimal128(14, 4), "note": pa.string()}
    del columns["f"]
    changes = rows_of(recorded(CONNECT).slice(18, 2), table(columns, "id"))
    assert [change["_change_type"] for change in changes] == [
        "update_preimage", "update_postimage", "delete",
    ]  # fmt: skip
    assert [change["amount"] for change in changes] == [
        Decimal("5.5500"), Decimal("6.6600"), Decimal("6.6600"),
    ]  # fmt: skip
    assert changes[2]["note"] == "dflt"


def test_recorded_rows_without_a_key_are_both_inserted() -> None:
    target = table({"a": pa.int32(), "b": pa.string()})
    batch = recorded(CONNECT, "shop.public.nokey")
    events = events_of(batch.slice(0, 4), "t")
    assert Applied().new(events, "t").all()
    assert [list(change.values())[:3] for change in rows_of(batch.slice(0, 4), target)] == [
        [1, "a", "insert"], [1, "a", "insert"], [2, "b", "insert"], [2, "b", "insert"],
    ]  # fmt: skip


def test_recorded_duplicates_are_known_in_one_step_and_in_a_later_one() -> None:
    events = events_of(recorded(DUPLICATES), "t")
    new = Applied().new(events, "t")
    tombstones = [7, 10, 14, 20]  # after deletes
    assert np.flatnonzero(~new).tolist() == [*tombstones, 25, 26]
    applied = Applied()
    first = events_of(recorded(DUPLICATES).slice(0, 25), "t")
    assert np.flatnonzero(~applied.new(first, "t")).tolist() == tombstones
    again = Applied.of(json.loads(json.dumps(applied.form)))
    later = events_of(recorded(DUPLICATES).slice(25, 2), "t")
    assert not again.new(later, "t").any()


# What is made here


def test_a_delete_has_the_key_and_a_tombstone_is_one() -> None:
    gone = envelope("d", row(1, None, None), None)
    batch = records([
        (0, 0, b'{"id":1}', json.dumps(gone).encode(), None),
        (0, 1, b'{"id":1}', None, None),
        (0, 2, b'{"id":2}', b'{"schema": null, "payload": null}', None),
        (0, 3, b'{"schema":{"fields":[]},"payload":{"id":3}}', None, None),
    ])  # fmt: skip
    assert events_of(batch, "t").ops.to_pylist() == ["d", TOMBSTONE, TOMBSTONE, TOMBSTONE]
    assert brief(rows_of(batch, small("id"))) == [
        ("delete", 1, None, None, None),
        ("delete", 1, None, None, None),
        ("delete", 2, None, None, None),
        ("delete", 3, None, None, None),
    ]
    whole = topic([envelope("d", row(1), None), None], key=None)
    assert brief(rows_of(whole, small())) == [("delete", 1, "n", "b", None)]


def test_unwrapped_rows_are_upserts() -> None:
    batch = records([
        (0, 0, b'{"id":1}', json.dumps(row(1) | {"__source_lsn": 5}).encode(), None),
        (0, 1, b'{"id":1}', json.dumps(row(1) | {"__deleted": "true"}).encode(), None),
        (0, 2, b'{"id":2}', json.dumps(row(2) | {"__deleted": "false"}).encode(), None),
        (0, 3, b'{"id":2}', None, None),
        (0, 4, b'{"id":3}', json.dumps(in_block(row(3), _BLOCK)).encode(), None),
    ])  # fmt: skip
    assert brief(rows_of(batch, small("id"))) == [
        ("insert", 1, "n", "b", None),
        ("delete", 1, "n", "b", None),
        ("insert", 2, "n", "b", None),
        ("delete", 2, None, None, None),
        ("insert", 3, "n", "b", None),
    ]
    with pytest.raises(SourceError, match=r"without its envelope.*--row-key"):
        rows_of(batch.slice(0, 1), small())
    inserted = records([(0, 0, None, json.dumps(row(1) | {"__op": "c"}).encode(), None)])
    assert brief(rows_of(inserted, small())) == [("insert", 1, "n", "b", None)]
    other = records([(0, 0, b'{"id":1}', json.dumps(row(1) | {"new": 1}).encode(), None)])
    with pytest.raises(SchemaError, match="the row has the column 'new'"):
        rows_of(other, small("id"))


_BLOCK = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "name", "type": "string"},
        {"field": "big", "type": "string"},
    ],
}


def test_a_placeholder_takes_the_value_of_the_row_before() -> None:
    batch = topic([
        envelope("c", None, row(1, "a", "large"), 1),
        envelope("u", None, row(1, "b", PLACEHOLDER), 2),
        envelope("u", None, row(2, "c", PLACEHOLDER), 3),
        envelope("u", None, row(2, "d", PLACEHOLDER), 4),
        envelope("u", None, row(2, "e", "new"), 5),
        envelope("u", None, row(2, PLACEHOLDER, PLACEHOLDER), 6),
    ])  # fmt: skip
    changes = rows_of(batch, small("id"))
    assert brief(changes) == [
        ("insert", 1, "a", "large", None),
        ("update_postimage", 1, "b", "large", None),
        ("update_postimage", 2, "c", None, ["big"]),
        ("update_postimage", 2, "d", None, ["big"]),
        ("update_postimage", 2, "e", "new", None),
        ("update_postimage", 2, "e", "new", None),
    ]
    assert changes[3]["_former_key"] == {"id": 2}


def test_a_changed_key_takes_the_values_of_the_former_one() -> None:
    values = [
        envelope("c", None, row(3, "a", "large"), 1),
        envelope("d", row(3, None, None), None, 7),
        None,
        envelope("c", None, row(30, "a", PLACEHOLDER), 7),
        envelope("u", None, row(30, "b", PLACEHOLDER), 8),
    ]
    assert brief(rows_of(topic(values), small("id")))[-2:] == [
        ("insert", 30, "a", "large", None),
        ("update_postimage", 30, "b", "large", None),
    ]
    changes = rows_of(topic(values[1:]), small("id"))
    assert [change["_former_key"] for change in changes[-2:]] == [{"id": 3}, {"id": 3}]
    headers = topic(values[3:]).to_pydict()
    headers["other_key"][0] = b'{"id":3}'
    batch = pa.record_batch(headers, topic(values).schema)
    assert rows_of(batch, small("id"))[0]["_former_key"] == {"id": 3}
    with pytest.raises(SourceError, match=r"another partition.*REPLICA IDENTITY FULL"):
        rows_of(batch, replace(small("id"), divided=True))


def test_a_row_without_an_envelope_is_not_taken_for_the_one_that_went_before() -> None:
    batch = records([
        (0, 0, b'{"id":1}', None, None),
        (0, 1, b'{"id":2}', json.dumps(row(2, "a", PLACEHOLDER)).encode(), None),
    ])  # fmt: skip
    changes = rows_of(batch, small("id"))
    assert changes[1]["_former_key"] == {"id": 2}
    assert changes[1]["_unavailable"] == ["big"]


def test_a_placeholder_that_nothing_fills_in_stops() -> None:
    gone = topic([envelope("d", row(1, None, None), None, 1),
                  envelope("u", None, row(1, "b", PLACEHOLDER), 2)])  # fmt: skip
    with pytest.raises(SourceError, match=r"column 'big'.*id=1.*REPLICA IDENTITY FULL"):
        rows_of(gone, small("id"))
    with pytest.raises(SourceError, match=r"column 'big'.*no row key"):
        rows_of(topic([envelope("c", None, row(1, "b", PLACEHOLDER))], key=None), small())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.binary(), "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="),
        (pa.list_(pa.string()), [PLACEHOLDER]),
        (pa.list_(pa.int32()), list(PLACEHOLDER.encode())),
        (pa.list_(pa.int64()), list(PLACEHOLDER.encode())),
    ],
)
def test_placeholders_of_every_type_are_known(kind: pa.DataType, value: Any) -> None:
    target = table({"id": pa.int64(), "name": pa.string(), "big": kind}, "id")
    (change,) = rows_of(topic([envelope("u", None, row(1, "n", None) | {"big": value})]), target)
    assert change["_unavailable"] == ["big"]


def test_what_an_event_leaves_open_is_refused() -> None:
    update = envelope("u", None, row(1))
    with pytest.raises(SourceError, match="REPLICA IDENTITY FULL"):
        rows_of(topic([update], key=None), small())
    with pytest.raises(SourceError, match="--row-key id"):
        rows_of(topic([update]), small())
    with pytest.raises(SchemaError, match="known by its key id, but the row key is name"):
        rows_of(topic([update]), small("name"))
    with pytest.raises(SourceError, match="neither the row before nor a key"):
        rows_of(topic([update], key=None), small("id"))
    with pytest.raises(SourceError, match="operation 'x'"):
        rows_of(topic([envelope("x", None, row(1))]), small("id"))
    for wrong, why in ((b"\0\0\0\0\1abc", "JSON converter"), (b"7", "record"), (b"", "record")):
        with pytest.raises(SourceError, match=f"offset 0: the value is no change event.*{why}"):
            rows_of(records([(0, 0, None, wrong, None)]), small("id"))
    unfit = envelope("c", None, row(1) | {"id": "one"})
    with pytest.raises(SourceError, match="offset 0, column 'id': unfit value, expected bigint"):
        rows_of(topic([unfit], key=None), small("id"))


def test_encodings_are_checked() -> None:
    assert Encoding.parsed("a", "base64:2") == Encoding("base64", 2)
    assert Encoding.parsed("a", "us") == Encoding("us")
    for wrong in ("base64", "base64:x", "us:2", "hours", ""):
        with pytest.raises(InputError, match="encoding of column 'a'"):
            Encoding.parsed("a", wrong)


@pytest.mark.parametrize(
    ("kind", "encoding", "value", "expected"),
    [
        (pa.decimal128(14, 4), Encoding("base64", 4), "MDk=", Decimal("1.2345")),
        (pa.decimal128(14, 4), Encoding("base64", 0), unscaled(-5), Decimal("-5.0000")),
        (pa.decimal128(14, 4), Encoding("plain"), "1.5", Decimal("1.5000")),
        (pa.decimal128(14, 4), Encoding("plain"), 1.5, Decimal("1.5000")),
        (pa.int64(), Encoding("base64", 2), unscaled(500), 5),
        (pa.float64(), Encoding("base64", 2), unscaled(125), 1.25),
        (pa.string(), Encoding("base64", 2), unscaled(-1), "-0.01"),
        (pa.timestamp("us"), Encoding("ms"), 1, datetime(1970, 1, 1, 0, 0, 0, 1000)),
        (pa.timestamp("us"), Encoding("ns"), 1000, datetime(1970, 1, 1, 0, 0, 0, 1)),
        (pa.time64("us"), Encoding("ms"), 1000, time(0, 0, 1)),
        (pa.date32(), Encoding("days"), 1, date(1970, 1, 2)),
        (pa.date32(), Encoding("unsaid"), "1970-01-02", date(1970, 1, 2)),
        (pa.date32(), Encoding("unsaid"), 1, date(1970, 1, 2)),
        (pa.decimal128(9, 3), Encoding("unsaid"), {"scale": 1, "value": "fQ=="}, Decimal("12.5")),
    ],
)
def test_values_are_read_as_their_encoding_says(
    kind: pa.DataType, encoding: Encoding, value: Any, expected: Any
) -> None:
    target = table({"id": pa.int64(), "v": kind}, "id", v=encoding)
    (change,) = rows_of(topic([envelope("c", None, {"id": 1, "v": value})]), target)
    assert change["v"] == expected


@pytest.mark.parametrize(
    ("kind", "encoding", "value"),
    [
        (pa.decimal128(3, 2), Encoding("base64", 2), unscaled(1000)),
        (pa.decimal128(9, 1), Encoding("base64", 2), unscaled(1)),
        (pa.decimal128(9, 1), Encoding("base64", 2), "?"),
        (pa.int64(), Encoding("base64", 2), unscaled(501)),
        (pa.float64(), Encoding("base64", 20), unscaled(10**19 + 1)),
        (pa.timestamp("us"), Encoding("ns"), 1001),
        (pa.timestamp("us"), Encoding("us"), "soon"),
        (pa.date32(), Encoding("days"), 10**9),
    ],
)
def test_a_value_that_would_change_is_refused(
    kind: pa.DataType, encoding: Encoding, value: Any
) -> None:
    target = table({"id": pa.int64(), "v": kind}, "id", v=encoding)
    good = envelope("c", None, {"id": 1, "v": None})
    wrong = envelope("c", None, {"id": 2, "v": value}, 2)
    with pytest.raises(SourceError, match="offset 1, column 'v': unfit value, expected"):
        rows_of(topic([good, wrong]), target)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (pa.string(), {"type": "int32"}),
        (pa.int64(), {"type": "string"}),
        (pa.timestamp("us", "UTC"), {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}),
        (pa.string(), {"type": "array"}),
        (pa.date32(), {"type": "int64", "name": "io.debezium.time.MicroTime"}),
    ],
)
def test_a_type_of_the_schema_block_that_is_not_the_column_s_is_refused(
    kind: pa.DataType, field: dict[str, str]
) -> None:
    target = table({"v": kind})
    block = {"type": "struct", "fields": [{"field": "v", **field}]}
    with pytest.raises(SchemaError, match=r"column 'v' is .* in the feed, but .* in the table"):
        rows_of(records([(0, 0, None, json.dumps(
            in_block(envelope("c", None, {"v": 1}), {"fields": [{"field": "after", **block}]})
        ).encode(), None)]), target)  # fmt: skip


# Repeated events


def test_rows_of_one_statement_may_share_a_place() -> None:
    together = [envelope("c", None, row(i), 5, 4) for i in range(3)]
    assert Applied().new(events_of(topic(together), "t"), "t").all()
    twice = events_of(topic(together + together), "t")
    assert Applied().new(twice, "t").tolist() == [True] * 3 + [False] * 3


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_tombstone_that_is_sent_again_takes_no_row_away(size: int) -> None:
    sent = [
        envelope("c", None, row(1), lsn=1, commit=1),
        envelope("d", row(1), None, lsn=2, commit=2),
        None,
        envelope("c", None, row(1), lsn=3, commit=3),
    ]
    batch, applied, kept = topic(sent + sent), Applied(), []
    for start in range(0, len(batch), size):
        kept += applied.new(events_of(batch.slice(start, size), "t"), "t").tolist()
        applied = Applied.of(json.loads(json.dumps(applied.form)))
    assert kept == [True, True, False, True, False, False, False, False]


def test_a_tombstone_of_a_row_without_an_envelope_takes_it_away() -> None:
    batch = records([
        (0, offset, b'{"id":1}', value and json.dumps(value).encode(), None)
        for offset, value in enumerate([None, row(1), None])
    ])  # fmt: skip
    assert Applied().new(events_of(batch, "t"), "t").all()


def test_a_connector_that_reads_all_rows_again_begins_anew() -> None:
    """It does not know the last commit at first, and sends again what the slot still has."""
    first = [envelope("c", None, row(1), lsn=50, commit=40)]
    again = [
        envelope("r", None, row(1), lsn=60),
        envelope("u", None, row(1), lsn=50, commit=0),
        envelope("u", None, row(1), lsn=70, commit=0),
        envelope("u", None, row(1), lsn=90, commit=80),
    ]
    applied = Applied()
    for values in (first, again):
        assert applied.new(events_of(topic(values), "t"), "t").all()
        applied = Applied.of(json.loads(json.dumps(applied.form)))
    assert applied.new(events_of(topic(again), "t"), "t").tolist() == [True, False, False, False]


def test_the_first_transaction_of_a_connector_that_lost_its_offsets() -> None:
    """What was applied is dropped, and what is later is not."""
    applied = Applied()
    known = [envelope("c", None, row(i), lsn=50 + i, commit=40) for i in range(3)]
    assert applied.new(events_of(topic(known), "t"), "t").all()
    again = [envelope("c", None, row(i), lsn=50 + i, commit=0) for i in range(3)]
    later = [envelope("c", None, row(i), lsn=70 + i // 2, commit=0) for i in range(4)]
    last = [envelope("c", None, row(7), lsn=90, commit=80)]
    new = applied.new(events_of(topic([*again, *later, *later, *last]), "t"), "t")
    assert new.tolist() == [False] * 3 + [True] * 4 + [False] * 4 + [True]


def test_a_late_commit_of_an_early_event_is_no_duplicate() -> None:
    events = events_of(topic([
        envelope("c", None, row(1), lsn=50, commit=40),
        envelope("c", None, row(2), lsn=10, commit=60),
        envelope("c", None, row(1), lsn=50, commit=40),
    ]), "t")  # fmt: skip
    assert Applied().new(events, "t").tolist() == [True, True, False]


def test_equal_rows_without_a_key_are_told_apart_by_their_order_or_refused() -> None:
    numbered = [envelope("c", None, {"a": 1}, 5, 4, order=n) for n in (1, 2)]
    events = events_of(topic(numbered + numbered, key=None), "t")
    assert Applied().new(events, "t").tolist() == [True, True, False, False]
    untold = events_of(topic([envelope("c", None, {"a": 1}, 5, 4)] * 2, key=None), "t")
    with pytest.raises(SourceError, match=r"offset 1: .*provide.transaction.metadata"):
        Applied().new(untold, "t")


def test_a_second_snapshot_of_a_table_without_key_asks_for_the_rows() -> None:
    first = events_of(topic([envelope("r", None, {"a": 1}, 5)] * 2, key=None), "t")
    second = events_of(topic([envelope("r", None, {"a": 1}, 9)], key=None), "t")
    applied = Applied()
    assert applied.new(first, "t").all()
    applied.take_snapshot(first, "nokey", "t")
    applied = Applied.of(applied.form)
    applied.take_snapshot(first, "nokey", "t")
    with pytest.raises(SourceError, match=r"read all rows of the source again.*--snapshot"):
        applied.take_snapshot(second, "nokey", "t")


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_connector_that_starts_again_repeats_nothing(data: st.DataObject) -> None:
    """Transactions in the order of their commits, sent again from any place, in any steps."""
    number = data.draw(st.integers(1, 6))
    commits = np.cumsum(data.draw(st.lists(st.integers(50, 99), min_size=number + 1,
                                           max_size=number + 1))).tolist()  # fmt: skip
    sent = []
    for last, commit in pairwise(commits):
        # A transaction may have written long before it commits.
        lsns = sorted(data.draw(st.lists(st.integers(1, commit - 1), min_size=1, max_size=4)))
        sent += [
            envelope("u", None, row(order, f"{commit}"), lsn, last, order=order)
            for order, lsn in enumerate(lsns)
        ]
    stream = list(range(len(sent)))
    for _ in range(data.draw(st.integers(0, 3))):
        end = data.draw(st.integers(1, len(stream)))
        again = data.draw(st.integers(0, stream[end - 1]))
        stream = [*stream[:end], *range(again, len(sent))]
    applied, kept = Applied(), []
    at = 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream)))
        step = stream[at : at + size]
        new = applied.new(events_of(topic([sent[n] for n in step]), "t"), "t")
        kept += [n for n, is_new in zip(step, new, strict=True) if is_new]
        applied = Applied.of(json.loads(json.dumps(applied.form)))
        at += size
    assert kept == list(range(len(sent)))


# All forms mean the same


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_rows_equal_those_of_a_plain_reader(data: st.DataObject) -> None:
    """With and without an envelope and a schema block, mixed: as one reads them one by one."""
    plain: dict[str, st.SearchStrategy[Any]] = {
        "id": st.integers(0, 3),
        "name": st.none() | st.text(max_size=4),
        "cost": st.integers(-999, 999),
        "big": st.sampled_from(["x", "y", PLACEHOLDER]),
    }
    columns = {"id": pa.int64(), "name": pa.string(), "cost": pa.decimal128(5, 2),
               "big": pa.string()}  # fmt: skip
    target = table(columns, "id", cost=Encoding("base64", 2))
    fields = [
        {"field": "id", "type": "int64"},
        {"field": "name", "type": "string"},
        {"field": "cost", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
         "parameters": {"scale": "2"}},
        {"field": "big", "type": "string"},
    ]  # fmt: skip
    drawn = data.draw(st.lists(st.tuples(
        st.sampled_from(["c", "u", "d", None, "row"]), st.fixed_dictionaries(plain),
        st.booleans()), min_size=1, max_size=12))  # fmt: skip
    batch: list[tuple[Any, ...]] = []
    expected: list[tuple[Any, ...]] = []
    state: dict[int, Any] = {}  # what is known of a key: its row; None: it is stored
    for offset, (op, cells, block) in enumerate(drawn):
        key = cells["id"]
        if op != "d" and op is not None and cells["big"] == PLACEHOLDER and state.get(key, 0) == {}:
            cells["big"] = "x"  # nothing would fill it in
        written = cells | {"cost": unscaled(cells["cost"])}
        whole = {"id": key, "name": None, "cost": None, "big": None}
        value: Any = None
        if op == "row":
            value = in_block(written, {"type": "struct", "fields": fields}) if block else written
        elif op is not None:
            gone = op == "d"
            before = written | {"name": None} if gone else None
            value = envelope(op, before, None if gone else written, lsn=offset)
            if block:
                of_side = [{"field": side, "type": "struct", "fields": fields}
                           for side in ("before", "after")]  # fmt: skip
                value = in_block(value, {"type": "struct", "fields": of_side})
        batch.append((0, offset, json.dumps({"id": key}).encode(),
                      None if value is None else json.dumps(value).encode(), None))  # fmt: skip
        exact = cells | {"cost": Decimal(cells["cost"]).scaleb(-2)}
        if op in ("d", None):
            expected.append(("delete", exact | {"name": None} if op else whole, None))
            state[key] = {}
            continue
        missing = None
        if exact["big"] == PLACEHOLDER:
            known: dict[str, Any] | None = state.get(key)
            exact["big"] = known["big"] if known else None
            missing = ["big"] if exact["big"] is None else None
        state[key] = exact
        expected.append(("update_postimage" if op == "u" else "insert", exact, missing))
    changes = rows_of(records(batch), target)
    read = [
        (change["_change_type"], {name: change[name] for name in columns}, change["_unavailable"])
        for change in changes
    ]
    assert read == expected
