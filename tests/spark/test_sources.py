"""Anything that Spark reads: what a cell means, whatever the session's settings."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from holdfast import Profile, Source
from holdfast.model.errors import SchemaError, SourceError
from tests.spark.conftest import KEYS, columns

pytestmark = pytest.mark.spark

Make = Callable[..., Profile]


def types(profile: Profile) -> dict[str, str]:
    """The column types that the profile keeps."""
    now = profile.snapshot().tables["t"]
    return dict(zip(now.columns, now.types, strict=True))


def cells(profile: Profile) -> list[dict[str, Any]]:
    """The rows of a table of two rows without a common cell, as its witness shows them."""
    (non_key,) = profile.non_keys("t")
    assert non_key.witness is not None
    return sorted(non_key.witness, key=str)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes files beside the profile."""

    def make(text: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        data = text.encode() if isinstance(text, str) else text
        if path.suffix == ".zst":
            with pa.CompressedOutputStream(str(path), "zstd") as file:
                file.write(data)
        else:
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    return make


# CSV


def test_csv_cells(profile: Make, write: Callable[..., Path]) -> None:
    text = (
        'id,said,kept spaces,none,"quoted ""name"""\n1,"he said ""no, no""", x ,"",a\n2,\\,y,,b\n'
    )
    kept = profile(write(text))
    assert types(kept) == {
        "id": "bigint",
        "said": "string",
        "kept spaces": "string",
        "none": "string",
        'quoted "name"': "string",
    }
    (non_key,) = kept.non_keys("t")
    assert non_key.columns == ("none",)
    assert cells(kept) == [
        {
            "id": 1,
            "said": 'he said "no, no"',
            "kept spaces": " x ",
            "none": None,
            'quoted "name"': "a",
        },
        {"id": 2, "said": "\\", "kept spaces": "y", "none": None, 'quoted "name"': "b"},
    ]


def test_csv_from_other_programs(profile: Make, write: Callable[..., Path]) -> None:
    """A byte order mark, CRLF, no line break at the end, and compression change nothing."""
    plain = "id,name\n1,ü\n2,x\n"
    for text, name in (
        ("\ufeff" + plain.replace("\n", "\r\n"), "a.csv"),
        (plain.rstrip("\n"), "b.csv.gz"),
        ("\ufeff" + plain, "c.tsv.gz"),
        (plain, "d.csv.zst"),
    ):
        if ".tsv" in name:
            text = text.replace(",", "\t")
        kept = profile(write(text, name))
        assert cells(kept) == [{"id": 1, "name": "ü"}, {"id": 2, "name": "x"}], name


def test_nested_records(profile: Make, write: Callable[..., Path]) -> None:
    text = """\
{"id": 1, "at": {"city": "Rome", "geo": {"x.y": 1.5}}, "tags": ["a"]}
{"id": 2, "at": {"city": null, "geo": {"x.y": 2.5}}, "tags": ["b"]}
"""
    kept = profile(Source(str(write(text, "t.json")), flatten=True))
    assert types(kept) == {
        "at.city": "string",
        "at.geo.x.y": "double",
        "id": "bigint",
        "tags": "array<string>",
    }
    assert cells(kept)[0] == {"at.city": "Rome", "at.geo.x.y": 1.5, "id": 1, "tags": ["a"]}
    # Later batches are read alike; what no record has is null, what the table lacks is refused.
    told = kept.apply("t", inserts=write('{"id": 3, "at": {"city": "Oslo"}}', "more.json"))
    assert told.rows == 3
    assert kept.apply("t", inserts=write('{"id": 4, "at": null}', "null.json")).rows == 4
    with pytest.raises(SchemaError, match=r"has the column 'at\.zip' \(line 1\), which the table"):
        kept.apply("t", inserts=write('{"id": 5, "at": {"zip": 9}}', "other.json"))
    with pytest.raises(SourceError, match="malformed"):
        kept.apply("t", inserts=write('{"id": 5, "at": {"city"', "broken.json"))


@pytest.mark.parametrize("make", [pa.Table.to_pandas, lambda table: table])
def test_tables_in_memory(profile: Make, make: Callable[[pa.Table], Any]) -> None:
    days = [datetime(2026, 1, 2, 3), datetime(2026, 1, 4)]
    table = pa.table({"id": [1, 2], "at": pa.array(days, pa.timestamp("us")), "note": ["x", None]})
    kept = profile(make(table))
    assert types(kept) == {"id": "bigint", "at": "timestamp_ntz", "note": "string"}
    assert [row["at"] for row in cells(kept)] == ["2026-01-02T03:00:00", "2026-01-04T00:00:00"]
    told = kept.apply("t", upserts=make(table.slice(1)), row_key=["id"])
    assert (told.inserted, told.updated, told.unchanged, told.rows) == (0, 0, 1, 2)
    shown = kept.keys("t").to_spark(kept._spark())
    assert [row["columns"] for row in shown.collect()] == [
        list(key.columns) for key in kept.keys("t")
    ]


def test_a_carriage_return_in_quotes_is_no_new_line(
    profile: Make, write: Callable[..., Path]
) -> None:
    kept = profile(write('id,note\r\n1,"a\rb"\r\n2,x\r\n'))
    assert cells(kept) == [{"id": 1, "note": "a\rb"}, {"id": 2, "note": "x"}]


def test_newlines_in_quotes(profile: Make, write: Callable[..., Path]) -> None:
    path = write('id,note\n1,"two\r\nlines"\n2,one\n')
    with pytest.raises(SourceError, match=r"t\.csv, line 2.*malformed.*--multi-line"):
        profile(path)
    kept = profile(Source(str(path), multi_line=True))
    assert cells(kept) == [{"id": 1, "note": "two\r\nlines"}, {"id": 2, "note": "one"}]
    # What was said once holds for later batches.
    told = kept.apply("t", inserts=write('id,note\n3,"x\ny"\n', "more.csv"))
    assert (told.rows, columns(kept)) == (3, ["id", "note"])


def test_a_folder_of_csv(profile: Make, write: Callable[..., Path]) -> None:
    for number in range(5):
        write(f"id,half\n{number},{number // 2}\n", f"parts/part-{number}.csv")
    write("id,half\n", "parts/empty.csv")
    write("not ours", "parts/_SUCCESS")
    write("id,half\n5,9\n", "parts/deeper/part.csv")
    folder = write("", "parts/.hidden").parent
    kept = profile(Source(str(folder), format="csv"))
    assert kept.snapshot().tables["t"].rows == 6
    assert columns(kept) == ["id"]


def test_a_folder_whose_headers_differ(profile: Make, write: Callable[..., Path]) -> None:
    write("id,name\n1,x\n", "parts/a.csv")
    folder = write("name,id\ny,2\n", "parts/b.csv").parent
    with pytest.raises(SchemaError, match=r"b\.csv: has the columns name, id, unlike"):
        profile(Source(str(folder), format="csv"))
    # A pattern is Spark's to expand, so here only the tasks see all headers.
    with pytest.raises(SourceError, match=r"expected the header id, name: 'name,id'"):
        profile(Source(str(folder / "*.csv")))


def test_a_batch_with_its_columns_in_another_order(
    profile: Make, write: Callable[..., Path]
) -> None:
    kept = profile(write("id,name,score\n1,x,0.5\n2,y,0.5\n"))
    kept.apply("t", inserts=write("score,id,name\n0.5,3,x\n", "more.csv"))
    assert columns(kept) == ["id"]
    kept.apply("t", deletes=write("name,score,id\nx,0.5,1\n", "gone.csv"))
    assert columns(kept) == ["id", "name"]


@pytest.mark.parametrize("name", ["a b [x]*.csv", "{a,ü}?.csv", "50%25#b.csv"])
def test_file_names_are_taken_literally(
    profile: Make, write: Callable[..., Path], name: str
) -> None:
    write("id\n7\n8\n9\n", "x.csv")
    kept = profile(write("id\n1\n2\n", name))
    assert kept.snapshot().tables["t"].rows == 2


NAMES = ["a", "A", "a.b", "a b", "`a`", "'q'", 'd"q', "größe", "select", "c1", "_metadata"]


def test_column_names(profile: Make, write: Callable[..., Path], spark: SparkSession) -> None:
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in NAMES)
    ones = ",".join("1" for _ in NAMES)
    path = write(f"{quoted}\n{ones}\n{ones.replace('1', '2')}\n")
    kept = profile(path)
    assert [key.columns for key in kept.keys("t")] == [(name,) for name in NAMES]
    rows = spark.createDataFrame([tuple([3] * len(NAMES))], ["x"] * len(NAMES)).toDF(*NAMES)
    told = kept.apply("t", inserts=rows)
    assert (told.rows, told["keys"].lost) == (3, ())
    gone = spark.createDataFrame([(3,)], ["x"]).toDF("A")
    assert kept.apply("t", deletes=gone, row_key=["A"]).rows == 2
    assert kept.verify().equal


