"""A kind that only a test knows, with three atoms a column, is found and kept like any other."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.options import Options
from holdfast.report import forms
from holdfast.report.snapshot import snapshot
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.kinds.no_pairs import NoPair, NoPairs
from tests.limits import varied
from tests.strategies import Rows, rows_of

OPTIONS = st.builds(
    Options,
    kinds=st.sampled_from([("nopairs",), ("keys", "fds", "nopairs"), ("dcs", "nopairs")]),
    evidence=st.sampled_from(["counted", "witnessed"]),
    nulls=st.sampled_from(["equal", "unequal"]),
    max_columns=st.sampled_from([None, None, 2]),
)


def expected(rows: Rows, columns: int, options: Options) -> set[Constraint]:
    asked = [(c, c, "ts", True) for c in range(columns)]
    shown = {oracle.evidence(t, s, asked, options.nulls) for t, s in permutations(rows, 2)}
    sets = oracle.minimal_sets_stepwise(3 * columns, sorted(shown, key=sorted))
    most = options.max_columns or columns
    return {NoPair("t", each) for each in sets if len({atom // 3 for atom in each}) <= most}


@given(st.data(), OPTIONS)
@law(30)
def test_the_law(data: st.DataObject, options: Options) -> None:
    columns = data.draw(st.integers(1, 3))
    rows = data.draw(rows_of(columns, 6))
    with folder() as path, small_limits(**data.draw(LIMITS)) as patch:
        patch.setitem(registry.REGISTRY, "nopairs", NoPairs())
        varied(patch, all_pairs=data.draw(st.sampled_from([-1, 1 << 31])))
        shop = Shop(Path(path) / "p", columns, rows, options, data.draw(st.sampled_from([1, 3])))
        old = expected(rows, columns, options)
        assert {*shop.now.found["nopairs"]} == old
        for _ in range(data.draw(st.integers(0, 3))):
            change = data.draw(batches(columns, rows))
            changes = shop.apply(**change.batch)["no_pairs"]
            rows = change.after
            new = expected(rows, columns, options)
            assert {*shop.now.found["nopairs"]} == new
            assert {*changes.gained} == new - old
            assert {*changes.lost} == old - new
            assert all(len(each.witness) == 2 for each in changes.broken)
            old = new
        assert shop.verify().equal


def test_it_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(registry.REGISTRY, "nopairs", NoPairs())
    shop = Shop(tmp_path / "p", 2, [(1, 2), (2, 1)], Options(kinds=("nopairs",)))
    form = forms.show(snapshot(shop.store))["tables"]["t"]
    assert next(each["atoms"] for each in form["no_pairs"]) == [0, 1]
    assert shop.store.read().tables["t"].counts["nopairs"] == len(form["no_pairs"])
