"""Topics of Kafka, on brokers in this process."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.feeds.addresses import opened
from holdfast.feeds.contract import Bounds, EventForm, Feed, Given, Position
from holdfast.input.row_input import Columns
from holdfast.model.errors import (
    InputError,
    SchemaError,
    SetupError,
    SourceError,
    UnreachableError,
)
from holdfast.runtime.runner import InProcess
from holdfast.tasks import topics
from holdfast.tasks.change_events import RECORDS, events_of
from holdfast.tasks.event_rows import EventTable, change_rows
from holdfast.tasks.repeated_events import Applied
from tests import envelopes
from tests.envelopes import envelope, recorded
from tests.feeds.brokers import PARTITIONS, Brokers, only_partitions
from tests.feeds.reading import EVERYTHING, read, steps
from tests.strategies import examples

pytest.importorskip("confluent_kafka")

SMALL = {"id": pa.int64(), "name": pa.string()}
OPS = {"I": 0, "U": 3, "D": 1}


@pytest.fixture(scope="module")
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]


def table(columns: Mapping[str, pa.DataType] = SMALL, *row_key: str, **about: Any) -> Given:
    types = [*columns.values()]
    return Given(
        "orders", Columns.of([*columns], [*map(str, types)], types), row_key,
        run=InProcess().run, **about,
    )  # fmt: skip


def feed(brokers: Brokers, topic: str, given: Given, **options: str) -> Feed:
    return opened(
        f"kafka:{topic}", replace(given, options={"bootstrap": brokers.bootstrap, **options})
    )


def debezium(brokers: Brokers, topic: str, *row_key: str, **columns: pa.DataType) -> Feed:
    return feed(brokers, topic, table(columns or SMALL, *row_key, events=EventForm()))


def send(brokers: Brokers, topic: str, *values: Any, partition: int = 0) -> None:
    """Records whose keys are those of their rows."""
    batch = envelopes.topic(values).to_pydict()
    batch["partition"] = [partition] * len(values)
    brokers.send(topic, pa.record_batch(batch, RECORDS))


def ids(rows: pa.Table) -> list[tuple[str, int]]:
    return [(row["_change_type"], row["id"]) for row in rows.to_pylist()]


def positions(feed: Feed, bounds: Bounds) -> list[Position]:
    return [step.position for step in steps(feed, None, bounds)]


def offsets(position: Position) -> list[int]:
    (of_topic,) = json.loads(json.dumps(position))["offsets"].values()
    return [of_topic[str(number)] for number in range(len(of_topic))]


# Events of Debezium


def test_recorded_events_are_read_as_change_rows(brokers: Brokers, topic: str) -> None:
    given = recorded(envelopes.CONNECT).slice(0, 15)
    brokers.send(topic, given)
    feed = debezium(brokers, topic, "id", **envelopes.ORDERS)
    step = feed.read(None, EVERYTHING)
    assert step is not None
    names, types = tuple(envelopes.ORDERS), tuple(envelopes.ORDERS.values())
    known = EventTable(topic, "orders", names, types, ("id",), divided=True)
    events = events_of(given, topic)
    events = events.taken(Applied().new(events, topic))
    assert repr(read(step).to_pylist()) == repr(change_rows(events, known).to_pylist())  # a NaN
    assert offsets(step.position) == [15, 0, 0, 0]
    assert step.span == f"offsets {topic}/0 0 to 14"
    assert feed.read(step.position, EVERYTHING) is None
    assert (feed.behind(None), feed.behind(step.position)) == ("15 records", "")


@pytest.mark.parametrize("most", [1, 2, 24, 25, 26, 100])
def test_recorded_events_that_were_sent_again_are_applied_once(
    brokers: Brokers, topic: str, most: int
) -> None:
    given = recorded(envelopes.DUPLICATES)
    brokers.send(topic, given)
    columns = {**envelopes.ORDERS, "amount": pa.decimal128(14, 4), "note": pa.string()}
    first = 23  # the events before have other columns
    start: Any = {"offsets": {topic: {str(n): first if n == 0 else 0 for n in range(PARTITIONS)}}}
    feed = debezium(brokers, topic, "id", **columns)
    del columns["f"]
    feed = debezium(brokers, topic, "id", **columns)
    rows = [
        ids(read(step)) if step.changes else [] for step in steps(feed, start, Bounds(rows=most))
    ]
    once = [row for of_step in rows for row in of_step]
    alone = events_of(given.slice(first, 2), topic)
    names, types = tuple(columns), tuple(columns.values())
    assert once == ids(change_rows(alone, EventTable(topic, "orders", names, types, ("id",))))


def row(id_: int, name: str = "n") -> dict[str, Any]:
    return {"id": id_, "name": name}


def test_a_transaction_is_not_divided(brokers: Brokers, topic: str) -> None:
    lsn = iter(range(1, 1000))

    def transaction(txid: int, *rows: int) -> list[dict[str, Any]]:
        return [envelope("c", None, row(i), next(lsn), txid, txId=txid) for i in rows]

    values = [
        envelope("r", None, row(1)), envelope("r", None, row(2)), envelope("r", None, row(3)),
        *transaction(8, 10, 11, 12, 13, 14), *transaction(9, 15), *transaction(10, 16),
        *transaction(11, 17, 18),
    ]  # fmt: skip
    send(brokers, topic, *values)
    for most, ends in (
        (1, [1, 2, 3, 8, 9, 10, 12]),
        (2, [2, 3, 8, 10, 12]),
        (4, [3, 8, 12]),
        (9, [9, 12]),
        (99, [12]),
    ):
        read_to = positions(debezium(brokers, topic, "id"), Bounds(rows=most))
        assert [offsets(position)[0] for position in read_to] == ends


def test_the_rows_before_the_last_truncate_are_left_out(
    brokers: Brokers, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(
        brokers, topic,
        envelope("c", None, row(1), 1, txId=1), envelope("t", None, None, 2, txId=2),
        envelope("c", None, row(2), 3, txId=3), envelope("t", None, None, 4, txId=4),
        envelope("c", None, row(3), 5, txId=5),
    )  # fmt: skip
    feed = debezium(brokers, topic, "id")
    with pytest.raises(SourceError, match=r"truncated in the source.*4 partitions.*--snapshot"):
        feed.read(None, EVERYTHING)
    with only_partitions(monkeypatch, [0]):
        step = feed.read(None, EVERYTHING)
        assert step is not None
        assert step.changes is not None
        assert step.changes.replaces
        assert ids(read(step)) == [("insert", 3)]
        replaced = [
            (step.changes.replaces, read(step).num_rows)
            for step in steps(feed, None, Bounds(rows=1))
            if step.changes
        ]
        assert replaced == [(False, 1), (True, 0), (False, 1), (True, 0), (False, 1)]


def test_a_second_snapshot_without_a_row_key_is_refused(brokers: Brokers, topic: str) -> None:
    send(brokers, topic, envelope("r", None, row(1), 5))
    first = debezium(brokers, topic).read(None, EVERYTHING)
    assert first is not None
    assert ids(read(first)) == [("insert", 1)]
    send(brokers, topic, envelope("r", None, row(1), 9))
    with pytest.raises(SourceError, match="the connector has read all rows of the source again"):
        debezium(brokers, topic).read(first.position, EVERYTHING)


def test_events_that_change_nothing_move_the_position(brokers: Brokers, topic: str) -> None:
    event = envelope("c", None, row(1), 5, 4)
    send(brokers, topic, event)
    feed = debezium(brokers, topic, "id")
    first = feed.read(None, EVERYTHING)
    assert first is not None
    send(brokers, topic, event)
    again = feed.read(first.position, EVERYTHING)
    assert again is not None
    assert again.changes is None
    assert offsets(again.position)[0] == 2


# Plain JSON


def put(brokers: Brokers, topic: str, partition: int, key: Any, value: Any) -> None:
    key, value = (None if each is None else json.dumps(each) for each in (key, value))
    brokers.put(topic, partition, key, value)


CHANGES = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["I", "U", "D", None]), st.integers(0, 99)),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(changes=CHANGES, bound=st.integers(1, 12))
def test_the_rows_after_all_steps_are_those_of_the_last_records(
    brokers: Brokers, changes: list[tuple[int, str | None, int]], bound: int
) -> None:
    topic = f"t-{uuid.uuid4()}"
    expected: dict[int, int] = {}
    brokers.put(topic, 0, "{}", '{"id": -1, "name": "0", "op": "D"}')
    for id_, op, value in changes:
        row = None if op is None else {"op": op, "name": f"{value}", "id": id_}
        put(brokers, topic, id_ % PARTITIONS, {"id": id_}, row)
        expected.pop(id_, None)
        if op in ("I", "U"):
            expected[id_] = value
    brokers.flush()
    rows: dict[int, int] = {}
    given = table(SMALL, "id", op_column="op", ops=OPS)
    last: Position | None = None
    for step in steps(feed(brokers, topic, given), None, Bounds(rows=bound)):
        assert step.changes is not None
        assert step.changes.op_column == "op"
        assert step.changes.ops == OPS
        for row in read(step).to_pylist():
            rows.pop(row["id"], None)
            if row["op"] != "D":
                rows[row["id"]] = int(row["name"])
        last = step.position
    assert rows == expected
    assert last == feed(brokers, topic, given).head()


def test_records_without_an_operation_come_and_those_without_a_value_go(
    brokers: Brokers, topic: str
) -> None:
    put(brokers, topic, 1, {"id": 1}, row(1))
    put(brokers, topic, 1, {"id": 1}, None)
    put(brokers, topic, 1, {"id": 2}, {"id": 2})
    brokers.flush()
    step = feed(brokers, topic, table(SMALL, "id")).read(None, EVERYTHING)
    assert [tuple(each.values()) for each in read(step).to_pylist()] == [
        (1, "n", "insert"),
        (1, None, "delete"),
        (2, None, "insert"),
    ]
    with pytest.raises(SourceError, match=r"partition 1, offset 1.*--row-key"):
        read(feed(brokers, topic, table()).read(None, EVERYTHING))


def test_a_record_without_a_value_goes_whatever_the_operations_are(
    brokers: Brokers, topic: str
) -> None:
    put(brokers, topic, 0, {"id": 1}, {"id": 1, "op": "U"})
    put(brokers, topic, 0, {"id": 1}, None)
    brokers.flush()
    given = table(SMALL, "id", op_column="op", ops={"U": 3})
    step = feed(brokers, topic, given).read(None, EVERYTHING)
    assert step is not None
    assert step.changes is not None
    ops = [step.changes.ops[row["op"]] for row in read(step).to_pylist()]
    assert ops == [3, 1]


def test_what_is_wrong_with_a_record_names_its_offset(brokers: Brokers, topic: str) -> None:
    wrong: list[tuple[Any, Any, str, type[Exception]]] = [
        (b"1", b'{"id": 1, "new": 2, "op": "I"}', "the column 'new', which", SchemaError),
        (b"1", b'{"id": "x", "op": "I"}', "column 'id': unfit value, expected bigint", SourceError),
        (b"1", b"nothing", "expected a record", SourceError),
        (b"1", b'{"id": 1}', "does not say what happened, in 'op'", SourceError),
        (b"1", b'{"id": 1, "op": "I"} {"id": 1}', "expected a record in JSON", SourceError),
        (b"1", b"", "not one record in JSON", SourceError),
        (None, None, "neither a key nor a value", SourceError),
        (b'{"key": 1}', None, "key", SchemaError),
    ]
    given = table(SMALL, "id", op_column="op", ops=OPS)
    brokers.put(topic, 0, "1", '{"id": 1, "op": "I"}')
    for key, value, _, _ in wrong:
        brokers.put(topic, 0, key, value)
    brokers.flush()
    for offset, (_, _, message, kind) in enumerate(wrong, 1):
        after: Any = {"offsets": {topic: {str(n): 0 for n in range(PARTITIONS)}}}
        after["offsets"][topic]["0"] = offset
        step = feed(brokers, topic, given).read(after, Bounds(rows=1))
        with pytest.raises(kind, match=f"partition 0, offset {offset}.*{message}"):
            read(step)


# Where a feed begins and where it cannot go on


def test_a_feed_can_start_at_the_end(brokers: Brokers, topic: str) -> None:
    put(brokers, topic, 0, {"id": 1}, row(1))
    brokers.flush()
    at_end = feed(brokers, topic, table(), start="end")
    assert at_end.behind(None) == ""
    step = at_end.read(None, EVERYTHING)
    assert step is not None
    assert step.changes is None
    assert step.position == at_end.head()
    put(brokers, topic, 2, {"id": 2}, row(2))
    brokers.flush()
    assert ids(read(at_end.read(step.position, EVERYTHING))) == [("insert", 2)]


def test_several_topics_are_read_in_one_step(brokers: Brokers, topic: str) -> None:
    put(brokers, topic, 0, {"id": 1}, row(1))
    put(brokers, f"{topic}-items", 0, {"id": 7}, {"id": 7})
    brokers.flush()
    items = replace(table({"id": pa.int64()}), table="items")
    both = feed(brokers, f"{topic},{topic}-items", replace(table(), others=(items,)))
    step = both.read(None, EVERYTHING)
    assert step is not None
    assert ids(read(step)) == [("insert", 1)]
    assert [*step.others] == ["items"]
    assert ids(read(replace(step, changes=step.others["items"]))) == [("insert", 7)]
    put(brokers, f"{topic}-items", 0, {"id": 8}, {"id": 8})
    brokers.flush()
    after = both.read(step.position, EVERYTHING)
    assert after is not None
    assert after.changes is None
    assert [*after.others] == ["items"]
    with pytest.raises(InputError, match="1 topics for 2 tables"):
        feed(brokers, topic, replace(table(), others=(items,)))


def test_a_topic_that_changed_under_the_feed_is_refused(
    brokers: Brokers, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(brokers, topic, 0, {"id": 1}, row(1))
    brokers.flush()
    there = feed(brokers, topic, table())
    with only_partitions(monkeypatch, [0, 1]):
        fewer = there.head()
    with pytest.raises(SourceError, match=r"has 4 partitions, and had 2.*--reset-position"):
        there.read(fewer, EVERYTHING)
    later: Any = json.loads(json.dumps(there.head()))
    later["offsets"][topic]["0"] = 9
    with pytest.raises(SourceError, match=r"up to offset 9, but the next one gets offset 1"):
        there.read(later, EVERYTHING)
    later["offsets"][topic]["0"] = -1  # lower than what is there
    with pytest.raises(SourceError, match=r"were removed before the profile had them; .*offset 0"):
        there.read(later, EVERYTHING)
    removed = topics.Range(topic, 0, 50, 60)  # by retention, since the step was planned
    access = topics.Access({"bootstrap.servers": brokers.bootstrap})
    with pytest.raises(SourceError, match="from offset 50 on were removed"):
        list(topics.records(access, removed))
    with pytest.raises(SourceError, match=r"topic 'nothing-here': .*Unknown topic"):
        feed(brokers, "nothing-here", table()).head()


def test_brokers_that_do_not_answer_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PATIENCE_S", 0.5)
    nowhere = opened("kafka:t", replace(table(), options={"bootstrap": "127.0.0.1:1"}))
    with pytest.raises(UnreachableError, match=r"topic 't': the brokers cannot be reached"):
        nowhere.head()
    access = topics.Access({"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(UnreachableError, match=r"t, partition 0: the brokers cannot be reached"):
        list(topics.records(access, topics.Range("t", 0, 0, 1)))


SECRET = "s3cret-and-long"


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A password in the environment, another one in a file."""
    file = tmp_path / "client.properties"
    file.write_text(f"# of tests\nssl.key.password = {SECRET}\nsasl.username=someone\n\n")
    monkeypatch.setenv("HOLDFAST_KAFKA_SASL_PASSWORD", SECRET)
    monkeypatch.setenv("HOLDFAST_KAFKA_SASL_USERNAME", "another")
    return file


