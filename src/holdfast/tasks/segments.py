"""Segments: immutable files of encoded rows, raw rows, indexes and deleted rows.

The *words* file of a segment holds its encoded rows as one row-major matrix, its *raw* file the
rows as they were given, and each *index* file the rows sorted by one or more columns. Deleting rows
writes a new *dead* file, a bitmap. All but raw rows are memory-mapped, and never read whole.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import chains, checksums, encode
from holdfast.kernels import index as kernels
from holdfast.kernels import signatures as signing
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.chains import Chains
from holdfast.kernels.checksums import Place
from holdfast.kernels.evidence import RowShape
from holdfast.kernels.index import Ranges
from holdfast.kernels.signatures import Wanted, signatures
from holdfast.model import thresholds
from holdfast.model.commits import Segment as Segment
from holdfast.runtime.checked import CheckedFile, CheckedReader
from holdfast.runtime.maps import Maps
from holdfast.runtime.reads import note
from holdfast.runtime.sealed import Sink, is_here, stamp, unique

Arrays = tuple[dict[str, NDArray[Any]], dict[str, Any]]

ROWS = "rows"
"""The name of the index over whole rows, which finds duplicates and rows to delete."""

_CUTS = 256
"""Codes at even distances that an index stores about itself."""

_SIGNATURES = "signatures"
"""The array of the index over whole rows that has the signature of each, by its position."""

_NO_ROWS = np.empty(0, np.uint8)


def most_rows(words: int) -> int:
    """The rows at which a segment is closed, when each has so many words.

    >>> most_rows(22), most_rows(2_016)  # lineitem of TPC-H, and 1,000 columns of text
    (1048576, 16644)
    """
    limits = thresholds.current
    return max(1, min(limits.segment_rows, limits.segment_bytes // (8 * max(1, words))))


def write_arrays(root: Path, path: str, arrays: dict[str, NDArray[Any]], **facts: Any) -> str:
    """Write arrays of equal length as a memory-mappable Arrow file, with facts in its schema;
    returns its final path."""
    batch = pa.record_batch([pa.array(a) for a in arrays.values()], names=list(arrays))
    schema = batch.schema.with_metadata({"holdfast": json.dumps(facts)})
    sink = Sink(root, path)
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch(batch.columns, schema=schema))
        sink.write_table()
    return sink.seal()


def write_sorted(root: Path, path: str, arrays: dict[str, NDArray[Any]], **facts: Any) -> str:
    """The same for arrays of which the first ascends, and is searched. Some of its entries are
    written once more, close together: a search that begins there reads little of the file."""
    first, step = next(iter(arrays.values())), thresholds.current.rung_entries
    if len(first) > step:
        facts["rungs"] = [step, b64encode(first[::step].tobytes()).decode()]
    return write_arrays(root, path, arrays, **facts)


class ArrayFile:
    """A memory-mapped file of arrays, of which only checked parts may be read: each method checks
    the part that it is asked for, and returns it, or whole arrays with only that part checked."""

    def __init__(self, path: Path) -> None:
        self._file = CheckedFile(path)
        self._file.check(0, 1)  # the block in which Arrow begins to read
        try:
            batch = pa.ipc.open_file(self._file.content).get_batch(0)
            self._arrays: dict[str, NDArray[Any]] = {
                name: column.to_numpy(zero_copy_only=True)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            self.places = {name: self._file.place(array) for name, array in self._arrays.items()}
        except (pa.ArrowException, OSError, ValueError):
            self._file.check_whole()  # says what is wrong with it, if it is damaged
            raise
        # What describes the arrays lies before the first of them.
        self._file.check(0, min(place.offset for place in self.places.values()))
        self.facts = json.loads((batch.schema.metadata or {}).get(b"holdfast", b"{}"))
        self._step, rungs = self.facts.pop("rungs", (1, ""))
        self._rungs = b64decode(rungs)

    def __len__(self) -> int:
        return min(map(len, self._arrays.values()))

    def whole(self) -> dict[str, NDArray[Any]]:
        """All arrays."""
        self._file.check_whole()
        return self._arrays

    def between(
        self, start: int, stop: int, names: Iterable[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Some entries of every array, or of those with these names."""
        names = self._arrays if names is None else names
        for name in names:
            self._file.check_entries(self.places[name], start, stop)
        return {name: self._arrays[name][start:stop] for name in names}

    def entries(self, positions: I64) -> dict[str, NDArray[Any]]:
        """The entries of every array at some positions."""
        for place in self.places.values():
            self._file.check_each(place, positions)
        return {name: array[positions] for name, array in self._arrays.items()}

    def stretches(self, name: str, lo: I64, hi: I64) -> NDArray[Any]:
        """An array, checked in these stretches."""
        self._file.check_stretches(self.places[name], lo, hi)
        return self._arrays[name]

    def search(self, name: str, wanted: NDArray[Any]) -> tuple[I64, I64]:
        """Where each wanted value begins and ends in the sorted array."""
        lo, hi = np.zeros((2, len(wanted)), np.int64)
        array = self._arrays[name]
        rungs = np.frombuffer(self._rungs, array.dtype)
        checksums.search(self.places[name], array, rungs, self._step, wanted, lo, hi)
        self._file.require_undamaged()
        return lo, hi

    def has_own_rungs(self, name: str) -> bool:
        """Whether searches in the sorted array begin at entries of it."""
        return self._rungs in (b"", self._arrays[name][:: self._step].tobytes())

    def unchecked(self, name: str) -> NDArray[Any]:
        """An array for a kernel that checks what it reads; afterwards ``require_undamaged``."""
        return self._arrays[name]

    def require_undamaged(self) -> None:
        """Raise an error if a part that a kernel has checked is damaged."""
        self._file.require_undamaged()

    def matrix(self, name: str, width: int) -> Matrix:
        """An array as a matrix with rows of so many entries."""
        array = self._arrays[name]
        place = self._file.place(array, width * array.itemsize)
        return Matrix(array.reshape(-1, width), place, self._file)


