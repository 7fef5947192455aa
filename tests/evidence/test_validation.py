"""The steps of propose → validate → learn, one by one: what a round plans, and what it learns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from holdfast.cover import candidates as cands
from holdfast.cover import deepening
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import KEY
from holdfast.evidence.agreement import search_plans
from holdfast.evidence.agreement.planning import Premises
from holdfast.evidence.agreement.search_plans import (
    BatchProbe,
    BatchRepeats,
    IndexSearch,
    Survey,
    SurveyMerge,
)
from holdfast.evidence.agreement.validation import Validation, validate
from holdfast.evidence.witnessed import Witnessed
from holdfast.kernels import bitsets
from holdfast.kernels.evidence import Candidates
from holdfast.kinds.table_state import TableState
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.limits import Limits, Time
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.run import Run
from tests import oracle
from tests.flow.tables import Shop, small_limits
from tests.strategies import Rows

# Columns 0 and 1 are a key; 2 follows from 0.
ROWS: Rows = [(a, b, a % 2) for a, b in product(range(6), range(5))]
OPTIONS = Options(("keys", "fds"), evidence="witnessed")


@contextmanager
def from_nothing(shop: Shop, time: Time | None = None) -> Iterator[Validation]:
    """A validation of the shop's rows that knows no evidence yet."""
    table = TableState.load(shop.store, shop.store.read(), "t").table
    rhs = (KEY, *range(shop.columns))
    none = Witnessed.none(shop.columns, rhs, Limits())
    depth = Deepening(Limits(), time or Time(), deepening.WITNESSED)
    with shop.store.writing() as lease:
        run = Run(shop.runner, shop.store, shop.options, lease, no_progress)
        yield Validation.of(run, depth, table, none, Premises.none(none.covers))


@contextmanager
def with_batch(shop: Shop, inserts: Rows, time: Time | None = None) -> Iterator[Validation]:
    """A validation of the shop's rows with some more, which the profile does not know of. They
    come as the shop's second segment."""
    before = TableState.load(shop.store, shop.store.read(), "t")
    known = before.evidence[AGREEMENTS].witnessed
    assert known is not None
    shop.apply(inserts=inserts)
    table = TableState.load(shop.store, shop.store.read(), "t").table
    batch = table.segments[len(before.table.segments) :]
    depth = Deepening(Limits(), time or Time(), deepening.WITNESSED)
    with shop.store.writing() as lease:
        run = Run(shop.runner, shop.store, shop.options, lease, no_progress)
        premises = Premises.of_batch(batch, known.covers.minimal, known.covers)
        yield Validation.of(run, depth, table, known, premises)


def take_round(state: Validation) -> list[search_plans.SearchPlan]:
    """One round; what it planned."""
    candidates = state.propose()
    assert candidates is not None
    planned = state.plan(candidates)
    state.learn(candidates, planned, state.execute(candidates, planned))
    return planned


def assert_exact(state: Validation, rows: Rows) -> None:
    columns = state.known.covers.atoms
    keys = bitsets.to_columns(state.known.covers.keys.minimal)
    maximal = oracle.maximal_sets(oracle.agree_sets(rows, columns, "equal"))
    assert sorted(keys, key=lambda key: (len(key), key)) == oracle.minimal_sets(columns, maximal)
    lhs, rhs = state.known.covers.dependencies
    found = set(zip(bitsets.to_columns(lhs), rhs.tolist(), strict=True))
    assert found == set(oracle.dependencies(rows, columns, "equal", None))


def chosen(candidates: list[tuple[int, ...]], columns: int) -> Candidates:
    """Candidates for keys."""
    return cands.together({KEY: bitsets.from_columns(candidates, columns)}, columns)


def test_rounds_go_from_nothing_to_what_holds(tmp_path: Path) -> None:
    """The empty set first, for every rhs; at the end nothing is proposed."""
    with small_limits():
        shop = Shop(tmp_path / "p", 3, ROWS, OPTIONS)
        with from_nothing(shop) as state:
            first = state.propose()
            assert first is not None
            assert {rhs: bitsets.to_columns(each) for rhs, each in first.items()} == {
                rhs: [()] for rhs in (KEY, 0, 1, 2)
            }
            validate(state)
            assert state.propose() is None
            assert state.round > 1
            assert_exact(state, ROWS)


