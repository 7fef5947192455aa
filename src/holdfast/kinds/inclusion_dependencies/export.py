"""Inclusion dependencies and foreign keys in the forms of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.exporter import Clause, Exporter, Test
from holdfast.model.inclusion_dependencies import ForeignKey, InclusionDependency, Reference
from holdfast.model.names import identifier
from holdfast.model.records import JsonObject

if TYPE_CHECKING:
    from holdfast.export.contract import Choice, TableContract
    from holdfast.export.dbt import Dbt
    from holdfast.export.queries import Queries
    from holdfast.export.soda import Soda
    from holdfast.model.ranking import Ranked
    from holdfast.report.snapshot import TableSnapshot

LIKELY = 0.5
"""Foreign keys with at least this score are exported where nothing was chosen."""


class InclusionExporter(Exporter[Reference]):
    """Foreign keys, and tests for missing values."""

    heading = "Contained elsewhere"
    dimension = "conformity"
    renames_rows = True
    counts_rows = True

    def chosen(
        self,
        choice: Choice,  # noqa: ARG002
        table: TableSnapshot,  # noqa: ARG002
        ranking: Sequence[Ranked],  # noqa: ARG002
    ) -> tuple[()]:
        """They are between tables."""
        return ()

    def chosen_across(self, choice: Choice) -> tuple[list[ForeignKey], list[InclusionDependency]]:
        """The foreign keys between the tables, those that were chosen and the likeliest first; and
        the other inclusions."""

        def inside(each: Reference) -> bool:
            return {*each.tables} <= {*choice.tables}

        wanted = [each for each in choice.chosen_of(self.kind) if inside(each)]
        meant = {each.sides for each in wanted}
        inclusions = choice.snapshot.inclusions
        found = [] if inclusions is None else inclusions.foreign_keys(1.0)
        known = {each.sides: each for each in found}
        certain = [
            known.get(each.sides, ForeignKey(each.dependent, each.referenced, 1.0))
            for each in wanted
            if _is_key(each, choice)
        ]
        others = [each for each in wanted if not _is_key(each, choice)]
        if inclusions is None:
            return certain, others
        holding = [
            each
            for each in known.values()
            if each.coverage == 1 and inside(each) and each.sides not in meant
        ]
        if choice.everything:
            listed = meant | {each.sides for each in holding}
            rest = [
                each
                for each in inclusions.dependencies(1.0)
                if inside(each) and each.sides not in listed
            ]
            return [*certain, *holding], [*others, *rest]
        # Of several keys that contain a column at most one is meant.
        likeliest: dict[object, ForeignKey] = {}
        for each in holding if choice.is_empty else ():
            if each.score >= LIKELY:
                likeliest.setdefault(each.dependent, each)
        return [*certain, *likeliest.values()], others

    def words(self, rule: Reference) -> tuple[Sequence[str], str]:
        """Both sides."""
        dependent, referenced = _columns(rule)
        table, other = rule.tables[0], rule.tables[-1]
        return [table, *dependent, "in", other, *referenced], ""

    def query(self, rule: Reference, sql: Queries) -> str:
        """A row for each missing value."""
        return self._missing(rule, sql, None)

    def removal(self, rule: Reference, sql: Queries) -> tuple[str, str]:
        """All rows that have one."""
        (removal,) = sql.free_names(_columns(rule)[0], "removal")
        return self._missing(rule, sql, removal), removal

    def _missing(self, rule: Reference, sql: Queries, number: str | None) -> str:
        """Each missing value, perhaps with the number of rows that have it."""
        dialect, (dependent, referenced) = sql.dialect, _columns(rule)
        d, r = dialect.name_of("d"), dialect.name_of("r")
        values = sql.contract.inclusion_nulls == "values" and len(dependent) == 1
        pairs = [
            (f"{r}.{dialect.name_of(theirs)}", f"{d}.{dialect.name_of(mine)}")
            for mine, theirs in zip(dependent, referenced, strict=True)
        ]
        equal = dialect.same if values else "{} = {}"
        same = " AND ".join(equal.format(*pair) for pair in pairs)
        present = [] if values else sql.present(dependent, f"{d}.")
        table, other = sql.rows(rule.tables[0]), sql.rows(rule.tables[-1])
        exists = f"SELECT 1 FROM {other} AS {r} WHERE {same}"
        mine = ", ".join(mine for _, mine in pairs)
        lines = [
            f"SELECT DISTINCT {mine}" if number is None else f"SELECT {mine}, count(*) AS {number}",
            f"FROM {table} AS {d}",
            *sql.where([*present, f"NOT EXISTS ({exists})"]),
            *([] if number is None else [f"GROUP BY {mine}"]),
        ]
        return "\n".join(lines)

    def clause(self, rule: Reference, sql: Queries, table: TableContract) -> Clause:
        """FOREIGN KEY, where the columns are of the same types and the database refers to such a
        key."""
        dialect, (dependent, referenced) = sql.dialect, _columns(rule)
        other = sql.table(rule.tables[-1])
        types = [
            (table.type_of(mine), other.type_of(theirs))
            for mine, theirs in zip(dependent, referenced, strict=True)
        ]
        primary = () if other.primary is None else other.primary.columns
        if differing := [pair for pair in types if pair[0] != pair[1]]:
            why = "its columns are of the types {} and {}".format(*differing[0])
            return Clause(str(rule), why=why)
        if dialect.unique is None and {*primary} != {*referenced}:
            return Clause(str(rule), why=f"{dialect.name} refers to primary keys alone")
        place = dialect.table_of(sql.contract, other.name)
        text = (
            f"FOREIGN KEY ({dialect.names(dependent)}) "
            f"REFERENCES {place} ({dialect.names(referenced)}){dialect.informational}"
        )
        # Several keys can contain the same columns.
        name = identifier([table.name, *dependent, other.name, *referenced], "fk")
        return Clause(str(rule), name, text)

    def dbt_test(self, rule: Reference, dbt: Dbt) -> Test | None:
        """``relationships``, for one of a single column."""
        if len(rule.dependent) != 1:
            return None
        (dependent,), (referenced,) = rule.sides
        arguments = {"to": dbt.ref(referenced.table), "field": dbt.field(referenced.column)}
        return dependent.column, {"relationships": {"arguments": arguments}}

    def dbt_constraint(self, rule: Reference, dbt: Dbt, table: TableContract) -> JsonObject | None:  # noqa: ARG002
        """The same as in SQL."""
        dependent, referenced = _columns(rule)
        if not dbt.takes((*dependent, *referenced)):
            return None
        to = {"to": dbt.ref(rule.tables[-1]), "to_columns": referenced}
        return {"type": "foreign_key", "columns": dependent, **to}

    def soda_check(self, rule: Reference, soda: Soda) -> Test | None:
        """A check of valid values, for one of a single column of another table."""
        if len(rule.dependent) != 1 or soda.contract.inclusion_nulls != "ignored":
            return None
        (dependent,), (referenced,) = rule.sides
        if dependent.table == referenced.table:
            return None
        place = {"dataset": soda.dataset(referenced.table), "column": referenced.column}
        return dependent.column, {"invalid": {**soda.named(rule), "valid_reference_data": place}}


def _columns(rule: Reference) -> tuple[list[str], list[str]]:
    """The names of the columns on both sides."""
    dependent, referenced = ([each.column for each in side] for side in rule.sides)
    return dependent, referenced


def _is_key(inclusion: InclusionDependency, choice: Choice) -> bool:
    """Whether an inclusion holds and lies in a key, so that it is a foreign key."""
    if inclusion in choice.bounds:
        return False
    columns = frozenset(each.column for each in inclusion.referenced)
    return columns in choice.keys(inclusion.tables[-1])
