"""Mirror images: sets of atoms as the other row of a pair sees them."""

from __future__ import annotations

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.model.comparisons import Space


def mirrored(sets: U64, space: Space) -> U64:
    """The mirror image of every set."""
    # Most atoms move by the same few distances, and those that do move at once.
    moves: dict[tuple[int, int, int], int] = {}
    for atom, image in enumerate(space.mirror):
        move = (atom >> 6, image >> 6, (image & 63) - (atom & 63))
        moves[move] = moves.get(move, 0) | 1 << (atom & 63)
    images = np.zeros_like(sets)
    for (source, target, distance), mask in moves.items():
        bits = sets[:, source] & np.uint64(mask)
        shift = np.left_shift if distance > 0 else np.right_shift
        images[:, target] |= shift(bits, np.uint64(abs(distance)))
    return images


def one_of_mirrors(sets: U64, space: Space) -> U64:
    """Of every set and its mirror image the one that comes first in canonical order, each once."""
    return bitsets.distinct(first_of_two(sets, mirrored(sets, space)))


def first_of_two(ones: U64, others: U64) -> U64:
    """Of each two sets of one size the one that comes first in canonical order: the one that holds
    the lowest atom in which they differ."""
    later = np.zeros(len(ones), np.bool_)
    for w in reversed(range(ones.shape[1])):
        differ = ones[:, w] ^ others[:, w]
        lowest = differ & (~differ + np.uint64(1))
        later = np.where(differ == 0, later, others[:, w] & lowest != 0)
    return np.where(later[:, None], others, ones)
