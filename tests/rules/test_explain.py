"""What is said of one rule, against brute force: what violates it, what would have to go, since
when it holds, and which rules are near it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.api import Profile
from holdfast.kinds import registry
from holdfast.kinds.denial_constraints.predicates import denial_of
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import WEAK, Cell, DenialConstraint, Predicate
from holdfast.model.errors import InputError, SchemaError
from holdfast.model.expectations import Expectation
from holdfast.model.explanation import EXAMPLE_ROWS, Explanation, Removal
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import Shop, folder, row_input, small_limits
from tests.flow.test_law import law
from tests.limits import varied
from tests.strategies import Rows, rows_of

NULLS = st.sampled_from(["equal", "unequal"])
PARTED = st.fixed_dictionaries(
    {
        "segment_rows": st.sampled_from([1 << 20, 5, 2]),
        "undivided_rows": st.sampled_from([10_000, 0]),
        "share_pairs": st.sampled_from([10_000_000, 1]),
        "share_pairs_a_row": st.just(0),
    }
)
COLUMNS = ("c0", "c1", "c2")
SIDES = st.lists(st.sampled_from(COLUMNS), max_size=3, unique=True).map(tuple)
CELLS = st.tuples(st.sampled_from("ts"), st.sampled_from(COLUMNS))
PREDICATES = st.builds(
    Predicate, CELLS, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), CELLS
).filter(lambda each: each.left != each.right)
DENIALS = st.lists(PREDICATES, min_size=1, max_size=3, unique=True).map(
    lambda some: DenialConstraint("t", tuple(some))
)
KEYS = SIDES.map(lambda columns: Key("t", columns))
DEPENDENCIES = st.builds(FunctionalDependency, st.just("t"), SIDES, st.sampled_from(COLUMNS))


def profile_of(shop: Shop) -> Profile:
    profile = Profile(shop.store)
    profile._runner = shop.runner
    return profile


HOLDS: dict[str, Callable[[str], bool]] = {
    "<": lambda outcome: outcome == "<",
    "<=": lambda outcome: outcome in "<=",
    ">": lambda outcome: outcome == ">",
    ">=": lambda outcome: outcome in ">=",
    "=": lambda outcome: outcome == "=",
    "!=": lambda outcome: outcome != "=",
}


def satisfied(t: Any, s: Any, denied: DenialConstraint, nulls: str) -> bool:
    """Whether two rows of integers satisfy all predicates."""
    rows = {"t": t, "s": s}

    def holds(each: Predicate) -> bool:
        (one, left), (two, right) = each.left, each.right
        cells = rows[one][int(left[1:])], rows[two][int(right[1:])]
        return HOLDS[each.op](oracle.outcome(*cells, ordered=True, nulls=nulls))

    return all(map(holds, denied.predicates))


def is_of_rows(rule: Any) -> bool:
    """Whether a rule is about single rows."""
    predicates = rule.predicates if isinstance(rule, DenialConstraint) else ()
    return len({row for each in predicates for row, _ in (each.left, each.right)}) == 1


def violating(rows: Rows, rule: Any, nulls: str) -> list[tuple[int, int]]:
    """Ordered pairs of rows that violate a rule, by position; of a rule about single rows each of
    them, twice."""
    if is_of_rows(rule):
        return [(n, n) for n, row in enumerate(rows) if satisfied(row, row, rule, nulls)]
    return violating_pairs(rows, rule, nulls)


def violating_pairs(rows: Rows, rule: Any, nulls: str) -> list[tuple[int, int]]:
    """Ordered pairs of different rows that satisfy what a rule denies."""
    denied = denial_of(rule)
    numbers = range(len(rows))
    return [p for p in permutations(numbers, 2) if satisfied(rows[p[0]], rows[p[1]], denied, nulls)]


def fewest(rows: Rows, pairs: list[tuple[int, int]]) -> int:
    """The fewest rows that have a row of every violating pair."""
    involved = sorted({row for pair in pairs for row in pair})
    for size in range(len(involved) + 1):
        for gone in combinations(involved, size):
            if all({*pair} & {*gone} for pair in pairs):
                return size
    raise AssertionError(rows)


def cell(row: Any, column: str) -> Any:
    return row[int(column[1:])]


def check_violations(shop: Shop, rows: Rows, rule: Any, told: Explanation) -> None:
    """The numbers and examples are those of the rows."""
    nulls = shop.options.nulls
    pairs = violating(rows, rule, nulls)
    orders = 2 if isinstance(rule, DenialConstraint) else 1
    found = told.violations
    assert told.holds == (not pairs)
    assert told.rows == len(rows)
    if is_of_rows(rule):
        check_single_rows(shop, rows, told, [row for row, _ in pairs])
        return
    assert found.pairs == len(pairs) * orders // 2
    assert found.of_pairs == len(rows) * (len(rows) - 1) * orders // 2
    expected = len(pairs) / (len(rows) * (len(rows) - 1)) if len(rows) > 1 else 0.0
    assert found.error == pytest.approx(expected)
    least = fewest(rows, pairs)
    assert found.removal is not None
    assert found.removal.at_least <= least <= found.removal.at_most
    if not isinstance(rule, DenialConstraint):
        assert found.removal.exact
        lhs = rule.columns if isinstance(rule, Key) else rule.lhs
        groups = {tuple(cell(rows[t], column) for column in lhs) for t, _ in pairs}
        assert found.groups == len(groups)
    if isinstance(rule, DenialConstraint) and rule.order_rule is not None:
        assert found.removal.exact
    assert found.rows == len({row for pair in pairs for row in pair})
    assert bool(found.examples) == bool(pairs)
    for example in found.examples:
        shown = [shop.row(row) for row in example.shown]
        assert not Counter(shown) - Counter(rows)
        if isinstance(rule, FunctionalDependency):
            mine = [row for row in rows if all(cell(row, c) == cell(shown[0], c) for c in rule.lhs)]
            values, all_values = ({cell(row, rule.rhs) for row in some} for some in (shown, mine))
            if nulls == "equal":
                assert len(shown) == len(values) == min(EXAMPLE_ROWS, len(all_values))
        denied = denial_of(rule)
        one, two = shown[:2]
        assert satisfied(one, two, denied, nulls) or satisfied(two, one, denied, nulls)


def check_single_rows(shop: Shop, rows: Rows, told: Explanation, bad: list[int]) -> None:
    """A rule about single rows counts rows, and all that violate it would have to go."""
    found = told.violations
    assert (found.rows, found.groups, found.pairs, found.of_pairs) == (len(bad), None, None, None)
    assert found.error == (len(bad) / len(rows) if rows else 0.0)
    assert found.removal == Removal(len(bad), len(bad))
    assert [each.rows for each in found.examples] == ([len(bad)] if bad else [])
    shown = [shop.row(row) for each in found.examples for row in each.shown]
    assert len(shown) == min(EXAMPLE_ROWS, len(bad))
    assert not Counter(shown) - Counter(rows[n] for n in bad)
    assert not told.named_rows


OPTIONS = st.builds(
    Options,
    kinds=st.sampled_from([("keys", "fds", "dcs"), ("keys", "fds"), ("keys",), ("inds",)]),
    nulls=NULLS,
    max_columns=st.sampled_from([None, None, 1]),
    max_predicates=st.sampled_from([None, None, 1]),
    evidence=st.sampled_from(["counted", "witnessed"]),
    cross_columns=st.sampled_from([None, 0.0]),
)


@given(st.data(), OPTIONS, st.one_of(KEYS, DEPENDENCIES, DENIALS), PARTED)
@law(60)
def test_a_rule_about_one_table(
    data: st.DataObject, options: Options, rule: Any, limits: dict[str, Any]
) -> None:
    rows = data.draw(rows_of(3, 6))
    with folder() as path, small_limits(**limits):
        shop = Shop(Path(path) / "p", 3, rows, options, data.draw(st.sampled_from([1, 3])))
        versions = [rows]
        for _ in range(data.draw(st.integers(0, 2))):
            change = data.draw(batches(3, rows))
            shop.apply(**change.batch)
            rows = change.after
            versions.append(rows)
        told = profile_of(shop).explain(str(rule))
        check_violations(shop, rows, rule, told)
        check_tested(rows, rule, told, options.nulls)
        check_past(shop, versions, rule, told)
        check_nearby(shop, rows, rule, told)


@pytest.mark.parametrize("kinds", [("dcs",), ("keys",)])
@pytest.mark.parametrize("again", ["s.c0 > t.c0", "t.c0 != s.c0", "t.c1 >= s.c1"])
def test_a_rule_that_says_a_thing_twice(tmp_path: Path, kinds: tuple[str, ...], again: str) -> None:
    """However that is written, it is enough to say it once."""
    rows: Rows = [(0, 0, 0), (1, 1, 0), (1, 0, 0)]
    shop = Shop(tmp_path / "p", 3, rows, Options(kinds, evidence="counted"))
    once = "t.c0 < s.c0 and t.c1 > s.c1"
    mirrored = "t.c0 > s.c0 and t.c1 < s.c1"
    for written, minimal in ((once, True), (f"{once} and {again}", False)):
        told = profile_of(shop).explain(f"t: not ({written})")
        assert told.holds
        assert told.nearby.minimal == minimal
        enough = {str(each) for each in told.nearby.enough}
        assert bool(enough & {f"t: not ({once})", f"t: not ({mirrored})"}) != minimal


def check_tested(rows: Rows, rule: Any, told: Explanation, nulls: str) -> None:
    """Pairs that agree on the left of a dependency, or on all but one of a key's columns; of any
    other rule about pairs, those that are equal where it says so, and differ, and not by a null,
    where it compares by order."""
    if not told.holds:
        assert told.violations.tested is None
        return
    denied = denial_of(rule)
    if not denied.predicates:
        return
    said_of_few = is_of_rows(rule) or len(rows) < 2
    if isinstance(rule, DenialConstraint) and (said_of_few or rule.plain is not None):
        return
    if isinstance(rule, DenialConstraint):
        own = all(each.left[1] == each.right[1] for each in denied.predicates)
        could = sum(tries(t, s, rule, nulls) for t, s in permutations(rows, 2))
        assert told.violations.tested == could // (2 if own else 1)
        return
    some = [*combinations(denied.predicates, len(denied.predicates) - 1)]
    if isinstance(rule, FunctionalDependency):
        some = [denied.predicates[:-1]]
    near = sum(
        satisfied(t, s, DenialConstraint("t", fewer), nulls)
        for t, s in permutations(rows, 2)
        for fewer in some
    )
    assert told.violations.tested == near // 2


def tries(t: Any, s: Any, rule: DenialConstraint, nulls: str) -> bool:
    """Whether two rows could have broken a rule, comparison by comparison."""
    by_cells: dict[tuple[Cell, Cell], set[str]] = {}
    for each in rule.predicates:
        one = each if (each.right, each.left) not in by_cells else each.turned
        by_cells.setdefault((one.left, one.right), set()).update(WEAK[one.op])
    for (left, right), weak in by_cells.items():
        if len(weak) == 3:
            return False  # the rule contradicts itself
        ways = {frozenset({"<=", ">="}): ["="], frozenset({"!="}): []}.get(
            frozenset(weak), ["<", ">"]
        )
        shown = [
            satisfied(t, s, DenialConstraint("t", (Predicate(left, op, right),)), nulls)
            for op in ways
        ]
        if ways and not any(shown):
            return False
    return True


def check_past(shop: Shop, versions: list[Rows], rule: Any, told: Explanation) -> None:
    """Every version was as it is told, or nothing is told of it."""
    nulls, options = shop.options.nulls, shop.options
    for each in told.past.stretches:
        for version in range(each.first, each.last + 1):
            truth = not violating(versions[version - 1], rule, nulls)
            assert each.holds in (None, truth)
    looked_for = {
        Key: options.kinds != ("inds",) and options.max_columns is None,
        FunctionalDependency: "fds" in options.kinds and options.max_columns is None,
    }
    if looked_for.get(type(rule)):
        assert all(each.holds is not None for each in told.past.stretches)
        now = told.past.stretches[-1]
        assert told.past.since is not None
        assert told.past.since.version == now.first
        assert not told.past.at_least
        if told.holds:
            assert told.past.stability is not None
            assert told.past.stability.batches == now.last - now.first


def check_nearby(shop: Shop, rows: Rows, rule: Any, told: Explanation) -> None:
    """What is near holds; of keys and dependencies, it is the shortest, or minimal."""
    nulls, near = shop.options.nulls, told.nearby
    for each in (*near.instead, *near.enough):
        assert not violating(rows, each, nulls)
    assert not near.instead or not told.holds
    assert not near.enough or told.holds
    if isinstance(rule, DenialConstraint):
        if near.minimal:
            atoms = [*rule.predicates]
            for size in range(len(atoms)):
                for fewer in combinations(atoms, size):
                    assert violating(rows, DenialConstraint("t", fewer), nulls)
        for each in near.instead:
            assert isinstance(each, DenialConstraint)
            # What it denies is part of what the rule denies.
            for t, s in permutations(range(len(rows)), 2):
                both = {*violating_pairs([rows[t], rows[s]], rule, nulls)}
                assert {*violating_pairs([rows[t], rows[s]], each, nulls)} <= both
        return
    if shop.options.max_columns is not None or near.notes:
        return
    lhs = {*(rule.columns if isinstance(rule, Key) else rule.lhs)}
    rhs = getattr(rule, "rhs", None)
    usable = [c for c in COLUMNS if c != rhs]

    def made(columns: Any) -> Any:
        ordered = tuple(c for c in COLUMNS if c in columns)
        return Key("t", ordered) if rhs is None else FunctionalDependency("t", ordered, rhs)

    sets = [set(some) for size in range(4) for some in combinations(usable, size)]
    held = [some for some in sets if not violating(rows, made(some), nulls)]
    if told.holds:
        least = [some for some in held if some < lhs and not any(o < some for o in held)]
        assert {*near.enough} == {made(some) for some in least}
        assert near.minimal == (not least)
    else:
        more = [some for some in held if some > lhs]
        shortest = min(map(len, more), default=0)
        assert {*near.instead} == {made(some) for some in more if len(some) == shortest}


SINGLE = st.builds(
    lambda some, row: DenialConstraint("t", tuple(some)) if row == "t" else mirrored(some),
    st.lists(
        PREDICATES.filter(lambda each: each.left[0] == "t" == each.right[0]),
        min_size=1, max_size=2, unique=True,
    ),
    st.sampled_from("ts"),
)  # fmt: skip


def mirrored(predicates: list[Predicate]) -> DenialConstraint:
    """The same said of row s."""
    turned = (Predicate(("s", e.left[1]), e.op, ("s", e.right[1])) for e in predicates)
    return DenialConstraint("t", tuple(turned))


@given(rows_of(3, 4), SINGLE, NULLS, st.sampled_from([("keys",), ("dcs",)]), st.booleans())
@law(60)
def test_a_rule_about_single_rows_counts_rows_everywhere(
    rows: Rows, rule: DenialConstraint, nulls: str, kinds: tuple[str, ...], counted: bool
) -> None:
    evidence = "counted" if counted else "witnessed"
    options = Options(kinds=kinds, nulls=nulls, evidence=evidence, cross_columns=0.0)
    bad = [row for row, _ in violating(rows, rule, nulls)]
    with folder() as path:
        shop = Shop(Path(path) / "p", 3, rows, options)
        profile = profile_of(shop)
        told = profile.explain(str(rule))
        assert told.holds == (not bad)
        check_single_rows(shop, rows, told, bad)
        share = len(bad) / len(rows) if rows else 0.0
        assert profile.error(str(rule)) == pytest.approx(share)
        shown = profile.violations(str(rule), limit=len(rows) + 1)
        assert Counter(shop.row(row) for (row,) in shown) == Counter(rows[n] for n in bad)
        assert len(profile.violations(str(rule), limit=1)) == min(1, len(bad))
        try:
            wanted = [Expectation(str(rule))]
            [expected] = flow.expect(shop.runner, shop.store, wanted, no_progress)
        except InputError as error:
            assert "no cells satisfy" in str(error)  # noqa: PT017  the others are expected
            assert not bad
            return
        assert expected.after.holds == told.holds
        assert expected.after.violations == told.violations.rows
        assert expected.after.error == told.violations.error


def test_one_row_says_nothing_of_rules_near_one_about_single_rows(tmp_path: Path) -> None:
    """That there are no two rows holds, and does not imply it."""
    for number, (rows, holds) in enumerate([([(1, 2)], False), ([(1, 1)], True)]):
        shop = Shop(tmp_path / str(number), 2, rows, Options(kinds=("dcs",), cross_columns=0.0))
        assert [str(each) for each in profile_of(shop).denial_constraints("t")] == ["t: not ()"]
        told = profile_of(shop).explain("t: not (t.c0 != t.c1)")
        assert told.holds == holds
        assert (told.nearby.instead, told.nearby.enough, told.nearby.minimal) == ((), (), None)
        assert [each.holds for each in told.past.stretches] == [None]
        shop.apply(inserts=[(3, 3)])
        told = profile_of(shop).explain("t: not (t.c0 != t.c1)")
        assert [each.holds for each in told.past.stretches] == [None, holds]


@given(rows_of(3, 8), NULLS, st.sampled_from(COLUMNS), PARTED)
@law(15)
def test_a_column_that_is_to_have_values(
    rows: Rows, nulls: str, column: str, limits: dict[str, Any]
) -> None:
    with folder() as path, small_limits(**limits):
        shop = Shop(Path(path) / "p", 3, rows, Options(kinds=("keys",), nulls=nulls))
        told = profile_of(shop).explain(str(NotNull("t", column)))
    empty = [row for row in rows if cell(row, column) is None]
    assert told.holds == (not empty)
    assert told.violations.rows == len(empty)
    assert told.violations.error == (len(empty) / len(rows) if rows else 0.0)
    assert [each.holds for each in told.past.stretches] == [told.holds]
    shown = [row for each in told.violations.examples for row in each.shown]
    assert len(shown) == min(4, len(empty))
    assert all(row[column] is None for row in shown)


# Inclusions


@given(
    rows_of(3, 7), rows_of(3, 7), st.permutations(COLUMNS), st.permutations(COLUMNS),
    st.integers(1, 3), st.sampled_from(["ignored", "values"]),
    st.sampled_from([("inds",), ("keys",)]), PARTED,
)  # fmt: skip
@law(40)
def test_an_inclusion(
    left: Rows, right: Rows, one: list[str], two: list[str], arity: int, nulls: str,
    kinds: tuple[str, ...], limits: dict[str, Any],
) -> None:  # fmt: skip
    pairs = sorted(zip(one[:arity], two[:arity], strict=True))
    text = f"a({', '.join(a for a, _ in pairs)}) in b({', '.join(b for _, b in pairs)})"
    options = registry.completed(Options(kinds=kinds, inclusion_nulls=nulls, max_arity=2))
    with folder() as path, small_limits(**limits):
        store = Store.create(Path(path) / "p")
        inputs = {"a": row_input(3, left), "b": row_input(3, right)}
        flow.profile(InProcess(2), store, inputs, options, no_progress)
        profile = Profile(store)
        profile._runner = InProcess(2)
        told = profile.explain(text, limit=2)

    def tuples(rows: Rows, columns: list[str]) -> list[tuple[Any, ...]]:
        found = [tuple(cell(row, column) for column in columns) for row in rows]
        return [each for each in found if nulls == "values" or None not in each]

    def lacking(chosen: list[tuple[str, str]]) -> list[tuple[Any, ...]]:
        known = {*tuples(right, [b for _, b in chosen])}
        return [each for each in tuples(left, [a for a, _ in chosen]) if each not in known]

    mine, missing = tuples(left, [a for a, _ in pairs]), lacking(pairs)
    assert told.holds == (not missing)
    assert told.violations.rows == len(missing)
    assert told.violations.groups == len({*missing})
    assert told.violations.tested == (len(mine) if told.holds else None)
    covered = len({*mine} - {*missing}) / len({*mine}) if mine else 1.0
    assert told.violations.coverage == pytest.approx(covered)
    sizes = sorted(Counter(missing).values(), reverse=True)
    assert [each.rows for each in told.violations.examples] == sizes[:2]
    for example in told.violations.examples:
        for row in example.shown:
            assert tuple(row[a] for a, _ in pairs) in missing
    [stretch] = told.past.stretches
    assert stretch.holds in (None, told.holds)
    if kinds == ("inds",) and arity == 1:
        assert stretch.holds is told.holds
    held = {
        some
        for size in range(1, arity)
        for some in combinations(pairs, size)
        if not lacking([*some])
    }
    largest = {some for some in held if not any({*some} < {*other} for other in held)}
    if not told.holds:
        parts = [each for each in told.nearby.instead if isinstance(each, InclusionDependency)]
        found = {
            tuple((a.column, b.column) for a, b in zip(*each.sides, strict=True)) for each in parts
        }
        assert found == largest


# The past


def test_when_and_by_which_batch_it_broke(tmp_path: Path) -> None:
    rows: Rows = [(1, 1, 1), (2, 1, 1)]
    shop = Shop(tmp_path / "p", 3, rows)
    shop.apply(inserts=[(3, 1, 2)], batch_id="monday")
    shop.apply(inserts=[(3, 2, 2)], batch_id="tuesday")
    profile = profile_of(shop)
    told = profile.explain("t: key(c0)")
    assert not told.holds
    assert told.past.since is not None
    assert (told.past.since.version, told.past.since.batch_id) == (3, "tuesday")
    assert told.past.broke == 1
    assert [(e.first, e.last, e.holds) for e in told.past.stretches] == [
        (1, 2, True), (3, 3, False)
    ]  # fmt: skip
    assert [str(each) for each in told.nearby.instead] == ["t: key(c0, c1)"]
    shop.apply(deletes=[(3, 2, 2)], batch_id="wednesday")
    shop.apply(inserts=[(4, 2, 2), (5, 5, 5)])
    told = profile.explain("t: key(c0)")
    assert told.holds
    assert told.past.since is not None
    assert told.past.since.version == 4
    stability = told.past.stability
    assert stability is not None
    assert (stability.batches, stability.rows, stability.broke) == (1, 2, 1)
    longer = profile.explain("t: key(c0, c1)")
    assert [str(each) for each in longer.nearby.enough] == ["t: key(c0)"]
    assert longer.past.stability is not None
    assert longer.past.stability.batches == 4


def test_a_batch_of_several_tables(tmp_path: Path) -> None:
    store, runner = Store.create(tmp_path / "p"), InProcess(2)
    inputs = {name: row_input(1, [(1,), (2,)]) for name in ("a", "b")}
    flow.profile(runner, store, inputs, registry.completed(Options()), no_progress)
    batches = {
        "a": flow.Batch(inserts=row_input(1, [(3,), (4,)]), batch_id="monday"),
        "b": flow.Batch(inserts=row_input(1, [(3,)]), batch_id="monday"),
    }
    flow.apply_together(runner, store, batches, no_progress)
    profile = Profile(store)
    profile._runner = runner
    told = profile.explain("a(c0) in b(c0)").past
    assert told.since is not None
    assert told.since.batch_id == "monday"
    assert [(e.table, e.inserted) for e in told.since.tables] == [("a", 2), ("b", 1)]
    kept = profile.explain("b(c0) in a(c0)").past.stability
    assert kept is not None
    assert (kept.batches, kept.rows) == (1, 3)
    assert profile.rank("a")["keys"][0].stability is not None


def test_what_was_before_a_kind_was_looked_for_is_not_known(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 3, [(1, 1, 1), (2, 1, 1)], Options(kinds=("inds",)))
    profile = profile_of(shop)
    assert profile.explain("t: key(c0)").past.since is None
    profile.add_kinds("keys")
    told = profile.explain("t: key(c0)")
    assert told.past.at_least
    assert told.past.since is not None
    assert told.past.since.version == 2
    assert [each.holds for each in told.past.stretches] == [None, True]


def test_versions_that_are_gone_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path / "p", 3, [(1, 1, 1), (2, 1, 1)])
    first = shop.store.read().table("t").evidence["agreement"].files["sets"]
    varied(monkeypatch, difference_share=0.0)
    shop.apply(inserts=[(2, 3, 3)])
    assert profile_of(shop).explain("t: key(c0)").past.broke == 1
    now = shop.store.read().table("t").evidence["agreement"].files["sets"]
    assert not {*first} & {*now}
    for file in first:
        Path(shop.store.file(file)).unlink()
    told = profile_of(shop).explain("t: key(c0)")
    assert told.past.at_least
    assert [each.holds for each in told.past.stretches] == [None, False]


def test_so_many_pairs_that_they_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: Rows = [(1, 4, 1), (2, 3, 1), (3, 1, 1)]
    shop = Shop(tmp_path / "p", 3, rows, Options(kinds=("keys",)))
    varied(monkeypatch, examined_pairs=2)
    rule = "t: not (t.c0 < s.c0 and t.c1 > s.c1 and t.c2 {} s.c2)"
    told = profile_of(shop).explain(rule.format("<="), limit=0)
    assert not told.holds
    assert (told.violations.pairs, told.violations.rows, told.violations.removal) == (None,) * 3
    assert told.violations.examples == ()
    assert profile_of(shop).explain(rule.format("<")).holds
    ordered = profile_of(shop).explain("t: not (t.c0 < s.c0 and t.c1 > s.c1)").violations
    assert (ordered.pairs, ordered.rows) == (3, 3)
    assert ordered.removal is not None
    assert (ordered.removal.at_least, ordered.removal.exact) == (2, True)


def test_rules_that_cannot_be_asked(tmp_path: Path) -> None:
    profile = profile_of(Shop(tmp_path / "p", 3, [(1, 1, 1), (2, 2, 2)]))
    for text in ("t: key(c9)", "t: c9 -> c0", "t: c0 -> c9", "t: c9 not null", "t(c9) in t(c0)"):
        with pytest.raises((InputError, SchemaError), match="c9"):
            profile.explain(text)
    with pytest.raises(InputError, match="no table 'u'"):
        profile.explain("u: key(c0)")
    with pytest.raises(InputError, match="limit cannot be negative"):
        profile.explain("t: key(c0)", limit=-1)
    assert parse("t: key(c0)") == profile.explain("t: key(c0, c0)").rule
