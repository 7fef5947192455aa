"""Spark jobs, counted: a scan too many is invisible in small tests and dear in large ones."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from holdfast.model.errors import SetupError
from holdfast.spark.jobs import collect
from tests.limits import LOOKED_UP, varied

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, day string, seat int, name string"


class Jobs:
    """The jobs of one block."""

    def __init__(self, session: SparkSession, group: str) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._group = group

    @property
    def number(self) -> int:
        return len(self._tracker.getJobIdsForGroup(self._group))


@contextmanager
def counted(session: SparkSession) -> Iterator[Jobs]:
    """Counts the jobs that the block starts."""
    group = f"counted-{time.monotonic_ns()}"
    session.sparkContext.setJobGroup(group, group)
    try:
        yield Jobs(session, group)
    finally:
        session.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@pytest.fixture
def shop(frame: Callable[..., DataFrame], profile: Callable[..., Profile]) -> Profile:
    """60 rows with the keys {id} and {day, seat}."""
    rows = [(i, f"d{i % 7}", i // 7, f"n{i % 5}") for i in range(60)]
    return profile(frame(SCHEMA, *rows))


def test_batches(spark: SparkSession, shop: Profile, frame: Callable[..., DataFrame]) -> None:
    with counted(spark) as jobs:
        shop.apply("t", inserts=frame(SCHEMA, (100, "d1", 50, "n1")))
    assert jobs.number <= 2, "an insert is read and probed"

    with counted(spark) as jobs:
        told = shop.apply("t", inserts=frame(SCHEMA, (1, "d2", 0, "x")))
    assert len(told["keys"].broken) == 2
    assert jobs.number <= 3, "breaking every key must not cost more than the issue's three"

    with counted(spark) as jobs:
        shop.apply("t", deletes=frame(SCHEMA, (5, "d5", 0, "n0")))
    assert jobs.number <= 3, "a delete is read, located, and searched for where it matters"

    with counted(spark) as jobs:
        shop.apply("t", updates=frame(SCHEMA, (7, "d0", 99, "n2")), row_key=["id"])
    assert jobs.number <= 4, "an update is read, located and probed"


def test_expected_rules(
    spark: SparkSession, shop: Profile, frame: Callable[..., DataFrame]
) -> None:
    row_rules = ["t: name not null", "t: not (t.id < t.seat)"]
    shop.expect("t: key(id)", "t(day) in t(day)", "t: day, seat -> name", *row_rules)
    with counted(spark) as jobs:
        told = shop.apply("t", inserts=frame(SCHEMA, (100, "d1", 50, "n1")), strict=True)
    assert told.applied
    assert jobs.number <= 2 + 2, "counting tuples is a job, and so is a look at single rows"
    with counted(spark) as jobs:
        told = shop.apply("t", inserts=frame(SCHEMA, (100, "d8", 60, None)), strict=True)
    broken = [each.rule for each in told.expectations or () if each.breaks]
    assert told.refused
    assert broken == ["t: key(id)", "t: name not null"]
    assert jobs.number <= 3 + 2 + 2, "a job more for the rows of each rule that breaks"
    assert [each.holds for each in shop.expectations()] == [True] * 5


def test_deletes_that_bring_keys_back(
    spark: SparkSession, frame: Callable[..., DataFrame], profile: Callable[..., Profile]
) -> None:
    rows = [(i, "a", i % 10, "x") for i in range(20)]
    kept = profile(frame(SCHEMA, *rows))
    with counted(spark) as jobs:
        told = kept.apply("t", deletes=frame(SCHEMA, *rows[10:]))
    assert [str(key) for key in told["keys"].gained] == ["t: key(seat)"]
    # One search, and an index for the key that none covers.
    assert jobs.number <= 5


def test_a_merge_is_one_job_more(
    spark: SparkSession,
    shop: Profile,
    frame: Callable[..., DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    segments = shop.snapshot().tables["t"].segments
    varied(monkeypatch, merged_segments=segments + 1)
    with counted(spark) as jobs:
        shop.apply("t", inserts=frame(SCHEMA, (100, "d1", 50, "n1")).coalesce(1))
    assert shop.snapshot().tables["t"].segments == 1
    assert jobs.number == 3


def test_a_batch_is_looked_up_for_denial_constraints_in_one_job(
    spark: SparkSession,
    frame: Callable[..., DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what held before it needs none once its rows are gone."""
    costs = replace(LOOKED_UP["costs"], completion_seconds_a_row=1e9)
    varied(monkeypatch, **{**LOOKED_UP, "costs": costs})
    rows = [(i, f"d{i % 7}", i // 7, f"n{i % 7}") for i in range(60)]
    options = Options(kinds="dcs", evidence="witnessed", cross_columns=None)
    kept = Profile.create(
        tmp_path / "p", {"t": frame(SCHEMA, *rows)}, options=options, session=spark
    )
    assert kept._store.read().tables["t"].looked_up
    wrong = frame(SCHEMA, (100, "d1", 0, "n2"))
    with counted(spark) as jobs:
        told = kept.apply("t", inserts=wrong)
    assert any("day" in str(broken.constraint) for broken in told["denial_constraints"].broken)
    assert jobs.number <= 2, "an insert is read and looked up"
    with counted(spark) as jobs:
        told = kept.apply("t", deletes=wrong)
    assert told["denial_constraints"].gained
    assert jobs.number <= 2, "a delete is read and located"
    assert kept.verify().equal


def test_rows_of_a_caller_are_evaluated_once(
    spark: SparkSession, frame: Callable[..., DataFrame], profile: Callable[..., Profile]
) -> None:
    seen = spark.sparkContext.accumulator(0)

    def count(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    rows = frame(SCHEMA, *[(i, f"d{i % 7}", i // 7, "n") for i in range(20)])
    kept = profile(rows.mapInArrow(count, SCHEMA))
    assert seen.value == 20
    kept.apply("t", inserts=frame(SCHEMA, (7, "x", 1, "n")).mapInArrow(count, SCHEMA))
    assert seen.value == 21


def test_a_batch_of_several_tables(
    spark: SparkSession, tmp_path: Path, frame: Callable[..., DataFrame]
) -> None:
    """Rows are read table by table; those to delete are located together, and values moved."""
    two = "id bigint, place bigint"
    rows = [(i, 100 + i % 9) for i in range(30)]
    kinds = Options(kinds=("inds",))
    tables = {"orders": frame(two, *rows), "lines": frame(two, *rows[:20])}
    kept = Profile.create(tmp_path / "p", tables, options=kinds, session=spark)
    with counted(spark) as alone:
        kept.apply("orders", inserts=frame(two, (40, 101)), deletes=frame(two, rows[29]))
    with counted(spark) as together:
        told = kept.apply(
            {
                "orders": {"inserts": frame(two, (41, 101)), "deletes": frame(two, rows[28])},
                "lines": {"inserts": frame(two, (41, 101)), "deletes": frame(two, rows[2])},
            },
            batch_id="monday",
        )
    assert (alone.number, together.number) == (4, 6)
    assert (told.version, told["lines"].rows, told.broken) == (3, 20, ())
    assert "lines(id) in orders(id)" in map(str, kept.inclusion_dependencies())
    assert kept.verify().equal
    check = kept.check(
        {"lines": {"inserts": frame(two, (99, 101))}, "orders": {"inserts": frame(two)}}
    )
    assert "lines(id) in orders(id)" in [str(each.constraint) for each in check.broken]


def killed(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield from _batches


def test_a_worker_that_was_killed_is_an_error_that_says_what_to_do(spark: SparkSession) -> None:
    rows = spark.range(1)
    with pytest.raises(SetupError, match=r"lack of memory.*fewer tasks at once"):
        collect(spark, lambda: rows.mapInArrow(killed, rows.schema))


def test_tables_of_a_first_profile_share_jobs(
    spark: SparkSession, tmp_path: Path, frame: Callable[..., DataFrame]
) -> None:
    """However many they are; sources of several kinds are read in one job."""
    numbers = {}
    for count in (2, 6):
        rows = [[(i, f"d{i % 7}", i // 7, f"n{i % (k + 2)}") for i in range(30)] for k in range(6)]
        tables: dict[str, Any] = {f"t{k}": frame(SCHEMA, *rows[k]) for k in range(count)}
        path = tmp_path / f"csv{count}.csv"
        path.write_text("id,day\n" + "".join(f"{i},x{i % 3}\n" for i in range(9)))
        with counted(spark) as jobs:
            kept = Profile.create(tmp_path / str(count), {**tables, "c": path}, session=spark)
        numbers[count] = jobs.number
    assert numbers[6] <= numbers[2] + 2, "a round of searching more, where a table needs it"
    assert [str(each) for each in kept.keys("c")] == ["c: key(id)"]
    assert len(kept.keys("t0")) == 2
    assert kept.verify().equal


def test_facts_about_columns(
    spark: SparkSession, frame: Callable[..., DataFrame], profile: Callable[..., Profile]
) -> None:
    """They come with the rows, and cost no job of their own."""
    schema = "id bigint, name string, paid decimal(20,2), at timestamp, flag boolean"
    moment = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    rows = [(i, f"n{i % 5}", Decimal(i) / 4, moment, i > 3) for i in range(20)]
    kept = profile(frame(schema, *rows, (20, None, None, None, None)))

    def told() -> list[tuple[Any, ...]]:
        return [(each.nulls, each.minimum, each.maximum) for each in kept.columns("t")]

    instant = "2026-11-15T09:30:00+00:00"
    last = [(1, instant, instant), (1, False, True)]
    assert told() == [(0, 0, 20), (1, "n0", "n4"), (1, "0.00", "4.75"), *last]
    with counted(spark) as jobs:
        kept.apply("t", deletes=frame(schema, rows[10]))
    with counted(spark) as more:
        kept.apply("t", deletes=frame(schema, rows[0]))
    assert more.number == jobs.number, "what is lowest then is told by the tasks that find the row"
    assert told() == [(0, 1, 20), (1, "n0", "n4"), (1, "0.25", "4.75"), *last]
    kept.apply("t", deletes=frame(schema, *(row for row in rows[1:] if row[1] == "n4")))
    assert told()[1] == (1, "n0", "n3")
    assert kept.verify().equal
    assert kept.columns("t").to_spark(spark).count() == 5
