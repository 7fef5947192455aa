"""Lists of results as tables: for JSON, Arrow, pandas and Spark, whatever they are lists of.

A table has a column for each field of the listed dataclass, whether or not there are any rows.
Numbers and text are as they are, tuples are lists of text, and everything else (rows that show
something) is JSON text; a class that prints as a rule has that in the first column, ``constraint``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sized
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from holdfast.model import markup
from holdfast.model.constraints import Constraint

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_SCALARS: dict[Any, str] = {str: "string", int: "int64", float: "float64", bool: "bool"}
_TEXTS = "list<string>"
_NUMBERS = ("int64", "float64")


AS_TEXT = {"text": True}
"""The metadata of a field with values of any type, whose text is as it is, and not JSON."""


class Tabular:
    """What lists can be turned into."""

    def _listed(self) -> tuple[type, Iterable[Any]]:
        """The class of what is listed, and the list."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        kind, values = self._listed()
        listed = list(islice(values, markup.SHOWN))
        columns = columns_of(kind)
        if any(column.name == "constraint" for column in columns):
            # It says what the others do, but for numbers; of which errors of 0 say nothing.
            columns = [
                column
                for column in columns
                if column.name == "constraint"
                or (column.type in _NUMBERS and any(map(column.cell, listed)))
            ]
        lines = [[markup.cell(column.cell(value)) for column in columns] for value in listed]
        number = len(values) if isinstance(values, Sized) else len(listed)
        return markup.table([column.name for column in columns], lines) + markup.more(number)

    def to_dict(self) -> Any:
        """The JSON forms, as a list."""
        return [entry.to_dict() for entry in self._listed()[1]]

    def to_arrow(self) -> pa.Table:
        """An Arrow table, a row for each."""
        import pyarrow as pa

        kind, values = self._listed()
        columns = columns_of(kind)
        cells: dict[str, list[Any]] = {column.name: [] for column in columns}
        for value in values:
            for column in columns:
                cells[column.name].append(column.cell(value))
        return pa.table(
            {
                column.name: pa.array(
                    cells[column.name],
                    pa.list_(pa.string())
                    if column.type == _TEXTS
                    else pa.type_for_alias(column.type),
                )
                for column in columns
            }
        )

    def to_pandas(self) -> Any:
        """A pandas DataFrame, a row for each."""
        return self.to_arrow().to_pandas()

    def to_spark(self, session: Any) -> Any:
        """A DataFrame of a Spark session, a row for each."""
        return session.createDataFrame(self.to_arrow())


class Results(list[T], Tabular):
    """A list that can be turned into a table: ``profile.keys("orders").to_pandas()``."""

    def __init__(self, kind: type[T], values: Iterable[T] = ()) -> None:
        super().__init__(values)
        self._kind = kind

    def _listed(self) -> tuple[type, Iterable[T]]:
        return self._kind, self


class Column(NamedTuple):
    name: str
    type: str
    cell: Callable[[Any], Any]


@cache
def columns_of(kind: type) -> list[Column]:
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    columns = [
        _text_column(field.name)
        if "text" in field.metadata
        else _column(field.name, hints[field.name])
        for field in fields(kind)
    ]
    names = [column.name for column in columns]
    if kind.__str__ is not object.__str__ and "constraint" not in names:
        return [Column("constraint", "string", str), *columns]
    return columns


def _text_column(name: str) -> Column:
    def text(value: Any) -> str | None:
        cell = getattr(value, name)
        return cell if isinstance(cell, str) else _json(cell)

    return Column(name, "string", text)


def _column(name: str, hint: Any) -> Column:
    if isinstance(hint, UnionType):
        (hint,) = [option for option in get_args(hint) if option is not NoneType]
    if hint in _SCALARS:
        return Column(name, _SCALARS[hint], lambda value: getattr(value, name))
    if hint is Constraint:
        return Column(name, "string", lambda value: str(getattr(value, name)))
    of = get_args(hint)[0] if get_origin(hint) is tuple else None
    if of in (str, Constraint) or is_dataclass(of):
        return Column(
            name, _TEXTS, lambda value: [str(element) for element in getattr(value, name)]
        )
    return Column(name, "string", lambda value: _json(getattr(value, name)))


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=_form)


def _form(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else str(value)