class Matrix(NamedTuple):
    """Rows in mapped memory."""

    rows: U64  # to be read where they were checked
    place: Place
    file: CheckedFile

    def at(self, positions: I64) -> U64:
        """The matrix, checked at these positions."""
        note(len(positions) * self.place.size)
        self.file.check_each(self.place, positions)
        return self.rows

    def ranged(self, ranges: Ranges) -> U64:
        """The matrix, checked in the ranges of look-ups."""
        note(int((ranges.hi - ranges.lo).sum()) * self.place.size)
        self.file.check_ranged(self.place, ranges)
        return self.rows

    def whole(self) -> U64:
        """All rows."""
        note(self.rows.nbytes)
        self.file.check_whole()
        return self.rows


def open_arrays(path: Path) -> ArrayFile:
    """A file of arrays to read parts of."""
    return _maps.get(path, stamp(path))


def map_arrays(path: Path) -> Arrays:
    """All arrays of a file, and its facts."""
    file = open_arrays(path)
    return file.whole(), file.facts


# Files never change once they are named, so a worker may keep its maps from task to task.
_maps: Maps[ArrayFile] = Maps(ArrayFile, is_here)


def close_maps() -> None:
    """Close all mapped files; they are mapped again when they are needed."""
    _maps.clear()


def map_passing(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a temporary file. Its map is not kept, as that would keep its space on disk."""
    return ArrayFile(path).whole()


def index_cuts(path: Path) -> I64:
    """The codes that an index lists in its facts; the index itself is not read."""
    return np.array(open_arrays(path).facts["cuts"], np.int64)


def write_words(root: Path, path: str, words: U64, raw_batches: list[int]) -> str:
    """Write a segment's encoded rows; ``raw_batches`` are the sizes of its raw file's batches."""
    facts = {"shape": list(words.shape), "raw_batches": raw_batches}
    return write_arrays(root, path, {"words": words.reshape(-1)}, **facts)


def map_words(root: Path, segment: Segment) -> Matrix:
    """A segment's encoded rows: ``(rows, words)``."""
    file = open_arrays(root / segment.words)
    return file.matrix("words", file.facts["shape"][1])


def map_dead(root: Path, segment: Segment) -> NDArray[np.uint8]:
    """The bitmap of a segment's deleted rows; empty where none are."""
    if segment.dead is None:
        return _NO_ROWS
    return map_arrays(root / segment.dead)[0]["dead"]


def live_positions(root: Path, segment: Segment) -> NDArray[np.int64]:
    """Positions of the rows that are not deleted."""
    dead = map_dead(root, segment)
    note(dead.nbytes)
    if not dead.size:
        return np.arange(segment.rows)
    return np.flatnonzero(np.unpackbits(dead, count=segment.rows, bitorder="little") == 0)


def deleted_since(root: Path, segment: Segment, later: Segment | None) -> I64:
    """Positions of the rows that live in a segment and are deleted in a later state of it; None:
    the segment is gone."""
    live = live_positions(root, segment)
    return live if later is None else live[are_dead(root, later, live)]


def are_dead(root: Path, segment: Segment, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some rows are deleted."""
    dead = map_dead(root, segment)
    if not dead.size:
        return np.zeros(positions.size, np.bool_)
    note(positions.size)
    bits: NDArray[np.uint8] = dead[positions >> 3] >> (positions & 7).astype(np.uint8) & 1
    return bits.astype(np.bool_)


def with_dead(root: Path, segment: Segment, positions: NDArray[np.int64], path: str) -> Segment:
    """The segment with more deleted rows; writes the new bitmap."""
    bits = np.zeros(segment.rows, np.uint8)
    if segment.dead is not None:
        bits = np.unpackbits(map_dead(root, segment), count=segment.rows, bitorder="little")
    bits[positions] = 1
    path = write_arrays(root, path, {"dead": np.packbits(bits, bitorder="little")})
    return replace(segment, live=segment.rows - int(bits.sum()), dead=path)


def write_index(root: Path, path: str, codes: U64, **more: NDArray[Any]) -> str:
    """Write an index: the codes in order, with the positions of their rows; and further arrays."""
    sorted_codes, positions = kernels.sort(codes)
    # The driver cuts columns into ranges by these, without touching the codes themselves.
    cuts = sorted_codes[:: max(1, len(codes) // _CUTS)].tolist()
    arrays: dict[str, NDArray[Any]] = {"codes": sorted_codes, "positions": positions, **more}
    return write_sorted(root, path, arrays, cuts=cuts)


def build_indexes(
    root: Path, prefix: str, words: U64, shape: RowShape, names: Iterable[str]
) -> dict[str, str]:
    """Write the named indexes of a segment; returns their paths."""
    built = {}
    for name in names:
        path = unique(prefix, "index")
        if is_chained(name):
            built[name] = write_chains(root, path, words, name, shape)
        else:
            signed = {_SIGNATURES: signatures(words, shape)} if name == ROWS else {}
            built[name] = write_index(root, path, index_codes(words, name, shape), **signed)
    return built


def index_name(columns: Iterable[int]) -> str:
    """The name of the index over some columns."""
    return "+".join(map(str, columns))


def index_columns(name: str) -> tuple[int, ...]:
    """The columns of an index."""
    return tuple(map(int, name.split("+")))


def column_index(column: int, wide: bool) -> str:
    """The name of the index of one column: of its first word, or, where that does not tell values
    apart, of all its words, which is how an index over several columns is made.

    >>> column_index(3, False), column_index(3, True)
    ('3', '3+3')
    """
    return index_name((column, column)) if wide else str(column)


def moved_index(name: str, columns: tuple[int, ...], places: tuple[int, ...]) -> str:
    """The name of an index where columns are at other places.

    >>> moved_index("3+3", (1, 3), (0, 1))
    '1+1'
    """
    return index_name(places[columns.index(column)] for column in index_columns(name))


def chain_name(groups: Iterable[int], order: Iterable[int], falling: bool = False) -> str:
    """The name of the index of rows in chains: in groups by some columns, ordered by one or two, of
    which the second falls or rises along the chains.

    >>> chain_name([3, 5], [7]), chain_name([], [7, 8], falling=True)
    ('3+5/7', '/7-8')
    """
    return f"{index_name(groups)}/{('-' if falling else '+').join(map(str, order))}"


def is_chained(name: str) -> bool:
    """Whether an index has its rows in chains."""
    return "/" in name


def chain_columns(name: str) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """The grouping and the ordering columns of an index, and whether the second of these falls."""
    groups, _, order = name.partition("/")
    columns = tuple(map(int, order.replace("-", "+").split("+")))
    return index_columns(groups) if groups else (), columns, "-" in order


def chain_numbers(words: U64, name: str, shape: RowShape) -> tuple[I64, I64, I64]:
    """What orders the rows of a chained index: the code of their group, and two numbers."""
    groups, order, falling = chain_columns(name)
    numbers = [np.ascontiguousarray(words[:, shape.first[c]]).view(np.int64) for c in order]
    none = np.zeros(len(words), np.int64)
    codes = index_codes(words, index_name(groups), shape).view(np.int64) if groups else none
    second = numbers[1] if len(numbers) > 1 else none
    return codes, numbers[0], ~second if falling else second


def write_chains(root: Path, path: str, words: U64, name: str, shape: RowShape) -> str:
    """Write a chained index; its facts list the columns in which rows with equal first words are
    equal."""
    groups, order, _ = chain_columns(name)
    index = chains.build(*chain_numbers(words, name, shape))
    single = {*order, *(groups if len(groups) == 1 else ())}
    uniform = [column for column in sorted(single) if _is_uniform(words, column, shape)]
    return write_arrays(root, path, index._asdict(), uniform=uniform, rank=index.rank)


def map_chains(root: Path, segment: Segment, name: str) -> tuple[Chains, dict[str, Any]]:
    """A chained index, and its facts."""
    arrays, facts = map_arrays(root / segment.indexes[name])
    return Chains(**arrays), facts


def _is_uniform(words: U64, column: int, shape: RowShape) -> bool:
    """Whether all cells of a column with equal first words are equal."""
    place, end = shape.first[column], shape.first[column + 1]
    nulls = words[:, shape.owner.size + column // 64] >> np.uint64(column % 64) & np.uint64(1)
    if end - place == 1 and not nulls.any():
        return True
    cells = np.column_stack([words[:, place:end], nulls])
    cells = cells[np.argsort(cells[:, 0], kind="stable")]
    same = cells[1:, 0] == cells[:-1, 0]
    return bool((cells[1:][same] == cells[:-1][same]).all())


def index_codes(words: U64, name: str, shape: RowShape) -> U64:
    """The codes of rows in an index: the first word of one column, or a hash of several."""
    if name == ROWS:
        return row_codes(words)
    columns = index_columns(name)
    if len(columns) == 1:
        return np.ascontiguousarray(words[:, shape.first[columns[0]]])
    return combined(words, columns, shape)


def combined(words: U64, columns: Iterable[int], shape: RowShape, seed: int = 0) -> U64:
    """A hash of the cells of each row in some columns."""
    out = np.empty(len(words), np.uint64)
    kernels.combine(words, np.array([*columns], np.int64), shape, np.uint64(seed), out)
    return out


def row_codes(words: U64) -> U64:
    """A hash of each whole row; rows with equal hashes must still be compared."""
    codes = np.empty(len(words), np.uint64)
    with np.errstate(over="ignore"):
        encode.row_hashes(np.ascontiguousarray(words), codes)
    return codes


class UncheckedRanges(NamedTuple):
    """The result of a look-up that was not checked yet."""

    ranges: Ranges
    place: Place  # of the positions
    file: ArrayFile


def look_up_groups(root: Path, segment: Segment, name: str, codes: U64) -> UncheckedRanges:
    """The range of each code in an index, and the positions of the index, unchecked: for kernels
    that read only the first few of each range."""
    file = open_arrays(root / segment.indexes[name])
    lo, hi = file.search("codes", codes.view(np.int64))
    places = file.places
    # What a binary search looks at on its way is mostly the same for all codes.
    note(places["codes"].size * 2 * len(codes) + places["positions"].size * len(codes))
    return UncheckedRanges(Ranges(lo, hi, file.unchecked("positions")), places["positions"], file)


def look_up(root: Path, segment: Segment, name: str, codes: U64) -> Ranges:
    """The range of each code in an index, all checked."""
    (lo, hi, _), place, file = look_up_groups(root, segment, name, codes)
    note(place.size * int(np.maximum(hi - lo - 1, 0).sum()))
    return Ranges(lo, hi, file.stretches("positions", lo, hi))


def agreeing(root: Path, segment: Segment, ranges: Ranges, own: U64, wanted: Wanted) -> Ranges:
    """Of the rows that look-ups returned those that may agree with the row that was looked up on a
    wanted set, by their signatures; ``own`` are those of the rows that were looked up. All, where
    an earlier version of Holdfast wrote the segment."""
    file = open_arrays(root / segment.indexes[ROWS])
    if _SIGNATURES not in file.places:
        return ranges
    place = file.places[_SIGNATURES]
    note(place.size * int((ranges.hi - ranges.lo).sum()))
    found: Ranges = signing.agreeing(ranges, own, file.unchecked(_SIGNATURES), place, wanted)
    file.require_undamaged()
    return found


def are_signed(root: Path, segment: Segment, words: U64, shape: RowShape) -> bool:
    """Whether a segment with these words has their signatures, or none."""
    arrays = open_arrays(root / segment.indexes[ROWS]).whole()
    own = arrays.get(_SIGNATURES)
    return own is None or np.array_equal(own, signatures(words, shape))


def map_between(path: Path, low: int | None, high: int | None) -> tuple[I64, NDArray[np.int32]]:
    """The codes of an index from ``low`` to below ``high`` (None: no bound), in order, and the
    positions of their rows."""
    file = open_arrays(path)
    bounds = np.array([0 if low is None else low, 0 if high is None else high])
    (first, last), _ = file.search("codes", bounds)
    lo, hi = 0 if low is None else int(first), len(file) if high is None else int(last)
    arrays = file.between(lo, hi, ("codes", "positions"))
    note(sum(array.nbytes for array in arrays.values()))
    return arrays["codes"], arrays["positions"]


class RawRows:
    """Writes the raw file of a segment in batches."""

    def __init__(self, root: Path, prefix: str, schema: pa.Schema) -> None:
        self._sink = Sink(root, unique(prefix, "raw"))
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_file(self._sink, schema, options=options)
        self.sizes: list[int] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        most = thresholds.current.raw_rows
        for start in range(0, rows.num_rows, most):
            part = rows.slice(start, most)
            self._writer.write_batch(part)
            self.sizes.append(part.num_rows)

    def seal(self) -> str:
        """Finish the file; returns its path."""
        self._sink.write_table()
        self._writer.close()
        return self._sink.seal()

    def abandon(self) -> None:
        """Close the file unfinished."""
        self._writer.close()
        self._sink.close()


def open_raw(
    root: Path, segment: Segment, columns: list[int] | None = None
) -> pa.ipc.RecordBatchFileReader:
    """The raw rows of a segment, batch by batch, or only some of their columns."""
    if segment.raw is None:
        raise ValueError(f"segment {segment.number} keeps no raw rows")
    options = pa.ipc.IpcReadOptions(included_fields=columns)
    file = CheckedReader(CheckedFile(root / segment.raw))
    return pa.ipc.open_file(pa.PythonFile(file, "r"), options=options)


def read_column(
    root: Path, segment: Segment, column: int, positions: NDArray[np.int64]
) -> pa.ChunkedArray:
    """The raw cells of a column at these positions, which are in order."""
    ends = np.cumsum(open_arrays(root / segment.words).facts["raw_batches"])
    reader = open_raw(root, segment, [column])
    chunks, start = [], 0
    for number in np.unique(np.searchsorted(ends, positions, "right")).tolist():
        stop = int(np.searchsorted(positions, ends[number]))
        cells = reader.get_batch(number).column(0)
        first = int(ends[number]) - len(cells)
        chunks.append(cells.take(pa.array(positions[start:stop] - first)))
        start = stop
    # The schema of the reader has this column alone.
    return pa.chunked_array(chunks, reader.schema.field(0).type)


def read_raw(root: Path, segment: Segment, positions: NDArray[np.int64]) -> pa.Table:
    """The raw rows at these positions, in this order."""
    facts = open_arrays(root / segment.words).facts
    ends = np.cumsum(facts["raw_batches"])
    reader = open_raw(root, segment)
    which = np.searchsorted(ends, positions, "right")
    taken: dict[int, pa.RecordBatch] = {}
    for number in np.unique(which):
        start = ends[number] - facts["raw_batches"][number]
        batch = reader.get_batch(int(number))
        inside = np.flatnonzero(which == number)
        rows = batch.take(pa.array(positions[inside] - start))
        for i, at in enumerate(inside):
            taken[int(at)] = rows.slice(i, 1)
    return pa.Table.from_batches([taken[i] for i in range(len(positions))], schema=reader.schema)
