"""Writing change rows: their cells as the segments of any rows, and beside each segment what
happened to its rows, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from holdfast.kernels.arrays import I64, U64
from holdfast.model.errors import SourceError
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.tasks import encode
from holdfast.tasks.concealing import Concealing, concealed, concealed_schema
from holdfast.tasks.ingest import Ingest, SegmentWriter, fitted
from holdfast.tasks.segments import map_passing, write_arrays
from holdfast.tasks.text import Trouble

INSERT, DELETE, PREIMAGE, POSTIMAGE = range(4)
"""What happened to a row."""

_OP, _ORDER, _MISSING, _FORMER = "op", "order", "missing", "former"


@dataclass(frozen=True)
class ChangeIngest(Ingest):
    """What a task needs to know to write change rows. Columns are given by their places among those
    that come; ``order`` has those of the table's cells."""

    label: str = "the changes"
    op: int | None = None  # None: every row came
    ops: Mapping[str, int] = field(default_factory=dict)
    times: tuple[int, ...] = ()  # the columns that give the order of changes
    unavailable: int | None = None  # the names of cells that stored rows have
    former_key: int | None = None  # the row keys of these rows
    key: tuple[int, ...] = ()  # the row key, by its places in the table


@dataclass(frozen=True)
class Part:
    """Rows that a task fetches and writes."""

    fetch: Callable[[Any], Iterator[pa.RecordBatch]]
    part: Any
    spec: ChangeIngest


def ingest_part(item: Part) -> Iterator[TaskResult]:
    """Fetch change rows, and write them."""
    return ingest_changes(item.fetch(item.part), item.spec)


