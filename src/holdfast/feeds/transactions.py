"""How far a step of several topics goes so that it divides no transaction of the source, as the
topic says that has the ends of transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.feeds.contract import Run
from holdfast.model.errors import SourceError
from holdfast.model.records import JsonObject
from holdfast.tasks.topics import Access, Range
from holdfast.tasks.transactions import EndRange, ReachRange, ended, reached


@dataclass(frozen=True)
class Reach:
    """How far a step goes."""

    ends: Mapping[str, Mapping[int, int]]  # offsets, by topic and partition
    next: int  # offset of the topic of transactions
    ended: int  # the place of the last transaction that was taken
    waits: str  # what the first transaction waits for that cannot be taken; empty: there is none


def reach(
    run: Run,
    access: Access,
    told: Range,
    before: int,
    ranges: Sequence[Range],
    applied: Mapping[str, Mapping[str, JsonObject]],
    most: int,
) -> Reach:
    """How far a step goes in some partitions: as many transactions as have so many events, or the
    first one. ``told`` is what the topic of transactions has, and ``before`` the last place that
    was taken of it.

    Rows of a snapshot belong to no transaction. Where any stand before transactions, a step has
    only these."""
    topics = tuple(dict.fromkeys(each.topic for each in ranges))
    ((found,),) = run([(ended, EndRange(access, told, before, topics, most))])
    ends = found.facts["ends"]
    places = (before, *(end["place"] for end in ends))
    of_each = max(1, most // max(1, len(ranges)))
    items = [
        ReachRange(
            access, each, places, applied.get(each.topic, {}).get(str(each.partition), {}), of_each
        )
        for each in ranges
    ]  # fmt: skip
    seen = [result for (result,) in run([(reached, item) for item in items])]
    if any(result.facts["free"] > each.first for each, result in zip(ranges, seen, strict=True)):
        stops = [int(result.facts["free"]) for result in seen]
        return Reach(_by_topic(ranges, stops), told.first, before, "")
    taken, waits = 0, ""
    for number, end in enumerate(ends, 1):
        for topic, count in zip(topics, end["counts"], strict=True):
            of = [r for each, r in zip(ranges, seen, strict=True) if each.topic == topic]
            there = sum(int(result.arrays["numbers"][number - 1]) for result in of)
            if there < count and any(result.facts["past"] < number for result in of):
                lacking = f"{count - there:,} event{'s' * (count - there > 1)}"
                waits = f"transaction {end['id']} waits for {lacking} of {topic!r}"
                break
        if waits:
            break
        taken = number
    stops = [int(result.arrays["ends"][taken]) for result in seen]
    if taken == len(ends):
        return Reach(_by_topic(ranges, stops), found.facts["next"], found.facts["last"], waits)
    return Reach(
        _by_topic(ranges, stops), ends[taken - 1]["next"] if taken else told.first,
        places[taken], waits,
    )  # fmt: skip


def last_place(run: Run, access: Access, told: Range) -> int:
    """The place of the last end in a range."""
    ((found,),) = run([(ended, EndRange(access, told, -1, (), 0))])
    return int(found.facts["last"])


def begun_anew(
    ended: int,
    before: Mapping[str, Mapping[str, JsonObject]],
    applied: Mapping[str, Mapping[str, JsonObject]],
) -> int:
    """The place of the last end after a step. A snapshot before it is of a database whose log began
    anew, so that places count from there."""
    return min((ended, *_snapshots(applied) - _snapshots(before)))


def _snapshots(applied: Mapping[str, Mapping[str, JsonObject]]) -> set[int]:
    forms = [form for of_partitions in applied.values() for form in of_partitions.values()]
    return {int(str(form["snapshot"])) for form in forms if "snapshot" in form}


def expect_one(topic: str, partitions: int) -> None:
    """Raise an error if the ends of transactions have no order."""
    if partitions != 1:
        raise SourceError(
            f"topic {topic!r} has {partitions} partitions, so the transactions that it tells of "
            "have no order; it must have one"
        )


def _by_topic(ranges: Sequence[Range], stops: Sequence[int]) -> dict[str, dict[int, int]]:
    ends: dict[str, dict[int, int]] = {}
    for each, stop in zip(ranges, stops, strict=True):
        ends.setdefault(each.topic, {})[each.partition] = stop
    return ends
