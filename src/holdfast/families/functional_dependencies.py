"""Functional dependencies: rows that agree on the lhs agree on the rhs (read from agree-sets)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.model.changes import KindChanges, KindDiff
from holdfast.model.constraints import FunctionalDependency

if TYPE_CHECKING:
    from holdfast.families.known import Step
    from holdfast.report.snapshot import Snapshot
    from holdfast.store.run import Run


class FunctionalDependencies:
    """Minimal functional dependencies."""

    name = "fds"
    field = "functional_dependencies"
    nouns = ("functional dependency", "functional dependencies")
    how_broken = ""

    def constraint(self, table: str, form: dict[str, Any]) -> FunctionalDependency:
        """The dependency of a JSON form."""
        return FunctionalDependency.from_dict(table, form)

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """Those that came and went."""
        from holdfast.families.sets import SetChanges, found_in

        pairs = step.pairs
        if pairs is None:
            return None
        old, new = pairs[0].covers.by_side, pairs[1].covers.by_side
        both = [side for side in pairs[1].covers.columns if side in old]
        if not both:
            return None
        name, names = step.before.table.name, step.before.table.columns.names

        def dependency(
            columns: tuple[str, ...], rhs: int, error: float | None
        ) -> FunctionalDependency:
            return FunctionalDependency(name, columns, names[rhs], error or 0.0)

        sets = [SetChanges(side, old[side], new[side]) for side in both]
        return found_in(run, step, sets, dependency)

    def diff(self, before: Snapshot, after: Snapshot, table: str) -> KindDiff | None:
        """Those that hold without error in one version alone."""
        old = before.tables[table].functional_dependencies
        new = after.tables[table].functional_dependencies
        if old is None or new is None:
            return None
        return KindDiff(new.without(old), old.without(new))
