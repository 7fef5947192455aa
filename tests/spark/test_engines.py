"""Two engines, Spark and this process, take turns on one profile, and neither notices."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as at
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from holdfast import Options, Profile, Source
from holdfast.input import type_names
from holdfast.model.errors import HoldfastError
from holdfast.report import forms
from holdfast.spark.types import arrow_type
from tests.limits import varied
from tests.process.forms import FORMS, given_as
from tests.spark.conftest import KEYS
from tests.spark.test_law import assert_exact, few
from tests.strategies import Rows, changes, tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@few
@given(data=st.data(), table=tables(), first=st.booleans())
def test_they_take_turns(
    spark: SparkSession, data: st.DataObject, table: tuple[int, Rows], first: bool
) -> None:
    width, rows = table
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        varied(patch, merged_segments=3)
        engines: list[dict[str, Any]] = [{"engine": "process"}, {"session": spark}]
        if first:
            engines.reverse()
        source = given_as(data.draw(st.sampled_from(FORMS)), folder, width, rows)
        options = Options(kinds=("keys", "fds"))
        profile = Profile.create(folder / "p", {"t": source}, options=options, **engines[0])
        assert_exact(profile, width, rows, "equal")
        for turn in (1, 2):
            profile = Profile.open(folder / "p", **engines[turn % 2])
            inserts, deletes, rows = data.draw(changes(width, rows))
            form = data.draw(st.sampled_from(FORMS))
            profile.apply(
                "t",
                inserts=given_as(form, folder, width, inserts),
                deletes=given_as(form, folder, width, deletes),
            )
            assert_exact(profile, width, rows, "equal")
        assert Profile.open(folder / "p", **engines[1]).verify().equal


SHOP = {
    "orders.csv": 'id,customer,day,total\n1,7,2026-01-01,1.5\n2,8,,2.5\n3,7,2026-01-02,"3.5"\n',
    "records.json": '{"id": 1, "x": {"y": [0.5]}}\n{"id": 2.0, "x": {"y": null}, "z": true}\n',
    "customers.tsv": "id\tname\n7\tÄnn\n8\t\n",
}


def test_what_they_say_of_files_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Types, constraints, rows and how the files are read again: all but names of data files."""
    sources: dict[str, Any] = {}
    for file, text in SHOP.items():
        (tmp_path / file).write_text(text)
        sources[file.split(".")[0]] = Source(str(tmp_path / file))
    rows = [(1, "a", None), (2, None, Decimal(5))]
    typed = spark.createDataFrame(rows, "i tinyint, s string, d decimal(10,2)")
    times = ("timestamp'2026-01-01 12:00:00' as t", "date'2026-01-01' as day")
    typed.coalesce(1).selectExpr("*", *times).write.parquet(str(tmp_path / "typed.parquet"))
    sources["typed"] = Source(str(tmp_path / "typed.parquet"))
    told = []
    ways: list[dict[str, Any]] = [{"engine": "process"}, {"session": spark}]
    for number, how in enumerate(ways):
        profile = Profile.create(tmp_path / f"p{number}", sources, **how)
        now = profile.snapshot()
        version = profile._store.read()
        read = [version.table(name).source for name in version.tables]
        form = forms.show(now, limit=None, ranking=profile.ranking_of(now))
        written = json.loads("".join(forms.chunks(form)))
        told.append({"sources": read, **written.pop("tables"), **written})
    assert told[0].keys() == told[1].keys()
    for name, said in told[0].items():
        for part in said if isinstance(said, dict) else ():
            assert said[part] == told[1][name][part], (name, part)
        assert said == told[1][name]


WRONG: dict[str, tuple[str, Callable[[str], Source]]] = {
    "line": ("id,name\n1,a,b\n", Source),
    "quote": ('id,name\n1,"a\n2,b\n', Source),
    "header": ('id,na"me\n1,a\n', Source),
    "cell": ("id,name\nx,a\n", lambda path: Source(path, schema="id int, name string")),
    "schema": ("id,name\n1,a\n", lambda path: Source(path, schema="id int, nom string")),
    "ddl": ("id,name\n1,a\n", lambda path: Source(path, schema="id inte, name string")),
    "empty": ("", Source),
    "json": ('{"id": 1}\n{"id": 2\n', lambda path: Source(path, format="json")),
    "nothing": ("\n", lambda path: Source(path, format="json")),
    "encoding": ("id,name\n1,é\n", lambda path: Source(path, encoding="ascii")),
}


@pytest.mark.parametrize("what", WRONG)
def test_their_errors_are_the_same(spark: SparkSession, tmp_path: Path, what: str) -> None:
    text, source = WRONG[what]
    (tmp_path / "t.csv").write_text(text)
    said = []
    ways: list[dict[str, Any]] = [{"engine": "process"}, {"session": spark}]
    for how in ways:
        with pytest.raises(HoldfastError) as error:
            Profile.create(tmp_path / "p", source(str(tmp_path / "t.csv")), options=KEYS, **how)
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]


def test_types_have_the_names_that_spark_gives_them() -> None:
    kinds = [
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
        pa.decimal128(10, 2), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
        pa.binary(3), pa.date32(), pa.timestamp("us"), pa.timestamp("ms", "Europe/Rome"),
        pa.duration("us"), pa.null(), pa.list_(pa.int8()), pa.large_list(pa.string()),
        pa.map_(pa.string(), pa.int64()),
        pa.struct([("a b", pa.int8()), ("c", pa.list_(pa.date32()))]),
    ]  # fmt: skip
    for kind in kinds:
        spark = from_arrow_type(kind, prefer_timestamp_ntz=True)
        assert type_names.exact_type("c", kind) == (spark.simpleString(), arrow_type("c", spark))
        if not (at.is_null(kind) or at.is_nested(kind)):
            assert type_names.parsed(f"c {spark.simpleString()}").field(0).type == arrow_type(
                "c", spark
            )
