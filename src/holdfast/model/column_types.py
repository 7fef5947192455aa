"""The types of columns as people write them, as in ``--add-column c=bigint``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.model.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {
    "boolean": "bool_",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "binary": "binary",
    "date": "date32",
}
_OTHERS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint",
           "real": "float", "text": "string", "bool": "boolean", "decimal": "decimal(10,0)",
           "numeric": "decimal(10,0)"}  # fmt: skip


def column_type(text: str) -> tuple[str, pa.DataType]:
    """The type as Spark calls it, and the Arrow type that stores it.

    >>> column_type("BIGINT"), column_type("numeric(10, 2)")
    (('bigint', DataType(int64)), ('decimal(10,2)', Decimal128Type(decimal128(10, 2))))
    """
    import pyarrow as pa

    name = re.sub(r"\s+", "", text).lower()
    name = _OTHERS.get(name, name)
    if name in _TYPES:
        return name, getattr(pa, _TYPES[name])()
    if name in ("timestamp", "timestamp_ntz"):
        return name, pa.timestamp("us", "UTC" if name == "timestamp" else None)
    if re.fullmatch(r"(var)?char\(\d+\)", name):
        return "string", pa.string()
    digits = re.fullmatch(r"(?:decimal|numeric)\((\d+)(?:,(\d+))?\)", name)
    if digits and 1 <= int(digits[1]) <= 38 and int(digits[2] or 0) <= int(digits[1]):
        precision, scale = int(digits[1]), int(digits[2] or 0)
        return f"decimal({precision},{scale})", pa.decimal128(precision, scale)
    raise InputError(
        f"{text!r} is not a type of a new column; there are {', '.join(_TYPES)}, timestamp, "
        "timestamp_ntz, varchar(n) and decimal(p,s)"
    )
