"""Drawn rows, each with a random partner of those that agree with it on a lhs.

One job draws rows. The next goes through all rows once, for many left-hand sides at once, and
offers partners; a drawn row that agrees with other drawn rows has the next one of these. The last
merges what tasks have offered, and adds up in which columns partners differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.arrays import U64
from holdfast.kernels.partners import (
    Offers,
    Wanted,
    add_partners,
    add_rings,
    bits_of,
    halved,
    marked,
    merge,
    offer,
    offers,
    paired_off,
)
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks import exchange
from holdfast.tasks.near import BLOCK, HashedRows, blocks, hashed
from holdfast.tasks.segments import live_positions
from holdfast.tasks.view import View

_PARTNERS = 4
"""Rows of a group that are offered, about, where these are not all."""


@dataclass(frozen=True)
class DrawRows:
    """Draw so many rows of each segment, and write them."""

    view: View
    counts: tuple[int, ...]
    prefix: str

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live


@dataclass(frozen=True)
class OfferPartners:
    """Offer the rows of a view as partners of the drawn ones, for some left-hand sides."""

    view: View
    drawn: tuple[str, ...]  # files of drawn rows
    lhs: tuple[tuple[int, ...], ...]
    first: int  # the place of the first of these among all
    of: int  # so many in all
    rows: int  # of the table
    prefix: str

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live * len(self.lhs)


@dataclass(frozen=True)
class MergePartners:
    """Choose among the offered partners for one part of the left-hand sides."""

    view: View  # without segments
    drawn: tuple[str, ...]
    files: tuple[str, ...]  # of offers
    lhs: tuple[tuple[int, ...], ...]
    rows: int  # of the table
    part: int
    parts: int


def draw_rows(item: DrawRows) -> Iterator[TaskResult]:
    """The file of drawn rows."""
    blocks, ids = [np.empty((0, item.view.words), np.uint64)], [np.empty(0, np.int64)]
    for segment, count in zip(item.view.segments, item.counts, strict=True):
        positions = live_positions(item.view.path, segment)
        chosen = np.random.default_rng(segment.number).choice(positions, count, replace=False)
        blocks.append(item.view.rows(segment, np.sort(chosen)))
        ids.append(np.sort(chosen) + segment.base)
    numbers = np.column_stack([np.concatenate(ids).view(np.uint64), np.concatenate(blocks)])
    yield TaskResult({"files": [exchange.write(item.view.path, item.prefix, numbers)]})


def offer_partners(item: OfferPartners) -> Iterator[TaskResult]:
    """The file of offers: a number for the lhs, the place of the wanted row, the hash of the
    partner, how many rows agree on the lhs, and the columns in which the partner agrees, as
    bits."""
    drawn = _drawn(item.view, item.drawn)
    cells = _compared(drawn)
    columns = item.view.columns
    searches = [(lhs, paired_off(drawn.codes(lhs)[0], drawn.ids, columns)[1]) for lhs in item.lhs]
    wanting = [
        (lhs, wanted, _halvings(wanted, len(drawn.ids), item.rows))
        for lhs, wanted in searches
        if len(wanted.rows)
    ]
    used = {(times, column) for lhs, _, times in wanting for column in lhs}
    values = {column: bits_of(drawn.hashes[0, column]) for _, column in used}
    for block in blocks(item.view, range(columns), BLOCK, 1):
        look()
        hashes, every = block.hashes[0], np.arange(len(block.ids), dtype=np.int32)
        by_row = _compared(block)
        some = {0: every}
        for times in sorted({times for times, _ in used if times}):
            some[times] = halved(block.ids, [*some.values()][-1], times)
        # A partner agrees with a drawn row in each column of the lhs.
        having = {
            (times, column): marked(hashes[column], some[times], values[column])
            for times, column in used
        }
        for lhs, wanted, times in wanting:
            rows = min((having[times, column] for column in lhs), key=len)
            offer(hashes, by_row, block.ids, rows, np.array(lhs, np.int64), cells, wanted)
    found = [
        _numbered(_spread(item.first + place, item.of), offers(wanted))
        for place, (_, wanted) in enumerate(searches)
    ]
    yield TaskResult(
        {"files": [exchange.write(item.view.path, item.prefix, np.concatenate(found))]}
    )


def _compared(rows: HashedRows) -> NDArray[np.uint16]:
    """What tells cells apart ``(rows, columns)``, but for one in 65,536, which differs all the same
    and so rules nothing out: partners are all over a block, and fewer bytes are nearer."""
    return np.ascontiguousarray((rows.hashes[0] >> np.uint64(48)).astype(np.uint16).T)


def _halvings(wanted: Wanted, drawn: int, rows: int) -> int:
    """How often rows are halved before they are offered: where groups are large, a part of the rows
    has partners for nearly all. Of a group of c rows, no second row is drawn with a probability of
    exp(-c · drawn / rows)."""
    alone = len(wanted.rows) / drawn
    size = -math.log(alone) * rows / drawn
    return max(0, int(math.log2(max(1.0, size / _PARTNERS))))


def _drawn(view: View, files: tuple[str, ...]) -> HashedRows:
    numbers = exchange.between(view.path, files, 0, 1, 1 + view.words)
    ids, rows = numbers[:, 0].view(np.int64), np.ascontiguousarray(numbers[:, 1:])
    return hashed(rows, np.arange(len(ids)), ids, view, range(view.columns), 1)


def _spread(place: int, of: int) -> int:
    """A hash of a lhs: that of one of several equal parts lies in this part of all hashes."""
    return -(-place * exchange.HASHES // of)


def _numbered(number: int, found: Offers) -> U64:
    """Offers as rows of numbers."""
    words = [np.full(len(found.rows), number, np.uint64), found.rows.view(np.uint64)]
    return np.stack([*words, found.hashes, found.counts, *found.agreeing.T], axis=1)


def merge_partners(item: MergePartners) -> Iterator[TaskResult]:
    """By lhs the shares of their groups that rows other than a drawn one are, added up: at least,
    and at most; and by column those of rows whose partner differs."""
    drawn = _drawn(item.view, item.drawn)
    cells = np.ascontiguousarray(drawn.hashes[0].T)
    columns = item.view.columns
    words = 4 + -(-columns // 64)
    offered = exchange.between(item.view.path, item.files, item.part, item.parts, words)
    offered = offered[np.argsort(offered[:, 0], kind="stable")]
    least, most = np.zeros((2, len(item.lhs)))
    differing = np.zeros((len(item.lhs), columns))
    for place, lhs in enumerate(item.lhs):
        if place * item.parts // len(item.lhs) != item.part:
            continue
        look()
        rings, wanted = paired_off(drawn.codes(lhs)[0], drawn.ids, columns)
        number = _spread(place, len(item.lhs))
        start, stop = np.searchsorted(offered[:, 0], np.array([number, number + 1], np.uint64))
        own = offered[start:stop]
        merge(Offers(own[:, 1].view(np.int64), own[:, 2], own[:, 3], own[:, 4:]), wanted)
        in_rings, known = add_rings(rings, cells, differing[place])
        others = add_partners(wanted, differing[place])
        are_all = not len(wanted.rows) or not _halvings(wanted, len(drawn.ids), item.rows)
        least[place] = known + others
        most[place] = in_rings + (others if are_all else len(wanted.rows))
    yield TaskResult({}, {"least": least, "most": most, "differing": differing})
