"""The law for both ways to know evidence: agree-sets, dependencies and errors, kept under every
change, and moved from one way to the other."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api import Profile
from holdfast.evidence import strategy as ways
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.errors import InputError, SchemaError, UnknownTableError
from holdfast.model.options import Options
from holdfast.runtime.runner import InProcess
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import KINDS, Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.strategies import Rows, rows_of

OPTIONS = st.builds(
    Options,
    kinds=st.just(("keys", "fds")),
    nulls=st.sampled_from(["equal", "unequal"]),
    max_columns=st.sampled_from([None, None, 1, 2]),
    max_error=st.sampled_from([None, 0.05, 0.3]),
    evidence=st.just("counted"),
)


def assert_counted(shop: Shop, rows: Rows, options: Options) -> None:
    """What is kept of the pairs is what the oracle counts."""
    profile = Profile.open(shop.store.path)
    columns, nulls, most = shop.columns, options.nulls, options.max_columns
    names = [f"c{c}" for c in range(columns)]

    found = {
        tuple(names.index(name) for name in each.columns): each.pairs
        for each in profile.agree_sets("t")
    }
    assert found == oracle.counted_agree_sets(rows, columns, nulls)

    pairs = len(rows) * (len(rows) - 1) // 2
    # As listed, and for any other bound that is asked for.
    now = profile.snapshot().tables["t"]
    asked: dict[float, Any]
    asked = {bound: (profile.functional_dependencies("t", bound), profile.keys("t", bound))
             for bound in (0.0, 0.15, 1.0)}  # fmt: skip
    asked[options.max_error or 0.0] = now.functional_dependencies or (), now.approximate_keys
    for bound, (dependencies, some) in asked.items():
        told = {
            (tuple(names.index(name) for name in fd.lhs), names.index(fd.rhs)): fd.error
            for fd in dependencies
        }
        expected = dict.fromkeys(oracle.dependencies(rows, columns, nulls, most), 0.0)
        keys = {}
        for right in (*range(columns), None) if bound else ():
            near = oracle.approximate(rows, columns, right, bound, most, nulls)
            for left, wrong in near.items():
                if wrong and right is None:
                    keys[left] = wrong / pairs
                elif wrong:
                    expected[left, right] = wrong / pairs
        assert told == expected
        assert {
            tuple(names.index(name) for name in key.columns): key.error for key in some if key.error
        } == keys
    left = tuple(range(0, columns, 2))
    wrong = oracle.violations(rows, left, columns - 1, nulls)
    rule = FunctionalDependency("t", tuple(names[c] for c in left), names[-1])
    error = profile.error(str(rule))
    assert error == (wrong / pairs if pairs else 0.0)


@pytest.mark.slow
@law(20)
@given(data=st.data(), options=OPTIONS, tasks=st.integers(1, 3))
def test_counted_evidence_is_kept(data: st.DataObject, options: Options, tasks: int) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    rows = data.draw(rows_of(len(kinds), 12))
    with folder() as path, small_limits(**data.draw(LIMITS)):
        shop = Shop(Path(path) / "p", kinds, rows, options, tasks)
        assert_counted(shop, rows, options)
        first = oracle.counted_agree_sets(rows, shop.columns, options.nulls)
        for _ in range(data.draw(st.integers(1, 3))):
            change = data.draw(batches(len(kinds), rows))
            before = set(shop.now.functional_dependencies or ())
            told = shop.apply(**change.batch)
            rows = change.after
            shop.assert_exact(rows)
            assert_counted(shop, rows, options)
            now = set(shop.now.functional_dependencies or ())
            exact = {fd for fd in now - before if fd.error == 0}
            known = {(fd.lhs, fd.rhs) for fd in before if fd.error == 0}
            fresh = {(fd.lhs, fd.rhs) for fd in exact} - known
            assert told["functional_dependencies"].counts["gained"] == len(fresh)
        last = oracle.counted_agree_sets(rows, shop.columns, options.nulls)
        profile = Profile.open(shop.store.path)
        ends = [profile.snapshot(v).tables["t"].functional_dependencies for v in (1, None)]
        old, new = ([fd for fd in found or () if not fd.error] for found in ends)
        differs = profile.diff(1, shop.store.head())["t"]
        dependencies = differs["functional_dependencies"]
        gained, lost = dependencies.gained, dependencies.lost
        assert sorted(gained, key=str) == sorted({*new} - {*old}, key=str)
        assert sorted(lost, key=str) == sorted({*old} - {*new}, key=str)
        since, then = (
            {tuple(int(name[1:]) for name in each.columns): each.pairs for each in found}
            for found in (profile.agree_sets("t", since=1), profile.agree_sets("t", at=1))
        )
        assert then == first
        assert list(then) == sorted(then, key=lambda columns: (len(columns), columns))
        changed = {
            columns: last.get(columns, 0) - first.get(columns, 0) for columns in {*first, *last}
        }
        assert since == {columns: change for columns, change in changed.items() if change}
        assert not any(shop.verify().differences.values())


def assert_error(shop: Shop, rows: Rows, nulls: str) -> None:
    """The error of a candidate is the oracle's, whichever way evidence is known."""
    profile = Profile.open(shop.store.path)
    profile._runner = shop.runner
    columns = shop.columns
    left = tuple(range(0, columns, 2))
    pairs = len(rows) * (len(rows) - 1) // 2
    names = tuple(f"c{c}" for c in left)
    wrong = oracle.violations(rows, left, columns - 1, nulls)
    rule = FunctionalDependency("t", names, f"c{columns - 1}")
    assert profile.error(str(rule)) == (wrong / pairs if pairs else 0.0)
    same = sum(
        all(oracle._agree(one[c], two[c], nulls) for c in left)
        for one, two in combinations(rows, 2)
    )
    assert profile.error(str(Key("t", names))) == (same / pairs if pairs else 0.0)


