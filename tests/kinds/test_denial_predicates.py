"""Sets of atoms as constraints and back, what constraints are called, and the papers' examples."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cover.cover import Cover
from holdfast.evidence.mirrors import mirrored
from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints import ordering as shown
from holdfast.kinds.denial_constraints.predicates import atoms_of, constraints
from holdfast.kinds.denial_constraints.reduction import closed, is_trivial, reported
from holdfast.model import denial_constraints as model
from holdfast.model.comparisons import (
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
    agreements,
)
from holdfast.model.denial_constraints import DenialConstraint, rules_first
from holdfast.model.errors import InputError
from holdfast.model.grammar import parse
from tests import oracle
from tests.kinds.spaces import spaces, told

COLUMNS = ("a", "b", "c d")


def denial(text: str) -> DenialConstraint:
    constraint = parse(text)
    assert isinstance(constraint, DenialConstraint)
    return constraint


@given(data=st.data(), space=spaces(columns=3))
def test_a_set_is_read_back_from_its_text(data: st.DataObject, space: Space) -> None:
    atoms = data.draw(st.sets(st.sampled_from(range(space.atoms)))) if space.atoms else set()
    [constraint] = constraints(bitsets.from_columns([atoms], space.atoms), space, "orders", COLUMNS)
    assert atoms_of(denial(str(constraint)), space, COLUMNS) == tuple(sorted(atoms))
    flipped = tuple(each.turned for each in reversed(constraint.predicates))
    assert atoms_of(DenialConstraint("orders", flipped), space, COLUMNS) == tuple(sorted(atoms))
    places = [
        (COLUMNS.index(each.left[1]), COLUMNS.index(each.right[1]))
        for each in constraint.predicates
    ]
    assert places == sorted(places)
    assert all(each.left[0] == "t" or each.right[0] == "s" for each in constraint.predicates)


@given(data=st.data(), space=spaces())
def test_a_constraint_denies_what_its_atoms_deny(data: st.DataObject, space: Space) -> None:
    """With strong operators and with weak ones, a pair of rows satisfies all or not."""
    atoms = data.draw(st.sets(st.sampled_from(range(space.atoms)))) if space.atoms else set()
    masks = bitsets.from_columns([atoms], space.atoms)
    [constraint] = constraints(masks, space, "orders", COLUMNS)
    cell = st.sampled_from([0, 1, 2, None])
    t, s = data.draw(st.tuples(st.tuples(cell, cell), st.tuples(cell, cell)))
    nulls = data.draw(st.sampled_from(["equal", "unequal"]))
    shown = oracle.evidence(t, s, told(space), nulls)
    rows = {"t": t, "s": s}
    holding = {
        "<": "<", "<=": "<=", "=": "=", ">": ">", ">=": ">=", "!=": "<>?",
    }  # fmt: skip
    outcomes = [
        (
            oracle.outcome(
                rows[each.left[0]][COLUMNS.index(each.left[1])],
                rows[each.right[0]][COLUMNS.index(each.right[1])],
                True,
                nulls,
            ),
            each.op,
        )
        for each in constraint.predicates
    ]
    assert all(seen in holding[op] for seen, op in outcomes) == (atoms <= shown)


def space_of_all() -> Space:
    return Space(
        "all",
        4,
        (
            Comparison(0, 0, ORDER),
            Comparison(1, 1, ORDER),
            Comparison(2, 2, EQUALITY),
            *(Comparison(a, 1 - a, ORDER) for a in range(2)),
            *(Comparison(0, 1, ORDER, rows) for rows in (FIRST, SECOND)),
        ),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s.a > t.a", "t.a < s.a"),
        ("t.a <= s.a and t.a >= s.a", "t.a = s.a"),
        ("t.b > t.a", "t.a < t.b"),
        ("s.b >= s.a", "s.a <= s.b"),
        ("s.a = t.b", "t.b = s.a"),
        ("s.name != t.name", "t.name != s.name"),
    ],
)
def test_constraints_can_be_written_in_several_ways(one: str, other: str) -> None:
    columns = ("a", "b", "name", "off")
    atoms = [
        atoms_of(denial(f"orders: not ({each})"), space_of_all(), columns) for each in (one, other)
    ]
    assert atoms[0] == atoms[1]
    masks = bitsets.from_columns(atoms[:1], space_of_all().atoms)
    assert constraints(masks, space_of_all(), "orders", columns)[0].body == f"not ({other})"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("t.x = s.a", "table 'orders' has no column 'x'; it has a, b, name, off"),
        ("t.name < s.name", "t.name < s.name .* name is compared by = and != alone"),
        ("t.off = s.off", "t.off = s.off .* column off is not compared; compared are a, b, name"),
        ("t.a = s.name", "in two rows, a is not compared with name, but with a, b"),
        ("t.name = t.a", "in one row, name is not compared with a, but with no column"),
        ("t.a = t.a", "t.a = t.a compares a cell of table 'orders' with itself"),
    ],
)
def test_what_a_space_cannot_say_is_named(written: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        atoms_of(denial(f"orders: not ({written})"), space_of_all(), ("a", "b", "name", "off"))


def test_agreement_alone_cannot_say_that_cells_differ() -> None:
    with pytest.raises(InputError, match="a is compared by = alone"):
        atoms_of(denial("orders: not (t.a != s.a)"), agreements(1), ("a",))


COMPATIBLE_WITHIN = "order-compatible: a ↑ ~ b ↑, within c"
FORMS = [
    ("", "key", None),
    ("t.a = s.a and t.b = s.b", "key", None),
    ("t.a <= s.a and s.a <= t.a", "key", None),
    ("t.a = s.a and t.b != s.b", "fd", None),
    ("t.b != s.b", "fd", None),
    ("t.a = s.a and t.b != s.b and t.c != s.c", "other", None),
    ("t.a <= s.a and t.b > s.b", "order", "order: a ↑ → b ↑"),
    ("s.a >= t.a and s.b < t.b", "order", "order: a ↑ → b ↑"),
    ("t.a >= s.a and t.b < s.b", "order", "order: a ↑ → b ↑"),
    ("t.a < s.a and t.b >= s.b", "order", "order: b ↑ → a ↑"),
    ("t.a <= s.a and t.b < s.b", "order", "order: a ↑ → b ↓"),
    ("t.a < s.a and t.b > s.b", "order", "order-compatible: a ↑ ~ b ↑"),
    ("t.a > s.a and t.b > s.b", "order", "order-compatible: a ↑ ~ b ↓"),
    ("t.a <= s.a and t.b >= s.b", "order", "strict order: a ↑ → b ↑"),
    (
        "t.c = s.c and t.a <= s.a and t.b > s.b and t.`d e` = s.`d e`",
        "conditional",
        "order: a ↑ → b ↑, within c, `d e`",
    ),
    ("t.c = s.c and t.a > s.a and t.b < s.b", "conditional", COMPATIBLE_WITHIN),
    ("t.c != s.c and t.a <= s.a and t.b > s.b", "other", None),
    ("t.a <= s.a and t.b > s.b and t.c < s.c", "other", None),
    ("t.a <= s.a", "other", None),
    ("t.a = s.a and t.b < s.b", "other", None),
    ("t.a <= s.b and t.b > s.b", "other", None),
    ("t.a = t.b", "other", None),
    ("t.a = s.a and t.a != s.a", "other", None),
]


@pytest.mark.parametrize(("written", "form", "rule"), FORMS)
def test_forms(written: str, form: str, rule: str | None) -> None:
    constraint = denial(f"staff: not ({written})")
    assert constraint.form == constraint.to_dict()["form"] == form
    assert (str(constraint.order_rule) if constraint.order_rule else None) == rule
    assert (constraint.sentence is None) == (rule is None)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("t.a <= s.a and t.b > s.b", "b rises with a"),
        ("t.a <= s.a and t.b < s.b", "b falls when a rises"),
        ("t.a < s.a and t.b > s.b", "b never falls when a rises"),
        ("t.a < s.a and t.b < s.b", "b never rises when a rises"),
        ("t.a <= s.a and t.b >= s.b", "b rises with a, without ties"),
        ("t.c = s.c and t.a <= s.a and t.b > s.b", "b rises with a, within c"),
    ],
)
def test_sentences(written: str, sentence: str) -> None:
    assert denial(f"staff: not ({written})").sentence == sentence


@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 2])] * 3), max_size=5))
def test_order_rules_mean_what_they_say(rows: list[tuple[int, int, int]]) -> None:
    """Sorted by the left side, the right side is in order too, and ties are as said."""
    names = ("a", "b", "c")
    for written, form, _ in FORMS:
        if form not in ("order", "conditional") or "d e" in written:
            continue
        constraint = denial(f"staff: not ({written})")
        rule = constraint.order_rule
        assert rule is not None
        sign = -1 if rule.falling else 1
        within = [names.index(column) for column in rule.within]
        lhs, rhs = names.index(rule.lhs), names.index(rule.rhs)
        pairs = [
            (t[lhs] - s[lhs], sign * (t[rhs] - s[rhs]))
            for t, s in permutations(rows, 2)
            if all(t[c] == s[c] for c in within)
        ]
        expected = {
            "order-compatible": all(left * right >= 0 for left, right in pairs),
            "order": all(right <= 0 for left, right in pairs if left <= 0),
            "strict order": all(right < 0 for left, right in pairs if left <= 0),
        }[rule.strength]
        space = Space("order", 3, tuple(Comparison(c, c, ORDER) for c in range(3)))
        atoms = set(atoms_of(constraint, space, names))
        shown = [oracle.evidence(t, s, told(space)) for t, s in permutations(rows, 2)]
        assert expected == (not any(atoms <= each for each in shown))


def test_order_rules_are_shown_first_and_shorter_ones_before_longer() -> None:
    written = [
        "t.a <= s.a and t.b > s.b",
        "t.b <= s.b and t.c > s.c",
        "t.a = s.a and t.b < s.b and t.c > s.c",
        "t.b != s.b",
        "t.c != s.c",
        "t.a = s.a and t.b = s.b",
        "t.a < s.a and t.b = s.b",
        "t.a = s.a and t.b = s.b and t.c = s.c",
    ]
    constraints = [denial(f"staff: not ({each})") for each in written]
    assert rules_first(constraints[::-1], ("a", "b", "c")) == constraints


@given(data=st.data(), space=spaces(columns=3))
def test_sets_are_shown_in_the_order_of_their_constraints(
    data: st.DataObject, space: Space
) -> None:
    atoms = st.sets(st.integers(0, space.atoms - 1)) if space.atoms else st.just(set())
    masks = bitsets.from_columns(data.draw(st.lists(atoms, max_size=12)), space.atoms)
    masks = bitsets.distinct(masks[~is_trivial(masks, space)])
    made = constraints(masks, space, "orders", COLUMNS)
    assert [model.FORMS[k] for k in shown.forms(masks, space)] == [each.form for each in made]
    ordered = [made[k] for k in shown.rules_first(masks, space)]
    assert ordered == rules_first(made, COLUMNS)


# --- the papers' examples -----------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A table of a paper; the columns that are compared by order, and with each other."""

    columns: tuple[str, ...]
    ordered: frozenset[str]
    across: tuple[tuple[str, str], ...] = ()

    @property
    def space(self) -> Space:
        place = self.columns.index
        alone = [
            Comparison(c, c, ORDER if name in self.ordered else EQUALITY)
            for c, name in enumerate(self.columns)
        ]
        pairs = [(place(a), place(b)) for one, two in self.across for a, b in
                 [(one, two), (two, one)]]  # fmt: skip
        return Space("paper", len(self.columns), (*alone, *(Comparison(*p, ORDER) for p in pairs)))

    def holds(self, rows: list[tuple[object, ...]], text: str) -> bool:
        atoms = set(atoms_of(denial(text), self.space, self.columns))
        pairs = permutations(rows, 2)
        return not any(atoms <= oracle.evidence(t, s, told(self.space)) for t, s in pairs)

    def is_implied(self, sets: bitsets.Masks, text: str) -> bool:
        """Whether one of the sets, or its mirror image, lies in the closure of a constraint."""
        atoms = atoms_of(denial(text), self.space, self.columns)
        closure, _ = closed(bitsets.from_columns([atoms], self.space.atoms), self.space)
        both = np.concatenate([sets, mirrored(sets, self.space)])
        return bool((both & ~closure == 0).all(axis=1).any())

    def reported(self, rows: list[tuple[object, ...]]) -> bitsets.Masks:
        shown = {oracle.evidence(t, s, told(self.space)) for t, s in permutations(rows, 2)}
        masks = bitsets.from_columns(list(shown), self.space.atoms)
        return reported(Cover.build(self.space.atoms, masks).minimal, self.space)


