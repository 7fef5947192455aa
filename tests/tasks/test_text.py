"""CSV is read to the letter of RFC 4180, and what is not CSV is named by line and cell."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.tasks.dialect import Dialect, canonical
from holdfast.tasks.encode import UnsupportedType
from holdfast.tasks.text import (
    Trouble,
    count,
    decoded,
    header,
    infer,
    named,
    parse,
    plain,
    records,
    written_header,
)
from holdfast.tasks.texts import type_label
from holdfast.tasks.votes import TYPES, VOTES, arrow_type, fits, join, type_name
from tests.strategies import DOUBLES, LONG_DECIMALS, examples, near_doubles

CELL = r'"(?:[^"]|"")*"|[^",\r\n]*'


def lines_of(*lines: str) -> pa.Array:
    return pa.array([line + "\n" for line in lines], pa.string())


def text_schema(columns: int) -> pa.Schema:
    return pa.schema([(f"c{i}", pa.string()) for i in range(columns)])


def text_in(lines: Any, encoding: str) -> Any:
    """Lines in which nothing is wrong, as UTF-8."""
    found = decoded(lines, encoding)
    assert not isinstance(found, Trouble)
    return found


def whole(lines: Any, schema: pa.Schema, *more: Any) -> Any:
    """The rows of lines with which nothing is wrong."""
    parsed = parse(lines, schema, *more)
    assert not isinstance(parsed, Trouble)
    return parsed


def one(type_: pa.DataType, *cells: str) -> Any:
    """The cells of one column, or what is wrong with one of them."""
    parsed = parse(lines_of(*cells), pa.schema([("c", type_)]))
    return parsed if isinstance(parsed, Trouble) else parsed.column(0).to_pylist()


def cells_of(line: str) -> list[str | None] | None:
    """The slow twin: the cells of one line by regular expression, or None if it is malformed."""
    if not re.fullmatch(f"(?:{CELL})(?:,(?:{CELL}))*", line):
        return None
    cells: list[str | None] = []
    at = 0
    while True:
        match = re.compile(CELL).match(line, at)
        assert match is not None
        cell = match[0]
        if cell.startswith('"'):
            cell = cell[1:-1].replace('""', '"')
        cells.append(cell or None)
        at = match.end() + 1
        if at > len(line):
            return cells


@given(st.lists(st.text(',""ab \\', max_size=9), max_size=6), st.integers(1, 3))
@settings(deadline=None, max_examples=examples(300))
def test_lines_are_read_like_the_slow_twin(lines: list[str], columns: int) -> None:
    parsed = parse(lines_of(*lines), text_schema(columns))
    expected = []
    for row, line in enumerate(lines):
        cells = cells_of(line)
        if not line:
            continue
        if cells is None or len(cells) != columns:
            assert isinstance(parsed, Trouble)
            assert (parsed.kind, parsed.row, parsed.line) == ("line", row, line)
            assert isinstance(infer(lines_of(*lines), columns), Trouble)
            return
        expected.append(dict(zip(text_schema(columns).names, cells, strict=True)))
    assert isinstance(parsed, pa.RecordBatch)
    assert parsed.to_pylist() == expected
    joined = ["null"] * columns
    for record in expected:
        looks = [kind_of(cell or "") for cell in record.values()]
        joined = [join(a, b) for a, b in zip(joined, looks, strict=True)]
    assert infer(lines_of(*lines), columns) == joined


def written(cell: str | None, quoted: bool) -> str:
    if cell is None:
        return '""' if quoted else ""
    if quoted or re.search(r'[",\r\n]', cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


UNICODE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    st.lists(st.tuples(*[st.none() | UNICODE | st.sampled_from(["\ufeffx", " ", "\n"])] * 2)),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
@settings(deadline=None)
def test_what_is_written_is_read(rows: list[Any], quoted: bool, end: str) -> None:
    rows = [row for row in rows if any(row)]
    text = "".join(",".join(written(cell, quoted) for cell in row) + end for row in rows)
    found = records(text.removesuffix("\n").encode() if end == "\n" else text.encode())
    assert len(found) == len(rows)
    parsed = parse(found, text_schema(2))
    assert isinstance(parsed, pa.RecordBatch)
    assert [tuple(row.values()) for row in parsed.to_pylist()] == rows


def test_a_slice_of_lines_is_read_alone() -> None:
    lines = pa.array(["bad\n", '1,"x, y"\n', "\n", "2,\n", "worse,,,\n"]).slice(1, 3)
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    for given_lines in (lines, lines.cast(pa.large_string()), lines.cast(pa.binary())):
        parsed = whole(given_lines, schema)
        assert parsed.to_pylist() == [{"a": 1, "b": "x, y"}, {"a": 2, "b": None}]
        assert parsed.schema == schema
    assert whole(lines.slice(0, 0), schema).num_rows == 0
    assert whole(lines.slice(1, 1), schema).num_rows == 0
    assert whole(pa.array(["", ""]), schema).num_rows == 0


def test_blank_lines_are_skipped_and_quoted_blanks_are_nulls() -> None:
    assert one(pa.string(), "a", "", '""', "\r", "b") == ["a", None, "b"]


def test_duplicate_and_odd_column_names() -> None:
    schema = pa.schema([("a.b", pa.int64()), ("a.b", pa.string()), ("`", pa.string())])
    parsed = whole(lines_of("1,2,3"), schema)
    assert parsed.schema == schema
    assert [column.to_pylist() for column in parsed.columns] == [[1], ["2"], ["3"]]


def test_a_long_line() -> None:
    long = "x" * 3_000_000
    schema = text_schema(2)
    parsed = whole(lines_of("a,b", f"{long},{long}", "c,d"), schema)
    assert [len(cell) for cell in parsed.column(0).to_pylist()] == [1, len(long), 1]
    trouble = parse(lines_of(f"{long},{long},"), schema)
    assert isinstance(trouble, Trouble)
    assert len(trouble.line) == 200


MIN, MAX = -(2**63), 2**63 - 1
UTC = dt.UTC


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        (pa.bool_(), {"true": True, "fAlSe": False, '"TRUE"': True}, "1 0 yes t"),
        (pa.int8(), {"-128": -128, "127": 127}, "128 -129"),
        (pa.int16(), {"-32768": -32768}, "32768"),
        (pa.int32(), {"2147483647": 2147483647}, "2147483648"),
        (
            pa.int64(),
            {str(MIN): MIN, str(MAX): MAX, '"5"': 5, "007": 7},
            f"{MAX + 1} {MIN - 1} +7 0x1F 1.0 1e3 - 7_0 1,7 7\u00a0",
        ),
        (pa.float32(), {"0.5": 0.5, "-1e10": -1e10}, "abc 1.5f"),
        (pa.float64(), {"0.1": 0.1, "1e300": 1e300, "inf": float("inf")}, "0x10 1.5.2 1d"),
        (
            pa.decimal128(4, 1),
            {"100.00": Decimal("100.0"), "-999.9": Decimal("-999.9"), "1e2": Decimal(100)},
            "1000 0.05 9999.0 x 100.001",
        ),
        (
            pa.decimal128(38, 10),
            {
                "9999999999999999999999999999.9999999999": Decimal(
                    "9999999999999999999999999999.9999999999"
                ),
                "1." + "0" * 40: Decimal(1),
            },
            "10000000000000000000000000000 0.00000000001",
        ),
        (
            pa.date32(),
            {"2024-02-29": dt.date(2024, 2, 29), "0001-01-01": dt.date(1, 1, 1)},
            "2023-02-29 0000-01-01 2023-1-1 20230101 2023-01-01T00:00:00",
        ),
        (
            pa.timestamp("us"),
            {
                "2020-01-02": dt.datetime(2020, 1, 2),
                "2020-01-02 03:04:05.678901": dt.datetime(2020, 1, 2, 3, 4, 5, 678901),
                "2020-01-02T03:04": dt.datetime(2020, 1, 2, 3, 4),
            },
            "2020-01-02T03:04Z 2020-01-02T03:04:05+01:00 0000-01-01T00:00 2020-01-02T25:00",
        ),
        (
            pa.timestamp("us", "UTC"),
            {
                "2020-01-02T03:04:05Z": dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
                "9999-12-31T23:59:59Z": dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
                "2020-01-02 03:04:05+01:30": dt.datetime(2020, 1, 2, 1, 34, 5, tzinfo=UTC),
            },
            "2020-01-02T03:04:05 2020-01-02 9999-12-31T23:00-02 0001-01-01T00:00+00:01",
        ),
        (
            pa.timestamp("ns"),
            {
                "2020-01-02 03:04:05.678901": pd.Timestamp("2020-01-02 03:04:05.678901"),
                "2020-01-02T03:04:05.678901234": pd.Timestamp("2020-01-02 03:04:05.678901234"),
                "2020-01-02": pd.Timestamp("2020-01-02"),
            },
            "2020-01-02T03:04Z 2020-01-02T03:04:05.6789012345 9999-12-31 1600-01-01",
        ),
        (
            pa.timestamp("ns", "UTC"),
            {"2020-01-02T03:04:05.000000001+01:00": pd.Timestamp("2020-01-02 02:04:05.000000001Z")},
            "2020-01-02T03:04:05 9999-12-31T23:59:59Z",
        ),
        (pa.string(), {" a ": " a ", "NULL": "NULL", "\\n": "\\n", "NA": "NA"}, ""),
        (pa.binary(), {"é": "é".encode()}, ""),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_types(type_: pa.DataType, good: dict[str, Any], bad: str) -> None:
    cells = [*good, "", '""']
    columns = pa.schema([("id", pa.int64()), ("c", type_)])
    parsed = parse(lines_of(*(f"1,{cell}" for cell in cells)), columns)
    assert isinstance(parsed, pa.RecordBatch), parsed
    assert parsed.column(1).to_pylist() == [*good.values(), None, None]
    first = next(iter(good))
    for cell in [*bad.split(" "), *([] if not bad else [f" {first}", f"{first} ", " "])]:
        if not cell or "," in cell:
            continue
        trouble = parse(lines_of(f"1,{first}", "", f"2,{cell}", "x,x"), columns)
        assert isinstance(trouble, Trouble), cell
        assert (trouble.kind, trouble.row, trouble.column) == ("cell", 2, 1)
        assert (trouble.line, trouble.actual) == (f"2,{cell}", cell)


@given(st.integers(0, 40), st.integers(0, 3), st.integers(1, 41))
@settings(deadline=None, max_examples=examples(40))
def test_the_first_bad_cell_is_found(row: int, column: int, rows: int) -> None:
    row %= rows
    types = [pa.int64(), pa.float64(), pa.decimal128(5, 2), pa.date32()]
    good, bad = ["1", "2.5", "3.10", "2020-01-01"], ["x", "x", "3.001", "2020-02-30"]
    schema = pa.schema([(str(i), type_) for i, type_ in enumerate(types)])
    cells = [list(good) for _ in range(rows)]
    cells[row][column:] = bad[column:]
    for later in cells[row + 1 :]:
        later[:] = bad
    trouble = parse(lines_of(*map(",".join, cells)), schema)
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.row, trouble.column) == ("cell", row, column)
    assert trouble.actual == bad[column]
    assert trouble.expected == ["bigint", "double", "decimal(5,2)", "date"][column]


def test_text_that_is_not_utf8() -> None:
    lines = pa.array([b"1,a\n", b"2,\xff\n"]).cast(pa.binary())
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    trouble = parse(lines, schema)
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.row, trouble.column) == ("cell", 1, 1)
    assert trouble.line == "2,\ufffd"
    trouble = parse(lines, pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    assert isinstance(trouble, Trouble)
    assert trouble.row == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('1,"ab', "closing quote"),
        ('1,"ab"c', "behind a closing quote"),
        ('1,a"b"c', "quote doubled"),
        ("1,a\rb", "line break"),
        ("1", "2 columns"),
        ("1,2,3", "2 columns"),
    ],
)
def test_malformed_lines_say_what_is_wrong(line: str, expected: str) -> None:
    trouble = parse(lines_of("1,2", line), text_schema(2))
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.row) == ("line", 1)
    assert expected in trouble.expected
    assert infer(lines_of("1,2", line), 2) == trouble


def test_misuse_is_an_error_of_the_caller() -> None:
    with pytest.raises(UnsupportedType, match="'when'"):
        parse(lines_of("1"), pa.schema([("when", pa.time64("us"))]))
    with pytest.raises(ValueError, match="line break"):
        parse(pa.array(["1"]), text_schema(1))
    for delimiter in ("", ",,", "\n", '"', "§"):
        with pytest.raises(ValueError, match="delimiter"):
            parse(lines_of("1"), text_schema(1), delimiter)
    with pytest.raises(ValueError, match="lines are text"):
        parse(pa.array([1]), text_schema(1))
    with pytest.raises(ValueError, match="at least one column"):
        parse(lines_of("1"), pa.schema([]))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters(delimiter: str) -> None:
    lines = lines_of(delimiter.join(["1,5", f'"a{delimiter}b"']))
    assert whole(lines, text_schema(2), delimiter).to_pylist() == [
        {"c0": "1,5", "c1": f"a{delimiter}b"}
    ]
    assert header(f"a{delimiter}b,c", Dialect(delimiter)) == ["a", "b,c"]


def kept_by_double(number: str) -> bool:
    """Whether a number is the shortest that is read as its double."""
    return Decimal(repr(float(number))) == Decimal(number)


def kind_of(cell: str) -> str:
    """The slow twin of a cell's vote."""
    if cell == "":
        return "null"
    if re.fullmatch("(?i)true|false", cell):
        return "boolean"
    if re.fullmatch(r"0|-?[1-9][0-9]*", cell):
        digits = len(cell.lstrip("-").rstrip("0"))
        return (
            "string" if not MIN <= int(cell) <= MAX else "wide_bigint" if digits > 15 else "bigint"
        )
    if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", cell):
        return "double" if kept_by_double(cell) else "string"
    time = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    zone = r"(Z|[+-][0-9]{2}(:?[0-5][0-9])?)?"
    match = re.fullmatch(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})({time}{zone})?", cell)
    if match is None:
        return "string"
    try:
        dt.datetime.fromisoformat(cell)
    except ValueError:
        return "string"
    if (match[5] or "Z") != "Z" and cell[:4] in ("0001", "9999"):
        return "string"  # perhaps in no year of the calendar
    return "date" if match[2] is None else "timestamp" if match[5] else "timestamp_ntz"


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,4})?")
DATES = st.from_regex(
    r"(19|20|00)[0-9]{2}-[01][0-9]-[0-3][0-9]"
    r"([T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,7})?)?(Z|[+-][0-2][0-9](:?[0-6][0-9])?)?)?"
)
CELLS = (
    NUMBERS.map(str.strip)
    | DATES.map(str.strip)
    | st.text("0123456789.-+eE", max_size=12)
    | st.text("0123456789-:TZ +.", min_size=9, max_size=26)
    | st.integers(MIN - 2, MAX + 2).map(str)
    | DOUBLES.map(repr)
    | LONG_DECIMALS
    | near_doubles()
    | st.datetimes().map(str)
    | st.sampled_from(["TRUE", "False", "truE", "tru", "", "-0", "-0.0", "007", "+1", "1.", ".5"])
    | st.sampled_from([str(MIN), str(MAX), "NaN", "Infinity", '"5"', "1" + "0" * 18, "0e99"])
    | st.sampled_from(["2020-01-01T00:00:00+24:00", "2020-01-01T00:00+00:60", "9999-12-31"])
).filter(lambda cell: "\n" not in cell)


