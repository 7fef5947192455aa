"""Drawn rows, each with a random partner of those that agree with it on a lhs.

One job draws rows. The next goes through all rows once, for many left-hand sides at once, and
offers partners; a drawn row that agrees with other drawn rows has the next one of these. The last
merges what tasks have offered, and counts in which columns partners differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.kernels import partners
from holdfast.kernels.arrays import I64, U64
from holdfast.runtime.result import TaskResult
from holdfast.tasks import exchange
from holdfast.tasks.near import Codes
from holdfast.tasks.segments import live_positions, map_words
from holdfast.tasks.view import View

_BLOCK = 1 << 17
"""Rows whose codes are held at a time."""


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
    """Offer the rows of a view as partners of the drawn ones, for each lhs."""

    view: View
    drawn: tuple[str, ...]  # files of drawn rows
    lhs: tuple[tuple[int, ...], ...]
    prefix: str
    is_first: bool  # pairs off the drawn rows among themselves, which one task does

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live * len(self.lhs)


@dataclass(frozen=True)
class MergePartners:
    """Choose among the offered partners of one part of the drawn rows."""

    root: str
    files: tuple[str, ...]
    columns: int
    lhs: int
    drawn: int
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
    """The file of offers: a number for the lhs and the drawn row, the hash of the partner, how many
    rows agree on the lhs, and the columns in which the partner agrees, as bits."""
    numbers = exchange.between(item.view.path, item.drawn, 0, 1, 1 + item.view.words)
    ids, rows = numbers[:, 0].view(np.int64), np.ascontiguousarray(numbers[:, 1:])
    columns = range(item.view.columns)
    drawn = Codes.of_rows(item.view, rows, ids, columns, 1)
    searches = [_PartnerSearch.of(drawn, lhs) for lhs in item.lhs]
    for segment in item.view.segments:
        positions = live_positions(item.view.path, segment)
        words = map_words(item.view.path, segment).whole()
        for start in range(0, len(positions), _BLOCK):
            some = positions[start : start + _BLOCK]
            codes = Codes.of_rows(item.view, words[some], some + segment.base, columns, 1)
            for search in searches:
                search.offer(codes, drawn)
    offers = [search.offers(place, len(ids)) for place, search in enumerate(searches)]
    if item.is_first:
        offers += [_among(drawn, lhs, place) for place, lhs in enumerate(item.lhs)]
    file = exchange.write(item.view.path, item.prefix, np.concatenate(offers))
    yield TaskResult({"files": [file]})


@dataclass
class _PartnerSearch:
    """The drawn rows that no other drawn row agrees with on a lhs, and their partners."""

    lhs: tuple[int, ...]
    places: I64  # of the drawn rows
    wanted: partners.DrawnCodes
    partners: partners.Partners
    agreeing: U64

    @staticmethod
    def of(drawn: Codes, lhs: tuple[int, ...]) -> _PartnerSearch:
        codes = drawn.left(lhs)[:, 0]
        _, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
        places = np.sort(firsts[counts == 1])
        wanted = partners.wanted(codes[places], drawn.ids[places])
        masks = np.zeros((len(places), -(-len(drawn.words) // 64)), np.uint64)
        return _PartnerSearch(lhs, places, wanted, partners.no_partners(len(places)), masks)

    def offer(self, codes: Codes, drawn: Codes) -> None:
        """Offer a block of rows."""
        if not len(self.places):
            return
        self.partners.rows[:] = -1
        partners.offer(codes.left(self.lhs)[:, 0], codes.ids, self.wanted, self.partners)
        better = np.flatnonzero(self.partners.rows >= 0)
        self.agreeing[better] = _agreeing(
            drawn, self.places[better], codes, self.partners.rows[better]
        )

    def offers(self, place: int, drawn: int) -> U64:
        """What is offered, for the lhs at a place."""
        found = np.flatnonzero(self.partners.counts)
        number = (self.places[found] + place * drawn).view(np.uint64)
        counts = self.partners.counts[found].view(np.uint64)
        return _numbered(number, self.partners.hashes[found], counts, self.agreeing[found])


def _among(drawn: Codes, lhs: tuple[int, ...], place: int) -> U64:
    """The drawn rows that agree with other drawn ones, each with the next of these."""
    codes = drawn.left(lhs)[:, 0]
    order = np.argsort(codes, kind="stable")
    _, starts, sizes = np.unique(codes[order], return_index=True, return_counts=True)
    following = np.arange(1, len(order) + 1)
    following[starts + sizes - 1] = starts
    shared = np.repeat(sizes > 1, sizes)
    rows, next_rows = order[shared], order[following[shared]]
    number = (rows + place * len(codes)).view(np.uint64)
    counts = np.repeat(sizes - 1, sizes)[shared].view(np.uint64)
    agreeing = _agreeing(drawn, rows, drawn, next_rows)
    return _numbered(number, np.zeros(len(rows), np.uint64), counts, agreeing)


def _agreeing(drawn: Codes, rows: I64, codes: Codes, partner_rows: I64) -> U64:
    """The columns in which rows agree with their partners, as bits."""
    masks = np.zeros((len(rows), -(-len(drawn.words) // 64)), np.uint64)
    for column, words in drawn.words.items():
        same = words[rows, 0] == codes.words[column][partner_rows, 0]
        same &= ~drawn.nulls[column][rows]
        masks[:, column // 64] |= same.astype(np.uint64) << np.uint64(column % 64)
    return masks


def _numbered(number: U64, hashes: U64, counts: U64, agreeing: U64) -> U64:
    """Offers as rows of numbers whose first one is spread evenly over all numbers."""
    spread = number * np.uint64(0x9E3779B97F4A7C15)
    return np.concatenate([np.stack([spread, number, hashes, counts], axis=1), agreeing], axis=1)


def merge_partners(item: MergePartners) -> Iterator[TaskResult]:
    """Of each lhs how many drawn rows have a partner, and, for every column, how many rows in which
    partners differ. A row counts a little less the smaller its group is: its partner is one of the
    other rows, which differ more often than any two of the group."""
    words = -(-item.columns // 64)
    offers = exchange.between(Path(item.root), item.files, item.part, item.parts, 4 + words)
    offers = offers[np.lexsort((offers[:, 2], offers[:, 1]))]
    fresh = np.ones(len(offers), np.bool_)
    fresh[1:] = offers[1:, 1] != offers[:-1, 1]
    starts = np.flatnonzero(fresh)
    shared = np.zeros(item.lhs, np.int64)
    differing = np.zeros((item.lhs, item.columns))
    if len(starts):
        others = np.add.reduceat(offers[:, 3], starts)
        weights = others / (others + 1.0)
        best = offers[starts]
        lhs = (best[:, 1] // np.uint64(item.drawn)).astype(np.int64)
        shared = np.bincount(lhs, minlength=item.lhs)
        for column in range(item.columns):
            agree = best[:, 4 + column // 64] >> np.uint64(column % 64) & np.uint64(1)
            differing[:, column] = np.bincount(lhs, weights * (agree == 0), item.lhs)
    yield TaskResult({}, {"shared": shared, "differing": differing})
