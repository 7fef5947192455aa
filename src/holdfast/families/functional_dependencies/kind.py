"""Functional dependencies: rows that agree on the lhs agree on the rhs (read from agree-sets)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.families.base import Kind
from holdfast.families.functional_dependencies.show import DependencyList
from holdfast.model.changes import KindChanges, KindDiff
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.errors import InputError

if TYPE_CHECKING:
    from holdfast.families.functional_dependencies.reading import Dependencies
    from holdfast.families.known import Step
    from holdfast.families.stored import StoredTable
    from holdfast.model.options import Options
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.screen.page import Page
    from holdfast.store.run import Run


class FunctionalDependencies(Kind):
    """Minimal functional dependencies."""

    name = "fds"
    field = "functional_dependencies"
    nouns = ("functional dependency", "functional dependencies")
    pairs = True
    options = ("evidence", "max_error")
    parts = (DependencyList(),)

    def of_table(self, stored: StoredTable) -> Dependencies | None:
        """Those of a table that they were looked for in."""
        from holdfast.families.functional_dependencies.reading import Dependencies

        if stored.pairs is None or stored.pairs["choice"]["strategy"] is None:
            return None
        return Dependencies(stored.file("sets"), stored.name, stored.columns)

    def left_out(self, table: TableSnapshot) -> str:
        """A wide table is left out unless they are named."""
        if table.functional_dependencies is not None:
            return ""
        reason: str = table.details["pairs"]["choice"]["reason"]
        return reason

    def expect(self, options: Options) -> None:
        """Errors are counted with the pairs of rows that show dependencies."""
        if options.max_error is not None and self.name not in options.kinds:
            raise InputError(f"max_error needs counted pairs of rows: add {self.name} to the kinds")

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

    def explain(self, page: Page, table: TableSnapshot) -> None:
        """By which strategy, and why."""
        choice = (table.details.get("pairs") or {}).get("choice", {"strategy": None})
        if choice["strategy"] is not None:
            page.line(f"{self.nouns[1]}: {choice['strategy']}, {choice['reason']}", indent=2)
            seconds, limit = f"{choice['seconds']:,.1f} s", f"{choice['limit']:,.0f} s"
            page.line(f"counting all pairs: about {seconds}; the limit is {limit}", "dim", 4)
