"""Versions published as Parquet files or Delta tables, for dashboards and other programs.

::

    constraints.parquet             what holds now
    expectations.parquet            how the expected rules stand now
    batches/000000000012.parquet    what the batch of a version did to the rows of each table
    changes/000000000012.parquet    which constraints it gained and lost

A version is published again if that failed half-way: its files have the same names. In Delta the
four are tables, and the versions of the last two have rows of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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
class PublishedExpectation:
    """How an expected rule stands in a version, and how many rows or pairs violate it."""

    version: int
    rule: str
    name: str | None
    severity: str
    holds: bool
    violations: int | None  # None: too many to count
    error: float | None  # None: not known

    @staticmethod
    def of(version: int, standing: Standing) -> PublishedExpectation:
        """What is said of one."""
        expected = standing.expectation
        return PublishedExpectation(
            version, standing.rule, expected.name, expected.severity,
            standing.holds, standing.violations, standing.error,
        )  # fmt: skip


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


DELTA = "delta:"
"""What an address begins with where versions are published as Delta tables."""


class Target(Protocol):
    """Where versions are published."""

    def last(self) -> int:
        """The last version that is there whole."""

    def replace(self, name: str, kind: type, values: Sequence[Any]) -> None:
        """Write what holds now in place of what held before."""

    def add(self, name: str, kind: type, values: Sequence[Any], version: int) -> None:
        """Write what belongs to a version, in place of what was written of it before."""


def target_at(address: str) -> Target:
    """Where an address is: a folder, or ``delta:`` and the path of Delta tables."""
    if address.startswith(DELTA):
        from holdfast.report.published_delta import DeltaTables

        return DeltaTables(address.removeprefix(DELTA))
    return _Files(Path(address))


@dataclass(frozen=True)
class _Files:
    """Parquet files in a folder."""

    folder: Path

    def last(self) -> int:
        """The last one that has a file of batches, which is written last."""
        names = [path.stem for path in (self.folder / "batches").glob("*.parquet")]
        return max((int(name) for name in names if name.isdecimal()), default=0)

    def replace(self, name: str, kind: type, values: Sequence[Any]) -> None:
        """A file."""
        write_list(self.folder / f"{name}.parquet", kind, values)

    def add(self, name: str, kind: type, values: Sequence[Any], version: int) -> None:
        """A file of its own in a folder."""
        write_list(self.folder / name / f"{version:012}.parquet", kind, values)


def publish(
    target: Target, holding: JsonObject, standings: Sequence[Standing], entries: Sequence[Entry]
) -> None:
    """Write what holds now, in the form of the JSON export, and what some versions changed."""
    version = holding["version"]
    assert isinstance(version, int)
    target.replace("constraints", PublishedConstraint, list(_constraints(holding, version)))
    stand = [PublishedExpectation.of(version, each) for each in standings]
    target.replace("expectations", PublishedExpectation, stand)
    for entry in entries:
        changes = [change for each in entry.by_table.values() for change in _changes(entry, each)]
        target.add("changes", PublishedChange, changes, entry.version)
        batches = [
            PublishedBatch(
                entry.version, entry.created, each.batch_id, table,
                each.inserted, each.deleted, each.updated, each.rows,
            )
            for table, each in entry.by_table.items()
        ]  # fmt: skip
        # Last, because it says that the version is published.
        target.add("batches", PublishedBatch, batches, entry.version)


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
