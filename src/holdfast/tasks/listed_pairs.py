"""Lists of pairs of rows that agree in a subkey: searches write what they find, one task merges.

A list has a row for every pair. The agree-set of a pair that met too many others with the same one
is ``full``: some pairs with it are in no list.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.evidence import Findings
from holdfast.runtime.reads import note
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks.segments import map_passing, write_arrays

_AT_ONCE = 16
"""Lists that are fetched at once."""

_HELD = 1 << 20
"""Pairs of several lists that are held before these are merged."""


@dataclass(frozen=True)
class MergeLists:
    """Lists to be merged: of the pairs that agree in one of some sets, so many of a mask at most,
    and so many masks."""

    root: str
    files: tuple[str, ...]
    sets: U64
    pairs: int
    masks: int


def places(counts: I64) -> I64:
    """The place of each thing among those of its owner, where owners have so many one after the
    other.

    >>> places(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def write(root: Path, path: str, findings: Findings) -> str:
    """A list of the wanted pairs that a search has found; the path that it has in the end."""
    wanted = np.flatnonzero(findings.wanted[: findings.state[0]])
    seen, most = findings.seen[wanted], findings.witnesses.shape[1]
    owner = np.repeat(np.arange(len(wanted)), seen)
    place = places(seen)
    masks, pairs = findings.masks[wanted], findings.witnesses[wanted][owner, place]
    words = {f"mask{w}": masks[owner, w] for w in range(masks.shape[1])}
    full = (seen == most).astype(np.int8)[owner]
    return write_arrays(root, path, {**words, "one": pairs[:, 0], "two": pairs[:, 1], "full": full})


def merge(item: MergeLists) -> Iterator[TaskResult]:
    """Every mask once, with its pairs, and whether there may be more; some lists at a time, so that
    not much more is held than is kept."""
    parts = [nothing := Merged.none(item.sets.shape[1])]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for start in range(0, len(item.files), _AT_ONCE):
            look()
            files = item.files[start : start + _AT_ONCE]
            parts += pool.map(lambda file: _read(item, file), files)
            note(sum(part.masks.nbytes + part.pairs.nbytes for part in parts[-len(files) :]))
            if sum(len(part.pairs) for part in parts[1:]) > _HELD:
                parts = [Merged.of(parts, item.pairs)]
            if len(parts[0].masks) > item.masks:
                break
    merged = Merged.of(parts, item.pairs)
    complete = len(merged.masks) <= item.masks
    yield TaskResult({"complete": complete}, (merged if complete else nothing)._asdict())


def _read(item: MergeLists, file: str) -> Merged:
    """What one list says of the sets."""
    arrays = map_passing(Path(item.root) / file)
    masks = np.stack([arrays[f"mask{w}"] for w in range(item.sets.shape[1])], axis=1)
    near = bitsets.any_subset(masks, item.sets)
    pairs = np.stack([arrays["one"], arrays["two"]], axis=1)[near]
    return Merged(masks[near], np.ones(len(pairs), np.int64), pairs, arrays["full"][near] != 0)


class Merged(NamedTuple):
    """Masks with their pairs, as ``evidence.agreement.listed_pairs.ListedPairs`` has them."""

    masks: U64
    counts: I64
    pairs: I64
    more: NDArray[np.bool_]

    @staticmethod
    def none(words: int) -> Merged:
        """Of no list."""
        counts = np.empty(0, np.int64)
        masks = np.empty((0, words), np.uint64)
        return Merged(masks, counts, counts.reshape(0, 2), np.empty(0, np.bool_))

    @staticmethod
    def of(parts: list[Merged], most: int) -> Merged:
        """All parts, with every mask once, and so many distinct pairs of it."""
        masks, counts, pairs, full = (np.concatenate(blocks) for blocks in zip(*parts, strict=True))
        distinct = bitsets.distinct(masks)
        owner = bitsets.find(masks, distinct)
        more = np.zeros(len(distinct), np.bool_)
        more[owner[full]] = True
        rows = np.column_stack([np.repeat(owner, counts), pairs])
        rows = rows[np.lexsort(rows.T[::-1])]
        rows = rows[bitsets.begins_run(rows)]
        counts = np.bincount(rows[:, 0], minlength=len(distinct))
        first_pairs = rows[places(counts) < most, 1:].copy()
        return Merged(distinct, np.minimum(counts, most), first_pairs, more | (counts > most))
