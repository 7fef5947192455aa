"""Bringing rows together by hash: tasks write the rows of their segments sorted by hash, and others
read ranges of hashes from all files.

What is brought together, such as rows that agree on some columns, is a row of numbers here, of
which the first is a hash. So every row is hashed and read once, whatever the number of tasks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from holdfast.kernels.arrays import U64
from holdfast.kernels.numbering import divided
from holdfast.runtime.reads import note
from holdfast.runtime.sealed import unique
from holdfast.tasks.segments import map_passing, write_arrays

HASHES = 1 << 64
"""Hashes are below this."""


def write(root: Path, prefix: str, numbers: U64) -> str:
    """Write rows of numbers ``(n, words)`` sorted by the first; returns the path of the file."""
    order = np.argsort(numbers[:, 0], kind="stable")
    arrays = {f"w{k}": np.ascontiguousarray(column) for k, column in enumerate(numbers[order].T)}
    return write_arrays(root, unique(prefix, "exchange"), arrays)


def write_parts(root: Path, prefix: str, numbers: U64, parts: int) -> str:
    """Write rows of numbers sorted only by the equal range of hashes that they are in: to be read
    in as many parts, or fewer that these make up."""
    cuts = np.array([HASHES * part // parts for part in range(1, parts)], np.uint64)
    arrays = {f"w{k}": column for k, column in enumerate(divided(numbers, cuts))}
    return write_arrays(root, unique(prefix, "exchange"), arrays)


def between(root: Path, files: tuple[str, ...], part: int, parts: int, words: int) -> U64:
    """The rows of one of several equal ranges of hashes."""
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
