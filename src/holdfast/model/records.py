"""Frozen dataclasses as JSON forms, and back: field by field, each checked against its type.

What a commit stores is written by :func:`to_form` and has every field of its record, but those
that were :data:`ADDED` later. What people see is written by ``to_dict`` of a :class:`Serializable`,
which can name other attributes. :func:`from_form` reads both. It ignores further fields, so that a
part of a form can be read as a record of its own. A class that has ``to_dict`` and ``from_dict``
keeps its own form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from holdfast.model.errors import InputError

T = TypeVar("T")

if TYPE_CHECKING:
    Json: TypeAlias = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | bool | None
    """A value of JSON."""
else:
    Json = Any  # what reads the types of fields cannot follow a type that names itself

JsonObject: TypeAlias = dict[str, Json]
"""A JSON object."""

ADDED = {"added": True}
"""The metadata of a field that came after its record's form: a form may lack it, and does so where
it has its default."""

LATER = {"later": True}
"""The same of a field that is always written now."""

_Reader = Callable[[Any], Any]


def form_of_field(write: Callable[[Any], Json], read: Callable[[Any], Any]) -> dict[str, Any]:
    """The metadata of a field with a form of its own."""
    return {"write": write, "read": read}


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


class Serializable:
    """A frozen dataclass whose JSON form is its fields.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point(Serializable):
    ...     FORM = ("x", ("height", "y"))
    ...     x: int
    ...     y: int
    >>> Point(1, 2).to_dict()
    {'x': 1, 'height': 2}
    """

    FORM: ClassVar[tuple[str | tuple[str, str], ...]] = ()
    """The attributes in the form, where they are not just the fields: each by its name, or as its
    name in JSON and the path to it. The form of one named :data:`INLINE` is part of this one."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        form: dict[str, Any] = {}
        for name, read, left_out, write in _parts(cast(Hashable, type(self))):
            value = read(self)
            if left_out is not _NOTHING and value == left_out:
                continue
            if write is not None:
                value = write(value)
            if name == INLINE:
                form |= value
            else:
                form[name] = value
        return form


INLINE = ""

_NOTHING = object()

_Part = tuple[str, Callable[[Any], Any], Any, Callable[[Any], Any] | None]
"""A name, what reads the attribute, the value that is left out, and what writes it: None where JSON
has it as it is. This is found once for each class, for there may be a million values of one."""


@cache
def _parts(kind: Any) -> list[_Part]:
    """What is written of a class."""
    types = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    parts: list[_Part] = []
    for part in kind.FORM or tuple(known):
        name, path = (part, part) if isinstance(part, str) else part
        read = _along(path.split(".")) if "." in path else attrgetter(path)
        if path not in known:
            parts.append((name, read, _NOTHING, to_json))
            continue
        field = known[path]
        write = field.metadata.get("write", _writer(types[path]))
        parts.append((name, read, _default(field) if _added(field) else _NOTHING, write))
    return parts


