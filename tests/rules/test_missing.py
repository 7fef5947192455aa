"""The cells of foreign keys whose values are missing, and what is suggested, by definition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import flow
from holdfast.flow.suspects import Asked
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds import registry
from holdfast.model.grammar import parse
from holdfast.model.near import Suspects
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests import oracle
from tests.flow.tables import folder
from tests.limits import varied
from tests.strategies import examples

Values = Sequence[str | None] | Sequence[int | None]

RULE = "child(ref) in parent(code)"


def row_input(name: str, column: str, values: Values) -> RowInput:
    texts = not any(isinstance(value, int) for value in values)
    array: pa.Array = pa.array(values, pa.string() if texts else pa.int64())
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), column: array})
    columns = Columns.of(
        ["id", column], ["bigint", "string" if texts else "bigint"], table.schema.types
    )
    return RowInput(name, columns, table.rename_columns(columns.schema.names))


def suspects(
    path: Path, children: Values, parents: Values, tasks: int = 1, **given: Any
) -> Suspects:
    """Those of the rule."""
    runner, store = InProcess(tasks), Store.create(path / "p")
    rows = {
        "child": row_input("child", "ref", children),
        "parent": row_input("parent", "code", parents),
    }
    options = Options(kinds=("inds",), near="off", **given)
    flow.profile(runner, store, rows, registry.completed(options), no_progress)
    return flow.suspects(runner, store, Asked(parse(RULE), (), None), no_progress)


def is_near(value: str | None, other: str) -> bool:
    return value is not None and oracle.is_one_edit(value, other)


TEXTS = st.lists(st.none() | st.text("abö", max_size=4), min_size=1, max_size=30)


@given(TEXTS, TEXTS, st.sampled_from(["ignored", "values"]), st.integers(1, 3))
@settings(max_examples=examples(80))
def test_missing_values_are_those_of_the_definition(
    children: list[str | None], parents: list[str | None], nulls: str, tasks: int
) -> None:
    with folder() as path, pytest.MonkeyPatch.context() as patch:
        varied(patch, segment_rows=7, undivided_rows=0, raw_rows=3)
        found = suspects(Path(path), children, parents, tasks, inclusion_nulls=nulls)
    known = {*parents}
    wanted = {}
    for place, value in enumerate(children):
        if value not in known and (value is not None or nulls == "values"):
            near = {p for p in known if p is not None and is_near(value, p)}
            wanted[place] = near.pop() if len(near) == 1 else None, children.count(value)
    assert {cell.row["id"]: (cell.suggested, cell.group) for cell in found.cells} == wanted
    assert found.total == len(wanted)
    assert found.groups == len({children[place] for place in wanted})
    [near_rule] = found.near
    assert near_rule.removal == len(wanted)


def test_numbers_are_not_suggested(tmp_path: Path) -> None:
    [cell] = suspects(tmp_path, [12, 13, 120], [12, 13]).cells
    assert (cell.value, cell.suggested) == (120, None)


def test_nothing_is_suggested_where_rows_are_not_kept(tmp_path: Path) -> None:
    [cell] = suspects(tmp_path, ["Rome", "Rme"], ["Rome", "Graz"], keep_rows=False).cells
    assert (cell.value, cell.suggested) == (None, None)
    assert [*cell.row] == ["row"]
