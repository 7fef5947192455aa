"""What has to change in a table before it can take a batch: new columns, and wider types."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from holdfast.flow.alter import Alteration, ColumnType
from holdfast.input.reading import typed
from holdfast.input.row_input import Columns, RowInput
from holdfast.input.type_names import widens
from holdfast.model.commits import Commit
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Runner
from holdfast.store import Store


def evolution(
    runner: Runner,
    store: Store,
    version: Commit,
    name: str,
    inputs: Iterable[RowInput],
    apart: Collection[str] = (),
) -> Alteration | None:
    """How the columns of a table change so that it can take whole rows of some inputs; None: they
    fit, or what differs is for a person to decide. Columns that are ``apart`` belong to no table.
    A field that records of JSON leave out is null, so it is not missing."""
    columns = Columns.stored(version.table(name).columns)
    add: dict[str, ColumnType] = {}
    widen: dict[str, ColumnType] = {}
    inputs = list(inputs)
    if any(set(columns.names) - set(rows.columns.names) for rows in inputs if not rows.is_json):
        return None
    for rows in inputs:
        given = rows.columns
        if new := [column for column in given.names if column not in (*columns.names, *apart)]:
            known = typed(runner, rows, Destination(store.path, ""))
            add |= {column: _kind(known, known.names.index(column)) for column in new}
        if rows.lines is None and not rows.json:  # text is read as the types of the table
            for place, column in enumerate(given.names):
                if column in columns.names:
                    old = widen.get(column) or _kind(columns, columns.names.index(column))
                    if widens(old, _kind(given, place)):
                        widen[column] = _kind(given, place)
    return Alteration(add=add, widen=widen) if add or widen else None


def _kind(columns: Columns, place: int) -> ColumnType:
    name, arrow = columns.types[place], columns.given.field(place).type
    return ("string", pa.string()) if name == "void" else (name, arrow)
