"""Types of columns: the names that Spark gives them, the Arrow types that stand for them, and both
in a schema that a person writes, such as ``id bigint, name string``.

Spark's own parser would need a JVM, and engines must not differ in what they read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as at

from holdfast.model.errors import SchemaError
from holdfast.tasks.nanoseconds import is_nano

_NAMED: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval day to second": pa.duration("us"),
    "void": pa.null(),
}

_NAMES = {kind: name for name, kind in _NAMED.items()}

_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
"""Other words for types that Spark takes."""

_BEYOND = {
    pa.time64("us"): "time(6)",
    pa.time64("ns"): "time(9)",
    pa.timestamp("ns"): "timestamp_ntz(9)",
    pa.timestamp("ns", "UTC"): "timestamp(9)",
    pa.duration("ns"): "interval day to second(9)",
}
"""Types that Spark does not have, or not in all versions and settings."""

_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^\s`<>(),:]+)|([<>(),:]))")

_BOUNDED = re.compile(r"(?:var)?char\((\d+)\)")

_WRITTEN = 'write it as "id bigint, name string"'


def beyond_spark(leaf: pa.DataType) -> bool:
    """Whether Spark has no such type, or not in all versions and settings."""
    return is_nano(leaf) or bool(at.is_time(leaf))


def exact_type(column: str, kind: pa.DataType) -> tuple[str, pa.DataType]:
    """What a column of this Arrow type is called, and the Arrow type that stores it.

    >>> exact_type("tags", pa.large_list(pa.large_string()))
    ('array<string>', ListType(list<item: string>))
    """
    name: str | None
    if at.is_struct(kind):
        parts = [(part.name, *exact_type(column, part.type)) for part in kind]
        named = ",".join(f"{part}:{called}" for part, called, _ in parts)
        return f"struct<{named}>", pa.struct([(part, arrow) for part, _, arrow in parts])
    if at.is_map(kind):
        key, item = exact_type(column, kind.key_type), exact_type(column, kind.item_type)
        return f"map<{key[0]},{item[0]}>", pa.map_(key[1], item[1])
    if at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        name, arrow = exact_type(column, kind.value_type)
        return f"array<{name}>", pa.list_(arrow)
    stored = _stored(kind)
    name = _NAMES.get(stored) or _BEYOND.get(stored)
    if at.is_decimal(stored) and stored.precision <= 38:
        name = f"decimal({stored.precision},{stored.scale})"
    if name is None:
        raise SchemaError(
            f"column {column!r} has the type {kind}, which Spark does not have; cast it or "
            "leave it out"
        )
    return name, stored


def _stored(kind: pa.DataType) -> pa.DataType:
    """The innermost type as which another one is stored."""
    if at.is_dictionary(kind):
        return _stored(kind.value_type)
    if at.is_large_string(kind):
        return pa.string()
    if at.is_large_binary(kind) or at.is_fixed_size_binary(kind):
        return pa.binary()
    if at.is_timestamp(kind):
        return pa.timestamp("ns" if is_nano(kind) else "us", "UTC" if kind.tz else None)
    if at.is_duration(kind) and not is_nano(kind):
        return pa.duration("us")
    if at.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def parsed(ddl: str) -> pa.Schema:
    """The columns that a schema names, with their types.

    >>> parsed("id bigint, `a b` array<struct<x: decimal(10,2)>>").types[1]
    ListType(list<item: struct<x: decimal128(10, 2)>>)
    """
    reader = _Reader(ddl)
    try:
        fields = [reader.column()]
        while reader.next_is(","):
            fields.append(reader.column())
        reader.end()
    except ValueError as wrong:
        raise SchemaError(f"the schema {ddl!r} cannot be read ({wrong}); {_WRITTEN}") from wrong
    return pa.schema(fields)


def widens(old: tuple[str, pa.DataType], new: tuple[str, pa.DataType]) -> bool:
    """Whether a type has all values of another one of its family, and more, given by their names
    and Arrow types.

    >>> widens(("varchar(9)", pa.string()), ("varchar(20)", pa.string()))
    True
    >>> widens(("bigint", pa.int64()), ("int", pa.int32()))
    False
    """
    if is_wider(old[1], new[1]):
        return True
    least, most = _BOUNDED.fullmatch(old[0]), _BOUNDED.fullmatch(new[0])
    if least is None:
        return False
    return new[0] == "string" or (most is not None and int(most[1]) > int(least[1]))


def is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a type has all values of another one of its family, and more.

    >>> is_wider(pa.int32(), pa.int64()), is_wider(pa.decimal128(10, 2), pa.decimal128(14, 4))
    (True, True)
    >>> is_wider(pa.int64(), pa.int32()), is_wider(pa.decimal128(10, 2), pa.decimal128(10, 4))
    (False, False)
    """
    if at.is_signed_integer(old) and at.is_signed_integer(new):
        return bool(new.bit_width > old.bit_width)
    if at.is_decimal128(old) and at.is_decimal128(new):
        whole = old.precision - old.scale
        holds = new.scale >= old.scale and new.precision - new.scale >= whole
        return bool(holds and old != new)
    return bool(at.is_float32(old) and at.is_float64(new))


