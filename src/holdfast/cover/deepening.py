"""How far a search goes in the time that there is.

In the first half of its time a search goes for everything. If that is not enough it goes on from
sets of one column, by one column more at a time, and what it ends with is complete up to a number
of columns. Single columns are always looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from holdfast.cover.candidates import ByRhs
from holdfast.cover.dependencies import KEY, Covers
from holdfast.kernels import bitsets
from holdfast.kernels.bitsets import Tick
from holdfast.kernels.cover import MOST, TooMany
from holdfast.model import limits as model
from holdfast.model.limits import Limits, OutOfTime, Time

_HALF = 0.5

WITNESSED, COUNTED = 20_000, 200_000
"""Sets that a search may find for every second that is left: candidates are still to be validated,
and what was counted is to be stored."""

_SHORTEST = Limits(1, 1)


class Deepening:
    """The search of one table's covers in some time; ``wanted`` is how far it would go with more.

    It goes through three stages: everything; one column more at a time; and no further, when it
    only ends what it has begun.
    """

    def __init__(self, wanted: Limits, time: Time, sets_per_second: int) -> None:
        self.wanted = wanted
        self._sets_per_second = sets_per_second
        self._stages = [time] if time.end is None else [time.first(_HALF), time, Time()]
        self._reached = _SHORTEST.within(wanted)  # known to be possible in any time
        self._began = model.clock()

    @property
    def time(self) -> Time:
        """The time that there is for what is begun now."""
        return self._stages[0]

    @property
    def bounded(self) -> bool:
        """Whether the time can end."""
        return self._stages[0].end is not None

    @property
    def late(self) -> bool:
        """Whether no further round is to be begun."""
        return self.time.is_over

    def attempt(self, limits: Limits, change: Callable[[Limits, Tick], Covers]) -> Covers:
        """What a change makes of covers with these limits, or with lower ones if it takes too
        long."""
        while True:
            try:
                return change(limits, self._tick())
            except (OutOfTime, TooMany):
                if len(self._stages) == 1:
                    raise
                self._next_stage()
                limits = limits.within(self._reached)

    def retreat(self, covers: Covers, todo: ByRhs) -> Covers:
        """When it is late: the covers without the lengths of which some sets may not hold.

        What is minimal as far as is known and shorter than all of ``todo`` holds. Whatever else is
        so short and holds would contain one of those.
        """
        self._next_stage()
        keys = todo.get(KEY, bitsets.empty(covers.atoms))
        lhs = [masks for rhs, masks in todo.items() if rhs != KEY]
        limits = Limits(_below([keys]), _below(lhs)).within(covers.limits)
        self._reached = limits
        return covers.to(limits)

    def deeper(self, covers: Covers) -> Covers | None:
        """One column further than covers of which all is known to hold; None: that is all that was
        wanted, or that there is time for."""
        if len(self._stages) != 2 or covers.reach(self.wanted):
            return None
        self._reached = covers.limits
        time = self._stages[0]
        # The next depth is rarely the quicker one.
        began, self._began = self._began, model.clock()
        if time.left <= self._began - began:
            self._next_stage()
            return None
        both = covers.limits.deeper(self.wanted)
        # Dependencies are many more: where they end, keys may still go on.
        keys = replace(both, dependencies=covers.limits.dependencies)
        for limits in (both, keys):
            if covers.reach(limits):
                continue
            try:
                further = covers.to(limits, self._tick())
            except (OutOfTime, TooMany):
                self.wanted = replace(self.wanted, dependencies=keys.dependencies)
                continue
            return further.if_whole(self.wanted)
        self._next_stage()
        return None

    def _next_stage(self) -> None:
        del self._stages[0]
        self._began = model.clock()

    def _tick(self) -> Tick:
        stage = self._stages[0]
        if stage.end is None:
            return _unbounded
        room = min(MOST, int(stage.left * self._sets_per_second))

        def tick(new_sets: int) -> None:
            nonlocal room
            room -= new_sets
            if room < 0:
                raise OutOfTime
            stage.look()

        return tick


def _unbounded(_new_sets: int) -> None:
    """As long as it takes."""


def _below(lhs: Iterable[bitsets.Masks]) -> int | None:
    """The length that all of these are longer than, but at least one column."""
    sizes = [int(bitsets.popcount(masks).min()) for masks in lhs if len(masks)]
    return max(1, min(sizes) - 1) if sizes else None
