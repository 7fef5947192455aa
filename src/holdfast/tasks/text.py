"""Lines of CSV to typed rows, and to the types that hold their cells exactly.

Lines in another dialect are first rewritten as :func:`plain` ones, in RFC 4180 and UTF-8: quotes
are doubled, there is no escape character, spaces belong to the cell, an empty cell, quoted or not,
is null in every column. Lines without any text are skipped, also in a table of one column, where a
null is therefore written as ``""``.

Bad data is returned as a :class:`Trouble`, never raised. PyArrow converts the cells; a kernel
refuses first what PyArrow would accept by guessing: lines merged by an open quote, text behind
a closing quote, blanks around numbers, hexadecimal integers, the year 0; and numbers that PyArrow
would round, or make infinite or zero.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.types as at
from numpy.typing import NDArray

from holdfast.kernels import text as kernels
from holdfast.kernels.arrays import I8, I64, U8
from holdfast.model.date_forms import DateForm
from holdfast.tasks.dialect import UTF_8, Dialect
from holdfast.tasks.encode import UnsupportedType
from holdfast.tasks.texts import (
    FLOATS,
    bytes_of,
    codes_of,
    dated,
    decimals,
    exactly,
    first_unfit,
    in_calendar,
    type_label,
)
from holdfast.tasks.votes import JOINS, VOTES

_NO_VOTES = np.empty(0, np.int8)
_NO_DATES = np.empty(0, np.int64)
SHOWN = 200
"""Characters of a line or a cell that a message shows."""
_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_PLAIN = Dialect()
_TRUE, _FALSE = (
    ["".join(letters) for letters in product(*((c, c.upper()) for c in word))]
    for word in ("true", "false")
)
_MALFORMED = {
    kernels.UNCLOSED: "a closing quote before the end of the line",
    kernels.AFTER_QUOTE: "a delimiter or the end of the line behind a closing quote",
    kernels.STRAY_QUOTE: "a cell with a quote in it to be quoted, and the quote doubled",
    kernels.STRAY_BREAK: "a cell with a line break in it to be quoted",
}


@dataclass(frozen=True)
class Trouble:
    """A line, or a cell of one, that is not what the table needs."""

    kind: Literal["line", "cell", "field", "lacks"]
    line: str
    column: int | None
    expected: str
    row: int
    actual: str = ""
    number: int | None = None  # of the line, if the record is a file of many


@dataclass(frozen=True)
class _LineBytes:
    """The bytes of lines, and where each begins among them; the last start is the end."""

    buffer: pa.Buffer
    starts: NDArray[Any]
    delimiter: str
    dates: DateForm | None = None

    @property
    def data(self) -> U8:
        return np.frombuffer(self.buffer, np.uint8)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def part(self, first: int, last: int) -> _LineBytes:
        return replace(self, starts=self.starts[first : last + 1])

    def text(self, line: int) -> str:
        first, last = int(self.starts[line]), int(self.starts[line + 1])
        return self._excerpt(first, last).rstrip("\r\n")

    def cell(self, line: int, column: int) -> str:
        """The bytes of a cell as they stand, quotes included."""
        first, last = int(self.starts[line]), int(self.starts[line + 1])
        ends = np.empty(column + 1, np.int64)
        kernels.cells(self.data, first, last, ord(self.delimiter), ends)
        begin = first if column == 0 else int(ends[column - 1]) + 1
        return self._excerpt(begin, int(ends[column]))

    def _excerpt(self, begin: int, end: int) -> str:
        # Four bytes a character at most: enough for what is shown, whatever the line's length.
        part = self.buffer.slice(begin, min(end - begin, 4 * SHOWN))
        return str(part.to_pybytes(), "utf-8", "replace")[:SHOWN]


def parse(
    lines: pa.Array,
    schema: pa.Schema,
    delimiter: str = ",",
    dates: DateForm | None = None,
    *,
    checked: bool = False,
) -> pa.RecordBatch | Trouble:
    """Typed rows from lines that end with a line break, or the first trouble in them; ``checked``:
    the votes of :func:`infer` on these lines fit the types, so that nothing is left to check.
    ``dates``: how dates are written.

    Give a bounded batch: the text of a column must stay below 2 GiB.

    >>> schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    >>> parse(pa.array(["1,ann\\n", "2,\\n"]), schema).to_pylist()
    [{'id': 1, 'name': 'ann'}, {'id': 2, 'name': None}]
    """
    forms = np.array([_form(field, dates) for field in schema], np.int64)
    text = _lines(lines, delimiter, dates)
    trouble = None if checked else _check(text, forms, schema.types)
    if trouble is not None:
        return _earlier(text, schema, trouble) or trouble
    try:
        return _read(text, schema)
    except pa.ArrowInvalid:
        pass
    try:
        return _read(text, schema, decimals_as_text=True)
    except pa.ArrowInvalid:
        return _first_bad_cell(text, schema)


def infer(
    lines: pa.Array, columns: int, delimiter: str = ",", dates: DateForm | None = None
) -> list[str] | Trouble:
    """What the cells of each column look like, to be joined with other lines' votes; or the first
    malformed line. With a form of ``dates`` a second vote of each column says whether all of its
    cells are dates of that form.

    The votes are narrow, so that a column keeps apart what its text keeps apart: integers with
    leading zeros or a plus sign are text, and so are decimals that a double would change.

    >>> infer(pa.array(["1,007,2020-01-31\\n", "2.5,7,\\n"]), 3)
    ['double', 'string', 'date']
    """
    text = _lines(lines, delimiter, dates)
    forms = np.full(columns, kernels.ANY, np.int64)
    votes = np.full(columns * (2 if dates else 1), kernels.NULL, np.int8)
    trouble = _check(text, forms, [], votes)
    if trouble is not None:
        return trouble
    return [VOTES[vote] for vote in votes]


def check_types(schema: pa.Schema) -> None:
    """Raise UnsupportedType for a column whose type is not read from text."""
    for field in schema:
        _form(field)


def header(line: str, dialect: Dialect = _PLAIN) -> list[str] | Trouble:
    """The column names of a header line, in which every column has a name of its own.

    >>> header('id,"a ""b"" c",id')
    ['id', 'a "b" c', 'id_2']
    """
    names = written_header(line, dialect)
    return names if isinstance(names, Trouble) else named(names)


def named(names: Sequence[str]) -> list[str]:
    """Names of columns, where some have none, as pandas writes an index, or that of another one:
    these are numbered, by a number that no other name has.

    >>> named(["", "amount", "amount", "amount_2"])
    ['_1', 'amount', 'amount_3', 'amount_2']
    """
    taken, own = {*names}, list[str]()
    for place, name in enumerate(names, start=1):
        if name and name not in own:
            own.append(name)
            continue
        number = place if not name else 2
        while f"{name}_{number}" in taken:
            number += 1
        own.append(f"{name}_{number}")
        taken.add(own[-1])
    return own


def written_header(line: str, dialect: Dialect = _PLAIN) -> list[str] | Trouble:
    """The names of a header line as they are written: an empty one where a column has none.

    >>> written_header(",id,id")
    ['', 'id', 'id']
    """
    delimiter = dialect.delimiter
    line = line.removeprefix("\ufeff").rstrip("\r\n")
    if dialect.escape:
        line = plain(pa.array([line]), replace(dialect, nulls=()))[0].as_py().decode()
    try:
        names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        names = [""]  # malformed, and the check says how
    if not names:
        return Trouble("line", "", None, "a header line with column names", 0)
    forms = np.full(len(names), kernels.ANY, np.int64)
    trouble = _check(_lines(pa.array([line + "\n"]), delimiter), forms, [])
    return names if trouble is None else trouble


def decoded(lines: pa.Array, encoding: str) -> pa.Array | Trouble:
    """The same lines in UTF-8; bytes that are no text in their encoding are a trouble.

    >>> decoded(pa.array([b"caf\\xe9\\n"]), "latin-1")[0].as_py().decode()
    'café\\n'
    """
    if encoding == UTF_8:
        return lines
    text = _lines(lines, ",")
    begin, end = int(text.starts[0]), int(text.starts[-1])
    buffer = text.buffer.slice(begin, end - begin)
    try:
        utf_8 = pa.py_buffer(str(buffer, encoding).encode())
    except UnicodeError as failure:
        at = begin + (failure.start if isinstance(failure, UnicodeDecodeError) else 0)
        row = int(np.searchsorted(text.starts, at, "right")) - 1
        return _undecoded(text, row, at, encoding)
    if len(text) == 1:
        starts = np.array([0, utf_8.size], np.int64)
    else:
        breaks = np.flatnonzero(np.frombuffer(utf_8, np.uint8) == ord("\n")) + 1
        starts = np.concatenate((np.zeros(1, np.int64), breaks))
    if len(starts) != len(text.starts):
        raise ValueError(f"lines were lost or won in decoding them from {encoding}")
    return _binary(utf_8, starts)


def plain(lines: pa.Array, dialect: Dialect) -> pa.Array:
    """Lines in UTF-8 as RFC 4180 has them: quotes doubled instead of escaped, nulls empty.

    >>> spark = Dialect(escape="\\\\", nulls=("NA",))
    >>> plain(pa.array(['NA,"a \\\\"b\\\\" c"\\n']), spark)[0].as_py()
    b'"","a ""b"" c"\\n'
    """
    nulls = [null.replace('"', '""').encode() for null in dialect.nulls]
    if dialect.escape is None and not nulls:
        return lines
    text = _lines(lines, dialect.delimiter)
    begin, end = int(text.starts[0]), int(text.starts[-1])
    out = np.empty((2 if nulls else 1) * (end - begin), np.uint8)
    starts = np.empty(len(text.starts), np.int64)
    size = kernels.plain(
        text.data,
        text.starts,
        ord(dialect.delimiter),
        -1 if dialect.escape is None else ord(dialect.escape),
        np.frombuffer(b"".join(nulls), np.uint8),
        np.cumsum([0, *map(len, nulls)], dtype=np.int64),
        out,
        starts,
    )
    return _binary(pa.py_buffer(out[:size]), starts)


def count(lines: pa.Array) -> int:
    """How many lines are records: all but those without any text."""
    text = _lines(lines, ",")
    return int(kernels.count(text.data, text.starts))


def line_of(lines: pa.Array, row: int) -> str:
    """A line in UTF-8 as messages show it."""
    return _lines(lines, ",").text(row)


def _undecoded(text: _LineBytes, row: int, at: int, encoding: str) -> Trouble:
    """The trouble at a byte that is no text in its encoding; a "line" may be a whole file."""
    first, last = int(text.starts[row]), int(text.starts[row + 1])
    before = str(text.buffer.slice(first, at - first), encoding, "replace")
    behind = str(text.buffer.slice(at, min(last - at, 4 * SHOWN)), encoding, "replace")
    line = before[before.rfind("\n") + 1 :] + behind.split("\n")[0].rstrip("\r")
    return Trouble(
        "line", line[:SHOWN], None, f"text in {encoding}", row, number=before.count("\n") + 1
    )


def _binary(buffer: pa.Buffer, starts: I64) -> pa.Array:
    offsets = pa.py_buffer(np.ascontiguousarray(starts, np.int64))
    return pa.Array.from_buffers(pa.large_binary(), len(starts) - 1, [None, offsets, buffer])


def unmarked(file: pa.Buffer) -> pa.Buffer:
    """A file in UTF-8 without the byte order mark before its text."""
    return file.slice(3) if file.slice(0, min(3, file.size)).to_pybytes() == _BOM else file


def records(text: bytes | pa.Buffer) -> pa.LargeStringArray:
    """The records of a whole file, for :func:`parse`: line breaks inside quotes do not end one."""
    buffer = pa.py_buffer(text)
    if buffer.size and buffer.slice(buffer.size - 1).to_pybytes() != b"\n":
        buffer = pa.py_buffer(buffer.to_pybytes() + b"\n")
    data = np.frombuffer(buffer, np.uint8)
    starts = np.empty(np.count_nonzero(data == ord("\n")) + 1, np.int64)
    count = kernels.record_starts(data, starts)
    starts[count] = data.size
    offsets = pa.py_buffer(starts[: count + 1])
    return pa.LargeStringArray.from_buffers(count, offsets, buffer)


def _validate(delimiter: str) -> None:
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ValueError(f"a delimiter is one ASCII character, not {delimiter!r}")


def _lines(lines: pa.Array, delimiter: str, dates: DateForm | None = None) -> _LineBytes:
    _validate(delimiter)
    return _LineBytes(*bytes_of(lines), delimiter, dates)


def _form(field: pa.Field, dates: DateForm | None = None) -> int:
    """The form that a cell must have where the conversion would accept more."""
    type_ = field.type
    if at.is_signed_integer(type_):
        return kernels.DIGITS
    if type_ in FLOATS:
        return FLOATS[type_]
    if at.is_decimal128(type_):
        # PyArrow does not notice where digits overflow its 128 bits, or vanish behind them.
        return kernels.decimal_form(type_.precision, type_.scale)
    if at.is_date32(type_) and dates:
        return kernels.ANY  # converting them is strict
    if at.is_date32(type_) or (at.is_timestamp(type_) and type_.unit in ("us", "ns")):
        return kernels.DATED
    if at.is_boolean(type_) or at.is_string(type_) or at.is_binary(type_):
        return kernels.ANY
    raise UnsupportedType(field.name, type_)


def _check(
    text: _LineBytes,
    forms: I64,
    types: Sequence[pa.DataType],
    votes: I8 = _NO_VOTES,
) -> Trouble | None:
    """The first line that is malformed or has a cell that PyArrow would accept by guessing."""
    if len(forms) == 0:
        raise ValueError("a table of CSV has at least one column")
    if len(text) == 0:
        return None
    dates, iso = (codes_of(text.dates), text.dates.has_iso) if text.dates else (_NO_DATES, True)
    line, what, column = kernels.check(
        text.data, text.starts, ord(text.delimiter), forms, JOINS, votes, dates, iso
    )
    if what == kernels.GOOD:
        return None
    if what == kernels.NO_END:
        raise ValueError(f"line {line} of the batch does not end with a line break")
    if what == kernels.CELL:
        return _bad_cell(text, line, column, _label(text, types[column]))
    if what == kernels.INEXACT:
        return _bad_cell(text, line, column, exactly(types[column]))
    if what in _MALFORMED:
        return Trouble("line", text.text(line), column, _MALFORMED[what], line)
    ends = np.empty(0, np.int64)
    first, last = int(text.starts[line]), int(text.starts[line + 1])
    count = kernels.cells(text.data, first, last, ord(text.delimiter), ends)
    expected = _columns(len(forms))
    return Trouble("line", text.text(line), None, expected, line, _columns(count))


def _columns(count: int) -> str:
    return f"{count} column" if count == 1 else f"{count} columns"


def _label(text: _LineBytes, type_: pa.DataType) -> str:
    """What cells of a type are called, in lines such as these."""
    label = type_label(type_)
    return (
        f"a {label} written as {text.dates.text}" if at.is_date32(type_) and text.dates else label
    )


def _bad_cell(text: _LineBytes, line: int, column: int, expected: str) -> Trouble:
    cell = text.cell(line, column)
    return Trouble("cell", text.text(line), column, expected, line, cell)


def _read(
    text: _LineBytes,
    schema: pa.Schema,
    only: int | None = None,
    *,
    decimals_as_text: bool = False,
) -> pa.RecordBatch:
    """Convert well-formed lines; ``only`` one column, when that is all that is asked.

    PyArrow judges a decimal by its written digits, so that 100.00 is no decimal(4,1). Read as
    text first, its closing zeros are cut off, which costs time: the second attempt.
    """
    begin, end = int(text.starts[0]), int(text.starts[-1])
    wanted = range(len(schema)) if only is None else [only]
    fields = [schema.field(c) for c in wanted]
    if begin == end:
        return pa.RecordBatch.from_pylist([], pa.schema(fields))
    types = {str(c): schema.field(c).type for c in wanted}
    late = {
        name: type_
        for name, type_ in types.items()
        if (decimals_as_text and at.is_decimal(type_)) or (text.dates and at.is_date32(type_))
    }
    buffer = text.buffer.slice(begin, end - begin)
    if buffer.slice(0, min(3, buffer.size)).to_pybytes() == _BOM:
        # PyArrow drops a byte order mark at the start, which here belongs to a cell.
        buffer = pa.py_buffer(b"\n" + buffer.to_pybytes())
    longest = int(np.diff(text.starts).max())
    table = pacsv.read_csv(
        pa.BufferReader(buffer),
        read_options=pacsv.ReadOptions(
            column_names=[str(c) for c in range(len(schema))],
            use_threads=False,
            block_size=max(_BLOCK, longest + 1),  # a line may not span three blocks
        ),
        parse_options=pacsv.ParseOptions(delimiter=text.delimiter, newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            column_types=types | dict.fromkeys(late, pa.string()),
            include_columns=list(types),
            null_values=[""],
            true_values=_TRUE,
            false_values=_FALSE,
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )
    for name, type_ in late.items():
        column = table[name]
        if text.dates and at.is_date32(type_):
            column = dated(column.combine_chunks(), text.dates)
        else:
            column = pc.replace_substring_regex(column, r"^([+-]?\d+)\.(\d*?)0+$", r"\1.\2")
            column = decimals(column, type_)
        table = table.set_column(table.column_names.index(name), name, column)
    columns = [column.combine_chunks() for column in table.columns]
    for column in columns:
        if at.is_timestamp(column.type) and column.type.tz and not in_calendar(column):
            raise pa.ArrowInvalid("a zone moves a timestamp out of the years 1 to 9999")
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _converts(text: _LineBytes, schema: pa.Schema, only: int | None = None) -> bool:
    try:
        _read(text, schema, only, decimals_as_text=True)
    except pa.ArrowInvalid:
        return False
    return True


def _earlier(text: _LineBytes, schema: pa.Schema, trouble: Trouble) -> Trouble | None:
    """A cell that does not convert before the trouble that the check found."""
    before = text.part(0, trouble.row)
    if not _converts(before, schema):
        return _first_bad_cell(before, schema)
    line = text.part(trouble.row, trouble.row + 1)
    for column in range(trouble.column or 0) if trouble.kind == "cell" else ():
        if not _converts(line, schema, column):
            return _bad_cell(text, trouble.row, column, _label(text, schema.field(column).type))
    return None


def _first_bad_cell(text: _LineBytes, schema: pa.Schema) -> Trouble:
    """The first cell that does not convert, of lines of which one does not."""
    row = first_unfit(len(text), lambda first, last: _converts(text.part(first, last), schema))
    line = text.part(row, row + 1)
    column = next(c for c in range(len(schema)) if not _converts(line, schema, c))
    return _bad_cell(text, row, column, _label(text, schema.field(column).type))
