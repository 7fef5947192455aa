"""For people with a ``foreachBatch`` of their own in Spark's structured streaming.

>>> from holdfast.streaming import apply_batch
>>> feed = spark.readStream.table("orders_changes")  # doctest: +SKIP
>>> apply = apply_batch("shop", "orders", row_key=["id"], on_violation="stop")  # doctest: +SKIP
>>> feed.writeStream.foreachBatch(apply).start()  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.api import Profile
from holdfast.flow import QUARANTINE, STOP, expect_violations
from holdfast.input.change_rows import CHANGE_TYPE, USUAL, ChangeRows, ops_of
from holdfast.kinds import registry
from holdfast.model.errors import BatchError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def apply_batch(
    profile: str | os.PathLike[str],
    table: str,
    *,
    row_key: Sequence[str] = (),
    name: str = "stream",
    op_column: str | None = None,
    op: Mapping[str, str | Sequence[str]] | None = None,
    order: Sequence[str] = (),
    on_violation: str = "continue",
    quarantine: str | os.PathLike[str] | None = None,
    retries: int = 10,
    secret: str | bytes | None = None,
    evolve: bool = False,
    keep_versions: int | None = None,
    keep_days: float | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that applies each batch of a stream to a table.

    Without ``op_column`` a column ``_change_type`` says what happened to a row; without that, too,
    every row is an insert, or with a ``row_key`` an upsert. A batch that Spark repeats is applied
    once: it is known by ``name`` and its number, and under these for other rows it is an error, as
    after a new checkpoint, whose numbers begin again; then give another ``name``. A batch that is
    refused is an error, so that Spark does not commit it. With ``evolve`` new columns of the stream
    join the table as nulls, and wider types are taken; with ``keep_versions`` or ``keep_days``
    older versions expire after a batch.
    """
    folder = None if quarantine is None else os.fspath(quarantine)
    expect_violations(on_violation, folder)

    def apply(rows: DataFrame, number: int) -> None:
        told = op_column or (CHANGE_TYPE if CHANGE_TYPE in rows.columns else None)
        changes = ChangeRows(rows, told, ops_of(op) if op else USUAL, tuple(order))
        outcome = Profile.open(profile, session=rows.sparkSession, secret=secret).apply(
            table,
            changes=changes,
            row_key=row_key,
            batch_id=f"{name}: batch {number}",
            strict=on_violation == STOP,
            quarantine=folder if on_violation == QUARANTINE else None,
            retries=retries,
            evolve=evolve,
            keep_versions=keep_versions,
            keep_days=keep_days,
        )
        if outcome.refused:
            raise BatchError(
                f"table {table!r}: batch {number} of {name} was refused, because it would break "
                f"{registry.broken_in(outcome)}; nothing of it was applied"
            )

    return apply
