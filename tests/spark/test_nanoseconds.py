"""Types that Spark has no place for, through Spark: nanoseconds, times of day, nested ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from holdfast import Profile, Source
from holdfast.input.row_input import RowInput
from holdfast.model.errors import SchemaError, SourceError
from holdfast.spark import source
from tests import oracle
from tests.flow.tables import folder
from tests.spark.conftest import KEYS, columns, refused
from tests.spark.test_sources import cells, types

pytestmark = pytest.mark.spark

Make = Callable[..., Profile]

NAMES = {
    pa.timestamp("ns"): "timestamp_ntz(9)",
    pa.timestamp("ns", "Europe/Rome"): "timestamp(9)",
    pa.duration("ns"): "interval day to second(9)",
    pa.time64("ns"): "time(9)",
    pa.list_(pa.timestamp("ns")): "array<timestamp_ntz(9)>",
    pa.map_(pa.string(), pa.duration("ns")): "map<string,interval day to second(9)>",
    pa.struct([("at", pa.time64("ns"))]): "struct<at:time(9)>",
    pa.time32("ms"): "time(6)",
    pa.time64("us"): "time(6)",
}
NESTED = {
    "lists": pa.list_(pa.list_(pa.string())),
    "structs": pa.struct([("a", pa.list_(pa.int8()))]),
    "maps": pa.map_(pa.string(), pa.int64()),
}


def two(*kinds: pa.DataType) -> pa.Table:
    """Two rows that differ by the smallest amount in a column of each type."""

    def cell(number: int, kind: pa.DataType) -> Any:
        if pa.types.is_map(kind):
            return [("a", number)]
        if pa.types.is_list(kind):
            return [number]
        return {"at": number} if pa.types.is_struct(kind) else number

    times = {
        f"at{i or ''}": pa.array([cell(number, kind) for number in (1_000, 1_001)], kind)
        for i, kind in enumerate(kinds)
    }
    return pa.table({"same": [1, 1], **times})


@pytest.fixture(params=["by tasks", "by Spark"])
def parquet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Writes Parquet files beside the profile, which are read in both ways."""
    if request.param == "by Spark":
        monkeypatch.setattr(source, "_of_tasks", lambda *_: [])

    def make(table: pa.Table, name: str = "t.parquet", **how: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(table, path, **how)
        return str(path)

    return make


def test_tables_in_memory_are_exact(profile: Make) -> None:
    table = two(*NAMES)
    kept = profile(table)
    assert list(types(kept).values()) == ["bigint", *NAMES.values()]
    assert columns(kept) == table.column_names[1:]
    # The same rows are found again, and an empty batch is one.
    assert kept.apply("t", inserts=table.slice(0, 0)).rows == 2
    assert kept.apply("t", deletes=table.slice(1)).rows == 1


def test_parquet_is_exact(profile: Make, parquet: Callable[..., str]) -> None:
    # Durations are integers in Parquet, as Spark says, too.
    names = {kind: name for kind, name in NAMES.items() if "interval" not in name}
    table = two(*names)
    kept = profile(parquet(table))
    assert list(types(kept).values()) == ["bigint", *names.values()]
    assert columns(kept) == table.column_names[1:]
    assert kept.apply("t", deletes=table.slice(1)).rows == 1
    assert kept.apply("t", deletes=parquet(table.slice(0, 1), "more.parquet")).rows == 0


def test_pandas_and_polars_meet_microseconds(
    profile: Make, frame: Callable[..., DataFrame], tmp_path: Path
) -> None:
    """Whole microseconds are the same values, whatever unit they come in."""
    table = pa.table({"at": pa.array([0, 1_000], pa.timestamp("ns"))})
    kept = profile(table.to_pandas())
    assert types(kept) == {"at": "timestamp_ntz(9)"}
    assert [row["at"] for row in cells(kept)] == [
        "1970-01-01T00:00:00",
        "1970-01-01T00:00:00.000001",
    ]
    told = kept.apply("t", deletes=frame("at timestamp_ntz", (datetime(1970, 1, 1),)))
    assert told.rows == 1
    more = tmp_path / "more.csv"
    more.write_text("at\n1970-01-01 00:00:00.000001\n2026-01-02T03:04:05.000000006\n")
    assert kept.apply("t", upserts=more, row_key=["at"]).rows == 2
    with refused(kept, SourceError, "column 'at'", "1677-09-21", "9999-01-01"):
        kept.apply("t", inserts=frame("at timestamp_ntz", (datetime(9999, 1, 1),)))
    # The other way round: a table of microseconds.
    kept = profile(frame("at timestamp_ntz", (datetime(1970, 1, 1),)))
    assert kept.apply("t", inserts=table.to_pandas().iloc[1:].reset_index(drop=True)).rows == 2
    fine = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    with refused(kept, SourceError, "column 'at'", "whole microseconds", ".dt.floor('us')"):
        kept.apply("t", inserts=fine.to_pandas())


def test_parquet_that_is_rounded(profile: Make, parquet: Callable[..., str]) -> None:
    fine, kind = two(pa.timestamp("ns")), pa.timestamp("us")
    path = parquet(fine)
    kept = profile(parquet(two(kind), "coarse.parquet"))
    with refused(kept, SourceError, path, "column 'at'", "--round-nanoseconds", ".000001001"):
        kept.apply("t", inserts=path)
    assert kept.apply("t", inserts=Source(path, round_nanoseconds=True)).rows == 4
    kept = profile(Source(path, round_nanoseconds=True))
    assert types(kept)["at"] == "timestamp_ntz"
    assert kept.snapshot().tables["t"].duplicates == 1
    # Later batches are read alike.
    assert kept.apply("t", inserts=path).rows == 4
    assert kept.apply("t", deletes=fine).rows == 2


def test_fields_of_nested_records_in_parquet(profile: Make, parquet: Callable[..., str]) -> None:
    kind = pa.struct([("at", pa.timestamp("ns")), ("n", pa.uint8())])
    table = pa.table({"x": pa.array([{"at": 1, "n": 1}, {"at": 2, "n": 1}], kind)})
    kept = profile(Source(parquet(table), flatten=True))
    assert types(kept) == {"x.at": "timestamp_ntz(9)", "x.n": "smallint"}
    assert columns(kept) == ["`x.at`"]


def test_a_folder_of_parquet(profile: Make, parquet: Callable[..., str], tmp_path: Path) -> None:
    fine = two(pa.timestamp("ns"))
    parquet(fine.slice(0, 1), "parts/day=1/a.parquet")
    parquet(fine.slice(1), "parts/day=2/b.parquet")
    kept = profile(Source(str(tmp_path / "parts"), format="parquet"))
    assert types(kept) == {"same": "bigint", "at": "timestamp_ntz(9)", "day": "int"}
    assert columns(kept) == ["at", "day"]
    other = parquet(two(pa.timestamp("us")), "parts/day=2/c.parquet")
    with pytest.raises(SchemaError, match=rf"{other}: column 'at' is timestamp\[us\], but"):
        profile(Source(str(tmp_path / "parts"), format="parquet"))


def test_files_whose_footers_cannot_be_seen(
    profile: Make, parquet: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an object store: the error names the setting that makes Spark read them."""
    monkeypatch.setattr(source, "_parquet_files", lambda _: [])
    monkeypatch.setattr(source, "_of_tasks", lambda *_: [])
    with pytest.raises(SourceError, match=r"t\.parquet: .*NANOS.*parquet\.nanosAsLong=true"):
        profile(parquet(two(pa.timestamp("ns"))))
    with pytest.raises(SourceError, match=r"t\.parquet: .*TIME") as refused:
        profile(parquet(two(pa.time64("us"))))
    if "PARQUET_TYPE_ILLEGAL" not in str(refused.value):  # Spark 4.1 has no such type
        assert "timeType.enabled=true" in str(refused.value)


def test_timestamps_that_spark_cuts_are_named(
    profile: Make,
    parquet: Callable[..., str],
    frame: Callable[..., DataFrame],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fine = two(pa.timestamp("ns"))
    profile(parquet(fine, use_deprecated_int96_timestamps=True))
    assert "t.parquet: column 'at', in INT96, is read to the microsecond" in caplog.text
    caplog.clear()
    own = str(tmp_path / "spark.parquet")
    frame("at timestamp", (datetime(2026, 1, 1),)).write.parquet(own)
    profile(own)
    assert "INT96" not in caplog.text


def test_dates_of_an_old_calendar_are_for_spark(
    profile: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Spark 2 wrote them, or Spark 3 if it was told to."""
    read: list[str] = []
    own = source._other

    def by_spark(session: SparkSession, given: Source) -> RowInput:
        read.append(given.path)
        return own(session, given)

    monkeypatch.setattr(source, "_other", by_spark)
    old = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    for name, written in (("new", {"org.apache.spark.version": "4.0.0"}), ("old", old)):
        table = pa.table({"day": pa.array([date(1500, 1, 1)])}).replace_schema_metadata(written)
        pq.write_table(table, tmp_path / f"{name}.parquet")
        profile(str(tmp_path / f"{name}.parquet"))
    assert read == [str(tmp_path / "old.parquet")]


def test_decimals_that_no_spark_type_holds(profile: Make, parquet: Callable[..., str]) -> None:
    wide = pa.table({"sum": pa.array([1, 2], pa.decimal256(50, 2))})
    assert types(profile(wide)) == {"sum": "decimal(38,2)"}
    with pytest.raises(SchemaError, match=r"t\.parquet: column 'sum' is decimal256\(50, 2\)"):
        profile(parquet(wide))
    fine = pa.table({"sum": pa.array([1], pa.decimal256(60, 40))})
    with pytest.raises(SchemaError, match=r"column 'sum' has the type decimal256.*cast it"):
        profile(fine)


def test_empty_batches_of_nested_columns(profile: Make) -> None:
    schema = pa.schema({"id": pa.int64(), **NESTED})
    table = pa.Table.from_pylist([{"id": 1}], schema)
    kept = profile(table)
    for empty in (table.slice(0, 0), pa.Table.from_batches([], schema)):
        assert kept.apply("t", inserts=empty).rows == 1


OFTEN = st.sampled_from([0, 1, 999, 1_000, 1_001, -1, (1 << 63) - 1])


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(OFTEN, OFTEN, st.integers(0, 1)), min_size=2, max_size=8),
    new=st.lists(st.tuples(OFTEN, OFTEN, st.integers(0, 1)), max_size=4),
    stored=st.booleans(),
)
def test_keys_are_those_of_the_oracle(
    spark: SparkSession,
    rows: list[tuple[int, int, int]],
    new: list[tuple[int, int, int]],
    stored: bool,
) -> None:
    kinds = (pa.timestamp("ns"), pa.duration("ns"), pa.int64())

    def table(some: list[tuple[int, int, int]]) -> pa.Table:
        arrays = [pa.array([row[c] for row in some], kind) for c, kind in enumerate(kinds)]
        return pa.table(arrays, names=["a", "b", "c"])

    with folder() as place:
        first: Any = table(rows)
        if stored:
            first = Path(place) / "t.parquet"
            pq.write_table(table(rows), first)
        kept = Profile.create(Path(place) / "p", {"t": first}, options=KEYS, session=spark)
        expect_keys(kept, rows)
        if not stored:
            kept.apply("t", inserts=table(new), deletes=table(rows[:1]))
            expect_keys(kept, rows[1:] + new)


def expect_keys(kept: Profile, rows: list[Any]) -> None:
    shown = oracle.agree_sets(rows, 3, "equal")
    expected = oracle.minimal_sets(3, oracle.maximal_sets(shown), None)
    assert sorted("".join(key.columns) for key in kept.snapshot().tables["t"].keys) == sorted(
        "".join("abc"[c] for c in key) for key in expected
    )
