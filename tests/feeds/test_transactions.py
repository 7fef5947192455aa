"""Transactions of a source that change several tables: no step divides one, whatever arrives when,
and whatever a connector that was killed sends again."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import flow
from holdfast.feeds import kafka
from holdfast.feeds.addresses import opened
from holdfast.feeds.contract import Bounds, EventForm, Feed, Given, Position
from holdfast.feeds.followed import FeedTable, Followed
from holdfast.input.row_input import Columns
from holdfast.model.errors import InputError, SourceError
from holdfast.model.following import FeedRun
from holdfast.model.progress import no_progress
from holdfast.report import terminal
from holdfast.runtime.runner import InProcess
from holdfast.screen.page import Page
from holdfast.store import Store
from holdfast.tasks.topics import Range
from tests import envelopes
from tests.envelopes import in_block
from tests.feeds.following import follow, profiled, stored
from tests.feeds.reading import EVERYTHING, Multiset, applied
from tests.feeds.test_kill import killed_before
from tests.flow.tables import folder
from tests.strategies import examples

TABLES = ("orders", "lines")
ENDS = "shop.transaction"
PLACES = [("shop.public.orders", 0), ("shop.public.orders", 1), ("shop.public.lines", 0), (ENDS, 0)]
COLUMNS = ["id", "name"]

Record = tuple[Any, Any]
Change = tuple[str, int, str | None]
"""A table, a row of it, and its name from now on; None: it goes."""

State = dict[str, dict[int, str]]


@dataclass(frozen=True)
class Topics:
    """What brokers have, in memory."""

    records_of: dict[tuple[str, int], list[Record]] = field(
        default_factory=lambda: {place: [] for place in PLACES}
    )

    def partitions(self, topic: str) -> dict[int, tuple[int, int]]:
        return {n: (0, len(rows)) for (t, n), rows in self.records_of.items() if t == topic}

    def records(self, given: Range) -> Iterator[pa.RecordBatch]:
        """Three at a time."""
        there = self.records_of[given.topic, given.partition]
        for first in range(given.first, given.end, 3):
            rows = [
                (given.partition, offset, *there[offset], None)
                for offset in range(first, min(first + 3, given.end))
            ]
            yield envelopes.records(rows)


@pytest.fixture(autouse=True, scope="module")
def in_memory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kafka, "partitions", lambda access, topic: access.partitions(topic))
        yield


def given_tables(*tables: str, **options: str) -> list[Given]:
    """What is known of both tables, or of some."""
    return [
        Given(
            table, Columns.of(COLUMNS, ["bigint", "string"], [pa.int64(), pa.string()]), ("id",),
            options=options, run=InProcess().run, events=EventForm(),
        )
        for table in tables or TABLES
    ]  # fmt: skip


def shop(topics: Topics, *tables: str, **options: str) -> Feed:
    """The feed of both tables, or of some."""
    options = {"bootstrap": "b:1", "transactions": ENDS, **options}
    first, *others = given_tables(*tables, **options)
    address = ",".join(f"shop.public.{table}" for table in tables or TABLES)
    feed: Any = opened(f"kafka:{address}", replace(first, others=tuple(others)))
    return replace(feed, access=topics)  # type: ignore[no-any-return]


def bytes_of(form: Any) -> bytes | None:
    return None if form is None else json.dumps(form).encode()


@dataclass
class Source:
    """A database and its connector, which can be killed."""

    topics: Topics = field(default_factory=Topics)
    states: list[State] = field(default_factory=lambda: [{table: {} for table in TABLES}])
    sent: list[list[tuple[tuple[str, int], Record]]] = field(default_factory=list)
    on_their_way: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    log: int = 100
    committed: int | None = None

    def snapshot(self, rows: Mapping[str, Mapping[int, str]]) -> None:
        """The rows that the connector reads first."""
        self.states = [{table: {**rows.get(table, {})} for table in TABLES}]
        for table, of in self.states[0].items():
            for id_, name in of.items():
                event = self.event("r", table, None, {"id": id_, "name": name}, self.log, None)
                self.put(self.place(table, id_), (bytes_of({"id": id_}), bytes_of(event)))

    def event(
        self, op: str, table: str, before: Any, after: Any, lsn: int, order: int | None
    ) -> dict[str, Any]:
        commit = self.committed or 0
        given = envelopes.envelope(
            op, before, after, lsn, commit, order, schema="public", table=table
        )
        return in_block(given, None) if lsn % 2 else given

    def place(self, table: str, id_: int) -> tuple[str, int]:
        return (f"shop.public.{table}", id_ % 2 if table == "orders" else 0)

    def transaction(self, changes: list[Change]) -> None:
        """Rows that get a name, or go."""
        state = {table: {**rows} for table, rows in self.states[-1].items()}
        records: list[tuple[tuple[str, int], Record]] = []
        counts: Counter[str] = Counter()
        number = len(self.sent) + 1
        for table, id_, name in changes:
            self.log += 10
            before = state[table].pop(id_, None)
            if before is None and name is None:
                continue
            if name is not None:
                state[table][id_] = name
            counts[table] += 1
            op = "d" if name is None else "u" if before is not None else "c"
            rows = [None if each is None else {"id": id_, "name": each} for each in (before, name)]
            order = sum(counts.values())
            event = self.event(op, table, rows[0], rows[1], self.log, order)
            key = bytes_of({"id": id_})
            records.append((self.place(table, id_), (key, bytes_of(event))))
            if name is None:
                records.append((self.place(table, id_), (key, None)))
        self.log += 10
        self.committed = self.log
        told = [{"data_collection": f"public.{t}", "event_count": n} for t, n in counts.items()]
        told.append({"data_collection": "public.others", "event_count": 3})
        begin = {"status": "BEGIN", "id": f"{number}:{self.log - 5}", "data_collections": None}
        end = {"status": "END", "id": f"{number}:{self.log}", "data_collections": told}
        self.sent.append(
            [
                ((ENDS, 0), (b"{}", bytes_of(begin))),
                *records,
                ((ENDS, 0), (b"{}", bytes_of(in_block(end, {})))),
            ]
        )
        self.states.append(state)
        self.send(len(self.sent) - 1)

    def send(self, number: int) -> None:
        """Send a transaction; what of it arrives is not known yet."""
        for place, record in self.sent[number]:
            self.on_their_way.setdefault(place, []).append(record)

    def put(self, place: tuple[str, int], record: Record) -> None:
        self.topics.records_of[place].append(record)

    def arrive(self, of_each: Mapping[tuple[str, int], int]) -> None:
        """So many more records of each partition arrive, in their order."""
        for place, number in of_each.items():
            way = self.on_their_way.get(place, [])
            for record in way[:number]:
                self.put(place, record)
            del way[:number]

    def arrive_all(self) -> None:
        self.arrive({place: len(way) for place, way in self.on_their_way.items()})

    def kill(self, again: int) -> None:
        """Kill the connector: what was on its way is lost, and so many transactions come again."""
        self.on_their_way.clear()
        for number in range(max(0, len(self.sent) - again), len(self.sent)):
            self.send(number)


def multisets(state: State) -> dict[str, Multiset]:
    return {table: Counter(rows.items()) for table, rows in state.items()}


@dataclass
class Follower:
    """The rows of all tables, at the position of a feed."""

    feed: Feed
    position: Position | None = None
    rows: dict[str, Multiset] = field(default_factory=lambda: {t: Counter() for t in TABLES})

    def step(self, most: int | None = None) -> bool:
        """Take a step, if there is one."""
        step = self.feed.read(self.position, Bounds(rows=most, files=most))
        if step is None:
            return False
        assert step.position != self.position
        for table, changes in {TABLES[0]: step.changes, **step.others}.items():
            self.rows[table] = applied(self.rows[table], changes, COLUMNS)
        self.position = json.loads(json.dumps(step.position))
        return True


@dataclass
class Files:
    """The same records in files, each with those that arrived since the one before."""

    path: Path
    topics: Topics
    draw: random.Random
    written: Counter[tuple[str, int]] = field(default_factory=Counter)
    number: int = 0

    def write(self) -> None:
        """Write what arrived, the partitions mixed."""
        new = {p: rows[self.written[p] :] for p, rows in self.topics.records_of.items()}
        places = [place for place, rows in new.items() for _ in rows]
        self.draw.shuffle(places)
        lines = []
        for topic, partition in places:
            key, value = (each and each.decode() for each in new[topic, partition].pop(0))
            line = {"topic": topic, "partition": partition, "key": key, "value": value}
            lines.append(json.dumps(line))
        self.written.update(places)
        if lines:
            self.number += 1
            (self.path / f"{self.number:04}.jsonl").write_text("\n".join(lines))

    def feed(self) -> Feed:
        """The feed of both tables."""
        first, second = given_tables(transactions=ENDS)
        return opened(str(self.path), replace(first, others=(second,)))


def changes(draw: random.Random) -> list[Change]:
    return [
        (draw.choice(TABLES), draw.randrange(5), draw.choice([None, "a", "b", "c"]))
        for _ in range(draw.randrange(1, 6))
    ]


@pytest.mark.law
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(200), deadline=None)
def test_all_tables_are_at_one_moment_of_the_source(seed: int) -> None:
    draw, source = random.Random(seed), Source()
    follow_source(draw, source, Follower(shop(source.topics)), lambda: None)


@pytest.mark.law
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(100), deadline=None)
def test_all_tables_are_at_one_moment_in_files_too(seed: int) -> None:
    draw, source = random.Random(seed), Source()
    with folder() as path:
        lake = Files(Path(path), source.topics, draw)
        follow_source(draw, source, Follower(lake.feed()), lake.write)


def follow_source(
    draw: random.Random, source: Source, follower: Follower, arrived: Callable[[], None]
) -> None:
    """Follow a source that writes, and whose connector is killed."""
    source.snapshot({t: {i: "a" for i in range(5) if draw.random() < 0.5} for t in TABLES})
    arrived()
    while follower.rows != multisets(source.states[0]):
        assert follower.step(draw.randrange(1, 4))
    moment, unsettled = 0, 0
    for _ in range(draw.randrange(3, 9)):
        for _ in range(draw.randrange(4)):
            source.transaction(changes(draw))
            unsettled += 1
        source.arrive({place: draw.choice([0, 1, 2, 3, 9]) for place in PLACES})
        arrived()
        what = draw.choice(["nothing", "arrive", "kill"])
        if what == "kill":
            source.kill(unsettled + draw.randrange(3))
        elif what == "arrive":
            source.arrive_all()
            arrived()
            unsettled = 0
        while draw.random() < 0.6 and follower.step(draw.randrange(1, 10)):
            moments = [
                number
                for number, state in enumerate(source.states)
                if number >= moment and multisets(state) == follower.rows
            ]
            assert moments, f"a transaction was divided: {follower.rows}"
            moment = moments[0]
    source.arrive_all()
    arrived()
    while follower.step():
        pass
    assert follower.rows == multisets(source.states[-1])
    assert follower.feed.behind(follower.position) == ""


def sent(*transactions: list[Change]) -> Source:
    """A source whose transactions have all arrived."""
    source = Source()
    for each in transactions:
        source.transaction(each)
    source.arrive_all()
    return source


def moments(source: Source, most: int | None) -> list[int]:
    """The states of a source that the steps of a feed lead to."""
    follower, seen = Follower(shop(source.topics)), []
    while follower.step(most):
        seen.append([multisets(state) for state in source.states].index(follower.rows))
    return seen


def test_a_step_has_as_many_transactions_as_it_may_have_rows() -> None:
    five: list[Change] = [(table, id_, "a") for table in TABLES for id_ in (1, 2)]
    five.append(("orders", 1, None))
    source = sent(five, [("orders", 3, "a")], [("lines", 3, "a")], [("lines", 4, "a")])
    assert moments(source, 1) == [1, 2, 3, 4]
    assert moments(source, 2) == [1, 3, 4]
    assert moments(source, 6) == [2, 4]
    assert moments(source, None) == [4]


def test_a_transaction_is_waited_for_until_its_end_and_all_its_events_came() -> None:
    source = Source()
    source.transaction([("orders", 1, "a"), ("lines", 1, "a")])
    follower = Follower(shop(source.topics))
    for place in (("shop.public.orders", 1), (ENDS, 0)):
        source.arrive({place: 9})
        assert not follower.step()
    assert follower.feed.behind(None) == (
        "1 record (transaction 1:130 waits for 1 event of 'shop.public.lines')"
    )
    source.arrive_all()
    assert follower.step()
    assert follower.rows == multisets(source.states[-1])
    assert follower.feed.behind(follower.position) == ""


def test_files_wait_for_a_transaction_that_goes_on_in_others(tmp_path: Path) -> None:
    source = Source()
    files = Files(tmp_path, source.topics, random.Random(1))
    source.transaction([("orders", 1, "a"), ("lines", 1, "a")])
    follower = Follower(files.feed())
    for place in (("shop.public.orders", 1), (ENDS, 0)):
        source.arrive({place: 9})
        files.write()
        assert not follower.step(1)
    waits = " (a transaction in them waits for its other events)"
    assert follower.feed.behind(None) == f"2 files{waits}"
    source.arrive_all()
    files.write()
    assert follower.feed.behind(None) == "3 files"
    assert follower.step(1)
    assert follower.rows == multisets(source.states[-1])
    assert follower.feed.apart is False


def test_what_can_no_longer_come_is_not_waited_for() -> None:
    """Events that were removed before: their partition has later ones."""
    source = sent([("orders", 1, "a"), ("lines", 1, "a")], [("lines", 2, "a")])
    del source.topics.records_of["shop.public.lines", 0][0]
    follower = Follower(shop(source.topics))
    while follower.step(1):
        pass
    assert follower.rows["lines"] == Counter([(2, "a")])


def test_a_table_of_several_alone_is_followed_by_itself() -> None:
    source = sent([("orders", 1, "a"), ("lines", 1, "a")], [("orders", 1, "b")])
    follower = Follower(shop(source.topics, "orders"))
    assert follower.step(1)
    assert follower.rows["orders"] == Counter([(1, "a")])
    assert follower.step(1)
    assert follower.rows["orders"] == Counter([(1, "b")])
    assert not follower.step(1)


def test_a_feed_can_start_at_the_end() -> None:
    source = sent([("orders", 1, "a"), ("lines", 1, "a")])
    follower = Follower(shop(source.topics, start="end"))
    assert follower.feed.behind(None) == ""
    assert follower.step()
    assert not follower.step()
    source.transaction([("orders", 2, "a"), ("lines", 2, "a")])
    source.arrive({(ENDS, 0): 9, ("shop.public.orders", 0): 9})
    assert not follower.step()
    source.arrive_all()
    assert follower.step()
    assert follower.rows == {table: Counter([(2, "a")]) for table in TABLES}


def test_transactions_can_be_told_from_some_moment_on() -> None:
    """The position of a feed that did not know of them goes on to do."""
    source = sent([("orders", 1, "a"), ("lines", 1, "a")], [("orders", 2, "a"), ("lines", 2, "a")])
    knows = shop(source.topics)
    follower = Follower(replace(knows, transactions=None))  # type: ignore[type-var]
    assert follower.step()
    follower.feed = knows
    assert not follower.step()
    source.transaction([("orders", 3, "a"), ("lines", 3, "a")])
    source.arrive({(ENDS, 0): 9, ("shop.public.orders", 1): 9})
    assert not follower.step()
    source.arrive_all()
    assert follower.step()
    assert follower.rows == multisets(source.states[-1])


def test_a_database_whose_log_begins_anew() -> None:
    """A snapshot tells it: places before the last end count again."""
    source = sent([("orders", 1, "a"), ("lines", 1, "a")])
    follower = Follower(shop(source.topics))
    assert follower.step()
    source.log, source.committed = 10, None
    for table, place in (("orders", PLACES[1]), ("lines", PLACES[2])):
        read = source.event("r", table, None, {"id": 1, "name": "a"}, 10, None)
        source.put(place, (bytes_of({"id": 1}), bytes_of(read)))
    assert follower.step()
    source.transaction([("orders", 2, "b"), ("lines", 2, "b")])
    source.arrive({(ENDS, 0): 9, ("shop.public.orders", 0): 9})
    assert not follower.step()
    source.arrive_all()
    assert follower.step()
    assert follower.rows["lines"][2, "b"] == 1


def test_options_that_make_no_sense() -> None:
    given = Given("t", Columns.of(["id"], ["bigint"], [pa.int64()]))
    options = {"bootstrap": "b:1", "transactions": ENDS}
    with pytest.raises(InputError, match="give --debezium"):
        opened("kafka:t", replace(given, options=options))
    with pytest.raises(InputError, match="is no name of a topic"):
        opened("kafka:t", replace(given, options={**options, "transactions": "a b"}))


def test_what_tells_no_transactions_is_an_error() -> None:
    def reads(records: dict[tuple[str, int], Any]) -> str:
        topics = Topics()
        for place, value in records.items():
            topics.records_of.setdefault(place, []).append((b'{"id": 1}', bytes_of(value)))
        with pytest.raises(SourceError) as error:
            shop(topics).read(None, EVERYTHING)
        return str(error.value)

    orders, row = ("shop.public.orders", 0), {"id": 1, "name": "a"}
    event = envelopes.envelope("c", None, row, 5, 4, 1, schema="public", table="orders")
    end = {"status": "END", "id": "file=binlog.1,pos=4", "data_collections": []}
    assert "no place in the log of PostgreSQL" in reads({orders: event, (ENDS, 0): end})
    assert "offset 0: this does not tell" in reads({orders: event, (ENDS, 0): [1]})
    assert "does not tell of a transaction" in reads({orders: event, (ENDS, 0): {"status": "END"}})
    assert "where in the log" in reads({orders: row})
    untold = {**event, "source": {**event["source"], "sequence": None}}
    assert "where in the log" in reads({orders: untold})
    other = {**event, "source": {**event["source"], "table": "elsewhere"}}
    assert "events of 'public.elsewhere', and not its name" in reads({orders: other})
    assert "has 2 partitions, so the transactions" in reads(
        {orders: event, (ENDS, 0): end, (ENDS, 1): end}
    )


def test_recorded_transactions() -> None:
    topics = Topics({})
    for topic in ("shop.public.orders", "shop.public.nokey", ENDS):
        rows = envelopes.recorded(envelopes.CONNECT, topic).to_pylist()
        topics.records_of[topic, 0] = [(row["key"], row["value"]) for row in rows]
    given = [
        Given(
            table, Columns.of([*columns], [*map(str, columns.values())], [*columns.values()]), key,
            options={"bootstrap": "b:1", "transactions": ENDS}, run=InProcess().run,
            events=EventForm(),
        )
        for table, columns, key in (
            ("orders", envelopes.ORDERS, ("id",)),
            ("nokey", {"a": pa.int32(), "b": pa.string()}, ()),
        )
    ]  # fmt: skip
    feed: Any = opened(
        "kafka:shop.public.orders,shop.public.nokey", replace(given[0], others=(given[1],))
    )
    feed = replace(feed, access=topics)
    after: Any = None
    steps = []
    while step := feed.read(after, Bounds(rows=1)):
        after = step.position
        steps.append([next(iter(after["offsets"][topic].values())) for topic in after["offsets"]])
    expected = [
        [1, 1, 0], [2, 2, 0], [3, 2, 0],  # the rows that were read first
        [4, 2, 3], [5, 2, 5], [6, 2, 7], [9, 2, 9], [11, 2, 11], [15, 2, 13], [16, 2, 15],
        [17, 2, 17], [18, 2, 19], [19, 2, 21], [21, 2, 23], [21, 4, 25], [21, 5, 27], [22, 5, 29],
        [23, 5, 30],
    ]  # fmt: skip
    assert steps == expected


# Profiles that follow


def profile_of(path: Path) -> Store:
    """A profile of both tables, without rows."""
    columns = {"id": pa.int64(), "name": pa.string()}
    return profiled(path, dict.fromkeys(TABLES, columns))


def three() -> Source:
    """Three transactions that change both tables."""
    return sent(
        [("orders", 1, "a"), ("lines", 1, "a"), ("lines", 2, "a")],
        [("orders", 2, "b"), ("lines", 2, None)],
        [("lines", 1, "c"), ("orders", 1, None), ("orders", 3, "c")],
    )


def both(**options: str) -> Followed:
    address = ",".join(f"shop.public.{table}" for table in TABLES)
    tables = tuple(FeedTable(table, ("id",)) for table in TABLES)
    options = {"bootstrap": "b:1", **options}
    return Followed("shop", f"kafka:{address}", tables, debezium=True, options=options)


def followed(topics: Topics, store: Store, most: int) -> FeedRun:
    """Follow to the head."""
    feed = both(transactions=ENDS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kafka, "partitions", lambda access, topic: access.partitions(topic))
        patched.setattr(kafka, "_access", lambda *_: topics)
        return follow(store, feed, rows=most)


def rows_of(store: Store) -> dict[str, Multiset]:
    return {table: Counter(stored(store, table)) for table in TABLES}


def test_a_version_has_whole_transactions_of_all_tables(tmp_path: Path) -> None:
    source, store = three(), profile_of(tmp_path / "p")
    course = followed(source.topics, store, 1)
    assert (course.steps, course.failed, store.head()) == (3, [], 4)
    assert [*rows_of(store).values()] == [*multisets(source.states[-1]).values()]
    batch = store.read(2).batch
    assert batch is not None
    assert sorted(batch.tables) == sorted(TABLES)
    assert flow.verify(InProcess(1), store, no_progress).equal


@pytest.mark.parametrize("told", [True, False])
def test_the_status_says_whether_tables_are_at_one_moment(tmp_path: Path, told: bool) -> None:
    store = profile_of(tmp_path / "p")
    feed = both(**({"transactions": ENDS} if told else {}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kafka, "_access", lambda *_: Topics())
        (status,) = flow.status(store, [feed], lambda: InProcess(1))
    assert status.apart is not told
    page = Page(said := io.StringIO())
    terminal.feeds(page, [status])
    assert ("not at the same moment" in said.getvalue()) is not told


def killed(root: Path) -> None:
    """Follow in processes that are killed, each before another of its writes."""
    followed(three().topics, profile_of(root / "whole"), 1)  # what that compiles, children have
    for step in count():
        place = root / f"step{step}"
        store = profile_of(place / "p")
        child = os.fork()
        if not child:
            killed_before(step, place)
            followed(three().topics, store, 1)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            break


@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path) -> None:
    worker: list[str | Path] = [sys.executable, "-m", "tests.feeds.test_transactions", tmp_path]
    subprocess.run(worker, check=True)
    source, heads = three(), []
    states = [multisets(state) for state in source.states]
    places = sorted(tmp_path.glob("step*"))
    assert len(places) > 15
    for root in places:
        store = Store.open(root / "p")
        heads.append(store.head())
        assert rows_of(store) == states[heads[-1] - 1], root.name
        assert followed(source.topics, store, 1).steps == 4 - heads[-1]
        assert rows_of(store) == states[-1], root.name
    assert {*heads} == {1, 2, 3, 4}


if __name__ == "__main__":
    killed(Path(sys.argv[1]))
