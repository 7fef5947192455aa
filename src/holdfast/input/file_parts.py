"""The files of a source, and their parts that are worth a task each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from holdfast.input.sources import Source, files_in, is_hidden, local_file
from holdfast.model import thresholds
from holdfast.model.errors import SourceError

P = TypeVar("P")

_MOST = 128 << 20
"""Bytes of files that a task reads, at most, if they can be divided."""


def files_of(source: Source) -> list[Path]:
    """The files of a source: itself, those in a folder, or those that match a pattern."""
    path = local_file(source.path).absolute()
    if path.exists():
        return files_in(path)
    return [file for match in _matching(path) for file in files_in(match)]


def _matching(pattern: Path) -> list[Path]:
    """What matches a pattern as Hadoop understands it: with ``*``, ``?``, ``[a-c]``, ``{a,b}``."""
    found: dict[Path, None] = {}
    for plain in _alternatives(str(pattern)):
        top = Path(Path(plain).anchor)
        rest = str(Path(plain).relative_to(top)).replace("**", "*").replace("[^", "[!")
        matches = top.glob(re.sub(r"\\(.)", r"[\1]", rest))
        found |= dict.fromkeys(path for path in matches if not is_hidden(Path(path.name)))
    if not found:
        raise SourceError(f"{pattern}: no file or folder matches")
    return sorted(found)


def _alternatives(pattern: str) -> Iterator[str]:
    """The patterns that one with ``{a,b}`` in it stands for."""
    match = re.search(r"(?<!\\)\{([^{}]*)\}", pattern)
    if match is None:
        yield pattern
        return
    for part in match[1].split(","):
        yield from _alternatives(pattern[: match.start()] + part + pattern[match.end() :])


def part_bytes(total: int, tasks: int) -> int:
    """How many bytes a task reads: no fewer than are worth a task, and of much as many as all tasks
    at once read in equal shares."""
    return max(thresholds.current.joined_bytes, min(_MOST, -(-total // tasks)), 1)


def packed(parts: Iterable[tuple[P, int]], most: int) -> tuple[tuple[P, ...], ...]:
    """Parts with their sizes, one after the other in tasks that have about so many bytes."""
    tasks: list[list[P]] = []
    room = 0
    for part, size in parts:
        if not tasks or size > room:
            tasks.append([])
            room = most
        tasks[-1].append(part)
        room -= size
    return tuple(map(tuple, tasks))
