"""Approximate constraints from counted evidence: all minimal ones within a bound, with errors.

The pairs that agree on X only get fewer as X grows, so what is within the bound is closed upwards,
and a set is minimal iff it is within the bound and none of the sets with one column less is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.agree import AgreeSets
from holdfast.kernels import agree as kernels
from holdfast.kernels import bitsets

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Approximate:
    """Minimal left sides, and the pairs of rows that violate each."""

    masks: U64
    violations: I64


def allowed(pairs: int, max_error: float) -> int:
    """The most violating pairs that are still within a bound on the error."""
    most = int(max_error * pairs)
    # A share that is written as a decimal may fall just below the count that it names.
    return most + 1 if pairs and (most + 1) / pairs <= max_error else most


def within(
    sets: AgreeSets, atoms: int, right: int | None, most: int, max_size: int | None
) -> Approximate:
    """The minimal sets without ``right`` on which at most ``most`` pairs agree that differ in
    ``right`` (``None``: that agree at all, which makes them keys)."""
    masks, counts = sets.masks, sets.counts
    if right is not None:
        lacks = masks[:, right // 64] >> np.uint64(right % 64) & np.uint64(1) == 0
        masks, counts = masks[lacks], counts[lacks]
    columns = [c for c in range(atoms) if c != right]
    limit = len(columns) if max_size is None else min(max_size, len(columns))
    if len(columns) <= kernels.SUMMED:
        found, violations = _by_sums(masks, counts, columns, most, limit)
    else:
        found, violations = _by_levels(masks, counts, columns, most, limit)
    order = bitsets.canonical_order(found)
    return Approximate(found[order], violations[order])


def _by_sums(masks: U64, counts: I64, columns: list[int], most: int, limit: int) -> tuple[U64, I64]:
    """All sums over supersets at once, for few enough columns."""
    small = np.zeros(len(masks), np.int64)
    for place, column in enumerate(columns):
        bit = masks[:, column // 64] >> np.uint64(column % 64) & np.uint64(1)
        small |= bit.astype(np.int64) << place
    sums = np.bincount(small, counts, 1 << len(columns)).astype(np.int64)
    kernels.sum_supersets(sums)
    places = kernels.minimal_within(sums, most, limit)
    sets = [[columns[p] for p in range(len(columns)) if place >> p & 1] for place in places]
    return bitsets.from_columns(sets, 64 * masks.shape[1]), sums[places]


def _by_levels(
    masks: U64, counts: I64, columns: list[int], most: int, limit: int
) -> tuple[U64, I64]:
    """Level by level: a set that is not within the bound grows by columns after its last one."""
    found: list[list[int]] = []
    violations: list[int] = []
    bits = {
        c: (masks[:, c // 64] >> np.uint64(c % 64) & np.uint64(1)).astype(np.bool_) for c in columns
    }
    # Of each open set: its columns, and the evidences that contain it.
    level: list[tuple[list[int], I64]] = [([], np.arange(len(masks)))]
    for size in range(limit + 1):
        grown: list[tuple[list[int], I64]] = []
        for chosen, inside in level:
            pairs = int(counts[inside].sum())
            if pairs <= most:
                if _is_minimal(chosen, bits, counts, most):
                    found.append(chosen)
                    violations.append(pairs)
            elif size < limit:
                start = columns.index(chosen[-1]) + 1 if chosen else 0
                grown += [
                    ([*chosen, column], inside[bits[column][inside]]) for column in columns[start:]
                ]
        level = grown
    return (
        bitsets.from_columns(found, 64 * masks.shape[1]),
        np.array(violations, np.int64),
    )


def _is_minimal(
    chosen: list[int], bits: dict[int, NDArray[np.bool_]], counts: I64, most: int
) -> bool:
    for column in chosen:
        inside = np.ones(len(counts), np.bool_)
        for other in chosen:
            if other != column:
                inside &= bits[other]
        if int(counts[inside].sum()) <= most:
            return False
    return True