STAFF = Example(
    ("ID", "Name", "Department", "D-Code", "Hired", "Salary"), frozenset({"ID", "Hired", "Salary"})
)
STAFF_ROWS: list[tuple[object, ...]] = [
    (103, "J. Miller", "Sales", "SAL", 2008, 3200),
    (197, "J. Miller", "Accounting", "ACT", 2012, 3500),
    (338, "P. Smith", "Sales", "SAL", 2012, 2900),
    (631, "S. Blake", "Accounting", "ACT", 2012, 3200),
    (664, "P. Dean", "Sales", "SAL", 2016, 2700),
]


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("t.Name = s.Name and t.Hired = s.Hired", "key"),
        ("t.Department = s.Department and t.`D-Code` != s.`D-Code`", "fd"),
        ("t.ID <= s.ID and t.Hired > s.Hired", "order"),
        # The paper's text: of one department, "the newer employee should not earn more than the
        # older". Its figure has t.Salary > s.Salary, which the first and third row violate.
        ("t.`D-Code` = s.`D-Code` and t.Hired < s.Hired and t.Salary < s.Salary", "conditional"),
    ],
)
def test_staff_of_the_hydra_paper(written: str, form: str) -> None:
    text = f"staff: not ({written})"
    assert denial(text).form == form
    assert STAFF.holds(STAFF_ROWS, text)
    assert STAFF.is_implied(STAFF.reported(STAFF_ROWS), text)