def test_headerless_and_delimited(profile: Make, write: Callable[..., Path]) -> None:
    kept = profile(Source(str(write("\ufeff1;x\n2;y\n")), header=False, delimiter=";"))
    assert cells(kept) == [{"_1": 1, "_2": "x"}, {"_1": 2, "_2": "y"}]
    kept.apply("t", inserts=write("3;x\n", "more.csv"))
    assert columns(kept) == ["_1"]


def test_given_types(profile: Make, write: Callable[..., Path]) -> None:
    schema = "id decimal(38,10), at timestamp, on date, flag boolean, name string"
    text = (
        "id,at,on,flag,name\n"
        "1234567890123456789012345678.0000000001,2020-01-01T00:00:00Z,2020-01-01,true,007\n"
        "1234567890123456789012345678.0000000002,2020-01-01T01:00:00+01:00,0001-01-01,FALSE,7\n"
    )
    kept = profile(Source(str(write(text)), schema=schema))
    assert columns(kept) == ["id", "on", "flag", "name"]
    assert kept.snapshot().tables["t"].types == (
        "decimal(38,10)", "timestamp", "date", "boolean", "string",
    )  # fmt: skip
    with pytest.raises(SchemaError, match="schema names id, but the file has id, at"):
        profile(Source(str(write(text)), schema="id bigint"))
    with pytest.raises(SchemaError, match=r"'id bigint, name' cannot be read"):
        profile(Source(str(write(text)), schema="id bigint, name"))
    with pytest.raises(SchemaError, match=r"column 'id'.*array<int>"):
        profile(Source(str(write("id\n1\n")), schema="id array<int>"))


