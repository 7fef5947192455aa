"""A profile follows its source: each change is applied once, whatever happens in between."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import flow
from holdfast.api import Profile
from holdfast.feeds import folder as folders
from holdfast.feeds.followed import read
from holdfast.model.errors import (
    HoldfastError,
    InputError,
    OvertakenError,
    SourceError,
    UnreachableError,
)
from holdfast.model.expectations import Expectation
from holdfast.model.following import FeedFailure, FeedStep
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from tests.feeds.following import feed, follow, follower, profiled, write
from tests.flow.tables import Shop, folder, small_limits
from tests.flow.test_changes import Source
from tests.strategies import Rows, examples

START: Rows = [(1, 10), (2, 20), (3, 30)]


def positions(shop: Shop) -> dict[str, Any]:
    return {name: [*feed.position["files"]] for name, feed in shop.store.read().feeds.items()}


@pytest.mark.law
@pytest.mark.parametrize("keyed", [True, False])
@given(data=st.data())
@settings(max_examples=examples(8), deadline=None)
def test_a_profile_that_follows_equals_its_source(keyed: bool, data: st.DataObject) -> None:
    value = st.one_of(st.none(), st.integers(0, 2))
    keys = st.lists(st.integers(0, 5), max_size=5, unique=keyed)
    source = Source([(key, data.draw(value)) for key in data.draw(keys)], keyed)
    with folder() as path, small_limits():
        shop = Shop(Path(path) / "p", 2, source.rows, Options(kinds=("keys",)))
        place = Path(path) / "in"
        place.mkdir()
        followed = feed(place, *(["c0"] if keyed else []))
        for number in range(data.draw(st.integers(1, 5))):
            for _ in range(data.draw(st.integers(0, 4))):
                source.change(data.draw, value)
            write(place, f"{number}.jsonl", source.changes)
            source.changes.clear()
            if data.draw(st.booleans()):
                assert not follow(shop.store, followed, files=data.draw(st.integers(1, 3))).failed
                shop.assert_exact(source.rows)
        follow(shop.store, followed)
        shop.assert_exact(source.rows)
        assert shop.verify().equal


def test_of_two_followers_one_wins_and_the_other_goes_on(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    for number in range(6):
        write(tmp_path / "in", f"{number}.jsonl", [("insert", (10 + number, 0))])
    followed = feed(tmp_path / "in")
    courses: list[Any] = []
    threads = [
        threading.Thread(target=lambda: courses.append(follow(shop.store, followed, files=1)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [course.failed for course in courses] == [[], []]
    assert sum(course.steps for course in courses) == 6
    shop.assert_exact([*START, *((10 + number, 0) for number in range(6))])


def test_another_feed_under_the_same_name_is_refused(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    for place in ("in", "other"):
        write(tmp_path / place, "a.jsonl", [("insert", (4, 40))])
    follow(shop.store, feed(tmp_path / "in", "c0"))
    for other in (
        feed(tmp_path / "other", "c0"),
        feed(tmp_path / "in", "c0", op_column="op"),
        feed(tmp_path / "in", "c0", op={"insert": "I"}),
    ):
        (failed,) = follow(shop.store, other).failed
        assert "is another one than before" in str(failed.error)
        assert "--reset-position" in str(failed.error)
    course = follow(shop.store, feed(tmp_path / "other", "c0"), reset=True)
    assert course.steps == 1
    shop.assert_exact([*START, (4, 40)])
    # Under its new name it begins at the beginning, too.
    follow(shop.store, feed(tmp_path / "in", "c0", name="another"))
    assert positions(shop) == {"changes": ["a.jsonl"], "another": ["a.jsonl"]}


def test_a_refused_step_stops_its_feed_and_leaves_the_position(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    flow.expect(shop.runner, shop.store, [Expectation("t: key(c0)")], no_progress)
    write(tmp_path / "in", "a.jsonl", [("insert", (4, 40))])
    write(tmp_path / "in", "b.jsonl", [("insert", (4, 41))])
    write(tmp_path / "in", "c.jsonl", [("insert", (5, 50))])
    write(tmp_path / "more", "z.jsonl", [("insert", (9, 90))])
    more, followed = feed(tmp_path / "more", name="more"), feed(tmp_path / "in")
    for steps in (2, 0):  # the next run tries the same range again
        course = follow(shop.store, followed, more, files=1, on_violation="stop")
        (refused,) = course.refused
        assert (course.steps, refused.span, refused.changes.refused) == (steps, "b.jsonl", True)
        assert positions(shop)["changes"] == ["a.jsonl"]
    shop.assert_exact([*START, (4, 40), (9, 90)])
    left = str(tmp_path / "left")
    course = follow(shop.store, followed, files=1, on_violation="quarantine", quarantine=left)
    assert (course.steps, course.refused) == (2, [])
    assert len([*(tmp_path / "left").iterdir()]) == 1
    changes = shop.store.read(5).changes
    assert changes is not None
    assert "changes: b.jsonl" in str(changes)
    shop.assert_exact([*START, (4, 40), (9, 90), (5, 50)])


def test_a_feed_that_does_not_answer_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    write(tmp_path / "in", "a.jsonl", [("insert", (4, 40))])
    errors: list[HoldfastError] = [
        UnreachableError("no answer"), OvertakenError("another was first"),
    ]  # fmt: skip
    files = folders.Folder._files

    def fail(self: Any) -> Any:
        if errors:
            raise errors.pop()
        return files(self)

    monkeypatch.setattr(flow.follow.__globals__["_Wait"], "next", lambda _: 0.0)
    monkeypatch.setitem(flow.follow.__globals__, "_FIRST_WAIT", 0.0)
    monkeypatch.setattr(folders.Folder, "_files", fail)
    assert follow(shop.store, feed(tmp_path / "in")).steps == 1
    errors[:] = [UnreachableError("no answer")] * 50
    (failed,) = follow(shop.store, feed(tmp_path / "in")).failed
    assert str(failed.error) == "no answer"
    errors[:] = [UnreachableError("no answer")] * 2000
    stop = threading.Event()
    told: list[FeedStep | FeedFailure] = []
    flow.follow(follower(shop.store), [feed(tmp_path / "in")], told.append, forever=True,
                stop=_set_when(stop, errors))  # fmt: skip
    assert (told, len(errors)) == ([], 0)
    errors[:] = [SourceError("it is not there")] * 2
    assert follow(shop.store, feed(tmp_path / "in")).failed
    assert len(errors) == 1  # what will not change is not tried again


@pytest.mark.parametrize("keeps", [True, False])
def test_why_a_feed_stopped_is_kept_without_rows(tmp_path: Path, keeps: bool) -> None:
    """An error can name a value."""
    shop = Shop(tmp_path / "p", 2, START, Options(kinds=("keys",), keep_rows=keeps))
    write(tmp_path / "in", "a.jsonl", [("insert", ("secret", 40))])  # type: ignore[list-item]
    (failed,) = follow(shop.store, feed(tmp_path / "in")).failed
    assert "secret" in str(failed.error)
    (status,) = flow.status(shop.store, [feed(tmp_path / "in")], lambda: shop.runner)
    assert status.stopped is not None
    assert ("secret" in status.stopped.error) == keeps
    said = b"".join(path.read_bytes() for path in (tmp_path / "p" / "feeds").iterdir())
    assert (b"secret" in said) == keeps


def test_a_feed_that_does_not_answer_for_long_is_in_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    write(tmp_path / "in", "a.jsonl", [("insert", (4, 40))])
    files = folders.Folder._files
    tries = iter(range(100))
    seen = []

    def fail(self: Any) -> Any:
        seen.append({*shop.store.stops()})
        if next(tries) < 20:
            raise UnreachableError("no answer")
        return files(self)

    monkeypatch.setitem(flow.follow.__globals__, "_FIRST_WAIT", 0.0)
    monkeypatch.setattr(folders.Folder, "_files", fail)
    stop = threading.Event()
    flow.follow(follower(shop.store), [feed(tmp_path / "in")], lambda _: stop.set(), forever=True,
                stop=stop)  # fmt: skip
    assert seen[5:7] == [set(), {"changes"}]
    assert not shop.store.stops()


@pytest.mark.slow
def test_the_directory_of_a_profile_that_follows_is_bounded(tmp_path: Path) -> None:
    assert_bounded(tmp_path, 80)


@pytest.mark.long
def test_the_directory_of_a_profile_that_follows_for_long_is_bounded(tmp_path: Path) -> None:
    assert_bounded(tmp_path, 500)


def assert_bounded(path: Path, steps: int) -> None:
    """A row comes and one goes in each step, and applied files are removed."""
    rows = [(n, n % 7) for n in range(100)]
    store = profiled(path / "p", {"t": {"c0": pa.int64(), "c1": pa.int64()}})
    profile = Profile.open(path / "p", engine="process")
    sizes: list[int] = []

    def told(step: FeedStep | FeedFailure) -> None:
        assert isinstance(step, FeedStep), step
        number = len(sizes)
        (path / "in" / f"{number:04}.jsonl").unlink()
        sizes.append(sum(file.stat().st_size for file in (path / "p").rglob("*") if file.is_file()))
        if number + 1 < steps:
            arrive(number + 1)

    def arrive(number: int) -> None:
        came = rows if not number else [(100 + number, number % 7)]
        went = [(number, number % 7)] if number else []
        changes: list[Any] = [("insert", row) for row in came]
        write(path / "in", f"{number:04}.jsonl", [*changes, *(("delete", row) for row in went)])

    arrive(0)
    with small_limits(differences=8, merged_segments=4):
        course = profile.follow(feed(path / "in", "c0"), keep_versions=10, told=told)
    assert course.steps == steps
    assert store.versions() == [*range(steps - 8, steps + 2)]
    assert max(sizes[steps // 2 :]) <= 1.25 * max(sizes[steps // 4 : steps // 2])
    assert profile.verify().equal


def _set_when(stop: threading.Event, errors: list[HoldfastError]) -> threading.Event:
    """An event that nobody waits for, and that is set once there are no errors left."""
    stop.wait = lambda timeout=None: False  # type: ignore[method-assign]
    stop.is_set = lambda: not errors  # type: ignore[method-assign]
    return stop


def test_following_ends_after_the_step(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    for number in range(3):
        write(tmp_path / "in", f"{number}.jsonl", [("insert", (10 + number, 0))])
    stop = threading.Event()

    def told(step: FeedStep | FeedFailure) -> None:
        assert isinstance(step, FeedStep)
        assert step.behind == ("2 files" if step.span == "0.jsonl" else "1 file")
        if step.span == "1.jsonl":
            stop.set()

    feeds = [feed(tmp_path / "in")]
    course = flow.follow(follower(shop.store, 1), feeds, told, forever=True, stop=stop)
    assert (course.steps, course.rows) == (2, 2)
    assert positions(shop) == {"changes": ["0.jsonl", "1.jsonl"]}


def test_the_feeds_of_a_file(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    write(tmp_path / "in", "a.jsonl", [("update_postimage", (1, 11))])
    (tmp_path / "feeds.yml").write_text(
        "version: 1\nfeeds:\n  one:\n    from: in\n    table: t\n    row_key: [c0]\n"
        "    op_column: _change_type\n    format: json\n"
    )
    feeds = read(tmp_path / "feeds.yml")
    assert follow(shop.store, *feeds).steps == 1
    shop.assert_exact([(1, 11), (2, 20), (3, 30)])
    (status,) = flow.status(shop.store, feeds, lambda: shop.runner)
    assert (status.name, status.table, status.version, status.behind) == ("one", "t", 2, "")
    write(tmp_path / "in", "b.jsonl", [("update_postimage", (1, 12))])
    (status,) = flow.status(shop.store, feeds, lambda: shop.runner)
    assert status.behind == "1 file"
    (status,) = flow.status(shop.store, [], lambda: shop.runner)
    assert status.behind is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: {table: t}", "feed 'a': 'from' is missing"),
        ("a: {from: in, row_keys: [c0]}", "unknown key 'row_keys'"),
        ("a: {from: in, row_key: c0}", "row_key is 'c0', expected a list of columns"),
        ("a: {from: in, tables: {t: }, row_key: [c0]}", "row_key belongs to each table"),
        ("[]", "expected feeds by name"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "feeds.yml").write_text(f"version: 1\nfeeds:\n  {text}\n")
    with pytest.raises(InputError) as error:
        read(tmp_path / "feeds.yml")
    assert told in str(error.value)
