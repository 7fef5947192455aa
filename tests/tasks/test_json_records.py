"""JSON to typed rows: exactly what is written, in the types that CSV would have, or an error."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.tasks import text
from holdfast.tasks.json_records import split
from holdfast.tasks.json_rows import Reader
from holdfast.tasks.json_types import JsonForm, Learned
from holdfast.tasks.text import Trouble
from holdfast.tasks.votes import type_name
from tests.strategies import DOUBLES, examples, near_doubles

ARROW = {
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
}


def arrow(form: JsonForm) -> pa.DataType:
    """The type that a form stands for."""
    if form.kind == "struct":
        return pa.struct([(name, arrow(each)) for name, each in form.fields.items()])
    if form.kind == "array":
        return pa.list_(arrow(form.element or JsonForm()))
    return ARROW[form.kind]


def learned(lines: list[bytes], whole: bool = False) -> JsonForm:
    seen = Learned()
    trouble = seen.add(split(pa.array(lines, pa.binary()), whole))
    assert trouble is None
    return seen.form


def read(
    lines: list[bytes],
    schema: dict[str, pa.DataType],
    whole: bool = False,
    cast: pa.DataType | None = None,
) -> Any:
    """Rows, with ``cast`` in another type, or what is wrong."""
    reader = Reader(pa.schema(list(schema.items())), [(name,) for name in schema])
    parsed = reader.parse(split(pa.array(lines, pa.binary()), whole))
    if isinstance(parsed, Trouble):
        return parsed
    parsed.validate(full=True)
    if cast is not None:
        parsed = parsed.cast(pa.schema([(name, cast) for name in schema]))
    return parsed.to_pylist()


def inferred(lines: list[bytes], whole: bool = False) -> list[dict[str, Any]]:
    """Rows in the types that hold them."""
    form = learned(lines, whole)
    rows: list[dict[str, Any]] = read(
        lines, {name: arrow(each) for name, each in form.fields.items()}, whole
    )
    return rows


# Numbers

WHOLE = st.one_of(
    st.integers(-(10**45), 10**45).map(str),
    st.integers(-9, 9).map(str),
    st.integers(2**53 - 2, 2**53 + 2).map(str),
    st.integers(2**63 - 2, 2**63 + 2).map(str),
    st.just("-0"),
)
NUMBERS = st.builds(
    lambda whole, fraction, exponent: whole + fraction + exponent,
    WHOLE,
    st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,45}", fullmatch=True)),
    st.one_of(st.just(""), st.from_regex(r"[eE][+-]?[0-9]{1,3}", fullmatch=True)),
)


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.one_of(NUMBERS, DOUBLES.map(json.dumps), near_doubles()), max_size=8))
def test_no_two_numbers_become_equal(numbers: list[str]) -> None:
    """And a column of numbers has the type that it has in CSV."""
    lines = [b'{"x": %s, "in": {"l": [%s]}}' % (each.encode(), each.encode()) for each in numbers]
    form = learned(lines).fields.get("x", JsonForm())
    if not numbers:
        return
    votes = text.infer(pa.array([f"{number}\n" for number in numbers]), 1)
    assert not isinstance(votes, Trouble)
    assert form.kind == type_name(votes[0])
    rows = inferred(lines)
    cells = [row["x"] for row in rows]
    assert [row["in"] for row in rows] == [{"l": [cell]} for cell in cells]
    exact = numbers if form.kind == "string" else [Decimal(each) for each in numbers]
    for cell, value in zip(cells, exact, strict=True):
        for other, theirs in zip(cells, exact, strict=True):
            assert (cell == other) == (value == theirs), "as texts or as numbers, equal or not"


@settings(deadline=None, max_examples=examples(100))
@given(
    st.lists(NUMBERS, min_size=1, max_size=6),
    st.sampled_from([pa.float64(), pa.int64(), pa.float32()]),
)
def test_a_type_takes_a_number_exactly_or_not_at_all(numbers: list[str], type_: Any) -> None:
    lines = [b'{"x": %s}' % each.encode() for each in numbers]
    rows = read(lines, {"x": type_})
    if isinstance(rows, Trouble):
        assert rows.column == 0
        assert rows.line == lines[rows.row].decode()
        rows = read(lines[: rows.row], {"x": type_})
        assert not isinstance(rows, Trouble), "the first that does not fit is told"
        assert isinstance(read(lines[len(rows) : len(rows) + 1], {"x": type_}), Trouble)
    distinct = {Decimal(each) for each in numbers[: len(rows)]}
    assert len({row["x"] for row in rows}) == len(distinct)


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(DOUBLES, min_size=1, max_size=6))
def test_doubles_come_back_as_they_were(doubles: list[float]) -> None:
    lines = [json.dumps({"x": each, "in": {"l": [each, -each]}}).encode() for each in doubles]
    form = learned(lines).fields
    assert form["x"].kind == "double"
    rows = inferred(lines)
    assert [json.dumps(row).encode() for row in rows] == lines


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(NUMBERS, min_size=1, max_size=6), st.integers(1, 38), st.data())
def test_decimals_are_exact(numbers: list[str], precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    for each in numbers:
        rows = read([b'{"x": %s}' % each.encode()], {"x": pa.decimal128(precision, scale)})
        shifted = Fraction(each) * 10**scale
        fits = shifted.denominator == 1 and abs(shifted) < 10**precision
        assert isinstance(rows, Trouble) == (not fits)
        if fits:
            assert rows[0]["x"] == Decimal(each)
        in_csv = pa.schema([("x", pa.decimal128(precision, scale))])
        cell = text.parse(pa.array([f"{each}\n"]), in_csv)
        assert isinstance(cell, Trouble) or cell["x"][0].as_py() == Decimal(each)


@pytest.mark.parametrize(
    "number",
    [
        "1E-260", "1e-2000000000", "1e2000000000", "1E-99999999999999999999", '"1E-260"',
        '"1_0E-1"', '"\u00a01E-1"', '" 1e-1"', '"１E-1"', '".E-1"', '"NaN"', '""',
    ],
)  # fmt: skip
@pytest.mark.parametrize("other", ["0", "1e-1"])
def test_a_number_that_no_decimal_has_is_refused(number: str, other: str) -> None:
    lines = [b'{"x": %s}' % each.encode() for each in (other, number)]
    for type_ in (pa.decimal128(24, 24), pa.decimal128(38, 1), pa.decimal128(5, 2)):
        trouble = read(lines, {"x": type_})
        assert isinstance(trouble, Trouble), (type_, trouble)
        assert (trouble.row, trouble.column) == (1, 0)


@pytest.mark.parametrize("number", ["0E-2000000000", "-0e+300", '"+0E-0060"', "0.0e-60"])
def test_zero_is_zero_however_it_is_written(number: str) -> None:
    (row,) = read([b'{"x": %s}' % number.encode()], {"x": pa.decimal128(24, 24)})
    assert row["x"] == 0


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (b"0.1", "double"),
        (b"0.30000000000000004", "double"),
        (b"3.141592653589793", "double"),
        (b"3.1415926535897932", "string"),
        (b"5e-324", "double"),
        (b"0.12345678901234567890", "string"),
        (b"123456789012345678901234567890123456789", "string"),
        (b"9223372036854775807", "bigint"),
        (b"9223372036854775808", "string"),
        (b"1e5", "double"),
        (b"1E400", "string"),
        (b"-0.0", "double"),
        (b"NaN", "double"),
        (b"-Infinity", "double"),
    ],
)
def test_types_of_numbers(number: bytes, kind: str) -> None:
    assert learned([b'{"x": %s}' % number]).fields["x"].kind == kind
    (row,) = inferred([b'{"x": %s}' % number])
    if kind == "string":
        assert row["x"] == number.decode()
    else:
        assert str(row["x"]) == str(ARROW[kind].to_pandas_dtype()(number))


def test_nothing_is_learned_of_nothing() -> None:
    assert learned([]) == JsonForm()


def test_zeros_and_forms_of_a_number_are_equal() -> None:
    rows = inferred([b'{"x": 1}', b'{"x": 1.0}', b'{"x": 10E-1}', b'{"x": -0.0}', b'{"x": 0}'])
    assert [row["x"] for row in rows] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("number", [b"1e400", b"0.12345678901234567890", b"9007199254740993"])
def test_a_double_refuses_digits_that_it_would_lose(number: bytes) -> None:
    trouble = read([b'{"x": 0.30000000000000004}', b'{"x": %s}' % number], {"x": pa.float64()})
    assert (trouble.row, trouble.column) == (1, 0)
    assert trouble.expected == "a number that a double holds without losing a digit"
    nested = {"x": pa.struct([("y", pa.list_(pa.float64()))])}
    trouble = read([b'{"x": {"y": [1, %s]}}' % number], nested)
    assert trouble.expected == "a number that a double holds without losing a digit at x.y"


# Everything else

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


def as_read(value: Any, form: JsonForm, ascii_only: bool) -> Any:
    """A value of JSON as a column of this form holds it."""
    if value is None:
        return None
    if form.kind == "struct":
        return {
            name: as_read(value.get(name), each, ascii_only) for name, each in form.fields.items()
        }
    if form.kind == "array":
        return [as_read(each, form.element or JsonForm(), ascii_only) for each in value]
    if form.kind == "string" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=ascii_only)
    return value


@settings(deadline=None, max_examples=examples(100))
@given(
    st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_documents_are_read_as_they_are(
    records: list[dict[str, Any]], ascii_only: bool, indent: int | None
) -> None:
    """In lines, and as one list in a file over many of them; with escapes and without."""
    records = [{"id": 1}, *records]
    lines = [json.dumps(each, ensure_ascii=ascii_only).encode() for each in records]
    form = learned(lines)
    expected = [
        {name: as_read(each.get(name), inner, ascii_only) for name, inner in form.fields.items()}
        for each in records
    ]
    assert inferred(lines) == expected
    parted = JsonForm()
    for line in lines:
        parted = parted.join(JsonForm.unpacked(json.loads(json.dumps(learned([line]).packed()))))
    assert parted == form, "the same whatever was looked at first"
    if indent is None:
        whole = json.dumps(records, ensure_ascii=ascii_only).encode()
        assert inferred([whole], whole=True) == expected
    else:
        whole = json.dumps(records, ensure_ascii=ascii_only, indent=indent).encode()
        assert len(inferred([b"\xef\xbb\xbf" + whole], whole=True)) == len(records)


def test_names_are_told_apart_by_case_and_not_by_spelling() -> None:
    rows = inferred([b'{"a": 1, "A": "x", "in": {"b": 1, "B": 2}}', rb'{"\u0061": 2}'])
    assert rows[0] == {"a": 1, "A": "x", "in": {"b": 1, "B": 2}}
    assert rows[1] == {"a": 2, "A": None, "in": None}


def test_given_types() -> None:
    schema = {
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "raw": pa.binary(),
        "map": pa.map_(pa.string(), pa.int32()),
        "sum": pa.decimal128(10, 2),
    }
    line = (
        b'{"day": "2020-01-31", "at": "2020-01-01T01:00:00+01:00", "local": "2020-01-01 00:00:01",'
        b' "raw": "AAE=", "map": {"a": 1, "b": null}, "sum": "1.50"}'
    )
    (row,) = read([line], schema)
    assert str(row["day"]) == "2020-01-31"
    assert str(row["at"]) == "2020-01-01 00:00:00+00:00"
    assert str(row["local"]) == "2020-01-01 00:00:01"
    assert (row["raw"], row["map"]) == (b"\0\1", [("a", 1), ("b", None)])
    assert row["sum"] == Decimal("1.50")
    (row,) = read([b'{"at": "2020-01-01T00:00:00"}'], schema)
    assert str(row["at"]) == "2020-01-01 00:00:00+00:00", "without a zone it is in UTC"
    for wrong in (
        b'{"day": "0000-01-01"}', b'{"day": 5}', b'{"at": "1"}', b'{"raw": "?"}', b'{"map": [1]}',
        b'{"map": {"a": "1"}}', b'{"sum": 1.234}', b'{"sum": "x"}', b'{"local": "10000-01-01"}',
    ):  # fmt: skip
        trouble = read([line, wrong], schema)
        assert isinstance(trouble, Trouble), wrong
        assert (trouble.kind, trouble.row) == ("cell", 1)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_column_of_nanoseconds_takes_nine_digits(zone: str | None) -> None:
    """As CSV does; what 64 bits do not hold is refused."""
    kind = pa.timestamp("ns", zone)
    lines = [b'{"at": "2020-01-01T00:00:00.123456789%s"}' % (b"Z" if zone else b"")]
    (row,) = read(lines, {"at": kind}, cast=pa.int64())
    assert row["at"] == 1_577_836_800_123_456_789
    (row,) = read([b'{"at": "2020-01-01T00:00:00.000000001"}'], {"at": kind}, cast=pa.int64())
    assert row["at"] == 1_577_836_800_000_000_001
    for year in (b"1500", b"2300"):
        trouble = read([b'{"at": "%s-01-01T00:00:00"}' % year], {"at": kind})
        assert isinstance(trouble, Trouble)
        assert trouble.expected == ("timestamp(9)" if zone else "timestamp_ntz(9)")


@pytest.mark.parametrize(
    "line",
    [
        b"1", b"null", b'"a"', b"{", b'{"a"}', b'{"a":}', b'{"a":1,}', b'{"a":01}', b'{"a":1.}',
        b'{"a":+1}', b'{"a":.5}', b'{"a":1e}', b'{"a":tru}', b'{"a":1} {"a":2}', b'{"a":[1,]}',
        b'{"a":[1}', b'{"a":"\x01"}', rb'{"a":"\x"}', rb'{"a":"\ud800"}', rb'{"a":"\udc00\ud800"}',
        b"{'a':1}", b'{"a":"', b'{"a":"\xff"}', b"[1]", b"[{}", b'[{"a":1}}', b'[{"a":1} {"a":2}]',
        b'{"a":' + b"[" * 600 + b"]" * 600 + b"}",
    ],
)  # fmt: skip
def test_what_is_malformed_is_told(line: bytes) -> None:
    good = b'{"a": 1}'
    trouble = Learned().add(split(pa.array([good, line, good], pa.binary()), whole=False))
    assert isinstance(trouble, Trouble)
    told = read([good, line, good], {"a": pa.string()})
    assert isinstance(told, Trouble)
    assert (told.kind, told.row, told.expected) == ("line", trouble.row, trouble.expected)


def test_a_field_twice_or_unknown_is_told() -> None:
    twice = read([b'{"a": null, "a": 2}'], {"a": pa.int64()})
    assert twice.expected == "the field 'a' to occur once"
    unknown = read([b'{"a": {"b": 1, "c": 2}}'], {"a": pa.struct([("b", pa.int64())])})
    assert (unknown.kind, unknown.expected) == ("field", "a.c")


def test_lines_of_trouble_in_a_file() -> None:
    trouble = read([b'[\n {"a": 1},\n {"a": "x"}\n]\n'], {"a": pa.int64()}, whole=True)
    assert (trouble.number, trouble.expected) == (3, "bigint")
