"""What a feed is, to those who follow it.

A feed has *positions*, and is read in *steps*: from a position to a later one, at most as far as
the head. A position is a JSON object that only its feed understands. A commit stores it together
with the rows of its step, so a feed keeps nothing itself: whatever happens, the next step begins
at the position of the last commit.

An adapter is a module with a function ``opened(address, given)`` that returns a :class:`Feed`, and
a line in :mod:`holdfast.feeds.addresses`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.input.change_rows import ChangeRows
from holdfast.input.row_input import Columns
from holdfast.input.sources import Source
from holdfast.model.records import JsonObject
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call
from holdfast.tasks.event_rows import PLACEHOLDER

Run = Callable[[Sequence[Call]], list[list[TaskResult]]]
"""Runs tasks on workers."""

Position = JsonObject
"""A place in a feed. Two are the same place if they are equal; nothing else is known of them."""


@dataclass(frozen=True)
class Bounds:
    """How much a step may read at most; a feed heeds those that mean something to it. A step that
    cannot be divided, such as one version or transaction, is read whole."""

    rows: int | None = None
    files: int | None = None
    versions: int | None = None


@dataclass(frozen=True)
class EventForm:
    """How events of Debezium are written."""

    encodings: Mapping[str, str] = field(default_factory=dict)
    """Of columns whose values no schema block explains, such as ``base64:2`` or ``us``."""
    placeholder: str = PLACEHOLDER
    """What stands for a large value that did not change."""


@dataclass(frozen=True)
class Given:
    """What a caller says of a feed besides its address, and what is known of the table."""

    table: str
    columns: Columns  # of the table
    row_key: tuple[str, ...] = ()
    op_column: str | None = None  # None: as the feed usually has it
    ops: Mapping[str, int] = field(default_factory=dict)  # none: as the feed usually has them
    order: tuple[str, ...] = ()
    reading: Source = field(default_factory=lambda: Source(".", "csv"))  # how files are read
    options: Mapping[str, str] = field(default_factory=dict)  # of the adapter, by their names
    events: EventForm | None = None  # None: the feed has change rows, and no events of Debezium
    run: Run | None = None  # what feeds look at that is too much for the driver
    others: tuple[Given, ...] = ()  # further tables whose changes come in the same feed


@dataclass(frozen=True)
class Step:
    """What happened between two positions."""

    position: Position  # after it
    span: str  # what messages call it, such as "versions 4 to 9"
    changes: ChangeRows | None  # None: nothing changed, and only the position moves on
    others: Mapping[str, ChangeRows] = field(default_factory=dict)
    """What changed in further tables. All tables change in one version."""


class Feed(Protocol):
    """A source of changes. Making one opens no connection; what cannot be reached is a SourceError
    of :meth:`head` or :meth:`read`, without credentials in its message."""

    @property
    def address(self) -> str:
        """How it is written, without credentials."""

    @property
    def identity(self) -> JsonObject:
        """What must not change under the same name, without credentials: the path or topic, the
        number of partitions, the mapping. It is stored, and compared before every step."""

    @property
    def apart(self) -> bool:
        """Whether its tables may be at different moments of the source after a step."""

    def head(self) -> Position:
        """The newest position."""

    def read(self, after: Position | None, bounds: Bounds) -> Step | None:
        """What happened after a position (None: from the beginning), or None if nothing did. It
        only plans, though it may look at the rows in tasks (``Given.run``): they are read when the
        step is applied. A position that the feed cannot go on
        from, such as a version that was vacuumed, is a SourceError that says what to do."""

    def behind(self, after: Position | None) -> str:
        """How far a position is behind the head, such as "3 versions"; empty if it is not."""
