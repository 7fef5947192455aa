"""No record is lost on the way in: all become rows, or the file is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.input import reading
from holdfast.input.reading import Intake
from holdfast.input.row_input import Columns, RowInput
from holdfast.model.errors import SourceError
from holdfast.model.progress import no_progress
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import InProcess
from holdfast.tasks import ingest as task
from holdfast.tasks import text
from holdfast.tasks.dialect import Dialect
from tests.limits import varied
from tests.strategies import examples

REFUSED = [
    b"caf\xe9", b"\xff", b"\x80", b"\xc3", b"\xc0\xaf",  # not UTF-8: cut off, too long
    b"\xed\xa0\x80", b"\xed\xb0\x80x", b"\xf4\x90\x80\x80",  # surrogates, and beyond Unicode
    b"\xff\xfe1\x00", b"a\rb", b'"', b'a"b', b'"a"b',
]  # fmt: skip
READ = [
    b"\xef\xbb\xbf", b"\xef\xbb\xbfx",  # byte order marks, here a cell's own
    b"\0", b"a\0b", b'"\0"', b"\x1a", b"\x0b", b"\x0c",
    b"\xc2\x85", b"\xe2\x80\xa8", b"\r", b'"a\rb"', b'""', b"\\", b" ", b"\t", b"",
    b"1", b"-", b"007", b"2.5", b"true", b"2020-01-01", b"plain",
]  # fmt: skip


@pytest.fixture(scope="module")
def destination(tmp_path_factory: pytest.TempPathFactory) -> Destination:
    root = tmp_path_factory.mktemp("reading")
    (root / "data").mkdir()
    return Destination(str(root), "data/*-0123456789ab-")


def lines(cells: Sequence[tuple[bytes, ...]], guessed: bool = True, **how: Any) -> RowInput:
    told = [b",".join(row) + b"\n" for row in cells]
    names = [f"n{i}" for i in range(len(cells[0]))]
    columns = Columns.of(names, ["string"] * len(names), [pa.string()] * len(names))
    table = pa.table({"line": pa.array(told), "origin": pa.nulls(len(told), pa.int64())})
    return RowInput("odd.csv", columns, table, lines=Dialect(**how), guessed=guessed)


def read(row_input: RowInput, destination: Destination) -> Intake:
    return reading.read(InProcess(2), row_input, destination, 1, no_progress)


def test_one_byte_that_is_no_text_does_not_lose_the_file(destination: Destination) -> None:
    """The types stay as first guessed, so that nothing is read again."""
    with pytest.raises(SourceError, match=r"odd\.csv, column 'n1': unfit cell.*UTF-8.*--encoding"):
        read(lines([(b"1", b"caf\xe9"), (b"2", b"plain")]), destination)
    assert (
        read(lines([(b"1", b"caf\xe9"), (b"2", b"x")], encoding="latin-1"), destination).rows == 2
    )


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("guess_rows", [1, 2_000])
def test_types_do_not_depend_on_which_rows_are_read_together(
    destination: Destination, guess_rows: int, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    varied(monkeypatch, guess_rows=guess_rows)
    cells = [(b"0.5", b"0.5"), (b"0.30000000000000004", b"0.30000000000000004"), (b"1", b"0.1")]
    cells.append((b"5e-324", b"0.30000000000000005"))
    for order in (cells, cells[::-1]):
        intake = reading.read(InProcess(tasks), lines(order), destination, 1, no_progress)
        assert intake.columns.types == ("double", "string")


@pytest.mark.parametrize("cell", [b"0.30000000000000005", b"1e400", b"9007199254740993"])
def test_a_stored_double_refuses_digits_that_it_would_lose(
    destination: Destination, cell: bytes
) -> None:
    given = lines([(b"1", b"0.30000000000000004"), (b"2", cell)], guessed=False)
    columns = Columns.of(["n0", "n1"], ["bigint", "double"], [pa.int64(), pa.float64()])
    expected = "a number that a double holds without losing a digit .*--schema or --all-text"
    with pytest.raises(
        SourceError, match=rf"odd\.csv, column 'n1': unfit cell, expected {expected}"
    ):
        read(replace(given, columns=columns), destination)


def rows(row_input: RowInput, destination: Destination) -> int | None:
    """How many rows were read; None if the file was refused for what a line or cell is."""
    try:
        return read(row_input, destination).rows
    except SourceError as wrong:
        told = str(wrong)
    assert "odd.csv" in told
    assert "malformed line" in told or "unfit cell" in told
    return None


@pytest.mark.parametrize("guessed", [True, False])
@pytest.mark.parametrize("guess_rows", [1, 2_000])
@pytest.mark.parametrize("odd", [*READ, *REFUSED], ids=repr)
def test_rows_are_counted_whatever_the_bytes(
    destination: Destination,
    odd: bytes,
    guess_rows: int,
    guessed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    varied(monkeypatch, guess_rows=guess_rows)
    found = rows(lines([(b"1", b"x"), (b"2", odd), (b"3", b"4")], guessed), destination)
    assert found == (None if odd in REFUSED else 3)


ODD = st.sampled_from([*READ, *REFUSED])


@given(
    st.lists(st.tuples(ODD | st.binary(max_size=4), ODD), min_size=1),
    st.sampled_from([{}, {"escape": "\\"}, {"nulls": ("1", "plain")}, {"encoding": "cp1252"}]),
    st.booleans(),
)
@settings(deadline=None, max_examples=examples(200))
def test_rows_are_counted_whatever_the_dialect(
    destination: Destination, cells: list[tuple[bytes, bytes]], how: dict[str, Any], guessed: bool
) -> None:
    plain = [tuple(cell.replace(b"\n", b"").replace(b",", b"") for cell in row) for row in cells]
    assert rows(lines(plain, guessed, **how), destination) in (None, len(cells))


def _losing(batches: Iterator[pa.RecordBatch], spec: Any) -> Iterator[TaskResult]:
    """A task that forgets a row, as one with a mistake in it might."""
    told = task.ingest(batches, spec)
    for task_result in told:
        if "words" in task_result.facts:
            task_result.facts["rows"] -= 1
        yield task_result


def test_a_row_that_gets_lost_is_an_error(
    destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_input = lines([(b"1", b"x"), (b"2", b"y")])
    monkeypatch.setattr(reading, "ingest", _losing)
    with pytest.raises(SourceError, match=r"odd\.csv: 2 records were read, but 0 rows written"):
        read(row_input, destination)


@pytest.mark.parametrize("typed", [True, False])
def test_a_row_that_is_not_written_is_an_error(
    destination: Destination, typed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the source: the writer of a task drops a batch, and its file is named."""
    columns = Columns.of(["n"], ["bigint"], [pa.int64()])
    numbers = pa.table({"c0": pa.array([1, 2, 3])})
    row_input = RowInput("typed.parquet", columns, numbers) if typed else lines([(b"1",), (b"x",)])
    monkeypatch.setattr(task.SegmentWriter, "add", lambda *_: iter(()))
    with pytest.raises(SourceError, match=r"(typed\.parquet|odd\.csv): . records were read, but 0"):
        read(row_input, destination)


def test_rows_are_counted_again_when_they_are_read_again(
    destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guess is wrong, and the second reading is the one that loses something."""
    varied(monkeypatch, guess_rows=1)
    row_input = lines([(b"1",), (b"x",)])
    assert read(row_input, destination).rows == 2
    parse = text.parse

    def lossy(records: pa.Array, schema: pa.Schema, *written: Any, **_: Any) -> Any:
        found: Any = parse(records, schema, *written)
        return found.slice(1) if schema.types == [pa.string()] else found

    monkeypatch.setattr(text, "parse", lossy)
    with pytest.raises(SourceError, match="1 records were read, but 0 rows written"):
        read(row_input, destination)


def test_a_line_is_found_in_its_file(destination: Destination, tmp_path: Path) -> None:
    file = tmp_path / "part.csv"
    file.write_bytes(b"\xef\xbb\xbf1,a\rb\n\n2,caf\xe9\n")
    row_input = lines([(b"2", b"caf\xe9")])
    row_input = replace(row_input, file=lambda origin: str(file) if origin == 0 else None)
    with pytest.raises(SourceError, match=r"part\.csv, line 3, column 'n1'"):
        read(row_input, destination)
