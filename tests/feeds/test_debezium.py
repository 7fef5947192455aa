"""A database that is followed through Debezium and Kafka, while connectors are killed."""

from __future__ import annotations

import io
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest

from holdfast.feeds.addresses import opened
from holdfast.feeds.contract import Bounds, EventForm, Feed, Given, Position
from holdfast.input.row_input import Columns
from holdfast.runtime.runner import InProcess
from holdfast.tasks.topics import Access, Range, partitions, records
from tests.feeds.reading import read, steps
from tests.feeds.servers import Connect, Postgres, debezium

pytestmark = pytest.mark.feeds

KEYED = {
    "id": pa.int32(),
    "name": pa.string(),
    "amount": pa.decimal128(10, 2),
    "at": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "paid": pa.bool_(),
    "big": pa.string(),
    "f": pa.float64(),
}
UNKEYED = {"a": pa.int32(), "b": pa.string()}

TABLES = """
drop table if exists orders, nokey;
create table orders(
    id int primary key, name varchar(20), amount numeric(10, 2), at timestamptz, day date,
    paid boolean, big text, f float8);
alter table orders alter column big set storage external;
create table nokey(a int, b text);
alter table nokey replica identity full;
insert into orders
    select i, 'n' || i, i * 1.25, '2026-01-02 03:04:05.678901+02', '2026-01-02', i % 2 = 0,
        repeat('x', 9000), 0.1
    from generate_series(1, 20) i;
insert into nokey values (1, 'a'), (1, 'a'), (2, null);
"""


def statement(draw: random.Random, step: int) -> str:
    """Something that happens in the source."""
    one, other = draw.randrange(1, 30), draw.randrange(1, 30)
    large = f"repeat('{draw.choice('abc')}', 9000)"
    return draw.choice([
        f"insert into orders(id, name, amount, big) values ({one}, 's{step}', {other}, {large})"
        " on conflict (id) do nothing",
        f"update orders set name = 's{step}' where id = {one}",
        f"update orders set amount = amount + 1, paid = not paid where id % 3 = {one % 3}",
        f"update orders set big = {large} where id = {one}",
        f"update orders set id = {other} where id = {one} and {other} not in"
        " (select id from orders)",
        f"delete from orders where id in ({one}, {other})",
        f"delete from orders where id = {one}; insert into orders(id, big) values ({one}, {large})",
        f"insert into nokey values ({one % 3}, 'b'), ({one % 3}, 'b')",
        f"delete from nokey where ctid in (select ctid from nokey where a = {one % 3} limit 1)",
        f"update nokey set b = 's{step}' where a = {one % 3}",
        *(["truncate orders", "truncate nokey"] if one == 1 else []),
    ])  # fmt: skip


def transaction(draw: random.Random, step: int) -> str:
    """One or several statements, as a transaction."""
    inside = "; ".join(statement(draw, step) for _ in range(draw.randrange(1, 4)))
    return f"begin; {inside}; {draw.choice(['commit', 'commit', 'commit', 'rollback'])};\n"


@dataclass
class Source:
    """A database with a connector to a topic for each table."""

    database: Postgres
    connect: Connect
    bootstrap: str
    prefix: str
    marks: int = 0
    read_to: dict[str, int] = field(default_factory=dict)

    def run(self, sql: str) -> None:
        """Run statements, and wait until all that they changed is in the topics."""
        self.marks += 1
        mark = f"mark-{self.marks}"
        self.database.run(
            f"{sql}\ninsert into orders(id, name) values (0, '{mark}')"
            f" on conflict (id) do update set name = excluded.name; insert into nokey(b)"
            f" values ('{mark}');"
        )
        for table in ("orders", "nokey"):
            self._await(f"{self.prefix}.public.{table}", mark.encode())

    def _await(self, topic: str, mark: bytes) -> None:
        access = Access({"bootstrap.servers": self.bootstrap})

        def sign() -> bool:
            try:
                _, end = partitions(access, topic)[0]
            except Exception:  # noqa: BLE001  there is no topic before its first record
                return False
            first, self.read_to[topic] = self.read_to.get(topic, 0), end
            return any(
                mark in (value or b"")
                for batch in records(access, Range(topic, 0, first, end))
                for value in batch.column("value").to_pylist()
            )

        self.connect.wait_for(f"the arrival of {mark.decode()} in {topic}", sign)

    def ends(self) -> int:
        """How many records the topics ever had."""
        return sum(self.read_to.values())

    def rows(self, table: str, columns: dict[str, pa.DataType]) -> list[tuple[Any, ...]]:
        """The rows of a table now."""
        text = self.database.table(f"select * from {table}").encode()
        convert = csv.ConvertOptions(
            column_types=columns, true_values=["t"], false_values=["f"],
            strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""],
        )  # fmt: skip
        rows = csv.read_csv(io.BytesIO(text), convert_options=convert).to_pylist()
        return [tuple(row.values()) for row in rows]

    def feed(self, table: str, columns: dict[str, pa.DataType], *row_key: str) -> Feed:
        """The feed of a table."""
        types = [*columns.values()]
        given = Given(
            table, Columns.of([*columns], [*map(str, types)], types), row_key,
            options={"bootstrap": self.bootstrap}, events=EventForm(), run=InProcess().run,
        )  # fmt: skip
        return opened(f"kafka:{self.prefix}.public.{table}", given)


