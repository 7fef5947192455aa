"""Versions published as Parquet files, for dashboards and other programs.

::

    constraints.parquet             what holds now
    expectations.parquet            how the expected rules stand now
    batches/000000000012.parquet    what the batch of a version did to the rows of each table
    changes/000000000012.parquet    which constraints it gained and lost

A version is published again if that failed half-way: its files have the same names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.kinds import registry
from holdfast.model.changes import Changes
from holdfast.model.expectations import Standing
from holdfast.model.records import JsonObject
from holdfast.model.versions import Entry
from holdfast.report.written import write_list


@dataclass(frozen=True)
class PublishedConstraint:
    """A constraint that holds in a version."""

    version: int
    table: str | None  # None: it is about several
    kind: str
    constraint: str


@dataclass(frozen=True)
class PublishedBatch:
    """What a batch did to the rows of a table."""

    version: int
    created: str
    batch_id: str | None
    table: str
    inserted: int
    deleted: int
    updated: int
    rows: int


@dataclass(frozen=True)
class PublishedChange:
    """A constraint that a batch gained or lost, or an expected rule that it broke."""

    version: int
    table: str
    kind: str
    what: str  # gained, broken, superseded
    constraint: str


def last_published(folder: Path) -> int:
    """The last version whose files are all in a folder."""
    names = [path.stem for path in (folder / "batches").glob("*.parquet")]
    return max((int(name) for name in names if name.isdecimal()), default=0)


def publish(
    folder: Path, holding: JsonObject, standings: Sequence[Standing], entries: Sequence[Entry]
) -> None:
    """Write what holds now, in the form of the JSON export, and what some versions changed."""
    version = holding["version"]
    assert isinstance(version, int)
    constraints = list(_constraints(holding, version))
    write_list(folder / "constraints.parquet", PublishedConstraint, constraints)
    write_list(folder / "expectations.parquet", Standing, standings)
    for entry in entries:
        name = f"{entry.version:012}.parquet"
        changes = [change for each in entry.by_table.values() for change in _changes(entry, each)]
        write_list(folder / "changes" / name, PublishedChange, changes)
        # Last, because it says that the version is published.
        batches = [
            PublishedBatch(
                entry.version, entry.created, each.batch_id, table,
                each.inserted, each.deleted, each.updated, each.rows,
            )
            for table, each in entry.by_table.items()
        ]  # fmt: skip
        write_list(folder / "batches" / name, PublishedBatch, batches)


def _constraints(holding: JsonObject, version: int) -> Iterator[PublishedConstraint]:
    form = json.loads(json.dumps(holding))
    for table, of_table in form["tables"].items():
        for kind in registry.table_parts():
            for rule in of_table.get(kind.field, ()):
                yield PublishedConstraint(version, table, kind.field, rule["rule"])
    for name in ("foreign_keys", "inclusion_dependencies"):
        for rule in form[name]:
            yield PublishedConstraint(version, None, name, rule["rule"])


def _changes(entry: Entry, changes: Changes) -> Iterator[PublishedChange]:
    for field, of_kind in changes.kinds.items():
        for what, rules in (
            ("gained", of_kind.gained),
            ("broken", [each.constraint for each in of_kind.broken]),
            ("superseded", [each.constraint for each in of_kind.superseded]),
        ):
            for rule in rules:
                yield PublishedChange(entry.version, changes.table, field, what, str(rule))
    for each in changes.expectations or ():
        if each.breaks:
            yield PublishedChange(entry.version, changes.table, "expectations", "broken", each.rule)
