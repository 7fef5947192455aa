"""A kind of constraint that Holdfast does not have, read from pairs of rows with three atoms a
column: sets of weak comparisons that no two rows satisfy, all of them, as they are minimal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from holdfast.cover.dependencies import KEY
from holdfast.evidence.pairs import Need
from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.parts import TablePart
from holdfast.kinds.sets import SetChanges, changes_of_kind
from holdfast.kinds.stored import StoredTable, members
from holdfast.kinds.table_state import Step, TableState
from holdfast.model.changes import KindChanges
from holdfast.model.comparisons import ORDER, Comparison, Space
from holdfast.model.constraints import OfTable
from holdfast.model.limits import Limits
from holdfast.report.snapshot import TableSnapshot
from holdfast.runtime.run import Run
from holdfast.table.state import Table

SPACE = "by order"


@dataclass(frozen=True)
class NoPair(OfTable):
    """No two rows satisfy these atoms."""

    FORM = ("atoms", "error")

    atoms: tuple[int, ...]
    error: float = 0.0

    @property
    def body(self) -> str:
        return f"no pair satisfies {list(self.atoms)}"

    @property
    def involved(self) -> tuple[str, ...]:
        return ()


class NoPairList(TablePart):
    name = "no-pairs"
    field = "no_pairs"
    nouns = ("set that no pair satisfies", "sets that no pair satisfies")

    def listed(self, table: TableSnapshot) -> Sequence[NoPair]:
        found: Sequence[NoPair] = table.found["nopairs"]
        return found


class NoPairs(Kind):
    name = "nopairs"
    field = "no_pairs"
    nouns = ("set that no pair satisfies", "sets that no pair satisfies")
    default = False
    gates = False
    classes = (NoPair,)
    counts = True
    parts = (NoPairList(),)

    def needs(self, run: Run, table: Table) -> Need:
        columns = range(len(table.columns.names))
        space = Space(SPACE, len(columns), tuple(Comparison(c, c, ORDER) for c in columns))
        return Need(space, (KEY,), Limits(keys=run.options.max_columns))

    def count(self, known: TableState) -> int | None:
        return len(known.evidence[SPACE].covers.keys.minimal) if SPACE in known.evidence else None

    def of_table(self, stored: StoredTable) -> list[NoPair] | None:
        record = stored.record.evidence.get(SPACE)
        if record is None or record.space is None:
            return None
        kept = stored.file("sets", SPACE)
        sets = members(kept.column("mask").to_pylist(), record.space.atoms)
        errors = kept.column("error").to_pylist()
        pairs = zip(sets, errors, strict=True)
        return [NoPair(stored.name, tuple(atoms), error) for atoms, error in pairs]

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        pairs = step.evidence(SPACE)
        if pairs is None:
            return None
        sets = SetChanges(KEY, pairs[0].covers.keys, pairs[1].covers.keys)

        def made(atoms: tuple[int, ...], _rhs: int, error: float | None) -> NoPair:
            return NoPair(step.before.table.name, atoms, error or 0.0)

        return changes_of_kind(run, step, SPACE, [sets], made)


@pytest.fixture
def no_pairs(monkeypatch: pytest.MonkeyPatch) -> Kind:
    """The kind, in the registry while a test runs."""
    kind = NoPairs()
    monkeypatch.setitem(registry.REGISTRY, kind.name, kind)
    return kind
