"""Suggestions of rules that nearly hold, among those of rules that hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast import Options, Profile, flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds.ranking import grain, ranked, sentence
from holdfast.model.expectations import Expectation
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store

ROWS = 400


def orders(repeated: int, wrong: int) -> dict[str, list[Any]]:
    """A number for each order, some of them twice, and a country for each city, some of them
    wrong."""
    ids = [k - 1 if k <= 2 * repeated and k % 2 else k for k in range(ROWS)]
    cities = [(k * 7) % 40 for k in range(ROWS)]
    countries = [f"country {city % 8}" for city in cities]
    for k in range(wrong):
        countries[100 + 17 * k] = "elsewhere"
    return {
        "total": [(k * k * 31) % 9973 / 100 for k in range(ROWS)],
        "order_id": ids,
        "city": [f"city {city}" for city in cities],
        "country": countries,
    }


def profiled(folder: Path, columns: dict[str, list[Any]]) -> Profile:
    """A profile of one table."""
    table = pa.table(columns)
    types = ["double", "bigint", "string", "string"]
    known = Columns.of(table.column_names, types, table.schema.types)
    rows = RowInput("orders", known, table.rename_columns(known.schema.names))
    store = Store.create(folder)
    options = Options(kinds=("keys", "fds"))
    flow.profile(InProcess(), store, {"orders": rows}, options, no_progress)
    profile = Profile(store)
    profile._runner = InProcess()
    return profile


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return profiled(tmp_path_factory.mktemp("dirty") / "p", orders(3, 4))


def test_what_nearly_holds_is_suggested_with_its_bound(dirty: Profile) -> None:
    found = {each.rule: each for each in dirty.suggest()}
    key, not_null, country = (
        found[f"orders: {rule}"]
        for rule in ("key(order_id)", "order_id not null", "city -> country")
    )
    assert (key.max_rows, not_null.max_rows, country.max_rows) == (3, None, 4)
    assert key.reason == (
        "its grain, but for 3 rows too many: one column, never null, called like an identifier"
    )
    assert country.reason == "nearly holds: 4 of 400 rows break it"
    # What would follow from these holds by chance, or says nothing new.
    assert not [rule for rule in found if rule.startswith("orders: city, ")]
    assert not [rule for rule in found if "order_id," in rule]


def test_a_near_key_can_be_the_grain(dirty: Profile, tmp_path: Path) -> None:
    now = dirty.snapshot()
    [ranking] = ranked(now, ["orders"]).values()
    assert ranking["keys"]  # others that hold, by chance
    assert sentence(ranking.grain).startswith("one row per order_id, but for 3 rows too many: one")
    assert ranking.grain.to_dict()["removal"] == 3
    other = grain(now.tables["orders"], ranking.kinds, {})
    assert (other.key, other.removal) == (ranking["keys"][0].constraint, 0)
    assert "removal" not in other.to_dict()
    # The same key, which holds in clean rows.
    clean = profiled(tmp_path / "clean", orders(0, 0))
    assert sentence(clean.grain("orders")).startswith("one row per order_id: ")


def test_what_nearly_holds_is_exported_with_its_bound(dirty: Profile) -> None:
    rules = json.loads(str(dirty.export("json")))["tables"]["orders"]
    bounds = {
        each["rule"]: each["max_rows"]
        for part in ("keys", "functional_dependencies")
        for each in rules[part]
        if "max_rows" in each
    }
    assert bounds["orders: key(order_id)"] == 3
    assert bounds["orders: city -> country"] == 4
    assert "-- orders: key(order_id): at most 3 rows may break it" in str(dirty.export("queries"))


def test_what_is_suggested_is_declared_with_its_bound(tmp_path: Path) -> None:
    profile = profiled(tmp_path / "p", orders(3, 4))
    found = profile.suggest()
    declared = profile.expect(*found)
    assert all(each.after.holds for each in declared)
    bounds = {each.rule: each.expectation.max_rows for each in profile.expectations()}
    assert (bounds["orders: key(order_id)"], bounds["orders: city -> country"]) == (3, 4)
    assert profile.suggest() == []
    # A bound that somebody gives is that of all.
    [key] = [each for each in found if each.max_rows == 3]
    [again] = profile.expect(key, max_rows=8)
    assert again.after.expectation == Expectation("orders: key(order_id)", max_rows=8)