@given(CELLS)
@settings(deadline=None, max_examples=examples(600))
def test_votes_equal_their_slow_twin(cell: str) -> None:
    line = written(cell or None, quoted=cell == "")
    assert infer(lines_of(line), 1) == [kind_of(cell)]


@given(st.lists(CELLS, max_size=8))
@settings(deadline=None, max_examples=examples(200))
def test_an_inferred_type_reads_every_cell_and_keeps_them_apart(cells: list[str]) -> None:
    lines = lines_of(*(written(cell or None, quoted=cell == "") for cell in cells))
    votes = infer(lines, 1)
    assert not isinstance(votes, Trouble)
    joined = "null"
    for cell in cells:
        joined = join(joined, kind_of(cell))
    assert votes == [joined]
    parsed = parse(lines, pa.schema([("c", arrow_type(joined))]))
    assert isinstance(parsed, pa.RecordBatch), parsed
    values = parsed.column(0).to_pylist()
    for a, cell_a in zip(values, cells, strict=True):
        for b, cell_b in zip(values, cells, strict=True):
            if type_name(joined) == "double" and cell_a and cell_b:
                assert (a == b) == (Decimal(cell_a) == Decimal(cell_b))
            elif type_name(joined) in ("bigint", "date", "string"):
                assert (a == b) == (cell_a == cell_b)


