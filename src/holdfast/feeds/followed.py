"""The feeds that a profile is to follow, as options or a YAML file say it.

::

    version: 1
    feeds:
      orders:
        from: incoming/orders
        row_key: [id]
      shop:
        from: kafka:shop.public.orders,shop.public.lines
        options: {bootstrap: 'broker:9092'}
        debezium: true
        tables:
          orders: {row_key: [id], encodings: {amount: 'base64:2'}}
          lines: {row_key: [order_id, line]}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.feeds.addresses import opened
from holdfast.feeds.contract import EventForm, Feed, Given, Run
from holdfast.input.change_rows import ops_of
from holdfast.input.row_input import Columns
from holdfast.input.sources import Source
from holdfast.input.yaml_file import described, expect_keys, read_versioned
from holdfast.model.commits import Commit
from holdfast.model.errors import InputError
from holdfast.tasks.event_rows import PLACEHOLDER


@dataclass(frozen=True)
class FeedTable:
    """A table whose changes come in a feed."""

    table: str
    row_key: tuple[str, ...] = ()
    encodings: Mapping[str, str] = field(default_factory=dict)  # of Debezium's values
    options: Mapping[str, str] = field(default_factory=dict)  # such as the topic of its events


@dataclass(frozen=True)
class Followed:
    """A feed to follow, and what is known of its rows."""

    name: str
    address: str
    tables: tuple[FeedTable, ...]
    op_column: str | None = None
    op: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    debezium: bool = False
    placeholder: str = PLACEHOLDER
    reading: Source = field(default_factory=lambda: Source(".", "csv"))
    options: Mapping[str, str] = field(default_factory=dict)

    def opened(self, version: Commit, run: Run | None) -> Feed:
        """The feed, for the tables as they are in a version."""
        first, *others = (self._given(each, version, run) for each in self.tables)
        given = Given(**{**vars(first), "others": tuple(others)})
        return opened(self.address, given)

    def _given(self, of: FeedTable, version: Commit, run: Run | None) -> Given:
        columns = Columns.stored(version.table(of.table).columns)
        for name in of.row_key:
            columns.position(name, of.table)
        return Given(
            table=of.table,
            columns=columns,
            row_key=of.row_key,
            op_column=self.op_column,
            ops=ops_of(self.op),
            order=self.order,
            reading=self.reading,
            options={**self.options, **of.options},
            events=EventForm(of.encodings, self.placeholder) if self.debezium else None,
            run=run,
        )


_TABLE: dict[str, tuple[type, str]] = {
    "row_key": (list, "a list of columns"),
    "encodings": (dict, "a mapping of columns, as in {amount: 'base64:2'}"),
    "topic": (str, "text"),
}
_FEED: dict[str, tuple[type, str]] = {
    "from": (str, "an address, such as incoming/orders"),
    "table": (str, "the name of a table"),
    "tables": (dict, "a mapping of tables"),
    **_TABLE,
    "op_column": (str, "the name of a column"),
    "op": (dict, "a mapping, as in {insert: I, update: U, delete: D}"),
    "order": (list, "a list of columns"),
    "debezium": (bool, "true or false"),
    "placeholder": (str, "text"),
    "format": (str, "a format, such as json"),
    "options": (dict, "a mapping of options"),
}


def read(path: str | os.PathLike[str]) -> list[Followed]:
    """The feeds of a file. Paths in it are relative to it."""
    file = Path(path)
    feeds = read_versioned(file, "feeds", aliases=False)
    if not isinstance(feeds, dict) or not feeds:
        raise InputError(f"{file}: expected feeds by name under 'feeds', found {described(feeds)}")
    return [_feed(file, str(name), form) for name, form in feeds.items()]


def _feed(file: Path, name: str, form: Any) -> Followed:
    where = f"{file}: feed {name!r}"
    _expect(where, form, _FEED)
    if "from" not in form:
        raise InputError(f"{where}: 'from' is missing: where the changes come from")
    if "tables" in form:
        if beside := [key for key in ("table", *_TABLE) if key in form]:
            raise InputError(f"{where}: {beside[0]} belongs to each table under 'tables'")
        for table, of_table in form["tables"].items():
            _expect(f"{where}: table {table!r}", of_table or {}, _TABLE)
        tables = tuple(_table(str(table), of or {}) for table, of in form["tables"].items())
        if not tables:
            raise InputError(f"{where}: there are no tables in it")
    else:
        tables = (_table(form.get("table", name), form),)
    address = form["from"]
    if ":" not in address:
        address = str(file.parent / address)
    return Followed(
        name,
        address,
        tables,
        form.get("op_column"),
        form.get("op", {}),
        tuple(form.get("order", ())),
        form.get("debezium", False),
        form.get("placeholder", PLACEHOLDER),
        Source(".", form.get("format", "json" if form.get("debezium") else None)),
        {str(key): str(value) for key, value in form.get("options", {}).items()},
    )


def _table(table: str, form: Mapping[str, Any]) -> FeedTable:
    options = {"topic": form["topic"]} if "topic" in form else {}
    return FeedTable(table, tuple(form.get("row_key", ())), form.get("encodings", {}), options)


def _expect(where: str, form: Any, known: Mapping[str, tuple[type, str]]) -> None:
    if not isinstance(form, dict):
        raise InputError(f"{where}: is {described(form)}, expected a mapping")
    expect_keys(where, form, [*known])
    for key, value in form.items():
        kind, expected = known[key]
        if not isinstance(value, kind):
            raise InputError(f"{where}: {key} is {described(value)}, expected {expected}")
