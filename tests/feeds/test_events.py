"""Events of Debezium in files are followed: each trap, recorded from PostgreSQL or made here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast import flow
from holdfast.feeds.followed import FeedTable, Followed
from holdfast.input.row_input import RowInput
from holdfast.input.sources import Source
from holdfast.input.text_inputs import typed_columns
from holdfast.model.following import FeedRun
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.tasks.event_rows import PLACEHOLDER
from holdfast.tasks.segments import live_positions, read_raw
from tests.data import MISSING, data_dir
from tests.envelopes import CONNECT, DUPLICATES, NO_SCHEMA, ORDERS, envelope
from tests.feeds.following import follow

Row = dict[str, Any]

SMALL = {"id": pa.int64(), "name": pa.string(), "big": pa.string()}
NOKEY = {"a": pa.int32(), "b": pa.string()}
SAID = {"amount": "base64:2", "local_at": "us", "tm": "us"}


def profile(path: Path, **tables: dict[str, pa.DataType]) -> Store:
    """A profile of empty tables."""
    store = Store.create(path / "p")
    inputs = {}
    for name, types in tables.items():
        columns = typed_columns([*types], [*types.values()])
        rows = columns.schema.empty_table()
        inputs[name] = RowInput(name, columns, rows)
    options = Options(kinds=("keys",))
    flow.profile(InProcess(1), store, inputs, options, no_progress)
    return store


def rows_of(store: Store, table: str = "orders") -> list[Row]:
    record, path, found = store.read().table(table), Path(store.path), []
    for segment in record.segments:
        rows = read_raw(path, segment, live_positions(path, segment))
        found += rows.rename_columns(list(record.columns.names)).to_pylist()
    return sorted(found, key=repr)


def write(folder: Path, name: str, lines: Sequence[Any]) -> None:
    folder.mkdir(exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(_record(line)) for line in lines]
    (folder / name).write_text("\n".join(texts) + "\n")


def _record(line: Row) -> Row:
    """An event with the key that its row has."""
    row = line.get("after") or line.get("before") or {}
    return {"key": {"id": row["id"]}, "value": line} if "id" in row else line


def events(folder: Path, *tables: FeedTable, **settings: Any) -> Followed:
    """A folder of events as a feed."""
    tables = tables or (FeedTable("orders", ("id",)),)
    settings = {"reading": Source(".", "json"), "debezium": True, **settings}
    return Followed(folder.name, str(folder), tables, **settings)


def recorded(file: str) -> list[str]:
    folder = data_dir()
    path = folder / "envelopes" / file if folder else None
    if path is None or not path.is_file():
        pytest.skip(MISSING)
    return path.read_text("utf-8").splitlines()


def failure(course: FeedRun) -> str:
    (failed,) = course.failed
    return str(failed.error)


def row(id_: int, name: str = "n", big: str = "b") -> Row:
    return {"id": id_, "name": name, "big": big}


def replayed(lines: Sequence[str], topic: str) -> dict[int, Row]:
    """What rows there are after these events, in the slow and obvious way."""
    rows: dict[int, Row] = {}
    gone: Row = {}
    for line in map(json.loads, lines):
        value = line["value"]
        value = json.loads(value) if isinstance(value, str) else value
        if line["topic"] != topic or value is None:
            continue
        value = value.get("payload", value)
        if value["op"] == "t":
            rows.clear()
        elif value["op"] == "d":
            gone = rows.pop(value["before"]["id"])
        elif value["op"] != "m":
            after = value["after"]
            old = rows.get(after["id"], gone)
            big = old["big"] if after["big"] == PLACEHOLDER else after["big"]
            rows[after["id"]] = {**after, "big": big}
    return rows


@pytest.mark.parametrize("file", [NO_SCHEMA, CONNECT])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_recorded_events_in_steps_of_any_size(tmp_path: Path, file: str, size: int) -> None:
    """Until a column was added."""
    lines = [line for line in recorded(file) if json.loads(line)["topic"] == "shop.public.orders"]
    wanted = lines[:15]
    store = profile(tmp_path, orders=ORDERS)
    for start in range(0, len(wanted), size):
        write(tmp_path / "in", f"{start:03}.jsonl", wanted[start : start + size])
    table = FeedTable("orders", ("id",), SAID if file == NO_SCHEMA else {})
    course = follow(store, events(tmp_path / "in", table), files=1)
    assert not course.failed, course.failed[0].error
    expected = replayed(wanted, "shop.public.orders")
    found = {each["id"]: each for each in rows_of(store)}
    assert found.keys() == expected.keys()
    for id_, each in found.items():
        for name in ("name", "big", "doc", "arr", "u", "paid"):
            assert each[name] == expected[id_][name], (id_, name)
    assert flow.verify(InProcess(1), store, no_progress).equal


def test_recorded_duplicates_are_applied_once(tmp_path: Path) -> None:
    """After a crash of the connector offsets 25 and 26 repeat 23 and 24, here in a later step."""
    lines = recorded(DUPLICATES)[22:]
    columns = json.loads(json.loads(lines[0])["value"])["payload"]["after"]
    types = {**ORDERS, "amount": pa.decimal128(14, 4), "note": pa.string()}
    store = profile(tmp_path, orders={name: types[name] for name in columns})
    for first, last, steps in ((0, 3, 2), (3, 5, 0)):  # 23 and 24 are one transaction
        for number, line in enumerate(lines[first:last], first):
            write(tmp_path / "in", f"{number}.jsonl", [line])
        course = follow(store, events(tmp_path / "in"), files=1)
        assert (course.steps, course.failed) == (steps, [])
    found = [(each["id"], each["name"]) for each in rows_of(store)]
    assert sorted(found) == [(13, "after truncate"), (100, "dup2")]


def test_a_value_that_was_not_sent_is_that_of_the_stored_row(tmp_path: Path) -> None:
    store = profile(tmp_path, orders=SMALL)
    write(tmp_path / "in", "a.jsonl", [envelope("c", None, row(1, "x", "large"), 1)])
    follow(store, events(tmp_path / "in"))
    # The key changes, and the value is not sent.
    write(
        tmp_path / "in", "b.jsonl",
        [
            envelope("d", {"id": 1, "name": None, "big": None}, None, 5, 4),
            envelope("c", None, row(2, "x", PLACEHOLDER), 5, 4),
        ],
    )  # fmt: skip
    write(tmp_path / "in", "c.jsonl", [envelope("u", None, row(2, "y", PLACEHOLDER), 7, 6)])
    course = follow(store, events(tmp_path / "in"), files=1)
    assert not course.failed, course.failed[0].error
    assert rows_of(store) == [row(2, "y", "large")]
    write(tmp_path / "in", "d.jsonl", [envelope("u", None, row(3, "z", PLACEHOLDER), 9, 8)])
    told = failure(follow(store, events(tmp_path / "in")))
    assert "'big' did not change" in told
    assert "REPLICA IDENTITY FULL" in told
    assert rows_of(store) == [row(2, "y", "large")]


def test_a_truncated_table_is_empty(tmp_path: Path) -> None:
    store = profile(tmp_path, orders=SMALL)
    lines = [envelope("c", None, row(1), 1), envelope("c", None, row(2), 2)]
    write(tmp_path / "in", "a.jsonl", lines)
    follow(store, events(tmp_path / "in"))
    write(
        tmp_path / "in", "b.jsonl",
        [envelope("c", None, row(3), 3), envelope("t", None, None, 4),
         envelope("c", None, row(4), 5)],
    )  # fmt: skip
    course = follow(store, events(tmp_path / "in"))
    assert not course.failed, course.failed[0].error
    assert rows_of(store) == [row(4)]
    write(tmp_path / "in", "c.jsonl", [envelope("t", None, None, 6)])
    follow(store, events(tmp_path / "in"))
    assert rows_of(store) == []


def test_the_rows_of_a_snapshot_are_upserts_by_key_and_come_once_without_one(
    tmp_path: Path,
) -> None:
    store = profile(tmp_path, orders=SMALL, nokey=NOKEY)
    for name, lsn in (("a", 5), ("b", 9)):
        write(tmp_path / "in", f"{name}.jsonl", [envelope("r", None, row(1, name), lsn)])
        lines = [envelope("r", None, {"a": 1, "b": "x"}, lsn)] * 2
        write(tmp_path / "nokey", f"{name}.jsonl", lines)
    course = follow(store, events(tmp_path / "in"), files=1)
    assert (course.steps, rows_of(store)) == (2, [row(1, "b")])
    told = failure(follow(store, events(tmp_path / "nokey", FeedTable("nokey")), files=1))
    assert "read all rows of the source again" in told
    assert "--snapshot" in told
    assert rows_of(store, "nokey") == [{"a": 1, "b": "x"}] * 2


def test_decimals_need_a_scale(tmp_path: Path) -> None:
    types = {"id": pa.int64(), "amount": pa.decimal128(10, 2)}
    store = profile(tmp_path, orders=types)
    write(tmp_path / "in", "a.jsonl", [envelope("c", None, {"id": 1, "amount": "MDk="}, 1)])
    assert "amount" in failure(follow(store, events(tmp_path / "in")))
    table = FeedTable("orders", ("id",), {"amount": "base64:2"})
    assert follow(store, events(tmp_path / "in", table)).steps == 1
    assert str(rows_of(store)[0]["amount"]) == "123.45"


def test_tables_of_one_feed_change_in_one_version(tmp_path: Path) -> None:
    lines = {"id": pa.int64(), "order": pa.int64()}
    store = profile(tmp_path, orders=SMALL, lines=lines)

    def record(topic: str, value: Row) -> Row:
        return {"topic": f"shop.public.{topic}", "key": {"id": 1}, "value": value}

    write(
        tmp_path / "in", "a.jsonl",
        [
            record("orders", envelope("c", None, row(1), 1, order=1)),
            record("lines", envelope("c", None, {"id": 1, "order": 1}, 2, order=2)),
            record("others", envelope("c", None, {"what": 1}, 3, order=3)),
        ],
    )  # fmt: skip
    tables = FeedTable("orders", ("id",)), FeedTable("lines", ("id",))
    course = follow(store, events(tmp_path / "in", *tables))
    assert not course.failed, course.failed[0].error
    assert (course.steps, store.head()) == (1, 2)
    assert (rows_of(store), rows_of(store, "lines")) == ([row(1)], [{"id": 1, "order": 1}])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nothing", "a.jsonl, line 2: this is no change event"),
        (envelope("x", None, row(1), 2), "a.jsonl, line 2: the operation 'x' is not one of"),
        (envelope("c", None, {**row(1), "more": 1}, 2), "line 2: the row has the column 'more'"),
        (envelope("c", None, {"id": 1}, 2), "line 2: the row lacks the column"),
        (envelope("c", None, row("x"), 2), "line 2, column 'id': unfit value"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, line: Any, told: str) -> None:
    store = profile(tmp_path, orders=SMALL)
    write(tmp_path / "in", "a.jsonl", [envelope("c", None, row(7), 1), line])
    assert told in failure(follow(store, events(tmp_path / "in")))
    assert (store.head(), store.read().feeds) == (1, {})
