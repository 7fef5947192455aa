"""Frozen dataclasses as JSON forms, and back: field by field, each checked against its type.

A form has every field of its record, but those that were :data:`ADDED` later. Further fields are
passed by, so that a part of a form can be read as a record of its own. A class that has ``to_dict``
and ``from_dict`` keeps its own form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from holdfast.model.errors import InputError

T = TypeVar("T")

ADDED = {"added": True}
"""The metadata of a field that came after its record's form: a form may lack it, and does so where
it has its default."""

_Reader = Callable[[Any], Any]

_SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((float, int), "a number"),
    str: ((str,), "text"),
}


class FormError(ValueError):
    """A form is not that of its record: which field, and what is wrong with it."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} {why}" if where else why)
        self.where, self.why = where, why

    def inside(self, outer: str) -> FormError:
        """The same, seen from the form around it."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        return FormError(f"{outer}{dot}{self.where}", self.why)


def to_form(value: Any) -> Any:
    """The JSON form of a record, or of anything that a record holds."""
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "from_dict"):
            return value.to_dict()  # type: ignore[attr-defined]  # it comes with from_dict
        present = [(each, getattr(value, each.name)) for each in fields(value)]
        return {
            each.name: to_form(held)
            for each, held in present
            if held != each.default or not _added(each)
        }
    if isinstance(value, dict):
        return {name: to_form(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_form(each) for each in value]
    return value


def from_form(kind: type[T], form: Any) -> T:
    """The record that has a form; a :class:`FormError` if it is none of its kind.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: int
    ...     names: tuple[str, ...]
    >>> point = from_form(Point, {"x": 1, "names": ["a"]})
    >>> point, to_form(point)
    (Point(x=1, names=('a',)), {'x': 1, 'names': ['a']})
    >>> from_form(Point, {"x": 1, "names": ["a", 2]})
    Traceback (most recent call last):
    holdfast.model.records.FormError: names[1] is 2, not text
    """
    record: T = _reader(cast(Hashable, kind))(form)
    return record


@cache
def _reader(kind: Hashable) -> _Reader:
    """What reads a value of a type."""
    if kind in (Any, object):
        return lambda form: form
    if kind in _SCALARS:
        return _scalar(*_SCALARS[kind])
    if isinstance(kind, UnionType):
        read = _reader(_present(kind))
        return lambda form: None if form is None else read(form)
    if get_origin(kind) is dict:
        return _mapping(_reader(get_args(kind)[1]))
    if get_origin(kind) in (tuple, Sequence):
        first, *others = get_args(kind)
        if others in ([], [Ellipsis]):
            return _sequence(_reader(first))
        return _exactly([_reader(each) for each in (first, *others)])
    if hasattr(kind, "from_dict"):
        return _own_form(kind)
    if is_dataclass(kind):
        return _record(kind)
    raise TypeError(f"a record cannot hold a {kind}")


def _scalar(types: tuple[type, ...], noun: str) -> _Reader:
    def read(form: Any) -> Any:
        # True is an int to Python, and to nobody else.
        if not isinstance(form, types) or (isinstance(form, bool) and bool not in types):
            raise _unexpected(form, noun)
        return form

    return read


def _mapping(of: _Reader) -> _Reader:
    def read(form: Any) -> Any:
        if not isinstance(form, dict):
            raise _unexpected(form, "an object")
        return {name: _inside(name, of, each) for name, each in form.items()}

    return read


def _sequence(of: _Reader) -> _Reader:
    def read(form: Any) -> Any:
        if not isinstance(form, list):
            raise _unexpected(form, "a list")
        return tuple(_inside(f"[{position}]", of, each) for position, each in enumerate(form))

    return read


def _exactly(readers: list[_Reader]) -> _Reader:
    def read(form: Any) -> Any:
        if not isinstance(form, list) or len(form) != len(readers):
            raise _unexpected(form, f"a list of {len(readers)}")
        pairs = enumerate(zip(readers, form, strict=True))
        return tuple(_inside(f"[{position}]", of, each) for position, (of, each) in pairs)

    return read


def _own_form(kind: Any) -> _Reader:
    def read(form: Any) -> Any:
        if not isinstance(form, dict):
            raise _unexpected(form, "an object")
        try:
            return kind.from_dict(form)
        except KeyError as missing:
            raise FormError(str(missing.args[0]), "is missing") from missing
        except (InputError, TypeError, ValueError, AttributeError) as wrong:
            raise FormError("", f"cannot be read: {wrong}") from wrong

    return read


def _record(kind: Any) -> _Reader:
    types = get_type_hints(kind)
    added = {each.name for each in fields(kind) if _added(each)}
    readers = {
        name: _reader(types[name]) for each in fields(kind) if (name := each.name) not in added
    }
    later = {name: _reader(_present(types[name])) for name in added}

    def read(form: Any) -> Any:
        if not isinstance(form, dict):
            raise _unexpected(form, "an object")
        for name in readers:
            if name not in form:
                raise FormError(name, "is missing")
        known = {**readers, **{name: of for name, of in later.items() if name in form}}
        return kind(**{name: _inside(name, of, form[name]) for name, of in known.items()})

    return read


def _added(each: Field[Any]) -> bool:
    return "added" in each.metadata


def _present(kind: Any) -> Any:
    """The type of a value that is there, of one that may be None."""
    if NoneType not in get_args(kind):
        return kind
    (some,) = [each for each in get_args(kind) if each is not NoneType]
    return some


def _inside(name: str, read: _Reader, form: Any) -> Any:
    try:
        return read(form)
    except FormError as error:
        raise error.inside(name) from error


def _unexpected(form: Any, noun: str) -> FormError:
    shown = repr(form)
    return FormError("", f"is {shown[:40] + '…' if len(shown) > 40 else shown}, not {noun}")
