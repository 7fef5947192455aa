"""The law for counted evidence: agree-sets, dependencies and errors, kept under every change."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from holdfast.api import Profile
from holdfast.options import Options
from tests import oracle
from tests.pipeline.batches import batches
from tests.pipeline.tables import KINDS, Shop, folder, small_limits
from tests.pipeline.test_law import EXAMPLES, LIMITS, law
from tests.strategies import Rows, rows_of

OPTIONS = st.builds(
    Options,
    kinds=st.just(("keys", "fds")),
    nulls=st.sampled_from(["equal", "unequal"]),
    max_columns=st.sampled_from([None, None, 1, 2]),
    max_error=st.sampled_from([None, 0.05, 0.3]),
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
    told = {
        (tuple(names.index(name) for name in fd.lhs), names.index(fd.rhs)): fd.error
        for fd in profile.snapshot().tables["t"].functional_dependencies or ()
    }
    expected = dict.fromkeys(oracle.dependencies(rows, columns, nulls, most), 0.0)
    keys = {}
    if options.max_error is not None:
        for right in (*range(columns), None):
            near = oracle.approximate(rows, columns, right, options.max_error, most, nulls)
            for left, wrong in near.items():
                if wrong and right is None:
                    keys[left] = wrong / pairs
                elif wrong:
                    expected[left, right] = wrong / pairs
    assert told == expected
    approximate = profile.snapshot().tables["t"].approximate_keys
    assert {
        tuple(names.index(name) for name in key.columns): key.error for key in approximate
    } == keys
    left = tuple(range(0, columns, 2))
    wrong = oracle.violations(rows, left, columns - 1, nulls)
    asked = profile.error("t", [names[c] for c in left], names[-1])
    assert asked == (wrong / pairs if pairs else 0.0)


@law(EXAMPLES)
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
            assert told.fds_gained == len({(fd.lhs, fd.rhs) for fd in exact} - {
                (fd.lhs, fd.rhs) for fd in before if fd.error == 0
            })  # fmt: skip
        last = oracle.counted_agree_sets(rows, shop.columns, options.nulls)
        since = {
            tuple(int(name[1:]) for name in each.columns): each.pairs
            for each in Profile.open(shop.store.path).agree_sets("t", since=1)
        }
        changed = {
            columns: last.get(columns, 0) - first.get(columns, 0) for columns in {*first, *last}
        }
        assert since == {columns: change for columns, change in changed.items() if change}
        assert not any(shop.verify().differences.values())
