"""What occurs in a column, as far as that is few: its values, and the shapes of its texts.

A sample lists what occurs, or, where that is ``more`` than a limit, enough of it to show that it is
more. Rows that come add to it. Rows that go are counted down, and only where what is left shows
nothing any more the column has to be looked at again. So what a sample says is exact, at a cost
that follows the batch.

A value is known by its *code*, the words of its cells as one. A shape is shown by a few values that
have it: of these, and of values that are more than the limit, ``rows`` is a lower bound.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

Entry = tuple[int, int, str | None]
"""A code, how many rows have it, and its label: of a value how rules write it (None: they cannot),
of a shape the pattern that texts of that shape match (empty: there is none)."""


@dataclass(frozen=True)
class Listing:
    """How much is listed: ``most`` values, or shapes, each with so many values that show it."""

    most: int
    each: int = 0  # 0: values, which show themselves

    @property
    def kept(self) -> int:
        """So many are kept where there are more."""
        return self.most + 8


VALUES: Final = Listing(32)
SHAPES: Final = Listing(8, 4)


@dataclass(frozen=True)
class Sample:
    """What occurs in some rows of a column."""

    entries: tuple[Entry, ...] = ()
    more: bool = False

    @property
    def labels(self) -> set[str | None]:
        """All labels."""
        return {label for _, _, label in self.entries}

    @property
    def unlabelled(self) -> Sample:
        """The same without its labels: values that are not kept."""
        return Sample(tuple((code, rows, None) for code, rows, _ in self.entries), self.more)

    def size(self, listing: Listing) -> int:
        """How many values or shapes are listed."""
        return len(self.labels) if listing.each else len(self.entries)

    @staticmethod
    def of(entries: Iterable[Entry], listing: Listing, more: bool = False) -> Sample:
        """Of some entries, of which those that come first are kept where there are too many."""
        entries = list(entries)
        if more or Sample(tuple(entries)).size(listing) > listing.most:
            few = _few([_without_label(each, listing) for each in entries], listing, 1)
            return Sample(few, True)
        if listing.each:
            return Sample(_few(entries, listing, listing.each))
        return Sample(tuple(sorted(entries)))

    def joined(self, newer: Sample, listing: Listing) -> Sample:
        """What occurs in these rows and in others, which tend to stay longer."""
        more = self.more or newer.more
        rows: dict[tuple[int, str | None], int] = {}
        for sample in (newer, self):
            for entry in sample.entries:
                code, number, label = _without_label(entry, listing) if more else entry
                rows[code, label] = rows.get((code, label), 0) + number
        entries = ((code, number, label) for (code, label), number in rows.items())
        return Sample.of(entries, listing, more)

    def without(self, gone: Mapping[int, int]) -> Sample:
        """What is left when rows go, by their codes."""
        left = ((code, rows - gone.get(code, 0), label) for code, rows, label in self.entries)
        return Sample(tuple(entry for entry in left if entry[1] > 0), self.more)

    def shows(self, before: Sample, listing: Listing) -> bool:
        """Whether it is known what occurs now, where ``before`` was what did, and this is what is
        left of it."""
        if self.more:
            return self.size(listing) > listing.most
        return not listing.each or before.labels <= self.labels

    def says_the_same(self, other: Sample, listing: Listing) -> bool:
        """Whether two samples say the same: they may show it by other values."""
        if self.more or other.more:
            return self.more == other.more
        return self.labels == other.labels if listing.each else self == other


def _few(entries: Iterable[Entry], listing: Listing, each: int) -> tuple[Entry, ...]:
    """As much as is kept, those that come first, and so many of each shape."""
    if not listing.each:
        return tuple(entries)[: listing.kept]
    number: Counter[str | None] = Counter()
    few = []
    for entry in entries:
        is_new = entry[2] not in number
        if number[entry[2]] < each and not (is_new and len(number) > listing.kept):
            few.append(entry)
        number[entry[2]] += 1
    return tuple(few)


def _without_label(entry: Entry, listing: Listing) -> Entry:
    """An entry that is to show only that there are many; nobody reads its label."""
    code, rows, label = entry
    if not listing.each:
        return code, rows, None
    if label is None or _SHORT.fullmatch(label):
        return entry
    return code, rows, f"#{zlib.crc32(label.encode()):08x}"


_SHORT = re.compile("#[0-9a-f]{8}")
"""No pattern looks like this: letters and digits are in brackets or braces there."""


# Shapes

EMAIL = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}"
UUID = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
URL = r"https?://[!-~]+"
DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"

NAMES: Final = {EMAIL: "e-mail addresses", UUID: "UUIDs", URL: "web addresses", DATE: "ISO dates"}
"""What people call some patterns."""

_NAMED = [re.compile(pattern) for pattern in (EMAIL, UUID, URL)]

LONGEST = 64
"""Bytes of the longest text that has a shape of its own."""

LONGEST_NAMED = 256
"""Bytes of the longest e-mail or web address that is taken for one."""

_SPECIAL = frozenset("\\.+*?()|[]{}^$")
_RUN = re.compile(r"(\[[^]]*\]|\\.|[^\\])(?:\{(\d+)\})?", re.DOTALL)


def shape_of(text: str) -> str:
    """The pattern of all texts that look like this one; empty where that says nothing.

    >>> shape_of("AB-1234"), shape_of("ann@example.org") == EMAIL, shape_of("Zoë")
    ('[A-Z]{2}-[0-9]{4}', True, '')
    """
    if not text.isascii():
        return ""
    if len(text) <= LONGEST_NAMED:
        for pattern in _NAMED:
            if pattern.fullmatch(text):
                return pattern.pattern
    if not 0 < len(text) <= LONGEST or not text.isprintable():
        return ""
    runs: list[tuple[str, int]] = []
    for character in text:
        class_ = _class(character)
        number = runs.pop()[1] if runs and runs[-1][0] == class_ else 0
        runs.append((class_, number + 1))
    return "".join(class_ + (f"{{{number}}}" if number > 1 else "") for class_, number in runs)


def _class(character: str) -> str:
    if character.isdigit():
        return "[0-9]"
    if character.isalpha():
        return "[A-Z]" if character.isupper() else "[a-z]"
    return f"\\{character}" if character in _SPECIAL else character


def pattern_of(sample: Sample) -> str | None:
    """The one pattern of all texts of a column: of shapes that differ in lengths alone, one; None:
    there is none.

    >>> pattern_of(Sample(((1, 1, "[A-Z]-[0-9]{2}"), (2, 1, "[A-Z]-[0-9]{3}"))))
    '[A-Z]-[0-9]{2,3}'
    """
    shapes = {label for label in sample.labels if label}
    if sample.more or not shapes or len(shapes) < len(sample.labels):
        return None
    if len(shapes) == 1:
        return shapes.pop()
    if shapes & {EMAIL, UUID, URL}:
        return None
    runs = [_RUN.findall(shape) for shape in shapes]
    if len({tuple(class_ for class_, _ in each) for each in runs}) > 1:
        return None
    pattern, covered = "", 1
    for of_run in zip(*runs, strict=True):
        lengths = sorted(int(number or 1) for _, number in of_run)
        low, high = lengths[0], lengths[-1]
        times = f"{{{low},{high}}}" if low < high else f"{{{low}}}" if low > 1 else ""
        pattern += of_run[0][0] + times
        covered *= high - low + 1
    # So a column with more shapes than are listed has one that the pattern does not cover.
    return pattern if covered <= SHAPES.most else None


_RUNS = re.compile(r"((\[(A-Z|a-z|0-9)\]|\\.|[^\\.+*?()|[\]{}^$])(\{\d+(,\d+)?\})?)+")
_REPRESENTATIVES = {"[A-Z]": "A", "[a-z]": "a", "[0-9]": "0"}


def covers(pattern: str, sample: Sample) -> bool | None:
    """Whether a pattern matches all texts of a column, as far as their shapes tell.

    >>> covers("[A-Z]{1,3}", Sample(((1, 1, "[A-Z]{2}"),))), covers("[AB]", Sample())
    (True, None)
    """
    named = (EMAIL, UUID, URL)
    if pattern not in named and not _RUNS.fullmatch(pattern):
        return None
    if sample.more:
        return False if pattern in named or _shapes_in(pattern) <= SHAPES.most else None
    shapes = {label or "" for label in sample.labels}
    if pattern in named:
        return shapes <= {pattern}
    return all(
        shape not in ("", *named) and re.fullmatch(pattern, _representative(shape)) is not None
        for shape in shapes
    )


def _shapes_in(pattern: str) -> int:
    """How many shapes a pattern covers."""
    return prod(int(high) - int(low) + 1 for low, high in re.findall(r"\{(\d+),(\d+)\}", pattern))


def _representative(shape: str) -> str:
    """A text of a shape: what matches one of them matches them all."""
    return "".join(
        _REPRESENTATIVES.get(class_, class_[-1]) * int(number or 1)
        for class_, number in _RUN.findall(shape)
    )
