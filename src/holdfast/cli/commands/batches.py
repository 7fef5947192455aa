"""Applying a batch of changes, and telling beforehand what it would do."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli import arguments
from holdfast.cli.batch import Batch
from holdfast.cli.command import flag
from holdfast.cli.failures import FOUND
from holdfast.cli.notices import Notices
from holdfast.cli.opening import Spark, committing
from holdfast.cli.options import Directory, Evolve, Keep, Reading, kinds_flag
from holdfast.cli.printing import Printing
from holdfast.kinds import registry
from holdfast.model.records import JsonObject


def apply(
    directory: Directory,
    *,
    batch: Batch,
    retries: Annotated[
        int, flag("--retries", "Try again when another writer commits first, N times.", "N")
    ] = 0,
    strict: Annotated[
        bool, flag("--strict", "Apply nothing if the batch breaks what check would report.")
    ] = False,
    quarantine: Annotated[
        str | None, flag("--quarantine", "Write rows that break expected rules there.", "FOLDER")
    ] = None,
    evolve: Evolve = False,
    keep: Keep,
    notices: Notices,
    reading: Reading,
    spark: Spark,
    printing: Printing,
) -> int:
    """Apply a batch of changes to one or several tables; show what it broke and what holds now."""
    from holdfast.report import terminal

    with batch.read(directory, reading) as tables, committing(directory):
        with spark.profile(directory, printing) as opened:
            changes = opened.apply(
                tables,
                batch_id=batch.batch_id,
                retries=retries,
                device=batch.device,
                strict=strict,
                quarantine=quarantine,
                evolve=evolve,
                keep_versions=keep.keep_versions,
                keep_days=keep.keep_days,
            )
        outcome = batch.outcome(changes)
        printing.result(
            outcome.to_dict,
            lambda page: terminal.changes(
                page,
                outcome,
                verbose=printing.verbose,
                path=directory,
                snapshot=opened.snapshot(outcome.version),
            ),
        )
        gating = registry.gating(outcome) if strict else ()
        notices.tell(directory, "apply", outcome, outcome.to_dict, gating)
    return FOUND if outcome.refused or (outcome.applied and outcome.stops) else 0


def check(
    directory: Directory,
    *,
    batch: Batch,
    kinds: Annotated[
        str | None, kinds_flag("Which kinds count for the exit code", lambda kind: kind.gates)
    ] = None,
    notices: Notices,
    reading: Reading,
    spark: Spark,
    printing: Printing,
) -> int:
    """Show what a batch would change, and change nothing; exit code 1 if something would break."""
    from holdfast.report import forms, terminal

    gates = arguments.kind_fields(kinds)
    with (
        batch.read(directory, reading) as tables,
        spark.profile(directory, printing) as opened,
    ):
        changes = opened.check(tables, batch_id=batch.batch_id, device=batch.device)
    outcome = batch.outcome(changes)

    def form() -> JsonObject:
        return forms.check(outcome, gates)

    printing.result(
        form,
        lambda page: terminal.changes(
            page,
            outcome,
            check=True,
            verbose=printing.verbose,
            path=directory,
            snapshot=opened.snapshot(outcome.version),
        ),
    )
    notices.tell(directory, "check", outcome, form, registry.gating(outcome, gates))
    return FOUND if registry.breaks(outcome, gates) else 0
