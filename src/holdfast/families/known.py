"""What a profile knows of a table: its rows, and what pairs of them show; and a step of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from holdfast.evidence import storage
from holdfast.evidence.pairs import PairEvidence
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.kernels.cover import MOST, TooMany
from holdfast.model.commits import AGREEMENT, Commit, TableRecord
from holdfast.model.errors import InputError
from holdfast.store import Store
from holdfast.store.run import Run
from holdfast.table import compaction
from holdfast.table.batch import estimated
from holdfast.table.change import RowChange
from holdfast.table.state import Table


@dataclass(frozen=True)
class Known:
    """A table in one version."""

    table: Table
    pairs: PairEvidence | None = None  # None: no kind that is looked for needs pairs of rows

    @staticmethod
    def load(store: Store, commit: Commit, name: str) -> Known:
        """A table that a commit stored."""
        record = commit.table(name)
        table = Table.stored(name, record)
        if AGREEMENT not in record.evidence:
            return Known(table)
        pairs = storage.load(store, record.evidence[AGREEMENT], len(table.columns.names))
        return Known(table, pairs)

    def changed(self, run: Run, change: RowChange) -> tuple[Known, RowChange]:
        """After a batch; the change then has the indexes and duplicates that were found."""
        if self.pairs is None:
            # Nobody looks for repeated rows then.
            return Known(replace(change.after, duplicates=0)), change
        with bounded(self.table.name):
            pairs, change = self.pairs.changed(run, estimated(run, change))
        return Known(change.after, pairs), change

    def compacted(self, run: Run) -> Known:
        """With small segments merged."""
        table = replace(self.table, segments=tuple(s for s in self.table.segments if s.live))
        if not compaction.due(table.segments):
            return replace(self, table=table)
        with run.stage("merge"):
            if self.pairs is None:
                return Known(compaction.merge(run, table, np.empty(0, np.int64))[0])
            table, moves = compaction.merge(run, table, self.pairs.witness_ids)
            return Known(table, self.pairs.renumbered(moves))

    def saved(self, run: Run, before: Known | None) -> Known:
        """With what changed written to files."""
        if self.pairs is None:
            return self
        old = before.pairs if before else None
        return replace(self, pairs=storage.save(run, self.table, self.pairs, old))

    @property
    def record(self) -> TableRecord:
        """What a commit stores."""
        if self.pairs is None:
            return self.table.record
        evidence = {AGREEMENT: storage.record(self.pairs)}
        return replace(self.table.record, evidence=evidence, counts=storage.counts(self.pairs))


@dataclass(frozen=True)
class Step:
    """A table before and after a batch, with the values of all tables."""

    before: Known
    after: Known
    values_before: Inclusion | None = None  # None: no kind that is looked for needs them
    values_after: Inclusion | None = None

    @property
    def pairs(self) -> tuple[PairEvidence, PairEvidence] | None:
        """What pairs of rows show, before and after."""
        before, after = self.before.pairs, self.after.pairs
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
