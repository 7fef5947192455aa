"""The law on Spark: whatever the partitioning, the kept profile is that of the rows."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from tests import oracle
from tests.limits import varied
from tests.spark.conftest import KEYS
from tests.strategies import Rows, changes, rows_of, tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = int(os.environ.get("HOLDFAST_SPARK_EXAMPLES", "3"))

few = settings(
    max_examples=EXAMPLES,
    deadline=None,
    # The session outlives the examples on purpose: it is what a user has.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)


def frame(session: SparkSession, width: int, rows: Rows, partitions: int) -> DataFrame:
    """Rows of integers, dealt out so that some partitions may be empty."""
    schema = ", ".join(f"c{c} bigint" for c in range(width))
    made = session.createDataFrame(rows, schema)
    return made.coalesce(1) if partitions == 1 else made.repartition(partitions)


def assert_exact(profile: Profile, width: int, rows: Rows, nulls: str) -> None:
    now = profile.snapshot().tables["t"]
    assert now.rows == len(rows)
    assert places(now.keys) == oracle.keys(rows, width, nulls)
    assert places(now.non_keys) == oracle.non_keys(rows, width, nulls)
    assert now.duplicates == oracle.duplicates(rows, nulls)
    assert bool(profile.keys("t")) == (not now.duplicates)
    if now.functional_dependencies is not None:
        found = {
            (tuple(int(name[1:]) for name in fd.lhs), int(fd.rhs[1:]))
            for fd in now.functional_dependencies
        }
        assert found == oracle.dependencies(rows, width, nulls)
    for non_key in now.non_keys:
        assert non_key.witness is not None
        one, two = (tuple(row[f"c{c}"] for c in range(width)) for row in non_key.witness)
        assert {one, two} <= set(rows)
        agreed = [c for c in range(width) if oracle._agree(one[c], two[c], nulls)]
        assert agreed == [int(name[1:]) for name in non_key.columns]


def places(sets: tuple[object, ...]) -> list[tuple[int, ...]]:
    """Keys or non-keys as column numbers."""
    found = [tuple(int(name[1:]) for name in each.columns) for each in sets]  # type: ignore[attr-defined]
    return sorted(found, key=lambda one: (len(one), one))


@few
@given(
    data=st.data(),
    table=tables(),
    nulls=st.sampled_from(["equal", "unequal"]),
    partitions=st.integers(1, 4),
    start=st.sampled_from(["full", "full", "sample"]),
    kinds=st.sampled_from([("keys",), ("keys", "fds")]),
)
def test_inserts_and_deletes(
    spark: SparkSession,
    data: st.DataObject,
    table: tuple[int, Rows],
    nulls: str,
    partitions: int,
    start: str,
    kinds: tuple[str, ...],
) -> None:
    width, rows = table
    options = Options(kinds=kinds, nulls=nulls, start=start, evidence="witnessed")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        varied(patch, merged_segments=3)
        source = frame(spark, width, rows, partitions)
        profile = Profile.create(Path(folder, "p"), {"t": source}, options=options)
        assert_exact(profile, width, rows, nulls)
        for _ in range(data.draw(st.integers(1, 2))):
            inserts, deletes, after = data.draw(changes(width, rows))
            profile.apply(
                "t",
                inserts=frame(spark, width, inserts, partitions) if inserts else None,
                deletes=frame(spark, width, deletes, 1),
            )
            assert_exact(profile, width, after, nulls)
            rows = after


@few
@given(data=st.data(), width=st.integers(2, 4), partitions=st.integers(1, 3))
def test_updates_by_row_key(
    spark: SparkSession, data: st.DataObject, width: int, partitions: int
) -> None:
    """Column 0 numbers the rows; updates change the others, and a check foretells the outcome."""
    cells = data.draw(rows_of(width - 1, 8))
    rows: Rows = [(i, *row) for i, row in enumerate(cells)]
    with tempfile.TemporaryDirectory() as folder:
        source = frame(spark, width, rows, partitions)
        profile = Profile.create(Path(folder, "p"), {"t": source}, options=KEYS)
        meant = data.draw(st.permutations(range(len(rows))))
        drawn = data.draw(rows_of(width - 1, len(rows)))
        new = {i: (i, *row) for i, row in zip(meant, drawn, strict=False)}
        after = [new.get(i, row) for i, row in enumerate(rows)]
        updates = frame(spark, width, list(new.values()), partitions)
        foretold = profile.check("t", updates=updates, row_key=["c0"])
        assert not foretold.applied
        assert_exact(profile, width, rows, "equal")
        told = profile.apply("t", updates=updates, row_key=["c0"])
        changed = sum(rows[i] != row for i, row in new.items())
        assert (told.updated, told.unchanged) == (changed, len(new) - changed)
        assert (told["keys"], told.updated) == (foretold["keys"], foretold.updated)
        assert_exact(profile, width, after, "equal")