@pytest.fixture
def source(broker: str, database: Postgres, connect_jars: str, tmp_path: Any) -> Iterator[Source]:
    database.run(TABLES)
    prefix = f"shop{uuid.uuid4().hex}"
    settings = debezium(database, "public.orders,public.nokey", prefix)
    connect = Connect(connect_jars, tmp_path / "connect", broker, settings)
    connect.start()
    source = Source(database, connect, broker, prefix)
    source.run("")
    connect.stop()  # or it would read all rows again, too
    connect.start()
    yield source
    connect.kill()


@dataclass
class Follower:
    """The rows of a table as its change rows tell: obvious, and slow."""

    feed: Feed
    columns: tuple[str, ...]
    position: Position | None = None
    by_key: dict[Any, dict[str, Any]] = field(default_factory=dict)
    multiset: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def follow(self, bounds: Bounds) -> None:
        """Take all steps to the head."""
        for step in steps(self.feed, self.position, bounds):
            stored = dict(self.by_key)  # as a profile has them before the step
            if step.changes is not None:
                if step.changes.replaces:
                    self.by_key, self.multiset = {}, Counter()
                for row in read(step).to_pylist():
                    self._change(row, stored)
            self.position = step.position

    def _change(self, row: dict[str, Any], stored: dict[Any, dict[str, Any]]) -> None:
        cells = {name: row[name] for name in self.columns}
        came = row["_change_type"] in ("insert", "update_postimage")
        if "id" not in row:
            self.multiset[tuple(cells.values())] += 1 if came else -1
        elif came:
            for name in row["_unavailable"] or ():
                cells[name] = stored[row["_former_key"]["id"]][name]
            self.by_key[row["id"]] = cells
        else:
            self.by_key.pop(row["id"], None)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, in any order."""
        assert min(self.multiset.values(), default=0) >= 0
        return [*(tuple(row.values()) for row in self.by_key.values()), *self.multiset.elements()]


@pytest.mark.parametrize("seed", range(2))
def test_what_is_followed_is_what_the_database_has(source: Source, seed: int) -> None:
    """While the connector is killed, and has to send again what it sent since its start."""
    draw = random.Random(seed)
    tables = {"orders": KEYED, "nokey": UNKEYED}
    followers = {
        name: Follower(
            source.feed(name, columns, *(["id"] if "id" in columns else [])), (*columns,)
        )
        for name, columns in tables.items()
    }
    sent_again = 0
    for step in range(12):
        source.run("".join(transaction(draw, step) for _ in range(draw.randrange(1, 12))))
        if step % 4 == 3:
            before = source.ends()
            source.connect.kill()
            source.connect.start()
            source.run("")
            sent_again += source.ends() - before > 2  # more than the marks
        for name, follower in followers.items():
            follower.follow(Bounds(rows=draw.choice([None, 1, 3, 10])))
            there = source.rows(name, tables[name])
            assert Counter(follower.rows) == Counter(there), f"seed {seed}, step {step}, {name}"
    assert sent_again, "no connector sent anything again, so nothing of this was tried"