@pytest.mark.slow
@law(20)
@given(data=st.data(), nulls=st.sampled_from(["equal", "unequal"]), tasks=st.integers(1, 3))
def test_a_table_moves_from_one_way_to_the_other(
    data: st.DataObject, nulls: str, tasks: int
) -> None:
    """Whenever it has become too long to be counted, or short enough again."""
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    rows = data.draw(rows_of(len(kinds), 12))
    options = Options(kinds=("keys", "fds"), nulls=nulls)
    with folder() as path, small_limits(**data.draw(LIMITS)) as patch:
        patch.setattr(ways, "_QUICK", 6.0)
        patch.setattr(ways, "_SLACK", 1.2)
        patch.setattr(ways, "expected_seconds", lambda rows, *_: float(rows))
        shop = Shop(Path(path) / "p", kinds, rows, options, tasks)
        for step in range(data.draw(st.integers(2, 4))):
            way = shop.choice.strategy
            if step == 0 or not 5 <= len(rows) <= 7.2:
                assert way == ("counted" if len(rows) <= 6 else "witnessed")
            shop.assert_exact(rows)
            assert_error(shop, rows, nulls)
            change = data.draw(batches(len(kinds), rows))
            before = {fd for fd in shop.now.functional_dependencies or () if fd.error == 0}
            told = shop.apply(**change.batch)
            rows = change.after
            now = {fd for fd in shop.now.functional_dependencies or () if fd.error == 0}
            changes = told["functional_dependencies"]
            assert set(changes.gained) == now - before
            assert set(changes.lost) == before - now
            for broken in changes.broken:
                assert isinstance(broken.constraint, FunctionalDependency)
                shop.assert_violated(broken.constraint, broken.witness)
            for shorter in changes.superseded:
                assert shorter.by in now
        shop.assert_exact(rows)
        assert not any(shop.verify().differences.values())


def test_bounds_that_make_no_sense(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 1), (1, 2)], Options(kinds=("keys", "fds")))
    profile = Profile.open(shop.store.path)
    for bound in (-0.1, 1.5, float("nan")):
        with pytest.raises(InputError, match="max_error must be from 0 to 1"):
            profile.functional_dependencies("t", bound)
        with pytest.raises(InputError, match="max_error must be from 0 to 1"):
            profile.keys("t", bound)
    with pytest.raises(InputError, match="not both"):
        profile.agree_sets("t", since=1, at=1)


