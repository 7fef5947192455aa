"""Which machine a call runs on: always the same for a file, and never more than is even."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.commits import Segment, ValueRun
from holdfast.runtime.homes import deal, files_of, machine
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call
from holdfast.tasks import agree, rows, values
from holdfast.tasks.coding import Coding
from holdfast.tasks.view import View
from tests.limits import varied


@dataclass(frozen=True)
class Item:
    """An argument that says how much there is to do, and beside which file."""

    work: int
    home: str | None


ROOT = "s3://lake/shop/"


def nothing(_: object) -> Iterator[TaskResult]:
    yield TaskResult({})


def file(number: int, size: int) -> str:
    return f"{ROOT}data/words-{number:012x}-{size}-0123abcd.arrow"


def call(work: int, home: str | None) -> Call:
    return nothing, Item(work, home)


def homes(calls: list[Call], machines: list[str]) -> dict[str, str]:
    """The machine of every file that one call has."""
    dealt = deal(calls, files_of(calls), machines)
    return {
        calls[k][1].home: machines[place]
        for place, piles in enumerate(dealt.places)
        for k in chain.from_iterable(piles)
    }


@given(
    items=st.lists(
        st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(0, 9))), max_size=40
    ),
    machines=st.lists(st.sampled_from("abcde"), min_size=1, max_size=7),
)
def test_every_call_runs_once_and_no_place_has_too_much(
    items: list[tuple[int, int | None]], machines: list[str]
) -> None:
    calls = [call(work, None if f is None else file(f, 100 + f)) for work, f in items]
    with pytest.MonkeyPatch.context() as patch:
        varied(patch, light_rows=10)
        files = files_of(calls)
        dealt = deal(calls, files, machines)
    heavy = {k for k, (work, _) in enumerate(items) if work > 10}
    everything = [k for piles in dealt.places for pile in piles for k in pile]
    assert sorted([*everything, *dealt.anywhere]) == list(range(len(calls)))
    assert {*dealt.anywhere} >= {k for k in heavy if files[k] is None}
    assert heavy >= {*dealt.anywhere}
    homed, light = len([k for k in heavy if files[k]]), len(calls) - len(heavy)
    for piles in dealt.places:
        alone = [pile for pile in piles if heavy & {*pile}]
        assert all(len(pile) == 1 for pile in alone)
        assert len(alone) <= -(-homed // len(machines))
        assert len(piles) - len(alone) <= 1
        assert sum(map(len, piles)) - len(alone) <= -(-light // len(machines))


@given(seed=st.integers(0, 1 << 30), machines=st.integers(2, 6), slots=st.integers(1, 3))
def test_a_file_keeps_its_home_whatever_small_ones_come(
    seed: int, machines: int, slots: int
) -> None:
    """And in whatever order calls are made, and places found."""
    draw = Random(seed)
    names = [f"machine-{draw.random()}" for _ in range(machines)]
    places = names * slots
    calls = [call(0, file(draw.getrandbits(40), 1000 + k)) for k in range(draw.randint(1, 20))]
    before = homes(calls, places)
    more = [call(0, file(draw.getrandbits(40), 10)) for _ in range(draw.randint(0, 9))]
    again = [*more, *calls, *(call(0, None) for _ in range(3))]
    draw.shuffle(again)
    draw.shuffle(places)
    after = homes([each for each in again if each[1].home], places)
    assert before.items() <= after.items()


def test_few_files_move_when_a_machine_comes_or_goes() -> None:
    """On average less than half of those of other machines do: dealt in turn, nearly all would."""
    moved = in_turn = stayed = 0
    for seed in range(40):
        draw = Random(seed)
        machines = [f"machine-{draw.random()}" for _ in range(8)]
        calls = [call(0, file(draw.getrandbits(40), draw.randint(100, 900))) for _ in range(32)]
        before, after = homes(calls, machines), homes(calls, machines[:-1])
        kept = {each: name for each, name in before.items() if name != machines[-1]}
        moved += sum(after[each] != name for each, name in kept.items())
        in_turn += sum(k % 8 != k % 7 for k in range(32) if k % 8 < 7)
        stayed += len(kept)
    assert moved < 0.5 * stayed
    assert in_turn > 0.7 * stayed


def test_calls_with_one_file_run_on_one_machine_as_long_as_that_is_even() -> None:
    one, two = file(1, 500), file(2, 400)
    calls = [call(0, one), call(0, two), call(0, one), call(0, two)]
    with_slots = homes(calls, ["a", "a", "b", "b"])
    assert {*with_slots} == {one, two}
    dealt = deal(calls, files_of(calls), ["a", "b"]).places
    assert sorted(map(sorted, chain.from_iterable(dealt))) == [[0, 2], [1, 3]]


def test_what_several_heavy_calls_read_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    varied(monkeypatch, light_rows=10)
    whole, part = file(1, 500), file(2, 400)
    calls = [call(99, whole), call(99, whole), call(99, part), call(0, whole)]
    assert files_of(calls) == [None, None, part, whole]
    dealt = deal(calls, files_of(calls), ["a", "b"])
    assert dealt.anywhere == [0, 1]


def test_arguments_say_beside_which_file_they_are_best_run() -> None:
    segments = [
        Segment(number, rows=count, live=count, words=f"data/words-{number}", raw=None)
        for number, count in enumerate([10, 40, 20])
    ]
    view = View("s3://lake/shop", tuple(segments), (1,), True)
    assert view.home == "s3://lake/shop/data/words-1"
    assert replace(view, segments=()).home is None
    duplicates = rows.Duplicates(view, None, None)
    assert files_of([(nothing, duplicates), (nothing, None)]) == [view.home, None]
    lengths = zip(segments, (9, 3, 7), strict=True)
    stretches = tuple(agree.RowStretch(each, None, 0, stop) for each, stop in lengths)
    none = replace(view, segments=())
    coding = Coding((), (), ())
    counted = agree.Count(none, (), coding, False, sides=(stretches[:2], stretches[2:]))
    assert files_of([(nothing, counted)]) == ["s3://lake/shop/data/words-0"]
    runs = (
        ValueRun((file(1, 90)[len(ROOT) :], file(2, 10)[len(ROOT) :]), 9),
        ValueRun((file(3, 20)[len(ROOT) :],), 2),
    )
    moved = [
        values.MergeRuns("s3://lake/shop", values.cut(k, 2), values.cut(k + 1, 2), runs, "x", True)
        for k in range(2)
    ]
    assert [each.home for each in moved] == [file(1, 90), file(3, 20)]


def test_a_machine_is_where_its_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "disk")
    names: Counter[str] = Counter()
    for folder in ("disk/cache", "here/cache", "other"):
        monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / folder))
        names[machine()] += 1
    assert sorted(names.values()) == [1, 2]