def test_all_text(profile: Make, write: Callable[..., Path]) -> None:
    kept = profile(Source(str(write('id,x\n1,1\n01,1.0\n1.0,""\n+1,\n')), all_text=True))
    assert types(kept) == {"id": "string", "x": "string"}
    assert columns(kept) == ["id"]
    kept.apply("t", inserts=write("id,x\n1e0,2\n", "more.csv"))
    assert columns(kept) == ["id"]


LAST = {
    "2.5": "double",
    "two": "string",
    "12345678901234567": "bigint",
    "123456789012345678901": "string",
    "007": "string",
    "0.12345678901234567": "string",
    "2020-01-01": "string",
    "": "bigint",
}


def test_types_fit_all_rows_not_only_the_first(profile: Make, write: Callable[..., Path]) -> None:
    """The sample has only integers; the last row decides, and no value is changed by it."""
    header = ",".join(f"x{c}" for c in range(len(LAST)))
    rows = "".join(",".join([str(i)] * len(LAST)) + "\n" for i in range(2_500))
    kept = profile(write(f"{header}\n{rows}{','.join(LAST)}\n"))
    assert list(types(kept).values()) == list(LAST.values())
    assert kept.snapshot().tables["t"].rows == 2_501
    assert columns(kept) == [f"x{c}" for c in range(len(LAST))]
    (non_key,) = kept.non_keys("t")
    assert non_key.columns == ()