def test_settings_come_from_a_file_and_the_environment(secrets: Path) -> None:
    given = replace(table(), options={"bootstrap": "b:1", "config": str(secrets)})
    feed: Any = opened("kafka:t", given)
    assert feed.access.settings == {
        "bootstrap.servers": "b:1",
        "ssl.key.password": SECRET,
        "sasl.username": "another",
        "sasl.password": SECRET,
    }
    secrets.write_text(SECRET)
    with pytest.raises(InputError, match=r"client\.properties, line 1: expected NAME=VALUE"):
        opened("kafka:t", given)
    with pytest.raises(InputError, match="cannot be read"):
        opened("kafka:t", replace(given, options={**given.options, "config": "gone"}))


def test_credentials_are_nowhere(
    brokers: Brokers, topic: str, secrets: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(brokers, topic, 0, {"id": 1}, row(1))
    brokers.flush()
    there = feed(brokers, topic, table(), config=str(secrets))
    step = there.read(None, EVERYTHING)
    assert step is not None
    assert ids(read(step)) == [("insert", 1)]
    said = [repr(there), there.address, json.dumps([there.identity, step.position]), repr(step)]
    secrets.write_text(f"log.level.{SECRET}=1\nsecurity.protocol={SECRET}\n")
    wrong = feed(brokers, topic, table(), config=str(secrets))
    with pytest.raises(SourceError, match="settings of the client do not fit") as refused:
        wrong.head()
    with pytest.raises(InputError, match=r"no option 'sasl\.password'") as option:
        feed(brokers, topic, table(), **{"sasl.password": SECRET})
    streams = capfd.readouterr()
    said += [str(refused.value), str(option.value), streams.out, streams.err]
    assert not any(SECRET in text for text in said)


def test_what_makes_no_sense_is_refused_before_anything_is_read() -> None:
    for address in ("kafka:", "kafka:a b", "kafka:a,"):
        with pytest.raises(InputError, match="is no name of a topic"):
            opened(address, table())
    with pytest.raises(InputError, match="say where the brokers are with --bootstrap"):
        opened("kafka:t", table())
    options = {"bootstrap": "b:1"}
    with pytest.raises(InputError, match="the order of records is that of their offsets"):
        opened("kafka:t", table(order=("at",), options=options))
    with pytest.raises(InputError, match="start is 'now'; expected beginning"):
        opened("kafka:t", table(options={**options, "start": "now"}))
    with pytest.raises(InputError, match="encoding of column 'name'"):
        opened("kafka:t", table(events=EventForm({"name": "hours"}), options=options))


def test_what_has_to_be_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SetupError, match=r"pip install 'holdfast\[kafka\]'"):
        opened("kafka:t", table(options={"bootstrap": "b:1"})).head()
