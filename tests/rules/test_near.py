"""Rules that nearly hold, and the cells that they suspect, against their definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.flow.near import forms_of
from holdfast.model import limits
from holdfast.model.constraints import Key
from holdfast.model.grammar import parse
from holdfast.model.near import NearBounds, NearRule, Suspects, strength
from holdfast.model.options import Options
from holdfast.rules.near import Exact, measured, near_rules
from holdfast.rules.near_estimate import drawn
from holdfast.rules.suspects import suspected
from holdfast.runtime.run import Run
from holdfast.table.state import Table
from holdfast.tasks import near as tasks
from holdfast.tasks import partners
from tests import oracle
from tests.flow.tables import Shop, folder
from tests.limits import varied
from tests.strategies import Rows, examples
from tests.traffic import Counting

COLUMNS = 4


def suspects(run: Run, table: Table, near: Sequence[NearRule], most: int | None) -> Suspects:
    forms = forms_of(near, {table.name: table}, run.options)
    with suspected(run, {table.name: table}, {n: forms[n.rule] for n in near}, (), most) as found:
        return Suspects(near, [*found.cells][:most], found.total, found.groups)


@st.composite
def dirty_tables(draw: st.DrawFn) -> Rows:
    """Rows in which some columns follow from others, but for a few cells."""
    count = draw(st.sampled_from([0, 1, 29, 30, 60, 150]))
    random = draw(st.randoms(use_true_random=False))
    domains = [draw(st.sampled_from([1, 2, 5, 20, 1000])) for _ in range(2)]
    errors = draw(st.sampled_from([0, 0.02, 0.1]))
    rows = []
    for _ in range(count):
        one, two = (random.randrange(size) for size in domains)
        row: list[int | None] = [one, two, (one * 7) % 5, (one + 3 * two) % 4]
        for place in range(COLUMNS):
            if random.random() < errors:
                row[place] = random.choice([None, random.randrange(9)])
        rows.append(tuple(row))
    return rows


def test_a_strength_half_way_between_two_is_the_larger_one() -> None:
    """Whatever is lost where fractions of rows are added up."""
    for lost in (0.0, 1e-9):
        assert strength(46, 6, 36.34 - lost, 276) == 0.728313


BOUNDS = st.builds(
    NearBounds,
    strength=st.sampled_from([0.2, 0.8]),
    removal=st.sampled_from([0.1, 0.3]),
    key_removal=st.sampled_from([0.01, 0.1]),
    gain=st.sampled_from([0.0, 0.5, 0.8]),
    columns=st.sampled_from([1, 2, 3]),
)


def found(
    shop: Shop,
    bounds: NearBounds,
    exact: Exact | None = None,
    worth_counting: Callable[[Key], bool] | None = None,
) -> list[NearRule]:
    with shop.opened() as (run, table):
        result = near_rules(run, table, bounds, exact, worth_counting)
    assert result.complete_up_to == bounds.columns
    return [*result.rules]


def listed(rules: list[NearRule]) -> oracle.Listed:
    def places(names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(int(name[1:]) for name in names)

    return {
        (places(near.lhs), None if near.rhs is None else int(near.rhs[1:])): (
            near.removal,
            near.strength,
        )
        for near in rules
    }


def near_rules_of(rows: Rows, nulls: str, bounds: NearBounds) -> oracle.Listed:
    with folder() as path:
        shop = Shop(Path(path), COLUMNS, rows, Options(kinds=("keys",), nulls=nulls))
        return listed(found(shop, bounds))


@given(dirty_tables(), st.sampled_from(["equal", "unequal"]), BOUNDS)
@settings(max_examples=examples(40))
def test_near_rules_are_those_of_the_definitions(
    rows: Rows, nulls: str, bounds: NearBounds
) -> None:
    assert near_rules_of(rows, nulls, bounds) == oracle.near_rules(rows, COLUMNS, nulls, bounds)


@given(dirty_tables(), st.sampled_from(["equal", "unequal"]), BOUNDS, st.sampled_from([1, 1 << 20]))
@settings(max_examples=examples(40))
def test_long_tables_have_the_same_near_rules(
    rows: Rows, nulls: str, bounds: NearBounds, held: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        varied(patch, grouped_rows=0, segment_rows=40, undivided_rows=0)
        patch.setattr(tasks, "_HELD", held)
        patch.setattr("holdfast.rules.near._EXCHANGED", held)
        counted = near_rules_of(rows, nulls, bounds)
    assert counted == oracle.near_rules(rows, COLUMNS, nulls, bounds)


@pytest.mark.parametrize("long", [False, True])
def test_a_column_that_only_makes_groups_smaller_is_left_out(
    long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of seven countries share a currency, so it is wrong about too many rows. On one day few
    rows have it, so that most of these agree by luck. With rates, of which two countries share
    another one, it tells all countries."""
    random = Random(5)
    countries = [random.randrange(7) for _ in range(3_000)]
    rows: Rows = [
        (country, max(country, 1), min(country, 5), place // 20)
        for place, country in enumerate(countries)
    ]
    rows[17] = (2, 3, 3, 0)
    if long:
        varied(monkeypatch, grouped_rows=100, drawn_rows=2_000, segment_rows=700)
    bounds = NearBounds()
    near = near_rules_of(rows, "equal", bounds)
    assert near == oracle.near_rules(rows, COLUMNS, "equal", bounds)
    assert ((1, 2), 0) in near
    assert not {(lhs, rhs) for lhs, rhs in near if 3 in lhs}
    idle = near_rules_of(rows, "equal", replace(bounds, gain=-1.0))
    assert idle == oracle.near_rules(rows, COLUMNS, "equal", replace(bounds, gain=-1.0))
    assert ((1, 3), 0) in idle


@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_planted_rules_are_found_from_drawn_rows(
    nulls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dependency with few values and one with many, and a key, with errors in each."""
    random = Random(5)
    rows = []
    for number in range(6_000):
        group, town = random.randrange(1_500), random.randrange(8)
        cells = [number, group, group * 13 % 97, town * 5 % 7]
        if random.random() < 0.01:
            cells[random.randrange(1, 4)] = random.randrange(1_000)
        if random.random() < 0.002:
            cells[0] = random.randrange(number + 1)
        rows.append((*cells[:3], town, cells[3]))
    varied(monkeypatch, grouped_rows=100, drawn_rows=2_000, segment_rows=2_500)
    bounds = NearBounds()
    with folder() as path:
        shop = Shop(Path(path), 5, rows, Options(kinds=("keys",), nulls=nulls))
        near = listed(found(shop, bounds))
    assert near == oracle.near_rules(rows, 5, nulls, bounds)
    assert {((0,), None), ((1,), 2), ((3,), 4)} <= {*near}


def test_no_job_runs_for_no_candidates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Drawn rows rule all candidates out where columns have nothing to do with each other."""
    random = Random(6)
    rows = [(number, *(random.randrange(50) for _ in range(3))) for number in range(6_000)]
    varied(monkeypatch, grouped_rows=100, drawn_rows=2_000, segment_rows=2_500)
    runner = Counting(2)
    Shop(tmp_path / "p", 4, rows, Options(kinds=("keys", "fds")), runner=runner)
    assert runner.calls["offer_partners"]
    assert not runner.calls["write_groups"]


def test_where_groups_are_large_a_part_of_the_rows_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It bounds what all rows would show, and rules out nothing else."""
    random = Random(7)
    rows = [
        (group := random.randrange(1_000), group % 9, random.randrange(5)) for _ in range(20_000)
    ]
    varied(monkeypatch, drawn_rows=1_000, segment_rows=7_000)
    shop = Shop(tmp_path / "p", 3, rows, Options(kinds=("keys",)), 2)
    estimates = []
    for least in (partners._PARTNERS, 1 << 30):
        monkeypatch.setattr(partners, "_PARTNERS", least)
        with shop.opened() as (run, table), drawn(run, table) as drawing:
            estimates.append(drawing.estimated([(0,), (0, 2)]))
    part, whole = estimates
    assert (part.least <= whole.least).all()
    assert (part.most >= whole.most).all()
    assert part.least[1] < whole.least[1]
    assert part.may_explain((0,), 1, 0.2, 0.1)
    for lhs in ((0,), (0, 2)):
        assert part.is_near_key(lhs, 0.01) is False
        place = part.place[lhs]
        assert part.differing[place] == pytest.approx(whole.differing[place], rel=0.3)
    assert not part.may_explain((0,), 2, 0.2, 0.1)


def known(rows: Rows, nulls: str, most: int | None) -> Exact:
    """What a profile knows exactly, up to so many columns."""
    dependencies: dict[int, list[tuple[int, ...]]] = {}
    for lhs, rhs in oracle.dependencies(rows, COLUMNS, nulls, most):
        dependencies.setdefault(rhs, []).append(lhs)
    return Exact(oracle.keys(rows, COLUMNS, nulls, most), dependencies)


@given(
    dirty_tables(),
    st.sampled_from(["equal", "unequal"]),
    BOUNDS,
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 1, 7]),
    st.sampled_from([0, 1 << 16]),
)
@settings(max_examples=examples(60))
def test_what_holds_exactly_changes_nothing(
    rows: Rows, nulls: str, bounds: NearBounds, most: int | None, repeated: int | None, long: int
) -> None:
    """Whether it is known, and up to how many columns, in tables with and without repeated rows;
    and keys that are not worth counting are only left out."""
    rows = [*rows, *rows[:repeated]] if repeated else [*dict.fromkeys(rows)]

    def worth_counting(key: Key) -> bool:
        return key.columns[0] != "c1"

    with folder() as path, pytest.MonkeyPatch.context() as patch:
        varied(patch, grouped_rows=long, segment_rows=40, undivided_rows=0)
        shop = Shop(Path(path), COLUMNS, rows, Options(kinds=("keys",), nulls=nulls))
        exact = known(rows, nulls, most)
        counted = listed(found(shop, bounds, exact))
        worth = listed(found(shop, bounds, exact, worth_counting))
    expected = oracle.near_rules(rows, COLUMNS, nulls, bounds)
    assert counted == expected
    assert worth == {
        (lhs, rhs): measures
        for (lhs, rhs), measures in expected.items()
        if rhs is not None or lhs[0] != 1
    }


def test_the_search_ends_with_the_columns_that_there_is_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(k % 7, k % 7 + 5, k // 7 % 5, k % 3) for k in range(200)]
    rows[7] = (1, 9, 0, 0)
    shop = Shop(tmp_path, COLUMNS, rows, Options(kinds=("keys",)))
    bounds = NearBounds(columns=3, key_removal=0.1)
    expected = [
        oracle.near_rules(rows, COLUMNS, "equal", replace(bounds, columns=columns))
        for columns in range(4)
    ]
    ended = set()
    for seconds in range(1, 60):
        with shop.opened() as (run, table):
            monkeypatch.setattr(limits, "clock", count().__next__)
            timed = replace(run, options=replace(run.options, time_budget=float(seconds)))
            result = near_rules(timed, table, bounds)
            monkeypatch.undo()
        assert listed([*result.rules]) == expected[result.complete_up_to]
        ended.add(result.complete_up_to)
    assert ended == {0, 1, 2, 3}


@pytest.mark.parametrize("seed", range(12))
def test_estimates_rule_out_nothing_that_passes(seed: int) -> None:
    """Tables with groups of many sizes, of which a quarter of the rows is drawn."""
    random, nulls = Random(seed), ("equal", "unequal")[seed % 2]
    sizes = [random.choice([1, 3, 50, 400, 3_000]) for _ in range(2)]
    rows = []
    for number in range(3_000):
        left, right = (random.randrange(size) for size in sizes)
        cells: list[int | None] = [
            left,
            right,
            (left * 31 + right) % 11,
            number - number % random.choice([1, 1, 2]),
        ]
        if random.random() < 0.01:
            cells[random.randrange(4)] = random.choice([None, random.randrange(3_000)])
        rows.append(tuple(cells))
    bounds = NearBounds(removal=0.3)
    with folder() as path, pytest.MonkeyPatch.context() as patch:
        varied(patch, segment_rows=1_100)
        shop = Shop(Path(path), COLUMNS, rows, Options(kinds=("keys",), nulls=nulls))
        counted = listed(found(shop, bounds))
        varied(patch, grouped_rows=100, drawn_rows=750)
        assert listed(found(shop, bounds)) == counted


@given(dirty_tables(), st.sampled_from(["equal", "unequal"]), BOUNDS, st.sampled_from([None, 3]))
@settings(max_examples=examples(30))
def test_suspects_are_those_of_the_definitions(
    rows: Rows, nulls: str, bounds: NearBounds, most: int | None
) -> None:
    # A number of its own tells which row a suspect is in; it determines nothing.
    numbered = [(*row, place) for place, row in enumerate(rows)]
    with folder() as path, pytest.MonkeyPatch.context() as patch:
        varied(patch, segment_rows=40, undivided_rows=0)
        patch.setattr(tasks, "_HELD", 1)
        shop = Shop(Path(path), COLUMNS + 1, numbered, Options(kinds=("keys",), nulls=nulls))
        with shop.opened() as (run, table):
            near = near_rules(run, table, bounds).rules
            found = suspects(run, table, near, most)
    rules = oracle.near_rules(numbered, COLUMNS + 1, nulls, bounds)
    wanted = oracle.suspects(numbered, rules, nulls)
    assert found.total == len(wanted)
    assert len(found.cells) == (len(wanted) if most is None else min(most, len(wanted)))
    scores = sorted((score for score, _ in wanted.values()), reverse=True)
    assert [cell.score for cell in found.cells] == pytest.approx(scores[: len(found.cells)])
    for cell in found.cells:
        place = int(str(cell.row[f"c{COLUMNS}"]))
        columns = tuple(int(name[1:]) for name in cell.columns)
        score, by = wanted[place, columns]
        assert cell.score == pytest.approx(score)
        assert cell.rules == len(by)
        if len(columns) == 1 and cell.agreeing < cell.group:
            assert cell.suggested != cell.row[cell.columns[0]]


def test_a_suspect_has_the_value_of_the_majority() -> None:
    rows = [(k % 3, k % 3 + 5) for k in range(60)]
    rows[7] = (1, 9)
    with folder() as path:
        shop = Shop(Path(path), 2, rows, Options(kinds=("keys",)))
        with shop.opened() as (run, table):
            near = measured(run, table, parse("t: c0 -> c1"))
            found = suspects(run, table, [near], None)
    assert (near.removal, near.of_rows) == (1, 60)
    [cell] = found.cells
    assert (cell.row, cell.columns) == ({"c0": 1, "c1": 9}, ("c1",))
    assert (cell.suggested, cell.agreeing, cell.group) == (6, 19, 20)


def test_tables_without_rows_have_numbers_of_rows_as_suspects() -> None:
    rows = [(k % 3, k % 3 + 5) for k in range(60)]
    rows[7] = (1, 9)
    with folder() as path:
        shop = Shop(Path(path), 2, rows, Options(kinds=("keys",), keep_rows=False))
        with shop.opened() as (run, table):
            found = suspects(run, table, near_rules(run, table, NearBounds()).rules, None)
    assert [[*cell.row] for cell in found.cells if cell.columns == ("c1",)] == [["row"]]
    assert {cell.suggested for cell in found.cells} == {None}