# Everything else


def test_json(profile: Make, write: Callable[..., Path]) -> None:
    kept = profile(
        write('{"id":1,"tags":["a"],"in":{"b":null}}\n{"id":2,"in":{"b":2.5}}\n', "t.json")
    )
    assert types(kept) == {"id": "bigint", "in": "struct<b:double>", "tags": "array<string>"}
    # A field that no record has is null in all of them; its type is the table's.
    kept.apply("t", inserts=write('{"id":3,"in":{"b":2.5}}\n', "more.json"))
    assert columns(kept) == ["id"]
    before = kept._store.read()
    with pytest.raises(SchemaError, match=r"added\.json has the column 'new'"):
        kept.apply("t", inserts=write('{"id":4,"new":1}\n', "added.json"))
    with pytest.raises(SourceError, match=r"broken\.json.*malformed.*'\{\"id\":5'"):
        kept.apply("t", inserts=write('{"id":4}\n{"id":5\n', "broken.json"))
    with pytest.raises(
        SourceError,
        match=r"retyped\.json, line 1, column 'id': unfit value",
    ):
        kept.apply("t", inserts=write('{"id":"x"}\n', "retyped.json"))
    assert kept._store.read() == before


def test_no_digit_of_json_is_lost(
    spark: SparkSession, tmp_path: Path, write: Callable[..., Path]
) -> None:
    """In columns of every width two numbers differ in their last digits only."""
    pairs: dict[str, tuple[str, str]] = {}
    for width in range(1, 42):
        last = "1" * (width - 1)
        pairs |= {
            f"whole {width}": (f"{last}1", f"{last}2"),
            f"part {width}": (f"0.{last}1", f"0.{last}2"),
            f"small {width}": (f"-1.{last}1e-9", f"-1.{last}2e-9"),
        }
    pairs |= {"huge": ("1e400", "2e400"), "zero": ("0.0", "-0"), "one": ("1", "1.0")}
    fields = [
        ", ".join(
            f'"{name}": {pair[row]}, "in {name}": [{{"x": {pair[row]}}}]'
            for name, pair in pairs.items()
        )
        for row in (0, 1)
    ]
    distinct = [name for name, pair in pairs.items() if Decimal(pair[0]) != Decimal(pair[1])]
    expected = sorted([*distinct, *(f"in {name}" for name in distinct)])
    lines = write("".join(f"{{{each}}}\n" for each in fields), "lines/t.json").parent
    second = fields[1].replace(", ", ",\n")
    whole = write(f"[{{{fields[0]}}},\n{{{second}}}]", "t.json.gz")
    as_csv = (
        ",".join(pairs)
        + "\n"
        + "".join(",".join(pair[row] for pair in pairs.values()) + "\n" for row in (0, 1))
    )
    tables: dict[str, Any] = {
        "lines": Source(str(lines), format="json"),
        "whole": Source(str(whole), multi_line=True),
        "csv": write(as_csv),
    }
    before = dict(spark.conf.getAll)
    kept = Profile.create(tmp_path / "digits", tables, options=KEYS, session=spark)
    assert dict(spark.conf.getAll) == before
    now = kept.snapshot().tables
    assert now["whole"].types == now["lines"].types
    for name in ("lines", "whole"):
        assert sorted(column for key in kept.keys(name) for column in key.columns) == expected
    types = dict(zip(now["lines"].columns, now["lines"].types, strict=True))
    assert types["part 20"] == "string"
    assert types["in part 20"] == "array<struct<x:string>>"
    in_csv = dict(zip(now["csv"].columns, now["csv"].types, strict=True))
    assert in_csv == {name: types[name] for name in in_csv}


