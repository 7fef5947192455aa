"""When rules held: in the files of all versions, for a few rules (:func:`pasts`), and in what the
changes of versions tell, for all constraints that ever came or went (:func:`lifetimes`).

A constraint that no change names has held since its kind was first looked for. A batch lists at
most so many changes of a kind, so a lifetime may begin or end unseen: where a list was cut, one
that is not there any more ended at the last version that did so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from holdfast.model.changes import KindChanges
from holdfast.model.commits import Commit
from holdfast.model.errors import MissingFileError
from holdfast.model.explanation import ChangedRows, Event, Past, Stretch
from holdfast.model.grammar import Rule
from holdfast.model.ranking import Stability
from holdfast.model.records import JsonObject
from holdfast.model.versions import Entry
from holdfast.rules.version import Version
from holdfast.store import Store

LOOKED_BACK = 1_000
"""So many versions are looked back at: what was before them is reported as not known."""

MOST = 5_000
"""So many lifetimes of a table are told, those of the latest changes first."""


class Reader(Protocol):
    """What a version says of rules of one kind."""

    def source(self, version: Version, rule: Any) -> Any:
        """What the answer of :meth:`held` depends on."""

    def held(self, version: Version, rule: Any) -> bool | None:
        """Whether a rule held; None: the version says neither."""


Asked = tuple[Reader, Rule]


def pasts(
    store: Store,
    version: int,
    asked: Sequence[Asked],
    looked_back: int = LOOKED_BACK,
    most: int | None = None,
) -> list[Past]:
    """The past of each rule up to a version: of so many versions, and with ``most`` of no more
    than that number of minimal sets, because a table may have a million in each."""
    verdicts: list[list[tuple[Commit, bool | None]]] = [[] for _ in asked]
    known: dict[Any, bool | None] = {}
    read = 0
    for number in range(version, max(store.first() - 1, version - looked_back), -1):
        at = Version(store, store.read(number))
        if most is not None and read > most:
            break
        for place, (reader, rule) in enumerate(asked):
            if not _has(at.commit, rule):
                verdicts[place].append((at.commit, None))
                continue
            source = (place, reader.source(at, rule))
            if source not in known:
                known[source] = _held(reader, at, rule, now=number == version)
            verdicts[place].append((at.commit, known[source]))
        read += at.read
    tables = [rule.tables for _, rule in asked]
    return [_past(of_rule[::-1], names) for of_rule, names in zip(verdicts, tables, strict=True)]


def _has(commit: Commit, rule: Rule) -> bool:
    """Whether a version has the columns that a rule is about: they may have joined since."""
    return all(
        table in commit.tables and column in commit.table(table).columns.names
        for table, column in rule.places
    )


def _held(reader: Reader, at: Version, rule: Rule, now: bool) -> bool | None:
    """Whether a rule held. Files that only earlier versions have may be gone, but none of the
    version that is asked."""
    try:
        return reader.held(at, rule)
    except MissingFileError:
        if now:
            raise
        return None


def _past(verdicts: Sequence[tuple[Commit, bool | None]], tables: Sequence[str]) -> Past:
    """What a rule did, version by version, oldest first."""
    stretches: list[Stretch] = []
    for commit, holds in verdicts:
        if stretches and stretches[-1].holds == holds:
            stretches[-1] = Stretch(stretches[-1].first, commit.version, holds)
        else:
            stretches.append(Stretch(commit.version, commit.version, holds))
    pairs = list(pairwise(stretches))
    broke = sum(one.holds is True and two.holds is False for one, two in pairs)
    if not stretches or stretches[-1].holds is None:
        return Past(tuple(stretches), broke=broke)
    last = stretches[-1]
    by_version = {commit.version: commit for commit, _ in verdicts}
    before = stretches[-2].holds if len(stretches) > 1 else None
    at_least = before is None and last.first > 1
    stability = None
    if last.holds:
        tried = {
            stretch.first: [
                rows
                for version in range(stretch.first + 1, stretch.last + 1)
                if (rows := _changed(by_version[version], tables)) is not None
            ]
            for stretch in stretches
            if stretch.holds
        }
        now = tried[last.first]
        survived = sum(map(len, tried.values()))
        known_from = next(stretch.first for stretch in stretches if stretch.holds is not None)
        stability = Stability(len(now), sum(now), survived, broke, last.first, known_from)
    return Past(tuple(stretches), _event(by_version[last.first]), at_least, broke, stability)


def _changed(commit: Commit, tables: Sequence[str]) -> int | None:
    """How many rows of some tables a batch changed; None: it was about others."""
    numbers = [rows.number for rows in _event(commit).tables if rows.table in tables]
    return sum(numbers) if numbers else None


def _event(commit: Commit) -> Event:
    changes = commit.changes
    if changes is None:
        return Event(commit.version, commit.created)
    # The changes of one table stand for themselves.
    by_table = changes["tables"] if "tables" in changes else {changes["table"]: changes}
    rows = tuple(
        ChangedRows(name, each["inserted"], each["deleted"], each["updated"])
        for name, each in by_table.items()
    )
    return Event(commit.version, commit.created, changes["batch_id"], rows)


# In the changes of versions


@dataclass(frozen=True)
class LifeSpan:
    """A stretch of versions over which a constraint held."""

    start: int
    end: int | None = None  # the version that ended it; None: it holds
    how: str | None = None  # broken, superseded or unchecked

    def to_list(self) -> list[Any]:
        """The JSON form."""
        return [self.start, self.end, self.how]


@dataclass(frozen=True)
class Lifetime:
    """When one constraint of a table held."""

    field: str  # its kind, as JSON names it
    text: str
    spans: tuple[LifeSpan, ...]

    @property
    def latest(self) -> int:
        """The last version that changed anything about it."""
        last = self.spans[-1]
        return last.start if last.end is None else last.end

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        spans = [span.to_list() for span in self.spans]
        return {"field": self.field, "text": self.text, "spans": spans}


def lifetimes(
    entries: Iterable[Entry], present: Mapping[str, Mapping[str, Collection[str]]]
) -> dict[str, list[Lifetime]]:
    """The lifetimes that changes tell of, per table, those that changed last first.

    ``present`` has what holds now, by table and kind, where all of it is known.
    """
    spans: dict[tuple[str, str, str], list[LifeSpan]] = {}
    first: dict[tuple[str, str], int] = {}
    cut: dict[tuple[str, str], int] = {}
    for entry in entries:
        for table, counts in entry.counts.items():
            for field in counts:
                first.setdefault((table, field), entry.version)
        for changes in entry.by_table.values():
            for field, each in changes.kinds.items():
                since = first.setdefault((changes.table, field), 1)
                for text, how in _ends_and_starts(each):
                    _step(
                        spans.setdefault((changes.table, field, text), []),
                        entry.version,
                        how,
                        since,
                    )
                if sum(each.counts[how] for how in _ENDS) > len(each.lost):
                    cut[changes.table, field] = entry.version
    by_table: dict[str, list[Lifetime]] = {}
    for (table, field, text), of_one in spans.items():
        known = present.get(table, {}).get(field)
        if of_one[-1].end is None and known is not None and text not in known:
            start = of_one[-1].start
            of_one[-1] = LifeSpan(start, max(cut.get((table, field), start), start), "broken")
        by_table.setdefault(table, []).append(Lifetime(field, text, tuple(of_one)))
    return {
        table: sorted(lifetimes, key=lambda life: (-life.latest, len(life.text), life.text))[:MOST]
        for table, lifetimes in by_table.items()
    }


_ENDS = ("broken", "superseded", "unchecked")


def _ends_and_starts(changes: KindChanges) -> Iterable[tuple[str, str]]:
    """What ended and then what began."""
    yield from ((each.constraint.body, "broken") for each in changes.broken)
    yield from ((each.constraint.body, "superseded") for each in changes.superseded)
    yield from ((each.body, "unchecked") for each in changes.unchecked)
    yield from ((each.body, "gained") for each in changes.gained)


def _step(spans: list[LifeSpan], version: int, how: str, since: int) -> None:
    is_open = bool(spans) and spans[-1].end is None
    if how == "gained":
        if not is_open:
            spans.append(LifeSpan(version))
    elif is_open:
        spans[-1] = LifeSpan(spans[-1].start, version, how)
    elif not spans:
        spans.append(LifeSpan(since, version, how))
    else:  # that it was gained again was not listed
        spans.append(LifeSpan(spans[-1].end or since, version, how))