def ingest_changes(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[TaskResult]:
    """Write the change rows of one partition, in their order."""
    assert isinstance(spec, ChangeIngest)
    writer = SegmentWriter(spec)
    waiting = _Waiting(spec)
    for batch in batches:
        if not batch.num_rows:
            continue
        cells = _cells(batch, spec)
        if isinstance(cells, Trouble):
            raise SourceError(
                f"{spec.label}, column {spec.names[cells.column or 0]!r}: unfit value, expected "
                f"{cells.expected}: {cells.line!r}"
            )
        waiting.add(batch)
        for written in writer.add(cells):
            yield waiting.beside(written)
    for written in writer.close():
        yield waiting.beside(written)


def _cells(batch: pa.RecordBatch, spec: ChangeIngest) -> pa.RecordBatch | Trouble:
    """The cells of the table, in its types."""
    columns = []
    for place, position in enumerate(spec.order):
        kind = spec.schema.field(place).type
        given = spec.given.field(position).type if spec.given else kind
        column = fitted(batch.column(position), given, kind, spec.rounds)
        if isinstance(column, Trouble):
            return Trouble("cell", column.line, place, column.expected, column.row)
        columns.append(column)
    return pa.record_batch(columns, schema=spec.schema)


class _Waiting:
    """What happened to rows that are not in a written segment yet."""

    def __init__(self, spec: ChangeIngest) -> None:
        self._spec = spec
        self._parts: list[dict[str, Any]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        spec = self._spec
        arrays: dict[str, Any] = {_OP: self._ops(batch)}
        for number, position in enumerate(spec.times):
            arrays[f"{_ORDER}{number}"] = self._times(batch, position)
        if spec.unavailable is not None:
            arrays |= self._missing(batch.column(spec.unavailable))
            if spec.former_key is not None:
                arrays |= self._former(batch.column(spec.former_key))
        self._parts.append(arrays)

    def beside(self, written: TaskResult) -> TaskResult:
        """The task result of a segment, with the file of what happened to its rows."""
        spec, rows = self._spec, written.facts["rows"]
        names = [*self._parts[0]]
        whole = {name: np.concatenate([part[name] for part in self._parts]) for name in names}
        self._parts = [{name: array[rows:] for name, array in whole.items()}]
        arrays = {name: array[:rows] for name, array in whole.items()}
        path = write_arrays(Path(spec.root), unique(spec.prefix, "changes"), arrays)
        counts = np.bincount(arrays[_OP], minlength=4).tolist()
        return TaskResult({**written.facts, "beside": path, "ops": counts}, written.arrays)

    def _ops(self, batch: pa.RecordBatch) -> I64:
        spec = self._spec
        if spec.op is None:
            return np.full(batch.num_rows, INSERT, np.int64)
        given = batch.column(spec.op)
        words = given if at.is_string(given.type) else given.cast(pa.string())
        known = pa.array([*spec.ops], pa.string())
        codes = pc.index_in(words, known)
        if codes.null_count:
            at_ = int(np.flatnonzero(codes.is_null().to_numpy(zero_copy_only=False))[0])
            raise SourceError(
                f"{spec.label}: what happened to a row is {words[at_].as_py()!r}; expected one of "
                f"{', '.join(spec.ops)}, or say with --op what it means"
            )
        of_word = np.array([*spec.ops.values()], np.int64)
        ops: I64 = of_word[codes.to_numpy()]
        return ops

    def _times(self, batch: pa.RecordBatch, position: int) -> I64:
        spec, column = self._spec, batch.column(position)
        kind = column.type
        if column.null_count:
            raise SourceError(
                f"{spec.label}: a column that gives the order of changes is null in a row; leave "
                "it out of --order, or give it a value in every row"
            )
        if at.is_date(kind):
            column = column.cast(pa.date32()).cast(pa.int32())
        elif at.is_timestamp(kind):
            column = column.cast(pa.int64())
        elif not (at.is_integer(kind) or at.is_decimal(kind)):
            raise SourceError(
                f"{spec.label}: a column that gives the order of changes is {kind}; expected whole "
                "numbers, dates or timestamps"
            )
        times: I64 = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return times

    def _missing(self, names: pa.Array) -> dict[str, U64]:
        """Which cells of each row are not given, as bits."""
        spec = self._spec
        masks = np.zeros((-(-len(spec.names) // 64), len(names)), np.uint64)
        for row in np.flatnonzero(names.is_valid().to_numpy(zero_copy_only=False)).tolist():
            for name in names[row].as_py():
                column = spec.names.index(name)
                masks[column // 64, row] |= np.uint64(1 << column % 64)
        return {f"{_MISSING}{k}": mask for k, mask in enumerate(masks)}

    def _former(self, keys: pa.Array) -> dict[str, U64]:
        """The words of the row keys of stored rows."""
        spec = self._spec
        schema = pa.schema([spec.schema.field(column) for column in spec.key])
        rows = pa.record_batch(
            [cells.cast(kind.type) for cells, kind in zip(keys.flatten(), schema, strict=True)],
            schema=schema,
        )
        if spec.concealing is not None:
            families = tuple(spec.concealing.families[column] for column in spec.key)
            rows = concealed(rows, Concealing(spec.concealing.key, families))
            schema = concealed_schema(schema)
        words = encode.encode(rows, encode.layout(schema)).view(np.uint64)
        return {f"{_FORMER}{k}": column for k, column in enumerate(words)}


@dataclass(frozen=True)
class Happened:
    """What happened to the rows of a segment."""

    arrays: Mapping[str, Any]

    @staticmethod
    def read(root: Path, path: str) -> Happened:
        """From the file beside it."""
        return Happened(map_passing(root / path))

    @property
    def came(self) -> Any:
        """Whether each row came; else it went."""
        ops = self.arrays[_OP]
        return (ops == INSERT) | (ops == POSTIMAGE)

    @property
    def ops(self) -> I64:
        """What happened to each row."""
        ops: I64 = self.arrays[_OP]
        return ops

    @property
    def times(self) -> list[I64]:
        """What gives the order of changes."""
        return [array for name, array in self.arrays.items() if name.startswith(_ORDER)]

    @property
    def missing(self) -> U64 | None:
        """Which cells are not given: rows of bits."""
        masks = [array for name, array in self.arrays.items() if name.startswith(_MISSING)]
        return np.column_stack(masks) if masks else None

    @property
    def former(self) -> U64:
        """The words of the row keys of the stored rows that have these cells."""
        words = [array for name, array in self.arrays.items() if name.startswith(_FORMER)]
        return np.column_stack(words) if words else np.empty((len(self.ops), 0), np.uint64)
