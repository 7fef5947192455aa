"""Feeds of real servers: what retention, compaction and transactions do to a topic."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pyarrow as pa
import pytest

from holdfast.feeds.addresses import opened
from holdfast.feeds.contract import Bounds, Feed, Given
from holdfast.input.row_input import Columns
from holdfast.model.errors import SourceError
from holdfast.runtime.runner import InProcess
from holdfast.tasks import topics
from tests.feeds.reading import EVERYTHING, read, steps
from tests.feeds.servers import SECRET, USER, Broker

pytestmark = pytest.mark.feeds


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4()}"


def make(broker: str, topic: str, **settings: str) -> Any:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": broker})
    config = {name.replace("_", "."): value for name, value in settings.items()}
    new = NewTopic(topic, 1, 1, config=config)
    admin.create_topics([new])[topic].result()
    return admin


def producer(broker: str, **settings: str) -> Any:
    from confluent_kafka import Producer

    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": broker, **named})


def feed(broker: str, topic: str) -> Feed:
    given = Given(
        "t", Columns.of(["id"], ["bigint"], [pa.int64()]), ("id",),
        options={"bootstrap": broker}, run=InProcess().run,
    )  # fmt: skip
    return opened(f"kafka:{topic}", given)


def send(client: Any, topic: str, *ids: int, key: str | None = None) -> None:
    for id_ in ids:
        client.produce(topic, f'{{"id": {id_}}}', key or str(id_))
    assert client.flush(60) == 0


def followed(feed: Feed, bounds: Bounds = EVERYTHING) -> list[int]:
    return [id_ for step in steps(feed, None, bounds) for id_ in ids(step)]


def ids(step: Any) -> list[int]:
    values: list[int] = read(step).column("id").to_pylist()
    return values


@pytest.mark.parametrize("most", [None, 1, 3])
def test_only_what_transactions_kept_is_read(broker: str, topic: str, most: int | None) -> None:
    make(broker, topic)
    client = producer(broker, transactional_id=topic)
    client.init_transactions()
    client.begin_transaction()
    send(client, topic, 1, 2)
    client.commit_transaction()
    client.begin_transaction()
    send(client, topic, 3, 4)
    client.abort_transaction()
    client.begin_transaction()
    send(client, topic, 5)
    assert followed(feed(broker, topic), Bounds(rows=most)) == [1, 2]
    before = feed(broker, topic).head()
    client.commit_transaction()
    assert followed(feed(broker, topic), Bounds(rows=most)) == [1, 2, 5]
    assert ids(feed(broker, topic).read(before, EVERYTHING)) == [5]


def test_a_compacted_topic_has_gaps(broker: str, topic: str) -> None:
    settings = {
        "min_cleanable_dirty_ratio": "0.001",
        "segment_ms": "100",
        "delete_retention_ms": "0",
    }
    make(broker, topic, cleanup_policy="compact", **settings)
    client = producer(broker)
    send(client, topic, *range(100), key="same")
    end = time.monotonic() + 60
    while len(followed(feed(broker, topic))) > 50:
        assert time.monotonic() < end, "the topic was not compacted"
        time.sleep(0.5)
        send(client, topic, 100, key="same")  # so that the segment before can be compacted
    for most in (None, 1, 7):
        rows = followed(feed(broker, topic), Bounds(rows=most))
        assert rows[-1] == 100
        assert rows == sorted(rows)
    assert followed(feed(broker, topic)) == rows


def test_records_that_retention_removed(broker: str, topic: str) -> None:
    from confluent_kafka import TopicPartition

    admin = make(broker, topic)
    send(producer(broker), topic, *range(10))
    before = next(iter(steps(feed(broker, topic), None, Bounds(rows=2)))).position
    planned = feed(broker, topic).read(before, EVERYTHING)
    partition = TopicPartition(topic, 0, 5)
    admin.delete_records([partition])[partition].result()
    with pytest.raises(SourceError, match=r"offset 2 on were removed.*has offset 5.*--snapshot"):
        feed(broker, topic).read(before, EVERYTHING)
    with pytest.raises(SourceError, match=r"offset 2 on were removed before"):
        read(planned)
    assert followed(feed(broker, topic)) == [5, 6, 7, 8, 9]


def test_a_topic_that_gets_partitions_or_is_made_anew(broker: str, topic: str) -> None:
    from confluent_kafka.cimpl import NewPartitions

    admin = make(broker, topic)
    send(producer(broker), topic, 1, 2)
    before = feed(broker, topic).head()
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    with pytest.raises(SourceError, match="has 3 partitions, and had 1"):
        feed(broker, topic).read(before, EVERYTHING)
    admin.delete_topics([topic])[topic].result()
    make(broker, topic)
    with pytest.raises(SourceError, match=r"up to offset 2, but the next one gets offset 0"):
        feed(broker, topic).read(before, EVERYTHING)


def test_a_password_comes_from_the_environment(
    real_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(real_broker.open, topic)
    send(producer(real_broker.open), topic, 1)
    settings = {
        "SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SASL_MECHANISM": "PLAIN",
        "SASL_USERNAME": USER,
        "SASL_PASSWORD": SECRET,
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"HOLDFAST_KAFKA_{name}", value)
    assert followed(feed(real_broker.guarded, topic)) == [1]
    monkeypatch.setenv("HOLDFAST_KAFKA_SASL_PASSWORD", "wrong-password")
    monkeypatch.setattr(topics, "PATIENCE_S", 5.0)
    with pytest.raises(SourceError, match="the brokers refuse the credentials") as refused:
        feed(real_broker.guarded, topic).head()
    assert "wrong-password" not in str(refused.value)
    assert USER not in str(refused.value)
