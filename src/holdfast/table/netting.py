"""Change rows as a batch: what is left of all the changes of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.input.change_reading import ChangeInput, ChangeIntake, read_changes
from holdfast.input.reading import fingerprint_of, segment_of
from holdfast.model import thresholds
from holdfast.model.errors import BatchError
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import run_all
from holdfast.table.matching import indexed
from holdfast.table.placement import ranges
from holdfast.table.state import Table
from holdfast.tasks.encode import layout
from holdfast.tasks.ingest import Ingest
from holdfast.tasks.netting import CAME, WENT, Net, net
from holdfast.tasks.rows import Locate, even_ranges
from holdfast.tasks.segments import ROWS, Segment
from holdfast.tasks.view import View


def netted(
    run: Run,
    table: Table,
    given: ChangeInput,
    key: tuple[int, ...],
    index: str,
    indexes: tuple[tuple[str, ...], tuple[str, ...]],
    keep_rows: bool,
) -> tuple[tuple[Segment, ...], tuple[Segment, ...], list[str], list[TaskResult]]:
    """The rows that came and those that went, on the whole, as segments; digests of both; and the
    results of the tasks that wrote what came. ``indexes`` are those of what came and of what went.
    """
    row_key = [table.columns.names[column] for column in key]
    read = read_changes(
        run.runner, given, table.name, table.columns, row_key, run.destination,
        table.next_number, run.progress,
    )  # fmt: skip
    items = _items(run, table, given, read, key, index, indexes, keep_rows)
    results = run_all(run.runner, [(net, item) for item in items])
    came = [result for result in results if result.facts["what"] == CAME]
    went = [result for result in results if result.facts["what"] == WENT]
    if given.changes.replaces:
        if went and not key:
            raise BatchError(
                f"{given.label}: table {table.name!r}: rows go that did not come after the table "
                "was emptied; give the rows as they are now as --snapshot"
            )
        went = []
    if went and run.options.insert_only:
        raise BatchError(
            f"table {table.name!r}: this profile was made with --insert-only and counts no values, "
            "so it takes inserts only; profile the tables anew without it to follow changes"
        )
    number = table.next_number
    digests = [f"{what}={fingerprint_of(part)}" for what, part in ((CAME, came), (WENT, went))]
    return (
        _segments(came, number),
        _segments(went, number + len(came)),
        digests,
        came,
    )


def _segments(results: Sequence[TaskResult], number: int) -> tuple[Segment, ...]:
    return tuple(segment_of(number + i, result) for i, result in enumerate(results))


def _items(
    run: Run,
    table: Table,
    given: ChangeInput,
    read: ChangeIntake,
    key: tuple[int, ...],
    index: str,
    indexes: tuple[tuple[str, ...], tuple[str, ...]],
    keep_rows: bool,
) -> list[Net]:
    """The arguments of tasks, one for each range of codes."""
    if not read.rows:
        return []
    widths = layout(table.columns.schema).widths
    destination, concealed = run.destination, table.columns.concealed
    came, went = (
        Ingest(
            root=destination.root,
            prefix=destination.prefix,
            schema=table.columns.schema,
            names=table.columns.names,
            indexes=(ROWS, *names),
            # A request that matches no row is shown.
            keep_raw=(what == WENT or run.options.keep_rows or keep_rows) and not concealed,
        )
        for what, names in zip((CAME, WENT), indexes, strict=True)
    )
    first = Net(
        given.label, table.name, table.columns.names,
        View(run.store.path, read.segments, widths, True), read.beside, key, given.ordered,
        came, went, _stored(run, table, key, index) if not given.changes.replaces else None,
    )  # fmt: skip
    whole = read.rows <= thresholds.current.undivided_rows
    between = [(None, None)] if whole else even_ranges(ranges(run.runner, read.rows))
    return [replace(first, low=low, high=high) for low, high in between]


def _stored(run: Run, table: Table, key: tuple[int, ...], index: str) -> Locate | None:
    """How stored rows are found, which have the cells that changes do not give."""
    if not key or not run.options.keep_rows or table.columns.concealed:
        return None
    view = table.view(run.store.path, run.options)
    widths = layout(table.columns.pick(list(key)).schema).widths
    by = index if indexed(view, index) else None
    return Locate(view, (), widths, key, tuple(range(len(key))), by)
