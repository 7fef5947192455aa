"""Near rules under batches: what is kept is what the rows say, whatever comes and goes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.kernels.tuples import side_sums
from holdfast.model.changes import Changes
from holdfast.model.errors import InputError
from holdfast.model.grammar import parse
from holdfast.model.near import NearList, NearRule
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.rules import near_kept
from holdfast.tasks import tuples as tasks
from tests import oracle
from tests.flow.tables import folder, small_limits
from tests.flow.test_law import law
from tests.limits import varied
from tests.rules.test_expectations import COLUMNS, LIMITS, Tables
from tests.strategies import Rows


def options(**given: Any) -> Options:
    """Options under which dirty tables of a few rows have near rules."""
    bounds: Any = {"near_strength": 0.3, "near_removal": 0.3, "near_key_removal": 0.3}
    return Options(kinds=("keys", "fds"), near_columns=1, **bounds, **given)


def near_list(kept: Tables, table: str = "t") -> NearList:
    near = kept.store.read().table(table).near
    assert near is not None
    return near


def places(near: NearRule) -> tuple[tuple[int, ...], int | None]:
    rhs = None if near.rhs is None else int(near.rhs[1:])
    return tuple(int(name[1:]) for name in near.lhs), rhs


def wanted(near: NearRule, rows: Rows, nulls: str) -> tuple[Any, ...]:
    """What the oracle says of a rule."""
    lhs, rhs = places(near)
    removal, strength = oracle.nearness(rows, lhs, rhs, nulls)
    if rhs is not None:
        return removal, strength, None, None
    groups = Counter(oracle.groups(rows, lhs, nulls))
    several = [number for number in groups.values() if number > 1]
    return removal, None, len(several), sum(several)


def assert_kept(kept: Tables) -> None:
    for near in near_list(kept).rules:
        now = near.removal, near.strength, near.values, near.rows
        assert now == wanted(near, kept.rows["t"], kept.options.nulls), near
        assert near.of_rows == len(kept.rows["t"])


@st.composite
def dirty(draw: st.DrawFn, least: int = 30) -> Rows:
    """Rows in which c1 follows from c0, and c2 is unique, but for a few cells. c0 repeats often, or
    hardly."""
    random = Random(draw(st.integers(0, 1 << 30)))
    size = draw(st.integers(least, least + 30))
    values_ = draw(st.sampled_from([2, 6, 20]))
    wrong = draw(st.sampled_from([0, 0.05, 0.15]))
    rows: Rows = []
    for number in range(size):
        row: list[int | None] = [random.randrange(values_), 0, number]
        row[1] = ((row[0] or 0) * 7 + 1) % 5
        for place in range(COLUMNS):
            if random.random() < wrong:
                row[place] = random.choice([None, random.randrange(9)])
        rows.append(tuple(row))
    return rows


@law(20)
@given(
    data=st.data(),
    nulls=st.sampled_from(["equal", "unequal"]),
    limits=LIMITS,
    looked_up=st.sampled_from([4_096, 8]),
    tasks=st.integers(1, 3),
)
def test_kept_near_rules_are_those_of_the_rows(
    data: st.DataObject, nulls: str, limits: dict[str, Any], looked_up: int, tasks: int
) -> None:
    rows = data.draw(dirty())
    with folder() as path, small_limits(**limits, lookup_rows=looked_up):
        kept = Tables(Path(path) / "p", {"t": rows}, options(nulls=nulls), tasks)
        assert_kept(kept)
        for _ in range(data.draw(st.integers(1, 4))):
            before = {str(each.rule): each for each in near_list(kept).rules}
            gone = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True, max_size=12))
            came = data.draw(dirty(3))[: data.draw(st.integers(0, 12))]
            if data.draw(st.booleans()):
                came += [(row[0], row[1], row[2]) for row in rows[:2]]
            after = [row for at, row in enumerate(rows) if at not in gone] + came
            changes = kept.apply("t", after, inserts=came, deletes=[rows[at] for at in gone])
            rows = after
            assert_kept(kept)
            assert_told(changes, before, near_list(kept))
        assert flow.verify(kept.runner, kept.store, no_progress).equal


def assert_told(changes: Changes, before: dict[str, NearRule], near: NearList) -> None:
    """A batch tells of every listed rule that other numbers of rows break."""
    after = {str(each.rule): each for each in near.rules}
    told = {each.rule: (each.before, each.after) for each in changes.near}
    for rule in {*before, *after}:
        old, new = before.get(rule), after.get(rule)
        if old is None or new is None or old.removal != new.removal:
            assert told.pop(rule) == (old, new)
    assert not told


def orders(count: int = 200) -> Rows:
    return [(number % 4, number % 4 * 7 % 5, number) for number in range(count)]


@pytest.fixture
def kept(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "p", {"t": orders()}, Options(kinds=("keys", "fds")))


def test_a_clean_table_has_no_near_rules(kept: Tables) -> None:
    assert near_list(kept).rules == ()
    assert "t: key(c2)" in near_list(kept).watched
    assert kept.store.read().tuples is None


def test_a_rule_that_a_few_rows_break_is_near_until_they_are_gone(kept: Tables) -> None:
    changes = kept.apply("t", inserts=[(1, 4, 7)])
    told = {each.rule: each for each in changes.near}
    assert {*told} == {"t: key(c2)", "t: c0 -> c1", "t: c1 -> c0"}
    assert told["t: key(c2)"].before is None
    assert told["t: key(c2)"].more == 1
    assert [each.removal for each in near_list(kept).near] == [1, 1, 1]
    more = kept.apply("t", inserts=[(2, 2, 8)])
    assert {each.rule: each.more for each in more.near} == {
        "t: key(c2)": 1,
        "t: c0 -> c1": 1,
        "t: c1 -> c0": 1,
    }
    kept.apply("t", deletes=[(2, 2, 8)])
    last = kept.apply("t", deletes=[(1, 4, 7)])
    assert all(each.after is not None and each.after.holds for each in last.near)
    assert near_list(kept).near == ()
    again = kept.apply("t", inserts=[(1, 4, 7)])
    assert {each.rule for each in again.near} == {*told}


def test_a_check_says_what_a_batch_would_do_to_near_rules(kept: Tables) -> None:
    checked = kept.apply("t", dry_run=True, inserts=[(1, 4, 7)])
    assert {each.rule for each in checked.near} == {"t: key(c2)", "t: c0 -> c1", "t: c1 -> c0"}
    assert near_list(kept).rules == ()


def test_a_rule_that_fails_twice_over_is_not_listed_any_more(kept: Tables) -> None:
    kept.apply("t", inserts=[(1, 4, 7)])
    changes = kept.apply("t", inserts=[(9, 9, number) for number in range(8)])
    [change] = [each for each in changes.near if each.rule == "t: key(c2)"]
    assert change.before is not None
    assert change.after is None
    assert "t: key(c2)" not in {str(each.rule) for each in near_list(kept).rules}


def test_near_rules_are_looked_for_again_in_a_table_that_has_doubled(kept: Tables) -> None:
    before = near_list(kept)
    kept.apply("t", inserts=[(9, 9, 1_000 + number) for number in range(190)])
    assert near_list(kept).since == before.since
    more = [(number % 6, number % 6, 2_000 + number) for number in range(20)]
    kept.apply("t", inserts=more)
    assert near_list(kept).since == 3
    assert near_list(kept).rows == 410


def hardly_repeating(count: int = 400) -> Rows:
    """c0 has two rows of each value, and determines c1 but for a few rows."""
    rows = [(number // 2, number // 2 * 7 % 5, number) for number in range(count)]
    return [(row[0], 9, row[2]) if row[2] % 100 == 1 else row for row in rows]


@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_groups_of_few_rows_are_looked_up(tmp_path: Path, nulls: str) -> None:
    """In place of counting tuples of the lhs, of which there are as many as half of the rows."""
    rows, given = hardly_repeating(), Options(kinds=("keys", "fds"), nulls=nulls)
    with small_limits(lookup_rows=8):
        kept = Tables(tmp_path / "p", {"t": rows}, given, 2)
        [near] = [each for each in near_list(kept).rules if str(each.rule) == "t: c0 -> c1"]
        assert near.sums is not None
        tuples = kept.store.read().tuples
        assert tuples is not None
        assert all(side.columns == ("c1",) for side in tuples.sides)
        came: Rows = [(3, 9, 900), (None, 2, 901), (None, 2, 902), (500, None, 903), (3, 9, 3)]
        kept.apply("t", rows := [*rows, *came], inserts=came)
        assert_kept(kept)
        gone = [rows[at] for at in (0, 1, 2, 101, 400, 401)]
        kept.apply("t", rows := [row for row in rows if row not in gone], deletes=gone)
        assert_kept(kept)
        assert flow.verify(kept.runner, kept.store, no_progress).equal
        kept.apply("t", rows[200:], deletes=rows[:200])
        assert_kept(kept)


def test_dismissed_rules_are_not_listed_again(kept: Tables) -> None:
    kept.apply("t", inserts=[(1, 4, 7)])
    flow.dismiss(kept.store, parse("t: c0 -> c1"))
    assert "t: c0 -> c1" not in {str(each.rule) for each in near_list(kept).rules}
    with pytest.raises(InputError, match="dismissed already"):
        flow.dismiss(kept.store, parse("t: c0 -> c1"))
    flow.look_for_near(kept.runner, kept.store, ["t"], {}, no_progress)
    assert {str(each.rule) for each in near_list(kept).rules} == {"t: key(c2)", "t: c1 -> c0"}
    flow.dismiss(kept.store, parse("t: c0 -> c1"), undo=True)
    flow.look_for_near(kept.runner, kept.store, ["t"], {}, no_progress)
    assert "t: c0 -> c1" in {str(each.rule) for each in near_list(kept).rules}
    assert_kept_after(kept, [*orders(), (1, 4, 7)])


def assert_kept_after(kept: Tables, rows: Rows) -> None:
    kept.rows["t"] = rows
    assert_kept(kept)
    kept.apply("t", [*rows, (2, 2, 9)], inserts=[(2, 2, 9)])
    assert_kept(kept)


def test_profiles_without_near_rules_get_them(tmp_path: Path) -> None:
    rows = [*orders(), (1, 4, 7)]
    kept = Tables(tmp_path / "p", {"t": rows}, Options(kinds=("keys", "fds"), near="off"))
    assert kept.store.read().table("t").near is None
    kept.apply("t", rows := [*rows, (3, 3, 900)], inserts=[(3, 3, 900)])
    flow.look_for_near(kept.runner, kept.store, ["t"], {}, no_progress)
    assert near_list(kept).since == 3
    assert_kept_after(kept, rows)


def test_expected_rules_keep_their_counts_beside_near_ones(kept: Tables) -> None:
    kept.apply("t", rows := [*orders(), (1, 4, 7)], inserts=[(1, 4, 7)])
    kept.expect("t: key(c2)", "t: c0 -> c1", max_error=0.1)
    flow.forget(kept.store, "t: key(c2)")
    assert_kept_after(kept, rows)


def test_groups_that_are_not_told_apart_leave_the_list(
    kept: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of a million groups have one first word with a probability of 3e-8."""
    kept.apply("t", inserts=[(1, 4, 7)])
    monkeypatch.setattr(tasks, "side_sums", lambda *args: (side_sums(*args)[0], True))
    changes = kept.apply("t", inserts=[(2, 4, 901)])
    assert {str(each.rule) for each in near_list(kept).rules} == {"t: key(c2)"}
    assert {each.rule for each in changes.near} == {"t: c0 -> c1", "t: c1 -> c0"}


