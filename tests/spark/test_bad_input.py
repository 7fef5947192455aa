"""Bad input on Spark: a sentence that says what and where, and nothing changed."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from holdfast.model.errors import (
    BatchError,
    ConflictError,
    InputError,
    SchemaError,
    SourceError,
    StoreError,
    UnknownTableError,
)
from tests.spark.conftest import KEYS, refused

pytestmark = pytest.mark.spark

Make = Callable[..., DataFrame]
SCHEMA = "id bigint, name string, score double"
ROWS = [(1, "ann", 0.5), (2, "bob", 0.5), (2, "bob", 0.5), (3, None, None)]


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """One profile for all: nothing here may change it."""
    path = tmp_path_factory.mktemp("shop") / "p"
    rows = spark.createDataFrame(ROWS, SCHEMA)
    return Profile.create(path, {"orders": rows, "others": rows}, options=KEYS, session=spark)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file to apply."""

    def write(data: str | bytes, name: str = "new.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def insert(shop: Profile, rows: Any) -> None:
    shop.apply("orders", inserts=rows)


# Files


def test_missing_file(shop: Profile, tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet"):
        with refused(shop, SourceError, f"{name}: no such file"):
            insert(shop, tmp_path / name)
    with refused(shop, SourceError, "*.json: no file or folder matches"):
        insert(shop, tmp_path / "*.json")
    with refused(shop, SourceError, "{a,b}.json", "cannot read"):
        insert(shop, tmp_path / "{a,b}.json")
    with refused(shop, InputError, "rows.xyz", "--input-format"):
        insert(shop, tmp_path / "rows.xyz")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(shop: Profile, file: Callable[..., Path]) -> None:
    path = file("id,name,score\n")
    path.chmod(0)
    with refused(shop, SourceError, "new.csv", "permission denied"):
        insert(shop, path)


def test_files_that_are_something_else(shop: Profile, file: Callable[..., Path]) -> None:
    with refused(shop, SourceError, "latin.csv", "UTF-8"):
        insert(shop, file("id,näme\n".encode("latin-1"), "latin.csv"))
    with refused(shop, SourceError, "body.csv", "'name'", "UTF-8"):
        insert(shop, file("id,name,score\n1,ä,1\n".encode("latin-1"), "body.csv"))
    with refused(shop, SourceError, "zipped.csv.gz"):
        insert(shop, file(b"not compressed", "zipped.csv.gz"))
    with refused(shop, SourceError, "short.csv.gz"):
        data = gzip.compress(b"id,name,score\n" + os.urandom(5000).hex().encode())
        insert(shop, file(data[:3000], "short.csv.gz"))
    with refused(shop, SourceError, "fake.parquet"):
        insert(shop, file("id,name,score\n", "fake.parquet"))
    with refused(shop, SourceError, "empty.csv", "header"):
        insert(shop, file("", "empty.csv"))
    with refused(shop, SourceError, "blank.csv", "header"):
        insert(shop, file("\nid,name,score\n", "blank.csv"))
    with refused(shop, SchemaError, "twice.csv", "'name_2'"):
        insert(shop, file("id,name,name\n", "twice.csv"))


def test_parquet_that_breaks_off(
    shop: Profile, spark: SparkSession, file: Callable[..., Path], tmp_path: Path
) -> None:
    spark.createDataFrame(ROWS, SCHEMA).coalesce(1).write.parquet(str(tmp_path / "whole"))
    (part,) = (tmp_path / "whole").glob("part*.parquet")
    data = bytearray(part.read_bytes())
    data[10:60] = bytes(50)
    with refused(shop, SourceError, "damaged.parquet"):
        insert(shop, file(bytes(data), "damaged.parquet"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("4,x", ["line 3", "malformed line", "3 columns", "'4,x'"]),
        ('4,"x,1', ["line 3", "closing quote", "--multi-line"]),
        ('4,x"y",1', ["line 3", "quote"]),
        ("four,x,1", ["line 3", "'id'", "bigint"]),
        ("4,x,1.2.3", ["line 3", "'score'", "double"]),
    ],
)
def test_malformed_lines(
    shop: Profile, file: Callable[..., Path], line: str, words: list[str]
) -> None:
    path = file(f"id,name,score\n9,nine,9\n{line}\n10,ten,10\n")
    with refused(shop, SourceError, "new.csv", *words):
        insert(shop, path)


# Columns


def test_columns(shop: Profile, frame: Make, file: Callable[..., Path]) -> None:
    with refused(shop, SchemaError, "the inserts lacks the column 'score'", "id, name, score"):
        insert(shop, frame("id bigint, name string", (1, "x")))
    with refused(shop, SchemaError, "has the column 'extra'", "'orders'"):
        insert(shop, frame(SCHEMA + ", extra int", (1, "x", 1.0, 1)))
    with refused(shop, SchemaError, "'id' is int, but bigint", "cast it"):
        insert(shop, frame(SCHEMA.replace("bigint", "int"), (1, "x", 1.0)))
    with refused(shop, SchemaError, "lacks the column 'score'", "'Score'"):
        insert(shop, file("id,name,Score\n"))
    with refused(shop, SchemaError, "occurs twice"):
        rows = frame(SCHEMA, (1, "x", 1.0))
        insert(shop, rows.select("*", "name"))
    with refused(shop, SchemaError, "no column 'number'", "id, name, score"):
        shop.apply("orders", deletes=frame("number int", (1,)), row_key=["number"])
    with refused(shop, SchemaError, "the deletes lacks the column 'name'"):
        shop.apply("orders", deletes=frame("id bigint", (1,)))


@pytest.mark.skipif(pyspark.__version__.startswith("4.1"), reason="has no such type yet")
def test_types_that_cannot_be_compared(spark: SparkSession, tmp_path: Path) -> None:
    point = "X'0101000000000000000000F03F0000000000000040'"
    rows = spark.sql(f"select 1 as id, array(st_geomfromwkb({point})) as place")
    with pytest.raises(SchemaError, match=r"'place'.*geometry.*cast it or leave it out"):
        Profile.create(tmp_path / "p", {"t": rows})
    with pytest.raises(SchemaError, match="no columns"):
        Profile.create(tmp_path / "q", {"t": rows.select()})
    with pytest.raises(StoreError, match="there is no profile directory"):
        Profile.open(tmp_path / "q")


# Rows


def test_deletes_that_fit_no_row(shop: Profile, frame: Make) -> None:
    with refused(shop, BatchError, "matches no row", '"name": "eve"', "'orders'"):
        shop.apply("orders", deletes=frame(SCHEMA, (1, "ann", 0.5), (4, "eve", 1.0)))
    with refused(shop, BatchError, "matches no row", '"id": 9'):
        shop.apply("orders", deletes=frame("id bigint", (9,)), row_key=["id"])
    with refused(shop, BatchError, "3 times", "2 such rows", "bob"):
        shop.apply("orders", deletes=frame(SCHEMA, *[(2, "bob", 0.5)] * 3))
    with refused(shop, BatchError, "matches 2 rows", '"id": 2'):
        shop.apply("orders", deletes=frame("id bigint", (2,)), row_key=["id"])


def test_updates_that_fit_no_row(shop: Profile, frame: Make) -> None:
    with refused(shop, BatchError, "update matches no row", '"id": 9'):
        shop.apply("orders", updates=frame(SCHEMA, (9, "x", 1.0)), row_key=["id"])
    with refused(shop, BatchError, "matches 2 rows"):
        shop.apply("orders", updates=frame(SCHEMA, (2, "x", 1.0)), row_key=["id"])
    with refused(shop, BatchError, "2 times"):
        rows = frame(SCHEMA, (1, "x", 1.0), (1, "y", 1.0))
        shop.apply("orders", updates=rows, row_key=["id"])
    with refused(shop, BatchError, "--row-key"):
        shop.apply("orders", updates=frame(SCHEMA, (1, "x", 1.0)))
    with refused(shop, BatchError, "deletes and updates the same row", "ann"):
        shop.apply(
            "orders",
            updates=frame(SCHEMA, (1, "x", 1.0)),
            deletes=frame("id bigint", (1,)),
            row_key=["id"],
        )


def test_batches_that_are_none(shop: Profile, frame: Make) -> None:
    rows = frame(SCHEMA, (1, "x", 1.0))
    with refused(shop, UnknownTableError, "'order'", "did you mean 'orders'?"):
        shop.apply("order", inserts=rows)
    with refused(shop, BatchError, "empty batch"):
        shop.apply("orders")
    with refused(shop, InputError, "the inserts", "list"):
        insert(shop, [(1, "x", 1.0)])
    with pytest.raises(InputError, match="at least one table"):
        Profile.create(Path(shop.path).with_name("q"), {})
    with pytest.raises(InputError, match="unknown kind 'laws'"):
        Profile.create(Path(shop.path).with_name("q"), {"t": rows}, options=Options(kinds="laws"))
    with pytest.raises(StoreError, match="a profile already"):
        Profile.create(shop.path, {"t": rows})


# Batches and writers


def test_a_batch_id_again(frame: Make, profile: Callable[..., Profile]) -> None:
    kept = profile(frame(SCHEMA, *ROWS))
    first = kept.apply("t", inserts=frame(SCHEMA, (7, "x", 1.0), (8, "y", 1.0)), batch_id="one")
    assert (first.applied, first.version) == (True, 2)
    # The same rows in another order and partitioning are the same batch.
    rows = frame(SCHEMA, (8, "y", 1.0), (7, "x", 1.0)).repartition(2)
    again = kept.apply("t", inserts=rows, batch_id="one")
    assert (again.applied, again.version, again.inserted) == (False, 2, 2)
    with refused(kept, BatchError, "'one'", "version 2", "other rows"):
        kept.apply("t", inserts=frame(SCHEMA, (7, "x", 1.0)), batch_id="one")
    with refused(kept, BatchError, "'one'"):
        kept.apply("t", deletes=rows, batch_id="one")


def test_two_writers(
    frame: Make, profile: Callable[..., Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second handle commits while the first one works: one wins, the other loses nothing."""
    one = profile(frame(SCHEMA, *ROWS))
    two = Profile.open(one.path)
    rows = frame(SCHEMA, (7, "x", 1.0))
    seen: list[str] = []

    def meanwhile(stage: str, **_: Any) -> None:
        if stage == "probe" and not seen:
            seen.append(stage)
            two.apply("t", inserts=frame(SCHEMA, (8, "y", 1.0)))

    slow = Profile.open(one.path, progress=meanwhile)
    with pytest.raises(ConflictError, match=r"version 2 first.*Run again"):
        slow.apply("t", inserts=rows)
    assert seen == ["probe"]
    now = one.snapshot()
    assert (now.version, now.tables["t"].rows) == (2, 5)
    assert slow.apply("t", inserts=rows).rows == 6
    assert one.verify().equal


def test_a_writer_that_comes_between_reading_and_writing(
    frame: Make, profile: Callable[..., Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that appears before our lease is taken is built upon, not overwritten."""
    one, two = profile(frame(SCHEMA, *ROWS)), None
    two = Profile.open(one.path)
    writing = two._store.writing

    def late() -> Any:
        monkeypatch.setattr(two._store, "writing", writing)
        one.apply("t", inserts=frame(SCHEMA, (8, "y", 1.0)))
        return writing()

    monkeypatch.setattr(two._store, "writing", late)
    told = two.apply("t", inserts=frame(SCHEMA, (7, "x", 1.0)))
    assert (told.version, told.rows) == (3, 6)
    assert one.verify().equal