def test_what_was_searched_in_part_is_proposed_again(tmp_path: Path) -> None:
    """A part of the rows refutes candidates and validates none; the next search is of all rows."""
    with small_limits(part_from_rows=0, few_combinations=0, undivided_rows=0):
        shop = Shop(tmp_path / "p", 3, ROWS, OPTIONS)
        with from_nothing(shop) as state:
            take_round(state)  # of the empty set, from which no search can start
            planned = [look for look in take_round(state) if isinstance(look, IndexSearch)]
            assert planned
            assert all(look.in_part for look in planned)
            looked_at = {tuple(lhs) for look in planned for lhs in look.candidates.lhs.tolist()}
            known = {tuple(lhs) for each in state.known.validated.values() for lhs in each.tolist()}
            assert not looked_at & known
            again = take_round(state)
            assert any(isinstance(look, IndexSearch) for look in again)
            assert not any(look.in_part for look in again)
            validate(state)
            assert_exact(state, ROWS)


@pytest.mark.parametrize(("survey", "rounds"), [(1 << 23, 2), (1, 3)])
def test_a_left_side_with_too_many_combinations_is_searched(
    tmp_path: Path, survey: int, rounds: int
) -> None:
    """Representatives are for few combinations of values. Where there turn out to be more than
    there is room for nothing is validated, and the next look is a search: also where each part of
    the rows had room, and all together have not."""
    few = {"large_groups": 1, "own_index_rows": 1, "representatives": 4}
    with small_limits(survey=survey, **few):
        shop = Shop(tmp_path / "p", 3, ROWS, OPTIONS)
        with from_nothing(shop) as state:
            for _ in range(rounds):
                planned = take_round(state)
            assert all(isinstance(look, Survey | SurveyMerge | IndexSearch) for look in planned)
            too_many = bitsets.to_columns(state.known.underestimated)
            assert (0,) in too_many
            assert (2,) not in too_many
            searched = [look for look in take_round(state) if isinstance(look, IndexSearch)]
            tried = {lhs for look in searched for lhs in bitsets.to_columns(look.candidates.lhs)}
            assert set(too_many) & tried
            validate(state)
            assert_exact(state, ROWS)


def test_a_new_batch_is_looked_up_for_all_that_held(tmp_path: Path) -> None:
    """One probe for every candidate that held on the old rows, whatever the covers propose now, and
    for rows that are repeated."""
    inserts: Rows = [(0, 0, 0), (6, 0, 1), (6, 1, 0)]
    with small_limits(lookup_rows=1e9):
        shop = Shop(tmp_path / "p", 3, ROWS, OPTIONS)
        with with_batch(shop, inserts) as state:
            none = Witnessed.none(3, (KEY, 0, 1, 2), Limits())
            # As if deletes took it all.
            state.known = replace(state.known, evidence=none.evidence, covers=none.covers)
            held = cands.together(state.premises.minimal_before, 3)
            planned = take_round(state)
            (probe,) = (look for look in planned if isinstance(look, BatchProbe))
            assert any(isinstance(look, BatchRepeats) for look in planned)
            assert probe.candidates.lhs.tolist() == held.lhs.tolist()
            assert not state.agenda.batch_is_new
            ((_, repeating),) = state.repeats.pairs
            assert (state.repeats.count, repeating) == (1, state.premises.batch[0].base)
            validate(state)
            assert_exact(state, ROWS + inserts)


def test_a_new_batch_is_looked_up_though_nothing_is_proposed(tmp_path: Path) -> None:
    """No column is a key, and longer keys are not wanted: there still are rows that repeat."""
    with small_limits():
        shop = Shop(tmp_path / "p", 3, ROWS, replace(OPTIONS, kinds=("keys",), max_columns=1))
        with with_batch(shop, [(0, 0, 0)]) as state:
            assert not cands.count(state.known.covers.minimal)
            (repeats,) = take_round(state)
            assert isinstance(repeats, BatchRepeats)
            assert state.repeats.count == 1
            assert [*state.repeats.pairs] == [
                [state.table.segments[0].base, state.premises.batch[0].base]
            ]
            assert state.propose() is None


