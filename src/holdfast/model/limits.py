"""Limits of a search: how long it may take, and how long the sets are that it looks for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

clock: Callable[[], float] = time.monotonic
"""What time is measured by."""


class OutOfTime(Exception):
    """Something did not end in its time."""


@dataclass(frozen=True)
class Time:
    """The time until an end, by this machine's clock; without an end as long as it takes."""

    end: float | None = None

    @staticmethod
    def of(seconds: float | None) -> Time:
        """So many seconds from now."""
        return Time(None if seconds is None else clock() + seconds)

    def first(self, share: float) -> Time:
        """The first part of what is left."""
        if self.end is None:
            return self
        now = clock()
        return Time(now + share * max(0.0, self.end - now))

    @property
    def left(self) -> float:
        """The seconds that are left, of which there may be less than none."""
        return float("inf") if self.end is None else self.end - clock()

    @property
    def is_over(self) -> bool:
        """Whether none is left."""
        return self.left <= 0

    def look(self, _new: int = 0) -> None:
        """Raise :class:`OutOfTime` once none is left; also where something new is reported."""
        if self.is_over:
            raise OutOfTime


@dataclass(frozen=True)
class Limits:
    """The most columns of a key, and of an lhs; None: however many it takes.

    >>> Limits(3, 2).deeper(Limits(5, 2))
    Limits(keys=4, dependencies=2)
    """

    keys: int | None = None
    dependencies: int | None = None

    @staticmethod
    def both(most: int | None) -> Limits:
        """The same for keys and dependencies."""
        return Limits(most, most)

    def deeper(self, wanted: Limits) -> Limits:
        """One column more, but none beyond what is wanted."""
        return self._with(wanted, _deeper)

    def within(self, other: Limits) -> Limits:
        """The lower of both."""
        return self._with(other, _lower)

    def by_kind(self) -> dict[str, int | None]:
        """By the names that JSON has for what they limit."""
        return {"keys": self.keys, "functional_dependencies": self.dependencies}

    def _with(
        self, other: Limits, choose: Callable[[int | None, int | None], int | None]
    ) -> Limits:
        return Limits(choose(self.keys, other.keys), choose(self.dependencies, other.dependencies))


def _lower(one: int | None, two: int | None) -> int | None:
    given = [limit for limit in (one, two) if limit is not None]
    return min(given, default=None)


def _deeper(now: int | None, wanted: int | None) -> int | None:
    return None if now is None else _lower(now + 1, wanted)
