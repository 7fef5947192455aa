"""Applying a batch of changes, and telling beforehand what it would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.failures import FOUND
from holdfast.cli.opening import Spark, committing
from holdfast.cli.options import Cells, Directory, Sources, kinds_flag
from holdfast.cli.printing import Printing
from holdfast.kinds import registry

if TYPE_CHECKING:
    from holdfast.model.changes import BatchChanges, Changes

_ROW_KEY = (
    "Columns that name one row, with commas; `a,b` in backticks is one column. With --batch "
    "TABLE=COLUMNS, for each table."
)
Device = Annotated[
    str | None, flag("--device", "Count with this, not the profile's own.", "auto|cpu|gpu")
]


@dataclass(frozen=True)
class Batch:
    """What changes, in one table or in several."""

    table: Annotated[str | None, flag("--table", "The table that changes.", "NAME")] = None
    inserts: Annotated[str | None, flag("--inserts", "New rows.", "SOURCE")] = None
    deletes: Annotated[
        str | None, flag("--deletes", "Rows to remove: whole, or the row key's columns.", "SOURCE")
    ] = None
    updates: Annotated[
        str | None, flag("--updates", "Whole new rows; --row-key says for which ones.", "SOURCE")
    ] = None
    upserts: Annotated[
        str | None,
        flag("--upserts", "Whole rows; those that --row-key finds are replaced.", "SOURCE"),
    ] = None
    batch: Annotated[
        str | None,
        flag("--batch", "Several tables: a folder (TABLE/inserts.csv …) or a YAML file.", "PATH"),
    ] = None
    row_key: Annotated[list[str] | None, flag("--row-key", _ROW_KEY, "COLUMNS")] = None
    if_exists: Annotated[bool, flag("--if-exists", "Skip deletes of rows that are not there.")] = (
        False
    )
    batch_id: Annotated[
        str | None, flag("--batch-id", "A batch with this id is applied only once.", "ID")
    ] = None

    def changed(self) -> arguments.Changed:
        """The same, as far as it is one thing or the other."""
        changes = {
            "inserts": self.inserts,
            "deletes": self.deletes,
            "updates": self.updates,
            "upserts": self.upserts,
        }
        return arguments.Changed(self.table, changes, self.batch, self.row_key, self.if_exists)

    def outcome(self, changes: BatchChanges) -> BatchChanges | Changes:
        """What is told of it: of one table alone, if that was asked for."""
        return changes if self.table is None else changes.alone(self.table)


def apply(
    directory: Directory,
    *,
    batch: Batch,
    retries: Annotated[
        int, flag("--retries", "How often to try again when another writer commits first.", "N")
    ] = 0,
    strict: Annotated[
        bool, flag("--strict", "Do not apply a batch that breaks what it should not.")
    ] = False,
    quarantine: Annotated[
        str | None, flag("--quarantine", "Write rows there that break expected rules.", "FOLDER")
    ] = None,
    reading: Sources,
    cells: Cells,
    device: Device = None,
    spark: Spark,
    printing: Printing,
) -> int:
    """Apply a batch of changes to one or several tables; tell what became true and what stopped."""
    from holdfast.report import terminal

    output, source_format, options = reading.split()
    changed = batch.changed()
    with arguments.spooled(changed.changes) as paths, committing(directory):
        tables = changed.batch_of(
            paths, source_format, options, cells.given(), lambda: _tables(directory)
        )
        if reading.round_nanoseconds:
            tables = arguments.rounding(tables)
        with printing.progress() as progress:
            changes = spark.open(directory, progress).apply(
                tables,
                batch_id=batch.batch_id,
                retries=retries,
                device=device,
                strict=strict,
                quarantine=quarantine,
            )
        outcome = batch.outcome(changes)
        printing.result(
            output,
            outcome.to_dict,
            lambda page: terminal.changes(page, outcome, verbose=printing.verbose),
        )
    return FOUND if outcome.refused or (outcome.applied and outcome.stops) else 0


def check(
    directory: Directory,
    *,
    batch: Batch,
    kinds: Annotated[
        str | None, kinds_flag("What the exit code is about", lambda kind: kind.gates)
    ] = None,
    reading: Sources,
    cells: Cells,
    device: Device = None,
    spark: Spark,
    printing: Printing,
) -> int:
    """Tell what a batch would change, without applying it; exit code 1 if something would break."""
    from holdfast.report import forms, terminal

    output, source_format, options = reading.split()
    changed = batch.changed()
    gates = arguments.kind_fields(kinds)
    with arguments.spooled(changed.changes) as paths, printing.progress() as progress:
        tables = changed.batch_of(
            paths, source_format, options, cells.given(), lambda: _tables(directory)
        )
        if reading.round_nanoseconds:
            tables = arguments.rounding(tables)
        opened = spark.open(directory, progress)
        changes = opened.check(tables, batch_id=batch.batch_id, device=device)
    outcome = batch.outcome(changes)
    printing.result(
        output,
        lambda: forms.check(outcome, gates),
        lambda page: terminal.changes(page, outcome, check=True, verbose=printing.verbose),
    )
    return FOUND if registry.breaks(outcome, gates) else 0


def _tables(directory: str) -> tuple[str, ...]:
    """Those of a profile."""
    from holdfast.api import Profile

    return Profile.open(directory).tables
