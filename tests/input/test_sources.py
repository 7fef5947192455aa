"""Where rows come from, as a caller says it, and as a later batch takes it over."""

from __future__ import annotations

import pytest

from holdfast.input.sources import Source
from holdfast.model.commits import SourceRecord
from holdfast.model.errors import InputError
from holdfast.model.records import from_form, to_form

FIRST = Source(
    "first/", format="csv", delimiter=";", header=False, escape="\\", encoding="latin-1",
    null_values=("NA", ""), multi_line=True, all_text=True, date_format="%d/%m/%Y",
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "meant"), [(None, ","), (";", ";"), (r"\t", "\t"), ("\t", "\t"), ("t", "t")]
)
def test_delimiters(given: str | None, meant: str) -> None:
    assert Source("a.csv", delimiter=given).separator == meant
    assert Source("a.tsv").separator == "\t"


def test_a_batch_is_read_like_the_first_rows() -> None:
    stored = FIRST.stored()
    later = Source("second/").like(stored)
    assert later.dialect == FIRST.dialect
    assert later.stored() == stored
    other = Source("new.txt", delimiter="|", escape='"', encoding="UTF8", null_values=("",))
    assert Source("new.csv", date_format="").like(stored).dialect.dates is None
    dialect = other.like(stored).dialect
    assert (dialect.delimiter, dialect.escape) == ("|", None)
    assert (dialect.encoding, dialect.nulls) == ("utf-8", ())
    assert Source("new.parquet").like(stored).stored().all_text is False


def test_a_batch_like_rows_of_other_kinds() -> None:
    plain = SourceRecord("csv", delimiter=",")
    assert Source("second/").like(plain).dialect.encoding == "utf-8"
    table = Source("main.orders", format="table").stored()
    assert Source("main.more").like(table).kind == "table"
    with pytest.raises(InputError, match="cannot tell the format"):
        _ = Source("second/").like(SourceRecord()).kind
    with pytest.raises(InputError, match="second/: table has no null value"):
        Source("second/", null_values=("NA",)).like(table)


def test_nested_records_are_flattened_as_before() -> None:
    stored = Source("first.json", flatten=True).stored()
    assert Source("second/").like(stored).flatten
    assert Source("second.parquet").like(stored).flatten
    assert not Source("second.csv").like(stored).flatten
    with pytest.raises(InputError, match="nothing nested to flatten"):
        Source("rows.csv", flatten=True)


def test_nanoseconds_are_rounded_as_before() -> None:
    stored = Source("first.parquet", round_nanoseconds=True).stored()
    assert from_form(SourceRecord, to_form(stored)) == stored
    assert Source("second/").like(stored).round_nanoseconds
    assert not Source("second.csv").like(stored).round_nanoseconds
    kept = Source("first.parquet").stored()
    assert not Source("second.parquet").like(kept).round_nanoseconds
    assert Source("second/", round_nanoseconds=True).like(kept).round_nanoseconds
    for name in ("rows.csv", "rows.json", "rows.orc"):
        with pytest.raises(InputError, match=r"no nanoseconds to round.*--round-nanoseconds out"):
            Source(name, round_nanoseconds=True)


def test_a_record_from_before_flattening_is_read() -> None:
    form = to_form(SourceRecord("json"))
    assert "flatten" not in form
    assert from_form(SourceRecord, form) == SourceRecord("json")
    flat = SourceRecord("json", flatten=True)
    assert from_form(SourceRecord, to_form(flat)) == flat
