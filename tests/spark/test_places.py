"""What is known of places, and when they are used, without a Spark that runs anything."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.spark import places as module
from holdfast.spark.places import Places, places_of


class Frame:
    """What places need of a DataFrame: to Spark equal ones are one when they are persisted."""

    def __init__(self, session: Session, key: tuple[int, ...]) -> None:
        self.session, self.key = session, key

    def persist(self) -> Frame:
        assert self.key not in self.session.kept
        time.sleep(0.001)  # another thread's turn
        self.session.kept.append(self.key)
        return self

    def unpersist(self) -> None:
        time.sleep(0.001)
        self.session.freed += self.key in self.session.kept
        self.session.kept = [each for each in self.session.kept if each != self.key]

    @property
    def storageLevel(self) -> Any:
        time.sleep(0.001)
        return type("Level", (), {"useMemory": self.key in self.session.kept})


class Session:
    """Stands in for a session, and knows what is persisted in it."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, ...]] = []
        self.freed = 0

    def range(self, *key: int) -> Frame:
        return Frame(self, key)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(module, "PAUSE", 3)
    return Session()


def ran(places: Places, *machines: str) -> None:
    """A job has run: its tasks in places say on which machines."""
    places.learn(
        {"first": places.first, "place": place, "machine": machine}
        for place, machine in enumerate(machines)
    )


def used(session: Any, count: int = 2) -> Places:
    places = places_of(session, count)
    assert places is not None
    return places


def test_a_displaced_task(session: Any) -> None:
    """The partition is where it was, so the next job would wait for that machine again: jobs run
    anywhere for a while, and then other partitions are persisted, wherever there is room."""
    places = used(session)
    assert not places.are_known
    ran(places, "a", "b")
    assert places.machines == ("a", "b")
    ran(places, "a", "b")
    assert used(session) is places

    ran(places, "a", "c")
    assert not any(places.machines)
    assert [places_of(session, 2) for _ in range(3)] == [None] * 3
    anew = used(session)
    assert anew.first != places.first
    assert session.freed == len(session.kept) == 1
    ran(places, "a", "b")  # a job that has taken long
    assert not anew.are_known
    ran(anew, "a", "a")
    assert used(session).are_one


def test_a_machine_that_has_come(session: Any) -> None:
    """It has no place: new ones are made at once, as nobody had to wait."""
    places = used(session)
    ran(places, "a", "a")
    places.learn([{"first": places.first, "place": None, "machine": "b"}])
    assert used(session) is not places


def test_an_empty_cache(session: Any) -> None:
    places = used(session)
    session.kept.clear()
    assert used(session) is not places


def test_runners_with_other_numbers_of_tasks(session: Any) -> None:
    two, three = used(session, 2), used(session, 3)
    assert len(three.machines) == 3
    assert (used(session, 2), used(session, 3)) == (two, three)
    ran(two, "a", "b")
    ran(two, "b", "a")
    assert places_of(session, 2) is None
    assert used(session, 3) is three
    assert session.freed == 0
    assert used(Session()) is not two


def test_threads(session: Any) -> None:
    """All jobs of a moment use the same places, which are let go of once."""
    start = threading.Barrier(6)

    def jobs(count: int) -> None:
        start.wait()
        for k in range(30):
            places = places_of(session, count)
            if places:
                ran(places, *("a" if k % 7 else "b" for _ in range(count)))

    with ThreadPoolExecutor(6) as pool:
        for each in [pool.submit(jobs, 2 + k % 2) for k in range(6)]:
            each.result()
    assert len(session.kept) == 2
    assert session.freed > 0


def test_a_session_that_nobody_uses_any_more() -> None:
    session: Any = Session()
    ran(used(session), "a", "b")
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
