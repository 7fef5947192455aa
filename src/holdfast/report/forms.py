"""The JSON forms of what commands print: complete, and stable enough to build on.

Each constraint owns its own form; here they are put together. ``docs/json.md`` describes them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

from holdfast.model.changes import Changes, Entry, TableDiff
from holdfast.model.constraints import (
    AgreeSet,
    ForeignKey,
    InclusionDependency,
    Key,
    shortest_first,
)
from holdfast.model.limits import Limits
from holdfast.model.records import to_form
from holdfast.report.snapshot import Snapshot, TableSnapshot

Form = dict[str, Any]
Reference = TypeVar("Reference", InclusionDependency, ForeignKey)

TABLE_PARTS = ("keys", "non_keys", "fds")
"""What a table's form can hold."""

PARTS = (*TABLE_PARTS, "inds", "foreign_keys")
"""What the form of a version can hold."""

PARTS_IN_JSON = {"keys": "keys", "non_keys": "non_keys", "fds": "functional_dependencies"}


def show(
    snapshot: Snapshot,
    parts: Sequence[str] = PARTS,
    *,
    verbose: bool = False,
    sizes: dict[str, int] | None = None,
) -> Form:
    """A version: of each table the asked-for parts, all of them."""
    form: Form = {
        "version": snapshot.version,
        "nulls": snapshot.options["nulls"],
        "tables": {
            name: _table(table, snapshot.options, parts, verbose)
            for name, table in snapshot.tables.items()
        },
    }
    if snapshot.inclusions is not None:
        if "inds" in parts:
            contained = about(snapshot, snapshot.inclusions.dependencies())
            form["inclusion_nulls"] = snapshot.options["inclusion_nulls"]
            form["inclusion_dependencies"] = [each.to_dict() for each in contained]
        if "foreign_keys" in parts:
            keys = about(snapshot, snapshot.inclusions.foreign_keys())
            form["foreign_keys"] = [each.to_dict() for each in keys]
    if verbose:
        form |= {"created": snapshot.created, "options": snapshot.options, "bytes": sizes or {}}
    return form


def about(snapshot: Snapshot, found: Iterable[Reference]) -> list[Reference]:
    """Those that have a shown table on either side."""
    shown = set(snapshot.tables)
    return [each for each in found if shown & {each.dependent[0].table, each.referenced[0].table}]


def check(outcome: Changes, kinds: Collection[str] | None = None) -> Form:
    """What a batch would do, and whether that breaks something."""
    return {**outcome.to_dict(), "breaks": breaks(outcome, kinds)}


def breaks(outcome: Changes, kinds: Collection[str] | None = None) -> bool:
    """Whether rows violate what held before, of the given kinds (by their JSON names), or of any;
    not if the batch was applied before."""
    if outcome.applied_before:
        return False
    looked_at = [each for kind, each in outcome.kinds.items() if kinds is None or kind in kinds]
    return any(each.counts["broken"] for each in looked_at)


def history(entries: Iterable[Entry]) -> Form:
    """All versions, oldest first."""
    return {"versions": [entry.to_dict() for entry in entries]}


def diff(one: int, two: int, tables: dict[str, TableDiff]) -> Form:
    """What differs between two versions."""
    return {
        "from": one,
        "to": two,
        "tables": {name: table.to_dict() for name, table in tables.items()},
    }


def dumps(form: Form, *, ascii_only: bool = False) -> str:
    """A form as text. Numbers that JSON lacks become text: "NaN", "Infinity", "-Infinity".

    >>> print(dumps({"a": float("nan")}))
    {
      "a": "NaN"
    }
    """
    return json.dumps(_finite(form), indent=2, ensure_ascii=ascii_only, allow_nan=False)


def incomplete(table: TableSnapshot, options: Form) -> list[str]:
    """The lists that may lack something: what is longer than ``max_columns``, or than what there
    was time for."""
    return [part for part in PARTS_IN_JSON.values() if longest(table, options, part) is not None]


def longest(table: TableSnapshot, options: Form, part: str) -> int | None:
    """The most columns that a list was searched for, where there can be more."""
    limits = table.limits.within(Limits.both(options.get("max_columns"))).to_dict()
    most: int | None = limits["keys" if part == "non_keys" else part]
    return None if most is None or most >= len(table.columns) else most


def complete_up_to(table: TableSnapshot, options: Form) -> Form:
    """How many columns there was time for, where that is less than what was asked for."""
    asked = options.get("max_columns")
    told = {part: longest(table, options, part) for part in table.limits.to_dict()}
    return {part: most for part, most in told.items() if most not in (None, asked)}


def is_left_out(table: TableSnapshot, options: Form) -> bool:
    """Whether functional dependencies are looked for, but not in this table: it is too wide."""
    return "fds" in options["kinds"] and table.functional_dependencies is None


def seeks_keys(options: Form) -> bool:
    """Whether the profile compares pairs of rows, and so knows keys and repeated rows."""
    return "keys" in options["kinds"] or "fds" in options["kinds"]


def _table(table: TableSnapshot, options: Form, parts: Sequence[str], verbose: bool) -> Form:
    form: Form = {"rows": table.rows, "columns": list(table.columns)}
    if not seeks_keys(options):
        parts = ()
    if "keys" in parts:
        keys = [_key(key, table) for key in shortest_first(table.keys, table.columns)]
        # A bag with a repeated row has no key, whatever its distinct rows have.
        form["keys"] = [] if table.duplicates else keys
        if table.duplicates:
            form["keys_of_distinct_rows"] = keys
        form["keys"] += [key.to_dict() for key in table.approximate_keys]
    if "non_keys" in parts:
        found = shortest_first(table.non_keys, table.columns)
        form["non_keys"] = [non_key.to_dict() for non_key in found]
    if "fds" in parts and table.functional_dependencies is not None:
        found_fds = [each.to_dict() for each in table.functional_dependencies]
        form["functional_dependencies"] = found_fds
    if seeks_keys(options):
        form["duplicates"] = table.duplicates
    if table.duplicates:
        form["duplicated"] = list(table.duplicated)
    if "fds" in parts and is_left_out(table, options):
        form["not_searched"] = ["functional_dependencies"]
    if lacking := [part for part in incomplete(table, options) if part in form]:
        form |= {"incomplete": lacking, "max_columns": options["max_columns"]}
        ended = complete_up_to(table, options)
        told = {part: most for part, most in ended.items() if part in form}
        form |= {"complete_up_to": told} if told else {}
    if verbose:
        form |= {
            "types": list(table.types),
            "evidence": to_form(table.choice),
            "indexes": to_form(table.indexes),
            "segments": table.segments,
        }
    return form


def _key(key: Key, table: TableSnapshot) -> Form:
    """A key that holds; its error is told where errors are looked for."""
    form = key.to_dict()
    if table.max_error is not None:
        form["error"] = 0.0
    return form


def agree_sets(snapshot: Snapshot, counted: dict[str, list[AgreeSet] | None]) -> Form:
    """All agree-sets of tables, with their numbers of row pairs; None: they are not counted."""
    tables: Form = {}
    for name, found in counted.items():
        tables[name] = {"not_searched": ["agree_sets"]}
        if found is not None:
            tables[name] = {"agree_sets": [each.to_dict() for each in found]}
    return {"version": snapshot.version, "tables": tables}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
