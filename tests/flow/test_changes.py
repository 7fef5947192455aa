"""Change rows become batches: of many changes only what is left of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.change_reading import ChangeInput
from holdfast.input.change_rows import CHANGE_TYPE, ChangeRows
from holdfast.input.row_input import Columns
from holdfast.model.errors import BatchError, HoldfastError, SchemaError, SourceError
from holdfast.model.options import Options
from holdfast.runtime.runner import Parts
from holdfast.tasks.unavailable import FORMER_KEY, UNAVAILABLE
from tests.flow.tables import Shop, folder, small_limits
from tests.strategies import Rows, examples

Row = tuple[int | None, ...]
Change = tuple[str, Row]

START: Rows = [(1, 10), (2, 20), (3, 30)]


@dataclass
class Source:
    """A table that says what happens to it."""

    rows: list[Row]
    keyed: bool
    changes: list[Change] = field(default_factory=list)

    def change(self, draw: Any, value: st.SearchStrategy[int | None]) -> None:
        """One change, in the words of Spark."""
        what = draw(st.sampled_from(["insert", "insert", "delete", "update"]))
        if what == "insert":
            row = self._new(draw, value)
            if row is not None:
                self.rows.append(row)
                self.changes.append(("insert", row))
        elif self.rows:
            row = self.rows.pop(draw(st.integers(0, len(self.rows) - 1)))
            if what == "delete":
                self.changes.append(("delete", row))
                return
            new = self._new(draw, value) or (row[0], draw(value), *row[2:])
            self.rows.append(new)
            self.changes += [("update_preimage", row), ("update_postimage", new)]

    def _new(self, draw: Any, value: st.SearchStrategy[int | None]) -> Row | None:
        row = (draw(st.integers(0, 5)), draw(value))
        return None if self.keyed and row[0] in [each[0] for each in self.rows] else row


def change_input(shop: Shop, changes: Sequence[Change], ordered: bool = True) -> ChangeInput:
    """Rows of changes, as they would come in a file."""
    names = [f"c{c}" for c in range(shop.columns)]
    table = pa.table(
        {
            CHANGE_TYPE: pa.array([what for what, _ in changes], pa.string()),
            **{
                name: pa.array([row[c] for _, row in changes], pa.int64())
                for c, name in enumerate(names)
            },
        }
    )
    return input_of(shop, table, ordered)


def input_of(
    shop: Shop, table: pa.Table, ordered: bool = True, changes: ChangeRows | None = None
) -> ChangeInput:
    columns = Columns.stored(shop.store.read().table("t").columns)
    parts = Parts(table.schema, (0,), lambda _: iter(table.to_batches()))
    changes = changes or ChangeRows(parts)
    given = ChangeInput.of_parts(changes, parts, "the changes", columns)
    if not ordered:
        positional = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
        given = replace(given, rows=replace(given.rows, rows=positional), ordered=False)
    return given


def apply(shop: Shop, given: ChangeInput, *row_key: str) -> Any:
    batch = flow.Batch(changed=given, row_key=row_key)
    return flow.apply(shop.runner, shop.store, "t", batch, lambda *_, **__: None,
                      secret=shop.secret)  # fmt: skip


@pytest.mark.law
@pytest.mark.parametrize("keyed", [True, False])
@given(data=st.data())
@settings(max_examples=examples(12), deadline=None)
def test_a_profile_that_applies_changes_equals_its_source(keyed: bool, data: st.DataObject) -> None:
    value = st.one_of(st.none(), st.integers(0, 2))
    keys = st.lists(st.integers(0, 5), max_size=5, unique=keyed)
    source = Source([(key, data.draw(value)) for key in data.draw(keys)], keyed)
    keep_values = data.draw(st.booleans())
    with folder() as path, small_limits(undivided_rows=2, located_rows=1, segment_rows=3):
        options = Options(kinds=("keys",), keep_values=keep_values)
        shop = Shop(Path(path) / "p", 2, source.rows, options)
        for _ in range(data.draw(st.integers(1, 3))):
            for _ in range(data.draw(st.integers(0, 8))):
                source.change(data.draw, value)
            apply(shop, change_input(shop, source.changes), *(["c0"] if keyed else []))
            source.changes.clear()
            assert shop.now.rows == len(source.rows)
            if keep_values:
                shop.assert_exact(source.rows)
            assert shop.verify().equal


def test_the_last_change_of_a_key_counts(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    changes: list[Change] = [
        ("insert", (4, 40)), ("delete", (4, 40)), ("delete", (1, 10)), ("insert", (1, 11)),
        ("update_postimage", (2, 21)), ("update_postimage", (2, 22)), ("delete", (3, 30)),
    ]  # fmt: skip
    outcome = apply(shop, change_input(shop, changes), "c0")
    shop.assert_exact([(1, 11), (2, 22)])
    assert (outcome.updated, outcome.deleted, outcome.inserted) == (2, 1, 0)
    # Its key changed: it went under the old one, and came under the new one.
    changes = [("update_preimage", (1, 11)), ("update_postimage", (9, 11))]
    apply(shop, change_input(shop, changes), "c0")
    shop.assert_exact([(9, 11), (2, 22)])


def test_without_a_row_key_equal_rows_are_counted(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 10), (1, 10), (1, 10)])
    changes: list[Change] = [
        ("delete", (1, 10)), ("update_preimage", (1, 10)), ("update_postimage", (2, 20)),
        ("insert", (3, 30)), ("insert", (3, 30)), ("delete", (3, 30)),
    ]  # fmt: skip
    apply(shop, change_input(shop, changes))
    shop.assert_exact([(1, 10), (2, 20), (3, 30)])
    with pytest.raises(BatchError, match="1 rows as they are after an update, but 0"):
        apply(shop, change_input(shop, [("update_postimage", (3, 31))]))
    with pytest.raises(BatchError, match="this delete matches no row"):
        apply(shop, change_input(shop, [("delete", (7, 70))]))
    shop.assert_exact([(1, 10), (2, 20), (3, 30)])


def test_without_an_order_a_key_changes_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    once: list[Change] = [
        ("update_postimage", (1, 11)), ("update_preimage", (1, 10)), ("delete", (2, 20)),
    ]  # fmt: skip
    apply(shop, change_input(shop, once, ordered=False), "c0")
    shop.assert_exact([(1, 11), (3, 30)])
    for twice in (
        [("insert", (4, 40)), ("insert", (4, 41))],
        [("delete", (1, 11)), ("insert", (1, 12))],
    ):
        with pytest.raises(BatchError, match=r"nothing tells in which order.*--order"):
            apply(shop, change_input(shop, twice, ordered=False), "c0")
    shop.assert_exact([(1, 11), (3, 30)])


def test_columns_can_give_the_order(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)
    table = pa.table(
        {
            "c0": [1, 1, 2, 2, 3],
            "c1": [12, 11, 22, 20, 31],
            "op": ["U", "U", "I", "D", "U"],
            "_commit_version": [5, 4, 7, 7, 1],
            "_commit_timestamp": [1, 2, 3, 4, 5],
        }
    )
    ops = {"I": 0, "D": 1, "U": 3}
    changes = ChangeRows(table, "op", ops)
    apply(shop, input_of(shop, table, False, changes), "c0")
    shop.assert_exact([(1, 12), (2, 22), (3, 31)])
    tied = table.set_column(3, "_commit_version", pa.array([5] * 5))
    with pytest.raises(BatchError, match="at the same place in their order"):
        apply(shop, input_of(shop, tied, False, changes), "c0")


def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, START)

    def refused(error: type[HoldfastError], match: str, **columns: list[Any]) -> None:
        with pytest.raises(error, match=match):
            apply(shop, input_of(shop, pa.table(columns)), "c0")

    refused(SchemaError, "no column '_change_type'.*--op-column", c0=[1], c1=[2])
    refused(SourceError, "what happened to a row is 'X'", c0=[1], c1=[2], _change_type=["X"])
    refused(SourceError, "is None; expected", c0=[1], c1=[2], _change_type=pa.nulls(1, pa.string()))
    refused(SchemaError, "has the column 'x'", c0=[1], c1=[2], x=[2], _change_type=["insert"])
    refused(SchemaError, "lacks the column 'c1'", c0=[1], _change_type=["insert"])
    refused(SchemaError, "'c1' is string, but bigint", c0=[1], c1=["a"], _change_type=["insert"])
    shop.assert_exact(START)


def test_all_rows_that_were_there_are_replaced(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [*START, (3, 30)])
    table = pa.table({"c0": [7, 8, 3], "c1": [7, 8, 30], CHANGE_TYPE: ["insert"] * 3})
    changes = ChangeRows(table, replaces=True)
    for key in (["c0"], []):
        outcome = apply(shop, input_of(shop, table, changes=changes), *key)
        assert outcome.inserted == 3
        shop.assert_exact([(7, 7), (8, 8), (3, 30)])
        assert shop.verify().equal
    apply(shop, input_of(shop, table.slice(0, 0), changes=changes))
    shop.assert_exact([])


def unavailable(shop: Shop, *rows: tuple[int, int | None, int, int | None]) -> ChangeInput:
    """Rows after updates; where the second column is None it did not change, and the row has the
    former key."""
    key = pa.struct([("c0", pa.int64())])
    table = pa.table(
        {
            "c0": pa.array([row[0] for row in rows], pa.int64()),
            "c1": pa.array([row[1] for row in rows], pa.int64()),
            "c2": pa.array([row[2] for row in rows], pa.int64()),
            CHANGE_TYPE: pa.array(["update_postimage"] * len(rows), pa.string()),
            UNAVAILABLE: pa.array(
                [["c1"] if row[3] is not None else None for row in rows], pa.list_(pa.string())
            ),
            FORMER_KEY: pa.array([None if row[3] is None else {"c0": row[3]} for row in rows], key),
        }
    )
    return input_of(shop, table)


def test_cells_that_were_not_sent_are_those_of_the_stored_row(tmp_path: Path) -> None:
    rows: Rows = [(1, 10, 100), (2, None, 200), (3, 30, 300)]
    shop = Shop(tmp_path / "p", 3, rows)
    given = unavailable(
        shop, (1, None, 101, 1), (2, None, 201, 2), (9, None, 301, 3), (3, 0, 0, None)
    )
    apply(shop, given, "c0")
    shop.assert_exact([(1, 10, 101), (2, None, 201), (9, 30, 301), (3, 0, 0)])
    with pytest.raises(
        SourceError, match=r"'c1' did not change.*\"c0\": 77.*REPLICA IDENTITY FULL"
    ):
        apply(shop, unavailable(shop, (77, None, 1, 77)), "c0")
    without = Shop(tmp_path / "without", 3, rows, Options(keep_rows=False))
    with pytest.raises(SourceError, match="REPLICA IDENTITY FULL"):
        apply(without, unavailable(without, (1, None, 1, 1)), "c0")
    assert without.store.head() == 1
