"""Columns that come, go or get another name: the profile is that of the rows then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.api import Profile
from holdfast.input.row_input import RowInput
from holdfast.input.type_names import type_of
from holdfast.kinds import registry
from holdfast.model.errors import InputError, SchemaError
from holdfast.model.expectations import Expectation
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import Snapshot, changed_agree_sets, snapshot
from holdfast.report.versions import entries
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, SECRET, Kind, folder, picked, row_input, small_limits
from tests.flow.test_law import LIMITS, law
from tests.strategies import Rows, rows_of

OPTIONS = st.builds(
    Options,
    kinds=st.sampled_from([("keys", "inds"), ("keys", "fds", "inds"), ("keys", "dcs"), ("inds",)]),
    evidence=st.sampled_from(["witnessed", "counted"]),
    nulls=st.sampled_from(["equal", "unequal"]),
    near=st.sampled_from(["on", "off"]),
    max_arity=st.sampled_from([1, 2]),
    keep_rows=st.booleans(),
    keep_values=st.sampled_from([True, True, False]),
)
NEW = {"bigint": BIGINT, "string": KINDS[2], "decimal(10,2)": KINDS[4], "double": KINDS[5]}


class Altered:
    """A profile of a table whose columns change, and of one beside it."""

    def __init__(self, path: Path, kinds: list[Kind], rows: Rows, options: Options) -> None:
        self.kinds, self.rows, self.options = kinds, rows, registry.completed(options)
        self.names = [f"c{c}" for c in range(len(kinds))]
        self.runner, self.store = InProcess(2), Store.create(path)
        self.secret = None if self.options.keep_values else SECRET
        self.beside = row_input([BIGINT, KINDS[2]], [(1, 1), (2, 0), (2, 1)])
        self.profile(self.store)

    def profile(self, store: Store) -> None:
        tables = {"t": self.input(self.rows), "u": self.beside}
        flow.profile(self.runner, store, tables, self.options, no_progress, self.secret)

    def input(self, rows: Rows, label: str = "rows") -> RowInput:
        given = row_input(self.kinds, rows, label)
        columns = replace(given.columns, names=tuple(self.names))
        return replace(given, columns=columns, rows=given.rows.rename_columns(self.names))

    def alter(self, **change: Any) -> int:
        if "add" in change:
            change["add"] = {name: type_of(name, kind) for name, kind in change["add"].items()}
        return flow.alter(self.runner, self.store, "t", flow.Alteration(**change), no_progress)

    def apply(self, batch: dict[str, Any]) -> None:
        given = dict(batch)
        rows: dict[str, Any] = {
            what: self.input(given.pop(what), what)
            for what in ("inserts", "deletes", "updates", "upserts", "snapshot")
            if given.get(what) is not None
        }
        key = tuple(self.names[int(name[1:])] for name in given.pop("row_key", ()))
        if given.pop("key_only", False) and "deletes" in rows:
            rows["deletes"] = picked(rows["deletes"], key)
        read = flow.Batch(**rows, row_key=key, **given)
        flow.apply(self.runner, self.store, "t", read, no_progress, secret=self.secret)

    def assert_fresh(self, path: Path) -> None:
        """It says what a new profile of the rows says, and that is what its rows say."""
        assert flow.verify(self.runner, self.store, no_progress).equal
        fresh = Store.create(path)
        self.profile(fresh)
        assert told(snapshot(self.store)) == told(snapshot(fresh))


def told(now: Snapshot) -> dict[str, Any]:
    """What a version says of its tables, apart from what depends on how it came about."""
    return {
        name: (
            table.rows,
            table.duplicates,
            (table.columns, table.types, [each.nulls for each in table.facts]),
            sorted(map(str, table.keys)) if "keys" in table.found else None,
            sorted(map(str, table.functional_dependencies or ())),
        )
        for name, table in now.tables.items()
    } | {"": sorted(map(str, now.inclusions.dependencies())) if now.inclusions else None}


@law(30)
@given(data=st.data(), options=OPTIONS)
def test_altered_equals_fresh(data: st.DataObject, options: Options) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    with folder() as path, small_limits(**data.draw(LIMITS)):
        shop = Altered(Path(path) / "p", kinds, data.draw(rows_of(len(kinds), 9)), options)
        for step in range(data.draw(st.integers(1, 4))):
            what = data.draw(st.sampled_from(["add", "drop", "rename", "batch", "all"]))
            change: dict[str, Any] = {}
            width = len(shop.names)
            dropped = data.draw(st.integers(0, width - 1)) if width > 1 else None
            if what in ("drop", "all") and dropped is not None:
                change["drop"] = [shop.names[dropped]]
            renamed = data.draw(st.integers(0, width - 1))
            if what in ("rename", "all") and shop.names[renamed] not in change.get("drop", ()):
                change["rename"] = {shop.names[renamed]: f"r{step}"}
            if what in ("add", "all"):
                kind = data.draw(st.sampled_from([*NEW]))
                change["add"] = {f"n{step}": kind}
            if change:
                version = shop.alter(**change)
                assert version == shop.store.head()
                shop.names = [change.get("rename", {}).get(name, name) for name in shop.names]
                if "drop" in change:
                    assert dropped is not None
                    del shop.names[dropped]
                    shop.kinds = [k for c, k in enumerate(shop.kinds) if c != dropped]
                    shop.rows = [row[:dropped] + row[dropped + 1 :] for row in shop.rows]
                if "add" in change:
                    shop.names.append(f"n{step}")
                    shop.kinds = [*shop.kinds, NEW[kind]]
                    shop.rows = [(*row, None) for row in shop.rows]
            else:
                batch = data.draw(batches(len(shop.names), shop.rows))
                shop.apply(batch.batch)
                shop.rows = batch.after
            shop.assert_fresh(Path(path) / f"fresh{step}")


ROWS: Rows = [(1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 2, None)]


@pytest.fixture
def shop(tmp_path: Path) -> Altered:
    with small_limits():
        return Altered(tmp_path / "p", [BIGINT] * 3, ROWS, Options())


def test_the_history_goes_on(shop: Altered) -> None:
    before = snapshot(shop.store)
    assert shop.alter(add={"d": "bigint"}, drop=["c2"], rename={"c1": "b"}) == 2
    assert [each.event for each in entries(shop.store)] == [
        None,
        "table t: column d added as bigint, c2 dropped, c1 renamed to b",
    ]
    assert told(snapshot(shop.store, 1)) == told(before)
    assert snapshot(shop.store).tables["t"].columns == ("c0", "b", "d")


def test_what_is_known_of_a_rule_begins_with_its_columns(tmp_path: Path) -> None:
    """Rules of columns that came or got another name are ranked by what is known of them."""
    with small_limits():
        options = Options(kinds=("keys", "fds", "inds", "dcs", "columns"), near="on")
        shop = Altered(tmp_path / "p", [BIGINT] * 3, ROWS, options)
        shop.alter(add={"d": "bigint"}, drop=["c2"], rename={"c1": "b"})
        rows = Profile.open(tmp_path / "p", engine="process")
        for table in ("t", "u"):
            ranking = rows.rank(table)
            assert {"keys", "functional_dependencies"} <= ranking.keys()
        for rule in ("t: key(c0, b, d)", "t: c0 -> d", "t: d not null", "t(d) in t(b)"):
            past = rows.explain(rule).past
            assert past is not None
            assert past.stretches[0].holds is None
            assert past.stretches[0].last == 1


def test_a_new_name_changes_no_file_of_rows_or_evidence(shop: Altered) -> None:
    before = shop.store.read().table("t")
    shop.alter(rename={"c1": "b"})
    after = shop.store.read().table("t")
    assert (after.segments, after.evidence) == (before.segments, before.evidence)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({}, InputError, "say what changes: --add-column NAME=TYPE, --drop-column NAME or"),
        ({"drop": ["x"]}, SchemaError, "table 't' has no column 'x'"),
        ({"rename": {"x": "y"}}, SchemaError, "table 't' has no column 'x'"),
        ({"rename": {"c0": "c1"}}, InputError, "table 't' has a column 'c1' already"),
        ({"add": {"c1": "int"}}, InputError, "table 't' has a column 'c1' already"),
        ({"rename": {"c0": "y"}, "add": {"y": "int"}}, InputError, "has a column 'y' already"),
        ({"drop": ["c1"], "add": {"c1": "int"}}, InputError, "has a column 'c1' already"),
        ({"drop": ["c1"], "rename": {"c1": "y"}}, InputError, "dropped and renamed at once"),
        ({"drop": ["c0", "c1", "c2"]}, InputError, "all of them would be dropped"),
        ({"add": {"y": "money"}}, SchemaError, "money"),
        ({"add": {"": "int"}}, InputError, "a column needs a name"),
    ],
)
def test_what_cannot_be_done_is_refused(
    shop: Altered, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        shop.alter(**change)
    assert shop.store.head() == 1


@pytest.mark.parametrize("change", [{"drop": ["c1"]}, {"rename": {"c1": "y"}}])
@pytest.mark.parametrize("rule", ["t: c0 -> c1", "t: c1 not null", "u(c0) in t(c1)"])
def test_an_expected_rule_keeps_its_columns(
    shop: Altered, change: dict[str, Any], rule: str
) -> None:
    flow.expect(shop.runner, shop.store, [Expectation(rule)], no_progress)
    (expected,) = shop.store.read().expectations
    with pytest.raises(InputError) as refused:
        shop.alter(**change)
    assert f"the rule {expected.rule} is expected: " in str(refused.value)
    assert f"holdfast forget DIR '{expected.rule}'" in str(refused.value)
    shop.alter(drop=["c2"])
    assert [each.rule for each in shop.store.read().expectations] == [expected.rule]
    flow.forget(shop.store, expected.rule)
    shop.alter(**change)
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_changes_of_agree_sets_begin_with_the_columns(tmp_path: Path) -> None:
    with small_limits():
        shop = Altered(tmp_path / "p", [BIGINT] * 3, ROWS, Options(evidence="counted"))
        shop.alter(drop=["c2"])
        with pytest.raises(InputError, match="had other columns in version 1; ask for version 2"):
            changed_agree_sets(shop.store, "t", 1)
        assert changed_agree_sets(shop.store, "t", 2) == []
