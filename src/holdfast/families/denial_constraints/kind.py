"""Denial constraints: sets of predicates that no two rows satisfy all of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.model.changes import KindChanges
from holdfast.model.constraints import DenialConstraint
from holdfast.model.limits import Limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from holdfast.evidence.pairs import Need
    from holdfast.families.known import Step
    from holdfast.store.run import Run
    from holdfast.table.state import Table

    U64 = NDArray[np.uint64]

COMPARISONS = "comparisons"
"""The name of the space of denial constraints."""


class DenialConstraints:
    """Minimal denial constraints over two rows, one of two mirror images."""

    name = "dcs"
    field = "denial_constraints"
    nouns = ("denial constraint", "denial constraints")
    how_broken = "two rows satisfy it"

    def needs(self, run: Run, table: Table) -> Need:
        """No two rows may satisfy a set of atoms of the space that is chosen for the table."""
        from holdfast.cover.dependencies import KEY
        from holdfast.evidence.pairs import Need
        from holdfast.families.denial_constraints.space import chosen

        return Need(chosen(run, table), (KEY,), Limits(keys=run.options.max_predicates))

    def constraint(self, table: str, form: dict[str, Any]) -> DenialConstraint:
        """The constraint of a JSON form."""
        return DenialConstraint.from_dict(table, form)

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """Those that came and went."""
        from holdfast.cover.dependencies import KEY
        from holdfast.families.denial_constraints.changes import ReportedChanges
        from holdfast.families.denial_constraints.predicates import constraints
        from holdfast.families.denial_constraints.reading import reported
        from holdfast.families.sets import found_in
        from holdfast.kernels import bitsets

        pairs = step.evidence(COMPARISONS)
        if pairs is None:
            return None
        space, table = pairs[1].space, step.before.table

        def constraint(atoms: tuple[int, ...], _rhs: int, error: float | None) -> DenialConstraint:
            masks = bitsets.from_columns([atoms], space.atoms)
            [found] = constraints(masks, space, table.name, table.columns.names)
            return DenialConstraint(found.table, found.predicates, error or 0.0)

        def reading(sets: U64) -> U64:
            return reported(sets, space)

        covers = pairs[0].covers.by_side[KEY], pairs[1].covers.by_side[KEY]
        sets = ReportedChanges(KEY, *covers, space)
        return found_in(run, step, COMPARISONS, [sets], constraint, reading=reading)
