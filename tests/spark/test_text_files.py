"""Text files as others write them: their bytes, their dialects, and which file is at fault."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast import Profile, Source
from holdfast.model.errors import SchemaError, SourceError
from tests.spark.conftest import columns

pytestmark = pytest.mark.spark

Make = Callable[..., Profile]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes files beside the profile."""

    def make(data: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        told = data.encode() if isinstance(data, str) else data
        path.write_bytes(gzip.compress(told) if path.suffix == ".gz" else told)
        return path

    return make


def rows(profile: Profile) -> int:
    return profile.snapshot().tables["t"].rows


# Bytes

REFUSED = [b"caf\xe9", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", b"a\rb", b'a"b']
READ = [b"\0", b"a\0b", b"\xef\xbb\xbf", b"\xc2\x85", b"\x1a", b"\r", b'"a\rb"', b"\xef\xbf\xbd"]


def test_odd_bytes_lose_no_row(profile: Make, write: Callable[..., Path]) -> None:
    for odd in REFUSED:
        with pytest.raises(SourceError, match=r"t\.csv, line 2.*(unfit cell|malformed line)"):
            profile(write(b"a,b\n1," + odd + b"\n2,plain\n"))
    lines = b"".join(b"%d,%s\n" % (i, odd) for i, odd in enumerate(READ))
    assert rows(profile(write(b"a,b\n" + lines))) == len(READ)
    assert rows(profile(Source(str(write(b"a,b\n" + lines)), multi_line=True))) == len(READ)


def test_carriage_returns_alone_end_no_line(profile: Make, write: Callable[..., Path]) -> None:
    with pytest.raises(SourceError, match=r"t\.csv: the header is malformed.*line break"):
        profile(write(b"a,b\r1,x\r2,y\r"))


def test_odd_bytes_in_json_lose_no_row(profile: Make, write: Callable[..., Path]) -> None:
    texts = [b"nul\\u0000", b"plain", b"\xef\xbb\xbf", b"\xc2\x85", b"\x7f"]
    lines = b"".join(b'{"a":%d,"b":"%s"}\n' % (i, each) for i, each in enumerate(texts))
    assert rows(profile(write(lines, "t.json"))) == len(texts)
    for odd in (b"caf\xe9", b"\xed\xa0\x80", b"\\ud800x"):
        with pytest.raises(SourceError, match=r"t\.json, line 6: malformed line"):
            profile(write(lines + b'{"a":7,"b":"%s"}\n' % odd, "t.json"))


def test_odd_bytes_in_typed_rows_lose_no_row(
    spark: SparkSession, profile: Make, tmp_path: Path
) -> None:
    odd = "select id, cast(X'E9' as string) as b from range(7)"
    spark.sql(odd).write.parquet(str(tmp_path / "t.parquet"))
    for kept in (profile(spark.sql(odd)), profile(tmp_path / "t.parquet")):
        assert rows(kept) == 7
        assert columns(kept) == ["id"]


# Which file

BAD = {
    "cell": (b"3,caf\xe9", r"line 3, column 'b': unfit cell"),
    "line": (b"3", r"line 3: malformed line, expected 2 columns"),
    "quote": (b'3,"a \\"b\\""', r"line 3.*malformed line.*--escape"),
}


@pytest.mark.parametrize("how", ["lines", "whole", "text"])
@pytest.mark.parametrize("bad", BAD)
def test_the_file_of_a_folder_is_named(
    profile: Make, write: Callable[..., Path], bad: str, how: str
) -> None:
    line, told = BAD[bad]
    for name in ("a.csv", "deep er/ü [1]%20.csv", "z.csv"):
        write(b"a,b\n1,x\n" + (line if " " in name else b"2,y") + b"\n", f"parts/{name}")
    folder = write("", "parts/_SUCCESS").parent
    source = Source(str(folder), format="csv", multi_line=how == "whole", all_text=how == "text")
    with pytest.raises(SourceError, match=r"parts/deep er/ü \[1\]%20\.csv, " + told):
        profile(source)


def test_a_line_break_in_a_header_needs_multi_line(
    profile: Make, write: Callable[..., Path]
) -> None:
    path = write('"a\nb",c\n1,x\n')
    with pytest.raises(SourceError, match=r"t\.csv: the header is malformed.*needs --multi-line\)"):
        profile(path)
    kept = profile(Source(str(path), multi_line=True))
    assert kept.snapshot().tables["t"].columns == ("a\nb", "c")


def test_the_json_file_of_a_folder_is_named(profile: Make, write: Callable[..., Path]) -> None:
    write('{"id":1}\n', "parts/a.json")
    write('{"id":2}\n\n{"id":\n', "parts/b.json")
    folder = write('{"id":3}\n', "parts/c.json").parent
    with pytest.raises(SourceError, match=r"parts/b\.json, line 3: malformed line"):
        profile(Source(str(folder), format="json", schema="id bigint"))


# Dialects


def test_csv_as_spark_writes_it(
    spark: SparkSession, profile: Make, tmp_path: Path, write: Callable[..., Path]
) -> None:
    texts = ['he said "no"', "a\\b", "a\\,b", "x\\", "x,\\", '\\"', '"q', "a\\\\b,", "N\nA", "é"]
    frame = spark.createDataFrame(list(enumerate(texts)), "id bigint, b string")
    frame.write.option("header", "true").csv(str(tmp_path / "out"))
    with pytest.raises(SourceError, match=r"out/part-\S+\.csv, line \d+.*--escape"):
        profile(Source(str(tmp_path / "out"), format="csv"))
    kept = profile(Source(str(tmp_path / "out"), format="csv", escape="\\", multi_line=True))
    assert rows(kept) == len(texts)
    # The same rows by their values: each is found and removed.
    assert kept.apply("t", deletes=frame).rows == 0
    # A later batch is read alike, whatever it is called.
    told = kept.apply("t", inserts=tmp_path / "out")
    assert told.rows == len(texts)
    # Unless told otherwise.
    plain = write('id,b\n20,"a ""b"" \\"\n', "plain.csv")
    with pytest.raises(SourceError, match=r"plain\.csv"):
        kept.apply("t", inserts=plain)
    assert kept.apply("t", inserts=Source(str(plain), escape='"')).rows == len(texts) + 1


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_other_encodings(
    profile: Make, write: Callable[..., Path], encoding: str, name: str
) -> None:
    text = "id,näme\n1,café\r\n2,\n3,x\n"
    kept = profile(Source(str(write(text.encode(encoding), name)), encoding=encoding))
    assert rows(kept) == 3
    told = kept.apply("t", deletes=write("id,näme\n1,café\n".encode(encoding), "gone.csv"))
    assert (told.rows, columns(kept)) == (2, ["id", "näme"])
    more = write("id,näme\n4,ü\n", "more.csv")
    assert kept.apply("t", inserts=Source(str(more), encoding="utf-8")).rows == 3


def test_bytes_that_are_not_in_the_encoding(profile: Make, write: Callable[..., Path]) -> None:
    path = write(b"id,b\n1,x\n2,caf\xe9\n")
    with pytest.raises(SourceError, match=r"t\.csv, line 3.*expected text in ascii"):
        profile(Source(str(path), encoding="ascii"))
    text = "id,b\n1,x\n2,".encode("utf-16-le") + b"\x00\xdc\n\x00"
    with pytest.raises(SourceError, match=r"t\.csv, line 3.*expected text in utf-16-le"):
        profile(Source(str(write(text)), encoding="utf-16-le"))
    with pytest.raises(SourceError, match=r"t\.csv: cannot be read as UTF-8.*--encoding"):
        profile(write("id,näme\n".encode("latin-1")))


def test_null_values(profile: Make, write: Callable[..., Path]) -> None:
    path = write('id,NA,n\n1,NA,5\n2,"NA",-\n3,,6\n4,NAN,-\n')
    kept = profile(Source(str(path), null_values=("NA", "-")))
    now = kept.snapshot().tables["t"]
    assert (now.columns, now.types) == (("id", "NA", "n"), ("bigint", "string", "bigint"))
    told = kept.apply("t", deletes=write("id,NA,n\n2,,NA\n", "gone.csv"))
    assert told.rows == 3
    more = Source(str(write("id,NA,n\n7,NA,7\n", "more.csv")), null_values=("",))
    kept.apply("t", inserts=more)
    assert kept.apply("t", deletes=Source(str(more.path), null_values=("",))).rows == 3


def test_dates_in_a_form_that_is_named(
    profile: Make, write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    """As well as those of ISO 8601, in columns of their own; in later batches, too."""
    path = write('id,day,n\n1,"31/01/2024",2024-02-01\n2,,2024-02-03\n3,01/02/2024,\n')
    with caplog.at_level(logging.WARNING, "holdfast"):
        kept = profile(Source(str(path), date_format="%d/%m/%Y"))
        assert kept.snapshot().tables["t"].types == ("bigint", "date", "date")
        more = write("id,day,n\n4,29/02/2024,2024-02-29\n", "more.csv")
        assert kept.apply("t", inserts=more).rows == 4
        day = kept.columns("t")[1]
        assert (str(day.minimum), str(day.maximum)) == ("2024-01-31", "2024-02-29")
        assert not caplog.text
        wrong = write("id,day,n\n5,30/02/2024,\n", "wrong.csv")
        expected = (
            r"wrong\.csv, line 2, column 'day': unfit cell, expected a date written as %d/%m/%Y"
        )
        with pytest.raises(SourceError, match=expected):
            kept.apply("t", inserts=wrong)


def test_text_that_looks_like_dates_is_noted(
    profile: Make, write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"):
        kept = profile(write("id,day,text\n1,02/01/2024,01/01/2024\n2,13/01/2024,x\n"))
    assert kept.snapshot().tables["t"].types == ("bigint", "string", "string")
    (note,) = caplog.messages
    assert "column 'day' is text that looks like dates: --date-format '%d/%m/%Y' reads" in note


def test_columns_without_names_and_names_that_occur_twice_are_numbered(
    profile: Make, write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    """As in what pandas' ``to_csv`` writes: the index has no name."""
    with caplog.at_level(logging.WARNING, "holdfast"):
        kept = profile(write(",day,total,total\n0,mon,5,6\n1,tue,7,8\n"))
        assert kept.snapshot().tables["t"].columns == ("_1", "day", "total", "total_2")
        assert "t.csv: column 1 has no name; it is called '_1'" in caplog.text
        assert "column 4 has the name 'total' of another one; it is called 'total_2'" in caplog.text
        caplog.clear()
        more = write(",day,total,total\n2,wed,9,9\n", "more.csv")
        assert kept.apply("t", inserts=more).rows == 3
        gone = write("day,_1,total_2,total\ntue,1,8,7\n", "gone.csv")
        assert kept.apply("t", deletes=gone).rows == 2
        assert not caplog.text


def test_a_delimiter_is_guessed_and_said(
    profile: Make, write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"):
        kept = profile(write('"id";"last, first"\n1;x\n2;y\n'))
        assert kept.snapshot().tables["t"].columns == ("id", "last, first")
        assert "t.csv: cells are separated by ';'" in caplog.text
        kept.apply("t", inserts=write('id;"last, first"\n3;z\n', "more.csv"))
        caplog.clear()
        kept = profile(write("id\tb|c\td\n1\tx\ty\n"))
        assert len(kept.snapshot().tables["t"].columns) == 3
        assert "t.csv: cells are separated by tabs" in caplog.text
        caplog.clear()
        assert len(profile(write("id;a,b\n1,2\n")).snapshot().tables["t"].columns) == 2
        assert len(profile(write("id\n1\n")).snapshot().tables["t"].columns) == 1
        told = profile(Source(str(write("a;b\n1;2\n")), delimiter=","))
        assert told.snapshot().tables["t"].columns == ("a;b",)
        assert not caplog.text


def test_later_batches_of_a_folder_are_read_alike(
    profile: Make, write: Callable[..., Path], spark: SparkSession, tmp_path: Path
) -> None:
    folder = write("1;x\n2;NA\n", "first/a.txt").parent
    source = Source(str(folder), format="csv", delimiter=";", header=False, null_values=("NA",))
    kept = profile(source)
    more = write("3;y\n", "second/part").parent
    assert kept.apply("t", inserts=str(more)).rows == 3
    assert kept.apply("t", deletes=write("2;\n", "third/part").parent).rows == 2
    spark.range(3).write.parquet(str(tmp_path / "one"))
    spark.range(3, 5).write.parquet(str(tmp_path / "two"))
    kept = profile(Source(str(tmp_path / "one"), format="parquet"))
    assert kept.apply("t", inserts=str(tmp_path / "two")).rows == 5
    with pytest.raises(SchemaError, match="lacks the column 'id'"):
        kept.apply("t", inserts=write("x,y\n1,2\n", "other.csv"))
