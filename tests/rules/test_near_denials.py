"""Denial constraints that nearly hold, against their definitions, and kept under batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels.orders import order_counts
from holdfast.kinds.denial_constraints import near
from holdfast.kinds.ranking import ranked
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.grammar import parse
from holdfast.model.limits import OutOfTime
from holdfast.model.near import NearBounds, NearList, NearRule
from holdfast.model.options import Options
from holdfast.report.snapshot import snapshot
from tests import oracle
from tests.flow.tables import Shop, folder, small_limits
from tests.flow.test_law import law
from tests.rules.test_expectations import LIMITS, Tables
from tests.strategies import Rows, examples

COLUMNS = 3


def options(**given: Any) -> Options:
    bounds: Any = {"near_strength": 0.4, "near_key_removal": 0.2}
    return Options(kinds=("dcs",), **bounds, **given)


def near_of(kept: Tables | Shop) -> NearList:
    listed = kept.store.read().table("t").near
    assert listed is not None
    return listed


def near_list(kept: Tables | Shop) -> tuple[NearRule, ...]:
    return near_of(kept).rules


def some_rows(random: Random, least: int = 30) -> Rows:
    """Rows in which c1 rises with c0 within c2, and c0 is at most c1, but for a few cells."""
    wrong, spread = random.choice([0, 0.05, 0.15]), random.choice([4, 12])
    rows: Rows = []
    for _ in range(least + random.randrange(25)):
        one, group = random.randrange(spread), random.randrange(2)
        row: list[int | None] = [one, one + random.randrange(2) + 3 * group, group]
        if group and spread == 12:
            row[1] = 20 - one
        for place in range(COLUMNS):
            if random.random() < wrong:
                row[place] = random.choice([None, random.randrange(25)])
        rows.append(tuple(row))
    return rows


SEEDS = st.integers(0, 1 << 30)


def nearness(
    rows: Rows, lhs: int, rhs: int, falling: bool, within: int | None, nulls: str
) -> tuple[int, int, int, int]:
    """Rows that would have to go, pairs with the order and against it, and rows that differ from
    most of their group, from the definitions."""
    known = [row for row in rows if row[lhs] is not None and row[rhs] is not None]
    groups: dict[object, Rows] = {}
    for row in known:
        if within is None or row[within] is not None or nulls == "equal":
            groups.setdefault(None if within is None else row[within], []).append(row)
    removal, with_order, against, varied = 0, 0, 0, [0, 0]
    for group in groups.values():
        cells: Any = [(row[lhs], -row[rhs] if falling else row[rhs]) for row in group]
        cells.sort()
        chain: list[int] = []  # the longest that ends with each row
        for place, (_, b) in enumerate(cells):
            chain.append(1 + max([0, *(chain[k] for k in range(place) if cells[k][1] <= b)]))
        removal += len(cells) - max(chain)
        for (a, b), (c, d) in combinations(cells, 2):
            with_order += a != c and b != d and (a < c) == (b < d)
            against += a != c and b != d and (a < c) != (b < d)
        for side in (0, 1):
            most = max(Counter(each[side] for each in cells).values())
            varied[side] += len(cells) - most
    return removal, with_order, against, min(varied)


def expected(rows: Rows, nulls: str, bounds: NearBounds) -> dict[DenialConstraint, int]:
    """The constraints that nearly hold, with how many rows would have to go; whether a part of one
    holds or nearly does is seen from its rows, too."""
    n = len(rows)
    listed: dict[DenialConstraint, int] = {}
    operators = {"<=": "<=", ">=": ">=", "!=": "!=", "=": "<=>=", "<": "<=!=", ">": ">=!="}
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "<=": lambda x, y: x <= y, ">=": lambda x, y: x >= y, "!=": lambda x, y: x != y,
        "=": lambda x, y: x == y, "<": lambda x, y: x < y, ">": lambda x, y: x > y,
    }  # fmt: skip

    def satisfied(operator: str, one: int | None, two: int | None) -> bool:
        if one is None or two is None:
            both = one is two and nulls == "equal"
            return operator == "!=" if not both else operator in ("<=", ">=", "=")
        return tests[operator](one, two)

    for a, b in combinations(range(COLUMNS), 2):
        passing: list[str] = []
        for operator, weak in operators.items():
            number = sum(satisfied(operator, row[a], row[b]) for row in rows)
            chance = sum(
                tests[operator](t[a], s[b])
                for t in rows
                for s in rows
                if t[a] is not None and s[b] is not None
            )
            few = number <= bounds.key_removal * n
            few &= not number or number <= (1 - bounds.strength) * chance / n
            if few and not any(all(part in weak for part in parts(each)) for each in passing):
                passing.append(weak)
                if number:
                    rule = parse(f"t: not (t.c{a} {operator} t.c{b})")
                    assert isinstance(rule, DenialConstraint)
                    listed[rule] = number
    least = max(bounds.repeated_rows, bounds.repeated_share * n)
    for a, b in combinations(range(COLUMNS), 2):
        for falling in (False, True):
            for within in (None, *({*range(COLUMNS)} - {a, b})):
                removal, good, bad, varied = nearness(rows, a, b, falling, within, nulls)
                passes = (
                    removal <= bounds.key_removal * n
                    and varied >= least
                    and 2 * bad <= (1 - bounds.strength) * (good + bad)
                )
                group = "" if within is None else f"t.c{within} = s.c{within} and "
                order = "<" if falling else ">"
                text = f"t: not ({group}t.c{a} < s.c{a} and t.c{b} {order} s.c{b})"
                rule = parse(text)
                assert isinstance(rule, DenialConstraint)
                if passes and removal:
                    listed[rule] = removal
                if not removal or passes:
                    break
    return listed


def parts(weak: str) -> list[str]:
    return [weak[place : place + 2] for place in range(0, len(weak), 2)]


@given(st.data())
@settings(max_examples=examples(60))
def test_counts_are_those_of_the_definitions(data: st.DataObject) -> None:
    cell = st.integers(0, 6)
    rows = data.draw(st.lists(st.tuples(cell, cell, st.integers(0, 2)), min_size=1, max_size=30))
    lhs, rhs, group = np.array(rows, np.int32).T
    counts = order_counts(group, lhs, rhs)
    assert tuple(counts) == nearness(list(rows), 0, 1, False, 2, "equal")


def test_removal_is_the_least_number_of_rows() -> None:
    """Of all subsets."""
    random = Random(3)
    for _ in range(20):
        rows: Rows = [(random.randrange(4), random.randrange(4), 0) for _ in range(7)]

        def holds(chosen: tuple[Any, ...]) -> bool:
            return not any(t[0] < s[0] and t[1] > s[1] for t, s in permutations(chosen, 2))

        least = next(
            gone for gone in range(8) if any(map(holds, combinations(rows, len(rows) - gone)))
        )
        assert nearness(rows, 0, 1, False, None, "equal")[0] == least


@given(SEEDS, st.sampled_from(["equal", "unequal"]))
@settings(max_examples=examples(40))
def test_near_denials_are_those_of_the_definitions(seed: int, nulls: str) -> None:
    rows = some_rows(Random(seed))
    with folder() as path:
        asked = options(nulls=nulls, cross_columns=0.0)
        shop = Shop(Path(path), COLUMNS, rows, asked)
        found = {str(each.rule): each.removal for each in near_list(shop)}
        examiner = shop_rules(shop)
    wanted = expected(rows, nulls, NearBounds.of(asked))
    assert found == {str(examiner(rule)): removal for rule, removal in wanted.items()}


def shop_rules(shop: Shop) -> Any:
    """How the profile writes rules."""
    from holdfast.flow.near import _canonical

    version = shop.store.read()
    return lambda rule: _canonical(version, rule)


@law(15)
@given(seed=SEEDS, limits=LIMITS)
def test_kept_near_denials_are_those_of_the_rows(seed: int, limits: dict[str, Any]) -> None:
    with folder() as path, small_limits(**limits):
        near_denials(Path(path), seed)


def near_denials(path: Path, seed: int) -> None:
    """One table under a few batches."""
    random = Random(seed)
    nulls = random.choice(["equal", "unequal"])
    asked = options(nulls=nulls, cross_columns=0.0)
    kept = Tables(path / "p", {"t": some_rows(random)}, asked, random.randint(1, 3))
    for _ in range(random.randint(1, 4)):
        old, new = kept.rows["t"], some_rows(random, 1)[: random.randrange(5)]
        gone = {*random.sample(range(len(old)), random.randrange(5))}
        if not gone and not new:
            continue
        left = [row for place, row in enumerate(old) if place not in gone]
        kept.apply("t", [*left, *new], inserts=new, deletes=[old[place] for place in gone])
        for each in near_list(kept):
            assert isinstance(each.rule, DenialConstraint)
            assert each.removal == removal_of(each.rule, kept.rows["t"], nulls), each
            assert each.of_rows == len(kept.rows["t"])


def removal_of(rule: DenialConstraint, rows: Rows, nulls: str) -> int:
    """From the definitions."""
    order = rule.order_rule
    if order is None:
        named = [{f"c{c}": cell for c, cell in enumerate(row)} for row in rows]
        number = oracle.removal(rule, {"t": named}, nulls)
        assert number is not None
        return number
    lhs, rhs, *within = (int(name[1:]) for name in (order.lhs, order.rhs, *order.within))
    return nearness(rows, lhs, rhs, order.falling, within[0] if within else None, nulls)[0]


@pytest.fixture
def kept(tmp_path: Path) -> Tables:
    rows: Rows = [(k, k + 1, k // 50) for k in range(300)]
    return Tables(tmp_path / "p", {"t": rows}, Options(kinds=("dcs",)))


def test_a_rule_that_a_few_rows_break_is_near_until_they_are_gone(kept: Tables) -> None:
    kept.expect("t: not (t.c0 > t.c1)", max_error=0.5)
    assert near_list(kept) == ()
    changes = kept.apply("t", inserts=[(500, 3, 1)])
    assert "t: not (t.c0 > t.c1)" in {each.rule for each in changes.near}
    [listed] = [each for each in near_list(kept) if str(each.rule) == "t: not (t.c0 > t.c1)"]
    assert (listed.removal, listed.sentence) == (1, "1 row of 301 would have to go")
    last = kept.apply("t", deletes=[(500, 3, 1)])
    assert all(each.after is not None and each.after.holds for each in last.near)


def test_planted_rules_are_found_and_verified(tmp_path: Path) -> None:
    """And in a table without errors, nothing is."""
    random = Random(4)
    clean: Rows = []
    for number in range(2_000):
        start = random.randrange(1_000)
        clean.append((start, start + random.randrange(1, 30), number % 4, number))
    dirty = [*clean]
    for place in random.sample(range(2_000), 9):
        start, end, group, number = dirty[place]
        dirty[place] = (end, start, group, number)
    for name, rows in (("clean", clean), ("dirty", dirty)):
        shop = Shop(tmp_path / name, 4, rows, Options(kinds=("dcs",), max_predicates=2))
        listed = {str(each.rule): each.removal for each in near_list(shop)}
        assert listed == ({} if name == "clean" else {"t: not (t.c0 >= t.c1)": 9})
        assert shop.verify().equal


def test_what_follows_from_a_near_rule_says_so(tmp_path: Path) -> None:
    """Among rows that agree in c2, the order that nearly holds among all rows holds."""
    rows: Rows = [(k // 2, k // 3, 0) for k in range(300)]
    rows[7] = (3, 400, 1)
    shop = Shop(tmp_path / "p", COLUMNS, rows, Options(kinds=("dcs",), cross_columns=None))
    order = "t: not (t.c0 < s.c0 and t.c1 > s.c1)"
    assert order in {str(each.rule) for each in near_list(shop)}
    ranking = ranked(snapshot(shop.store), ["t"])["t"]["denial_constraints"]
    following = [each for each in ranking if order in map(str, each.implied_by)]
    assert following
    assert [each for each in ranking if each.implied_by] == ranking[-len(following) :]
    for each in following:
        assert "t.c0 < s.c0 and t.c1 > s.c1 and t.c2" in str(each.constraint)


def test_what_there_is_no_time_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: Rows = [(k // 2, k // 3, 0) for k in range(300)]
    asked = Options(kinds=("dcs",), time_budget=3_600.0)
    assert near_of(Shop(tmp_path / "on", COLUMNS, rows, asked)).left_out == ()

    def late(*_given: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(near, "drawn_pairs", late)
    left = near_of(Shop(tmp_path / "late", COLUMNS, rows, asked))
    assert (left.rules, left.left_out) == ((), ("denial constraints",))
    assert left.to_dict()["left_out"] == ["denial constraints"]