def type_of(column: str, text: str) -> tuple[str, pa.DataType]:
    """The type of one column as a person writes it.

    >>> type_of("price", "decimal(10, 2)")
    ('decimal(10,2)', Decimal128Type(decimal128(10, 2)))
    """
    (kind,) = parsed(f"{_quoted('c')} {text}").types
    return exact_type(column, kind)


def written(schema: pa.Schema) -> str:
    """A schema as it is read by :func:`parsed`, with names that may hold any character.

    >>> written(pa.schema([("a", pa.list_(pa.int64()))]))
    '`a` array<bigint>'
    """
    return ", ".join(f"{_quoted(field.name)} {_written(field.type)}" for field in schema)


def _written(kind: pa.DataType) -> str:
    if at.is_struct(kind):
        fields = (f"{_quoted(field.name)}: {_written(field.type)}" for field in kind)
        return f"struct<{', '.join(fields)}>"
    if at.is_map(kind):
        return f"map<{_written(kind.key_type)}, {_written(kind.item_type)}>"
    if at.is_list(kind):
        return f"array<{_written(kind.value_type)}>"
    return exact_type("", kind)[0]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class _Reader:
    """Reads a schema word by word; what is wrong is a ValueError that says it."""

    def __init__(self, text: str) -> None:
        self._words = [*_words(text)]
        self._place = 0

    def column(self) -> pa.Field:
        """A name and a type."""
        name = self._name()
        self.next_is(":")
        field = pa.field(name, self._type())
        if self.next_is("not"):
            self._expect("null")
        if self.next_is("comment"):
            self._place += 1
        return field

    def next_is(self, word: str) -> bool:
        """Whether this comes next; it is passed then."""
        is_next = self._word().lower() == word and self._is_name() == word.isalpha()
        self._place += is_next
        return is_next

    def end(self) -> None:
        """See that nothing follows."""
        if self._place < len(self._words):
            raise ValueError(f"expected a comma or the end, not {self._word()!r}")

    def _word(self) -> str:
        return self._words[self._place][0] if self._place < len(self._words) else ""

    def _is_name(self) -> bool:
        return self._words[self._place][1]

    def _expect(self, word: str) -> None:
        if not self.next_is(word):
            raise ValueError(f"expected {word!r}, not {self._word() or 'the end'!r}")

    def _name(self) -> str:
        if self._place >= len(self._words):
            raise ValueError("expected the name of a column, not the end")
        word = self._word()
        if not self._is_name():
            raise ValueError(f"expected the name of a column, not {word!r}")
        self._place += 1
        return word

    def _type(self) -> pa.DataType:
        name = self._name().lower()
        name = _ALIASES.get(name, name)
        if name == "array":
            self._expect("<")
            kind = pa.list_(self._type())
            self._expect(">")
            return kind
        if name == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            kind = pa.map_(key, self._type())
            self._expect(">")
            return kind
        if name == "struct":
            self._expect("<")
            fields = [] if self._word() == ">" else [self.column()]
            while self.next_is(","):
                fields.append(self.column())
            self._expect(">")
            return pa.struct(fields)
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name in ("char", "varchar"):
            self._numbers(1)
            return pa.string()
        if name == "interval" and self.next_is("day"):
            self._expect("to")
            self._expect("second")
            return pa.duration("us")
        if name not in _NAMED:
            raise ValueError(f"unknown type {name!r}")
        return _NAMED[name]

    def _decimal(self) -> pa.DataType:
        numbers = self._numbers(2) if self._word() == "(" else [10]
        precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not (1 <= precision <= 38 and scale <= precision):
            raise ValueError(f"a decimal has at most 38 digits, not ({precision},{scale})")
        return pa.decimal128(precision, scale)

    def _numbers(self, most: int) -> list[int]:
        self._expect("(")
        numbers = [self._number()]
        while len(numbers) < most and self.next_is(","):
            numbers.append(self._number())
        self._expect(")")
        return numbers

    def _number(self) -> int:
        word = self._name()
        if not re.fullmatch(r"\d{1,9}", word):
            raise ValueError(f"expected a number, not {word!r}")
        return int(word)


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """The words and signs of a schema, and whether each may be a name."""
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"cannot read {text[place:].strip()[:20]!r}")
        name, word, sign = match.groups()
        yield (sign, False) if sign else (word if name is None else name.replace("``", "`"), True)
        place = match.end()
