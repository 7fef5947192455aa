"""Deletes of all pairs that non-keys are shown with: what was hidden below them is known from
lists, without a look at the rows that stay."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.cover.candidates import SUBKEY, apart
from holdfast.cover.dependencies import KEY
from holdfast.evidence import storage
from holdfast.evidence.agreement.search_plans import IndexSearch
from holdfast.evidence.agreement.validation import Validation
from holdfast.kernels import bitsets
from holdfast.kinds.table_state import TableState
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.options import Options
from holdfast.tasks import listed_pairs as tasks
from holdfast.tasks.shown import rows_as_text
from tests.flow.tables import Shop, small_limits
from tests.flow.test_skew import assert_exact, rows_of
from tests.strategies import Rows, examples

KEYS = Options(("keys",), evidence="witnessed")
LISTED: dict[str, Any] = {
    "part_from_rows": 0,
    "few_combinations": 0,
    "frequent_rows": 1 << 30,
    "undivided_rows": 0,
    "merged_segments": 100,
}
"""Subkeys are listed whatever the rows, and nothing else takes the place of a search."""


VALUES = (900, 700, 400, 60, 40, 20, 9, 4)


def some_rows(seed: int, rows: int) -> Any:
    """Columns with many values and with few; hardly any two rows agree in three of them."""
    random = np.random.default_rng(seed)
    return np.stack([random.integers(0, most, rows) for most in VALUES], axis=1)


def known(shop: Shop) -> TableState:
    return TableState.load(shop.store, shop.store.read(), "t")


def listed_pairs(shop: Shop) -> Any:
    """Those that are stored, if any are."""
    witnessed = known(shop).evidence[AGREEMENTS].witnessed
    assert witnessed is not None
    return None if witnessed.stored_lists is None else witnessed.stored_lists()


def witnesses(shop: Shop, non_keys: int, seed: int) -> Any:
    """The places, among all rows, of those that some maximal non-keys are shown with."""
    now = known(shop)
    evidence = now.evidence[AGREEMENTS].evidence
    chosen = np.random.default_rng(seed).choice(len(evidence.masks), non_keys, replace=False)
    ids = np.concatenate([s.base + np.arange(s.rows) for s in now.table.segments])
    return np.flatnonzero(np.isin(ids, evidence.witnesses[chosen]))


@pytest.mark.parametrize(
    ("most", "held"), [(16, 20), pytest.param(2, 1000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_all_pairs_that_agree_in_a_subkey_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nulls: str, most: int, held: int
) -> None:
    monkeypatch.setattr(tasks, "_HELD", held)
    codes = some_rows(5, 500)
    codes[::9, 3:6] = -1  # null
    codes[100:110] = codes[:10]  # rows that are there twice show nothing
    with small_limits(**LISTED, listed_pairs_a_mask=most, segment_rows=200):
        options = Options(("keys",), evidence="witnessed", nulls=nulls)
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(codes), options)
    near = listed_pairs(shop)
    assert len(near.sets) > 5
    expected = all_pairs(codes, nulls == "equal", known(shop).table.segments, near.sets)
    ends = np.cumsum(near.counts)
    listed = {
        columns: {tuple(pair) for pair in near.pairs[end - count : end].tolist()}
        for columns, count, end in zip(
            bitsets.to_columns(near.masks), near.counts, ends, strict=True
        )
    }
    assert listed.keys() == expected.keys()
    for columns, more in zip(bitsets.to_columns(near.masks), near.more, strict=True):
        assert listed[columns] <= expected[columns]
        assert len(listed[columns]) == min(most, len(expected[columns]))
        assert more or listed[columns] == expected[columns]


@pytest.mark.parametrize("kinds", [("keys",), ("keys", "fds")])
def test_evidence_against_subkeys_is_listed_and_not_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]
) -> None:
    """Every task finds some, whatever its rows: what comes back would follow the tasks."""
    searches: list[Any] = []
    learn = Validation.learn

    def watched(state: Validation, candidates: Any, planned: Any, results: Any) -> None:
        searches.extend(
            (look.candidates, mine)
            for look, mine in zip(planned, results, strict=True)
            if isinstance(look, IndexSearch)
        )
        learn(state, candidates, planned, results)

    monkeypatch.setattr(Validation, "learn", watched)
    codes = some_rows(5, 500)
    codes[1, :3] = codes[0, :3]
    with small_limits(**LISTED, sample_rows=40):
        Shop(tmp_path / "p", len(VALUES), rows_of(codes), Options(kinds, evidence="witnessed"))
    listed, returned = 0, 0
    none = np.empty((0, 1), np.uint64)
    for candidates, results in searches:
        wanted = apart(candidates, candidates.rhs, dict.fromkeys((KEY, *range(8)), none))
        listed += len(apart(candidates, candidates.rhs, {SUBKEY: none})[SUBKEY])
        for mask in (mask for result in results for mask in result.arrays["masks"]):
            agree = set(bitsets.to_columns(mask[None])[0])
            returned += 1
            assert any(
                rhs not in agree and {*lhs} <= agree
                for rhs, sets in wanted.items()
                for lhs in bitsets.to_columns(sets)
            )
    assert listed
    assert returned


def all_pairs(codes: Any, nulls_equal: bool, segments: Any, sets: Any) -> dict[Any, Any]:
    """Every pair of rows by their ids that agrees in one of some sets, by its agree-set."""
    ids = np.concatenate([s.base + np.arange(s.rows) for s in segments])
    found: dict[Any, Any] = {}
    wanted = [set(each) for each in bitsets.to_columns(sets)]
    for one, two in combinations(range(len(codes)), 2):
        same = codes[one] == codes[two]
        if same.any() and not (same.all() and (nulls_equal or (codes[one] >= 0).all())):
            agree = tuple(np.flatnonzero(same & ((codes[one] >= 0) | nulls_equal)).tolist())
            if any(each <= {*agree} for each in wanted):
                found.setdefault(agree, set()).add((int(ids[one]), int(ids[two])))
    return found


@pytest.mark.parametrize(
    "kinds", [("keys",), pytest.param(("keys", "fds"), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("since", [pytest.param(0, marks=pytest.mark.slow), 40])
def test_nothing_is_searched(
    tmp_path: Path, searched: list[int], kinds: tuple[str, ...], since: int
) -> None:
    """Batch after batch takes all pairs away that some non-keys were shown with."""
    codes, later = some_rows(1, 1_000), some_rows(2, since)
    with small_limits(**LISTED):
        shop = Shop(
            tmp_path / "p", len(VALUES), rows_of(codes), Options(kinds, evidence="witnessed")
        )
        assert searched
        if since:
            shop.apply(inserts=rows_of(later))
        codes = np.concatenate([codes, later])
        living = np.ones(len(codes), np.bool_)
        before = shop.now.keys
        for batch in range(3):
            searched.clear()
            gone = witnesses(shop, 3, batch)
            living[gone] = False
            shop.apply(deletes=rows_of(codes[gone]))
            assert searched == []
            assert_exact(shop, codes[living])
        assert shop.now.keys != before
        assert shop.verify().equal


@pytest.mark.slow
@pytest.mark.parametrize("first", [100, 800])
def test_a_search_lists_them_anew(tmp_path: Path, searched: list[int], first: int) -> None:
    """For a table that was short at first, or has grown by half."""
    codes, later = some_rows(1, first), some_rows(2, 1_200 - first)
    living = np.ones(1_200, np.bool_)
    with small_limits(**LISTED | {"part_from_rows": 500}):
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(codes), KEYS)
        shop.apply(inserts=rows_of(later))
        codes = np.concatenate([codes, later])
        assert listed_pairs(shop) is None or listed_pairs(shop).is_stale(known(shop).table)
        searches = []
        for batch in range(3):
            searched.clear()
            gone = witnesses(shop, 3, batch)
            living[gone] = False
            shop.apply(deletes=rows_of(codes[gone]))
            searches.append(len(searched))
            assert_exact(shop, codes[living])
            assert not listed_pairs(shop).is_stale(known(shop).table)
    assert searches[0] > 0
    assert 0 in searches[1:]


def test_files_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searched: list[int]
) -> None:
    """Once there was one number for all sets."""
    codes = some_rows(1, 1_000)
    living = np.ones(len(codes), np.bool_)
    table = storage._lists_table
    monkeypatch.setattr(storage, "_lists_table", lambda near: table(near).drop_columns("before"))
    with small_limits(**LISTED):
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(codes), KEYS)
        searched.clear()
        gone = witnesses(shop, 3, 1)
        living[gone] = False
        shop.apply(deletes=rows_of(codes[gone]))
        assert searched == []
        assert_exact(shop, codes[living])


def test_pairs_that_no_list_has(tmp_path: Path, searched: list[int]) -> None:
    """Where the listed pairs of an agree-set are gone and there may be more, rows are searched."""
    codes = some_rows(1, 600)
    codes[:80, :3] = np.repeat(np.arange(40) % 8, 2)[:, None] + 1_000  # agree in pairs, and more
    with small_limits(**LISTED, listed_pairs_a_mask=1):
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(codes), KEYS)
        living = np.ones(len(codes), np.bool_)
        seen = 0
        for batch in range(4):
            searched.clear()
            gone = witnesses(shop, 4, batch)
            living[gone] = False
            shop.apply(deletes=rows_of(codes[gone]))
            seen += len(searched)
            assert_exact(shop, codes[living])
        assert seen


def test_what_was_searched_for_is_listed(tmp_path: Path, searched: list[int]) -> None:
    """Many pairs have one agree-set, more than a list has: batch after batch takes those that show
    it. A search that this needs lists others, so that the next batch needs none."""
    codes = np.arange(4_000).reshape(8, 500).T + 1_000
    codes[1:100:2, :3] = codes[:100:2, :3]
    codes[200:, 7] = np.arange(300) % 50
    living = np.ones(len(codes), np.bool_)
    searches = []
    with small_limits(**LISTED, listed_pairs_a_mask=8):
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(codes), KEYS)
        for batch in range(9):
            searched.clear()
            later = np.arange(8)[None, :] + 10_000 * (batch + 1)
            codes, living = np.concatenate([codes, later]), np.append(living, True)
            evidence = known(shop).evidence[AGREEMENTS].evidence
            ids = evidence.witnesses[bitsets.to_columns(evidence.masks).index((0, 1, 2))]
            gone = np.unique(ids[ids >= 0]) & 0xFFFFFFFF
            living[gone] = False
            shop.apply(inserts=rows_of(later), deletes=rows_of(codes[gone]))
            searches.append(len(searched) > 0)
            assert_exact(shop, codes[living])
    assert any(searches)
    assert not any(one and two for one, two in pairwise(searches))


PLANTED = {
    "gone first": ((0, 1, 2, 3), 1),
    "often": ((0, 1, 2), 18),
    "gone then": ((0, 1, 5), 1),
    "and": ((0, 1, 6), 1),
    "others": ((0, 2, 6), 1),
    "and others": ((0, 2, 5), 1),
    "besides": ((1, 2, 7), 1),
    "and besides": ((1, 2, 6), 1),
}
"""Agree-sets, each of so many pairs of rows."""


@pytest.mark.parametrize("kinds", [("keys",), ("keys", "fds")])
def test_pairs_that_no_list_has_and_no_key_is_long_enough_for(
    tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    """All sets of two columns that such pairs agree in are refuted by others, so that nobody looks
    for them; later, when these others go, they must be known to be missing."""
    codes = np.arange(4_000).reshape(8, 500).T + 1_000
    codes[200:, 7] = np.arange(300) % 50
    at, places = 0, {}
    for name, (columns, count) in PLANTED.items():
        places[name] = np.arange(at, at + 2 * count)
        codes[at + 1 : at + 2 * count : 2, columns] = codes[at : at + 2 * count : 2, columns]
        at += 2 * count
    living = np.ones(len(codes), np.bool_)
    with small_limits(**LISTED, listed_pairs_a_mask=16):
        options = Options(kinds, evidence="witnessed", max_columns=2)
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(codes), options)
        for gone in (
            np.concatenate([places["gone first"], places["often"][: 2 * 16]]),
            np.concatenate([places["gone then"], places["and"]]),
        ):
            living[gone] = False
            shop.apply(deletes=rows_of(codes[gone]))
            shop.assert_exact(rows_of(codes[living]))


@pytest.mark.slow
@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_merged_rows_are_looked_up(tmp_path: Path, nulls: str) -> None:
    """Ids in a list are those of the first profile: what was merged counts as new."""
    codes = some_rows(3, 300)
    limits = {**LISTED, "merged_segments": 2, "segment_rows": 80}
    with small_limits(**limits):
        options = Options(("keys", "fds"), evidence="witnessed", nulls=nulls)
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(codes), options)
        for batch in range(6):
            more = some_rows(10 + batch, 30)
            at = np.random.default_rng(batch).choice(len(codes), 40, replace=False)
            shop.apply(inserts=rows_of(more), deletes=rows_of(codes[at]))
            codes = np.concatenate([np.delete(codes, at, axis=0), more])
            assert_exact(shop, codes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(5)))
def test_any_batches(tmp_path: Path, seed: int) -> None:
    """Rows that come, go and come again, among them those that non-keys are shown with."""
    random = np.random.default_rng(seed)
    values = random.integers(2, 90, random.integers(4, 8))

    def some(count: int) -> Rows:
        codes = np.stack([random.integers(0, most, count) for most in values], axis=1)
        codes[random.random(codes.shape) < 0.03] = -1
        return rows_of(codes)

    limits = {
        **LISTED,
        "merged_segments": int(random.choice([2, 3, 100])),
        "segment_rows": int(random.choice([20, 1_000])),
        "part_from_candidates": int(random.choice([4, 64])),
        "listed_pairs_a_mask": int(random.choice([1, 2, 16])),
        "subkey_pairs_expected": float(random.choice([3, 50, 1e9])),
        "recent_share": float(random.choice([0.1, 0.25, 0.9])),
    }
    options = Options(
        kinds=("keys", "fds")[: 1 + seed % 2],
        evidence="witnessed",
        nulls=str(random.choice(["equal", "unequal"])),
        max_columns=[None, 2, 3][seed % 3],
    )
    rows = some(90)
    rows += rows[:3]
    with small_limits(**limits):
        shop = Shop(tmp_path / "p", len(values), rows, options)
        gone: Rows = []
        for _ in range(5):
            few = int(random.integers(1, 4))
            before, gone = gone, shown_with(shop, few, random)
            inserts = [*some(int(random.integers(0, 12))), *before[::2]]
            shop.apply(inserts=inserts, deletes=gone)
            for each in gone:
                rows.remove(each)
            rows += inserts
            shop.assert_exact(rows)


def shown_with(shop: Shop, non_keys: int, random: np.random.Generator) -> Rows:
    """The rows that some non-keys are shown with."""
    table, evidence = known(shop).table, known(shop).evidence[AGREEMENTS].evidence
    chosen = random.permutation(len(evidence.masks))[:non_keys]
    ids = np.unique(evidence.witnesses[chosen])
    names = table.columns.names
    text = rows_as_text(shop.store.path, table.segments, names, ids[ids >= 0])
    return [tuple(json.loads(each)[name] for name in names) for each in text.values()]


def test_verifying_lists_nothing(tmp_path: Path) -> None:
    """What is found anew is compared, and kept nowhere."""
    with small_limits(**LISTED):
        shop = Shop(tmp_path / "p", len(VALUES), rows_of(some_rows(4, 300)), KEYS)
        before = sorted(path.name for path in (tmp_path / "p").rglob("*"))
        assert shop.verify().equal
        assert sorted(path.name for path in (tmp_path / "p").rglob("*")) == before
        assert not [name for name in before if name.startswith("listed")]
        assert [name for name in before if name.startswith("near")]