@given(st.lists(CELLS, min_size=1, max_size=6), st.sampled_from([*TYPES.values()]))
@settings(deadline=None, max_examples=examples(400))
def test_what_fits_by_its_votes_needs_no_check(cells: list[str], type_: pa.DataType) -> None:
    """Types are guessed from the first lines: of later ones the votes say whether they fit."""
    lines = lines_of(*(written(cell or None, quoted=cell == "") for cell in cells))
    votes = infer(lines, 1)
    assert not isinstance(votes, Trouble)
    schema = pa.schema([("c", type_)])
    with_check = parse(lines, schema)
    if fits(votes[0], type_):
        assert isinstance(with_check, pa.RecordBatch)
        assert parse(lines, schema, checked=True) == with_check
    else:
        assert not pa.types.is_string(type_)


@given(st.lists(DOUBLES, min_size=1, max_size=8))
@settings(deadline=None, max_examples=examples(300))
def test_doubles_come_back_as_they_were(doubles: list[float]) -> None:
    cells = list(map(repr, doubles))
    lines = lines_of(*cells)
    assert infer(lines, 1) == ["double"]
    assert list(map(repr, one(pa.float64(), *cells))) == cells


@given(st.lists(DOUBLES.map(repr) | LONG_DECIMALS | near_doubles(), min_size=1, max_size=6))
@settings(deadline=None, max_examples=examples(300))
def test_columns_that_are_double_keep_numbers_apart(cells: list[str]) -> None:
    kept = [cell for cell in cells if infer(lines_of(cell), 1) == ["double"]]
    assert kept == [cell for cell in cells if kept_by_double(cell)]
    if not kept:
        return
    values = one(pa.float64(), *kept)
    assert not isinstance(values, Trouble)
    for a, cell_a in zip(values, kept, strict=True):
        for b, cell_b in zip(values, kept, strict=True):
            assert (a == b) == (Decimal(cell_a) == Decimal(cell_b))


