"""All that the report page shows, as one JSON document: a version, its lists, and its history.

It is made of the forms that ``--format json`` prints, each constraint with its text beside, so that
a kind of constraint that the page has never heard of is a list like any other. ``docs/serve.md``
describes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from holdfast.kinds import registry
from holdfast.kinds.parts import Part, TablePart
from holdfast.kinds.ranking import TableRanking, ranked
from holdfast.model.changes import Changes, KindChanges
from holdfast.model.columns import ColumnFacts
from holdfast.model.constraints import Row
from holdfast.model.expectations import ExpectationChange, Group, Standing
from holdfast.model.near import NearList, Suspect, Suspects, has_suspects
from holdfast.model.options import Settings
from holdfast.model.ranking import Ranked
from holdfast.model.records import ADDED, JsonObject, Serializable
from holdfast.model.versions import Entry
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.report.standing import how_far
from holdfast.rules.history import lifetimes
from holdfast.screen.text import count

LIMIT = 10_000
"""So many constraints of a list are on the page unless told; how many there are is told beside."""

DETAILED = 200
"""So many of the latest versions have their changes listed, each with its rows; the others have
the numbers."""

LISTED = 20
"""So many of each list of a change are on the page."""


GROUPS = 3
"""So many groups of rows that violate an expected rule are on the page."""

LOOKED_THROUGH = 4_000_000
"""So many rows of all tables, each times its near rules, a report looks through for suspects, which
takes a few seconds."""

LONGEST = 2**53 - 1
"""The largest whole number that JavaScript holds."""


@dataclass(frozen=True)
class Points:
    """Some columns of some rows as numbers, for plots: what each counts, and the numbers."""

    scales: dict[str, str]  # number, date or time (milliseconds since 1970)
    columns: dict[str, list[float | None]]
    rows: int  # of how many rows they are

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        return {"scales": self.scales, "columns": self.columns, "rows": self.rows}


def document(
    name: str,
    snapshot: Snapshot,
    entries: Sequence[Entry],
    *,
    limit: int | None = LIMIT,
    points: Mapping[str, Points] | None = None,
    values: bool = True,
    ranking: Mapping[str, TableRanking] | None = None,
    expectations: Sequence[Standing] = (),
    suspects: Mapping[str, Suspects] | None = None,
) -> JsonObject:
    """The document of a version. ``values``: whether cells of the data are in it: rows that show
    something, the ends of columns, ``points`` for plots, and ``suspects``, by table. ``ranking``:
    what matters first; None: whatever batches say of it. ``expectations``: those of the version."""
    first_of = ranked(snapshot, snapshot.tables) if ranking is None else ranking
    entries = entries if values else [each.without_values for each in entries]
    lists = {
        name: _lists(table, snapshot.options, limit, values, first_of[name].kinds)
        for name, table in snapshot.tables.items()
    }
    tables = [
        _table(
            table,
            snapshot,
            lists[name],
            (points or {}).get(name) if values else None,
            (suspects or {}).get(name) if values else None,
            values,
            first_of[name],
        )
        for name, table in snapshot.tables.items()
    ]
    across = [
        _list(part, part.listed(snapshot), limit, values, worthwhile=kind.worthwhile)
        for kind, parts in registry.profile_parts().items()
        if kind.name in snapshot.found
        for part in parts
    ]
    whole = {name: _present([*own, *across]) for name, own in lists.items()}
    by_table = lifetimes(entries, whole)
    first = max(0, len(entries) - DETAILED)
    return {
        "name": name,
        "version": snapshot.version,
        "created": snapshot.created,
        "nulls": snapshot.options["nulls"],
        "kinds": [
            {"field": kind.field, "nouns": list(kind.nouns)}
            for kind in registry.named(snapshot.options["kinds"])
        ],
        "values": values,
        "expectations": [_expectation(each if values else each.masked) for each in expectations],
        "tables": tables,
        "lists": [part.to_dict() for part in across],
        "versions": [
            _version(entry, place >= first, values) for place, entry in enumerate(entries)
        ],
        "lives": {table: [each.to_dict() for each in some] for table, some in by_table.items()},
    }


def ordered_columns(snapshot: Snapshot, limit: int | None = LIMIT) -> dict[str, list[str]]:
    """The columns of each table that a listed rule puts in order: what plots need of the rows."""
    found = {}
    for table in snapshot.tables.values():
        names: dict[str, None] = {}
        for part in _parts(table):
            for each in part.listed(table)[:limit]:
                rule = getattr(each, "order_rule", None)
                names |= {} if rule is None else dict.fromkeys((rule.lhs, rule.rhs))
        if names:
            found[table.name] = list(names)
    return found


def _parts(table: TableSnapshot) -> list[TablePart]:
    return [
        part
        for kind, parts in registry.table_parts().items()
        if kind.name in table.found
        for part in parts
    ]


def _table(
    table: TableSnapshot,
    snapshot: Snapshot,
    lists: Sequence[ListOnPage],
    points: Points | None,
    suspects: Suspects | None,
    values: bool,
    ranking: TableRanking,
) -> JsonObject:
    left_out = {
        kind.nouns[1]: kind.left_out(table)
        for kind in registry.named(snapshot.options["kinds"])
        if kind.name not in table.found
    }
    return {
        "name": table.name,
        "rows": table.rows,
        "duplicates": table.duplicates,
        "duplicated": list(table.duplicated) if values else [],
        "columns": _columns(table, values),
        "grain": ranking.grain.to_dict(),
        "lists": [part.to_dict() for part in lists],
        "near": None if table.near is None else _near(table.near),
        "suspects": None if suspects is None else _suspects(suspects),
        "left_out": {nouns: why for nouns, why in left_out.items() if why},
        "points": None if points is None else points.to_dict(),
    }


def _expectation(each: Standing) -> JsonObject:
    return {
        **each.to_dict(),
        "text": each.rule,
        "tables": list(each.expectation.tables),
        "violated_by": None if each.violations == 0 else how_far(each),
    }


def _near(listed: NearList) -> JsonObject:
    """The rules that nearly hold."""
    rules = [
        {
            **each.to_dict(),
            "text": each.rule.body,
            "sentence": each.sentence,
            "lhs": list(each.lhs),
            "rhs": each.rhs,
            "suspects": has_suspects(each.rule),
        }
        for each in listed.listed
    ]
    return {"rules": rules, "more": listed.unlisted}


def _suspects(found: Suspects) -> JsonObject:
    """The cells that they suspect."""
    return {"total": found.total, "cells": [_suspect(each) for each in found.cells]}


def _suspect(cell: Suspect) -> JsonObject:
    return {**cell.to_dict(), "suspicion": cell.suspicion}


def _columns(table: TableSnapshot, values: bool) -> list[JsonObject]:
    """The columns, each with what is known of it."""
    facts = table.facts or [
        ColumnFacts(table.name, name, kind)
        for name, kind in zip(table.columns, table.types, strict=True)
    ]
    return [{"name": each.name, "type": each.type, "facts": _facts(each, values)} for each in facts]


def _facts(column: ColumnFacts, values: bool) -> JsonObject:
    if column.nulls is None:
        return {}
    form: JsonObject = {
        "nulls": column.nulls,
        "distinct": column.distinct,
        "estimated": column.estimated,
    }
    ends = {"minimum": column.minimum, "maximum": column.maximum} if values else {}
    return form | {name: _readable(end) for name, end in ends.items()}


def _readable(value: Any) -> Any:
    """A value as a browser reads it: it would round a longer whole number."""
    return str(value) if isinstance(value, int) and abs(value) > LONGEST else value


@dataclass(frozen=True)
class ListOnPage(Serializable):
    """The entries of a list that are on the page, and how many it has in all."""

    name: str
    field: str
    nouns: tuple[str, str]
    total: int
    entries: list[JsonObject]
    note: str | None = dataclass_field(default=None, metadata=ADDED)
    worthwhile: float | None = dataclass_field(default=None, metadata=ADDED)  # the least good score


def _lists(
    table: TableSnapshot,
    options: Settings,
    limit: int | None,
    values: bool,
    ranked_first: Mapping[str, Sequence[Ranked]],
) -> list[ListOnPage]:
    """The lists of a table."""
    return [
        _list(
            part,
            part.whole(table),
            limit,
            values,
            ranked_first.get(part.field, ()),
            part.limited(table, options).strip(" ()"),
        )
        for part in _parts(table)
    ]


def _list(
    part: Part,
    found: Sequence[Any],
    limit: int | None,
    values: bool,
    first: Sequence[Ranked] = (),
    note: str | None = None,
    worthwhile: float | None = None,
) -> ListOnPage:
    """A list: what is ranked first, then the others in their own order."""
    if not values:
        found = [each for each in found if not each.tells_values]
        first = [each for each in first if not each.constraint.tells_values]
    entries = [{**part.described(each.constraint), "rank": _rank(each)} for each in first[:limit]]
    known = {each["text"] for each in entries}
    most = None if limit is None else limit + len(known)  # all that is ranked may be among them
    for each in found[:most]:
        form = part.described(each)
        if form.get("error") or form["text"] not in known:
            entries.append(form)
    entries = entries[:limit]
    if not values:
        entries = [{**each, "witness": None} if "witness" in each else each for each in entries]
    total = len(found)
    return ListOnPage(part.name, part.field, part.nouns, total, entries, note, worthwhile)


def _rank(each: Ranked) -> JsonObject:
    form: JsonObject = {"score": each.score, "reasons": list(each.reasons)}
    if each.implied_by:
        form["implied_by"] = [other.body for other in each.implied_by]
    if each.by_chance:
        form["by_chance"] = True
    if each.stability is not None:
        form["stability"] = each.stability.sentence
    return form


def _present(lists: Sequence[ListOnPage]) -> dict[str, set[str]]:
    """The texts of what holds, of those lists that are whole."""
    return {
        part.field: {str(entry["text"]) for entry in part.entries if not entry.get("error")}
        for part in lists
        if part.total == len(part.entries)
    }


def _version(entry: Entry, detailed: bool, values: bool) -> JsonObject:
    happened = entry.by_table
    tables = list(happened or entry.tables)
    numbers = {table: {"rows": entry.tables[table], **entry.counts[table]} for table in tables}
    return {
        "version": entry.version,
        "created": entry.created,
        "what": None if happened else entry.without_batch,
        "numbers": numbers,
        "seconds": {} if entry.changes is None else entry.changes.seconds,
        "batches": [_batch(each, detailed, values) for each in happened.values()],
    }


def _batch(changes: Changes, detailed: bool, values: bool) -> JsonObject:
    return {
        "table": changes.table,
        "batch_id": changes.batch_id,
        "inserted": changes.inserted,
        "deleted": changes.deleted,
        "updated": changes.updated,
        "unchanged": changes.unchanged,
        "quarantined": None if changes.quarantined is None else changes.quarantined.to_dict(),
        "rows": changes.rows,
        "duplicates": changes.duplicates,
        "duplicated": list(changes.duplicated) if detailed and values else [],
        "expected": None
        if changes.expectations is None
        else _expected(changes.expectations, detailed, values),
        "near": [each.sentence for each in changes.near],
        "changes": {
            kind.field: _changed(changes.kinds[kind.field], detailed, values)
            for kind in registry.named_in(changes.kinds)
        },
    }


def _expected(changes: Sequence[ExpectationChange], detailed: bool, values: bool) -> JsonObject:
    """What became of the expected rules: those that do not hold, and how many do."""
    violated = [each for each in changes if not each.after.holds]
    return {
        "holding": len(changes) - len(violated),
        "violated": [
            {
                "text": each.rule,
                "name": each.after.expectation.name,
                "severity": each.after.expectation.severity,
                "breaks": each.breaks,
                "violated_by": how_far(each.after if values else each.after.masked),
                "columns": list(each.after.expectation.constraint.involved),
                "groups": [_group(each, group) for group in each.groups[:GROUPS]]
                if detailed and values
                else [],
            }
            for each in violated
        ],
    }


def _group(change: ExpectationChange, group: Group) -> JsonObject:
    """Rows that violate a rule together."""
    sharing = registry.of(change.after.expectation.constraint).sharing
    about = f"{count(group.number, 'row')} {sharing}" if sharing else None
    return {**group.to_dict(), "about": about}


def _changed(changes: KindChanges, detailed: bool, values: bool) -> JsonObject:
    form: JsonObject = {"counts": changes.counts}
    if not detailed or not changes.any:
        return form

    def rows(witness: tuple[Row, ...]) -> list[Row]:
        return list(witness) if values else []

    return {
        **form,
        "gained": [{"text": each.body} for each in changes.gained[:LISTED]],
        "broken": [
            {
                **each.constraint.to_dict(),
                "text": each.constraint.body,
                "witness": rows(each.witness),
                "repeated": each.repeated,
            }
            for each in changes.broken[:LISTED]
        ],
        "superseded": [
            {"text": each.constraint.body, "by": each.by.body}
            for each in changes.superseded[:LISTED]
        ],
    }
