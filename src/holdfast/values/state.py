"""The values of all tables of a profile in one version, with the same operations as evidence:
discover, change, compact, save, load, compare.

An *attribute* is a column of a table. The *cluster* of a value is the set of attributes in which it
occurs, and A ⊆ B holds iff every cluster that contains A contains B (Incremental Discovery of
Inclusion Dependencies, lemma 4.2). Values are stored as runs of entries in files, and so are the
clusters with their numbers of values, and how many values every two attributes share. A batch moves
values between clusters, and touches only the values that it contains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.model.commits import InclusionRecord, ValueRun
from holdfast.model.inclusion_dependencies import (
    EMPTY,
    HOLDS,
    UNKNOWN,
    Attribute,
    InclusionDependency,
)
from holdfast.model.options import Options
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.store import Store
from holdfast.table.change import RowChange, TableRows
from holdfast.table.state import Table
from holdfast.tasks import values as tasks
from holdfast.values import changes, compaction, storage
from holdfast.values.clusters import Clusters, unfit
from holdfast.values.composite import Keys
from holdfast.values.counting import ranges
from holdfast.values.n_ary import Candidate, Verdicts
from holdfast.values.overlaps import Overlaps, Stretch, ValueMoves
from holdfast.values.shared import Shared, shared_values
from holdfast.values.tuples import TupleCounts


@dataclass(frozen=True)
class ValueState:
    """What is known of the values of all tables in one version."""

    attributes: tuple[Attribute, ...]
    families: tuple[str, ...]
    runs: tuple[ValueRun, ...]
    clusters: Clusters
    overlaps: Overlaps
    verdicts: Verdicts = field(default_factory=dict)  # on candidates of several columns
    keys: Keys = field(default_factory=dict)  # that candidates of two columns refer to
    counts: TupleCounts = TupleCounts()  # noqa: RUF009  # of these candidates; a frozen value
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # once written, by role
    arity: int | None = None  # columns up to which verdicts are complete, if a time budget ended

    # Operations

    @staticmethod
    def discover(run: Run, tables: Mapping[str, Table], keys: Keys) -> ValueState:
        """The values of all rows of all tables."""
        with run.stage("values"):
            return replace(_empty(tables), keys=keys)._of_rows(run, tables)

    def change(
        self,
        run: Run,
        row_changes: Sequence[RowChange],
        tables: Mapping[str, Table],
        keys: Keys,
    ) -> ValueState:
        """The state after a batch: the values of new rows merged, those of deleted rows extracted.
        ``row_changes`` and ``keys`` are of the tables that the batch changes; ``tables`` are all
        tables after it."""
        with run.stage("values"):
            rows = [rows for c in row_changes for rows in (c.arrived, c.departed)]
            batch = {change.after.name: change for change in row_changes}
            after = changes.with_rows(run, self, rows)
            if keys:
                after = replace(after, keys={**self.keys, **keys})
            return changes.with_verdicts(run, after, tables, self, batch)

    def with_keys(self, run: Run, tables: Mapping[str, Table], keys: Keys) -> ValueState:
        """The same values, where it is the keys of tables, or the names of columns, that are
        others."""
        if run.options.max_arity is not None:
            return self
        with run.stage("values"):
            fresh = replace(self, keys=keys, verdicts={}, counts=TupleCounts())
            return changes.with_verdicts(run, fresh, tables)

    def compact(self, run: Run) -> ValueState:
        """The state with runs merged where there are many."""
        if not (compaction.due(self.runs) or compaction.due(self.counts.record.runs)):
            return self
        with run.stage("merge"):
            frequencies = not run.options.insert_only
            runs = compaction.merged_runs(
                run.runner, self.runs, run.destination, frequencies, run.progress
            )
            return replace(self, runs=runs, counts=self.counts.compact(run))

    def save(self, run: Run, before: ValueState | None) -> ValueState:
        """The state with its changes written to files."""
        return storage.save(run.store, run.lease, self, before)

    @staticmethod
    def load(store: Store, record: InclusionRecord) -> ValueState:
        """The state that a commit stored."""
        shared = shared_values(store, record)
        words = bitsets.words_for(len(shared.attributes))
        return ValueState(
            shared.attributes,
            shared.families,
            record.runs,
            Clusters(words, record.clusters, store),
            shared.overlaps,
            storage.verdicts(store, record),
            storage.keys(store, record, shared.attributes),
            TupleCounts.of(record.tuples),
            record.files,
            record.arity,
        )

    @property
    def record(self) -> InclusionRecord:
        """What a commit stores."""
        runs = self.runs, self.overlaps.runs, self.clusters.runs
        return InclusionRecord(*runs, self.files, self.arity, self.counts.stored)

    def compare(
        self, run: Run, tables: Mapping[str, Table], keys: Keys
    ) -> Iterator[tuple[str, str]]:
        """Where the state differs from the rows and keys: a table, and a sentence about it."""
        nothing = _without_values(self.attributes, self.families)
        nothing = replace(nothing, arity=self.arity, keys=keys)
        fresh = nothing._of_rows(run, tables)
        any_differ = False
        for low, high in self.overlaps.stretches():
            old, new = (state.overlaps.rows(low, high) for state in (self, fresh))
            for one, two in np.argwhere(np.triu(old != new, low)).tolist():
                any_differ = True
                a, b = self.attributes[low + one], self.attributes[two]
                what = f"{a} has" if low + one == two else f"{a} and {b} share"
                yield (
                    a.table,
                    f"the profile says that {what} {old[one, two]} distinct values, but it is "
                    f"{new[one, two]}",
                )
        if any_differ:
            return
        table = self.attributes[0].table
        old_statuses, new_statuses = (
            {candidate: verdict.status for candidate, verdict in state.verdicts.items()}
            for state in (self, fresh)
        )
        if old_statuses != new_statuses:
            yield table, "the profile's inclusions of several columns are not those of the rows"
        elif not fresh.counts.inside(self.counts):
            yield table, "the profile's counts of tuples of two columns are not those of the rows"
        clusters = zip(self.clusters.all(), fresh.clusters.all(), strict=True)
        if not all(np.array_equal(a, b) for a, b in clusters):
            yield table, "the profile's clusters of attributes are not those of the rows"
        parts = max([1, *(len(run.parts) for run in (*self.runs, *fresh.runs))])
        root = run.store.path
        calls: list[Call] = [
            (tasks.compare, tasks.CompareRuns(root, low, high, self.runs, fresh.runs))
            for low, high in ranges(parts)
        ]
        for task_result in run_all(run.runner, calls):
            for number, count in task_result.facts["wrong"].items():
                attribute = self.attributes[int(number)]
                yield attribute.table, f"the profile counts {count} values of {attribute} wrongly"

    def _of_rows(self, run: Run, tables: Mapping[str, Table]) -> ValueState:
        rows = [TableRows.living(table) for table in tables.values()]
        return changes.with_verdicts(run, changes.with_rows(run, self, rows), tables)

    # Parts

    @cached_property
    def stretches(self) -> dict[str, Stretch]:
        """The numbers of each table's attributes, in the order of its columns."""
        stretches: dict[str, Stretch] = {}
        for number, attribute in enumerate(self.attributes):
            first, _ = stretches.get(attribute.table, (number, number))
            stretches[attribute.table] = (first, number + 1)
        return stretches

    @cached_property
    def shared(self) -> Shared:
        """The part from which dependencies of one column are read."""
        return Shared(self.attributes, self.families, self.overlaps)

    def moved(self, masks: U64, counts: I64, tables: set[str]) -> ValueState:
        """The state after values of some tables moved between clusters: each row has the mask
        before and the mask after."""
        words = self.clusters.words
        before, after = (np.ascontiguousarray(masks[:, at : at + words]) for at in (0, words))
        changed = tuple(self.stretches[name] for name in self.stretches if name in tables)
        moves = ValueMoves(before, after, counts, changed)
        overlaps = self.overlaps.moved(moves)
        if (overlaps.distinct < 0).any():
            raise unfit()
        return replace(self, clusters=replace(self.clusters, moves=moves), overlaps=overlaps)

    def holding(self, options: Options) -> list[Candidate]:
        """The candidates of several columns that hold."""
        wanted = (HOLDS, EMPTY) if options.empty_columns else (HOLDS,)
        return [one for one, verdict in self.verdicts.items() if verdict.status in wanted]

    def is_dropped(self, candidate: Candidate) -> bool:
        """Whether a candidate that held is no longer one although its columns are contained by
        themselves, as what it refers to is no key any more; or one too many to be counted."""
        if candidate in self.verdicts:
            return self.verdicts[candidate].status == UNKNOWN
        if self.arity or len(candidate.columns) > 2:
            return False
        shared, pairs = self.shared, zip(*self.named(candidate).sides, strict=True)
        return all(shared.common(a, b) == self._distinct(a) > 0 for a, b in pairs)

    def _distinct(self, attribute: Attribute) -> int:
        return int(self.overlaps.distinct[self.shared.number[attribute]])

    def named(self, candidate: Candidate) -> InclusionDependency:
        """A candidate as a constraint."""
        left, right = (self.stretches[name][0] for name in (candidate.table, candidate.other))
        return InclusionDependency(
            tuple(self.attributes[left + c] for c in candidate.columns),
            tuple(self.attributes[right + c] for c in candidate.others),
        )


def _empty(tables: Mapping[str, Table]) -> ValueState:
    """Attributes without values."""
    attributes, families = [], []
    for table, columns in ((name, table.columns) for name, table in tables.items()):
        for c, name in enumerate(columns.names):
            attributes.append(Attribute(table, name))
            families.append(columns.family(c))
    return _without_values(tuple(attributes), tuple(families))


def _without_values(attributes: tuple[Attribute, ...], families: tuple[str, ...]) -> ValueState:
    count = len(attributes)
    overlaps = Overlaps(np.zeros(count, np.int64))
    return ValueState(attributes, families, (), Clusters(bitsets.words_for(count)), overlaps)
