"""Places: partitions that lie on executors, so that Spark runs what is done with them there.

A DataFrame cannot say where its tasks should run. But where a partition of a persisted one lies,
there Spark prefers to run what is made of it; after some seconds (``spark.locality.wait``) it runs
elsewhere rather than not at all. So a number for each task that runs at once is persisted, by
whatever job comes first, and tasks tell on which machine they ran. What was on an executor that is
lost, Spark makes anew on another one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_used: dict[int, tuple[SparkSession, list[Places]]] = {}
"""By session, the places that were made last. They stay until it ends: a few bytes on each
executor."""


class Places:
    """As many places as tasks run at once, and the machines that they are on, as far as known."""

    def __init__(self, session: SparkSession, count: int) -> None:
        self._session = session
        # Numbers that nobody else has: to Spark equal DataFrames are one when they are persisted.
        self.first = secrets.randbits(50)
        self._frame = session.range(self.first, self.first + count, 1, count).persist()
        self.machines = [""] * count
        self._is_short = False

    @property
    def are_known(self) -> bool:
        """Whether it is known where all of them are."""
        return all(self.machines)

    @property
    def are_one(self) -> bool:
        """Whether all are on one machine, so that it does not matter which of them is used."""
        return self.are_known and len({*self.machines}) == 1

    def rows(self, times: int = 1, more: int = 0) -> DataFrame:
        """A row in a partition of its own for every place, so many times, and for so many tasks
        more that Spark may run anywhere: the numbers from 0 on, in this order."""
        count = len(self.machines)
        frames = [
            self._frame.selectExpr(f"id - {self.first - count * k} as id") for k in range(times)
        ]
        if more:
            last = count * times + more
            frames.append(self._session.range(last - more, last, 1, more))
        return reduce(lambda one, two: one.unionAll(two), frames)

    def learn(self, answers: Iterable[dict[str, Any]]) -> None:
        """What the tasks of a job say: on which machine they ran, and in which of these places, if
        in one."""
        ran = [each for each in answers if each["first"] == self.first]
        for each in ran:
            if each["place"] is not None:
                self.machines[each["place"]] = each["machine"]
        seen = {*self.machines, *(each["machine"] for each in ran)}
        # A machine has come, or has come back, and has none.
        self._is_short = self.are_known and len({*self.machines}) < len(seen) <= len(self.machines)

    def serve(self, count: int) -> bool:
        """Whether these will do for so many tasks at once: they are spread over all machines that
        were seen, and nobody has emptied Spark's cache."""
        is_kept = self._frame.storageLevel.useMemory
        return len(self.machines) == count and is_kept and not self._is_short

    def let_go(self) -> None:
        """Free what executors hold of them."""
        self._frame.unpersist()


def may_place(session: SparkSession) -> bool:
    """Whether executors stay. With dynamic allocation they come and go with the number of tasks:
    what is persisted on one would keep it, and keep tasks from those that have just come."""
    return session.conf.get("spark.dynamicAllocation.enabled", None) != "true"


def places_of(session: SparkSession, count: int) -> Places:
    """The places of a session, for so many tasks at once; nothing runs before a job uses them."""
    _, made = _used.setdefault(id(session), (session, []))
    if made and not made[0].serve(count):
        made.pop().let_go()
    if not made:
        made.append(Places(session, count))
    return made[0]
