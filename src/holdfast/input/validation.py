"""Checking what callers of Profile give: rows, batches and rules.

All that is possible without Spark is done here, because a session takes seconds to start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.input.batch_files import CHANGES
from holdfast.input.frames import InMemory, as_arrow, is_table
from holdfast.input.sources import Source
from holdfast.model.commits import Commit, SourceRecord
from holdfast.model.errors import InputError
from holdfast.model.expectations import Expectation, Suggestion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from holdfast.input.change_rows import ChangeRows

    Rows = DataFrame | Source | str | os.PathLike[str] | InMemory
    Readable: TypeAlias = DataFrame | Source | pa.Table
    Batch = Mapping[str, Mapping[str, Any]]


def tables_by_name(tables: Mapping[str, Rows] | Source | str | os.PathLike[str]) -> dict[str, Rows]:
    """Tables by name; a single file has its own name."""
    if isinstance(tables, str | os.PathLike):
        tables = Source(os.fspath(tables))
    if isinstance(tables, Source):
        return {tables.name: tables}
    if not isinstance(tables, Mapping):
        raise InputError(
            f"expected the tables by name, as in {{'orders': rows}}, or one path or Source, "
            f"not a {type(tables).__name__}"
        )
    if not tables:
        raise InputError("give at least one table to profile")
    names: list[Any] = list(tables)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(f"a table needs a name, and {name!r} is none")
    return dict(tables)


def readable(rows: Rows, label: str, stored: SourceRecord | None = None) -> Readable:
    """Rows that can be read, as far as can be said without Spark."""
    if isinstance(rows, str | os.PathLike):
        rows = Source(os.fspath(rows))
    if isinstance(rows, Source):
        rows.expect(stored)
    elif not hasattr(rows, "mapInArrow"):
        if is_table(rows):
            return as_arrow(rows, label)
        kind = type(rows)
        given = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        raise InputError(
            f"{label}: expected a Spark DataFrame, a path, a Source, or a table of pandas, Polars "
            f"or Arrow, not a {given}"
        )
    return rows


def change_rows(
    rows: Rows | ChangeRows | None,
    op_column: str | None,
    op: Mapping[str, str | Sequence[str]] | None,
    order: Sequence[str],
    debezium: bool | Mapping[str, str] = False,
) -> ChangeRows | None:
    """Rows of changes, and what their columns mean."""
    from holdfast.input.change_rows import CHANGE_TYPE, USUAL, ChangeRows, ops_of

    told = op_column is not None or bool(op) or bool(order)
    if rows is None or isinstance(rows, ChangeRows):
        if told or debezium:
            raise InputError("op_column, op and order are about changes; give these as rows")
        return rows
    given: Any = Source(os.fspath(rows)) if isinstance(rows, str | os.PathLike) else rows
    if debezium or isinstance(debezium, Mapping):
        if told:
            raise InputError("events of Debezium say themselves what happened; leave out the rest")
        if not isinstance(given, Source):
            raise InputError("events of Debezium are read from files: give a path")
        events = debezium if isinstance(debezium, Mapping) else {}
        return ChangeRows(replace(given, format=given.format or "json"), events=events)
    by = (order,) if isinstance(order, str) else tuple(order)
    return ChangeRows(given, op_column or CHANGE_TYPE, ops_of(op) if op else USUAL, by)


def batch_by_table(
    table: str | Batch,
    rows: tuple[Rows | ChangeRows | None, ...],
    row_key: Sequence[str] | None,
    if_exists: bool,
    allow_shrink: bool,
) -> Batch:
    """The batch in the form for several tables."""
    beside = dict(zip((*CHANGES, "changes"), rows, strict=True))
    settings = {"if_exists": if_exists, "allow_shrink": allow_shrink}
    if isinstance(table, str):
        return {table: {**beside, "row_key": row_key, **settings}}
    if not table or not isinstance(table, Mapping):
        raise InputError(
            "expected the name of a table, or what happens to each of several, as in "
            f"{{'orders': {{'inserts': rows}}}}, not {table!r}"
        )
    if row_key is not None or any(given is not None for given in rows):
        raise InputError("a batch of several tables has its rows and row keys with each table")
    known = (*CHANGES, "changes", "row_key", *settings)
    for name, part in table.items():
        if not isinstance(part, Mapping):
            raise InputError(
                f"table {name!r}: expected what happens to it, as in {{'inserts': rows}}, not a "
                f"{type(part).__name__}"
            )
        for key in part:
            if key not in known:
                raise InputError(f"table {name!r}: unknown {key!r}; there are {', '.join(known)}")
    for name in settings:
        if settings[name]:
            table = with_setting(table, name)
    return table


_CONCERNS = {"if_exists": ("deletes", "deletes"), "allow_shrink": ("snapshot", "snapshots")}
"""The change that a setting is about, and how several are called."""


def with_setting(batch: Batch, setting: str) -> Batch:
    """A batch of several tables with a setting for all tables that it concerns; an error if it
    concerns none."""
    change, called = _CONCERNS[setting]
    concerned = [name for name, part in batch.items() if part.get(change) is not None]
    if not concerned:
        flag = f"--{setting.replace('_', '-')}"
        raise InputError(f"{flag} is about {called}, and the batch has none; leave it out")
    return {**batch, **{name: {**batch[name], setting: True} for name in concerned}}


@dataclass(frozen=True)
class TableBatch:
    """The rows of a batch for one table, by what is done with them."""

    changes: dict[str, Readable]
    row_key: tuple[str, ...]
    if_exists: bool
    allow_shrink: bool
    changed: ChangeRows | None = None  # in place of all of these


def checked_batch(batch: Batch, version: Commit, batch_id: str | None) -> dict[str, TableBatch]:
    """A batch that fits a version, as far as can be said without Spark."""
    from holdfast.input.row_input import Columns, expect_batch, expect_changes

    checked = {}
    for table, part in batch.items():
        record = version.table(table)
        key = part.get("row_key") or ()
        if part.get("changes") is not None:
            changed = checked_changes(table, part)
            row_key = (key,) if isinstance(key, str) else tuple(key)
            expect_changes(table, Columns.stored(record.columns), row_key, batch_id)
            checked[table] = TableBatch({}, row_key, False, False, changed)
            continue
        given = {kind: part[kind] for kind in CHANGES if part.get(kind) is not None}
        checked[table] = of_table = TableBatch(
            {
                kind: readable(rows, label_of(kind, table, batch), record.source)
                for kind, rows in given.items()
            },
            (key,) if isinstance(key, str) else tuple(key),
            part.get("if_exists", False),
            part.get("allow_shrink", False),
        )
        expect_batch(
            table, Columns.stored(record.columns), given, of_table.row_key, batch_id,
            version.options.insert_only, of_table.if_exists, of_table.allow_shrink,
        )  # fmt: skip
    return checked


def checked_changes(table: str, part: Mapping[str, Any]) -> ChangeRows:
    """Change rows, as far as can be said of them without Spark."""
    from holdfast.input.change_rows import ChangeRows
    from holdfast.runtime.runner import Parts

    if beside := [kind for kind in CHANGES if part.get(kind) is not None]:
        raise InputError(
            f"table {table!r}: changes say themselves what happens to each row; leave {beside[0]} "
            "out, or changes"
        )
    if part.get("allow_shrink"):
        raise InputError(f"table {table!r}: --allow-shrink is about --snapshot; leave it out")
    if part.get("if_exists"):
        raise InputError(
            f"table {table!r}: --if-exists is about --deletes; of changes with a row key, deletes "
            "of rows that are not there are passed over anyway"
        )
    given = part["changes"]
    changes = given if isinstance(given, ChangeRows) else ChangeRows(given)
    if not isinstance(changes.rows, tuple | Parts):
        changes = replace(changes, rows=readable(changes.rows, f"the changes of {table!r}"))
    return changes


def label_of(kind: str, table: str, batch: Mapping[str, Any]) -> str:
    """What messages call rows of a batch that have no file."""
    return f"the {kind}" if len(batch) == 1 else f"the {kind} of {table!r}"


def rules_with_settings(
    rules: Sequence[str | Suggestion],
    severity: str,
    max_error: float,
    max_rows: int | None,
    name: str | None,
    file: str | os.PathLike[str] | None,
) -> tuple[list[Expectation], list[str]]:
    """The expectations that are declared, and the place of each if they are in a ``file``."""
    bounded = bool(max_error) or max_rows is not None
    if file is not None:
        from holdfast.input import rules_file

        if rules or name is not None or severity != "error" or bounded:
            raise InputError("a file of rules has their settings in it; give it alone")
        entries = rules_file.read(file)
        return [rule for _, rule in entries], [where for where, _ in entries]
    if not rules:
        raise InputError("give a rule, as in 'orders: key(id)', or a file of rules")
    if name is not None and len(rules) > 1:
        raise InputError("a name is that of one rule; give the others on their own")
    suggestions = [rule if isinstance(rule, Suggestion) else Suggestion(rule, "") for rule in rules]
    return [
        Expectation(each.rule, severity, max_error, name, max_rows if bounded else each.max_rows)
        for each in suggestions
    ], []
