"""The JSON forms of what commands print: complete, and stable enough to build on.

Each constraint owns its own form, and each kind its lists; here they are put together.
``docs/json.md`` describes them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.kinds import registry
from holdfast.kinds.parts import Forms, complete_up_to
from holdfast.kinds.ranking import TableRanking
from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.constraints import AgreeSet
from holdfast.model.expectations import Expectation, ExpectationChange, Standing, Suggestion
from holdfast.model.near import NEAR, NearList
from holdfast.model.options import Settings
from holdfast.model.records import JsonObject, to_form
from holdfast.model.versions import Entry, TableDiff
from holdfast.report.snapshot import Snapshot, TableSnapshot

if TYPE_CHECKING:
    from holdfast.kinds.denial_constraints.predicate_listing import Predicates

_RANKED = 10
"""So many of each kind are shown as those that matter first."""

_TOKENS = 10_000
"""So many tokens of JSON are printed at a time."""


def show(
    snapshot: Snapshot,
    parts: Collection[str] | None = None,
    *,
    verbose: bool = False,
    sizes: dict[str, int] | None = None,
    limit: int | None = None,
    ranking: Mapping[str, TableRanking] | None = None,
) -> dict[str, Any]:
    """A version: of each table the asked-for parts (None: all), whole or, with a limit, the first
    of each list beside how many there are; and what matters first."""
    tables = {
        name: _table(table, snapshot.options, parts, verbose, limit)
        for name, table in snapshot.tables.items()
    }
    for name, table_ranking in (ranking or {}).items():
        tables[name] |= table_ranking.to_dict(_RANKED if limit is None else limit)
    form: JsonObject = {
        "version": snapshot.version,
        "nulls": snapshot.options["nulls"],
        "tables": tables,
    }
    lists: JsonObject = {}
    for kind, asked in registry.profile_parts(parts).items():
        for part in asked if kind.name in snapshot.found else ():
            lists |= part.form(snapshot)
    form |= _cut(lists, limit)
    if verbose:
        form |= {"created": snapshot.created, "options": snapshot.options, "bytes": sizes or {}}
    return form


def check(outcome: Changes | BatchChanges, kinds: Collection[str] | None = None) -> JsonObject:
    """What a batch would do, and whether that breaks something."""
    return {**outcome.to_dict(), "breaks": registry.breaks(outcome, kinds)}


def expected(changes: Iterable[ExpectationChange]) -> JsonObject:
    """Rules that were declared, and how they stand."""
    return {"expectations": [each.to_dict() for each in changes]}


def suggestions(offered: Iterable[Suggestion]) -> JsonObject:
    """Rules that could be declared, and why."""
    return {"suggestions": [each.to_dict() for each in offered]}


def expectations(standings: Iterable[Standing]) -> JsonObject:
    """The rules that are expected, and how they stand."""
    return {"expectations": [each.to_dict() for each in standings]}


def forgotten(gone: Expectation) -> JsonObject:
    """The rule that is expected no more."""
    return {"forgotten": to_form(gone)}


def predicates(chosen: Mapping[str, Predicates]) -> JsonObject:
    """What denial constraints compare in each table, and what today's rows would choose."""
    return {"tables": {name: each.to_dict() for name, each in chosen.items()}}


def history(entries: Sequence[Entry]) -> JsonObject:
    """All versions, oldest first, and how many before them expired."""
    expired = entries[0].version - 1 if entries else 0
    return {"expired": expired, "versions": [entry.to_dict() for entry in entries]}


def diff(one: int, two: int, tables: dict[str, TableDiff]) -> JsonObject:
    """What differs between two versions."""
    return {
        "from": one,
        "to": two,
        "tables": {name: table.to_dict() for name, table in tables.items()},
    }


def dumps(form: JsonObject, *, ascii_only: bool = False) -> str:
    """A form as text. Numbers that JSON lacks become text: "NaN", "Infinity", "-Infinity".

    >>> print(dumps({"a": float("nan")}))
    {
      "a": "NaN"
    }
    """
    return "".join(chunks(form, ascii_only=ascii_only))