def test_errors_are_asked_for_as_constraints_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Profile, "_running", lambda _profile: InProcess())
    rows: Rows = [(1, 1), (1, 2), (2, 2), (3, 3)]
    shop = Shop(tmp_path / "p", 2, rows, Options(kinds=("keys", "fds")))
    profile = Profile.open(shop.store.path)
    assert profile.error("t: c0 -> c1") == profile.error("t : `c0`→c1") == 1 / 6
    assert profile.error("t: key(c0)") == 1 / 6
    assert profile.error("t: key()") == 1
    for each in (*profile.keys("t"), *profile.functional_dependencies("t")):
        assert each.table == "t"
        assert profile.error(str(each)) == 0
    assert [str(each) for each in profile.keys("t")] == ["t: key(c0, c1)"]
    assert {each.table for each in profile.non_keys("t")} == {"t"}
    assert profile.error("t: not (t.c0 = s.c0)") == 1 / 6
    with pytest.raises(InputError, match=r"t\(c0\) in t\(c1\): errors are those of keys, "):
        profile.error("t(c0) in t(c1)")
    with pytest.raises(InputError, match="at character 7"):
        profile.error("t: c0 c1")
    with pytest.raises(UnknownTableError, match="no table 'u'"):
        profile.error("u: key(c0)")
    with pytest.raises(SchemaError, match="c9"):
        profile.error("t: key(c9)")


def test_more_keys_than_anybody_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.kernels.cover.MOST", 20)
    # Every other row differs from the first in two columns, and a key needs one of each two.
    rows: Rows = [(0,) * 12, *(tuple(int(c // 2 == k) for c in range(12)) for k in range(6))]
    with pytest.raises(InputError, match=r"table 't' has more than .* --max-columns"):
        Shop(tmp_path / "p", 12, rows, Options(kinds=("keys",)))
    Shop(tmp_path / "p", 12, rows, Options(kinds=("keys",), max_columns=2)).assert_exact(rows)


def test_dependencies_of_wide_tables_are_found_when_they_are_named(tmp_path: Path) -> None:
    rows: Rows = [tuple(i % (c + 2) for c in range(41)) for i in range(6)]
    shop = Shop(tmp_path / "a", 41, rows)
    assert shop.now.functional_dependencies is None
    assert "more than 40 columns" in shop.choice.reason
    with pytest.raises(InputError, match="more than 40 columns"):
        Profile.open(shop.store.path).functional_dependencies("t")
    named = Shop(tmp_path / "b", 41, rows, Options(kinds=("keys", "fds"), max_columns=1))
    assert named.now.functional_dependencies is not None


def test_agree_sets_need_counts(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 1), (2, 1)], Options(evidence="witnessed"))
    with pytest.raises(InputError, match="--evidence counted"):
        Profile.open(shop.store.path).agree_sets("t")


def test_errors_of_a_table_that_is_too_long(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(ways, "expected_seconds", lambda *_: 3_000.0)
    rows: Rows = [(1, 1), (2, 1)]
    with pytest.raises(InputError, match=r"'t' has 2 rows.*50 minutes.*--max-error"):
        Shop(tmp_path / "p", 2, rows, Options(kinds=("keys", "fds"), max_error=0.1))
    with pytest.raises(InputError, match="witnessed"):
        Options(kinds=("fds",), max_error=0.1, evidence="witnessed")


def test_a_key_that_holds_validates_dependencies_too(tmp_path: Path) -> None:
    """So the search for it has to tell all that is maximal for any right side."""
    zero = (0, 0, 0, 0)
    old: Rows = [(0, 1, 0, 0), zero, (0, 0, 1, 0), (1, 0, 0, 0), *[zero] * 2, (1, 0, 0, 0)]
    old.append((0, 1, 0, 1))
    gone: Rows = [zero, (0, 0, 1, 0), *[zero] * 3, (1, 0, 0, 0), *[zero] * 2]
    new: Rows = [(0, 1, 0, 0), *[(0, 0, 0, 1)] * 5]
    options = Options(kinds=("keys", "fds"), evidence="witnessed")
    with small_limits(merged_segments=2):
        shop = Shop(tmp_path / "p", 4, old, options, tasks=3)
        shop.apply(inserts=[], deletes=[])
        shop.apply(inserts=[zero] * 3, deletes=[])
        shop.apply(inserts=new, deletes=gone)
        shop.assert_exact([(0, 1, 0, 0), (1, 0, 0, 0), (0, 1, 0, 1), *new])
