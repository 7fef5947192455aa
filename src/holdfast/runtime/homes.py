"""Homes: the machines that calls should run on, because these have the files that they read.

On an object store a file is fetched into the cache of every machine that reads it
(:mod:`holdfast.runtime.cached`). So calls that read most of a file are dealt to one machine, its
home: every file ranks the machines by a hash of both names, and its home is the first that has room
(rendezvous hashing: Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
1998). Nothing has to be remembered for that, neither by a driver nor by the next one, and when a
machine comes or goes most other files stay where they are. A home is a preference: no place gets
more than its share of the calls, and a call that runs elsewhere fetches what it needs.
"""

from __future__ import annotations

import hashlib
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from holdfast.runtime import cached
from holdfast.runtime.runner import Call, is_heavy
from holdfast.runtime.sealed import seal_of

_MOST_PILES = 8
"""Tasks of a place in one job."""


class Dealt(NamedTuple):
    """The numbers of calls: by place in piles, each of which is one task, and heavy ones that may
    run anywhere."""

    places: list[list[list[int]]]
    anywhere: list[int]


def machine() -> str:
    """On a worker: a name for the machine whose cache it uses, the same in every application."""
    return f"{socket.gethostname()}:{cached.folder().resolve()}"


def files_of(calls: Sequence[Call]) -> list[str | None]:
    """The path of the file that each call is best run beside; None where that does not matter. What
    several heavy calls read, as those over ranges of codes do, all machines will need."""
    files = [_file_of(argument) for _, argument in calls]
    heavy = Counter(file for call, file in zip(calls, files, strict=True) if is_heavy(call))
    return [
        None if heavy[file] > 1 and is_heavy(call) else file
        for call, file in zip(calls, files, strict=True)
    ]


def _file_of(argument: Any) -> str | None:
    said = getattr(argument, "home", None)
    file: str | None = said or getattr(getattr(argument, "view", None), "home", None)
    return file


def deal(calls: Sequence[Call], files: Sequence[str | None], machines: Sequence[str]) -> Dealt:
    """Which calls run where, given their files and the machine of every place.

    Heavy calls are a task each, the light ones of a place one task together; of either a place gets
    no more than if they were dealt evenly. Heavy ones without a file go to whoever is free.
    """
    light = [k for k, call in enumerate(calls) if not is_heavy(call)]
    heavy = [k for k, call in enumerate(calls) if is_heavy(call)]
    anywhere = [k for k in heavy if files[k] is None]
    alone = _evenly([k for k in heavy if files[k] is not None], files, machines)
    most = _MOST_PILES - 1
    places = [
        [*([k] for k in calls_there[:most]), *([others] if others else [])]
        for calls_there, others in zip(alone, _evenly(light, files, machines), strict=True)
    ]
    return Dealt(places, [*anywhere, *(k for calls_there in alone for k in calls_there[most:])])


def _evenly(
    numbers: Sequence[int], files: Sequence[str | None], machines: Sequence[str]
) -> list[list[int]]:
    """Which of some calls each place gets.

    The files choose one after the other, the large ones first, which are dear to fetch: as many as
    there are places choose among all places, as many again among all once more, and so on. So small
    files, which come and go with batches, change nothing for larger ones. Further calls with the
    same files follow them as far as there is room, and those without fill up what is left.
    """
    by_machine: dict[str, list[int]] = {}
    for place, name in enumerate(machines):
        by_machine.setdefault(name, []).append(place)
    dealt: list[list[int]] = [[] for _ in machines]
    homes: dict[str | None, list[int]] = {None: [*range(len(machines))]}

    def give(k: int, choices: Iterable[list[int]], most: int) -> None:
        for candidates in choices:
            place = min(candidates, key=lambda place: len(dealt[place]))
            if len(dealt[place]) < most:
                dealt[place].append(k)
                homes.setdefault(files[k], candidates)
                return

    @cache
    def ranked(file: str) -> list[list[int]]:
        return [by_machine[name] for name in sorted(by_machine, key=lambda name: _draw(file, name))]

    first: dict[str, int] = {}
    rest = []
    for k in numbers:
        file = files[k]
        if file is None or file in first:
            rest.append(k)
        else:
            first[file] = k
    for turn, file in enumerate(sorted(first, key=_dearest)):
        give(first[file], ranked(file), turn // len(machines) + 1)
    most = -(-len(numbers) // len(machines))
    for k in sorted(rest, key=lambda k: files[k] is None):
        file = files[k]
        give(k, [homes[file], *(ranked(file) if file else ())], most)
    return dealt


def _dearest(file: str) -> tuple[int, str]:
    """The order in which files choose."""
    seal = seal_of(file)
    return -seal.size if seal else 0, file


def _draw(file: str, name: str) -> bytes:
    """What a file draws for a machine: the lowest is its home."""
    return hashlib.blake2b(f"{name}\n{file}".encode(), digest_size=8).digest()