def _along(names: list[str]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        for name in names:
            value = None if value is None else getattr(value, name)
        return value

    return read


def _writer(kind: Any) -> Callable[[Any], Any] | None:
    """What writes values of a type."""
    options = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if {*options} <= {*_SCALARS, NoneType}:
        return None
    if get_origin(kind) is tuple:
        elements = {*get_args(kind)} - {Ellipsis}
        if elements <= _SCALARS.keys():
            return list
        if all(hasattr(element, "to_dict") for element in elements):
            return lambda values: [value.to_dict() for value in values]
    return to_json


def to_json(value: Any) -> Any:
    """The JSON form of a value that people see."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(entry) for entry in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def to_form(value: Any) -> Any:
    """The JSON form of a record, or of anything that a record holds, as a commit stores it."""
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "from_dict"):
            return value.to_dict()  # type: ignore[attr-defined]  # it comes with from_dict
        present = [(field, getattr(value, field.name)) for field in fields(value)]
        return {
            field.name: field.metadata.get("write", to_form)(content)
            for field, content in present
            if not _added(field) or content != _default(field)
        }
    if isinstance(value, dict):
        return {name: to_form(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_form(entry) for entry in value]
    return value


def from_form(kind: type[T], form: Any, **given: Any) -> T:
    """The record that has a form; a :class:`FormError` if it is none of its kind. ``given`` are the
    fields that the form does not have.

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
    if given:
        return cast(T, _record(cast(Hashable, kind), frozenset(given))(form, given))
    return cast(T, _reader(cast(Hashable, kind))(form))


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
        return _exactly([_reader(entry) for entry in (first, *others)])
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
        return {name: _inside(name, of, entry) for name, entry in form.items()}

    return read


def _sequence(of: _Reader) -> _Reader:
    def read(form: Any) -> Any:
        if not isinstance(form, list):
            raise _unexpected(form, "a list")
        return tuple(_inside(f"[{position}]", of, entry) for position, entry in enumerate(form))

    return read


def _exactly(readers: list[_Reader]) -> _Reader:
    def read(form: Any) -> Any:
        if not isinstance(form, list) or len(form) != len(readers):
            raise _unexpected(form, f"a list of {len(readers)}")
        pairs = enumerate(zip(readers, form, strict=True))
        return tuple(_inside(f"[{position}]", of, entry) for position, (of, entry) in pairs)

    return read


def _own_form(kind: Any) -> _Reader:
    of = _reading(kind.from_dict)

    def read(form: Any) -> Any:
        if not isinstance(form, dict):
            raise _unexpected(form, "an object")
        return of(form)

    return read


def _reading(of: _Reader) -> _Reader:
    """The same, whose errors are form errors."""

    def read(form: Any) -> Any:
        try:
            return of(form)
        except KeyError as missing:
            raise FormError(str(missing.args[0]), "is missing") from missing
        except (InputError, TypeError, ValueError, AttributeError) as wrong:
            raise FormError("", f"cannot be read: {wrong}") from wrong

    return read


@cache
def _record(kind: Any, given: frozenset[str] = frozenset()) -> Callable[..., Any]:
    types = get_type_hints(kind)
    stored = [field for field in fields(kind) if field.name not in given]
    readers = {f.name: _field_reader(f, types[f.name]) for f in stored if not _lacked(f)}
    # What is left out where it is None is there with a value only.
    later = {
        f.name: _field_reader(f, _present(types[f.name]) if _added(f) else types[f.name])
        for f in stored
        if _lacked(f)
    }

    def read(form: Any, others: Mapping[str, Any] | None = None) -> Any:
        if not isinstance(form, dict):
            raise _unexpected(form, "an object")
        for name in readers:
            if name not in form:
                raise FormError(name, "is missing")
        known = {**readers, **{name: of for name, of in later.items() if name in form}}
        values = {name: _inside(name, of, form[name]) for name, of in known.items()}
        return kind(**values, **(others or {}))

    return read


def _field_reader(field: Field[Any], kind: Any) -> _Reader:
    if "read" not in field.metadata:
        return _reader(kind)
    return _reading(field.metadata["read"])


def _added(field: Field[Any]) -> bool:
    return "added" in field.metadata


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _lacked(field: Field[Any]) -> bool:
    """Whether a form may lack it."""
    return _added(field) or "later" in field.metadata


def _present(kind: Any) -> Any:
    """The type of a value that is there, of one that may be None."""
    if NoneType not in get_args(kind):
        return kind
    (present,) = [option for option in get_args(kind) if option is not NoneType]
    return present


def _inside(name: str, read: _Reader, form: Any) -> Any:
    try:
        return read(form)
    except FormError as error:
        raise error.inside(name) from error


def _unexpected(form: Any, noun: str) -> FormError:
    text = repr(form)
    return FormError("", f"is {text[:40] + '…' if len(text) > 40 else text}, not {noun}")
