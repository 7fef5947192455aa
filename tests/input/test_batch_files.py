"""Batches of several tables in a folder or a YAML file: what they mean, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Source, batch_files
from holdfast.input.yaml_file import read_yaml
from holdfast.model.errors import InputError


def place(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id\n1\n")
    return folder


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "batch.yml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# A folder


def test_a_folder_has_a_folder_for_each_table(tmp_path: Path) -> None:
    names = ("orders/inserts.csv", "orders/deletes.csv.gz", "a.b/upserts/part-0.parquet")
    place(tmp_path, *names, "orders/_SUCCESS", "orders/.inserts.csv.crc", ".hidden")
    found = batch_files(tmp_path)
    assert found == {
        "a.b": {
            "upserts": Source(str(tmp_path / "a.b/upserts")),
            "row_key": (),
            "if_exists": False,
            "allow_shrink": False,
        },
        "orders": {
            "inserts": Source(str(tmp_path / "orders/inserts.csv")),
            "deletes": Source(str(tmp_path / "orders/deletes.csv.gz")),
            "row_key": (),
            "if_exists": False,
            "allow_shrink": False,
        },
    }


def test_or_files_called_after_both(tmp_path: Path) -> None:
    place(tmp_path, "a-b-inserts.csv", "a.c-updates.csv.gz", "t-deletes/part-0.csv", "a-b/deletes")
    found = batch_files(tmp_path)
    assert {
        (table, what): Path(each.path).name
        for table, one in found.items()
        for what, each in one.items()
        if isinstance(each, Source)
    } == {
        ("a-b", "inserts"): "a-b-inserts.csv",
        ("a-b", "deletes"): "deletes",
        ("a.c", "updates"): "a.c-updates.csv.gz",
        ("t", "deletes"): "t-deletes",
    }


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "this batch has no tables; expected files such as orders/inserts.csv"),
        (("inserts.csv",), r"inserts\.csv: expected a folder called after a table"),
        (
            ("orders/insert.csv",),
            r"orders/insert\.csv: expected a file or folder called inserts, d",
        ),
        (("t-inserts.csv", "t/inserts.csv"), r"there is .*t-inserts\.csv, too|t/inserts\.csv, too"),
        (("orders/.x",), "orders: this folder has no rows"),
        (
            ("orders/inserts.csv", "orders/inserts.parquet"),
            r"there is .*inserts\.csv, too; keep on",
        ),
    ],
)
def test_what_is_no_batch(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        batch_files(place(tmp_path, *names))


def test_a_batch_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such batch; give a folder"):
        batch_files(tmp_path / "monday")


# A YAML file


def test_a_file_names_the_rows_and_how_they_are_meant(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
version: 1
tables:
  orders:
    inserts: new/orders.csv
    delimiter: ";"
    encoding: latin-1
    null_values: [NA, "-"]
    date_format: "%d/%m/%Y"
  lines:
    deletes: /data/gone.parquet
    upserts: s3a://store/lines.csv
    row_key: [order, line]
    if_exists: true
    escape: "\\\\"
  days:
    inserts: days.parquet
    round_nanoseconds: true
  people:
    updates: people
    row_key: id
    format: delta
    options: {versionAsOf: 3, mergeSchema: true}
""",
    )
    cells = {
        "delimiter": ";",
        "encoding": "latin-1",
        "null_values": ("NA", "-"),
        "date_format": "%d/%m/%Y",
    }
    assert batch_files(path) == {
        "orders": {
            "inserts": Source(str(tmp_path / "new/orders.csv"), **cells),  # type: ignore[arg-type]
            "row_key": (),
            "if_exists": False,
            "allow_shrink": False,
        },
        "lines": {
            "deletes": Source("/data/gone.parquet"),
            "upserts": Source("s3a://store/lines.csv", escape="\\"),
            "row_key": ("order", "line"),
            "if_exists": True,
            "allow_shrink": False,
        },
        "days": {
            "inserts": Source(str(tmp_path / "days.parquet"), round_nanoseconds=True),
            "row_key": (),
            "if_exists": False,
            "allow_shrink": False,
        },
        "people": {
            "updates": Source(
                str(tmp_path / "people"), "delta", {"versionAsOf": "3", "mergeSchema": "true"}
            ),
            "row_key": ("id",),
            "if_exists": False,
            "allow_shrink": False,
        },
    }


TABLES = "version: 1\ntables:\n  orders: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected 'version: 1' and 'tables:', not nothing"),
        ("- a", "expected 'version: 1' and 'tables:', not a list"),
        ("tables: {t: {inserts: x.csv}}", "expected 'version: 1', found nothing"),
        ("version: 2\ntables: {t: {inserts: x.csv}}", "expected 'version: 1', found 2"),
        ("version: true\ntables: {}", "expected 'version: 1', found true"),
        ("version: 1", "expected under 'tables' at least one table"),
        ("version: 1\ntables: []", "expected under 'tables' at least one table"),
        ("version: 1\nrules: []\ntables: {}", "unknown key 'rules'; there are version, tables"),
        ("version: 1\ntables: {1: {inserts: x.csv}}", "a table: expected text, not 1"),
        (TABLES + "x.csv", "table 'orders': expected rows, as in 'inserts: orders.csv', not 'x.c"),
        (TABLES + "{insert: x.csv}", "table 'orders': unknown key 'insert'; there are inserts, d"),
        (TABLES + "{row_key: id}", "table 'orders': there are no rows; expected inserts, deletes"),
        (TABLES + "{inserts: [x.csv]}", "table 'orders': inserts: expected text, not a list"),
        (TABLES + "{inserts: x.csv, row_key: 1}", "row_key: expected text or a list of texts, not"),
        (TABLES + "{inserts: x.csv, row_key: [1]}", "row_key: expected text, not 1"),
        (TABLES + "{inserts: x.csv, if_exists: 1}", "if_exists: expected true or false, not 1"),
        (TABLES + "{inserts: x.csv, options: 1}", "options: expected names and values, not 1"),
        (TABLES + "{inserts: x.csv, inserts: y.csv}", "line 3: 'inserts' is there twice"),
        ("version: 1\ntables: {t: {}\n", "line 3: not a YAML file"),
        ("version: 1\ntables: !!python/object/apply:os.getcwd []", "line 2: not a YAML file"),
        ("version: &a [*a]", "not a YAML file|found a list"),
        ("version: 1\ntables: &a {t: *a}", "expected rows|unknown key|not a YAML file"),
        ("version: 2026-13-45", "a value cannot be read"),
        (f"version: {'9' * 5000}", "a value cannot be read|found a large"),
        ("[" * 5_000, "nested too deeply|not a YAML file"),
        (b"version: 1\ntables: {\xff: 1}", "expected a YAML file in UTF-8"),
        (b"x: 1\n" * 300_000, "expected a YAML file of at most 1,048,576 bytes"),
        (
            "a: &a [x, x]\n" + "".join(f"{i}: &{i} [*{p}, *{p}]\n" for p, i in
                zip("abcdefghijklmnopqrstuvw", "bcdefghijklmnopqrstuvwx", strict=True))
            + "version: *x",
            "unknown key 'a'",
        ),
    ],
)  # fmt: skip
def test_what_is_no_batch_file(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as told:
        batch_files(path)
    assert str(told.value).startswith(str(path))
    assert len(str(told.value)) < 500


def test_merged_keys_are_one(tmp_path: Path) -> None:
    path = write(tmp_path, "a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n")
    assert read_yaml(path) == {"a": {"x": 1}, "b": {"x": 1, "y": 2}}