def test_two_groups_with_one_first_word_are_noticed() -> None:
    lhs, nulls = np.array([-1, 0]), np.array([True, True])
    entries = [[5, 1, 0, 3], [5, 2, 0, 1], [5, 7, 1, 4], [6, 1, 0, 2], [6, 7, 1, 2]]
    sums, merged = side_sums(np.array(entries, np.uint64), lhs, nulls)
    assert merged
    assert sums[0, 0] == 3
    assert not side_sums(np.array(entries[3:], np.uint64), lhs, nulls)[1]


def test_kinds_that_are_added_bring_near_rules(tmp_path: Path) -> None:
    rows = [*orders(), (1, 4, 7)]
    kept = Tables(tmp_path / "p", {"t": rows}, Options(kinds=("inds",)))
    assert kept.store.read().table("t").near is None
    kept.expect("t: c2 not null", "t: key(c2)")
    flow.extend(kept.runner, kept.store, ["keys", "fds"], {}, no_progress)
    assert near_list(kept).since == 3
    assert {str(each.rule) for each in near_list(kept).near} >= {"t: key(c2)", "t: c0 -> c1"}
    assert_kept_after(kept, rows)
    assert kept.held["t: key(c2)"] == kept.true["t: key(c2)"]


def test_counted_tuples_take_a_quarter_of_the_rows_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that would take more are only counted."""
    monkeypatch.setattr(near_kept, "_SMALL", 0)
    varied(monkeypatch, own_index_rows=0)
    # c0 has as many tuples as half of the rows, and c1 few.
    rows: Rows = [
        (number // 2, (number // 2) % 7, (number // 2) % 7 * 3) for number in range(3_000)
    ]
    rows += [(5, 1, 7), (8, 2, 3)]
    kept = Tables(tmp_path / "p", {"t": rows}, Options(kinds=("keys", "fds")))
    near, record = near_list(kept), kept.store.read().table("t")
    assert near.more
    assert {str(each.rule) for each in near.rules} == {"t: c1 -> c2", "t: c2 -> c1"}
    tuples = kept.store.read().tuples
    assert tuples is not None
    files = [file for segment in record.segments for file in segment.files]
    assert 4 * size(kept, tuples.data_files) <= size(kept, files)


def size(kept: Tables, files: list[str]) -> int:
    return sum((Path(kept.store.path) / file).stat().st_size for file in files)