def test_the_fourth_constraint_of_the_hydra_paper_as_printed_is_violated() -> None:
    written = "t.`D-Code` = s.`D-Code` and t.Hired < s.Hired and t.Salary > s.Salary"
    assert not STAFF.holds(STAFF_ROWS, f"staff: not ({written})")
    assert not STAFF.is_implied(STAFF.reported(STAFF_ROWS), f"staff: not ({written})")


TAX = Example(
    (
        "Name", "Date", "SSN", "NUM", "MS", "CH", "PH", "ST", "ZIP", "SAL", "RATE", "TXA", "STX",
        "CTX",
    ),
    frozenset({"Date", "NUM", "SAL", "RATE", "TXA", "STX", "CTX"}),
    (("STX", "CTX"),),
)  # fmt: skip
TABLE_1 = """
Sadam   20140410 719975883 1448 S Y 6059466 CO 80612 32000 1.24 3000 400 2000
Duparc  20140224 303975883 1401 M N 5872027 CO 80612 50000 1.42 1500 0   0
Hannen  20140413 701178073 1486 M N 1638673 ND 58671 30000 1.21 3400 0   0
Beke    20130403 801350874 1386 M Y 6192334 UT 84308 55000 2.04 1300 0   40
Sadam   20140329 719975883 1427 S N 6059466 CO 80612 7500  1.21 0    50  0
Hannen  20130404 701178073 1386 S Y 1638673 ND 58671 6500  0.24 900  0   1000
Motwani 20150324 970122634 1547 M N 8484643 CO 80209 95000 2.85 1100 0   0
"""
TABLE_2 = """
Uckun   20130322 435849162 1368 M Y 5872027 UT 84308 40000 1.43 3300 0   0
Hannen  20140218 701178073 1478 S N 1638673 ND 58671 33000 2.05 1400 40  40
Beke    20150213 801350874 1533 S Y 6192334 UT 84308 32000 1.23 3200 0   1000
"""
THIRD = "t.TXA > s.TXA and t.SAL < s.SAL and t.RATE > s.RATE"


