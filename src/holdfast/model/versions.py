"""The versions of a profile: what each is, how two differ, and whether one is right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.constraints import Constraint
from holdfast.model.near import NearChange
from holdfast.model.records import ADDED, Serializable


@dataclass(frozen=True)
class Entry(Serializable):
    """One version in the history of a profile."""

    FORM = ("version", "created", ("tables", "numbers"), ("event", "event_in_json"), "changes")

    version: int
    created: str
    changes: Changes | BatchChanges | None  # None: the first profile, or kinds that were added
    tables: dict[str, int]  # rows per table
    counts: dict[str, dict[str, int]]  # constraints per table and kind, by its JSON name
    duplicates: dict[str, int]  # rows that repeat another one, per table
    event: str | None = None  # what wrote it, where no batch did

    @property
    def keys(self) -> dict[str, int]:
        """Minimal keys per table, of its distinct rows."""
        return {name: counts.get("keys", 0) for name, counts in self.counts.items()}

    @property
    def without_values(self) -> Entry:
        """The same with no constraint that is written with values of cells."""
        return self if self.changes is None else replace(self, changes=self.changes.without_values)

    @property
    def by_table(self) -> dict[str, Changes]:
        """What its batch did, table by table; nothing where no batch wrote it."""
        return self.changes.by_table if self.changes else {}

    @property
    def without_batch(self) -> str:
        """What it is where no batch wrote it."""
        return self.event or ("first profile" if self.version == 1 else "kinds added")

    def __repr__(self) -> str:
        what = self.without_batch if self.changes is None else repr(self.changes)
        return f"<Entry of version {self.version}, {self.created}, {what}>"

    @property
    def numbers(self) -> dict[str, dict[str, int]]:
        """How many rows and constraints each table has."""
        return {
            name: {"rows": rows, **self.counts[name], "duplicates": self.duplicates[name]}
            for name, rows in self.tables.items()
        }

    @property
    def event_in_json(self) -> str | None:
        """What it is, only where no batch wrote it."""
        return None if self.changes else self.without_batch


@dataclass(frozen=True)
class KindDiff(Serializable):
    """What one version of a table has of a kind, and another one has not, in the order in which it
    matters."""

    gained: tuple[Constraint, ...] = ()
    lost: tuple[Constraint, ...] = ()
    first: dict[str, int] = field(default_factory=dict, metadata=ADDED)
    """How many of the first that were ``gained``, and ``lost``, matter; all, if that is not
    known."""
    by_chance: dict[str, int] = field(default_factory=dict, metadata=ADDED)
    """How many of the others hold by chance, or did."""


@dataclass(frozen=True)
class TableDiff(Serializable):
    """What differs between two versions of a table, kind by kind.

    Keys are those that hold, so none where rows are repeated; where they are in both versions,
    keys are those of the distinct rows.
    """

    FORM = ("rows", "duplicates", ("changes", "kinds"), "near")

    rows: tuple[int, int]
    duplicates: tuple[int, int] = (0, 0)  # rows that repeat another one
    kinds: dict[str, KindDiff] = field(default_factory=dict)
    near: tuple[NearChange, ...] = ()  # rules that nearly hold in one of them or in both

    def __getitem__(self, kind: str) -> KindDiff:
        return self.kinds[kind]

    @property
    def has_same_constraints(self) -> bool:
        """Whether no constraint came or went, and none that nearly holds changed."""
        return not self.near and not any(each.gained or each.lost for each in self.kinds.values())

    @property
    def is_alike(self) -> bool:
        """Whether there are as many rows, and the same constraints."""
        same = all(before == after for before, after in (self.rows, self.duplicates))
        return same and self.has_same_constraints

    def __repr__(self) -> str:
        one, two = self.rows
        differences = [
            f"{kind.replace('_', ' ')} gained {len(each.gained):,}, lost {len(each.lost):,}"
            for kind, each in self.kinds.items()
        ]
        return f"<TableDiff: rows {one:,} → {two:,}; {'; '.join(differences)}>"


@dataclass(frozen=True)
class Verification(Serializable):
    """Whether a profile equals a fresh one of its rows; ``differences`` says where not."""

    FORM = ("version", "equal", "differences")

    version: int
    differences: dict[str, tuple[str, ...]]  # per table; empty when all is well

    @property
    def equal(self) -> bool:
        """Whether everything is as it should be."""
        return not any(self.differences.values())
