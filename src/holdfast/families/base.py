"""What a kind of constraint is: one type that the rest of Holdfast goes round, and never names.

A kind says what it is called, how its constraints come back from their JSON form, what a batch did
to them, and how two versions differ in them. Kinds are imported wherever a profile is looked at, so
what needs kernels is imported where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from holdfast.model.changes import KindChanges, KindDiff
from holdfast.model.constraints import Constraint

if TYPE_CHECKING:
    from holdfast.evidence.pairs import Need
    from holdfast.families.known import Step
    from holdfast.report.snapshot import Snapshot
    from holdfast.store.run import Run
    from holdfast.table.state import Table


class Kind(Protocol):
    """One kind of constraint."""

    @property
    def name(self) -> str:
        """As ``--kinds`` and the stored options name it: ``fds``."""

    @property
    def field(self) -> str:
        """As JSON and changes name it: ``functional_dependencies``."""

    @property
    def nouns(self) -> tuple[str, str]:
        """As people name one of them, and several."""

    @property
    def how_broken(self) -> str:
        """What rows do that break one: "two rows agree on it"; empty where that is plain."""

    def needs(self, run: Run, table: Table) -> Need | None:
        """What it asks of pairs of a table's rows; None: nothing."""

    def constraint(self, table: str, form: dict[str, Any]) -> Constraint:
        """The constraint of a JSON form."""

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """What a batch did to the constraints; None where the kind is not looked for."""

    def diff(self, before: Snapshot, after: Snapshot, table: str) -> KindDiff | None:
        """What two versions of a table have and the other has not; None where that is unknown."""
