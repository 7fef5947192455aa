"""How the cells of a row lie in 32-bit words, so that one subtraction compares several of them.

A *field* holds the code of a cell, with a bit above it, its *guard*. Of two words ``a`` and ``b``
with the same fields, ``a - b`` with all guards set first keeps the guards of those fields in which
a's code is the larger or the same; from the guards alone, ``a ^ b`` takes those of the fields in
which the codes differ. So two instructions do for all fields of a word, whatever the columns are.

What a pair shows is gathered from the guards into a *key*, words of 31 bits with the highest one
always set, so that no word of a key is ever 0. Keys stand for the words of
:mod:`holdfast.kernels.comparisons` bit by bit, in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

BITS = 32
FULL = 0xFFFFFFFF
USED = 0x7FFFFFFF
"""The bits of a key's word that say something."""

DIRECT = 24
"""Bits up to which each possible key has its own counter. Shorter keys are spread over as many: the
more room there is, the fewer instructions gather a key."""

ORDERED, EQUAL, OWN = 0, 1, 2
"""Kinds of words: comparisons of order, of equality, and bits that a row brings by itself."""


class CellFacts(NamedTuple):
    """What has to be known of a comparison."""

    kind: int
    largest: int  # the largest code of either side; of no use for bits that a row brings
    nulls: bool  # whether either side has any


class Field(NamedTuple):
    """A comparison's cells in a word."""

    comparison: int
    low: int  # the lowest bit
    bits: int  # of the code; the guard is the next one

    @property
    def guard(self) -> int:
        return 1 << self.low + self.bits


class Word(NamedTuple):
    """Fields that are compared at once."""

    kind: int
    column: int  # where in a packed row it is
    fields: tuple[Field, ...]
    nulls: bool  # a mask of null cells is in the next column

    @property
    def guards(self) -> int:
        return sum(field.guard for field in self.fields)

    @property
    def outcome(self) -> int:
        """The bits in which the outcome is: of an ordered field >= in the guard, <= below it."""
        if self.kind == ORDERED:
            return self.guards | self.guards >> 1
        if self.kind == EQUAL:
            return self.guards
        return sum(((1 << field.bits) - 1) << field.low for field in self.fields)


class KeyPart(NamedTuple):
    """Bits of an outcome, moved into a word of the key together: ``rotate(bits & mask, turn)``."""

    word: int
    mask: int
    turn: int
    target: int


class PackingPlan(NamedTuple):
    """Words, how keys are gathered from them, and what the bits of a key mean."""

    cells: tuple[CellFacts, ...]  # of every comparison
    words: tuple[Word, ...]
    columns: int  # of a packed row, with what it is padded by
    parts: tuple[KeyPart, ...]
    length: int  # words of a key
    direct: int  # the bits of a key where each possible one has its own counter, or 0
    bits: tuple[tuple[int, int, int], ...]  # (bit of the key, comparison, bit of its outcome)


def null_codes(largest: int, kind: int, nulls_equal: bool) -> tuple[int, int]:
    """The codes of nulls on either side. Where nulls are unequal to each other, so are these; in an
    ordered field the mask of nulls sees to that."""
    return largest + 1, largest + (1 if nulls_equal or kind == ORDERED else 2)


@lru_cache(maxsize=64)
def plan(cells: tuple[CellFacts, ...], nulls_equal: bool) -> PackingPlan:
    """Fields in as few words as first fit finds, and a key in as few words as there can be."""
    sizes = [_bits(facts, nulls_equal) for facts in cells]
    words: list[Word] = []
    column = 0
    for kind in (ORDERED, EQUAL, OWN):
        chosen = [k for k, facts in enumerate(cells) if facts.kind == kind]
        for fields in _first_fit(chosen, sizes, guarded=kind != OWN):
            nulls = kind == ORDERED and any(cells[field.comparison].nulls for field in fields)
            words.append(Word(kind, column, fields, nulls))
            column += 2 if nulls else 1
    padded = max(1, column) if column <= 2 else (column + 3) // 4 * 4
    outcomes = [word.outcome for word in words]
    total = sum(bits.bit_count() for bits in outcomes)
    direct = DIRECT if total <= DIRECT else 0
    length = max(1, -(-total // (BITS - 1)))
    parts = _gathered(outcomes, [(1 << direct) - 1 if direct else USED] * length)
    bits = tuple(_meaning(words, parts))
    return PackingPlan(cells, tuple(words), padded, parts, length, direct, bits)


def _bits(cells: CellFacts, nulls_equal: bool) -> int:
    if cells.kind == OWN:
        return cells.largest.bit_length()
    top = cells.largest
    if cells.nulls:
        top = max(null_codes(top, cells.kind, nulls_equal))
    if top >= 1 << BITS - 1:
        raise ValueError(f"a code of {cells.largest:,} leaves no room: codes must be dense")
    return max(1, top.bit_length())


def _first_fit(
    chosen: Sequence[int], sizes: Sequence[int], *, guarded: bool
) -> Iterator[tuple[Field, ...]]:
    """Fields in words, the largest first. Those without guards leave out the highest bit."""
    room = BITS if guarded else BITS - 1
    free: list[int] = []
    fields: list[list[Field]] = []
    for k in sorted(chosen, key=lambda k: -sizes[k]):
        needs = sizes[k] + guarded
        at = next((w for w, left in enumerate(free) if left >= needs), len(free))
        if at == len(free):
            free.append(room)
            fields.append([])
        fields[at].append(Field(k, room - free[at], sizes[k]))
        free[at] -= needs
    return (tuple(word) for word in fields)


def rotated(word: int, turn: int) -> int:
    """The 32 bits of a word, moved towards the higher ones, and round."""
    return (word << turn | word >> BITS - turn) & FULL


def _gathered(outcomes: Sequence[int], free: list[int]) -> tuple[KeyPart, ...]:
    """Bits of the words moved to where bits of the key are free, as many as possible together."""
    parts = []
    # The words with the most bits first: they find the most room.
    for word in sorted(range(len(outcomes)), key=lambda w: -outcomes[w].bit_count()):
        left = outcomes[word]
        while left:
            most, turn, target = max(
                (
                    ((rotated(left, turn) & free[target]).bit_count(), -turn, -target)
                    for target in range(len(free))
                    if free[target]
                    for turn in range(BITS)
                ),
            )
            assert most, "there is a bit free for every bit"
            turn, target = -turn, -target
            moved = rotated(left, turn) & free[target]
            mask = rotated(moved, (BITS - turn) % BITS)
            parts.append(KeyPart(word, mask, turn, target))
            free[target] &= ~moved
            left &= ~mask
    return tuple(sorted(parts))


def _meaning(words: Sequence[Word], parts: Sequence[KeyPart]) -> Iterator[tuple[int, int, int]]:
    """Where in the key each bit of each comparison's outcome is: bit 0 is <= or =, bit 1 is >=."""
    where = {
        (part.word, bit): part.target * BITS + (bit + part.turn) % BITS
        for part in parts
        for bit in range(BITS)
        if part.mask >> bit & 1
    }
    for w, word in enumerate(words):
        for field in word.fields:
            guard = field.low + field.bits
            if word.kind == ORDERED:
                yield where[w, guard], field.comparison, 1
                yield where[w, guard - 1], field.comparison, 0
            elif word.kind == EQUAL:
                yield where[w, guard], field.comparison, 0
            else:
                for bit in range(field.bits):
                    yield where[w, field.low + bit], field.comparison, bit
