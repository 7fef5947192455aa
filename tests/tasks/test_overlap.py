"""What columns have in common, against counters of the values."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast.kinds.table_state import TableState
from holdfast.model.commits import ValueRun
from holdfast.tasks.values import (
    CODES,
    CountValues,
    Overlap,
    RowValues,
    ValueColumns,
    count,
    cut,
    family,
    overlap,
)
from tests.flow.tables import Shop


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("most", [40, 5])
def test_common_values(tmp_path: Path, parts: int, most: int) -> None:
    rows = [(i % 5, i % 7, None if i % 3 else i) for i in range(40)]
    shop = Shop(tmp_path / "p", 3, rows)
    shop.apply(deletes=rows[:3])
    table = TableState.load(shop.store, shop.store.read(), "t").table
    types = [
        family(n, f.type) for n, f in zip(table.columns.types, table.columns.schema, strict=True)
    ]
    attributes = tuple(ValueColumns(c, (c,), (types[c],)) for c in range(3))
    view = table.view(shop.store.path, shop.options)
    cells = RowValues(view, table.columns.schema, attributes, nulls=False)
    whole = Overlap(shop.store.path, 0, CODES, 3, most, (cells,))
    items = [whole]
    if parts > 1:
        counted_values = count(CountValues(cells, "data/*-x-"))
        runs = tuple(ValueRun((each.facts["part"],), 0) for each in counted_values)
        ranges = [(cut(part, parts), cut(part + 1, parts)) for part in range(parts)]
        items = [Overlap(shop.store.path, *each, 3, most, (), runs) for each in ranges]
    found: Any = sum(next(overlap(each)).arrays["common"] for each in items)
    counted = [
        Counter(v for v in column if v is not None) for column in zip(*rows[3:], strict=True)
    ]
    # A value that too many cells have does not count in their column.
    counted = [Counter({v: n for v, n in each.items() if n <= most}) for each in counted]
    assert (most == 40) == (sum(map(len, counted)) > 20)
    expected = [[sum((a & b).values()) for b in counted] for a in counted]
    assert found.tolist() == expected
