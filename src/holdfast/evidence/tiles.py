"""Dealing out pairs of rows: tiles of rows × rows, each pair in one, shared among tasks.

A batch compares the rows that it *changes*, new or deleted, with those that stay, and among
themselves; a first profile is a batch that brings every row. Rows stand in lines: of stretches of
segments, one after another. So there are two shapes to divide: *rectangles*, of changed rows and
those that stay, and *triangles*, of changed rows each with the ones before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from holdfast.model import thresholds
from holdfast.table.change import RowChange
from holdfast.tasks.agree import Count, RowStretch, Side, Tile, tile_rows
from holdfast.tasks.devices import GPU
from holdfast.tasks.segments import Segment


@dataclass(frozen=True)
class Line:
    """Rows in an order: some stretches, one after another."""

    stretches: Side

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(stretch.rows for stretch in self.stretches)

    def between(self, start: int, stop: int) -> Line:
        """Its rows from number ``start`` on, before ``stop``."""
        chosen = []
        for stretch in self.stretches:
            first, last = max(0, start), min(stretch.rows, stop)
            if first < last:
                part = replace(stretch, start=stretch.start + first, stop=stretch.start + last)
                chosen.append(part)
            start, stop = start - stretch.rows, stop - stretch.rows
        return Line(tuple(chosen))


@dataclass(frozen=True)
class _Region:
    """Pairs of rows, of any number: those of a tile, if tiles were unbounded."""

    ones: Line
    others: Line
    lead: int | None
    sign: int

    @property
    def pairs(self) -> int:
        if self.lead is None:
            return self.ones.rows * self.others.rows
        last = min(self.ones.rows, self.others.rows - self.lead)  # the rows that do not meet all
        first = max(0, -self.lead)
        below = (last - first) * (2 * self.lead + first + last - 1) // 2 if last > first else 0
        return below + (self.ones.rows - max(0, last)) * self.others.rows

    def tiles(self, rows: int) -> list[_Region]:
        """The region in parts whose sides have at most so many rows."""
        parts = []
        for start, others in _pieces(self.others, rows):
            for first, ones in _pieces(self.ones, rows):
                lead = None if self.lead is None else self.lead + first - start
                parts.append(replace(self, ones=ones, others=others, lead=lead))
        return [part for part in parts if part.pairs]


def living(segments: Sequence[Segment]) -> Line:
    """The living rows of segments."""
    return Line(
        tuple(RowStretch(segment, None, 0, segment.live) for segment in segments if segment.live)
    )


def deleted(change: RowChange) -> Line:
    """The rows that a batch deleted."""
    later = {segment.number: segment for segment in change.after.segments}
    stretches = []
    for segment in change.before.segments:
        now = later.get(segment.number)
        lost = segment.live - (now.live if now else 0)
        if lost:
            stretches.append(RowStretch(segment, now, 0, lost))
    return Line(tuple(stretches))


def deal(what: Count, staying: Line, new: Line, gone: Line, calls: int) -> list[Count]:
    """All pairs that new rows bring and deleted rows take, for about so many calls, each with about
    as many pairs; fewer calls where there is little to count. ``what`` has everything but them."""
    limits = thresholds.current
    few = limits.gpu_tile_pairs if what.device == GPU else limits.tile_pairs
    changed = ((new, 1), (gone, -1))
    rectangles = [_rectangle(line, staying, sign) for line, sign in changed]
    parts = _worth(sum(rectangle.pairs for rectangle in rectangles), calls, few)
    # Parts of both that have one number share the rows that stay.
    shares = [
        list(parts_of_both)
        for parts_of_both in zip(*(_divided(r, parts) for r in rectangles), strict=True)
    ]
    for line, sign in changed:
        triangle = _Region(line, line, 0, sign)
        shares += [[part] for part in _triangles(triangle, _worth(triangle.pairs, calls, few))]
    sized = [(sum(region.pairs for region in share), share) for share in shares]
    loads: list[list[_Region]] = [[] for _ in range(calls)]
    sizes = [0] * calls
    for pairs, share in sorted((load for load in sized if load[0]), key=lambda s: -s[0]):
        least = sizes.index(min(sizes))
        loads[least] += share
        sizes[least] += pairs
    return [_task(what, load) for load in loads if load]


def pairs_of(staying: Line, new: Line, gone: Line) -> int:
    """How many pairs new rows bring and deleted rows take."""
    return sum(line.rows * staying.rows + line.rows * (line.rows - 1) // 2 for line in (new, gone))


def _worth(pairs: int, calls: int, few: int) -> int:
    """Into how many parts to divide so many pairs."""
    return max(1, min(calls, pairs // few))


def _rectangle(one: Line, two: Line, sign: int) -> _Region:
    """Every row of one line with every row of another. The kernel is quicker with the longer one as
    rows s; evidence is counted in both orders, or is the same either way."""
    ones, others = sorted((one, two), key=lambda line: line.rows)
    return _Region(ones, others, None, sign)


def _divided(rectangle: _Region, parts: int) -> list[_Region]:
    """Parts of a rectangle, each with as many of the rows s."""
    cuts = _even(rectangle.others.rows, parts)
    return [
        replace(rectangle, others=rectangle.others.between(start, stop))
        for start, stop in pairwise(cuts)
    ]


def _triangles(triangle: _Region, parts: int) -> list[_Region]:
    """Parts of a triangle with as many pairs each: later rows t have more."""
    line = triangle.ones
    cuts = [
        bisect_left(range(line.rows), triangle.pairs * part, key=lambda t: parts * t * (t - 1) // 2)
        for part in range(parts)
    ]
    return [
        replace(triangle, ones=line.between(start, stop), others=line.between(0, stop), lead=start)
        for start, stop in pairwise([*cuts, line.rows])
    ]


def _even(rows: int, parts: int) -> list[int]:
    """Where so many rows are cut into parts of about as many, both ends included."""
    return [rows * part // parts for part in range(parts + 1)]


def _pieces(line: Line, rows: int) -> list[tuple[int, Line]]:
    """A line in as few pieces as are sides of tiles, with the number of the first row of each."""
    cuts = _even(line.rows, -(-line.rows // rows) or 1)
    return [(start, line.between(start, stop)) for start, stop in pairwise(cuts)]


def _task(what: Count, regions: list[_Region]) -> Count:
    """The call that counts some regions."""
    sides: list[Side] = []
    tiles = []
    rows = tile_rows(what.device)
    for tile in (tile for region in regions for tile in region.tiles(rows)):
        for line in (tile.ones, tile.others):
            if line.stretches not in sides:
                sides.append(line.stretches)
        ones, others = sides.index(tile.ones.stretches), sides.index(tile.others.stretches)
        tiles.append(Tile(ones, others, tile.lead, tile.sign))
    return replace(what, sides=tuple(sides), tiles=tuple(tiles))
