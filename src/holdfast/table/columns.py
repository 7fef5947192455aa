"""Facts about the columns of a table, and how a batch changes them.

The lowest and the highest value of a column are stored with the number of rows that have them.
Deletes count that number down, and the column is scanned again only when it reaches 0. What occurs
in a column is stored in the same way (:mod:`holdfast.model.samples`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from holdfast.input.row_input import Columns
from holdfast.model import thresholds
from holdfast.model.commits import ColumnRecord, Extreme
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import run_all
from holdfast.table.matching import DeletedRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import columns as tasks
from holdfast.tasks.columns import SIDES, ColumnSummary, End, Ends, EndWords
from holdfast.tasks.encode import has_bytes
from holdfast.tasks.literals import value_at
from holdfast.tasks.nanoseconds import is_nano, text
from holdfast.tasks.samples import Samples, is_sampled
from holdfast.tasks.shown import plain


def collected(
    columns: Columns, task_results: Sequence[TaskResult], raw: bool
) -> tuple[ColumnSummary, ...]:
    """The facts of the rows that tasks wrote. Of text columns only nulls are counted where the
    table keeps no raw rows."""
    kinds = [field.type for field in columns.schema]
    facts = [tasks.summary(kind, raw) for kind in kinds]
    for task_result in task_results:
        forms = task_result.facts["columns"]
        facts = [
            summary.joined(_known(ColumnSummary.from_form(form), kind, raw))
            for summary, form, kind in zip(facts, forms, kinds, strict=True)
        ]
    return tuple(facts)


def _known(summary: ColumnSummary, kind: pa.DataType, raw: bool) -> ColumnSummary:
    """What the table keeps of the facts about a column."""
    if raw or not has_bytes(kind):
        return summary
    values = summary.samples.values
    return ColumnSummary(summary.nulls, samples=Samples(values and values.unlabelled))


def records(columns: Columns, facts: Sequence[ColumnSummary]) -> tuple[ColumnRecord, ...]:
    """What a commit stores; nothing where nothing is known."""
    return tuple(_record(each, columns.schema.field(c).type) for c, each in enumerate(facts))


def of_nulls(rows: int, kind: pa.DataType, raw: bool) -> ColumnRecord:
    """The facts about a column that is null in all rows."""
    return _record(replace(tasks.summary(kind, raw), nulls=rows), kind)


def _record(summary: ColumnSummary, kind: pa.DataType) -> ColumnRecord:
    lowest, highest = (_extreme(end, kind) for end in summary.ends)
    return ColumnRecord(summary.nulls, lowest, highest, *summary.samples)


def completed(run: Run, table: Table) -> Table:
    """The table with all facts about its columns, of which an earlier Holdfast kept fewer."""
    kinds = [field.type for field in table.columns.schema]
    lacking = [
        record
        for record, kind in zip(table.facts, kinds, strict=False)
        if record.values is None and is_sampled(kind)
    ]
    if table.facts and not lacking:
        return table
    whole = [
        (tasks.facts, tasks.Whole(share, table.columns.schema))
        for share in shares(table.view(run.store.path, run.options), run.runner.tasks)
    ]
    with run.stage("columns"):
        task_results = run_all(run.runner, whole)
    facts = collected(table.columns, task_results, run.options.keep_rows)
    return replace(table, facts=records(table.columns, facts))


def end_words(table: Table) -> tuple[EndWords, ...]:
    """The lowest and highest values whose rows are counted, as words of cells."""
    kinds = [field.type for field in table.columns.schema]
    return tuple(
        EndWords(column, side, tasks.words_of(end.key, kinds[column]), end.rows)
        for column, facts in enumerate(_facts(table))
        for side, end in enumerate(facts.ends)
        if end is not None and end.rows is not None
    )


def samples_of(table: Table) -> dict[int, Samples]:
    """What is known to occur in the columns, by their numbers."""
    return {column: facts.samples for column, facts in enumerate(_facts(table)) if facts.samples[0]}


@dataclass(frozen=True)
class Remaining:
    """A table after its deletes, the facts that are left of its columns, and those of the added
    rows. The columns ``again`` have to be scanned for their lowest or highest value, and those that
    are ``sampled`` for what occurs in them."""

    table: Table
    facts: tuple[ColumnSummary, ...]
    added: tuple[ColumnSummary, ...]
    again: tuple[int, ...] = ()
    sampled: tuple[int, ...] = ()


def remaining(
    before: Table, table: Table, deleted: DeletedRows | None, added: tuple[ColumnSummary, ...]
) -> Remaining:
    """The facts that are left after the deletes."""
    facts = _facts(before)
    if deleted is None or not deleted.count or not facts:
        return Remaining(table, facts, added)
    left, again, sampled = [], [], []
    for column, summary in enumerate(facts):
        nulls = summary.nulls - int(deleted.nulls[column])
        numbers = [deleted.had.get((column, side), 0) for side in SIDES]
        lowest, highest = map(_fewer, summary.ends, numbers)
        ends: Ends = (None, None) if nulls == table.rows else (lowest, highest)
        if any(_is_lost(side, ends[side], added[column].ends[side]) for side in SIDES):
            if column in deleted.rest:
                ends = deleted.rest[column]
            else:
                again.append(column)
        samples = deleted.samples.get(column)
        if samples is None:
            gone = deleted.gone.get(column, {}) if nulls < table.rows else None
            samples = summary.samples.without(gone)
            if gone and not samples.joined(added[column].samples).show(summary.samples):
                sampled.append(column)
        left.append(ColumnSummary(nulls, ends, samples))
    return Remaining(table, tuple(left), added, tuple(again), tuple(sampled))


def settled(run: Run, tables: Sequence[Remaining]) -> list[tuple[ColumnRecord, ...]]:
    """The facts after the batch; all columns that have to be scanned again are scanned in one
    job."""
    scans = [
        (number, tasks.Scan(share, rest.table.columns.schema, rest.again, rest.sampled))
        for number, rest in enumerate(tables)
        if rest.again or rest.sampled
        for share in shares(rest.table.view(run.store.path, run.options), run.runner.tasks)
    ]
    seen = [[ColumnSummary()] * len(rest.facts) for rest in tables]
    samples: list[dict[int, Samples]] = [{} for _ in tables]
    if scans:
        with run.stage("columns"):
            results = run_all(run.runner, [(tasks.scan, scan) for _, scan in scans])
        for (number, scan), result in zip(scans, results, strict=True):
            for column, form in zip(scan.columns, result.facts["ends"], strict=True):
                ends = ColumnSummary(0, tasks.ends_of(form))
                seen[number][column] = seen[number][column].joined(ends)
            for column, form in zip(scan.sampled, result.facts["samples"], strict=True):
                found, known = tasks.samples_of(form), samples[number]
                known[column] = known[column].joined(found) if column in known else found
    return [
        records(rest.table.columns, _together(rest, of_table, occurring))
        for rest, of_table, occurring in zip(tables, seen, samples, strict=True)
    ]


def _together(
    rest: Remaining, seen: Sequence[ColumnSummary], samples: Mapping[int, Samples]
) -> list[ColumnSummary]:
    """The facts that are left, with what was found of columns that were scanned again, joined with
    those of the added rows."""
    return [
        ColumnSummary(
            old.nulls,
            seen[c].ends if c in rest.again else old.ends,
            samples.get(c, old.samples),
        ).joined(rest.added[c])
        for c, old in enumerate(rest.facts)
    ]


def differences(table: Table, task_results: Sequence[TaskResult], raw: bool) -> list[str]:
    """Where the stored facts differ from those of the rows."""
    if not table.facts:
        return []
    fresh = records(table.columns, collected(table.columns, task_results, raw))
    return [
        f"the profile has other facts about column {name} than its rows"
        for name, stored, new in zip(table.columns.names, table.facts, fresh, strict=True)
        if not _say_the_same(stored, new)
    ]


def _say_the_same(stored: ColumnRecord, new: ColumnRecord) -> bool:
    if _samples(stored) == Samples():  # of an earlier Holdfast
        new = replace(new, values=None, shapes=None)
    same = _samples(stored).say_the_same(_samples(new))
    return same and replace(stored, values=None, shapes=None) == replace(
        new, values=None, shapes=None
    )


def _samples(record: ColumnRecord) -> Samples:
    return Samples(record.values, record.shapes)


def _facts(table: Table) -> tuple[ColumnSummary, ...]:
    return tuple(
        ColumnSummary(record.nulls, (_end(record.lowest), _end(record.highest)), _samples(record))
        for record in table.facts
    )


def _end(extreme: Extreme | None) -> End | None:
    return None if extreme is None else End(extreme.key, extreme.rows)


def _fewer(end: End | None, rows: int) -> End | None:
    return end if end is None or end.rows is None else End(end.key, end.rows - rows)


def _is_lost(side: int, end: End | None, added: End | None) -> bool:
    """Whether a column has to be scanned again: no row that is left has its end, or nobody knows,
    and no added row has a value that lies at least as far out."""
    if end is None or end.rows:
        return False
    if added is None or end.rows is None:
        return True
    return added.key > end.key if side == tasks.LOWEST else added.key < end.key


# Values


def _extreme(end: End | None, kind: pa.DataType) -> Extreme | None:
    return None if end is None else Extreme(value_of(end, kind), end.key, end.rows)


def value_of(end: End, kind: pa.DataType) -> Any:
    """A lowest or highest value as it is shown; of a long text only the beginning."""
    if has_bytes(kind):
        content = bytes.fromhex(end.key)
        cut = end.rows is None and len(content) == thresholds.current.shown_bytes
        if at.is_binary(kind) or at.is_large_binary(kind) or at.is_fixed_size_binary(kind):
            return plain(content)
        # A character at the end may be cut in two.
        beginning = content.decode("utf-8", "ignore" if cut else "replace")
        return beginning + "…" if cut else beginning
    number = tasks.number_of(end.key)
    if at.is_boolean(kind) or at.is_floating(kind) or at.is_decimal128(kind):
        return plain(value_at(number, kind))
    if at.is_integer(kind):
        return number
    if is_nano(kind):
        return text(number, kind)
    words = pa.array([number], pa.int32() if kind.bit_width == 32 else pa.int64())
    try:
        return plain(words.view(kind)[0].as_py())
    except (ValueError, OverflowError):  # a date that Python cannot tell
        return str(number)
