"""What a profile knows of a table: its rows, and what pairs of them show; and a step of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from holdfast.evidence import pairs, storage
from holdfast.evidence.pairs import PairEvidence
from holdfast.kernels import bitsets
from holdfast.kernels.cover import MOST, TooMany
from holdfast.model.commits import Commit, TableRecord
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.errors import InputError
from holdfast.model.identifiers import of_set
from holdfast.model.near import NearList
from holdfast.runtime.run import Run
from holdfast.store import Store
from holdfast.table import compaction
from holdfast.table.batch import estimated
from holdfast.table.change import RowChange
from holdfast.table.state import Table
from holdfast.values.state import ValueState

_REFERRED_TO = 5
"""So many keys of two columns of a table are looked at as what other tables refer to."""

_NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True)
class TableState:
    """A table in one version."""

    table: Table
    evidence: dict[str, PairEvidence] = field(default_factory=dict)  # by space of comparisons
    near: NearList | None = None  # the rules that nearly hold; None: they were not looked for

    @staticmethod
    def load(store: Store, commit: Commit, name: str) -> TableState:
        """A table that a commit stored."""
        record = commit.table(name)
        table = Table.stored(name, record)
        columns = len(table.columns.names)
        kept = record.evidence.items()
        evidence = {space: storage.load(store, each, columns) for space, each in kept}
        return TableState(table, evidence, record.near)

    def change(self, run: Run, change: RowChange) -> tuple[TableState, RowChange]:
        """After a batch; the change then has the indexes and duplicates that were found."""
        if not self.evidence:
            # Nobody looks for repeated rows then.
            return replace(self, table=replace(change.after, duplicates=0)), change
        with bounded(self.table.name):
            change = replace(change, after=estimated(run, change.after))
            evidence, change = pairs.changed(run, change, self.evidence)
        return replace(self, table=change.after, evidence=evidence), change

    def compact(self, run: Run) -> TableState:
        """With small segments merged."""
        table = replace(self.table, segments=tuple(s for s in self.table.segments if s.live))
        if not compaction.due(table.segments, table.words):
            return replace(self, table=table)
        with run.stage("merge"):
            ids = [each.witness_ids for each in self.evidence.values()]
            table, moves = compaction.merge(run, table, np.unique(np.concatenate([_NOBODY, *ids])))
            moved = {name: each.renumbered(moves) for name, each in self.evidence.items()}
            return replace(self, table=table, evidence=moved)

    @property
    def keys_of_two(self) -> tuple[tuple[int, int], ...]:
        """Its keys of two columns, as positions: of many those that are most like identifiers, by
        names and types alone, so that what other rows are there does not matter."""
        pairs = self.evidence.get(AGREEMENTS)
        if pairs is None or self.table.duplicates:
            return ()
        minimal = pairs.covers.keys.minimal
        keys = bitsets.to_columns(minimal[bitsets.popcount(minimal) == 2])
        names, types = self.table.columns.names, self.table.columns.types
        keys.sort(key=lambda key: (-of_set(key, names, types, self.table.name), key))
        return tuple((one, two) for one, two in keys[:_REFERRED_TO])

    def save(self, run: Run, before: TableState | None) -> TableState:
        """With what changed written to files."""
        old = before.evidence if before else {}
        saved = {
            name: storage.save(run, self.table, each, old.get(name))
            for name, each in self.evidence.items()
        }
        return replace(self, evidence=saved)

    @property
    def record(self) -> TableRecord:
        """What a commit stores."""
        evidence = {name: storage.record(each) for name, each in self.evidence.items()}
        return replace(self.table.record, evidence=evidence, near=self.near)


@dataclass(frozen=True)
class Step:
    """A table before and after a batch, with the values of all tables."""

    before: TableState
    after: TableState
    values_before: ValueState | None = None  # None: no kind that is looked for needs them
    values_after: ValueState | None = None
    others: frozenset[str] = frozenset()  # further tables that the batch changes

    def evidence(self, space: str) -> tuple[PairEvidence, PairEvidence] | None:
        """What pairs of rows show in a space, before and after."""
        before, after = self.before.evidence.get(space), self.after.evidence.get(space)
        return None if before is None or after is None else (before, after)


@contextmanager
def bounded(name: str) -> Iterator[None]:
    """A table with more minimal sets than anybody can hold is an error that says what to do."""
    try:
        yield
    except TooMany:
        raise InputError(
            f"table {name!r} has more than {MOST:,} minimal keys, or left sides of one column; "
            "search only for short ones, e.g. --max-columns 3"
        ) from None
