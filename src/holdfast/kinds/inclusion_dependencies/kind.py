"""Inclusion dependencies as a kind of constraint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.kinds.base import Kind, Suggestions
from holdfast.kinds.inclusion_dependencies.show import ForeignKeyList, InclusionList, covered
from holdfast.model.changes import SHOWN, Broken, KindChanges
from holdfast.model.constraints import Key
from holdfast.model.inclusion_dependencies import (
    Attribute,
    Cluster,
    ForeignKey,
    InclusionDependency,
)
from holdfast.model.options import Settings, expect_coverage
from holdfast.model.ranking import Ranked, broke
from holdfast.model.records import Json, from_form
from holdfast.model.versions import KindDiff
from holdfast.screen.page import FEW
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.kinds.inclusion_dependencies.examine import InclusionExaminer
    from holdfast.kinds.inclusion_dependencies.export import InclusionExporter
    from holdfast.kinds.inclusion_dependencies.reading import Inclusions
    from holdfast.kinds.stored import StoredProfile
    from holdfast.kinds.table_state import Step
    from holdfast.model.expectations import Tally
    from holdfast.model.near import NearBounds, NearRule
    from holdfast.model.options import Options
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.rules.contained import ContainedTuples
    from holdfast.rules.form import Tables
    from holdfast.runtime.run import Run
    from holdfast.screen.page import Page
    from holdfast.store import Store
    from holdfast.values.state import ValueState


LIKELY = 0.6
"""The score from which on a foreign key is shown as a parent."""


class InclusionDependencies(Kind):
    """Columns whose values all occur in others, of any table."""

    name = "inds"
    field = "inclusion_dependencies"
    nouns = ("inclusion dependency", "inclusion dependencies")
    values = True
    options = (
        "min_coverage",
        "max_arity",
        "inclusion_nulls",
        "empty_columns",
        "within_tables",
        "insert_only",
    )
    parts = (InclusionList(), ForeignKeyList())
    suggestions = Suggestions(0.6, words=("a foreign key",))
    classes = (InclusionDependency, ForeignKey)
    worthwhile = LIKELY

    def of_profile(self, stored: StoredProfile) -> Inclusions | None:
        """Which columns of all tables are contained in which."""
        from holdfast.kinds.inclusion_dependencies.reading import inclusions

        return inclusions(stored)

    def asked_with(self, reading: Inclusions, options: Settings) -> Inclusions:
        """Those of another coverage."""
        least = options.get("min_coverage", reading.min_coverage)
        expect_coverage(least)
        return replace(reading, min_coverage=least)

    def constraint(self, _table: str, form: Json) -> InclusionDependency:
        """The dependency of a JSON form."""
        return from_form(InclusionDependency, form)

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """Those that came, and those that broke with what is left of them.

        Where a batch changes several tables each is reported once: with its dependent table, or
        if the batch does not change that one, with the referenced table."""
        from holdfast.values.shared import Wanted

        before, after = step.values_before, step.values_after
        if before is None or after is None:
            return None
        if before is after:
            return KindChanges()
        options = run.options
        wanted = Wanted(options.min_coverage, options.empty_columns, options.within_tables)
        stretch = after.stretches[step.after.table.name]
        unary = after.shared.changes(before.shared, *stretch, wanted)
        wide = [values.holding(options) for values in (before, after)]
        held, holds = map(set, wide)
        came = after.shared.named(unary[0])
        came += [after.named(each) for each in wide[1] if each not in held]
        went = after.shared.named(unary[1])
        gone = [each for each in wide[0] if each not in holds and not after.is_dropped(each)]
        went += [replace(after.named(each), coverage=None) for each in gone]
        mine = step.after.table.name

        def reported_here(each: InclusionDependency) -> bool:
            dependent, referenced = each.dependent[0].table, each.referenced[0].table
            if dependent in step.others:
                return False
            return dependent == mine or referenced not in step.others

        gained = [each for each in came if reported_here(each)]
        lost = [each for each in went if reported_here(each)]
        unchecked = [each for each in lost if after.arity and len(each.dependent) > after.arity]
        lost = [each for each in lost if each not in unchecked]
        counts = {"gained": len(gained), "broken": len(lost)}
        broken = tuple(Broken(each) for each in lost[:SHOWN])
        if unchecked:
            counts["unchecked"] = len(unchecked)
        return KindChanges(
            tuple(gained[:SHOWN]), broken, unchecked=tuple(unchecked[:SHOWN]), counts=counts
        )

    def diff(self, before: Snapshot, after: Snapshot, table: str) -> KindDiff | None:
        """Those of a table's columns that hold in one version alone."""
        old, new = before.inclusions, after.inclusions
        if old is None or new is None:
            return None
        sides = [
            {
                each.sides: each
                for each in inclusions.dependencies()
                if each.dependent[0].table == table
            }
            for inclusions in (old, new)
        ]
        gained = tuple(each for key, each in sides[1].items() if key not in sides[0])
        lost = [each for key, each in sides[0].items() if key not in sides[1]]
        most = new.arity
        known = [each for each in lost if most is None or len(each.dependent) <= most]
        return KindDiff(gained, tuple(new.lost(each) for each in known))

    def clusters(self, store: Store) -> list[Cluster]:
        """The clusters of the current version, those of most values first."""
        from holdfast.kinds.inclusion_dependencies.reading import clusters

        return clusters(store)

    def distinct_values(self, reading: Inclusions) -> dict[Attribute, int]:
        """The values of all columns are counted."""
        return reading.distinct

    def rule_of(self, constraint: Any) -> InclusionDependency:
        """Of a foreign key the inclusion."""
        return constraint.inclusion if isinstance(constraint, ForeignKey) else constraint

    def of_rows(self, rule: InclusionDependency) -> bool:  # noqa: ARG002
        """Those without a match."""
        return True

    def violated_by(self, rule: InclusionDependency, tally: Tally) -> str:  # noqa: ARG002
        """With the distinct values that are missing."""
        missing = f"{tally.wrong:,} of {count(tally.total, 'value')} missing"
        return f"{count(tally.violations or 0, 'row')} without a match: {missing}"

    def exporter(self) -> InclusionExporter:
        """Its part of every form."""
        from holdfast.kinds.inclusion_dependencies.export import InclusionExporter

        return InclusionExporter(self)

    def examiner(self) -> InclusionExaminer:
        """One by one, whether or not they are looked for."""
        from holdfast.kinds.inclusion_dependencies.examine import InclusionExaminer

        return InclusionExaminer()

    def judged(self, constraint: InclusionDependency, snapshot: Snapshot, table: str) -> Ranked:  # noqa: ARG002
        """By its score as a foreign key."""
        from holdfast.kinds.inclusion_dependencies.near import judged

        if snapshot.inclusions is None:
            return Ranked(constraint, 0.0)
        keys = {
            name: [key for each in of_table.near_rules if isinstance(key := each.rule, Key)]
            for name, of_table in snapshot.tables.items()
        }
        return judged(constraint, snapshot.inclusions, keys)

    def near_form(
        self, rule: InclusionDependency, tables: Tables, options: Options
    ) -> ContainedTuples:
        """Tuples that are missing."""
        return self.examiner().form(rule, tables, options)

    def nearly(
        self,
        snapshot: Snapshot,
        table: str,
        bounds: NearBounds,
        keys: Mapping[str, Sequence[Key]],
        values: ValueState | None,
    ) -> list[tuple[float, NearRule]]:
        """Foreign keys."""
        from holdfast.kinds.inclusion_dependencies.near import nearly

        if snapshot.inclusions is None:
            return []
        return nearly(snapshot.inclusions, table, bounds, keys, values, LIKELY)

    def broke(self, rule: InclusionDependency, step: Step) -> bool:
        """By the values before and after."""
        from holdfast.kinds.inclusion_dependencies.near import was_broken

        return was_broken(rule, step)

    def broken_elsewhere(self, step: Step) -> set[str]:
        """The tables that refer to a changed one."""
        from holdfast.kinds.inclusion_dependencies.near import broken_elsewhere

        return broken_elsewhere(step)

    def rank(self, snapshot: Snapshot, table: str) -> list[Ranked]:
        """The foreign keys of a table as they are scored: what its rows belong to."""
        foreign_keys = [] if snapshot.inclusions is None else snapshot.inclusions.foreign_keys(1.0)
        return [
            Ranked(each, each.score) for each in foreign_keys if each.dependent[0].table == table
        ]

    def matters(self, each: Ranked) -> bool:
        """What rows belong to."""
        return each.score >= LIKELY

    def overview(
        self,
        page: Page,
        snapshot: Snapshot,  # noqa: ARG002  the ranking has it all
        table: TableSnapshot,  # noqa: ARG002
        ranking: Sequence[Ranked],
    ) -> None:
        """What the rows of a table belong to."""
        likely = [*filter(self.matters, ranking)]
        if likely:
            page.line(count(len(likely), "parent"), indent=2)
        for each in likely[:FEW]:
            page.line(super().body(each.constraint) + broke(each), "green", 4)
        page.rest(len(likely) - FEW)

    def overview_of_profile(self, page: Page, snapshot: Snapshot) -> None:
        """How many there are."""
        inclusions = snapshot.inclusions
        if inclusions is None:
            return
        number, keys = len(InclusionList().listed(snapshot)), len(ForeignKeyList().listed(snapshot))
        if number:
            page.line()
            foreign = f", {keys:,} of them into a key" if keys else ""
            page.line(count(number, *self.nouns) + foreign)

    def body(self, constraint: InclusionDependency) -> str:
        """With what is left of one that broke."""
        return super().body(constraint) + covered(constraint, "still ")
