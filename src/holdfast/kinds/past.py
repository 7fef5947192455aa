"""How rules stood in the versions of a profile, as far as their files tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from holdfast.kinds.examine import Examiner, Version
from holdfast.model.commits import Commit
from holdfast.model.errors import MissingFileError
from holdfast.model.explanation import ChangedRows, Event, Past, Stretch
from holdfast.model.grammar import Rule
from holdfast.model.ranking import Stability
from holdfast.store import Store

LOOKED_BACK = 1_000
"""So many versions are looked back at: what was before them is reported as not known."""

Asked = tuple[Examiner[Any], Rule]


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
    for number in range(version, max(0, version - looked_back), -1):
        at = Version(store, store.read(number))
        if most is not None and read > most:
            break
        for place, (examiner, rule) in enumerate(asked):
            source = (place, examiner.source(at, rule))
            if source not in known:
                known[source] = _held(examiner, at, rule, now=number == version)
            verdicts[place].append((at.commit, known[source]))
        read += at.read
    tables = [rule.tables for _, rule in asked]
    return [_past(each[::-1], of) for each, of in zip(verdicts, tables, strict=True)]


def _held(examiner: Examiner[Any], at: Version, rule: Rule, now: bool) -> bool | None:
    """Whether a rule held. Files that only earlier versions have may be gone, but none of the
    version that is asked."""
    try:
        return examiner.held(at, rule)
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
            each.first: [
                rows
                for version in range(each.first + 1, each.last + 1)
                if (rows := _changed(by_version[version], tables)) is not None
            ]
            for each in stretches
            if each.holds
        }
        now = tried[last.first]
        survived = sum(map(len, tried.values()))
        known_from = next(each.first for each in stretches if each.holds is not None)
        stability = Stability(len(now), sum(now), survived, broke, last.first, known_from)
    return Past(tuple(stretches), _event(by_version[last.first]), at_least, broke, stability)


def _changed(commit: Commit, tables: Sequence[str]) -> int | None:
    """How many rows of some tables a batch changed; None: it was about others."""
    mine = [each.number for each in _event(commit).tables if each.table in tables]
    return sum(mine) if mine else None


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
