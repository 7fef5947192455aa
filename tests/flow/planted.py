"""Rows made so that it is known which pairs show what, and batches that take just those away.

Random rows show everything many times over, so that deletes seldom take the last pair that shows
something, and never all pairs that are stored of it while others stay. Here rows stand in *places*.
The rows of one place compare with each other in a chosen way, a *pattern*, and with all other rows
in one and the same way. So a pattern is shown by as many pairs as were planted, and batches can
take it away pair by pair, the stored ones first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Any

import numpy as np

from holdfast.kinds.table_state import TableState
from holdfast.tasks import encode
from tests.flow.tables import Shop, living_words, row_input
from tests.strategies import Rows

Row = tuple[int | None, ...]
Pairs = list[tuple[Row, Row]]
Pattern = tuple[int, ...]
"""By column, how a row compares with the one before it in its place: lower (-1), equal (0), higher
(1)."""

STEP = 100
"""What lies between the cells of two places: more than a place has rows."""

COUNTS = (1, 2, 4, 5, 9)
"""Numbers of pairs: around those that are kept of an evidence, and those that are listed."""

MANY = 6
"""Pairs that a batch brings: more than are kept of an evidence."""


class Plot:
    """Patterns, some of which hide others, each with a known number of pairs; and the rows that are
    there now."""

    def __init__(self, random: Random, columns: int, ordered: bool) -> None:
        self._random, self._columns = random, columns
        self._steps = (0, 0, 1, -1) if ordered else (0, 0, 1)
        # Cells of some columns fall from place to place, and some have few values.
        self._signs = [random.choice((1, -1 if ordered else 1)) for _ in range(columns)]
        self._values = [
            0,
            *(random.choice((0, 0, 3) if ordered else (0, 0, 0, 3)) for _ in range(columns - 1)),
        ]
        self._places = 0
        self.rows: Rows = []
        self._went: Rows = []
        self._came: list[Rows] = []
        self.patterns: dict[Pattern, set[Row]] = {}
        self._hidden: dict[Pattern, Pattern] = {}  # by the pattern that hides it
        for _ in range(random.randint(2, 3)):
            pattern = self._new_pattern()
            # Equal in one column less: what the other pattern shows hides that.
            equal = [c for c, each in enumerate(pattern) if not each] or [0]
            less = tuple(each or int(c == equal[-1]) for c, each in enumerate(pattern))
            self._hidden[pattern] = less
            for each in (pattern, less):
                self.rows += self.pairs(each, random.choice(COUNTS))
        self.rows += self._plant((1,) * columns, 1)
        self.rows += random.choices(self.rows, k=random.choice((0, 1, 3)))

    def pairs(self, pattern: Pattern, count: int) -> Rows:
        """New rows that show a pattern in so many pairs: one in each place, or all in one."""
        if count > 2 and self._random.random() < 0.2:
            return self._plant(pattern, 2 + count // 3)
        return [row for _ in range(count) for row in self._plant(pattern, 2)]

    def beside(self, pattern: Pattern, count: int) -> Rows:
        """New rows that compare by a pattern with rows that are there."""
        rows = self._random.sample(self.rows, min(count, len(self.rows)))
        return self._noted(
            pattern,
            [
                tuple(None if cell is None else cell + each for cell, each in both)
                for both in (zip(row, pattern, strict=True) for row in rows)
            ],
        )

    def _in_a_pair(self) -> Rows:
        """A new row that shows a new pattern with one that is there."""
        return self.beside(self._new_pattern(), 1)

    def _new_pattern(self) -> Pattern:
        """One that none of the others hides, if there is such a one."""
        for _ in range(20):
            pattern = tuple(self._random.choices(self._steps, k=self._columns))
            if any(pattern) and not any(_hides(each, pattern) for each in self.patterns):
                break
        return pattern if any(pattern) else (*pattern[1:], 1)

    def _plant(self, pattern: Pattern, rows: int) -> Rows:
        """The rows of a new place; where they are equal in a column, that may be null."""
        place, self._places = self._places, self._places + 1
        null = self._random.choice((-1, -1, -1, self._columns - 1))

        def cell(column: int, number: int) -> int | None:
            if column == null and not pattern[column]:
                return None
            base = place % self._values[column] if self._values[column] else place
            return self._signs[column] * (base * STEP + pattern[column] * number)

        made: Rows = [tuple(cell(c, k) for c in range(self._columns)) for k in range(rows)]
        return self._noted(pattern, made)

    def _noted(self, pattern: Pattern, rows: Rows) -> Rows:
        self.patterns.setdefault(pattern, set()).update(rows)
        return rows

    def batches(self, shop: Shop, space: str) -> Iterator[dict[str, Any]]:
        """Batches one after another. Rows come that show a pattern in more pairs than are kept: a
        new one, or one that there is; and rows that show new ones in a single pair each. Then
        the pairs that a pattern is shown with go until there are none, those that hide it first;
        and rows that came go, all of them. Others come in between."""
        random = self._random
        hiding = random.choice([*self._hidden])
        hidden = self._hidden[hiding]
        brought = random.choice((self._new_pattern(), hiding, hidden))
        bring = random.choice((self.pairs, self.beside))
        yield self._batch(bring(brought, MANY), [])
        yield self._batch([row for _ in range(3) for row in self._in_a_pair()], [])
        order = (hiding, hidden) if brought in (hiding, hidden) else (brought, hiding, hidden)
        for pattern in order:
            yield from self._taken(shop, space, pattern)
        last, left = Counter(random.choice(self._came)), Counter(self.rows)
        yield self._batch(self._others(), [*(last & left).elements()])

    def _taken(self, shop: Shop, space: str, pattern: Pattern) -> Iterator[dict[str, Any]]:
        """Batches that take the pairs which evidence is shown with, as long as some of them have a
        row that a pattern was planted with; not more than a few."""
        for _ in range(3):
            showing = [
                pairs
                for pairs in shown(shop, space, self.rows)
                if any(self.patterns[pattern] & {*pair} for pair in pairs)
            ]
            if not showing:
                break
            yield self._batch(self._others(), gone(self._random, self._random.choice(showing)))

    def _others(self) -> Rows:
        """Rows that come while others go: none, one alone, a pair, one that makes a pair with
        another, one that is there already, one that was there."""
        random = self._random
        ways = (
            lambda: self._plant((1,) * self._columns, 1),
            lambda: self.pairs(random.choice([*self.patterns]), 1),
            self._in_a_pair,
            lambda: random.sample(self.rows, min(1, len(self.rows))),
            lambda: random.sample(self._went, min(2, len(self._went))),
        )
        return random.choice(ways)() if random.random() < 0.6 else []

    def _batch(self, inserts: Rows, deletes: Rows) -> dict[str, Any]:
        for row in deletes:
            self.rows.remove(row)
        self._went += deletes
        self.rows += inserts
        self._came.append(inserts)
        return {"inserts": inserts, "deletes": deletes}


def _hides(one: Pattern, two: Pattern) -> bool:
    """Whether rows are equal in one pattern wherever they are in another."""
    return all(a == 0 for a, b in zip(one, two, strict=True) if b == 0)


def shown(shop: Shop, space: str, rows: Rows) -> list[Pairs]:
    """The pairs that each stored evidence is shown with; where pairs are counted, a few of each
    agree-set, those of the fewest pairs first."""
    evidence = TableState.load(shop.store, shop.store.read(), "t").evidence[space].evidence
    if len(evidence.masks):
        by_id = rows_by_id(shop, rows)
        return [
            [(by_id[one], by_id[two]) for one, two in pairs if one >= 0]
            for pairs in evidence.witnesses.tolist()
        ]
    by_mask: dict[tuple[bool, ...], Pairs] = {}
    for one, two in combinations(rows, 2):
        if one != two:
            mask = tuple(a == b for a, b in zip(one, two, strict=True))
            by_mask.setdefault(mask, []).append((one, two))
    return [pairs[:4] for pairs in sorted(by_mask.values(), key=len)]


def gone(random: Random, pairs: Pairs) -> Rows:
    """Rows without which none of some pairs is left: of each pair one, or both."""
    rows: dict[Row, None] = {}
    for pair in pairs:
        if not {*pair} & {*rows}:
            rows |= dict.fromkeys(random.choice((pair[:1], pair[1:], pair)))
    return [*rows]


def rows_by_id(shop: Shop, rows: Rows) -> dict[int, Row]:
    """The living rows by their ids, whether or not the profile keeps them."""
    if not rows:
        return {}
    [batch] = row_input(shop.kinds, rows).rows.combine_chunks().to_batches()
    words = np.ascontiguousarray(encode.encode(batch, encode.layout(batch.schema)).T)
    known = dict(zip((each.tobytes() for each in words), rows, strict=True))
    table = TableState.load(shop.store, shop.store.read(), "t").table
    living = living_words(table.view(shop.store.path, shop.options))
    return {number: known[each.tobytes()] for number, each in living.items()}
