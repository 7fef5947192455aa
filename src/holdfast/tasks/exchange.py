"""Rows that meet by their codes: tasks write those of their segments in order, others read ranges.

What has to be brought together, such as rows that agree on some columns, is a row of numbers here,
the first of which is a hash. A task writes a file with those of its share of the segments, sorted
by that hash; another takes one range of hashes from all files. So every row is hashed once and read
once, whatever the number of tasks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from holdfast.kernels.arrays import U64
from holdfast.runtime.reads import note
from holdfast.runtime.sealed import unique
from holdfast.tasks.segments import map_passing, write_arrays

HASHES = 1 << 64
"""Hashes are below this."""


def write(root: Path, prefix: str, numbers: U64) -> str:
    """Write rows of numbers ``(n, words)`` by the first of them; the path of the file."""
    order = np.argsort(numbers[:, 0], kind="stable")
    arrays = {f"w{k}": np.ascontiguousarray(column) for k, column in enumerate(numbers[order].T)}
    return write_arrays(root, unique(prefix, "exchange"), arrays)


def between(root: Path, files: tuple[str, ...], part: int, parts: int, words: int) -> U64:
    """The rows, of so many words, of one of several ranges of hashes, which are equally wide."""
    low, high = (np.uint64(HASHES * k // parts) for k in (part, min(part + 1, parts - 1)))
    blocks = [np.empty((0, words), np.uint64)]
    for file in files:
        arrays = map_passing(root / file)
        hashes = arrays["w0"]
        lo = int(np.searchsorted(hashes, low))
        hi = len(hashes) if part + 1 == parts else int(np.searchsorted(hashes, high))
        block = np.stack([arrays[f"w{k}"][lo:hi] for k in range(words)], axis=1)
        note(block.nbytes)
        blocks.append(block)
    return np.concatenate(blocks)
