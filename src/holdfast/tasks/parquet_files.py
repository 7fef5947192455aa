"""Parquet files as tasks read them: some row groups of a file, as columns of given types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.model.errors import SourceError
from holdfast.tasks.arrow_types import as_type

_ROWS = 1 << 16
"""Rows that are read at once."""


class RowGroups(NamedTuple):
    """Some row groups of a file, and what the names of its folders say."""

    path: str
    groups: tuple[int, ...]
    folders: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ParquetRows:
    """Reads the columns of a schema: those of the file by their paths, then those that the names of
    folders have. A column that a file lacks is null there."""

    paths: tuple[tuple[str, ...], ...]
    schema: pa.Schema

    def __call__(self, parts: tuple[RowGroups, ...]) -> Iterator[pa.RecordBatch]:
        """The rows of some parts, in order."""
        for part in parts:
            try:
                yield from self._rows(part)
            except (pa.ArrowException, OSError) as error:
                raise SourceError(f"{part.path}: cannot be read as Parquet ({error})") from error

    def _rows(self, part: RowGroups) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(part.path, coerce_int96_timestamp_unit="us") as file:
            names = {path: _name_in(file.schema_arrow, path[0]) for path in self.paths}
            wanted = dict.fromkeys(name for name in names.values() if name is not None)
            fields = [*self.schema]
            for batch in file.iter_batches(_ROWS, part.groups, columns=[*wanted]):
                columns = [
                    _column(part, batch, path, names[path], field)
                    for path, field in zip(self.paths, fields, strict=False)
                ]
                for value, field in zip(part.folders, fields[len(columns) :], strict=True):
                    columns.append(pa.repeat(pa.scalar(value, field.type), batch.num_rows))
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _name_in(schema: pa.Schema, name: str) -> str | None:
    """What a column is called in a file: Spark does not tell upper from lower case."""
    if name in schema.names:
        return name
    alike = [other for other in schema.names if other.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else None


def _column(
    part: RowGroups, batch: pa.RecordBatch, path: tuple[str, ...], name: str | None, field: pa.Field
) -> pa.Array:
    if name is None:
        return pa.nulls(batch.num_rows, field.type)
    cells = batch.column(name)
    if len(path) > 1:
        cells = pc.struct_field(cells, [*path[1:]])
    try:
        return as_type(cells, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceError(
            f"{part.path}: column {'.'.join(path)!r} is {cells.type}, which cannot be read as "
            f"{field.type} ({error}); write all files with one type"
        ) from error
