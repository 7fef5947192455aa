"""Questions that need more than what a version stores: errors, bounds, missing values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from holdfast.cover.dependencies import KEY
from holdfast.evidence.storage import sets_table
from holdfast.families import REGISTRY
from holdfast.families.inclusion_dependencies import storage
from holdfast.families.inclusion_dependencies.missing import missing
from holdfast.families.known import Known, bounded
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Attribute
from holdfast.model.errors import InputError, SchemaError
from holdfast.model.progress import Progress
from holdfast.store import Store
from holdfast.store.run import Place
from holdfast.table.state import Table
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.runner import Runner


def error(
    running: Callable[[], Runner], store: Store, name: str, left: tuple[str, ...], right: str | None
) -> float:
    """The share of row pairs that agree on the left and differ on the right, or agree at all."""
    with store.reading() as lease:
        version = store.read(lease.version)
        known = Known.load(store, version, name)
        columns = known.table.columns
        lhs = tuple(columns.place(each, name) for each in left)
        rhs = KEY if right is None else columns.place(right, name)
        pairs = known.evidence.get(AGREEMENTS)
        if pairs is None:
            raise InputError(
                "the profile compares no pairs of rows; profile the tables with --kinds keys"
            )
        view = known.table.view(store.path, version.options)
        return pairs.error(running, view, known.table.rows, lhs, rhs)


def within(store: Store, name: str, max_error: float) -> pa.Table:
    """All minimal sets of a counted table within a bound on the error, as a file holds them."""
    with store.reading() as lease:
        known = Known.load(store, store.read(lease.version), name)
        with bounded(name):
            return sets_table(known.evidence[AGREEMENTS], max_error)


def missing_values(
    runner: Runner,
    store: Store,
    dependent: Attribute,
    referenced: Attribute,
    most: int | None,
    progress: Progress,
) -> list[Any]:
    """Values of one column that do not occur in another, at most so many."""
    with store.reading() as lease:
        version = store.read(lease.version)
        options = version.options
        if version.inclusion is None:
            raise REGISTRY["inds"].missing(options.kinds)
        held = storage.load(store, version.inclusion)
        for each in (dependent, referenced):
            version.table(each.table)
            if each not in held.attributes:
                mine = [str(other) for other in held.attributes if other.table == each.table]
                raise SchemaError(f"there is no column {each}; there are {', '.join(mine)}")
        families = [held.families[held.attributes.index(each)] for each in (dependent, referenced)]
        if families[0] != families[1]:
            raise SchemaError(
                f"{dependent} has values of the kind {families[0]} and {referenced} of the kind "
                f"{families[1]}, which are never equal"
            )
        table = Table.stored(dependent.table, version.table(dependent.table))
        progress("values", table=dependent.table)
        place = Place(store.path, "", options.keep_rows)
        ids = missing(runner, held, table, (dependent, referenced), most, place, options)
        text = rows_as_text(store.path, table.segments, table.columns.names, ids)
        rows = [json.loads(text[id_]) for id_ in ids.tolist()]
        return [row.get(dependent.column, row) for row in rows]
