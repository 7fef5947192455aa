"""Functional dependencies: rows that agree on the lhs agree on the rhs (read from agree-sets)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.base import Kind, Suggestions
from holdfast.kinds.functional_dependencies.show import DependencyList
from holdfast.kinds.parts import explain_evidence
from holdfast.model.changes import KindChanges
from holdfast.model.comparisons import AGREEMENTS, agreements
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.limits import Limits
from holdfast.model.ranking import Ranked, broke
from holdfast.screen.page import FEW

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.evidence.pairs import Need
    from holdfast.kinds.functional_dependencies.examine import DependencyExaminer
    from holdfast.kinds.functional_dependencies.export import DependencyExporter
    from holdfast.kinds.functional_dependencies.reading import Dependencies
    from holdfast.kinds.stored import StoredTable
    from holdfast.kinds.table_state import Step, TableState
    from holdfast.model.options import Options
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.rules.agreeing import AgreeingTuples
    from holdfast.rules.form import Tables
    from holdfast.runtime.run import Run
    from holdfast.screen.page import Page
    from holdfast.table.state import Table

WIDE = 40
"""Columns from which on functional dependencies are looked for only when they are named."""


class FunctionalDependencies(Kind):
    """Minimal functional dependencies."""

    name = "fds"
    field = "functional_dependencies"
    nouns = ("functional dependency", "functional dependencies")
    pairs = True
    counts = True
    options = ("evidence", "max_error")
    parts = (DependencyList(),)
    suggestions = Suggestions(0.5, by_chance=True, most=3)
    worthwhile = 0.15
    classes = (FunctionalDependency,)
    compares_rows = True
    sharing = "agree on the left"

    def of_table(self, stored: StoredTable) -> Dependencies | None:
        """Those of a table that they were looked for in."""
        from holdfast.kinds.functional_dependencies.reading import Dependencies

        evidence = stored.record.evidence.get(AGREEMENTS)
        if evidence is None or evidence.choice.strategy is None:
            return None
        return Dependencies(stored.file("sets"), stored.name, stored.columns)

    def within(self, sets: pa.Table, table: TableSnapshot) -> Dependencies:
        """The dependencies."""
        from holdfast.kinds.functional_dependencies.reading import Dependencies

        return Dependencies(sets, table.name, list(table.columns))

    def left_out(self, table: TableSnapshot) -> str:
        """A wide table is left out unless they are named."""
        if table.functional_dependencies is not None:
            return ""
        return table.evidence[AGREEMENTS].choice.reason

    def needs(self, run: Run, table: Table) -> Need:
        """No two rows that agree on an lhs may differ on the right; and keys, because what
        they imply is told apart."""
        from holdfast.cover.dependencies import KEY
        from holdfast.evidence.pairs import Need

        columns = len(table.columns.names)
        limits = Limits.both(run.options.max_columns)
        if columns > WIDE and self.name not in (run.options.named or ()):
            why = f"more than {WIDE} columns, and not asked for by name"
            return Need(agreements(columns), (KEY,), limits, why)
        return Need(agreements(columns), (KEY, *range(columns)), limits)

    def count(self, known: TableState) -> int | None:
        """Those of the distinct rows."""
        pairs = known.evidence.get(AGREEMENTS)
        if pairs is None or not pairs.covers.columns:
            return None
        return len(pairs.covers.dependencies[0])

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """Those that came and went."""
        from holdfast.kinds.sets import SetChanges, changes_of_kind

        pairs = step.evidence(AGREEMENTS)
        if pairs is None:
            return None
        old, new = pairs[0].covers.by_rhs, pairs[1].covers.by_rhs
        both = [rhs for rhs in pairs[1].covers.columns if rhs in old]
        if not both:
            return None
        name, names = step.before.table.name, step.before.table.columns.names

        def dependency(
            atoms: tuple[int, ...], rhs: int, error: float | None
        ) -> FunctionalDependency:
            lhs = tuple(names[c] for c in atoms)
            return FunctionalDependency(name, lhs, names[rhs], error or 0.0)

        sets = [SetChanges(rhs, old[rhs], new[rhs]) for rhs in both]
        return changes_of_kind(run, step, AGREEMENTS, sets, dependency)

    def without(self, one: Dependencies, other: Dependencies) -> tuple[FunctionalDependency, ...]:
        """Those that hold without error; without making the others."""
        return one.without(other)

    def exporter(self) -> DependencyExporter:
        """Its part of every form."""
        from holdfast.kinds.functional_dependencies.export import DependencyExporter

        return DependencyExporter(self)

    def examiner(self) -> DependencyExaminer:
        """One by one, whether or not they are looked for."""
        from holdfast.kinds.functional_dependencies.examine import DependencyExaminer

        return DependencyExaminer()

    def near_form(
        self, rule: FunctionalDependency, tables: Tables, options: Options
    ) -> AgreeingTuples | None:
        """Groups of rows that agree."""
        return self.examiner().form(rule, tables, options).grouped() if rule.lhs else None

    def broke(self, rule: FunctionalDependency, step: Step) -> bool:
        """By the minimal sets before and after."""
        from holdfast.kinds.sides import was_broken

        return was_broken(rule, step)

    def rank(self, snapshot: Snapshot, table: str) -> list[Ranked]:
        """A cover of them first, by the redundancy that it explains."""
        from holdfast.kinds.functional_dependencies.rank import ranked

        return ranked(snapshot.tables[table])

    def judged(self, constraint: FunctionalDependency, snapshot: Snapshot, table: str) -> Ranked:
        """How much redundancy one would explain that does not hold."""
        from holdfast.kinds.functional_dependencies.rank import judged

        return judged(constraint, snapshot.tables[table])

    def weigh(
        self, constraints: Sequence[FunctionalDependency], snapshot: Snapshot, table: str
    ) -> list[Ranked]:
        """By the redundancy that they explain, if chance does not explain them."""
        from holdfast.kinds.functional_dependencies.rank import weighed

        return weighed(constraints, snapshot.tables[table])

    def matters(self, each: Ranked) -> bool:
        """Those of the cover that explain redundancy."""
        from holdfast.kinds.functional_dependencies.rank import WORTHWHILE

        return each.stands_alone and each.score >= WORTHWHILE

    def overview(
        self, page: Page, snapshot: Snapshot, table: TableSnapshot, ranking: Sequence[Ranked]
    ) -> None:
        """Those of the cover that explain redundancy."""
        dependencies = table.functional_dependencies
        if dependencies is None:
            return
        first = [*filter(self.matters, ranking)][:FEW]
        part = DependencyList()
        heading = part.heading(len(dependencies))
        if ranking:
            heading += "; those that matter:" if first else ", none of which explains redundancy"
        page.line(heading + part.limited(table, snapshot.options), indent=2)
        for each in first:
            page.line(self.body(each.constraint) + broke(each), "green", 4)
        if first:
            page.rest(len(dependencies) - len(first))

    def explain(self, page: Page, table: TableSnapshot) -> None:
        """By which strategy, and why."""
        explain_evidence(page, table, AGREEMENTS, self.nouns[1])
