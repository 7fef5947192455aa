"""How many pairs of rows try rules: evidence with numbers of pairs, summed over.

A rule consists of predicates. A pair satisfies a predicate if it shows certain atoms and lacks
certain others. It could have broken the rule if, for each predicate, it shows all atoms of one of
two masks. Which evidence does so is kept as bits, so that a rule looks at 64 evidences at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import F64, I64, U64
from holdfast.kernels.bitsets import ONE, ZERO
from holdfast.kernels.jit import kernel


class Predicates(NamedTuple):
    """Different predicates, by row."""

    shown: U64
    lacked: U64
    one: U64  # the two masks
    other: U64


class RulesAsked(NamedTuple):
    """Rules as runs of predicates."""

    starts: I64  # (rules + 1,): where the predicates of each begin
    predicates: I64  # by their rows


def sums(masks: U64, numbers: I64, predicates: Predicates, rules: RulesAsked) -> tuple[F64, F64]:
    """By predicate of each rule the pairs that satisfy all others of the rule, but not this one;
    and by rule those that could have broken it."""
    others, could = np.zeros(len(rules.predicates)), np.zeros(len(rules.starts) - 1)
    bits = np.zeros((2, len(predicates.shown), -(-len(masks) // 64)), np.uint64)
    masks, numbers = np.ascontiguousarray(masks), np.ascontiguousarray(numbers, np.int64)
    _show(masks, *predicates, bits)
    _sum(bits, numbers, *rules, others, could)
    return others, could


@kernel
def _show(masks: Any, shown: Any, lacked: Any, one: Any, other: Any, bits: Any) -> None:
    """Set the bits of the evidences that do not satisfy each predicate, and of those that could
    not."""
    words = masks.shape[1]
    for each in range(shown.shape[0]):
        for row in range(masks.shape[0]):
            unsatisfied, not_one, not_other = ZERO, ZERO, ZERO
            for word in range(words):
                mask = masks[row, word]
                unsatisfied |= shown[each, word] & ~mask | lacked[each, word] & mask
                not_one |= one[each, word] & ~mask
                not_other |= other[each, word] & ~mask
            bit = ONE << np.uint64(row & 63)
            if unsatisfied != ZERO:
                bits[0, each, row >> 6] |= bit
            if not_one != ZERO and not_other != ZERO:
                bits[1, each, row >> 6] |= bit


@kernel
def _sum(bits: Any, numbers: Any, starts: Any, predicates: Any, others: Any, could: Any) -> None:
    size = numbers.size
    for rule in range(could.size):
        first, stop = starts[rule], starts[rule + 1]
        for block in range(bits.shape[2]):
            once, twice, could_not = ZERO, ZERO, ZERO
            for place in range(first, stop):
                unsatisfied = bits[0, predicates[place], block]
                twice |= once & unsatisfied
                once |= unsatisfied
                could_not |= bits[1, predicates[place], block]
            once &= ~twice
            if once == ZERO and could_not == ~ZERO:
                continue
            for row in range(64 * block, min(size, 64 * block + 64)):
                bit = ONE << np.uint64(row & 63)
                if not could_not & bit:
                    could[rule] += numbers[row]
                if once & bit:
                    for place in range(first, stop):
                        if bits[0, predicates[place], block] & bit:
                            others[place] += numbers[row]
                            break
