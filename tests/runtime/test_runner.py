"""Which calls share a task: light ones do, heavy ones never."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, piles
from tests.limits import varied


@dataclass(frozen=True)
class Item:
    """An argument that says how much there is to do."""

    work: int


def nothing(_: object) -> Iterator[TaskResult]:
    yield TaskResult({})


@given(
    rows=st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=30),
    tasks=st.integers(1, 8),
)
def test_every_call_is_in_one_pile(rows: list[int | None], tasks: int) -> None:
    calls: list[Call] = [(nothing, None if each is None else Item(each)) for each in rows]
    with pytest.MonkeyPatch.context() as patch:
        varied(patch, light_rows=10)
        dealt = piles(calls, tasks)
    assert sorted(chain.from_iterable(dealt)) == list(range(len(calls)))
    heavy = {k for k, each in enumerate(rows) if each is not None and each > 10}
    assert all(len(pile) == 1 for pile in dealt if heavy & {*pile})
    assert len(dealt) == len(heavy) + min(tasks, len(rows) - len(heavy))
    light = [len(pile) for pile in dealt if not heavy & {*pile}]
    assert not light or max(light) - min(light) <= 1
