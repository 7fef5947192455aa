"""Events of Debezium in files, as changes of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.feeds.contract import EventForm, Given
from holdfast.input.change_rows import ChangeRows
from holdfast.model.errors import SourceError
from holdfast.model.records import JsonObject
from holdfast.runtime.runner import Parts
from holdfast.tasks.envelope_cells import Encoding
from holdfast.tasks.event_files import EventFiles, continues, event_rows, look
from holdfast.tasks.event_rows import EventTable
from holdfast.tasks.topic_events import truncated_among_others


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
            found[given.table] = ChangeRows(rows, replaces=bool(truncated))
    told = {given.table: facts["applied"] for given, facts in zip(tables, seen, strict=True)}
    return found, {table: of_table for table, of_table in told.items() if any(of_table.values())}


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
