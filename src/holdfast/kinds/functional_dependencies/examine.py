"""One functional dependency: which rows agree on its left side and differ on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.kinds import sides
from holdfast.kinds.examine import Examiner
from holdfast.kinds.sides import MinimalSets, counted_error
from holdfast.kinds.stored import KEY_RHS
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.explanation import Nearby
from holdfast.model.options import Options
from holdfast.rules.form import Tables, columns_of, in_order
from holdfast.rules.version import Version

if TYPE_CHECKING:
    from holdfast.kinds.table_state import TableState
    from holdfast.rules.agreeing import AgreeingTuples
    from holdfast.rules.question import Question


class DependencyExaminer(Examiner[FunctionalDependency]):
    """Functional dependencies."""

    kind = "functional_dependencies"

    def checked(self, rule: FunctionalDependency, tables: Tables) -> FunctionalDependency:
        """Its left side is in table order."""
        columns = columns_of(rule.table, tables)
        columns.position(rule.rhs, rule.table)
        lhs = in_order(rule.lhs, rule.table, columns)
        return FunctionalDependency(rule.table, lhs, rule.rhs)

    def form(self, rule: FunctionalDependency, tables: Tables, options: Options) -> AgreeingTuples:
        """Rows that agree on the left side and not on the right."""
        from holdfast.rules.agreeing import AgreeingTuples

        return AgreeingTuples.of(rule.table, rule.lhs, rule.rhs, tables[rule.table], options)

    def cells(self, rule: FunctionalDependency) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Rows agree on the left, and differ on the right."""
        return rule.lhs, (rule.rhs,)

    def counted_error(self, state: TableState, rule: FunctionalDependency) -> float | None:
        """The share of the pairs that agree on the left and differ on the right."""
        return counted_error(state, rule.lhs, rule.rhs)

    def nearby(
        self,
        question: Question,  # noqa: ARG002
        version: Version,
        rule: FunctionalDependency,
        holds: bool,
    ) -> Nearby:
        """Dependencies with more columns on the left, or with fewer."""
        if rule.rhs in rule.lhs:
            return Nearby(notes=(f"it says nothing: {rule.rhs} is on both sides",))
        known = self._sets(version, rule)
        return known.nearby(
            rule.lhs,
            holds,
            lambda lhs: FunctionalDependency(rule.table, lhs, rule.rhs),
            "functional dependencies",
        )

    def source(self, version: Version, rule: FunctionalDependency) -> Any:
        """Minimal left sides."""
        return sides.source(version, rule.table)

    def held(self, version: Version, rule: FunctionalDependency) -> bool | None:
        """Whether the left side contained a minimal one, or a key of the distinct rows."""
        if rule.rhs in rule.lhs:
            return True
        said = self._sets(version, rule).says(rule.lhs)
        if said is None and MinimalSets(version, rule.table, KEY_RHS).says(rule.lhs):
            return True
        return said

    def _sets(self, version: Version, rule: FunctionalDependency) -> MinimalSets:
        return MinimalSets(
            version, rule.table, version.commit.table(rule.table).columns.names.index(rule.rhs)
        )
