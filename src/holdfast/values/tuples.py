"""Counted tuples, kept under batches: what a batch contains is looked up, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.model.commits import ReferenceRecord, SideRecord, TuplesRecord
from holdfast.model.errors import StoreError
from holdfast.model.tuples import Countable, TupleSide
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import TableRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import tuples as tasks
from holdfast.tasks.values import RowValues
from holdfast.tasks.view import View
from holdfast.values.compaction import merged_runs
from holdfast.values.counting import columns_of, counted, run_of, values_of

SHOWN = 8
"""Tuples that violate a rule and are remembered, to show their rows."""

NO_CODES = np.empty((0, 2), np.uint64)

_SUMS = ("distinct", "rows", "pairs", "explained", "fraction", "majority")
"""The sums of a side, as the kernel has them in its columns (:mod:`holdfast.kernels.tuples`)."""

Sides = tuple[SideRecord | None, SideRecord | None]
"""The two sides of a rule, as they are counted; None: no columns, or no such side."""

RowOfCode = tuple[int, tuple[int, int]]
"""The id of a row, and its code on the second side."""


@dataclass(frozen=True)
class TupleCounts:
    """The counted tuples of a version, and codes of some that violate rules."""

    record: TuplesRecord = TuplesRecord()  # noqa: RUF009  # a frozen value
    shared: dict[int, U64] = field(default_factory=dict)  # by side: that several rows have
    lacking: dict[tuple[int, int], U64] = field(default_factory=dict)  # by reference
    merged: bool = False
    """Whether changed groups have one first word, so that what they explain is not known."""

    @staticmethod
    def of(record: TuplesRecord | None) -> TupleCounts:
        """Those that a commit stored, if it stored any."""
        return TupleCounts(record) if record else TupleCounts()

    @property
    def stored(self) -> TuplesRecord | None:
        """What a commit stores; None: nothing is counted."""
        return self.record if self.record.sides else None

    @property
    def sides(self) -> list[TupleSide]:
        """The columns whose tuples are counted."""
        return [_side(record) for record in self.record.sides]

    def inside(self, other: TupleCounts) -> bool:
        """Whether others count the same of the sides that these have."""
        pairs = [(self.side(side), other.side(side)) for side in self.sides]
        names = {one.number: two.number for one, two in pairs}
        references = {(ref.left, ref.right): ref for ref in other.record.references}
        return all(replace(one, number=two.number) == two for one, two in pairs) and all(
            replace(ref, left=pair[0], right=pair[1]) == references.get(pair)
            for ref in self.record.references
            for pair in [(names[ref.left], names[ref.right])]
        )

    def side(self, side: TupleSide) -> SideRecord:
        """The counts of a side."""
        return next(record for record in self.record.sides if _is(record, side))

    def numbers(self, sides: Iterable[TupleSide]) -> tuple[int, ...]:
        """The numbers of sides."""
        return tuple(self.side(side).number for side in sides)

    def reference(self, sides: tuple[TupleSide, TupleSide]) -> ReferenceRecord:
        """How much of the left side is found in the right one."""
        pair = self.numbers(sides)
        return next(ref for ref in self.record.references if (ref.left, ref.right) == pair)

    def only(self, forms: Sequence[Countable]) -> TupleCounts:
        """With the sides of these rules, new ones without counts; entries of sides that nobody
        asks for any more stay in the runs until no others are left."""
        asked = list(dict.fromkeys(side for form in forms for side in form.sides))
        if not asked:
            return TupleCounts()
        known = [old for old in self.record.sides if any(_is(old, side) for side in asked)]
        pairs = dict.fromkeys(sides for form in forms for sides in form.references)
        return self._with(known, asked, pairs)

    def _with(
        self,
        known: Sequence[SideRecord],
        asked: Iterable[TupleSide],
        references: Iterable[tuple[TupleSide, TupleSide]],
    ) -> TupleCounts:
        """With these of its sides, further ones without counts, and references between them."""
        new = [side for side in asked if not any(_is(old, side) for old in known)]
        number = self.record.next_number
        fresh = [
            SideRecord(
                number + k,
                side.table,
                side.columns,
                side.nulls,
                side.of,
                rhs=side.rhs,
                grouped=side.grouped,
            )
            for k, side in enumerate(new)
        ]
        record = replace(
            self.record,
            sides=(*known, *fresh),
            next_number=number + len(fresh),
            runs=self.record.runs if known else (),
        )
        after = TupleCounts(record)
        pairs = dict.fromkeys(after.numbers(sides) for sides in references)
        counted = {(ref.left, ref.right): ref for ref in record.references}
        return TupleCounts(
            replace(
                record,
                references=tuple(
                    counted.get((left, right), ReferenceRecord(left, right))
                    for left, right in pairs
                ),
            )
        )

    def declare(
        self, run: Run, forms: Sequence[Countable], tables: Mapping[str, Table]
    ) -> TupleCounts:
        """With the sides of these rules, all that are expected: the new ones are counted in all
        rows."""
        return self.only(forms)._counted_but(run, self, tables)

    def also(
        self, run: Run, forms: Sequence[Countable], tables: Mapping[str, Table]
    ) -> TupleCounts:
        """With the sides of further rules, counted in these tables, which are all that they are
        about."""
        asked = list(dict.fromkeys(side for form in forms for side in form.sides))
        pairs = dict.fromkeys(sides for form in forms for sides in form.references)
        record = self._with(self.record.sides, asked, pairs).record
        known = self.record.references
        references = (*known, *(ref for ref in record.references if ref not in known))
        after = TupleCounts(replace(record, references=references))
        return after._counted_but(run, self, tables)

    def _counted_but(
        self, run: Run, before: TupleCounts, tables: Mapping[str, Table]
    ) -> TupleCounts:
        """With the sides counted that were not before."""
        numbers = {side.number for side in before.record.sides}
        fresh = [side for side in self.record.sides if side.number not in numbers]
        rows = [TableRows.living(table) for table in tables.values()]
        return self._counted(run, fresh, rows, tuple(side.number for side in fresh))

    def change(self, run: Run, rows: Iterable[TableRows]) -> TupleCounts:
        """After rows came and went."""
        return self._counted(run, self.record.sides, rows)

    def compact(self, run: Run) -> TupleCounts:
        """With runs merged where there are many."""
        runs = merged_runs(run.runner, self.record.runs, run.destination, True, run.progress)
        return TupleCounts(replace(self.record, runs=runs))

    def _counted(
        self,
        run: Run,
        sides: Sequence[SideRecord],
        rows: Iterable[TableRows],
        fresh: tuple[int, ...] = (),
    ) -> TupleCounts:
        """Count the tuples of some sides in rows, in one job, or two where there are many; of the
        fresh ones nothing is counted yet."""
        record = self.record
        of_tables = [table_rows for table_rows in rows if table_rows.count]
        tuples = [
            (each.count, values) for each in of_tables for values in _tuples(run, each, sides)
        ]
        size = sum(count * len(values.attributes) for count, values in tuples)
        if not size:
            return TupleCounts(record)
        run.progress("tuples", cells=size)
        values = counted(run, [values for _, values in tuples], size)
        references = tuple((ref.left, ref.right) for ref in record.references)
        root, prefix = run.destination.root, run.destination.prefix
        calls: list[Call] = [
            (
                tasks.recount,
                tasks.Recount(
                    root, low, high, prefix, values.runs, values.rows, record.runs,
                    *_nested(record), fresh, references, SHOWN,
                ),
            )
            for low, high in values.ranges
        ]  # fmt: skip
        results = run_all(run.runner, calls)
        if any(result.facts["wrong"] for result in results):
            raise StoreError("a batch takes away tuples that the profile does not have")
        return _added(record, results, references)


def _is(record: SideRecord, side: TupleSide) -> bool:
    return _side(record) == side


def _side(record: SideRecord) -> TupleSide:
    return TupleSide(
        record.table, record.columns, record.nulls, record.of, record.grouped, record.rhs
    )


def _nested(record: TuplesRecord) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """By the numbers of sides the number of the side that each is within, or -1; and whether a null
    is a value."""
    numbers = {_side(side): side.number for side in record.sides}
    lhs, nulls = [-1] * record.next_number, [True] * record.next_number
    for side, number in numbers.items():
        nulls[number] = side.nulls
        if side.lhs is not None:
            lhs[number] = numbers[side.lhs]
    return tuple(lhs), tuple(nulls)


def _added(
    record: TuplesRecord, results: list[TaskResult], references: tuple[tuple[int, int], ...]
) -> TupleCounts:
    sums, changes = (
        np.sum([result.arrays[name] for result in results], axis=0)
        for name in ("sides", "references")
    )
    sides = []
    for side in record.sides:
        names = _SUMS if side.grouped else _SUMS[:3]
        more = zip(names, sums[side.number].tolist(), strict=False)
        sides.append(replace(side, **{name: getattr(side, name) + each for name, each in more}))
    after = tuple(
        replace(ref, distinct=ref.distinct + int(more[0]), rows=ref.rows + int(more[1]))
        for ref, more in zip(record.references, changes, strict=True)
    )
    run = run_of(results)
    runs = (*record.runs, *([run] if run.entries else []))
    shared, lacking = (
        np.concatenate([result.arrays[name] for result in results])
        for name in ("shared", "lacking")
    )
    return TupleCounts(
        replace(record, sides=tuple(sides), references=after, runs=runs),
        {side.number: shared[shared[:, 2] == side.number][:SHOWN, :2] for side in sides},
        {
            pair: lacking[lacking[:, 2] == number][:SHOWN, :2]
            for number, pair in enumerate(references)
        },
        any(result.facts["merged"] for result in results),
    )


def _tuples(run: Run, rows: TableRows, sides: Iterable[SideRecord]) -> list[RowValues]:
    """The rows as tuples of the sides that are of their table; a null is a value in some."""
    of_table = [side for side in sides if side.table == rows.table.name]
    return [
        tuples_of(run, rows, [side for side in of_table if side.nulls == nulls])
        for nulls in sorted({side.nulls for side in of_table})
    ]


def tuples_of(run: Run, rows: TableRows, sides: Sequence[SideRecord]) -> RowValues:
    """Rows as tuples of sides that see nulls alike."""
    names = rows.table.columns.names
    attributes = []
    for side in sides:
        columns = side.columns if side.rhs is None else (*side.columns, side.rhs)
        attribute = columns_of(side.number, rows, tuple(map(names.index, columns)))
        attributes.append(replace(attribute, within=side.rhs is not None))
    return values_of(run, rows, attributes, sides[0].nulls)


def in_view(run: Run, rows: TableRows, side: SideRecord | None, view: View) -> RowValues | None:
    """Some of the rows as tuples of a side."""
    return None if side is None else replace(tuples_of(run, rows, [side]), view=view)


def rows_with(
    run: Run, table: Table, sides: Sides, codes: U64, most: int
) -> list[tuple[int, list[RowOfCode]]]:
    """For each code of the first side how many rows have it, and, by id, the first row for each
    code that they have in the other side; of one that there is not, any rows. At least ``most`` of
    them, if there are so many."""
    living = TableRows.living(table)
    calls: list[Call] = []
    for view in shares(table.view(run.store.path, run.options), run.runner.tasks):
        lhs, both = (in_view(run, living, side, view) for side in sides)
        calls.append((tasks.rows_with, tasks.RowsWith(view, lhs, both, codes, most)))
    numbers = np.zeros(len(codes), np.int64)
    rows: list[list[RowOfCode]] = [[] for _ in codes]
    for result in run_all(run.runner, calls if len(codes) else []):
        numbers += result.arrays["number"]
        for code, id_, (one, two) in zip(
            result.arrays["codes"].tolist(), result.arrays["ids"].tolist(),
            result.arrays["others"].tolist(), strict=True,
        ):  # fmt: skip
            rows[code].append((id_, (one, two)))
    return [
        (number, sorted(of_code)) for number, of_code in zip(numbers.tolist(), rows, strict=True)
    ]


def involved(
    run: Run, counts: TupleCounts, rules: Iterable[tasks.AgreeingRows | tasks.ReferringRows]
) -> tuple[I64, U64, U64]:
    """The ids of rows that take part in violations of a rule, and their codes on both sides, by
    the counted tuples: at the cost of these rows."""
    calls: list[Call] = [
        (tasks.involved_rows, tasks.InvolvedRows(run.store.path, counts.record.runs, rule))
        for rule in rules
    ]
    results = [result.arrays for result in run_all(run.runner, calls)]
    return (
        np.concatenate([np.empty(0, np.int64), *(arrays["ids"] for arrays in results)]),
        np.concatenate([NO_CODES, *(arrays["codes"] for arrays in results)]),
        np.concatenate([NO_CODES, *(arrays.get("others", NO_CODES) for arrays in results)]),
    )
