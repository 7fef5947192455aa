"""Following feeds: step after step, each a batch that is committed with the position after it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from holdfast.feeds.contract import Bounds, Feed, Position, Step
from holdfast.feeds.followed import Followed
from holdfast.flow.alter import alter
from holdfast.flow.apply import Moved, apply_together
from holdfast.flow.evolve import evolution
from holdfast.input.change_reading import ChangeInput, no_changes
from holdfast.input.change_rows import ChangeRows
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds import registry
from holdfast.model.commits import Commit, FeedRecord, TableRecord
from holdfast.model.errors import (
    BatchError,
    ConflictError,
    HoldfastError,
    InputError,
    OvertakenError,
    SchemaError,
    StoreError,
    UnreachableError,
)
from holdfast.model.following import FeedFailure, FeedRun, FeedStatus, FeedStep, FeedStop
from holdfast.model.progress import Progress
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.table.batch import Batch

log = logging.getLogger("holdfast")

CONTINUE, STOP, QUARANTINE = "continue", "stop", "quarantine"
ON_VIOLATION = (CONTINUE, STOP, QUARANTINE)
"""What a step does that breaks what it should not: it is applied, or the feed stops before it, or
the rows that break a rule are left out."""

_RETRIES = 6
"""How often a feed that cannot be reached is tried again, or a step that others overtake."""

_FIRST_WAIT = 0.5

_ROWS, _FILES = 200_000, 100
"""What a step is assumed to have at most, where nothing was said, when it is to have less."""

AsInput = Callable[[ChangeRows, str, TableRecord], ChangeInput]
"""Change rows of a table as something that can be read."""


AsGiven = Callable[[ChangeRows, str, TableRecord], list[RowInput]]
"""The same with all columns that the rows have, whatever those of the table are."""


@dataclass(frozen=True)
class _Planned:
    """A step that is to be taken, and the version that it begins at."""

    followed: Followed
    feed: Feed
    before: FeedRecord | None
    version: Commit
    step: Step
    started: float


@dataclass(frozen=True)
class Follower:
    """What takes the steps of feeds."""

    runner: Runner
    store: Store
    as_input: AsInput
    progress: Progress
    bounds: Bounds = field(default_factory=Bounds)
    on_violation: str = CONTINUE
    quarantine: str | None = None
    secret: bytes | None = None
    device: str | None = None
    as_given: AsGiven | None = None  # None: the columns of tables do not follow feeds

    def step(self, followed: Followed, reset: bool = False) -> FeedStep | None:
        """Take the next step of a feed; None if there is nothing to take. It begins at the position
        that the profile has, or with ``reset`` at the beginning.

        Where the columns of the table follow the feed, a step that has others is tried again with
        less of the source, so that what came before them is applied before they join."""
        failed: tuple[SchemaError, _Planned] | None = None
        for bounds in _narrower(self.bounds) if self.as_given else (self.bounds,):
            planned = self._planned(followed, reset, bounds)
            if planned is None:
                return None
            if failed is not None and planned.step.position == failed[1].step.position:
                continue
            try:
                return self._taken(planned)
            except SchemaError as error:
                failed = error, planned
        assert failed is not None
        if self.as_given is None or not self._evolved(failed[1]):
            raise failed[0]
        return self.step(followed, reset)

    def _planned(self, followed: Followed, reset: bool, bounds: Bounds) -> _Planned | None:
        started = time.monotonic()
        version = self.store.read()
        feed = followed.opened(version, self.runner.run)
        before = version.feeds.get(followed.name)
        _expect_same(followed, feed, before, reset)
        step = self._read(feed, None if before is None or reset else before.position, bounds)
        return None if step is None else _Planned(followed, feed, before, version, step, started)

    def _taken(self, planned: _Planned) -> FeedStep:
        followed, feed, step = planned.followed, planned.feed, planned.step
        after = FeedRecord(followed.tables[0].table, feed.address, feed.identity, step.position)
        changes = apply_together(
            self.runner,
            self.store,
            self._batches(followed, step, planned.version),
            self.progress,
            device=self.device,
            strict=self.on_violation == STOP,
            quarantine=self.quarantine if self.on_violation == QUARANTINE else None,
            secret=self.secret,
            feeds={followed.name: Moved(planned.before, after, step.span, planned.started)},
        )
        behind = "" if changes.refused else feed.behind(step.position)
        seconds = time.monotonic() - planned.started
        return FeedStep(followed.name, step.span, changes, seconds, behind)

    def _evolved(self, planned: _Planned) -> bool:
        """Change the columns of the tables so that they can take a step; whether anything did."""
        assert self.as_given is not None
        evolved = False
        for table, rows in self._changes(planned.followed, planned.step).items():
            version = self.store.read()
            given = self.as_given(rows, table, version.table(table))
            alteration = evolution(self.runner, self.store, version, table, given, rows.apart)
            if alteration is not None:
                try:
                    alter(self.runner, self.store, table, alteration, self.progress)
                except InputError:
                    if self.store.head() == version.version:
                        raise  # else another follower may have done the same
                evolved = True
        return evolved

    def _read(self, feed: Feed, after: Position | None, bounds: Bounds) -> Step | None:
        """The next step that changes something; the first one of a feed in any case, because its
        position has to be kept."""
        first = after is None
        step = feed.read(after, bounds)
        while step is not None and step.changes is None and not step.others and not first:
            step = feed.read(step.position, bounds)
        return step

    def _changes(self, followed: Followed, step: Step) -> dict[str, ChangeRows]:
        first = followed.tables[0].table
        return {**step.others, **({first: step.changes} if step.changes is not None else {})}

    def _batches(self, followed: Followed, step: Step, version: Commit) -> dict[str, Batch]:
        changes = self._changes(followed, step)
        if not changes:
            first = followed.tables[0].table
            changes = {first: no_changes(Columns.stored(version.table(first).columns))}
        keys = {each.table: each.row_key for each in followed.tables}
        return {
            table: Batch(
                changed=self.as_input(rows, table, version.table(table)),
                row_key=keys[table],
                batch_id=f"{followed.name}: {step.span}",
            )
            for table, rows in changes.items()
        }


def _narrower(bounds: Bounds) -> Iterator[Bounds]:
    """Bounds, then smaller and smaller ones."""
    yield bounds
    rows, files, versions = bounds.rows or _ROWS, bounds.files or _FILES, bounds.versions or _FILES
    while max(rows, files, versions) > 1:
        rows, files, versions = (max(1, each // 8) for each in (rows, files, versions))
        yield Bounds(rows, files, versions)


def _expect_same(followed: Followed, feed: Feed, before: FeedRecord | None, reset: bool) -> None:
    """Raise an error if another feed has the same name."""
    tables = {each.table for each in followed.tables}
    if before is None or reset:
        return
    differing = [
        name
        for name in {**before.identity, **feed.identity}
        if before.identity.get(name) != feed.identity.get(name)
    ]
    if before.table not in tables:
        differing = ["table"]
    if differing:
        was = {**before.identity, "table": before.table}.get(differing[0])
        now = {**feed.identity, "table": followed.tables[0].table}.get(differing[0])
        raise InputError(
            f"the feed {followed.name!r} is another one than before: its {differing[0]} was "
            f"{was!r}, and is {now!r}; give it another --name, or follow it from the beginning "
            "with --reset-position"
        )


def follow(
    follower: Follower,
    feeds: Sequence[Followed],
    told: Callable[[FeedStep | FeedFailure], None],
    *,
    forever: bool = False,
    every: float = 10.0,
    reset: bool = False,
    stop: threading.Event | None = None,
) -> FeedRun:
    """Follow feeds to their heads, in turn, or ``forever``, until ``stop`` is set: then after the
    step. A feed that fails or whose step is refused stops; the others go on."""
    stop = stop or threading.Event()
    course, active, stops = FeedRun(), list(feeds), _Stops.of(follower.store)
    to_reset = {feed.name for feed in feeds} if reset else set()
    tries: dict[str, int] = {}
    wait = _Wait(every)
    while active and not stop.is_set():
        moved = False
        for feed in list(active):
            if stop.is_set():
                break
            try:
                step = follower.step(feed, feed.name in to_reset)
            except HoldfastError as error:
                tries[feed.name] = tries.get(feed.name, 0) + 1
                if _may_try_again(error, tries[feed.name], forever):
                    waits_long = tries[feed.name] == _RETRIES
                    if waits_long:
                        stops.add(feed.name, str(error))
                    level = logging.WARNING if waits_long else logging.INFO
                    log.log(level, "%s: %s (trying again)", feed.name, error)
                    stop.wait(_waited(tries[feed.name], error))
                    moved = True
                else:
                    active.remove(feed)
                    stops.add(feed.name, str(error))
                    course.failed.append(FeedFailure(feed.name, error))
                    told(course.failed[-1])
                continue
            tries.pop(feed.name, None)
            if step is not None and step.refused:
                why = f"would break {registry.broken_in(step.changes)}"
                stops.add(feed.name, f"{step.span} was refused, because it {why}")
            else:
                stops.remove(feed.name)
            if step is None:
                continue
            moved = True
            to_reset.discard(feed.name)
            course.steps += not step.refused
            course.rows += 0 if step.refused else step.rows
            if step.refused:
                active.remove(feed)
                course.refused.append(step)
            told(step)
        if moved:
            wait = _Wait(every)
        elif forever and active:
            stop.wait(wait.next())
        else:
            break
    return course


@dataclass
class _Stops:
    """Why feeds stopped, as the profile keeps it. What cannot be written there is told anyway."""

    store: Store
    keeps_rows: bool
    feeds: set[str]

    @staticmethod
    def of(store: Store) -> _Stops:
        return _Stops(store, store.read().options.keep_rows, {*store.stops()})

    def add(self, feed: str, error: str) -> None:
        """A feed stops. An error may name a value, which a profile without rows does not keep."""
        if not self.keeps_rows:
            error = "the error is not kept, because the profile keeps no rows; follow it again"
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.feeds.add(feed)
        self._write(lambda: self.store.stopped(FeedStop(feed, now, error)))

    def remove(self, feed: str) -> None:
        """A feed goes on."""
        if feed in self.feeds:
            self.feeds.discard(feed)
            self._write(lambda: self.store.goes_on(feed))

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except StoreError as error:
            log.warning("the profile does not say whether a feed stopped: %s", error)


def _may_try_again(error: HoldfastError, tries: int, forever: bool) -> bool:
    """Whether something may succeed if it is tried again, after so many times."""
    if isinstance(error, UnreachableError) and forever:
        return True
    return tries <= _RETRIES and isinstance(error, UnreachableError | ConflictError)


def _waited(tries: int, error: HoldfastError) -> float:
    """Seconds until something is tried again: at once after another follower."""
    if isinstance(error, OvertakenError):
        return 0.0
    return float(min(60.0, _FIRST_WAIT * 2 ** min(tries - 1, 10)))


@dataclass
class _Wait:
    """Longer and longer waits for changes, up to a number of seconds."""

    longest: float
    seconds: float = _FIRST_WAIT

    def next(self) -> float:
        """The seconds of the next one."""
        seconds = min(self.seconds, self.longest)
        self.seconds = min(2 * seconds, self.longest)
        return seconds


def status(store: Store, feeds: Sequence[Followed], run: Callable[[], Runner]) -> list[FeedStatus]:
    """How far a profile follows the feeds that it has, and those that are given."""
    version, stops = store.read(), store.stops()
    given: Mapping[str, Followed] = {feed.name: feed for feed in feeds}
    told = []
    for name in dict.fromkeys((*version.feeds, *given)):
        record, followed = version.feeds.get(name), given.get(name)
        head, behind, error, apart = None, None, None, None
        if followed is not None:
            try:
                feed = followed.opened(version, run().run if followed.debezium else None)
                apart = feed.apart
                head = feed.head()
                behind = feed.behind(record.position if record else None)
            except HoldfastError as failure:
                error = str(failure)
        told.append(
            FeedStatus(
                name,
                record.table if record else followed.tables[0].table if followed else "",
                record.address if record else followed.address if followed else "",
                record.position if record else {},
                record.version if record else 0,
                _moved(store, record) if record else "",
                head,
                behind,
                error,
                record.last if record else None,
                stops.get(name),
                apart,
            )
        )
    return told


def _moved(store: Store, record: FeedRecord) -> str:
    """When a feed moved last; empty if that is not known any more."""
    if record.last is not None:
        return record.last.time
    return store.header(record.version).created if record.version >= store.first() else ""


def expect_violations(on_violation: str, quarantine: str | None) -> None:
    """Raise an error for a choice that makes no sense."""
    if on_violation not in ON_VIOLATION:
        raise InputError(
            f"what to do about violations is {on_violation!r}; expected {', '.join(ON_VIOLATION)}"
        )
    if (on_violation == QUARANTINE) != (quarantine is not None):
        raise BatchError("--on-violation quarantine and --quarantine FOLDER belong together")
