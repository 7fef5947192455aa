"""Topics for tests, on brokers that librdkafka makes in this process: they keep records and
offsets, and know nothing of retention and compaction, which ``make test-feeds`` tries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

PARTITIONS = 4
"""Those of every topic."""


class Brokers:
    """Brokers, as long as this lives."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        self.producer = Producer(
            {"test.mock.num.brokers": 1, "bootstrap.servers": "in.process", "log_level": 0}
        )
        brokers = self.producer.list_topics(timeout=30).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def send(self, topic: str, records: pa.RecordBatch) -> None:
        """Append records to the partitions that they name; they get their offsets there."""
        for row in records.to_pylist():
            headers = {"__debezium.oldkey": row["other_key"]} if row["other_key"] else {}
            self.put(topic, row["partition"], row["key"], row["value"], headers)
        self.flush()

    def put(self, topic: str, partition: int, key: Any, value: Any, headers: Any = None) -> None:
        """Append a record; :meth:`flush` waits until it is there."""
        self.producer.produce(topic, value, key, partition, headers=headers or {})

    def flush(self) -> None:
        """Wait until all records are there."""
        assert self.producer.flush(60) == 0


@contextmanager
def only_partitions(monkeypatch: Any, numbers: Sequence[int]) -> Iterator[None]:
    """As if topics had only some partitions."""
    from holdfast.feeds import kafka
    from holdfast.tasks.topics import partitions

    with monkeypatch.context() as patched:
        patched.setattr(
            kafka, "partitions", lambda *given: {n: partitions(*given)[n] for n in numbers}
        )
        yield
