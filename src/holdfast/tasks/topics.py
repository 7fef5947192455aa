"""Records of a topic of Kafka, read by a client of its own between two offsets of a partition.

Offsets may have gaps: where a topic is compacted, and where transactions of producers end. So a
range ends where the client is past its end, whatever the last record was.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.model.errors import SetupError, SourceError, UnreachableError
from holdfast.tasks.change_events import RECORDS

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

PATIENCE_S = 30.0
"""For how long a broker may be silent."""

_AT_ONCE = 10_000
_WAIT_S = 0.05
_LATER = (5, 6, 9)
"""A partition or topic has no leader just now, or another one."""

_SECRET = re.compile("user|pass|secret|token|key|pem|jaas|oauth|config")
_OTHER_KEY = ("__debezium.oldkey", "__debezium.newkey")
_OURS = {
    "group.id": "holdfast",  # a client must have one; nothing is ever committed in it
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "log_level": 0,
}


@dataclass(frozen=True)
class Access:
    """How brokers are reached, in the settings of librdkafka. Some of them are secret, so none is
    shown."""

    settings: Mapping[str, str] = field(repr=False)

    def records(self, given: Range) -> Iterator[pa.RecordBatch]:
        """The records of a range in the order of their offsets, some at a time."""
        return records(self, given)

    def without_secrets(self, text: str) -> str:
        """What the client says, without the values of settings that may be secret."""
        for name, value in self.settings.items():
            if value and _SECRET.search(name):
                text = text.replace(value, "…")
        return text


@dataclass(frozen=True)
class Range:
    """The records of a partition from an offset to before another one."""

    topic: str
    partition: int
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}, partition {self.partition}"


def partitions(access: Access, topic: str) -> dict[int, tuple[int, int]]:
    """The partitions of a topic, each with the offset of its first record that there is, and the
    one of the next record."""
    with _client(access, topic) as (consumer, troubles):
        from confluent_kafka import KafkaException, TopicPartition

        try:
            about = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic]
            if about.error is not None:
                kind = UnreachableError if about.error.code() in _LATER else SourceError
                raise kind(f"topic {topic!r}: {about.error.str()}")
            return {
                number: consumer.get_watermark_offsets(
                    TopicPartition(topic, number), timeout=PATIENCE_S
                )
                for number in sorted(about.partitions)
            }
        except KafkaException as error:
            consumer.poll(0)  # so that the client says what it met
            raise _unreachable(f"topic {topic!r}", access, troubles, error) from None


def records(access: Access, given: Range) -> Iterator[pa.RecordBatch]:
    """The records of a range in the order of their offsets, some at a time; without those that
    transactions took back."""
    if given.first >= given.end:
        return
    with _client(access, given.topic) as (consumer, troubles):
        from confluent_kafka import TopicPartition

        place = TopicPartition(given.topic, given.partition, given.first)
        consumer.assign([place])
        last_sign, at = time.monotonic(), given.first
        while at < given.end:
            messages = consumer.consume(_AT_ONCE, _WAIT_S)
            came = [each for each in messages if _is_record(each, given)]
            if batch := [each for each in came if _offset(each) < given.end]:
                yield _batch(batch)
            before, at = at, max(at, _reached(consumer, place, came))
            if at > before:
                last_sign = time.monotonic()
            elif time.monotonic() - last_sign > PATIENCE_S:
                raise _unreachable(str(given), access, troubles)


def _reached(consumer: Consumer, place: TopicPartition, came: list[Message]) -> int:
    """How far the client is."""
    if came:
        return _offset(came[-1]) + 1
    return int(consumer.position([place])[0].offset)  # negative before the first record


def _offset(message: Message) -> int:
    return int(str(message.offset()))


def _is_record(message: Message, given: Range) -> bool:
    """Whether a message is a record; an error for one that tells of trouble."""
    from confluent_kafka import KafkaError

    error = message.error()
    if error is None:
        return True
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise removed(given, None)
    if error.code() != KafkaError._PARTITION_EOF and not error.retriable():
        raise SourceError(f"{given}: cannot be read ({error.str()})")
    return False


def removed(given: Range, first: int | None) -> SourceError:
    """The error about records that went before they were read."""
    there = "" if first is None else f"; the first one that there is has offset {first}"
    return SourceError(
        f"{given}: the records from offset {given.first} on were removed before the profile had "
        f"them{there}. Give the rows as they are now as --snapshot, follow the feed anew with "
        "--reset-position, and let the topic keep its records longer (retention.ms)"
    )


def _batch(messages: list[Message]) -> pa.RecordBatch:
    columns: list[list[Any]] = [
        [each.partition() for each in messages],
        [each.offset() for each in messages],
        [each.key() for each in messages],
        [each.value() for each in messages],
        [_other_key(each) for each in messages],
    ]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, RECORDS.types, strict=True)]
    return pa.record_batch(arrays, schema=RECORDS)


def _other_key(message: Message) -> bytes | None:
    headers = dict(message.headers() or ())
    value = next((headers[name] for name in _OTHER_KEY if name in headers), None)
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _unreachable(
    what: str, access: Access, troubles: list[Any], error: KafkaException | None = None
) -> SourceError:
    """The error about brokers that did not answer, or did not let the client in."""
    from confluent_kafka import KafkaError

    refused = [each for each in troubles if each.code() == KafkaError._AUTHENTICATION]
    last = (refused or troubles or list(error.args if error else ()))[-1:]
    said = access.without_secrets(last[0].str()) if last else "no answer"
    if refused:
        return SourceError(
            f"{what}: the brokers refuse the credentials ({said}); they are taken from the "
            "environment (HOLDFAST_KAFKA_…) and the file of HOLDFAST_KAFKA_CONFIG"
        )
    return UnreachableError(f"{what}: the brokers cannot be reached ({said})")


@contextmanager
def _client(access: Access, topic: str) -> Iterator[tuple[Consumer, list[Any]]]:
    """A client, and what it says about brokers that it cannot reach."""
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError as missing:
        raise SetupError(
            f"topic {topic!r}: the feed of a topic needs confluent-kafka, and there is none "
            f"({missing}); install it with: pip install 'holdfast[kafka]', where tasks run, too"
        ) from missing
    troubles: list[Any] = []
    try:
        consumer = Consumer({**access.settings, **_OURS, "error_cb": troubles.append})
    except KafkaException as wrong:
        said = access.without_secrets(wrong.args[0].str())
        raise SourceError(
            f"topic {topic!r}: the settings of the client do not fit ({said})"
        ) from None
    with closing(consumer):
        yield consumer, troubles
