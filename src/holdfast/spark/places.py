"""Places: partitions that lie on executors, so that Spark runs what is done with them there.

A DataFrame cannot say where its tasks should run. But where a partition of a persisted one lies,
there Spark prefers to run what is made of it; after some seconds (``spark.locality.wait``) it runs
elsewhere rather than not at all. So a number for each task that runs at once is persisted, by
whatever job comes first, and tasks tell on which machine they ran.

A task that runs elsewhere than its partition was made has been displaced: the executor is lost, or
is busy with somebody else's work, and the next job would wait for it again. So the next jobs leave
it to Spark where they run, and then other partitions are persisted, wherever there is room.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from functools import reduce
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

PAUSE = 64
"""Jobs that run anywhere after one that had to wait for a place: where executors are often busy the
few seconds of that are little for each of so many."""

_used: WeakKeyDictionary[SparkSession, dict[int, Places]] = WeakKeyDictionary()
"""By session and number, the places that were made last. They stay until it ends: a few bytes on
each executor. (They must not refer to the session, which would keep itself.)"""

_lock = threading.Lock()
"""Several threads may run jobs in a session."""


class Places:
    """As many places as tasks run at once, and the machines that they are on, as far as known."""

    def __init__(self, count: int) -> None:
        # Numbers that nobody else has: to Spark equal DataFrames are one when they are persisted.
        self.first = secrets.randbits(50)
        self.machines = ("",) * count
        self._is_over = False
        self._pause = 0

    @property
    def are_known(self) -> bool:
        """Whether it is known where all of them are."""
        return all(self.machines)

    @property
    def are_one(self) -> bool:
        """Whether all are on one machine, so that it does not matter which of them is used."""
        return self.are_known and len({*self.machines}) == 1

    def _frame(self, session: SparkSession) -> DataFrame:
        count = len(self.machines)
        return session.range(self.first, self.first + count, 1, count)

    def rows(self, session: SparkSession, times: int = 1, more: int = 0) -> DataFrame:
        """A row in a partition of its own for every place, so many times, and for so many tasks
        more that Spark may run anywhere: the numbers from 0 on, in this order."""
        count = len(self.machines)
        frame = self._frame(session)
        frames = [frame.selectExpr(f"id - {self.first - count * k} as id") for k in range(times)]
        if more:
            last = count * times + more
            frames.append(session.range(last - more, last, 1, more))
        return reduce(lambda one, two: one.unionAll(two), frames)

    def learn(self, answers: Iterable[dict[str, Any]]) -> None:
        """What the tasks of a job say: on which machine they ran, and in which of these places, if
        in one."""
        ran = [answer for answer in answers if answer["first"] == self.first]
        placed = [
            (answer["place"], answer["machine"]) for answer in ran if answer["place"] is not None
        ]
        with _lock:
            if self._is_over:
                return
            machines = [*self.machines]
            for place, name in placed:
                machines[place] = machines[place] or name
            if any(machines[place] != name for place, name in placed):
                self.machines = ("",) * len(machines)
                self._is_over, self._pause = True, PAUSE
                return
            self.machines = (*machines,)
            seen = {*machines, *(answer["machine"] for answer in ran)}
            # A machine has come, or has come back, and has none.
            self._is_over = self.are_known and len({*machines}) < len(seen) <= len(machines)

    def pauses(self) -> bool:
        """Whether the job that comes should run anywhere."""
        is_paused = self._pause > 0
        self._pause -= is_paused
        return is_paused

    def serve(self, session: SparkSession) -> bool:
        """Whether these will do: no task was displaced, they are spread over all machines that were
        seen, and nobody has emptied Spark's cache."""
        return not self._is_over and self._frame(session).storageLevel.useMemory

    def keep(self, session: SparkSession) -> None:
        """Have Spark persist them when they are used."""
        self._frame(session).persist()

    def let_go(self, session: SparkSession) -> None:
        """Free what executors hold of them."""
        self._frame(session).unpersist()


def may_place(session: SparkSession) -> bool:
    """Whether executors stay. With dynamic allocation they come and go with the number of tasks:
    what is persisted on one would keep it, and keep tasks from those that have just come."""
    return session.conf.get("spark.dynamicAllocation.enabled", None) != "true"


def places_of(session: SparkSession, count: int) -> Places | None:
    """The places for the next job of a session, for so many tasks at once; None if it should run
    anywhere. Nothing runs before a job uses them."""
    with _lock:
        by_count = _used.setdefault(session, {})
        places = by_count.get(count)
        if places and places.pauses():
            return None
        if places and not places.serve(session):
            by_count.pop(count).let_go(session)
        if count not in by_count:
            by_count[count] = Places(count)
            by_count[count].keep(session)
        return by_count[count]
