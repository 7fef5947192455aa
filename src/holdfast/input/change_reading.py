"""Reading change rows into segments, beside which stands what happened to their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from holdfast.input.change_rows import CHANGE_TYPE, ORDERS, ChangeRows
from holdfast.input.reading import segment_of, watched
from holdfast.input.row_input import Columns, RowInput, fitted
from holdfast.input.sources import Source, files_in, is_local, local_file
from holdfast.input.type_names import exact_type
from holdfast.model.commits import SourceRecord
from holdfast.model.errors import BatchError, SchemaError, SourceError
from holdfast.model.names import lacking
from holdfast.model.progress import Progress
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Parts, Runner
from holdfast.tasks import json_values, leaves, text
from holdfast.tasks.arrow_types import known_type
from holdfast.tasks.change_files import ChangeFiles, columns_in, read_part
from holdfast.tasks.change_segments import (
    POSTIMAGE,
    PREIMAGE,
    ChangeIngest,
    Part,
    ingest_changes,
    ingest_part,
)
from holdfast.tasks.concealing import Concealing
from holdfast.tasks.encode import UnsupportedType
from holdfast.tasks.segments import ROWS, Segment
from holdfast.tasks.unavailable import FORMER_KEY, UNAVAILABLE


@dataclass(frozen=True)
class ChangeInput:
    """Change rows that are to be read: typed rows, or parts that tasks fetch."""

    changes: ChangeRows
    rows: RowInput
    ordered: bool  # whether the rows are in the order of the changes

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.rows.label

    @staticmethod
    def of_parts(changes: ChangeRows, parts: Parts, label: str, table: Columns) -> ChangeInput:
        """Rows that tasks fetch. Types that differ from those of the table only in how Arrow lays
        out their values are read as those."""
        names, kinds = parts.schema.names, parts.schema.types
        types = [_type_name(name, kind, table) for name, kind in zip(names, kinds, strict=True)]
        return ChangeInput(changes, RowInput(label, Columns.of(names, types, kinds), parts), True)

    @staticmethod
    def as_given(changes: ChangeRows, parts: Parts, label: str, table: Columns) -> RowInput:
        """Rows that tasks fetch, with all the columns that they have: new ones in the types as
        which they are stored."""
        given = ChangeInput.of_parts(changes, parts, label, table).rows
        told = given.columns
        stored = dict(zip(table.names, table.types, strict=True))
        columns = {
            name: (kind, field.type) if stored.get(name) == kind else exact_type(name, field.type)
            for name, kind, field in zip(told.names, told.types, told.given, strict=True)
            if name in stored or name not in changes.apart
        }
        names, arrow = zip(*columns.values(), strict=True)
        return replace(given, columns=Columns.of([*columns], [*names], [*arrow]))

    @staticmethod
    def of_files(
        changes: ChangeRows, sources: Sequence[Source], stored: SourceRecord, table: Columns
    ) -> ChangeInput:
        """The rows of files, in the order in which these are given; those in a folder by name.
        Where nothing was said, a column ``_change_type`` tells what happened to them."""
        parts = [
            (_files(source.like(stored), table), str(path))
            for source in sources
            for path in _paths(source)
        ]
        label = sources[0].path if len(sources) == 1 else f"{len(sources):,} files of changes"
        if not parts:
            raise SourceError(f"{label}: there are no files in it")
        files, path = parts[0]
        names = columns_in(files, path)
        if changes.op_column is None and CHANGE_TYPE in names and CHANGE_TYPE not in table.names:
            changes = replace(changes, op_column=CHANGE_TYPE)
        times = changes.order or tuple(n for n in ORDERS if n in names and n not in table.names)
        about = [*([changes.op_column] if changes.op_column is not None else []), *times]
        wanted = pa.schema(
            [
                *(
                    field.with_name(name)
                    for field, name in zip(table.given, table.names, strict=True)
                ),
                *(pa.field(n, pa.int64() if n in times else pa.string()) for n in about),
            ]
        )
        ignored = frozenset(changes.ignored).difference(wanted.names)
        typed = [(replace(each, schema=wanted, ignored=ignored), path) for each, path in parts]
        rows = Parts(wanted, tuple(typed), read_part)
        return ChangeInput.of_parts(replace(changes, order=times), rows, label, table)


def no_changes(table: Columns) -> ChangeRows:
    """Changes of a table where nothing changed."""
    fields = zip(table.names, table.given.types, strict=True)
    return ChangeRows(Parts(pa.schema(list(fields)), (), _no_rows), None)


def _no_rows(_part: object) -> Iterator[pa.RecordBatch]:
    return iter(())


def can_read(source: Source, stored: SourceRecord) -> bool:
    """Whether tasks can read a source by themselves: a file, or a folder of files, that is mounted
    where they run."""
    return source.like(stored).kind in _READ and is_local(source.path)


_READ = ("csv", "json", "parquet", "orc")


def _paths(source: Source) -> list[Path]:
    """The files of a source."""
    path = local_file(source.path).absolute()
    if not path.exists():
        raise SourceError(f"{source.path}: no such file or folder")
    return files_in(path)


def _files(source: Source, table: Columns) -> ChangeFiles:
    """How the files of a source are read; which of their columns is settled later."""
    try:
        if source.kind == "csv":
            text.check_types(table.given)
        elif source.kind == "json":
            json_values.check_types(table.given)
    except UnsupportedType as wrong:
        place = int(wrong.column.removeprefix("c"))
        raise SchemaError(
            f"{source.path}: column {table.names[place]!r} has the type {table.types[place]}, "
            f"which cannot be read from {source.kind.upper()}; give the changes as Parquet"
        ) from None
    whole = source.multi_line or not source.dialect.by_lines
    return ChangeFiles(
        source.kind, pa.schema([]), frozenset(), source.dialect, source.header, whole,
        source.flatten, source.round_nanoseconds,
    )  # fmt: skip


def _type_name(name: str, kind: pa.DataType, table: Columns) -> str:
    if name in table.names:
        place = table.names.index(name)
        stored = table.given.field(place).type
        if _laid_out(kind) == _laid_out(stored):
            return table.types[place]
    return str(kind)


def _laid_out(kind: pa.DataType) -> pa.DataType:
    kind = leaves.replaced(kind, known_type)
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


@dataclass(frozen=True)
class ChangeIntake:
    """Change rows that were read."""

    segments: tuple[Segment, ...]
    beside: tuple[str, ...]  # what happened to the rows of each

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(segment.rows for segment in self.segments)


def read_changes(
    runner: Runner,
    given: ChangeInput,
    table: str,
    columns: Columns,
    row_key: Sequence[str],
    destination: Destination,
    first_number: int,
    progress: Progress,
) -> ChangeIntake:
    """Write the change rows of a table as segments, numbered from ``first_number``."""
    spec = _spec(given, table, columns, row_key, destination)
    rows = given.rows.rows
    with watched(destination, progress):
        if isinstance(rows, Parts):
            calls = [(ingest_part, Part(rows.fetch, part, spec)) for part in rows.parts]
            results = [result for of_one in runner.run(calls) for result in of_one]
        else:
            results = runner.read(ingest_changes, rows, spec)
    if not row_key:
        _expect_both_images(given.label, table, [result.facts["ops"] for result in results])
    segments = [segment_of(first_number + i, result) for i, result in enumerate(results)]
    return ChangeIntake(tuple(segments), tuple(result.facts["beside"] for result in results))


def _spec(
    given: ChangeInput,
    table: str,
    columns: Columns,
    row_key: Sequence[str],
    destination: Destination,
) -> ChangeIngest:
    changes, names = given.changes, given.rows.columns.names
    op = _place(changes.op_column, given, table) if changes.op_column is not None else None
    times = changes.order or tuple(n for n in ORDERS if n in names and n not in columns.names)
    about = {changes.op_column, *times, UNAVAILABLE, FORMER_KEY, *changes.ignored}
    own = [i for i, name in enumerate(names) if name in columns.names or name not in about]
    rows = fitted(replace(given.rows, columns=given.rows.columns.pick(own)), table, columns)
    order = rows.order or tuple(range(len(own)))
    concealing = None
    if columns.concealed:
        assert destination.key is not None
        families = tuple(map(columns.family, range(len(columns.names))))
        concealing = Concealing(destination.key, families)
    return ChangeIngest(
        root=destination.root,
        prefix=destination.prefix,
        schema=columns.given,
        names=columns.names,
        indexes=(ROWS,),
        keep_raw=True,  # of a profile without values these are hashes, too
        concealing=concealing,
        given=given.rows.given or given.rows.columns.given,
        rounds=given.rows.rounds,
        order=tuple(own[place] for place in order),
        label=given.label,
        op=op,
        ops=changes.ops,
        times=tuple(_place(name, given, table) for name in times),
        unavailable=names.index(UNAVAILABLE) if UNAVAILABLE in names else None,
        former_key=names.index(FORMER_KEY) if FORMER_KEY in names and row_key else None,
        key=tuple(columns.names.index(name) for name in dict.fromkeys(row_key)),
    )


def _place(name: str, given: ChangeInput, table: str) -> int:
    """The place of a column that tells about changes."""
    names = given.rows.columns.names
    if name not in names:
        hint = (
            "; --op-column says which column tells what happened to a row"
            if name == CHANGE_TYPE
            else ""
        )
        raise SchemaError(
            f"{lacking(f'{given.label} (changes of table {table!r})', 'column', name, names)}{hint}"
        )
    return names.index(name)


def _expect_both_images(label: str, table: str, counts: list[list[int]]) -> None:
    """Raise an error where an update lacks one of its images: without a row key, the rows before it
    tell what goes."""
    ops = np.array(counts or [[0] * 4], np.int64).sum(axis=0)
    before, after = int(ops[PREIMAGE]), int(ops[POSTIMAGE])
    if before != after:
        raise BatchError(
            f"{label}: table {table!r}: there are {after:,} rows as they are after an update, but "
            f"{before:,} as they were before one; give both of each, or say with --row-key which "
            "columns tell which row is meant"
        )
