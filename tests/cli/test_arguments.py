"""What the arguments mean."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from holdfast.cli import arguments
from holdfast.cli.batch import Batch
from holdfast.cli.options import Reading
from holdfast.input.sources import Source
from holdfast.model.errors import InputError
from holdfast.model.names import listed


@pytest.mark.parametrize(
    ("argument", "table"),
    [
        ("orders.csv", ("orders", "orders.csv")),
        ("dir/orders.csv.gz", ("orders", "dir/orders.csv.gz")),
        ("people=customers.parquet", ("people", "customers.parquet")),
        ("a=b=c.csv", ("a", "b=c.csv")),
        ("./day=1.csv", ("day=1", "./day=1.csv")),
        ("s3a://store/day=1/", ("day=1", "s3a://store/day=1/")),
        ("folder/", ("folder", "folder/")),
    ],
)
def test_tables(argument: str, table: tuple[str, str]) -> None:
    assert arguments.name_tables([argument], None) == dict([table])


def test_a_catalog_table_is_called_after_its_last_part() -> None:
    assert arguments.name_tables(["main.shop.orders"], "table") == {"orders": "main.shop.orders"}


@pytest.mark.parametrize("columns", [("id",), ("a,b", "c"), ("first name", "`", "x"), ("é", "A.b")])
def test_a_row_key_is_written_as_keys_are_printed(columns: tuple[str, ...]) -> None:
    assert arguments.split_columns(listed(columns)) == list(columns)


@pytest.mark.parametrize("value", ["", ",", "a,,b"])
def test_row_keys_that_are_none(value: str) -> None:
    with pytest.raises(InputError, match="--row-key"):
        arguments.split_columns(value)


def test_a_schema_may_hold_an_equals_sign() -> None:
    assert arguments.split_schemas(["`a=b` int"], ["t"]) == {"t": "`a=b` int"}
    assert arguments.split_schemas(["t=`a=b` int"], ["t", "u"]) == {"t": "`a=b` int"}


def test_options_of_cells_are_for_the_csv_among_the_sources() -> None:
    reading = Reading(escape="\\", null_value=["NA"], date_format="%d.%m.%y")
    assert reading.cells() == {
        "escape": "\\",
        "null_values": ("NA",),
        "date_format": "%d.%m.%y",
    }
    paths = ["a.csv", "b.parquet", "folder"]
    assert [bool(reading.cells_of(path, paths)) for path in paths] == [1, 0, 1]
    with (
        pytest.raises(InputError, match=r"b\.parquet: parquet has no escape"),
        Batch("t", inserts="b.parquet").read("p", reading),
    ):
        pass


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"id\n1\n", "standard-input"),
        (b"", "standard-input"),
        (gzip.compress(b"id\n1\n", mtime=0), "standard-input.gz"),
        (b"\x28\xb5\x2f\xfd rest", "standard-input.zst"),
    ],
)
def test_standard_input(data: bytes, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    with arguments.spooled({"inserts": "-", "deletes": "x.csv", "updates": None}) as given:
        path = Path(given["inserts"] or "")
        assert path.name == name
        assert path.read_bytes() == data
        assert (given["deletes"], given["updates"]) == ("x.csv", None)
    assert not path.exists()
    with (
        pytest.raises(InputError, match="can be read once, but is given for a and for b"),
        arguments.spooled({"a": "-", "b": "-"}),
    ):
        pass


def test_rounding_is_for_the_parquet_among_the_sources() -> None:
    parquet, csv = Source("a.parquet"), Source("b.csv")
    given = {"t": {"inserts": parquet, "deletes": csv, "updates": None, "row_key": ["id"]}}
    rounded = Source("a.parquet", round_nanoseconds=True)
    reading = Reading(round_nanoseconds=True)
    assert reading.rounded(given) == {"t": {**given["t"], "inserts": rounded}}
    with pytest.raises(InputError, match="csv has no nanoseconds to round"):
        reading.rounded({"t": {"deletes": csv}})