@given(st.from_regex(r"[1-9]\.[0-9]{0,14}e-?([0-9]{1,2}|[12][0-9]{2}|300)", fullmatch=True))
@settings(deadline=None, max_examples=examples(200))
def test_fifteen_digits_are_always_kept(cell: str) -> None:
    cell = cell.replace(".e", "e")
    assert infer(lines_of(cell), 1) == ["double"]
    assert kept_by_double(cell)


SPELLED = st.one_of(
    DOUBLES.map(repr),
    LONG_DECIMALS,
    near_doubles(),
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,20}([eE][+-]?0{0,3}[0-9]{1,3})?", fullmatch=True),
).filter(lambda cell: re.search(r"^[^eE]*[0-9]", cell) is not None)
"""Numbers in every spelling that a given type takes."""


@given(SPELLED, st.sampled_from([pa.float64(), pa.float32()]))
@settings(deadline=None, max_examples=examples(400))
def test_a_given_type_refuses_digits_that_it_would_lose(cell: str, type_: pa.DataType) -> None:
    with np.errstate(over="ignore"):
        value = type_.to_pandas_dtype()(cell)
    result = one(type_, "0.5", cell)
    if np.isfinite(value) and Decimal(str(value)) == Decimal(cell):
        assert result == [0.5, value.item()]
        return
    assert isinstance(result, Trouble)
    assert (result.kind, result.row, result.column) == ("cell", 1, 0)
    name = "double" if type_ == pa.float64() else "float"
    assert result.expected == f"a number that a {name} holds without losing a digit"
    assert result.actual == cell


