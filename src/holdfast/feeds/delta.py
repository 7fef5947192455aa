"""The change feed of a Delta table, version by version: ``delta:lake/orders``.

A position is a version of the table, with the id of the table. Rows are read in tasks, by the
package ``deltalake``. What a version changed never changes, so it does not matter when a step is
read, as long as its files are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.feeds.contract import Bounds, Given, Position, Step
from holdfast.input.change_rows import CHANGE_TYPE, ChangeRows
from holdfast.input.sources import is_local, local_file
from holdfast.model.errors import InputError, SetupError, SourceError, UnreachableError
from holdfast.model.records import JsonObject
from holdfast.runtime.objects import message_of
from holdfast.runtime.runner import Parts
from holdfast.tasks.arrow_types import known

if TYPE_CHECKING:
    from deltalake import DeltaTable

MOST_VERSIONS = 100
"""Versions of a step, unless another bound is given."""

_MOST_PARTS = 16
_VERSION = "_commit_version"
_BEGINNING, _SNAPSHOT = "beginning", "snapshot"


def opened(address: str, given: Given) -> Delta:
    """The feed of a Delta table."""
    path = address.partition(":")[2]
    if not path:
        raise InputError(f"{address}: give the path of the table, such as delta:lake/orders")
    if re.search(r"[?#]|://[^/@]*:[^/]*@", path):
        raise InputError(
            "the address of a Delta table has a key or a password in it; give these in the "
            "environment, such as AWS_SECRET_ACCESS_KEY or AZURE_STORAGE_SAS_TOKEN"
        )
    for name in given.options.keys() - {"start"}:
        raise InputError(f"{address}: a Delta table has no option {name!r}; it has start")
    if given.op_column or given.ops or given.order or given.events or given.others:
        raise InputError(
            f"{address}: the change feed of a Delta table says itself what happened to which row "
            "and when, and is of one table; leave out what says otherwise"
        )
    start = given.options.get("start", _BEGINNING)
    if not start.isdecimal() and start not in (_BEGINNING, _SNAPSHOT):
        raise InputError(
            f"{address}: start is {start!r}; expected beginning, snapshot (all rows that are there "
            "now, in place of those of the profile), or the version whose rows the profile has"
        )
    return Delta(str(local_file(path).absolute()) if is_local(path) else path, address, start)


@dataclass(frozen=True)
class Delta:
    """A feed of the changes of a Delta table."""

    path: str
    address: str
    start: str = _BEGINNING

    @property
    def identity(self) -> JsonObject:
        """The path of the table."""
        return {"path": self.path}

    @property
    def apart(self) -> bool:
        """There is one table."""
        return False

    def head(self) -> Position:
        """The newest version."""
        with _errors(self.path):
            return _position(_table(self.path))

    def read(self, after: Position | None, bounds: Bounds) -> Step | None:
        """What the next versions changed."""
        with _errors(self.path):
            head = _table(self.path)
            if after is None and self.start == _SNAPSHOT:
                return self._snapshot(head)
            first = self._after(after, head) + 1
            if first > head.version():
                return None
            last = min(head.version(), first + (bounds.versions or MOST_VERSIONS) - 1)
            table = _table(self.path, last)
            self._expect_feed(table)
            if bounds.rows is not None and last > first:
                last = self._last_within(table, first, last, bounds.rows)
                table = _table(self.path, last)
            with self._told(first, last):
                schema = _schema(table.load_cdf(first, last).schema)
        versions = np.array_split(np.arange(first, last + 1), min(_MOST_PARTS, last - first + 1))
        parts = tuple((int(part[0]), int(part[-1])) for part in versions)
        fetch = partial(_changes, self, schema, last)
        span = f"version {last}" if first == last else f"versions {first} to {last}"
        changes = ChangeRows(Parts(schema, parts, fetch), order=(_VERSION,))
        return Step(_position(table), span, changes)

    def behind(self, after: Position | None) -> str:
        """The number of versions to read."""
        with _errors(self.path):
            head = _table(self.path)
            number = head.version() - self._after(after, head)
        return f"{number:,} version{'s' * (number > 1)}" if number else ""

    def _after(self, after: Position | None, head: DeltaTable) -> int:
        """The version after which is read."""
        if after is None:
            version = int(self.start) if self.start.isdecimal() else -1
        elif after["table"] != _position(head)["table"]:
            raise SourceError(
                f"{self.path}: this is another table than the one that was followed, which was "
                f"removed or replaced; {_ANEW}"
            )
        else:
            version = int(str(after["version"]))
        if version > head.version():
            raise SourceError(
                f"{self.path}: the profile is at version {version}, but the newest one of the "
                f"table is {head.version()}; wait for that version, or, if the table was restored "
                f"from a copy, {_ANEW}"
            )
        return version

    def _snapshot(self, table: DeltaTable) -> Step:
        """All rows that there are, in place of those that the profile has."""
        self._expect_feed(table)
        rows = _schema(table.scan().schema)
        schema = rows.append(pa.field(CHANGE_TYPE, pa.string()))
        fetch = partial(_rows, self, schema)
        changes = ChangeRows(Parts(schema, (table.version(),), fetch), replaces=True)
        return Step(_position(table), f"all rows of version {table.version()}", changes)

    def _expect_feed(self, table: DeltaTable) -> None:
        """Raise an error if the table does not say what changes in it, or not so that it can be
        read."""
        configuration = table.metadata().configuration
        mapping = configuration.get("delta.columnMapping.mode", "none")
        if mapping != "none":  # deltalake reads no changes then, and with "id" perhaps nulls
            raise SourceError(
                f"{self.path}: the table has column mapping (delta.columnMapping.mode is "
                f"{mapping!r}), with which its changes cannot be read; give the rows as they are "
                "now as --snapshot, which Spark reads with --input-format delta, or follow a table "
                "without column mapping"
            )
        if configuration.get("delta.enableChangeDataFeed") != "true":
            raise SourceError(
                f"{self.path}: the table has no change data feed; turn it on with ALTER TABLE ... "
                "SET TBLPROPERTIES (delta.enableChangeDataFeed = true), and then follow it with "
                "--feed-option start=snapshot"
            )

    def _last_within(self, table: DeltaTable, first: int, last: int, rows: int) -> int:
        """The last version up to which there are at most so many change rows."""
        counts = np.zeros(last - first + 1, np.int64)
        with self._told(first, last):
            for batch in _batches(table.load_cdf(first, last, columns=[_VERSION])):
                versions = batch.column(_VERSION).to_numpy().astype(np.int64)
                counts += np.bincount(versions - first, minlength=counts.size)
        fitting = int(np.searchsorted(np.cumsum(counts), rows, "right"))
        return first + max(fitting - 1, 0)

    @contextmanager
    def _told(self, first: int, last: int) -> Iterator[None]:
        """Turn what is wrong with some versions into an error that says what to do."""
        from deltalake.exceptions import DeltaError

        span = f"version {first}" if first == last else f"versions {first} to {last}"
        try:
            yield
        except (DeltaError, OSError, pa.ArrowInvalid) as error:
            text = str(error)
            if match := re.search(r"not enabled for version: (\d+)|version: (\d+) that", text):
                raise SourceError(
                    f"{self.path}: version {match[1] or match[2]} was written without a change "
                    f"data feed, so what it changed is not known; {_ANEW}"
                ) from None
            if "not found" in text or "Invalid table version" in text:
                raise SourceError(
                    f"{self.path}: what {span} changed is not there any more: files were vacuumed, "
                    f"or the log was cleaned, before the profile had them; {_ANEW} "
                    f"({message_of(error)})"
                ) from None
            raise


_ANEW = "follow it anew, with --reset-position and --feed-option start=snapshot"
_UNREACHABLE = re.compile("error sending request|timed out|connection|dns|status code: 5", re.I)
"""What the library says of a store that does not answer, or cannot just now."""


def _changes(
    feed: Delta, schema: pa.Schema, newest: int, part: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    """What some versions changed, in no order."""
    with _errors(feed.path), feed._told(*part):
        table = _table(feed.path, newest)
        for batch in _batches(table.load_cdf(*part)):
            yield from _fitted(batch, schema)


def _rows(feed: Delta, schema: pa.Schema, version: int) -> Iterator[pa.RecordBatch]:
    """All rows of a version."""
    with _errors(feed.path), feed._told(version, version):
        for batch in _batches(_table(feed.path, version).scan()):
            came = pa.repeat(pa.scalar("insert"), batch.num_rows)
            yield from _fitted(batch.append_column(CHANGE_TYPE, came), schema)


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    """The batches of a stream of Arrow."""
    yield from pa.RecordBatchReader.from_stream(reader)


def _schema(given: Any) -> pa.Schema:
    """The columns of rows, as they are read."""
    return _known(pa.schema(given).empty_table()).schema


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    table = _known(pa.Table.from_batches([batch])).select(schema.names)
    yield from table.cast(schema).to_batches()


def _known(table: pa.Table) -> pa.Table:
    """With types that are read: Delta's views of text, and its number of the version, are not."""
    if _VERSION in table.column_names:
        place = table.column_names.index(_VERSION)
        number = pc.cast(table.column(place), pa.int64())
        table = table.set_column(place, _VERSION, number).drop_columns(["_commit_timestamp"])
    return known(table, "the Delta table")


def _table(path: str, version: int | None = None) -> DeltaTable:
    from deltalake import DeltaTable

    return DeltaTable(path, version=version)


def _position(table: DeltaTable) -> JsonObject:
    return {"version": table.version(), "table": str(table.metadata().id)}


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Turn the library's errors into those of ours, without what may be signed in an address."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError as missing:
        raise SetupError(_needed(path, f"there is none ({missing})")) from missing
    if not hasattr(DeltaTable, "scan"):  # before, deletion vectors were passed over in silence
        raise SetupError(_needed(path, "the one that is installed is too old"))
    try:
        yield
    except TableNotFoundError:
        raise SourceError(f"{path}: there is no Delta table, or it may not be read") from None
    except (DeltaError, OSError, pa.ArrowInvalid) as error:
        kind = UnreachableError if _UNREACHABLE.search(str(error)) else SourceError
        raise kind(f"{path}: the Delta table cannot be read ({message_of(error)})") from None


def _needed(path: str, why: str) -> str:
    return (
        f"{path}: the feed of a Delta table needs deltalake, and {why}; install it with: "
        "pip install 'holdfast[delta]', where tasks run, too"
    )
