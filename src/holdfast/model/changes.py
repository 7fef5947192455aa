"""What a batch did to a table, or would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.model.constraints import FunctionalDependency, InclusionDependency, Key, Row


@dataclass(frozen=True)
class Lost:
    """A minimal key of the version before that is none any more.

    Either rows broke it (``witness``: two rows that agree on it), or fewer columns now suffice
    (``replaced_by``: a key inside it, gained by the same batch), or there was no time to tell
    (``unchecked``: it is longer than what a time budget left time for). ``duplicated``: it broke
    only because rows are there twice; without the repeated ones its columns still tell them apart.
    """

    key: Key
    witness: tuple[Row, Row] | None = None
    replaced_by: Key | None = None
    unchecked: bool = False
    duplicated: bool = False

    def __repr__(self) -> str:
        why = "broken by repeated rows" if self.duplicated else "broken"
        if not self.broken:
            why = (
                "unchecked" if self.replaced_by is None else f"replaced by {self.replaced_by.body}"
            )
        return f"<Lost {self.key}, {why}>"

    @property
    def broken(self) -> bool:
        """Whether rows are known to violate the key, rather than fewer columns being enough."""
        return self.replaced_by is None and not self.unchecked

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        form: dict[str, Any] = {**self.key.to_dict(), "broken": self.broken}
        if self.witness is not None:
            form["witness"] = list(self.witness)
        if self.replaced_by is not None:
            form["replaced_by"] = list(self.replaced_by.columns)
        if self.unchecked:
            form["unchecked"] = True
        if self.duplicated:
            form["duplicated"] = True
        return form

    @staticmethod
    def from_dict(table: str, form: dict[str, Any]) -> Lost:
        """The value that a commit stored."""
        witness = form.get("witness")
        smaller = form.get("replaced_by")
        return Lost(
            Key.from_dict(table, form),
            (witness[0], witness[1]) if witness else None,
            None if smaller is None else Key(table, tuple(smaller)),
            form.get("unchecked", False),
            form.get("duplicated", False),
        )


@dataclass(frozen=True)
class Changes:
    """The outcome of :meth:`Profile.apply` and :meth:`Profile.check`.

    Keys are those that hold, so none where rows are repeated: the batch that brings the first
    repeated row loses all of them. In a table with repeated rows before and after, they are those
    of its distinct rows.
    """

    table: str
    version: int  # the version that now holds; for a check, the one it was checked against
    batch_id: str | None
    applied: bool  # False: a check, or a batch id that had been applied before
    inserted: int
    deleted: int
    updated: int
    rows: int  # rows of the table afterwards
    gained: tuple[Key, ...]
    lost: tuple[Lost, ...]
    non_keys_gained: int
    non_keys_lost: int
    duplicates: int  # rows that repeat another one, afterwards
    duplicates_before: int
    duplicated: tuple[Row, ...] = ()  # a row that now occurs twice and did not before
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    dependencies_gained: tuple[FunctionalDependency, ...] = ()  # the shortest hundred
    dependencies_lost: tuple[FunctionalDependency, ...] = ()
    fds_gained: int = 0  # how many functional dependencies in all
    fds_lost: int = 0
    inclusions_gained: tuple[InclusionDependency, ...] = ()
    inclusions_lost: tuple[InclusionDependency, ...] = ()
    applied_before: bool = False  # a batch with this id was; the rest is what it did then

    def __repr__(self) -> str:
        done = "applied" if self.applied else "applied before" if self.applied_before else "checked"
        sizes = {"inserted": self.inserted, "deleted": self.deleted, "updated": self.updated}
        sizes |= {"keys gained": len(self.gained), "keys lost": len(self.lost)}
        sizes |= {"repeated rows": self.duplicates}
        told = ", ".join(f"{what} {size:,}" for what, size in sizes.items() if size)
        return f"<Changes of {self.table!r}, {done}, version {self.version}: {told or 'none'}>"

    @property
    def broken(self) -> tuple[Lost, ...]:
        """The lost keys that rows violate, repeated ones among them."""
        return tuple(lost for lost in self.lost if lost.broken)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "table": self.table,
            "version": self.version,
            "batch_id": self.batch_id,
            "applied": self.applied,
            "applied_before": self.applied_before,
            "inserted": self.inserted,
            "deleted": self.deleted,
            "updated": self.updated,
            "rows": self.rows,
            "keys_gained": [key.to_dict() for key in self.gained],
            "keys_lost": [lost.to_dict() for lost in self.lost],
            "non_keys_gained": self.non_keys_gained,
            "non_keys_lost": self.non_keys_lost,
            "duplicates": self.duplicates,
            "duplicates_before": self.duplicates_before,
            "duplicated": list(self.duplicated),
            "fds_gained": self.fds_gained,
            "fds_lost": self.fds_lost,
            "functional_dependencies_gained": [each.to_dict() for each in self.dependencies_gained],
            "functional_dependencies_lost": [each.to_dict() for each in self.dependencies_lost],
            "inclusion_dependencies_gained": [each.to_dict() for each in self.inclusions_gained],
            "inclusion_dependencies_lost": [each.to_dict() for each in self.inclusions_lost],
            "seconds": self.seconds,
        }

    @staticmethod
    def from_dict(form: dict[str, Any]) -> Changes:
        """The value that a commit stored."""
        kept = {
            name: form[name]
            for name in (
                "table", "version", "batch_id", "applied", "inserted", "deleted", "updated",
                "rows", "non_keys_gained", "non_keys_lost", "duplicates", "duplicates_before",
                "fds_gained", "fds_lost", "seconds",
            )
        }  # fmt: skip
        table = form["table"]
        return Changes(
            **kept,
            gained=tuple(Key.from_dict(table, key) for key in form["keys_gained"]),
            lost=tuple(Lost.from_dict(table, lost) for lost in form["keys_lost"]),
            duplicated=tuple(form["duplicated"]),
            dependencies_gained=_dependencies(table, form["functional_dependencies_gained"]),
            dependencies_lost=_dependencies(table, form["functional_dependencies_lost"]),
            inclusions_gained=_inclusions(form, "inclusion_dependencies_gained"),
            inclusions_lost=_inclusions(form, "inclusion_dependencies_lost"),
            applied_before=form.get("applied_before", False),
        )


def _dependencies(table: str, forms: list[dict[str, Any]]) -> tuple[FunctionalDependency, ...]:
    return tuple(FunctionalDependency.from_dict(table, form) for form in forms)


def _inclusions(form: dict[str, Any], name: str) -> tuple[InclusionDependency, ...]:
    return tuple(map(InclusionDependency.from_dict, form.get(name, ())))


@dataclass(frozen=True)
class Entry:
    """One version in the history of a profile."""

    version: int
    created: str
    changes: Changes | None  # None: the first profile
    tables: dict[str, int]  # rows per table
    keys: dict[str, int]  # minimal keys per table, of its distinct rows
    duplicates: dict[str, int]  # rows that repeat another one, per table

    def __repr__(self) -> str:
        what = "first profile" if self.changes is None else repr(self.changes)
        return f"<Entry of version {self.version}, {self.created}, {what}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "version": self.version,
            "created": self.created,
            "tables": {
                name: {"rows": rows, "keys": self.keys[name], "duplicates": self.duplicates[name]}
                for name, rows in self.tables.items()
            },
            "changes": self.changes.to_dict() if self.changes else None,
        }


@dataclass(frozen=True)
class TableDiff:
    """What differs between two versions of a table.

    Keys are those that hold, so none where rows are repeated; where they are in both versions,
    keys are those of the distinct rows.
    """

    gained: tuple[Key, ...]
    lost: tuple[Key, ...]
    rows: tuple[int, int]
    inclusions_gained: tuple[InclusionDependency, ...] = ()  # of its columns in others
    inclusions_lost: tuple[InclusionDependency, ...] = ()
    dependencies_gained: tuple[FunctionalDependency, ...] = ()  # those without error
    dependencies_lost: tuple[FunctionalDependency, ...] = ()
    duplicates: tuple[int, int] = (0, 0)  # rows that repeat another one

    def __repr__(self) -> str:
        one, two = self.rows
        keys = f"keys gained {len(self.gained):,}, lost {len(self.lost):,}"
        return f"<TableDiff: rows {one:,} → {two:,}, {keys}>"

    @property
    def fds_gained(self) -> int:
        """How many functional dependencies were gained."""
        return len(self.dependencies_gained)

    @property
    def fds_lost(self) -> int:
        """How many functional dependencies were lost."""
        return len(self.dependencies_lost)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "rows": list(self.rows),
            "duplicates": list(self.duplicates),
            "keys_gained": [key.to_dict() for key in self.gained],
            "keys_lost": [key.to_dict() for key in self.lost],
            "functional_dependencies_gained": [each.to_dict() for each in self.dependencies_gained],
            "functional_dependencies_lost": [each.to_dict() for each in self.dependencies_lost],
            "inclusion_dependencies_gained": [each.to_dict() for each in self.inclusions_gained],
            "inclusion_dependencies_lost": [each.to_dict() for each in self.inclusions_lost],
        }


@dataclass(frozen=True)
class Verification:
    """Whether a profile equals one made anew from its rows; ``differences`` says where not."""

    version: int
    differences: dict[str, tuple[str, ...]]  # per table; empty when all is well

    @property
    def equal(self) -> bool:
        """Whether everything is as it should be."""
        return not any(self.differences.values())

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        tables = {name: list(found) for name, found in self.differences.items()}
        return {"version": self.version, "equal": self.equal, "differences": tables}
