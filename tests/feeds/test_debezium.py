"""A database that is followed through Debezium and Kafka, while connectors are killed."""

from __future__ import annotations

import io
import os
import random
import signal
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest

from holdfast import flow
from holdfast.feeds.followed import FeedTable, Followed
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.tasks.topics import Access, Range, partitions, records
from tests.feeds.following import follow, follower, profiled, stored
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
TABLES = {"orders": KEYED, "nokey": UNKEYED}

MADE = """
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

    def feeds(self) -> list[Followed]:
        """The feeds of both tables."""
        return [
            Followed(
                table, f"kafka:{self.prefix}.public.{table}", (FeedTable(table, key),),
                debezium=True, options={"bootstrap": self.bootstrap},
            )
            for table, key in (("orders", ("id",)), ("nokey", ()))
        ]  # fmt: skip

    def expect_equal(self, store: Store, where: str) -> None:
        """Expect that a profile has the rows of the database."""
        for table, columns in TABLES.items():
            assert Counter(stored(store, table)) == Counter(self.rows(table, columns)), where


@pytest.fixture
def source(broker: str, database: Postgres, connect_jars: str, tmp_path: Any) -> Iterator[Source]:
    database.run(MADE)
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


@pytest.mark.parametrize("seed", range(2))
def test_a_profile_has_the_rows_of_the_database(source: Source, tmp_path: Path, seed: int) -> None:
    """While the connector is killed, and has to send again what it sent since its start."""
    draw = random.Random(seed)
    store = profiled(tmp_path / "p", TABLES)
    sent_again = 0
    for step in range(12):
        source.run("".join(transaction(draw, step) for _ in range(draw.randrange(1, 12))))
        if step % 4 == 3:
            before = source.ends()
            source.connect.kill()
            source.connect.start()
            source.run("")
            sent_again += source.ends() - before > 2  # more than the marks
        rows = draw.choice([None, 1, 3, 10])
        course = follow(store, *source.feeds(), rows=rows)
        assert not course.failed, course.failed
        source.expect_equal(store, f"seed {seed}, step {step}")
    assert sent_again, "no connector sent anything again, so nothing of this was tried"


def pairs(draw: random.Random, step: int) -> str:
    """A transaction after which both tables have the same rows with numbers from 100 on."""
    id_ = draw.randrange(100, 110)
    change = draw.choice([
        f"insert into orders(id, name) values ({id_}, 's{step}');"
        f" insert into nokey values ({id_}, 's{step}')",
        f"update orders set name = 's{step}' where id >= {id_};"
        f" update nokey set b = 's{step}' where a >= {id_}",
    ])  # fmt: skip
    return (
        f"begin; delete from nokey where a = {id_}; delete from orders where id = {id_}; {change};"
        " commit;\n"
    )


def _behind(store: Store, feed: Followed) -> str | None:
    (status,) = flow.status(store, [feed], lambda: InProcess(1))
    assert status.error is None
    return status.behind


def test_a_version_is_a_moment_of_the_database(source: Source, tmp_path: Path) -> None:
    """What a transaction changes in two tables is one version, while the connector writes, and is
    killed."""
    draw = random.Random(3)
    store = profiled(tmp_path / "p", TABLES)
    topics = ",".join(f"{source.prefix}.public.{table}" for table in TABLES)
    options = {"bootstrap": source.bootstrap, "transactions": f"{source.prefix}.transaction"}
    tables = (FeedTable("orders", ("id",)), FeedTable("nokey"))
    feed = Followed("shop", f"kafka:{topics}", tables, debezium=True, options=options)
    taken = 0

    def step(most: int | None) -> bool:
        """Take a step; whether there was none."""
        nonlocal taken
        if follower(store, rows=most).step(feed) is None:
            return True
        taken += 1
        orders = {(row[0], row[1]) for row in stored(store, "orders") if row[0] >= 100}
        assert orders == {row for row in stored(store, "nokey") if (row[0] or 0) >= 100}
        return False

    for number in range(8):
        writes = threading.Thread(
            target=source.run, args=["".join(pairs(draw, number) for _ in range(20))]
        )
        writes.start()
        while writes.is_alive():
            step(draw.choice([1, 3, None]))
        writes.join()
        if number % 3 == 2:
            source.connect.kill()
            source.connect.start()
            source.run(pairs(draw, number))
    source.connect.wait_for(
        "the end of the last transaction", lambda: step(None) and not _behind(store, feed)
    )
    source.expect_equal(store, "at the end")
    assert taken > 8


KILLS = int(os.environ.get("HOLDFAST_KILLS", "200"))


def test_a_follower_that_is_killed_at_any_moment(source: Source, tmp_path: Path) -> None:
    """Before, in and after its commits: what it applied is applied once."""
    draw = random.Random(7)
    store = profiled(tmp_path / "p", TABLES)
    follow(store, *source.feeds())
    kills, step = 0, 0
    while kills < KILLS:
        step += 1
        source.run("".join(transaction(draw, step) for _ in range(draw.randrange(1, 12))))
        longest = 2.0
        while (status := _followed(source, store.path, draw, longest)) == -signal.SIGKILL:
            kills, longest = kills + 1, longest * 1.2
        assert status == 0, (tmp_path / "p.failed").read_text()
        source.expect_equal(store, f"step {step}, after {kills} kills")
    assert flow.verify(InProcess(1), store, no_progress).equal
    print(f"{kills} kills in {step} rounds, to version {store.head()}")


def _followed(source: Source, path: str, draw: random.Random, longest: float) -> int:
    """How a process ends that follows, and is killed after a while, unless it was faster."""
    rows, seconds = draw.choice([None, 1, 3, 10]), draw.uniform(0, longest)
    child = os.fork()
    if not child:
        code = 1
        try:
            course = follow(Store.open(path), *source.feeds(), rows=rows)
            Path(f"{path}.failed").write_text(f"{course.failed}")
            code = int(bool(course.failed))
        finally:
            os._exit(code)
    killer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    killer.start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # nobody else gets its number yet
    killer.cancel()
    killer.join()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
