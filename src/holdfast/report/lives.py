"""The lives of constraints: from which version to which each one held, as changes tell it.

A constraint that no change names has held since its kind was first looked for; the page adds those
itself. A batch lists at most so many changes of a kind, so a life may begin or end unseen: where a
list was cut, one that is not there any more ended at the last version that did so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model.changes import KindChanges
from holdfast.model.records import JsonObject
from holdfast.model.versions import Entry

MOST = 5_000
"""So many lives of a table are kept, those of the latest changes first."""


@dataclass(frozen=True)
class Span:
    """A stretch of versions over which a constraint held."""

    start: int
    end: int | None = None  # the version that ended it; None: it holds
    how: str | None = None  # broken, superseded or unchecked

    def to_list(self) -> list[Any]:
        """The JSON form."""
        return [self.start, self.end, self.how]


@dataclass(frozen=True)
class Life:
    """When one constraint of a table held."""

    field: str  # its kind, as JSON names it
    text: str
    spans: tuple[Span, ...]

    @property
    def latest(self) -> int:
        """The last version that changed anything about it."""
        last = self.spans[-1]
        return last.start if last.end is None else last.end

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        spans = [each.to_list() for each in self.spans]
        return {"field": self.field, "text": self.text, "spans": spans}


def lives(
    entries: Iterable[Entry], present: Mapping[str, Mapping[str, Collection[str]]]
) -> dict[str, list[Life]]:
    """The lives that changes tell of, per table, those that changed last first.

    ``present`` has what holds now, by table and kind, where all of it is known.
    """
    spans: dict[tuple[str, str, str], list[Span]] = {}
    first: dict[tuple[str, str], int] = {}
    cut: dict[tuple[str, str], int] = {}
    for entry in entries:
        for table, counts in entry.counts.items():
            for field in counts:
                first.setdefault((table, field), entry.version)
        for changes in entry.by_table.values():
            for field, each in changes.kinds.items():
                since = first.setdefault((changes.table, field), 1)
                for text, how in _events(each):
                    held = spans.setdefault((changes.table, field, text), [])
                    _step(held, entry.version, how, since)
                if sum(each.counts[how] for how in _ENDS) > len(each.lost):
                    cut[changes.table, field] = entry.version
    found: dict[str, list[Life]] = {}
    for (table, field, text), held in spans.items():
        known = present.get(table, {}).get(field)
        if held[-1].end is None and known is not None and text not in known:
            ended = max(cut.get((table, field), held[-1].start), held[-1].start)
            held[-1] = Span(held[-1].start, ended, "broken")
        found.setdefault(table, []).append(Life(field, text, tuple(held)))
    return {
        table: sorted(some, key=lambda life: (-life.latest, len(life.text), life.text))[:MOST]
        for table, some in found.items()
    }


_ENDS = ("broken", "superseded", "unchecked")


def _events(changes: KindChanges) -> Iterable[tuple[str, str]]:
    """What ended and then what began."""
    yield from ((each.constraint.body, "broken") for each in changes.broken)
    yield from ((each.constraint.body, "superseded") for each in changes.superseded)
    yield from ((each.body, "unchecked") for each in changes.unchecked)
    yield from ((each.body, "gained") for each in changes.gained)


def _step(held: list[Span], version: int, how: str, since: int) -> None:
    if how == "gained":
        if not held or held[-1].end is not None:
            held.append(Span(version))
    elif held and held[-1].end is None:
        held[-1] = Span(held[-1].start, version, how)
    elif not held:
        held.append(Span(since, version, how))
    else:  # that it was gained again was not listed
        held.append(Span(held[-1].end or since, version, how))
