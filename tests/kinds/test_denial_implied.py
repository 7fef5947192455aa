"""Which denial constraints follow from others: what does, no two rows can show to be wrong."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kinds.denial_constraints.implied import covered
from holdfast.model.columns import ColumnFacts
from holdfast.model.comparisons import FIRST, ORDER, SECOND, Comparison, Space
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.grammar import parse
from holdfast.model.near import NearList, NearRule
from holdfast.model.ranking import Ranked
from holdfast.report.snapshot import TableSnapshot
from tests.rules.test_explain import satisfied

COLUMNS = ("c0", "c1", "c2")
OWN = [Comparison(c, c, ORDER) for c in range(3)]
ACROSS = [
    *(Comparison(a, b, ORDER) for a, b in ((0, 1), (1, 0))),
    *(Comparison(0, 1, ORDER, rows) for rows in (FIRST, SECOND)),
]
SPACE = Space("denial", 3, (*OWN, *ACROSS))
CELLS = [
    *((f"t.{each}", f"s.{each}") for each in COLUMNS),
    *(("t.c0", "s.c1"), ("t.c1", "s.c0"), ("t.c0", "t.c1"), ("s.c0", "s.c1")),
]
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
PREDICATES = st.builds(
    lambda cells, op: f"{cells[0]} {op} {cells[1]}", st.sampled_from(CELLS), OPERATORS
)
RULES = st.lists(PREDICATES, min_size=1, max_size=3, unique_by=lambda each: each[:4] + each[-4:])


def rule(text: str) -> DenialConstraint:
    parsed = parse(f"t: not ({text})")
    assert isinstance(parsed, DenialConstraint)
    return parsed


def table(nulls: tuple[int, ...] = (0, 0, 0), near: NearList | None = None) -> TableSnapshot:
    facts = tuple(
        ColumnFacts("t", name, "bigint", n) for name, n in zip(COLUMNS, nulls, strict=True)
    )
    return TableSnapshot(
        "t", 9, COLUMNS, ("bigint",) * 3, 0, (), facts=facts, near=near
    )  # fmt: skip


def ranked(*rules: str) -> list[Ranked]:
    return [Ranked(rule(each), 1 - at / 100) for at, each in enumerate(rules)]


@given(st.lists(RULES, min_size=2, max_size=5), st.booleans())
def test_what_follows_cannot_be_broken_alone(texts: list[list[str]], null: bool) -> None:
    rules = list(dict.fromkeys(rule(" and ".join(each)) for each in texts))
    scored = [Ranked(each, 1 - at / 100) for at, each in enumerate(rules)]
    found = covered(scored, [], table((0, int(null), 0)), SPACE)
    assert {each.constraint for each in found} == set(rules)
    values = [0, 1, 2]
    cells = [values, [*values, None] if null else values, values]
    implied = [each for each in found if each.implied_by]
    for t, s in product([*product(*cells)], repeat=2) if implied else ():

        def broken(each: object, t: object = t, s: object = s) -> bool:
            assert isinstance(each, DenialConstraint)
            return any(
                satisfied(one, two, each, nulls)
                for one, two in ((t, s), (s, t))
                for nulls in ("equal",)
            )

        for each in implied:
            if broken(each.constraint):
                assert any(map(broken, each.implied_by)), each


@pytest.mark.parametrize(
    ("rules", "followed"),
    [
        # By transitivity.
        (("t.c0 <= s.c0 and t.c1 > s.c1", "t.c1 <= s.c1 and t.c2 > s.c2"),
         "t.c0 <= s.c0 and t.c2 > s.c2"),
        # A rule about single rows, applied to both.
        (("t.c0 > t.c1",), "t.c0 > s.c1 and t.c1 <= s.c0"),
    ],
)  # fmt: skip
def test_rules_that_follow_come_last(rules: tuple[str, ...], followed: str) -> None:
    found = covered(ranked(*rules, followed), [], table(), SPACE)
    assert [each.constraint for each in found] == [rule(each) for each in (*rules, followed)]
    assert found[-1].implied_by == tuple(map(rule, rules))
    assert not any(each.implied_by for each in found[:-1])


def test_one_may_follow_from_others_that_are_as_good() -> None:
    within, alone = "t.c0 = s.c0 and t.c1 <= s.c1 and t.c2 > s.c2", "t.c1 <= s.c1 and t.c2 > s.c2"
    found = covered([Ranked(rule(each), 0.5) for each in (within, alone)], [], table(), SPACE)
    assert [each.constraint for each in found if not each.implied_by] == [rule(alone)]
    found = covered(ranked(within, alone), [], table(), SPACE)
    assert not any(each.implied_by for each in found)  # nor should anybody have to read the worse


def test_what_follows_from_dependencies_and_near_rules_names_them() -> None:
    asked = "t.c0 = s.c0 and t.c1 < s.c1 and t.c2 >= s.c2"
    dependency = rule("t.c0 = s.c0 and t.c1 != s.c1")
    [each] = covered(ranked(asked), [dependency], table(), SPACE)
    assert [*map(str, each.implied_by)] == ["t: c0 -> c1"]
    near = NearList((NearRule(parse("t: c0 -> c1"), "t", 1, 9),))
    [each] = covered(ranked(asked), [], table(near=near), SPACE)
    assert [*map(str, each.implied_by)] == ["t: c0 -> c1"]


def test_nothing_follows_from_the_order_of_nulls() -> None:
    """A null is neither below nor above: not (t.c1 < s.c1) does not make it at least as much."""
    rules = ("t.c0 <= s.c0 and t.c1 > s.c1", "t.c1 <= s.c1 and t.c2 > s.c2")
    followed = "t.c0 <= s.c0 and t.c2 > s.c2"
    found = covered(ranked(*rules, followed), [], table((0, 1, 0)), SPACE)
    assert not any(each.implied_by for each in found)
