"""Finding rows: the ones that a batch deletes or updates, and the ones that occur twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.kernels import evidence, index
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.samples import codes as sample_codes
from holdfast.model import thresholds
from holdfast.model.records import to_form
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.tasks.columns import EndWords, column_ends, column_samples, null_flags
from holdfast.tasks.samples import Samples
from holdfast.tasks.segments import (
    ROWS,
    Segment,
    are_dead,
    index_codes,
    look_up,
    map_between,
    map_words,
    most_rows,
    moved_index,
    row_codes,
    write_arrays,
)
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Locate:
    """Find the rows that equal a request in the row key's columns, for requests in one range.

    ``requests`` are segments of the batch; ``places`` says where the row key's columns are among
    theirs. Requests are divided by their codes in ``index`` (:data:`~holdfast.tasks.segments.ROWS`,
    or one of the row key's columns), which both they and the table have; None: neither has one, and
    all requests are meant.
    """

    view: View
    requests: tuple[Segment, ...]
    request_widths: tuple[int, ...]
    columns: tuple[int, ...]
    places: tuple[int, ...]
    index: str | None
    low: int | None = None  # the least code; None: no bound
    high: int | None = None  # above all codes
    schema: pa.Schema | None = None  # of the table, where this task finds all rows that go from it
    ends: tuple[EndWords, ...] = ()  # the lowest and highest values of its columns
    samples: Mapping[int, Samples] = field(default_factory=dict)  # what occurs in its columns
    prefix: str = ""  # of the file that many positions go to
    replacing: bool = False  # the requests are whole rows, which take the places of those found


@dataclass(frozen=True)
class Duplicates:
    """Count the rows that have an equal row before them, among those in a range of row codes."""

    view: View
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Repeats:
    """Count the rows of a batch that have an equal row before them, among those in a range of row
    codes."""

    view: View  # of all rows, those of the batch among them
    batch: tuple[Segment, ...]
    low: int | None
    high: int | None


REPEATED_PAIRS = 4
"""Pairs of equal rows that are kept to be shown."""


def even_ranges(parts: int) -> list[tuple[int | None, int | None]]:
    """All codes of rows, which are hashes, in ranges of about as many rows; None: no bound.

    >>> even_ranges(2)
    [(None, 0), (0, None)]
    """
    cuts = [(2**64 * k // parts) - 2**63 for k in range(1, parts)]
    return [*pairwise([None, *cuts, None])]


MISSING, AMBIGUOUS, TOO_FEW, REPEATED = range(4)
"""Why a request is refused: no row matches, several do, fewer than asked for, or it is there twice
where a row can be meant once."""


def locate(item: Locate) -> Iterator[TaskResult]:
    """The rows that requests mean, by segment: of equal rows as many as are asked for, wherever
    they are. And for every reason to refuse requests the first that it applies to; how many
    repeated rows go; how many of those that go are null in each column, and how many have the
    lowest and highest values. Where all that have one go, and there are not too many others to look
    at here, also what is lowest and highest in that column then. Of replaced rows, how many
    come as they were.

    Memory follows the requests in the range. The positions of rows come back, or, where they are
    many, the file that has them.
    """
    view, wanted = item.view, WantedRows.of(item)
    gone, counts = _matches(item, wanted)
    nulls, had, unchanged = _contents(item, wanted, gone)
    sampled = _sampled(item, gone)
    ends = np.cumsum([positions.size for positions in gone.values()], dtype=np.int64).tolist()
    parts = [positions.astype(np.uint32) for positions in gone.values()]
    arrays = {"positions": np.concatenate([np.empty(0, np.uint32), *parts])}
    file = None
    if arrays["positions"].size > thresholds.current.sent_positions:
        file = write_arrays(view.path, unique(item.prefix, "located"), arrays)
        arrays = {}
    facts = {
        "refused": _refused(wanted, counts),
        "fewer": _fewer_repeated(view, wanted, counts),
        "unchanged": unchanged,
        "segments": [*gone],
        "ends": ends,
        "file": file,
        "rest": _rest(item, had, gone),
        # By their places among the codes, which are shorter.
        "gone": [
            [column, *chain(*((item.samples[column].codes.index(c), n) for c, n in codes.items()))]
            for column, codes in sampled.items()
            if codes
        ],
        "samples": _samples_left(item, sampled, gone),
    }
    yield TaskResult(facts, {**arrays, "nulls": nulls, "had": had})


@dataclass(frozen=True)
class WantedRows:
    """The requests in a range as rows of the table, each once."""

    rows: U64  # with the columns that are not asked for left at zero
    need: I64  # how many rows are asked for
    numbers: I64  # among all requests, of the first that asks for each
    as_given: U64  # all requests, in their own columns

    @staticmethod
    def of(item: Locate) -> WantedRows:
        """Those that a task is given, in the order in which they came."""
        asked = View(item.view.root, item.requests, item.request_widths, True)
        blocks, numbers = [], []
        own = item.index
        if own is not None and own != ROWS:
            own = moved_index(own, item.columns, item.places)
        start = 0
        for segment in item.requests:
            positions = np.arange(segment.rows)
            if own is not None:
                positions = np.sort(_between(asked, segment, own, item.low, item.high)[1])
            blocks.append(asked.rows(segment, positions))
            numbers.append(positions + start)
            start += segment.rows
        as_given = np.concatenate(blocks)
        rows, first, places = grouped(_widened(as_given, asked.shape, item))
        need = np.bincount(places, minlength=len(rows))
        return WantedRows(rows, need, np.concatenate(numbers)[first], as_given)


def _matches(item: Locate, wanted: WantedRows) -> tuple[dict[int, I64], I64]:
    """The positions of the rows that requests mean, by segment; and how many rows match each
    request."""
    view, columns = item.view, np.array(item.columns, np.int64)
    counts = np.zeros(len(wanted.rows), np.int64)
    gone: dict[int, I64] = {}
    for segment in view.segments if len(wanted.rows) else ():
        ranges = look_up_rows(view, segment, item.index, item.columns, wanted.rows)
        stored = view.looked_up(segment, ranges)
        # Counts go on from segment to segment, so that no more than needed go in all.
        out = np.empty(int(np.maximum(wanted.need - counts, 0).sum()), np.int64)
        size = index.match(
            wanted.rows, wanted.need, ranges, stored, columns, view.shape, counts, out
        )
        if size:
            gone[segment.number] = np.sort(out[:size])
    return gone, counts


def stored_rows(item: Locate, requests: U64) -> I64:
    """For each request, given as the words of its own columns, the id of a living row that equals
    it; -1 where there is none."""
    view, columns = item.view, np.array(item.columns, np.int64)
    wide = _widened(requests, evidence.shape(list(item.request_widths), True), item)
    found = np.full(len(requests), -1, np.int64)
    for segment in view.segments:
        left = np.flatnonzero(found < 0)
        if not left.size:
            break
        rows = wide[left]
        ranges = look_up_rows(view, segment, item.index, item.columns, rows)
        stored = view.looked_up(segment, ranges)
        counts, out = np.zeros(left.size, np.int64), np.empty(left.size, np.int64)
        once = np.ones(left.size, np.int64)
        size = index.match(rows, once, ranges, stored, columns, view.shape, counts, out)
        found[left[counts > 0]] = out[:size] + segment.base
    return found


def _contents(item: Locate, wanted: WantedRows, gone: dict[int, I64]) -> tuple[I64, I64, int]:
    """How many of the rows that go are null in each column, how many have the lowest and highest
    values, and how many of those that are replaced come as they were."""
    view = item.view
    whole = Sorted.of(wanted.as_given) if item.replacing and len(wanted.rows) else None
    nulls, had = np.zeros(view.columns, np.int64), np.zeros(len(item.ends), np.int64)
    unchanged = 0
    for segment in view.segments:
        if segment.number not in gone:
            continue
        rows = view.rows(segment, gone[segment.number])
        for column in range(view.columns):
            mask = rows[:, view.shape.owner.size + column // 64]
            nulls[column] += np.count_nonzero(null_flags(mask, column))
        had += np.array([_having(rows, view.shape, end) for end in item.ends], np.int64)
        if whole is not None:
            unchanged += whole.having(rows)
    return nulls, had, unchanged


def _refused(wanted: WantedRows, counts: I64) -> list[list[int]]:
    """For every reason to refuse requests the first that it applies to: its number, how many rows
    it asks for, and how many there are."""
    need = wanted.need
    refused = []
    for reason, where in enumerate([counts == 0, counts > 1, need > counts, need > 1]):
        if where.any():
            k = int(np.flatnonzero(where)[np.argmin(wanted.numbers[where])])
            refused.append([reason, int(wanted.numbers[k]), int(need[k]), int(counts[k])])
    return refused


def _fewer_repeated(view: View, wanted: WantedRows, counts: I64) -> int:
    """How many repeated rows go. Of m equal rows m - 1 repeat another one; afterwards m - d - 1 of
    them, or none. Rows with a null never repeat another where nulls are unequal: they are not
    counted there either."""
    fewer = np.maximum(counts - 1, 0) - np.maximum(counts - wanted.need - 1, 0)
    if not view.nulls_equal:
        fewer[(wanted.rows[:, view.shape.owner.size :] != 0).any(axis=1)] = 0
    return int(fewer.sum())


def _having(rows: U64, shape: evidence.RowShape, end: EndWords) -> int:
    """How many rows have a value."""
    cells = rows[:, shape.first[end.column] : shape.first[end.column + 1]]
    nulls = null_flags(rows[:, shape.owner.size + end.column // 64], end.column)
    has = (cells == np.array(end.words, np.uint64)).all(axis=1) & ~nulls
    return int(np.count_nonzero(has))


def _rest(item: Locate, had: I64, gone: dict[int, I64]) -> list[list[Any]]:
    """The lowest and highest values that are left in columns which lose one of theirs."""
    view, schema = item.view, item.schema
    if schema is None:
        return []
    lost = {end.column for end, number in zip(item.ends, had, strict=True) if number == end.rows}
    few = view.live <= most_rows(view.words)
    near = [c for c in sorted(lost) if few or all(str(c) in s.indexes for s in view.segments)]
    return [[c, *column_ends(view, schema, c, gone)] for c in near]


def _sampled(item: Locate, gone: dict[int, I64]) -> dict[int, dict[int, int]]:
    """By columns, how many of the rows that go have each code of the column's sample."""
    number: dict[int, dict[int, int]] = {column: {} for column in item.samples}
    for segment in item.view.segments:
        if segment.number not in gone:
            continue
        rows = item.view.rows(segment, gone[segment.number])
        for column, samples in item.samples.items():
            for code, more in _having_codes(rows, item.view.shape, column, samples).items():
                number[column][code] = number[column].get(code, 0) + more
    return number


def _having_codes(
    rows: U64, shape: evidence.RowShape, column: int, samples: Samples
) -> dict[int, int]:
    nulls = null_flags(rows[:, shape.owner.size + column // 64], column)
    cells = rows[~nulls, shape.first[column] : shape.first[column + 1]]
    codes = sample_codes(np.ascontiguousarray(cells.T))
    known = np.array(samples.codes, np.uint64)
    found, number = np.unique(codes[np.isin(codes, known)], return_counts=True)
    return dict(zip(found.tolist(), number.tolist(), strict=True))


def _samples_left(
    item: Locate, sampled: dict[int, dict[int, int]], gone: dict[int, I64]
) -> list[list[Any]]:
    """What occurs in the rows that are left, of columns whose samples show that no more."""
    view, schema = item.view, item.schema
    if schema is None or view.live > most_rows(view.words):
        return []
    lost = [
        column
        for column, samples in item.samples.items()
        if not samples.without(sampled[column]).show(samples)
    ]
    return [[c, *map(to_form, column_samples(view, schema, c, gone))] for c in lost]


def _between(
    view: View, segment: Segment, name: str, low: int | None, high: int | None
) -> tuple[I64, I64]:
    """The codes of an index that are in a range, in their order, and the positions of the rows that
    have them, deleted ones too."""
    codes, positions = map_between(view.path / segment.indexes[name], low, high)
    return codes, positions.astype(np.int64)


def grouped(rows: U64) -> tuple[U64, I64, I64]:
    """Distinct rows, where each first occurs, and which of them each row is."""
    _, first, inverse = np.unique(row_codes(rows), return_index=True, return_inverse=True)
    if (rows != rows[first][inverse]).any():  # two rows with one hash: compare them in full
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return rows[first], first, inverse.reshape(-1)


@dataclass(frozen=True)
class Sorted:
    """Rows in the order of their codes, so that others are found among them."""

    rows: U64
    codes: I64

    @staticmethod
    def of(rows: U64) -> Sorted:
        """Some rows."""
        codes, order = index.sort(row_codes(rows))
        return Sorted(rows[order], codes)

    def having(self, rows: U64) -> int:
        """How many of some rows are among them."""
        if (self.codes[1:] == self.codes[:-1]).any():  # one hash for several: compare all in full
            _, number = np.unique(np.concatenate((self.rows, rows)), axis=0, return_inverse=True)
            mine, theirs = np.split(number.reshape(-1), [len(self.rows)])
            return int(np.isin(theirs, mine).sum())
        at = np.searchsorted(self.codes, row_codes(rows).view(np.int64))
        at[at == len(self.codes)] = 0
        return int((rows == self.rows[at]).all(axis=1).sum())


def _widened(requests: U64, asked: evidence.RowShape, item: Locate) -> U64:
    """Requests as rows of the table, with the columns that are not asked for left at zero."""
    shape = item.view.shape
    wide = np.zeros((len(requests), shape.owner.size + shape.full.size), np.uint64)
    for place, column in zip(item.places, item.columns, strict=True):
        for k in range(int(shape.first[column + 1] - shape.first[column])):
            wide[:, shape.first[column] + k] = requests[:, asked.first[place] + k]
        null = requests[:, asked.owner.size + place // 64] >> np.uint64(place % 64) & np.uint64(1)
        wide[:, shape.owner.size + column // 64] |= null << np.uint64(column % 64)
    return wide


def look_up_rows(
    view: View, segment: Segment, name: str | None, columns: tuple[int, ...], wide: U64
) -> index.Ranges:
    """Ranges of rows that may equal others in some columns, by an index where there is one, else by
    one scan."""
    if name == ROWS:
        return look_up(view.path, segment, ROWS, row_codes(wide))
    if name is not None:
        return look_up(view.path, segment, name, index_codes(wide, name, view.shape))
    first = view.shape.first[columns[0]]
    codes = np.ascontiguousarray(wide[:, first])
    held = np.ascontiguousarray(map_words(view.path, segment).whole()[:, first])
    near = index.members(held, codes)
    sorted_codes, order = index.sort(held[near])
    signed = codes.view(np.int64)
    lo = np.searchsorted(sorted_codes, signed, "left")
    hi = np.searchsorted(sorted_codes, signed, "right")
    return index.Ranges(lo, hi, near[order])


def duplicates(item: Duplicates) -> Iterator[TaskResult]:
    """How many rows repeat an earlier one, and a few such pairs."""
    view = item.view
    hashes = [np.empty(0, np.int64)]
    ids = [np.empty(0, np.int64)]
    for segment in view.segments:
        codes, positions = _between(view, segment, ROWS, item.low, item.high)
        alive = ~are_dead(view.path, segment, positions)
        if not view.nulls_equal:
            words = map_words(view.path, segment).at(positions)
            masks = words[positions, view.shape.owner.size :]
            alive &= (masks == 0).all(axis=1)
        hashes.append(codes[alive])
        ids.append(positions[alive] + segment.base)
    code, id_ = np.concatenate(hashes), np.concatenate(ids)
    order = np.lexsort((id_, code))
    code, id_ = code[order], id_[order]
    repeats = np.zeros(len(code), np.bool_)
    repeats[1:] = code[1:] == code[:-1]
    near = np.flatnonzero(repeats | np.append(repeats[1:], False))
    rows = view.rows_with(id_[near])
    # Within a run of one hash every row is compared with the run's first; a run whose rows are
    # not all equal is two different rows with one hash, and is compared in full.
    starts = np.maximum.accumulate(np.where(repeats[near], 0, np.arange(len(near))))
    equal = (rows == rows[starts]).all(axis=1)
    pairs = []
    count = 0
    most = REPEATED_PAIRS
    if equal.all():
        again = np.flatnonzero(repeats[near])
        count = len(again)
        pairs = [[int(id_[near[starts[i]]]), int(id_[near[i]])] for i in again[:most]]
    else:
        seen: dict[bytes, int] = {}
        for i in range(len(near)):
            earlier = seen.setdefault(rows[i].tobytes(), i)
            if earlier != i:
                count += 1
                if len(pairs) < most:
                    pairs.append([int(id_[near[earlier]]), int(id_[near[i]])])
    yield TaskResult({"duplicates": count, "pairs": pairs})


def repeats(item: Repeats) -> Iterator[TaskResult]:
    """How many rows of the batch repeat an earlier one, and the first few such pairs."""
    view = item.view
    columns = np.arange(view.columns)
    found = [np.empty((0, 2), np.int64)]
    for arrived in item.batch:
        codes, positions = _between(view, arrived, ROWS, item.low, item.high)
        rows = evidence.NumberedRows(view.rows(arrived, positions), positions + arrived.base)
        earlier = np.full(len(positions), -1, np.int64)
        for segment in view.segments:
            left = np.flatnonzero(earlier < 0)
            if segment.number > arrived.number or not segment.live or not left.size:
                continue
            ranges = look_up(view.path, segment, ROWS, codes[left].view(np.uint64))
            stored = view.looked_up(segment, ranges)
            here = np.empty(left.size, np.int64)
            some = evidence.NumberedRows(rows.words[left], rows.ids[left])
            index.duplicates(some, ranges, stored, columns, view.shape, here)
            earlier[left] = here
        has = np.flatnonzero(earlier >= 0)
        found.append(np.stack([earlier[has], rows.ids[has]], axis=1))
    pairs = np.concatenate(found)
    first = pairs[np.argsort(pairs[:, 1])[:REPEATED_PAIRS]]
    yield TaskResult({"duplicates": len(pairs), "pairs": first.tolist()})
