"""Lists of pairs of rows that agree in a near key: a search writes what it meets, one task merges.

A list has a row for every pair. The agree-set of a pair that met too many others with the same one
is ``full``: some pairs with it are in no list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.kernels.evidence import Findings
from holdfast.tasks.reads import note
from holdfast.tasks.result import TaskResult
from holdfast.tasks.segments import map_passing, write_arrays

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Merge:
    """Lists to be merged: of the pairs that agree in one of some sets, so many of a mask at most,
    and so many masks."""

    root: str
    files: tuple[str, ...]
    sets: U64
    pairs: int
    masks: int


def write(root: Path, path: str, findings: Findings) -> str:
    """A list of the wanted pairs that a search has found; the path that it has in the end."""
    wanted = np.flatnonzero(findings.wanted[: findings.state[0]])
    seen, most = findings.seen[wanted], findings.witnesses.shape[1]
    owner = np.repeat(np.arange(len(wanted)), seen)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(seen) - seen, seen)
    masks, pairs = findings.masks[wanted], findings.witnesses[wanted][owner, place]
    words = {f"mask{w}": masks[owner, w] for w in range(masks.shape[1])}
    full = (seen == most).astype(np.int8)[owner]
    return write_arrays(root, path, {**words, "one": pairs[:, 0], "two": pairs[:, 1], "full": full})


def merge(item: Merge) -> Iterator[TaskResult]:
    """Every mask once, with its pairs: ``count`` of them, and whether there may be more."""
    width = item.sets.shape[1]
    masks, pairs, full = [item.sets[:0]], [np.empty((0, 2), np.int64)], [np.empty(0, np.int8)]
    for file in item.files:
        arrays = map_passing(Path(item.root) / file)
        mine = np.stack([arrays[f"mask{w}"] for w in range(width)], axis=1)
        note(mine.nbytes + 17 * len(mine))
        near = bitsets.any_subset(mine, item.sets)
        masks.append(mine[near])
        pairs.append(np.stack([arrays["one"], arrays["two"]], axis=1)[near])
        full.append(arrays["full"][near])
    yield merged(np.concatenate(masks), np.concatenate(pairs), np.concatenate(full), item)


def merged(masks: U64, pairs: I64, full: NDArray[np.int8], item: Merge) -> TaskResult:
    """All lists as one, without the pairs that several have."""
    distinct = bitsets.distinct(masks)
    owner = bitsets.find(masks, distinct)
    more = np.zeros(len(distinct), np.bool_)
    more[owner[full != 0]] = True
    rows = np.unique(np.column_stack([owner, pairs]), axis=0)
    counts = np.bincount(rows[:, 0], minlength=len(distinct))
    more |= counts > item.pairs
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = rows[place < item.pairs]
    arrays = {
        "masks": distinct,
        "count": np.minimum(counts, item.pairs),
        "pairs": kept[:, 1:].copy(),
        "more": more,
    }
    complete = len(distinct) <= item.masks
    return TaskResult({"complete": complete}, arrays if complete else {})
