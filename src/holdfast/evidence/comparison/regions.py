"""Which pairs of rows to compare all of, so that many candidates are validated at once.

A *region* is a set of atoms, and stands for the pairs that satisfy them. Once all of these are
compared, every candidate that contains the region is validated, for good: only they could violate
it. Regions of equal columns are groups of rows; others are boxes along the columns that they order.
What a region costs is estimated from the random pairs that were sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.cover.counts import SampledPairs
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.model import thresholds
from holdfast.model.comparisons import BOTH, Space


@dataclass(frozen=True)
class Region:
    """Pairs that satisfy some atoms."""

    atoms: tuple[int, ...]
    equal: tuple[int, ...] | None  # the columns, where the atoms say no more than that


@dataclass(frozen=True)
class Sampled:
    """Evidence of random pairs, with how many showed it; how many rows there are in all; and the
    evidence of a few random pairs, to be kept."""

    masks: U64
    counts: I64
    rows: int
    drawn: tuple[SampledPairs, ...] = ()

    @property
    def words(self) -> float:
        """About how many different pairs the table has at least, by how many of the random ones
        were shown once and how many twice (Chao, Scandinavian Journal of Statistics, 1984)."""
        once, twice = (int(np.count_nonzero(self.counts == number)) for number in (1, 2))
        return len(self.counts) + once * (once - 1) / (2 * (twice + 1))

    def pairs(self, space: Space, region: Region) -> float:
        """About how many pairs of rows are in a region: in one order where that is all the same."""
        most = self.rows * (self.rows - 1) / (2 if region.equal is not None else 1)
        if not region.atoms:
            return most
        mask = bitsets.from_columns([region.atoms], space.atoms)
        inside = ((mask & ~self.masks) == 0).all(axis=1)
        return most * (int(self.counts[inside].sum()) + 1) / (int(self.counts.sum()) + 1)


def everything() -> Region:
    """All pairs."""
    return Region((), ())


def choose(
    candidates: U64, space: Space, sampled: Sampled, hurried: bool
) -> tuple[list[Region], Flags]:
    """Regions that validate candidates at less than searches cost, cheapest for what they validate
    first; and which candidates are left. Where the time can end, ``hurried``, the price of a region
    has that of its different pairs, too: a search may leave some out, and a region none."""
    costs = thresholds.current.costs
    flags = bitsets.to_flags(candidates, space.atoms)
    equal = _equalities(flags, space)
    options = [*_of_equal(equal, space, costs.options), *_of_order(flags, space, costs.options)]
    price = np.array([_price(region, space, sampled, hurried) for region in options])
    covers = np.array([_holds(flags, region, space) for region in options])
    others = _touched(flags, space).sum(axis=1) - equal.sum(axis=1)
    seconds = np.where(others <= 2, costs.sweep_seconds_a_row, costs.search_seconds_a_row)
    seconds *= costs.searches * sampled.rows
    chosen: list[Region] = []
    left = np.ones(len(candidates), np.bool_)
    while left.any():
        saved = covers[:, left] @ seconds[left]
        best = int(np.argmax(saved / price))
        if price[best] >= saved[best]:
            break
        chosen.append(options[best])
        left &= ~covers[best]
    # What was chosen later may contain, as pairs, what was chosen before.
    sets = [{*region.atoms} for region in chosen]
    return [
        region for region in chosen if not any(smaller < {*region.atoms} for smaller in sets)
    ], left


def equal_region(columns: tuple[int, ...], space: Space) -> Region:
    """The pairs that are equal in some columns."""
    atoms = [
        atom
        for k, comparison in enumerate(space.comparisons)
        if comparison.is_own and comparison.left in columns
        for atom in space.agreeing(k)
    ]
    return Region(tuple(atoms), columns)


def _price(region: Region, space: Space, sampled: Sampled, hurried: bool) -> float:
    """The seconds that a region takes a core; with those that it takes to learn what it shows."""
    costs = thresholds.current.costs
    pairs, seconds = sampled.pairs(space, region), costs.group_seconds_a_row
    if region.equal is None:
        pairs += costs.edge_pairs_a_row * sampled.rows
        seconds = costs.box_seconds_a_row
    price = pairs / costs.pairs_a_second + seconds * sampled.rows
    if hurried:
        words = min(pairs, sampled.words)
        price += costs.word_seconds * words
        price += (2 * words) ** 2 / thresholds.current.evidences_compared
    return price


def _of_equal(equal: Flags, space: Space, most: int) -> list[Region]:
    """All pairs, those that are equal in a column, and in all columns that a candidate asks for."""
    own = [k for k, comparison in enumerate(space.comparisons) if comparison.is_own]
    single = [(int(k),) for k in np.flatnonzero(equal.any(axis=0))]
    distinct, counts = np.unique(equal, axis=0, return_counts=True)
    common = distinct[np.argsort(-counts, kind="stable")[:most]]
    whole = [tuple(np.flatnonzero(columns).tolist()) for columns in common]
    columns = [
        tuple(space.comparisons[own[k]].left for k in numbers)
        for numbers in dict.fromkeys([(), *single, *whole])
    ]
    return [equal_region(one, space) for one in columns]


def _of_order(flags: Flags, space: Space, most: int) -> list[Region]:
    """Two atoms of different comparisons of t with s, which many candidates have."""
    usable = np.array(
        [
            space.comparisons[k].rows == BOTH
            and space.comparisons[k].operators[atom - space.first[k]] != "!="
            for atom, k in enumerate(space.comparison_of)
        ]
    )
    number = flags.astype(np.float32).T @ flags.astype(np.float32)
    group = np.array(space.comparison_of)
    number[~usable, :] = number[:, ~usable] = 0
    number[group[:, None] == group[None, :]] = 0
    number = np.triu(number)
    best = np.argsort(-number, axis=None, kind="stable")[:most]
    pairs = np.stack(np.unravel_index(best, number.shape), axis=1)[number.flat[best] > 0]
    return [Region((int(a), int(b)), None) for a, b in pairs]


def _holds(flags: Flags, region: Region, space: Space) -> Flags:
    """Which candidates contain a region, or its mirror image."""
    images = (region.atoms, space.mirrored(region.atoms))
    contain: Flags = np.any([flags[:, list(atoms)].all(axis=1) for atoms in images], axis=0)
    return contain


def _equalities(flags: Flags, space: Space) -> Flags:
    """Which columns each candidate asks to be equal, of those that are compared with themselves."""
    own = [k for k, comparison in enumerate(space.comparisons) if comparison.is_own]
    equal = [flags[:, list(space.agreeing(k))].all(axis=1) for k in own]
    return np.stack(equal, axis=1) if equal else np.zeros((len(flags), 0), np.bool_)


def _touched(flags: Flags, space: Space) -> Flags:
    """Which comparisons each set has atoms of."""
    out: Flags = np.logical_or.reduceat(flags, space.first, axis=1)
    return out
