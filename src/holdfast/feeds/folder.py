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
from typing import TypeAlias

from holdfast.feeds import events
from holdfast.feeds.contract import Bounds, Given, Position, Step
from holdfast.input.change_rows import CHANGE_TYPE, USUAL, ChangeRows
from holdfast.input.sources import Source, is_local, local_file
from holdfast.model.errors import InputError, SourceError
from holdfast.model.records import JsonObject

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
    known = {"order"} if given.events is None else {"order", "topic"}
    for name in options.keys() - known:
        raise InputError(
            f"{address}: a folder of files has no option {name!r}; it has "
            f"{' and '.join(sorted(known))}"
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
        """Whether there are several tables, whose events may arrive in different files."""
        return bool(self.given.others)

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
        if self.given.events is not None:
            most = events.within([str(self.folder / name) for name in new], most, self.given)
        new = new[:most]
        kept = {name: stamp for name, stamp in known.items() if name in there}
        files = {**kept, **{name: there[name] for name in new}}
        position: Position = {"files": {name: [*files[name]] for name in sorted(files)}}
        paths = [str(self.folder / name) for name in new]
        if self.given.events is None:
            read = [replace(self.given.reading, path=path) for path in paths]
            return Step(position, _span(new), self._changes(read))
        changes, applied = events.changes(paths, self._tables, (after or {}).get("applied", {}))
        if applied:
            position["applied"] = applied
        others = {each.table: changes[each.table] for each in self._tables[1:]}
        given = {table: rows for table, rows in others.items() if rows is not None}
        return Step(position, _span(new), changes[self.given.table], given)

    def behind(self, after: Position | None) -> str:
        """The number of files to read."""
        number = len(self._new(self._files(), self._known(after)))
        return f"{number:,} file{'s' * (number > 1)}" if number else ""

    @property
    def _tables(self) -> tuple[Given, ...]:
        return (self.given, *self.given.others)

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
