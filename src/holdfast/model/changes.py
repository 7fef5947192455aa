"""What a batch did to a table, or would do; one shape for every kind of constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.model import markup
from holdfast.model.constraints import Constraint, Row
from holdfast.model.expectations import ExpectationChange, Quarantine
from holdfast.model.near import NearChange
from holdfast.model.records import ADDED, INLINE, Json, JsonObject, Serializable, from_form
from holdfast.model.results import Results, Tabular

SHOWN = 100
"""Constraints of a kind that a change lists, the shortest first; their number is given beside."""

FromForm = Callable[[str, Json], Constraint]
"""A table's name and a constraint's JSON form in, the constraint out."""


@dataclass(frozen=True)
class Broken(Serializable):
    """A constraint that held before, and that rows violate now: ``witness`` has two of them.

    ``repeated``: it is a key, and broke only because rows are there twice. ``now`` holds in its
    place: a domain with further values, bounds that are further apart.
    """

    FORM = ((INLINE, "constraint"), "witness", "repeated", "now")

    constraint: Constraint
    witness: tuple[Row, ...] = ()
    repeated: bool = field(default=False, metadata=ADDED)
    now: Constraint | None = field(default=None, metadata=ADDED)

    def __repr__(self) -> str:
        return f"<Broken {self.constraint}{', by repeated rows' if self.repeated else ''}>"


@dataclass(frozen=True)
class Superseded(Serializable):
    """A constraint that still holds, but not as a minimal one: ``by`` is enough."""

    FORM = ((INLINE, "constraint"), "by")

    constraint: Constraint
    by: Constraint

    def __repr__(self) -> str:
        return f"<Superseded {self.constraint}, by {self.by.body}>"


@dataclass(frozen=True)
class ErrorChange(Serializable):
    """An approximate constraint whose error changed; None: it was not, or is not, among them."""

    FORM = ((INLINE, "constraint"), ("error_before", "before"), ("error", "after"))

    constraint: Constraint
    before: float | None
    after: float | None


@dataclass(frozen=True)
class KindChanges(Serializable):
    """What a batch did to one kind of constraint: lists of at most :data:`SHOWN`, and their
    ``counts``, which may tell more."""

    gained: tuple[Constraint, ...] = ()
    broken: tuple[Broken, ...] = ()
    superseded: tuple[Superseded, ...] = ()
    unchecked: tuple[Constraint, ...] = ()  # longer than what a time budget left time for
    errors: tuple[ErrorChange, ...] = ()  # of approximate ones
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lists = ("gained", "broken", "superseded", "unchecked", "errors")
        counted = {name: len(getattr(self, name)) for name in lists}
        object.__setattr__(self, "counts", {**counted, **self.counts})

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return any(self.counts.values())

    @property
    def lost(self) -> tuple[Constraint, ...]:
        """All that is listed no more: broken, superseded or unchecked."""
        broken = [change.constraint for change in self.broken]
        return (*broken, *(change.constraint for change in self.superseded), *self.unchecked)

    @property
    def without_values(self) -> KindChanges:
        """The same with no constraint that is written with values of cells, which are counted
        still."""
        return replace(
            self,
            gained=tuple(each for each in self.gained if not each.tells_values),
            broken=tuple(each for each in self.broken if not each.constraint.tells_values),
            superseded=tuple(each for each in self.superseded if not each.constraint.tells_values),
            unchecked=tuple(each for each in self.unchecked if not each.tells_values),
        )

    @staticmethod
    def from_dict(table: str, form: Mapping[str, Any], make: FromForm) -> KindChanges:
        """The value that a commit stored."""
        return KindChanges(
            tuple(make(table, entry) for entry in form["gained"]),
            tuple(
                Broken(
                    make(table, entry),
                    tuple(entry["witness"]),
                    entry.get("repeated", False),
                    make(table, entry["now"]) if "now" in entry else None,
                )
                for entry in form["broken"]
            ),
            tuple(Superseded(make(table, e), make(table, e["by"])) for e in form["superseded"]),
            tuple(make(table, entry) for entry in form["unchecked"]),
            tuple(
                ErrorChange(make(table, entry), entry["error_before"], entry["error"])
                for entry in form["errors"]
            ),
            form["counts"],
        )


@dataclass(frozen=True)
class ConstraintChange(Serializable):
    """What happened to one constraint; ``what`` is gained, broken, superseded, unchecked or
    errors."""

    kind: str  # the name that JSON gives it
    what: str
    constraint: str
    witness: tuple[Row, ...] = ()
    repeated: bool = False
    by: str | None = None
    error_before: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Changes(Serializable, Tabular):
    """The outcome of :meth:`Profile.apply` and :meth:`Profile.check`.

    ``kinds`` has what happened to every kind of constraint that the profile looks for, by the name
    that JSON gives it: ``changes["keys"].broken``. Keys are those that hold, so none where rows are
    repeated: the batch that brings the first repeated row breaks all of them. In a table with
    repeated rows before and after, they are those of its distinct rows.
    """

    FORM = (
        *("table", "version", "batch_id", "applied", "applied_before", "refused"),
        *("inserted", "deleted", "updated", "unchanged", "skipped", "rows"),
        *("duplicates", "duplicates_before", "duplicated", "expectations", "near", "quarantined"),
        ("changes", "kinds"),
        "seconds",
    )

    table: str
    version: int  # the version that now holds; for a check, the one it was checked against
    batch_id: str | None
    applied: bool  # False: a check, or a batch id that had been applied before
    inserted: int
    deleted: int
    updated: int  # rows that another one took the place of
    rows: int  # rows of the table afterwards
    duplicates: int = 0  # rows that repeat another one, afterwards
    duplicates_before: int = 0
    duplicated: tuple[Row, ...] = ()  # a row that now occurs twice and did not before
    kinds: dict[str, KindChanges] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    applied_before: bool = False  # a batch with this id was; the rest is what it did then
    skipped: int = 0  # deletes of rows that were not there
    unchanged: int = 0  # updates and upserts that are rows of the table as they were
    refused: bool = False  # it would break what it should not, and was to be strict
    expectations: tuple[ExpectationChange, ...] | None = None
    """What happened to the rules that people rely on and the table's rows can break; None where
    the profile has no expectations at all."""

    near: tuple[NearChange, ...] = ()  # what happened to rules that nearly hold

    quarantined: Quarantine | None = None  # rows that were not applied; None: none were

    def __getitem__(self, kind: str) -> KindChanges:
        return self.kinds[kind]

    def __repr__(self) -> str:
        done = "applied" if self.applied else "applied before" if self.applied_before else "checked"
        sizes = {"inserted": self.inserted, "deleted": self.deleted, "updated": self.updated}
        sizes |= {"unchanged": self.unchanged, "skipped": self.skipped}
        for kind, changes in self.kinds.items():
            words = kind.replace("_", " ")
            sizes |= {f"{words} {what}": changes.counts[what] for what in ("gained", "broken")}
        sizes |= {"repeated rows": self.duplicates}
        numbers = ", ".join(f"{what} {size:,}" for what, size in sizes.items() if size)
        return f"<Changes of {self.table!r}, {done}, version {self.version}: {numbers or 'none'}>"

    def _repr_html_(self) -> str:
        counts = {"inserted": self.inserted, "deleted": self.deleted, "updated": self.updated}
        counts |= {"unchanged": self.unchanged}
        sizes = ", ".join(f"{size:,} {what}" for what, size in counts.items() if size)
        done = "" if self.applied else " (applied before)" if self.applied_before else " (checked)"
        parts = [
            markup.heading(f"{self.table}, version {self.version}{done}: {sizes or 'no rows'}"),
            f"<div>{markup.soft(f'{self.rows:,} rows, {self.duplicates:,} of them repeated')}</div>"
            if self.duplicates
            else f"<div>{markup.soft(f'{self.rows:,} rows')}</div>",
            *(
                _html(kind.replace("_", " "), changes)
                for kind, changes in self.kinds.items()
                if changes.any
            ),
        ]
        if not any(changes.any for changes in self.kinds.values()):
            parts.append("<div>Nothing gained, nothing broken.</div>")
        return "".join(parts)

    @property
    def without_values(self) -> Changes:
        """The same with no constraint that is written with values of cells."""
        kinds = {name: each.without_values for name, each in self.kinds.items()}
        return replace(self, kinds=kinds)

    @property
    def by_table(self) -> dict[str, Changes]:
        """The same, as a batch of several tables has it."""
        return {self.table: self}

    @property
    def broken(self) -> tuple[Broken, ...]:
        """Everything that rows violate now, of all kinds."""
        return tuple(broken for changes in self.kinds.values() for broken in changes.broken)

    @property
    def stops(self) -> bool:
        """Whether an expectation breaks whose severity is an error."""
        return any(expectation.stops for expectation in self.expectations or ())

    @property
    def constraints(self) -> Results[ConstraintChange]:
        """All that is listed, of all kinds, one by one; the rows of :meth:`to_arrow`,
        :meth:`to_pandas` and :meth:`to_spark`."""
        changes: Results[ConstraintChange] = Results(ConstraintChange)
        for kind, of_kind in self.kinds.items():
            for what, constraints in (("gained", of_kind.gained), ("unchecked", of_kind.unchecked)):
                changes += [ConstraintChange(kind, what, str(change)) for change in constraints]
            changes += [
                ConstraintChange(
                    kind, "broken", str(change.constraint), change.witness, change.repeated
                )
                for change in of_kind.broken
            ]
            changes += [
                ConstraintChange(kind, "superseded", str(change.constraint), by=str(change.by))
                for change in of_kind.superseded
            ]
            changes += [
                ConstraintChange(
                    kind,
                    "errors",
                    str(change.constraint),
                    error_before=change.before,
                    error=change.after,
                )
                for change in of_kind.errors
            ]
        return changes

    def _listed(self) -> tuple[type, Iterable[ConstraintChange]]:
        return ConstraintChange, self.constraints

    @staticmethod
    def from_dict(form: Mapping[str, Any], makers: Mapping[str, FromForm]) -> Changes:
        """The value that a commit stored; ``makers`` has what makes constraints of each kind."""
        known = {name: value for name, value in form.items() if name != "changes"}
        table = form["table"]
        kinds = {
            kind: KindChanges.from_dict(table, changes, makers[kind])
            for kind, changes in form["changes"].items()
        }
        expectations = form.get("expectations")
        known["duplicated"] = tuple(form["duplicated"])
        known["expectations"] = (
            None if expectations is None else tuple(map(ExpectationChange.from_dict, expectations))
        )
        known["near"] = from_form(tuple[NearChange, ...], form.get("near", []))
        left = form.get("quarantined")
        known["quarantined"] = None if left is None else from_form(Quarantine, left)
        return Changes(**known, kinds=kinds)


def _html(nouns: str, changes: KindChanges) -> str:
    """What happened to one kind, for a notebook: what broke with its rows, and what came."""
    counts = changes.counts
    parts = []
    if changes.broken:
        parts.append(markup.heading(f"{nouns}: {counts['broken']:,} broken"))
        for broken in changes.broken[: markup.FEW]:
            form = broken.constraint.to_dict()
            columns = [*form.get("columns", form.get("lhs", ())), form.get("rhs", "")]
            rows = markup.rows(broken.witness, columns) if broken.witness else ""
            parts.append(f"<div>{markup.code(broken.constraint.body)}</div>{rows}")
        parts.append(markup.more(counts["broken"], markup.FEW))
    if changes.superseded:
        parts.append(markup.heading(f"{nouns}: {counts['superseded']:,} became shorter"))
        for shorter in changes.superseded[: markup.FEW]:
            old, new = markup.code(shorter.constraint.body), markup.code(shorter.by.body)
            parts.append(f"<div>{old} → {new}</div>")
        parts.append(markup.more(counts["superseded"], markup.FEW))
    if changes.gained:
        parts.append(markup.heading(f"{nouns}: {counts['gained']:,} gained"))
        parts += [f"<div>{markup.code(e.body)}</div>" for e in changes.gained[: markup.FEW]]
        parts.append(markup.more(counts["gained"], markup.FEW))
    return "".join(parts)


@dataclass(frozen=True)
class BatchChanges(Serializable, Tabular):
    """The outcome of a batch of several tables, of which all were changed in one version, or none:
    ``changes["orders"]`` is what it did to one of them.

    An inclusion dependency that came or broke is reported once: with its dependent table, or if the
    batch has no rows for that one, with the referenced table.
    """

    FORM = ("version", "batch_id", "applied", "applied_before", "refused", "tables", "seconds")

    tables: dict[str, Changes]
    seconds: dict[str, float] = field(default_factory=dict)  # by stage, of all tables together

    def __getitem__(self, table: str) -> Changes:
        return self.tables[table]

    def _repr_html_(self) -> str:
        return "".join(changes._repr_html_() for changes in self.tables.values())

    def __repr__(self) -> str:
        return f"<BatchChanges {', '.join(map(repr, self.tables.values()))}>"

    @property
    def without_values(self) -> BatchChanges:
        """The same with no constraint that is written with values of cells."""
        tables = {name: each.without_values for name, each in self.tables.items()}
        return replace(self, tables=tables)

    @property
    def by_table(self) -> dict[str, Changes]:
        """What it did to each table."""
        return self.tables

    @property
    def _first(self) -> Changes:
        return next(iter(self.tables.values()))

    @property
    def version(self) -> int:
        """The version that now holds; for a check, the one it was checked against."""
        return self._first.version

    @property
    def batch_id(self) -> str | None:
        """The name that the batch was given."""
        return self._first.batch_id

    @property
    def applied(self) -> bool:
        """False: a check, or a batch id that had been applied before."""
        return self._first.applied

    @property
    def applied_before(self) -> bool:
        """Whether a batch with this id was; the rest is what it did then."""
        return self._first.applied_before

    @property
    def refused(self) -> bool:
        """Whether it would break what it should not, and was to be strict."""
        return self._first.refused

    @property
    def changed(self) -> int:
        """How many rows it changed, of all tables."""
        return sum(each.inserted + each.deleted + each.updated for each in self.tables.values())

    @property
    def expectations(self) -> tuple[ExpectationChange, ...] | None:
        """What happened to the rules that people rely on, of all tables; None where there are no
        expectations at all."""
        if self._first.expectations is None:
            return None
        return tuple(
            expectation
            for changes in self.tables.values()
            for expectation in changes.expectations or ()
        )

    @property
    def stops(self) -> bool:
        """Whether an expectation breaks whose severity is an error."""
        return any(changes.stops for changes in self.tables.values())

    @property
    def broken(self) -> tuple[Broken, ...]:
        """Everything that rows violate now, of all tables and kinds."""
        return tuple(broken for changes in self.tables.values() for broken in changes.broken)

    @property
    def constraints(self) -> Results[ConstraintChange]:
        """All that is listed, of all tables and kinds, one by one."""
        changes = [
            change for table_changes in self.tables.values() for change in table_changes.constraints
        ]
        return Results(ConstraintChange, changes)

    def _listed(self) -> tuple[type, Iterable[ConstraintChange]]:
        return ConstraintChange, self.constraints

    @property
    def stored(self) -> JsonObject:
        """The form that a commit stores: that of a batch of one table is the table's own."""
        if len(self.tables) > 1:
            return self.to_dict()
        return replace(self._first, seconds=self.seconds).to_dict()

    @staticmethod
    def from_stored(form: Mapping[str, Any], makers: Mapping[str, FromForm]) -> BatchChanges:
        """The value that a commit stored."""
        if "tables" not in form:
            alone = Changes.from_dict(form, makers)
            return BatchChanges({alone.table: alone}, alone.seconds)
        tables = {
            name: Changes.from_dict(changes, makers) for name, changes in form["tables"].items()
        }
        return BatchChanges(tables, form["seconds"])

    def alone(self, table: str) -> Changes:
        """What a batch of one table did to it."""
        return replace(self.tables[table], seconds=self.seconds)
