"""Events of Debezium in files, as changes of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from holdfast.feeds.contract import EventForm, Given
from holdfast.input import type_names
from holdfast.input.change_rows import ChangeRows
from holdfast.input.row_input import Columns, RowInput
from holdfast.model.errors import SchemaError, SourceError
from holdfast.model.records import JsonObject
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Parts, Runner
from holdfast.tasks import whole_files
from holdfast.tasks.envelope_cells import Encoding, target_of
from holdfast.tasks.event_files import EventFiles, continues, event_rows, fields, look
from holdfast.tasks.event_rows import EventTable
from holdfast.tasks.topic_events import truncated_among_others
from holdfast.tasks.whole_files import WholeFiles


def within(paths: Sequence[str], most: int, given: Given) -> int:
    """How many of the files a step has: so many, and those in which its last transaction goes
    on."""
    assert given.run is not None
    table, first = _columns(paths, given), max(0, most - 1)
    while most < len(paths):
        ends = EventFiles(tuple(paths[first : most + 1]), table, None)
        ((result,),) = given.run([(continues, ends)])
        if not result.facts["continues"]:
            break
        most += 1
    return min(most, len(paths))


def whole(
    paths: Sequence[str], most: int, tables: Sequence[Given], transactions: str, ended: int
) -> tuple[int, int]:
    """How many of the files a step has so that it divides no transaction of all tables, and the
    place of the last end in them; no files, if transactions are not whole yet."""
    run = tables[0].run
    assert run is not None
    items = tuple(
        EventFiles(tuple(paths), _columns(paths, given), given.options.get("topic"))
        for given in tables
    )
    ((result,),) = run([(whole_files.whole, WholeFiles(items, transactions, ended, most))])
    return result.facts["files"], result.facts["ended"]


def changes(
    paths: Sequence[str], tables: Sequence[Given], applied: Any
) -> tuple[dict[str, ChangeRows | None], JsonObject]:
    """What the events in some files change, by table, and how far they were applied then. They are
    looked at first, in tasks: events that were sent again, and those that empty a table, decide
    what there is."""
    items = [
        EventFiles(
            tuple(paths), _columns(paths, given), given.options.get("topic"),
            applied.get(given.table, {}),
        )
        for given in tables
    ]  # fmt: skip
    run = tables[0].run
    assert run is not None
    seen = [results[0].facts for results in run([(look, item) for item in items])]
    found: dict[str, ChangeRows | None] = {}
    for given, item, facts in zip(tables, items, seen, strict=True):
        truncated = facts["truncated"]
        if truncated and facts["partitions"] > 1:
            raise truncated_among_others(paths[0], given.table, facts["partitions"])
        found[given.table] = None
        if facts["rows"] or truncated:
            part = EventFiles(item.files, item.table, item.topic, item.applied, truncated)
            rows = Parts(item.table.schema, (part,), event_rows)
            found[given.table] = ChangeRows(
                rows, replaces=bool(truncated), given=partial(as_given, fields, (part,), given)
            )
    told = {given.table: facts["applied"] for given, facts in zip(tables, seen, strict=True)}
    return found, {table: of_table for table, of_table in told.items() if any(of_table.values())}


def as_given(
    task: Callable[[Any], Iterator[TaskResult]], parts: Sequence[Any], given: Given, runner: Runner
) -> RowInput:
    """Rows of events with the columns that schema blocks say they have; where there are none, with
    those of the table."""
    told: dict[str, Mapping[str, Any]] = {}
    for results in runner.run([(task, part) for part in parts]):
        for result in results:
            told |= result.facts["fields"]
    columns, label = given.columns, f"the changes of {given.table!r}"
    types = dict(
        zip(columns.names, zip(columns.types, columns.given.types, strict=True), strict=True)
    )
    for name, field in told.items():
        kind = target_of(field)
        if name not in types and not name.startswith("__"):
            types[name] = _joining(given.table, name, field, kind)
        elif name in types and kind is not None:
            types[name] = type_names.exact_type(name, kind)
    names = [name for name in types if name in told or not told]
    return RowInput(
        label, Columns.of(names, *map(list, zip(*(types[n] for n in names), strict=True))), None
    )


def _joining(table: str, name: str, field: Any, kind: Any) -> tuple[str, Any]:
    """The type of a column that joins a table; an error where the feed does not tell all of it."""
    alter = f"holdfast alter DIR --table {table} --add-column {name}=TYPE"
    if kind is None:
        raise SchemaError(
            f"table {table!r}: the new column {name!r} is {field.get('name') or field.get('type')} "
            f"in the feed, which does not tell its type; add it with {alter}"
        )
    if field.get("default") is not None:
        raise SchemaError(
            f"table {table!r}: the new column {name!r} has the default {field['default']!r} in the "
            "source, also in rows that were there, which the feed does not send again; add it with "
            f"{alter}, and give the rows as they are now as --snapshot"
        )
    return type_names.exact_type(name, kind)


def identity(tables: Sequence[Given]) -> JsonObject:
    """What the events mean, as far as they do not say it themselves."""
    return {
        given.table: {
            "topic": given.options.get("topic"),
            "encodings": dict(sorted(_form(given).encodings.items())),
            "placeholder": _form(given).placeholder,
        }
        for given in tables
    }


def _form(given: Given) -> EventForm:
    return given.events or EventForm()


def _columns(paths: Sequence[str], given: Given) -> EventTable:
    """The table, as its events are read."""
    encodings: Mapping[str, Encoding] = {
        name: Encoding.parsed(name, text) for name, text in _form(given).encodings.items()
    }
    for name in encodings:
        given.columns.position(name, given.table)
    if not paths:
        raise SourceError(f"table {given.table!r}: there are no files of events")
    types = tuple(field.type for field in given.columns.given)
    return EventTable(
        paths[0], given.table, given.columns.names, types, given.row_key, encodings,
        _form(given).placeholder,
    )  # fmt: skip
