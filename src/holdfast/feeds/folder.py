"""Files in a folder, as they arrive: each is read once, in the order of names or of times.

A file has to be whole when it gets its name: writers rename it into the folder. Its size and time
are part of the position, so a file that changed after it was applied is noticed. Files that were
applied may be removed, and are then forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.feeds import events
from holdfast.feeds import transactions as of_source
from holdfast.feeds.contract import Bounds, Given, Position, Step
from holdfast.input.change_rows import CHANGE_TYPE, USUAL, ChangeRows
from holdfast.input.sources import Source, is_local, local_file
from holdfast.model.errors import InputError, SourceError
from holdfast.model.records import JsonObject
from holdfast.tasks.transactions import NOTHING

MOST_FILES = 100
"""Files of a step, unless another bound is given."""

Stamp: TypeAlias = list[int]
"""The size of a file, and when it was written, in nanoseconds."""

_ORDERS = ("name", "time")


def opened(address: str, given: Given) -> Folder:
    """The feed of a folder."""
    if not is_local(address):
        raise InputError(
            f"{address}: a feed of files is a folder of a file system; other feeds have an address "
            "such as delta:PATH or kafka:TOPIC"
        )
    options = {"order": "name", **given.options}
    known = {"order"} if given.events is None else {"order", "topic", "transactions"}
    for name in options.keys() - known:
        raise InputError(
            f"{address}: a folder of files has no option {name!r}; it has "
            f"{', '.join(sorted(known))}"
        )
    if given.others and given.events is None:
        raise InputError(
            f"{address}: files of several tables have events of Debezium, which say what they are "
            "of; give each table a folder of its own, or debezium: true"
        )
    if options["order"] not in _ORDERS:
        raise InputError(
            f"{address}: files are read in the order of name or time, not {options['order']!r}"
        )
    return Folder(local_file(address).absolute(), address, options["order"] == "time", given)


@dataclass(frozen=True)
class Folder:
    """A feed of the files in a folder."""

    folder: Path
    address: str
    by_time: bool
    given: Given

    @property
    def identity(self) -> JsonObject:
        """The folder, and what its rows mean."""
        given = self.given
        path = {"path": str(self.folder)}
        if given.events is not None:
            return {**path, "events": events.identity(self._tables)}
        return {
            **path,
            "op_column": given.op_column,
            "ops": dict(given.ops),
            "order": list(given.order),
        }

    @property
    def apart(self) -> bool:
        """Whether the events of a transaction may arrive in different files."""
        return bool(self.given.others) and self._transactions is None

    def head(self) -> Position:
        """All files that are there now."""
        return {"files": {**self._files()}}

    def read(self, after: Position | None, bounds: Bounds) -> Step | None:
        """The files that came since, or the first of them."""
        there = self._files()
        known = self._known(after)
        for name, stamp in known.items():
            if name in there and there[name] != stamp:
                raise SourceError(
                    f"{self.folder / name}: this file changed after it was applied; restore it, or "
                    "give the new rows in a file of another name"
                )
        new = self._new(there, known)
        if not new:
            return None
        most = bounds.files or MOST_FILES
        paths, ended = [str(self.folder / name) for name in new], self._ended(after)
        if self._transactions is not None:
            most, ended = events.whole(paths, most, self._tables, self._transactions, ended)
            if not most:
                return None
        elif self.given.events is not None:
            most = events.within(paths, most, self.given)
        new, paths = new[:most], paths[:most]
        kept = {name: stamp for name, stamp in known.items() if name in there}
        files = {**kept, **{name: there[name] for name in new}}
        position: Position = {"files": {name: [*files[name]] for name in sorted(files)}}
        if self.given.events is None:
            read = [replace(self.given.reading, path=path) for path in paths]
            return Step(position, _span(new), self._changes(read))
        before: Any = (after or {}).get("applied", {})
        changes, applied = events.changes(paths, self._tables, before)
        if applied:
            position["applied"] = applied
        if self._transactions is not None:
            now: Any = applied
            position["ended"] = of_source.begun_anew(ended, before, now)
        others = {each.table: changes[each.table] for each in self._tables[1:]}
        given = {table: rows for table, rows in others.items() if rows is not None}
        return Step(position, _span(new), changes[self.given.table], given)

    def behind(self, after: Position | None) -> str:
        """The number of files to read, and whether their transactions are still to come."""
        new = self._new(self._files(), self._known(after))
        if not new:
            return ""
        number, waits = len(new), ""
        if self._transactions is not None:
            paths = [str(self.folder / name) for name in new]
            before = self._ended(after)
            most, _ = events.whole(paths, 1, self._tables, self._transactions, before)
            waits = "" if most else " (a transaction in them waits for its other events)"
        return f"{number:,} file{'s' * (number > 1)}{waits}"

    @property
    def _tables(self) -> tuple[Given, ...]:
        return (self.given, *self.given.others)

    @property
    def _transactions(self) -> str | None:
        """The topic that tells of them."""
        return self.given.options.get("transactions")

    def _ended(self, after: Position | None) -> int:
        """The place of the last end of a transaction that was applied."""
        return int(str((after or {}).get("ended", NOTHING)))

    def _changes(self, sources: list[Source]) -> ChangeRows:
        given = self.given
        return ChangeRows(
            tuple(sources),
            given.op_column or (CHANGE_TYPE if given.ops else None),
            given.ops or USUAL,
            given.order,
        )

    def _new(self, there: dict[str, Stamp], known: dict[str, Stamp]) -> list[str]:
        """The files to read, in their order."""
        new = [name for name in there if name not in known]
        return sorted(new, key=lambda name: (there[name][1] if self.by_time else 0, name))

    def _known(self, after: Position | None) -> dict[str, Stamp]:
        files = (after or {}).get("files", {})
        assert isinstance(files, dict)
        return {name: json.loads(json.dumps(stamp)) for name, stamp in files.items()}

    def _files(self) -> dict[str, Stamp]:
        """The files that are there, by their paths in the folder; without those that Spark passes
        over."""
        if not self.folder.is_dir():
            raise SourceError(f"{self.address}: there is no such folder")
        try:
            return dict(sorted(self._stamps()))
        except OSError as error:
            raise SourceError(f"{self.folder}: cannot be read ({error.strerror})") from error

    def _stamps(self) -> Iterator[tuple[str, Stamp]]:
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            if not any(part.startswith(("_", ".")) for part in name.parts) and path.is_file():
                status = path.stat()
                yield name.as_posix(), [status.st_size, status.st_mtime_ns]


def _span(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names):,} files)"