@given(st.integers(1, 38), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_decimal_has_no_more_whole_digits_than_its_type(precision: int, data: Any) -> None:
    scale = data.draw(st.integers(0, precision))
    type_ = pa.decimal128(precision, scale)
    cell = data.draw(st.from_regex(r"-?(0|[1-9][0-9]{0,40})(e[0-9]{1,2})?", fullmatch=True))
    result = one(type_, cell)
    if abs(Decimal(cell)) < Decimal(10) ** (precision - scale):
        assert result == [Decimal(cell)]
    else:
        assert isinstance(result, Trouble)
        assert (result.expected, result.actual) == (f"decimal({precision},{scale})", cell)


def test_a_decimal_does_not_overflow() -> None:
    assert isinstance(one(pa.decimal128(34, 34), "34029"), Trouble)


def holds(type_: pa.DataType, number: Decimal) -> bool:
    """The slow twin: whether a decimal type has a place for each digit of a number."""
    _, digits, power = number.as_tuple()
    assert isinstance(power, int)
    places = [power + place for place, digit in enumerate(reversed(digits)) if digit]
    return all(-type_.scale <= place < type_.precision - type_.scale for place in places)


EXPONENTS = st.one_of(
    st.integers(-90, 90), st.integers(-400, 400), st.sampled_from([-(2**31), 2**31, -(10**17)])
)
DECIMALS = st.builds(
    lambda number, sign, power: f"{number}e{sign if power >= 0 else ''}{power}",
    st.from_regex(r"[+-]?0{0,3}([0-9]{1,45}(\.[0-9]{0,45})?|\.[0-9]{1,45})", fullmatch=True),
    st.sampled_from(["", "+", "+00"]),
    EXPONENTS,
)


@given(DECIMALS, st.integers(1, 38), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_decimal_takes_a_number_exactly_or_not_at_all(
    cell: str, precision: int, data: Any
) -> None:
    """PyArrow reads the multiplier of a scale from a list, also far behind its end."""
    type_ = pa.decimal128(precision, data.draw(st.integers(0, precision)))
    number = Decimal(cell)
    for cells in ([cell], ["0", cell, "1e0"]):
        result = one(type_, *cells)
        if isinstance(result, Trouble):
            if result.actual == "1e0":
                assert type_.precision == type_.scale
                continue
            assert (result.expected, result.actual) == (type_label(type_), cell)
            assert not number or not holds(type_, number), "only zeros are ever refused that fit"
        else:
            assert holds(type_, number)
            assert result[len(cells) > 1] == number


@pytest.mark.parametrize(
    "cell",
    [
        "1E-260", "-1E-63", "1E-39", "12E-77", "1E-2000000000", "-1E-2147483647", "1E-99999999999",
        "1E+2000000000", "1e99999999999999999999", "1E-0025", "0." + "0" * 60 + "1",
        "340282366920938463463374607431768211456E-39", "1" + "0" * 38,
        "0E-2000000000", "0e-99999999999999999999",
        "1_0E-1", "\u00a01E-1", "１E-1", ".E-1", "e-1", "1e", "+-1e-1", "NaN", "infinity", "0x1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("other", ["0", "1e-1"])
def test_a_number_that_no_decimal_has_is_refused(cell: str, other: str) -> None:
    """Whichever way the rest of the column is read. Some of these made PyArrow crash."""
    for type_ in (pa.decimal128(24, 24), pa.decimal128(38, 1), pa.decimal128(5, 2)):
        result = one(type_, other, cell)
        assert isinstance(result, Trouble), (type_, result)
        assert (result.row, result.actual) == (1, cell)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1E-0", "1"), ("+1E+0001", "10"), ("1E0001", "10"), ("+0.5", ".5"), (".5E0", ".5"),
        ("5.E0", "5"), ("0" * 60 + "7", "7"), ("7." + "0" * 60, "7"), ("-0E+300", "0"),
        ("0." + "0" * 60, "0"), ("0E-40", "0"), ("1" + "0" * 60 + "E-60", "1"),
        ("0." + "0" * 59 + "12E60", "1.2"), ("-0", "0"),
        ("0." + "0" * 20 + "e-30", "0"),
    ],
)  # fmt: skip
def test_a_decimal_is_read_however_it_is_written(cell: str, value: str) -> None:
    assert one(pa.decimal128(5, 2), cell) == [Decimal(value)]
    assert one(pa.decimal128(38, 20), "0", cell, "1e1") == [0, Decimal(value), 10]


def test_infer_reads_slices_and_nulls() -> None:
    lines = lines_of("1", '""', "x", "2.5")
    assert infer(lines, 1) == ["string"]
    assert infer(lines.slice(0, 2), 1) == ["bigint"]
    assert infer(lines.slice(3), 1) == ["double"]
    assert infer(lines_of('""', '""'), 1) == ["null"]
    assert infer(pa.array([], pa.string()), 2) == ["null", "null"]


def test_join_is_a_least_upper_bound() -> None:
    for a, b, c in product(VOTES, repeat=3):
        assert join(a, b) == join(b, a)
        assert join(join(a, b), c) == join(a, join(b, c))
    for a in VOTES:
        assert join(a, a) == join(a, "null") == a
        assert join(a, "string") == "string"
    assert join("bigint", "double") == "double"
    assert join("wide_bigint", "double") == "string"
    assert join("date", "timestamp_ntz") == "timestamp_ntz"
    assert join("date", "timestamp") == "string"
    assert {type_name(vote) for vote in VOTES} == set(VOTES) - {"null", "wide_bigint"}


def test_headers() -> None:
    assert header("\ufeffid,Name,name, x ,a.b,`q`,é\r\n") == [
        "id",
        "Name",
        "name",
        " x ",
        "a.b",
        "`q`",
        "é",
    ]
    assert header('"a, b","say ""hi"""') == ["a, b", 'say "hi"']
    for line, expected, column in [
        ("", "column names", None),
        ('a,"b', "closing quote", 1),
        ('a,"b"c', "behind a closing quote", 1),
        ('a,b"c', "quoted", 1),
    ]:
        trouble = header(line)
        assert isinstance(trouble, Trouble), line
        assert (trouble.kind, trouble.column, trouble.line) == ("line", column, line)
        assert expected in trouble.expected


@given(st.lists(st.sampled_from(["", "a", "a_2", "a_3", "_1", "_2", "b"]), max_size=7))
def test_every_column_has_a_name_of_its_own(written: list[str]) -> None:
    """The first column with a name keeps it, and the others have one that nobody wrote."""
    names = named(written)
    assert len({*names}) == len(names) == len(written)
    for place, (old, name) in enumerate(zip(written, names, strict=True)):
        first = bool(old) and old not in written[:place]
        assert (name == old) == first
        if not first:
            assert name not in written
            assert re.fullmatch(f"{old}_[0-9]+", name)
    if written:
        line = ",".join(written) if any(written) else '""' + "," * (len(written) - 1)
        assert (header(line), written_header(line)) == (names, written)


def test_records_keep_line_breaks_inside_quotes() -> None:
    found = records(b'1,"a\nb"\r\n\n2,"c""\r\n"\n3,d')
    assert found.to_pylist() == ['1,"a\nb"\r\n', "\n", '2,"c""\r\n"\n', "3,d\n"]
    parsed = whole(found, text_schema(2))
    assert parsed.column(1).to_pylist() == ["a\nb", 'c"\r\n', "d"]
    assert records(b"").to_pylist() == []
    unclosed = parse(records(b'1,2\n1,"a\n2,b\n'), text_schema(2))
    assert isinstance(unclosed, Trouble)
    assert (unclosed.row, unclosed.line) == (1, '1,"a\n2,b')


# Dialects

SPARK = Dialect(escape="\\")


def plain_of(cell: str, dialect: Dialect) -> str:
    """The slow twin: one well-formed cell as RFC 4180 has it."""
    told = cell
    if cell.startswith('"'):
        e = re.escape(dialect.escape or '"')
        told = re.sub(f'{e}("|{e})|""', lambda m: m[1] or '"', cell[1:-1], flags=re.DOTALL)
        cell = '"' + told.replace('"', '""') + '"'
    return '""' if told and told in dialect.nulls else cell


def escaped_cells(escape: str, nulls: tuple[str, ...]) -> st.SearchStrategy[str]:
    e = re.escape(escape)
    quoted = st.from_regex(f'"([{e}ab,N\\n]|{e}["{e}]|"")*"', fullmatch=True)
    # An escape right before the closing quote would not close it.
    whole = quoted.filter(
        lambda cell: re.fullmatch(f'"([^"{e}]|{e}["{e}]|{e}(?!["{e}])|"")*"', cell) is not None
    )
    bare = st.text(f"{escape}ab N", max_size=4)
    return st.one_of(bare, whole, st.sampled_from([*nulls, f'"{nulls[0]}"', "", '""']))


@pytest.mark.parametrize("escape", ["\\", "^"])
@given(data=st.data())
@settings(deadline=None, max_examples=examples(200))
def test_other_dialects_become_plain(escape: str, data: st.DataObject) -> None:
    dialect = Dialect(escape=escape, nulls=("N", "a,b", 'a"b', "\n"))
    cells = escaped_cells(escape, dialect.nulls[:1])
    rows = data.draw(st.lists(st.lists(cells, min_size=2, max_size=2), max_size=5))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    lines = [",".join(row) + end for row in rows]
    expected = [",".join(plain_of(cell, dialect) for cell in row) + end for row in rows]
    found = plain(pa.array(lines, pa.string()), dialect)
    assert [line.decode() for line in found.to_pylist()] == expected
    # A whole file is written anew like its records.
    whole = plain(pa.array(["".join(lines)], pa.string()), dialect)
    assert whole[0].as_py().decode() == "".join(expected)
    assert len(records(whole[0].as_buffer())) == len(rows)


def test_csv_as_spark_writes_it() -> None:
    lines = [
        r'1,"he said \"no\""', r"2,a\b", r'3,"a\\,b"', "4,x\\", r'5,"x,\\"', r'8,"\\\""',
        r'10,"\"q"',
    ]  # fmt: skip
    parsed = parse(plain(lines_of(*lines), SPARK), text_schema(2))
    assert isinstance(parsed, pa.RecordBatch)
    assert parsed.column(1).to_pylist() == [
        'he said "no"', "a\\b", "a\\,b", "x\\", "x,\\", '\\"', '"q',
    ]  # fmt: skip


def test_malformed_lines_of_another_dialect_stay_malformed() -> None:
    for line in ('1,"open', '1,"x\\"', '1,"x" y', '1,x"y', '1,\\"x'):
        found = plain(lines_of(line), Dialect(escape="\\", nulls=("x", "1")))
        assert isinstance(parse(found, text_schema(2)), Trouble), line


def test_nulls_keep_their_line() -> None:
    """A null in a table of one column must not make an empty line, which would be skipped."""
    found = plain(lines_of("-", "x", "", '"-"', "-\r"), Dialect(nulls=("-",)))
    assert count(found) == 4
    assert whole(found, text_schema(1)).column(0).to_pylist() == [None, "x", None, None]
    schema = pa.schema([("n", pa.int64())])
    assert whole(plain(lines_of("1", "NA"), Dialect(nulls=("NA",))), schema).num_rows == 2


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "ascii", "shift_jis", "gb18030", "big5", "euc_kr"]
)
def test_lines_in_other_encodings(encoding: str) -> None:
    texts = [
        "a,b\n",
        "\n",
        {"ascii": "c"}.get(encoding, "é" if "1" in encoding else "中") + ",|\r\n",
    ]
    if encoding == "gb18030":
        texts.append("é\U0001f600\n")
    assert Dialect(encoding=encoding).by_lines
    lines = pa.array([text.encode(encoding) for text in texts])
    assert [line.decode() for line in text_in(lines, encoding).to_pylist()] == texts
    assert text_in(lines.slice(1, 1), encoding).to_pylist() == [b"\n"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "cp500", "utf-7"])