def chunks(form: JsonObject, *, ascii_only: bool = False) -> Iterator[str]:
    """The same piece by piece: what is built when it is asked for is held no longer than that."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=ascii_only, allow_nan=False)
    tokens = encoder.iterencode(_printable(form))
    while chunk := "".join(islice(tokens, _TOKENS)):
        yield chunk


def compact(form: JsonObject) -> str:
    """A form as text without spaces, all of it in ASCII: what no HTML page or script can mistake
    but for ``<``, ``>`` and ``&``, which whoever embeds it escapes."""
    return json.dumps(_printable(form), separators=(",", ":"), allow_nan=False)


def _table(
    table: TableSnapshot,
    options: Settings,
    parts: Collection[str] | None,
    verbose: bool,
    limit: int | None,
) -> JsonObject:
    form: JsonObject = {"rows": table.rows, "columns": list(table.columns)}
    if parts is None and table.facts:
        form["column_facts"] = Forms(table.facts)
    if table.near is not None and (parts is None or NEAR in parts):
        form[NEAR] = _near(table.near, limit)
    asked = registry.table_parts(parts)
    known = [part for kind in asked if kind.name in table.found for part in asked[kind]]
    lists: JsonObject = {}
    for part in known:
        lists |= part.form(table, options)
    form |= _cut(lists, limit)
    if registry.compare_pairs(options["kinds"]):
        form["duplicates"] = table.duplicates
    if table.duplicates:
        form["duplicated"] = list(table.duplicated)
    sought = registry.named(options["kinds"])
    if left_out := [kind.field for kind in sought if kind in asked and kind.left_out(table)]:
        form["not_searched"] = left_out
    if lacking := [part.field for part in known if part.longest(table, options) is not None]:
        form["incomplete"] = lacking
        form |= {part.option: options[part.option] for part in known if part.field in lacking}
        ended = complete_up_to(known, table, options)
        depths = {limit: most for limit, most in ended.items() if limit in form}
        form |= {"complete_up_to": depths} if depths else {}
    if verbose:
        form |= {
            "types": list(table.types),
            "evidence": {name: to_form(e.choice) for name, e in table.evidence.items()},
            "indexes": to_form(table.indexes),
            "segments": table.segments,
        }
    return form


def _cut(lists: JsonObject, limit: int | None) -> JsonObject:
    """Fields whose lists have at most so many entries, beside how many there are; None: all."""
    if limit is None:
        return lists
    whole = {
        name: each
        for name, each in lists.items()
        if isinstance(each, Sequence) and not isinstance(each, str)
    }
    if not whole:
        return lists
    cut = {name: each[:limit] for name, each in whole.items()}
    return {**lists, **cut, "counts": {name: len(each) for name, each in whole.items()}}


def columns(snapshot: Snapshot, limit: int | None = None) -> JsonObject:
    """What is known of the columns of tables."""
    tables = {
        name: {"rows": table.rows, **_cut({"column_facts": Forms(table.facts)}, limit)}
        for name, table in snapshot.tables.items()
    }
    return {"version": snapshot.version, "tables": tables}


def _near(listed: NearList, limit: int | None) -> JsonObject:
    form = listed.to_dict()
    return {**form, **_cut({"rules": form.pop("rules")}, limit)}


def agree_sets(
    snapshot: Snapshot, counted: dict[str, list[AgreeSet] | None], limit: int | None = None
) -> JsonObject:
    """The agree-sets of tables, with their numbers of row pairs; None: they are not counted."""
    tables: JsonObject = {}
    for name, sets in counted.items():
        tables[name] = {"not_searched": ["agree_sets"]}
        if sets is not None:
            tables[name] = _cut({"agree_sets": Forms(sets)}, limit)
    return {"version": snapshot.version, "tables": tables}


def _printable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _printable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(each) for each in value]
    if isinstance(value, Forms):
        return _Streamed(value)
    return value


class _Streamed(list[Any]):
    """What the encoder takes for a list, and goes through once: its entries are built meanwhile."""

    def __init__(self, values: Forms) -> None:
        super().__init__()
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return map(_printable, self._values)
