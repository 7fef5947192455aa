"""Lists of all pairs of rows that agree in a *subkey*: a key, or the lhs of a dependency, without
one of its columns.

When deletes take the last pair that shows a maximal non-key, what may be a key now was one with any
further column *x* that the non-key lacks. So it contains a minimal key without *x*: a subkey. The
same is true of an lhs, with any *x* but the rhs. Few pairs of rows agree in most subkeys, and a
search for keys brings them together anyway. They are listed then, with their agree-sets, and later
say what such deletes leave, without a search of the rows.

Every task of a search finds such pairs, whatever its rows. They go to files, and only evidence
against candidates comes back to the driver; so a subkey does not count as validated there.

The lists tell of rows in segments before a number: pairs that have lost a row are passed over, and
rows that have come since are looked up, as they are for sets that held once
(:class:`holdfast.evidence.upkeep.FormerSets`). That includes rows that were merged. What must be
searched for all the same is listed too, and replaces what older lists said of it: so nothing is
searched for twice while pairs are left, as far as there is room. When too many rows have come, the
next search makes new lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from holdfast.cover.evidence import Evidence
from holdfast.evidence.upkeep import FormerSets
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.evidence import WITNESSES
from holdfast.model import thresholds
from holdfast.runtime.runner import Runner
from holdfast.table.state import Table
from holdfast.tasks import listed_pairs as tasks
from holdfast.tasks.segments import are_dead


class Listing(Enum):
    """Which pairs of rows a search lists."""

    NONE = "none"
    SEARCHED = "searched"  # those that agree in a set that is searched for
    SUBKEYS = "subkeys"  # and those that agree in a subkey of what may be a key


@dataclass(frozen=True)
class ListedPairs:
    """Sets of columns, and every agree-set that contains one, with the pairs of rows that have it:
    all of them, unless there are ``more``. They are of segments before some number."""

    sets: U64
    before: I64  # by set
    since: int  # that of the first ones, which were listed together
    masks: U64
    counts: I64  # of pairs, by mask
    pairs: I64  # (sum of counts, 2) row ids
    more: Flags  # by mask

    def is_stale(self, table: Table) -> bool:
        """Whether a table has too many rows now that are in no list."""
        since = sum(s.live for s in table.segments if s.number >= self.since)
        return since > thresholds.current.recent_share * table.rows

    def living(self, root: str, table: Table) -> ListedPairs:
        """Without the pairs that a table has lost a row of, and agree-sets that had no others."""
        alive = are_living(root, table, self.pairs).all(axis=1)
        owner = np.repeat(np.arange(len(self.masks)), self.counts)[alive]
        left = np.bincount(owner, minlength=len(self.masks))
        some = (left > 0) | self.more
        return ListedPairs(
            self.sets, self.before, self.since,
            self.masks[some], left[some], self.pairs[alive], self.more[some],
        )  # fmt: skip

    @property
    def evidence(self) -> Evidence:
        """The agree-sets that there are pairs of, with the first of them as witnesses."""
        owner, place = np.repeat(np.arange(len(self.masks)), self.counts), tasks.places(self.counts)
        witnesses = np.full((len(self.masks), WITNESSES, 2), -1, np.int64)
        few = place < WITNESSES
        witnesses[owner[few], place[few]] = self.pairs[few]
        some = self.counts > 0
        return Evidence(self.masks[some], witnesses[some])

    @property
    def former(self) -> FormerSets:
        """The sets against which the rows of before show nothing but :attr:`evidence`."""
        # Of an agree-set without pairs some may live that no list has.
        unlisted = self.masks[self.counts == 0]
        known = ~bitsets.any_superset(self.sets, unlisted)
        return FormerSets.of(self.sets[known], self.before[known])

    def joined(self, newer: ListedPairs) -> ListedPairs | None:
        """With sets that were searched for since, which alone tell of their agree-sets now; None:
        there are none, or there is no room."""
        old = ~bitsets.is_member(self.sets, newer.sets)
        old_masks = ~bitsets.any_subset(self.masks, newer.sets)
        sets = np.concatenate([self.sets[old], newer.sets])
        masks = np.concatenate([self.masks[old_masks], newer.masks])
        if not len(newer.sets) or max(len(sets), len(masks)) > thresholds.current.mask_room:
            return None
        old_pairs = np.repeat(old_masks, self.counts)
        return ListedPairs(
            sets,
            np.concatenate([self.before[old], newer.before]),
            self.since,
            masks,
            np.concatenate([self.counts[old_masks], newer.counts]),
            np.concatenate([self.pairs[old_pairs], newer.pairs]),
            np.concatenate([self.more[old_masks], newer.more]),
        )


def subkeys(sets: U64, values: list[float], rows: int) -> U64:
    """The subkeys of what may be keys or left-hand sides: each without any one of its columns. Not
    those in which so many pairs of rows may agree that a search would take much longer."""
    limits, rows = thresholds.current, max(rows, 1)
    weights = np.log(np.maximum(values, 1.0))
    flags = bitsets.to_flags(sets[: limits.listed_subkeys], len(weights))
    owner, column = np.nonzero(flags)
    few_pairs = np.log(rows**2 / 2 / limits.subkey_pairs_expected)
    some = (flags @ weights)[owner] - weights[column] >= few_pairs
    owner, column = (places[some][: limits.listed_subkeys] for places in (owner, column))
    shorter = flags[owner]
    shorter[np.arange(len(shorter)), column] = False
    return bitsets.distinct(bitsets.from_flags(shorter))


def merged(
    runner: Runner, root: str, files: tuple[str, ...], sets: U64, before: int
) -> ListedPairs:
    """The pairs of the lists in some files that agree in one of some sets, for each of which all
    pairs were found; no sets where the pairs have too many agree-sets."""
    limits = thresholds.current
    complete, merged_lists = sets[:0], tasks.Merged.none(sets.shape[1])._asdict()
    if len(sets):
        item = tasks.MergeLists(root, files, sets, limits.listed_pairs_a_mask, limits.mask_room)
        [[result]] = runner.run([(tasks.merge, item)])
        complete = sets if result.facts["complete"] else complete
        merged_lists = result.arrays
    numbers = np.full(len(complete), before, np.int64)
    return ListedPairs(complete, numbers, before, **merged_lists)


def are_living(root: str, table: Table, ids: I64) -> Flags:
    """Which rows are there; not those that were merged."""
    alive = np.zeros(ids.shape, np.bool_)
    for segment in table.segments:
        inside = ids >> 32 == segment.number
        if inside.any():
            alive[inside] = ~are_dead(Path(root), segment, ids[inside] - segment.base)
    return alive


StoredLists = Callable[[], ListedPairs]
"""Lists of an earlier version, which are read only where they are needed."""