def test_files_in_encodings_without_lines(encoding: str) -> None:
    assert not Dialect(encoding=encoding).by_lines
    told = "a,é\nb,c\n" if encoding == "cp500" else "a,ਊ\nb,c\n"
    file = pa.array([told.encode(encoding)])
    assert text_in(file, encoding)[0].as_py().decode() == told


def test_bytes_that_are_no_text() -> None:
    lines = pa.array([b"a,b\n", b"c,caf\xe9\n", b"d,e\n"])
    found = decoded(lines, "ascii")
    assert isinstance(found, Trouble)
    assert (found.row, found.line, found.expected) == (1, "c,caf\ufffd", "text in ascii")
    file = pa.array(["a,b\nc,".encode("utf-16-le") + b"\x00\xdc" + "d\n".encode("utf-16-le")])
    found = decoded(file, "utf-16-le")
    assert isinstance(found, Trouble)
    assert (found.number, found.line) == (2, "c,\ufffdd")


@pytest.mark.parametrize("given", ["", ";;", "é", '"', "\n", "\0"])
def test_delimiters_that_are_none(given: str) -> None:
    with pytest.raises(ValueError, match="delimiter must be one ASCII character"):
        Dialect(given)
    with pytest.raises(ValueError, match="escape must be one ASCII character"):
        Dialect(escape=given)


def test_names_of_encodings() -> None:
    assert canonical("L1") == canonical("latin-1") == "iso8859-1"
    assert canonical("UTF8") == canonical("utf-8-sig") == "utf-8"
    for name in ("utf-9", "base64", "", "a\0b"):
        with pytest.raises(ValueError, match="unknown encoding"):
            canonical(name)