def test_a_number_that_the_type_does_not_hold_is_refused(
    profile: Make, write: Callable[..., Path]
) -> None:
    kept = profile(write('{"n":1,"x":0.5,"in":{"y":[0.5]}}\n{"n":2,"x":0.1}\n', "t.json"))
    before = kept._store.read()
    for record, words in {
        '{"n":123456789012345678901234567890123456789}': "column 'n': unfit value, expected bigint",
        '{"x":0.12345678901234567890}': "column 'x': unfit value, expected a number",
        '{"x":1e400}': "column 'x': unfit value, expected a number that a double holds",
        '{"in":{"y":[1,1e400]}}': "column 'in': unfit value, .* losing a digit at in.y",
    }.items():
        path = write('{"n":3}\n' + record + "\n", "more.json")
        with pytest.raises(SourceError, match=rf"more\.json, line 2, {words}.*--schema"):
            kept.apply("t", inserts=path)
    assert kept._store.read() == before
    kept.apply("t", inserts=write('{"n":3,"x":0.30000000000000004}\n', "more.json"))


def test_a_cell_that_the_type_does_not_hold_is_refused(
    profile: Make, write: Callable[..., Path]
) -> None:
    kept = profile(write("n,x\n1,0.30000000000000004\n2,1e22\n", "t.csv"))
    assert types(kept) == {"n": "bigint", "x": "double"}
    before = kept._store.read()
    for cell in ("0.12345678901234567890", "1e400", "9007199254740993"):
        path = write(f"n,x\n3,0.1\n4,{cell}\n", "more.csv")
        words = "column 'x': unfit cell, expected a number that a double holds"
        with pytest.raises(SourceError, match=rf"more\.csv, line 3, {words}.*--schema"):
            kept.apply("t", inserts=path)
    assert kept._store.read() == before


def test_names_in_json_are_case_sensitive(profile: Make, write: Callable[..., Path]) -> None:
    path = write('{"a":1,"A":"x","in":{"b":1,"B":2}}\n{"a":2,"A":"x","in":{"b":1}}\n', "t.json")
    kept = profile(path)
    assert types(kept) == {"A": "string", "a": "bigint", "in": "struct<B:bigint,b:bigint>"}
    kept.apply("t", inserts=write('{"A":"y","a":3}\n', "more.json"))
    assert columns(kept) == ["a", "`in`"]
    flat = profile(Source(str(path), flatten=True))
    assert types(flat) == {"A": "string", "a": "bigint", "in.B": "bigint", "in.b": "bigint"}