def tax_rows(text: str) -> list[tuple[object, ...]]:
    return [
        tuple(
            float(cell) if name in TAX.ordered else cell
            for name, cell in zip(TAX.columns, line.split(), strict=True)
        )
        for line in text.strip().splitlines()
    ]


@pytest.mark.parametrize(
    ("written", "before", "after"),
    [
        ("t.SSN = s.SSN and t.Name != s.Name", True, True),
        ("t.ZIP = s.ZIP and t.ST != s.ST", True, True),
        (THIRD, True, False),
        ("t.SSN = s.SSN and t.Date < s.Date and t.NUM >= s.NUM", True, True),
        ("t.STX = s.STX and t.STX > s.CTX and t.MS != s.MS", True, True),
        (f"{THIRD} and t.ST = s.ST", True, True),
        (f"{THIRD} and t.Date = s.Date", True, True),
    ],
)
def test_taxes_of_the_incdc_paper(
    tax_reported: dict[str, bitsets.Masks], written: str, before: bool, after: bool
) -> None:
    """What holds in table 1, and what still holds with the rows of table 2."""
    text = f"tax: not ({written})"
    for rows, holds in ((TABLE_1, before), (TABLE_1 + TABLE_2.lstrip(), after)):
        assert TAX.holds(tax_rows(rows), text) == holds
        assert TAX.is_implied(tax_reported[rows], text) == holds


@pytest.fixture(scope="module")
def tax_reported() -> dict[str, bitsets.Masks]:
    return {rows: TAX.reported(tax_rows(rows)) for rows in (TABLE_1, TABLE_1 + TABLE_2.lstrip())}