def test_a_new_batch_is_looked_up_even_if_it_is_late(tmp_path: Path) -> None:
    """Only then are the covers made shorter."""
    late = Time(0.0)
    with small_limits():
        shop = Shop(tmp_path / "p", 3, ROWS, OPTIONS)
        with with_batch(shop, [(6, 0, 1), (6, 1, 0)], late) as state:
            assert state.depth.late
            proposed = state.propose()
            assert proposed is not None
            assert state.known.covers.limits == Limits()
            assert any(isinstance(look, BatchProbe) for look in state.plan(proposed))
            validate(state)
            assert state.known.covers.limits == Limits(1, 1)


@pytest.mark.parametrize(("cheap_probe", "reached"), [(50_000_000, True), (-1, False)])
def test_a_probe_that_returns_more_than_a_search_is_not_taken(
    tmp_path: Path, cheap_probe: int, reached: bool
) -> None:
    with small_limits(cheap_probe=cheap_probe, search_cost=0, lookup_rows=1e9):
        shop = Shop(tmp_path / "p", 3, ROWS, OPTIONS)
        table = replace(
            TableState.load(shop.store, shop.store.read(), "t").table, indexed=("0", "1")
        )
        key = chosen([(0, 1)], 3)
        probe = search_plans.probe(key, table, table.segments)
        assert bool(len(probe.candidates.lhs)) is reached
        assert probe.is_needed is reached
        assert bool(probe.lookups.lookups) is reached


@pytest.mark.parametrize(("distinct", "start"), [(90.0, 1), (5.0, 0)])
def test_a_search_starts_from_a_sorted_column_if_that_is_selective(
    tmp_path: Path, distinct: float, start: int
) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 3, ROWS, OPTIONS)
        table = TableState.load(shop.store, shop.store.read(), "t").table
        segments = [replace(s, indexes={"rows": "", "1": ""}) for s in table.segments]
        values = [100.0, distinct, 2.0]
        table = replace(table, segments=tuple(segments), distinct=values, agreeing=[])
        (search,) = search_plans.searches(chosen([(0, 1)], 3), table)
        assert search.order == (start, 1 - start, 2)
        assert search.sorted_by == (str(start),)


def test_representatives_are_dealt_out() -> None:
    """By parts of the rows, each with all candidates; candidates of few rows are dealt out: no look
    is without any, and each is in one."""
    three = chosen([(0,), (1,), (2,)], 3)
    with small_limits(survey=100, surveyed_rows=1_000):
        dealt = search_plans.representatives(three, 500, 2, "")
        assert [len(look.candidates.lhs) for look in dealt] == [2, 1]
        assert len(search_plans.representatives(three, 20, 8, "")) == 1, (
            "that is not worth two tasks"
        )
        assert len(search_plans.representatives(chosen([(0,)], 3), 500, 8, "")) == 1
        assert search_plans.representatives(chosen([], 3), 500, 8, "") == []
        (divided,) = search_plans.representatives(three, 5_000, 8, "")
        assert (len(divided.candidates.lhs), divided.parts) == (3, 5)
        assert not divided.validates


@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_rows_that_parts_kept_are_merged(tmp_path: Path, nulls: str) -> None:
    """A dependency that holds in every part of the rows, and not in all of them, is refuted by the
    rows that were kept."""
    # Column 1 follows from 0 in the first half and in the second, but not in the same way.
    rows: Rows = [(i % 3, i % 3 + 5 * (i >= 48), i % 2) for i in range(96)]
    options = replace(OPTIONS, nulls=nulls)
    with small_limits(
        large_groups=1, sample_rows=0, survey=1, surveyed_rows=48, part_from_rows=1e9
    ):
        shop = Shop(tmp_path / "p", 3, rows, options)
        with from_nothing(shop) as state:
            seen: list[search_plans.SearchPlan] = []
            while not any(isinstance(look, SurveyMerge) for look in seen):
                seen = take_round(state)
                assert any(isinstance(look, Survey | SurveyMerge) for look in seen)
            parts = {look.parts for look in seen if isinstance(look, Survey)}
            assert parts <= {2}
            files = [
                Path(shop.store.path, file)
                for rows_ in state.files.surveyed
                for file in rows_.files
            ]
            assert files
            assert all(file.exists() for file in files)
            validate(state)
            assert not any(file.exists() for file in files)
            assert_exact(state, rows)