def test_a_format_that_spark_lacks_names_its_package(profile: Make, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(
        SourceError, match=r"there: .*'delta'; the package io\.delta:delta-spark.*--conf"
    ):
        profile(Source(str(tmp_path / "there"), format="delta"))
    with pytest.raises(SourceError, match=r"'dleta'; check the name .*delta.*parquet"):
        profile(Source(str(tmp_path / "there"), format="dleta"))


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_columnar_files(spark: SparkSession, profile: Make, tmp_path: Path, form: str) -> None:
    rows = spark.sql("select id, id % 3 as third, cast(id as decimal(20,2)) d from range(10)")
    rows.write.format(form).save(str(tmp_path / f"t.{form}"))
    kept = profile(tmp_path / f"t.{form}")
    assert types(kept) == {"id": "bigint", "third": "bigint", "d": "decimal(20,2)"}
    assert columns(kept) == ["id", "d"]
    rows.limit(1).select("d", "id", "third").write.format(form).save(
        str(tmp_path / f"again.{form}")
    )
    assert kept.apply("t", inserts=tmp_path / f"again.{form}").duplicates == 1
    assert columns(kept) == []


def test_catalog_table(spark: SparkSession, profile: Make) -> None:
    spark.sql("create table kept (id int, code char(4), name varchar(4)) using parquet")
    try:
        spark.sql("insert into kept values (1, 'a', 'a'), (2, 'a ', 'a ')")
        kept = profile(Source("kept", format="table"))
        # char is padded by Spark, so 'a' and 'a ' are one value of it, and two of varchar.
        assert columns(kept) == ["id", "name"]
        spark.sql("select 3 as id, 'b' as code, 'a' as name").createOrReplaceTempView("more")
        assert kept.apply("t", inserts=Source("more", format="table")).rows == 3
        assert columns(kept) == ["id", "code, name"]
        with pytest.raises(SourceError, match="nothing_there: Spark cannot read it as table"):
            kept.apply("t", inserts=Source("nothing_there", format="table"))
    finally:
        spark.sql("drop table kept")


# Types

APART = {
    "tinyint": ("cast(-128 as tinyint)", "cast(127 as tinyint)"),
    "smallint": ("cast(-32768 as smallint)", "cast(32767 as smallint)"),
    "int": ("-2147483648", "2147483647"),
    "bigint": ("9223372036854775807", "9223372036854775806"),
    "negative": ("-9223372036854775808", "-9223372036854775807"),
    "short decimal": ("1.01", "1.02"),
    "wide decimal": (
        "cast('1234567890123456789012345678.0000000001' as decimal(38,10))",
        "cast('1234567890123456789012345678.0000000002' as decimal(38,10))",
    ),
    "widest": ("-99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    "float": ("cast(0.1 as float)", "cast(0.10000001 as float)"),
    "double": ("9007199254740992D", "9007199254740994D"),
    "nan": ("double('NaN')", "double('Infinity')"),
    "boolean": ("true", "false"),
    "null": ("cast(null as int)", "0"),
    "date": ("date'0001-01-01'", "date'9999-12-31'"),
    "timestamp": ("timestamp'2020-01-01 00:00:00.000001'", "timestamp'2020-01-01 00:00:00.000002'"),
    "ntz": ("timestamp_ntz'0001-01-01 00:00:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'"),
    "text": ("'a'", "'a '"),
    "case": ("'ä'", "'Ä'"),
    "empty": ("''", "cast(null as string)"),
    "collated": ("'a' collate UTF8_LCASE", "'A' collate UTF8_LCASE"),
    "binary": ("X'00'", "X'0000'"),
    "array": ("array(1, null)", "array(null, 1)"),
    "longer": ("array('a', 'b')", "array('a,b')"),
    "no list": ("cast(null as array<int>)", "cast(array() as array<int>)"),
    "map": ("map('a', 1)", "map('a', null)"),
    "struct": ("named_struct('x', 1, 'y', cast(null as int))", "named_struct('x', null, 'y', 1)"),
    "deep": ("map(array(1), array(map('a', X'00')))", "map(array(1), array(map('a', X'01')))"),
    "zoned": ("array(timestamp'2020-01-01 00:00:00')", "array(timestamp'2020-01-01 00:00:01')"),
    "variant": ("""parse_json('{"a":[1,null]}')""", """parse_json('{"a":[1]}')"""),
    "in variant": ("""array(parse_json('1'))""", """array(parse_json('"1"'))"""),
    "day-time": ("interval '1 00:00:00.000001' day to second", "interval '1' day"),
    "year-month": ("interval '1-2' year to month", "interval '1-3' year to month"),
    "months": (
        "named_struct('a b', map(interval '1' month, parse_json('1')))",
        "named_struct('a b', map(interval '2' month, parse_json('1')))",
    ),
    "calendar": ("make_interval(0, 1)", "make_interval(0, 0, 0, 30)"),
    "time": ("time'12:34:56.789001'", "time'12:34:56.789'"),
}  # fmt: skip

if pyspark.__version__.startswith("4.1"):
    del APART["time"]  # there behind a setting

ALIKE = {
    "zero": ("0.0D", "-0.0D"),
    "zero float": ("float('0.0')", "float('-0.0')"),
    "nan": ("double('NaN')", "-double('NaN')"),
    "in list": ("array(0.0D)", "array(-0.0D)"),
    "null": ("null", "null"),
    "map": ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)"),
    "scale": ("cast(1 as decimal(38,10))", "cast('1.0000000000' as decimal(38,10))"),
    "instant": ("timestamp'2020-01-01 00:00:00Z'", "timestamp'2020-01-01 01:00:00+01:00'"),
    "variant": ("""parse_json('{"a":1,"b":2}')""", """parse_json('{"b":2, "a":1}')"""),
    "variant number": ("parse_json('1.0')", "parse_json('1')"),
    "variant date": ("cast(date'2020-01-01' as variant)", """parse_json('"2020-01-01"')"""),
    "calendar": ("make_interval(1, 2)", "make_interval(0, 14)"),
}


def two_rows(session: SparkSession, pairs: dict[str, tuple[str, str]]) -> Any:
    rows = [
        ", ".join(f"{pair[side]} as `{name}`" for name, pair in pairs.items()) for side in (0, 1)
    ]
    return session.sql(f"select {rows[0]} union all select {rows[1]}")


def test_values_apart(spark: SparkSession, profile: Make) -> None:
    kept = profile(two_rows(spark, APART))
    assert [key.columns for key in kept.keys("t")] == [(name,) for name in APART]
    row = max(cells(kept), key=lambda row: row["bigint"])
    assert row["wide decimal"] == "1234567890123456789012345678.0000000001"
    assert row["timestamp"] == "2020-01-01T03:30:00.000001+00:00"
    assert row["ntz"] == "0001-01-01T00:00:00"
    assert row["zoned"] == ["2020-01-01T03:30:00+00:00"]
    # The same rows again, from files: every one is found, whatever its type.
    told = kept.apply("t", deletes=two_rows(spark, APART))
    assert (told.rows, told.deleted) == (0, 2)


def test_values_alike(spark: SparkSession, profile: Make) -> None:
    kept = profile(two_rows(spark, ALIKE))
    assert kept.snapshot().tables["t"].duplicates == 1
    assert columns(kept) == []


# Settings


@pytest.fixture
def strange(spark: SparkSession) -> SparkSession:
    """A session beside ours that differs in everything that could change a meaning."""
    session = spark.newSession()
    for name, value in {
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.caseSensitive": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
        "spark.sql.files.maxPartitionBytes": "40",
    }.items():
        session.conf.set(name, value)
    return session


def test_settings_of_the_session_change_nothing(
    spark: SparkSession, strange: SparkSession, tmp_path: Path, write: Callable[..., Path]
) -> None:
    text = (
        "id,ID,at,zoned,on,x,many\n"
        "1,1,2020-01-01T00:00:00,2020-01-01T00:00:00Z,2020-01-01,1e400,1\n"
        "2,2,2020-01-01T00:00:01,2020-01-01T01:00:00+01:00,2020-01-02,nan,99999999999\n"
        "3,1,2020-03-29T02:30:00,2020-01-01T00:00:00-05:00,2020-01-01,,\n"
    )
    path = write(text)
    lines = write(
        '{"id":1,"at":"2020-01-01T00:00:00","x":1.0}\n{"id":2,"at":"2020-01-01","x":1}\n', "t.json"
    )
    seen = []
    for number, session in enumerate((spark, strange)):
        tables = {"csv": path, "json": lines, "moments": instants(session)}
        kept = Profile.create(
            tmp_path / f"settings-{number}", tables, options=KEYS, session=session
        )
        gone = write(text.splitlines()[0] + "\n" + text.splitlines()[2] + "\n", "gone.csv")
        told = kept.apply("csv", deletes=gone, batch_id="x")
        assert told.deleted == 1
        now = kept.snapshot().tables
        facts: dict[str, Any] = {
            name: (t.types, t.keys, {n.columns for n in t.non_keys}, t.rows)
            for name, t in now.items()
        }
        applied = kept._store.find_batch("csv", "x")
        assert applied is not None
        assert applied.batch is not None
        seen.append(facts | {"digest": applied.batch.digest, "shown": now["moments"].non_keys})
    assert seen[0] == seen[1]


def instants(session: SparkSession) -> Any:
    return session.sql(
        "select timestamp'2020-01-01 00:00:00Z' + make_dt_interval(0, 0, 0, id) as at, "
        "map('k', array(timestamp'2020-01-01 00:00:00Z')) as nested, "
        "to_variant_object(named_struct('t', timestamp'2020-01-01 00:00:00Z')) as variant "
        "from range(2)"
    )
