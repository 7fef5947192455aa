"""One walk through every kind of job, for any kind of Spark session, held against the oracle."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile, TableSnapshot
from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints.predicates import atoms_of
from holdfast.kinds.denial_constraints.reduction import reported
from holdfast.model import thresholds
from holdfast.model.changes import Changes
from holdfast.model.comparisons import ORDER
from holdfast.model.errors import BatchError, InputError, SchemaError, SourceError
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call
from holdfast.spark.places import Places, places_of
from holdfast.spark.runner import SparkRunner
from tests import oracle
from tests.limits import varied

Batches = Iterator[pa.RecordBatch]

Row = tuple[Any, ...]

SCHEMA = "id bigint, name string, seat int, day date"
RETYPED = "id bigint, name string, seat string, day string"
NAMES = ("id", "name", "seat", "day")
WIDTH = len(NAMES)


def make_rows(count: int, first: int = 0) -> tuple[Row, ...]:
    """Rows whose keys are {id} and maybe some longer ones; nulls and equal cells are common."""
    draw = random.Random(first)
    names = ["ann", "bob", "größe", "a,b", None]
    seats = [1, 2, 3, None]
    return tuple((first + i, draw.choice(names), draw.choice(seats), None) for i in range(count))


class Walk:
    """A table, its rows as the oracle knows them, and its profile."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.rows: tuple[Row, ...] = ()
        self.profile: Profile

    def frame(self, rows: tuple[Row, ...], schema: str = SCHEMA, partitions: int = 2) -> DataFrame:
        made = self.session.createDataFrame(list(rows), schema)
        return made.repartition(partitions)

    def file(self, name: str, rows: tuple[Row, ...]) -> Path:
        """The same as CSV, whose reader infers the types."""
        path = self.folder / name
        cells = [["" if cell is None else f'"{cell}"' for cell in row] for row in rows]
        lines = [",".join(NAMES), *(",".join(row) for row in cells)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def apply(
        self,
        inserts: tuple[Row, ...] = (),
        deletes: tuple[Row, ...] = (),
        updates: tuple[Row, ...] = (),
    ) -> Changes:
        given = {"inserts": inserts, "deletes": deletes, "updates": updates}
        row_inputs: dict[str, Any] = {
            name: self.frame(rows) for name, rows in given.items() if rows
        }
        told: Changes = self.profile.apply("t", **row_inputs, row_key=["id"] if updates else None)
        gone = {row[0] for row in (*deletes, *updates)}
        kept = tuple(row for row in self.rows if row[0] not in gone)
        self.rows = kept + inserts + updates
        self.assert_exact()
        return told

    def assert_exact(self) -> None:
        now = self.profile.snapshot().tables["t"]
        assert now.rows == len(self.rows)
        assert places(now.keys) == oracle.keys(list(self.rows), WIDTH)
        assert places(now.non_keys) == oracle.non_keys(list(self.rows), WIDTH)
        assert now.duplicates == oracle.duplicates(list(self.rows))
        found = {
            (tuple(NAMES.index(name) for name in fd.lhs), NAMES.index(fd.rhs))
            for fd in now.functional_dependencies or ()
        }
        assert found == oracle.dependencies(list(self.rows), WIDTH)
        assert all(non_key.witness is not None for non_key in now.non_keys)
        if "dcs" in now.found:
            self.assert_denials(now)

    def assert_denials(self, now: TableSnapshot) -> None:
        space = now.evidence["denial"].space
        assert space is not None
        asked = [(e.left, e.right, "ts", e.operators == ORDER) for e in space.comparisons]
        assert {each[:2] for each in asked} == {(c, c) for c in range(WIDTH)}
        shown = {oracle.evidence(t, s, asked) for t, s in permutations(self.rows, 2)}
        sets = oracle.minimal_sets_stepwise(space.atoms, sorted(shown, key=sorted))
        told = {atoms_of(each, space, NAMES) for each in now.found["dcs"]}
        expected = reported(bitsets.from_columns(sets, space.atoms), space)
        assert told == {*bitsets.to_columns(expected)}


def places(sets: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Keys or non-keys as column numbers."""
    found = [tuple(NAMES.index(name) for name in each.columns) for each in sets]
    return sorted(found, key=lambda one: (len(one), one))


def walk_through_every_job(
    session: SparkSession,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    into: str | None = None,
) -> None:
    """Profile, insert, delete, update, merge, check, verify; dependencies through witnesses, and
    through counts again when the table has become short."""
    monkeypatch.setattr(
        "holdfast.evidence.strategy.expected_seconds", lambda rows, *_: 50.0 * (rows > 4)
    )
    monkeypatch.setattr("holdfast.evidence.strategy._QUICK", 20.0)
    walk = Walk(session, folder)
    walk.rows = make_rows(20)
    walk.profile = Profile.create(
        into or folder / "frames",
        {"t": walk.frame(walk.rows, partitions=3)},
        options=Options(kinds="keys,fds,inds,dcs"),
        session=session,
    )
    walk.assert_exact()
    wrong = oracle.violations(list(walk.rows), (1,), 2, "equal")
    assert walk.profile.error("t: name -> seat") == wrong / (20 * 19 // 2)
    pairs = walk.profile.violations("t: not (t.id < s.id and t.seat > s.seat)", limit=3)
    assert len(pairs) == 3
    assert all(t["id"] < s["id"] and t["seat"] > s["seat"] for t, s in pairs)
    assert walk.profile.predicates("t")["t"].today == walk.profile.predicates("t")["t"].stored

    # A probe; and as the table has more than doubled, its columns are described anew.
    walk.apply(inserts=make_rows(30, 100))
    assert walk.profile._store.read().tables["t"].estimated_at == 50

    # Rows are located, by all their cells and by key, and what they showed is searched for again.
    told = walk.apply(deletes=walk.rows[5:30])
    assert told.deleted == 25
    walk.profile.apply("t", deletes=walk.frame(((walk.rows[0][0],),), "id bigint"), row_key=["id"])
    walk.rows = walk.rows[1:]
    walk.assert_exact()

    changed = tuple((row[0], "eve", 9, None) for row in walk.rows[:2])
    foretold = walk.profile.check("t", updates=walk.frame(changed), row_key=["id"])
    told = walk.apply(updates=changed)
    assert (told["keys"].gained, told.updated) == (foretold["keys"].gained, 2)

    # A copy of a row: no key any more. Without it: the same keys as before.
    copy = walk.rows[:1]
    walk.profile.apply("t", inserts=walk.frame(copy))
    assert walk.profile.keys("t") == []
    walk.profile.apply("t", deletes=walk.frame(copy))
    walk.assert_exact()

    # Enough small segments are merged into one, and rows are still found afterwards.
    varied(monkeypatch, merged_segments=2)
    walk.apply(inserts=make_rows(2, 300))
    assert walk.profile.snapshot().tables["t"].segments < 4
    walk.apply(deletes=walk.rows[-3:])

    assert walk.profile.verify().equal
    with pytest.raises(BatchError, match="matches no row"):
        walk.apply(deletes=((999, "x", 1, None),))
    with pytest.raises(InputError, match="counted"):
        walk.profile.agree_sets("t")
    walk.apply(deletes=walk.rows[3:])
    assert walk.profile.agree_sets("t")


def walk_through_files(session: SparkSession, folder: Path) -> None:
    """CSV: types inferred, a bad line refused, started from a sample."""
    walk = Walk(session, folder)
    walk.rows = make_rows(30)
    (folder / "parts").mkdir()
    for number in range(3):
        walk.file(f"parts/{number}.csv", walk.rows[number::3])
    walk.profile = Profile.create(
        folder / "files",
        {"t": str(folder / "parts" / "*.csv")},
        options=Options(start="sample"),
        session=session,
    )
    walk.assert_exact()
    more = make_rows(3, 50)
    walk.profile.apply("t", inserts=walk.file("more.csv", more), batch_id="more")
    walk.rows += more
    walk.assert_exact()
    again = walk.profile.apply("t", inserts=walk.file("more.csv", more), batch_id="more")
    assert not again.applied
    (folder / "bad.csv").write_text("id,name,seat,day\n7,x\n")
    with pytest.raises(SourceError, match=r"bad\.csv, line 2: malformed line, expected 4 columns"):
        walk.profile.apply("t", inserts=folder / "bad.csv")
    with pytest.raises(SchemaError, match="'seat' is string"):
        walk.profile.apply("t", inserts=walk.frame(((1, "x", "y", "z"),), RETYPED))
    assert walk.profile.verify().equal
    read_json(session, folder)


def read_json(session: SparkSession, folder: Path) -> None:
    """JSON: fields told apart by case, no digit lost, an error for a number that does not fit."""
    path = folder / "records.json"
    path.write_text(
        '{"a": 0.12345678901234567890, "A": 1}\n{"a": 0.12345678901234567891, "A": 1}\n'
    )
    kept = Profile.create(folder / "records", {"t": path}, session=session)
    assert [key.columns for key in kept.keys("t")] == [("a",)]
    assert kept.snapshot().tables["t"].types == ("bigint", "string")
    path.write_text('{"a": 0.5, "A": 123456789012345678901234567890123456789}\n')
    with pytest.raises(SourceError, match=r"line 1, column 'A': unfit value, expected bigint"):
        kept.apply("t", inserts=path)


def interrupt_a_batch(session: SparkSession, folder: Path) -> None:
    """Ctrl-C while a batch is read: our job is cancelled, another one of the session is not."""
    kept = Profile.create(folder / "p", {"t": session.range(3)}, session=session)
    before = kept._store.read()
    ours_begun, theirs_begun, over = folder / "ours", folder / "theirs", folder / "over"
    theirs: list[Any] = []

    def waiting(begun: Path) -> Callable[[Batches], Batches]:
        """Says that it has begun, and ends only when the interrupt is over."""

        def work(batches: Batches) -> Batches:
            for batch in batches:
                begun.touch()
                while not over.exists():
                    time.sleep(0.05)
                yield batch

        return work

    def other() -> None:
        rows = session.range(0, 1, 1, 1).mapInArrow(waiting(theirs_begun), "id long")
        theirs.extend(rows.collect())

    def interrupt() -> None:
        while not (ours_begun.exists() and theirs_begun.exists()):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    threads = [threading.Thread(target=work) for work in (other, interrupt)]
    for thread in threads:
        thread.start()
    batch = session.range(5, 6, 1, 1).mapInArrow(waiting(ours_begun), "id long")
    try:
        # It ends although what it waits for has not happened: it was cancelled.
        with pytest.raises(KeyboardInterrupt):
            kept.apply("t", inserts=batch)
    finally:
        over.touch()
    assert signal.getsignal(signal.SIGINT) is handler
    for thread in threads:
        thread.join()
    assert [row["id"] for row in theirs] == [0]
    assert kept._store.read() == before
    assert not list(Path(kept.path, "leases").iterdir())
    # The session works on, and so does the profile.
    assert kept.apply("t", inserts=session.range(5, 6)).rows == 4


def run_in_places(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of a profile on an object store are each run once, whether it is known where places
    are, or that they are on one machine, or one of them was displaced; nobody else's places and no
    old ones are believed in."""
    heavy = 10 * thresholds.current.light_rows
    items = [
        (0, None),
        (0, "s3://a"),
        (0, "s3://b"),
        (heavy, "s3://b"),
        (heavy, None),
        (0, "s3://a"),
    ]

    def echo(item: Any) -> Iterator[TaskResult]:
        yield TaskResult({"number": item.number})

    calls: list[Call] = [
        (echo, SimpleNamespace(number=k, work=work, home=home))
        for k, (work, home) in enumerate(items)
    ]
    runner = SparkRunner(session, 3).sharing("s3://profiles/shop/data/token-")
    assert runner._placing

    def numbers() -> list[list[int]]:
        return [[each.facts["number"] for each in result] for result in runner.run(calls)]

    def used() -> Places:
        places = places_of(session, 3)
        assert places is not None
        return places

    assert numbers() == [[k] for k in range(len(items))]
    places = used()
    assert places.are_one
    assert numbers() == [[k] for k in range(len(items))]

    known = places.machines[0]
    places.learn([{"first": 0, "place": 1, "machine": "of others"}])
    assert places.machines == (known,) * 3
    places.machines = (known, "another", known)
    rows = places.rows(session, 2, 4).selectExpr("spark_partition_id() as p", "id").collect()
    assert sorted(map(tuple, rows)) == [(k, k) for k in range(3 + 3 + 4)]
    assert used() is places
    # The task in the second place was displaced, as it were.
    monkeypatch.setattr("holdfast.spark.places.PAUSE", 1)
    assert numbers() == [[k] for k in range(len(items))]
    assert not places.are_known
    assert numbers() == [[k] for k in range(len(items))]
    anew = used()
    assert anew is not places
    assert not anew.are_known
    assert numbers() == [[k] for k in range(len(items))]
    assert anew.are_one

    anew.learn([{"first": anew.first, "place": None, "machine": "one that has come"}])
    places = used()
    assert places is not anew
    assert used() is places
    session.catalog.clearCache()
    assert used() is not places
