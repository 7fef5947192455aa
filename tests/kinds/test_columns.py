"""Rules of single columns that are found: what they are, and what batches do to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.kinds.columns.kind import ColumnRules
from holdfast.model.changes import Changes
from holdfast.model.grammar import parse
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, Kind, Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.limits import varied
from tests.strategies import Rows, rows_of
from tests.table.test_columns import MORE
from tests.table.test_samples import ALIKE, CODES

KIND = ColumnRules()
FIELD = KIND.field
OPTIONS = Options(kinds=("columns",))


def rules(shop: Shop) -> list[str]:
    """What is found now."""
    return [str(each) for each in shop.now.found[KIND.name]]


def records(shop: Shop, rows: Rows) -> list[dict[str, object]]:
    return [
        {f"c{c}": kind.cell(row[c], i) for c, kind in enumerate(shop.kinds)}
        for i, row in enumerate(rows)
    ]


def assert_exact(shop: Shop, rows: Rows) -> None:
    """Every rule holds, is written in its one form, and no column lacks one that it should have."""
    table = records(shop, rows)
    columns = {"t": Columns.stored(shop.store.read().tables["t"].columns)}
    found = rules(shop)
    for text in found:
        assert registry.canonical(text, columns) == text
        if "timestamp_ntz(9)" not in [kind.name for kind in shop.kinds]:  # no cells to the oracle
            assert oracle.tally(parse(text), {"t": table})[0] == 0
    for c, kind in enumerate(shop.kinds):
        cells = [row[f"c{c}"] for row in table]
        there = [cell for cell in cells if cell is not None]
        assert (f"t: c{c} not null" in found) == bool(there and len(there) == len(cells))
        few = 0 < len(set(there)) <= 32 and len(there) >= 2 * len(set(there))
        if kind in (CODES, ALIKE, BIGINT):
            assert any(text.startswith(f"t: c{c} in (") for text in found) == few
        if kind == BIGINT and not few and len(set(there)) > 1:
            numbers: Any = there
            assert f"t: c{c} between {min(numbers)} and {max(numbers)}" in found


def assert_told(before: Sequence[str], after: Sequence[str], changes: Changes) -> None:
    """What a batch says makes the rules after it of those before."""
    of_kind = changes[FIELD]
    lost = {str(each.constraint) for each in of_kind.broken}
    lost |= {str(each.constraint) for each in of_kind.superseded}
    new = {str(each) for each in of_kind.gained}
    new |= {str(each.now) for each in of_kind.broken if each.now is not None}
    new |= {str(each.by) for each in of_kind.superseded}
    assert lost <= {*before} - {*after}
    assert {*after} - {*before} <= new <= {*after}


@pytest.mark.slow
@law(30)
@given(data=st.data(), tasks_=st.integers(1, 3))
def test_kept_equals_fresh(data: st.DataObject, tasks_: int) -> None:
    kinds = data.draw(
        st.lists(st.sampled_from([CODES, ALIKE, BIGINT, BIGINT, *MORE]), min_size=1, max_size=4)
    )
    rows = data.draw(rows_of(len(kinds), 14))
    with folder() as path, small_limits(**data.draw(LIMITS)):
        shop = Shop(Path(path) / "p", kinds, rows, OPTIONS, tasks_)
        assert_exact(shop, rows)
        for step in range(data.draw(st.integers(1, 4))):
            change = data.draw(batches(len(kinds), rows))
            before = rules(shop)
            told = shop.apply(**change.batch)
            rows = change.after
            assert_exact(shop, rows)
            assert_told(before, rules(shop), told)
            is_known = "timestamp_ntz(9)" not in [kind.name for kind in kinds]
            for each in told[FIELD].broken if is_known else ():
                assert oracle.tally(parse(str(each.constraint)), {"t": records(shop, rows)})[0]
            fresh = Shop(Path(path) / f"fresh{step}", kinds, rows, OPTIONS, tasks_)
            assert rules(fresh) == rules(shop)
        assert shop.verify().equal


def column(*cells: Any) -> Rows:
    return [(cell,) for cell in cells]


def test_a_batch_tells_new_values_and_ranges_that_grow(tmp_path: Path) -> None:
    words = Kind("string", pa_string := CODES.arrow, ("F", "O", "P"))
    assert pa_string == CODES.arrow
    rows: Rows = [(i % 2, i) for i in range(40)]
    shop = Shop(tmp_path / "p", [words, BIGINT], rows, OPTIONS)
    assert rules(shop) == [
        "t: c0 not null",
        "t: c0 in ('F', 'O')",
        "t: c1 not null",
        "t: c1 between 0 and 39",
        "t: c1 >= 0",
    ]
    changes = shop.apply(inserts=[(2, 50), (0, -1)])[FIELD]
    assert [(str(e.constraint), str(e.now)) for e in changes.broken] == [
        ("t: c0 in ('F', 'O')", "t: c0 in ('F', 'O', 'P')"),
        ("t: c1 between 0 and 39", "t: c1 between -1 and 50"),
        ("t: c1 >= 0", "t: c1 between -1 and 50"),
    ]
    assert not changes.gained
    back = shop.apply(deletes=[(2, 50), (0, -1)])[FIELD]
    assert [str(each.by) for each in back.superseded] == [
        "t: c0 in ('F', 'O')",
        "t: c1 between 0 and 39",
    ]
    assert [str(each) for each in back.gained] == ["t: c1 >= 0"]
    assert KIND.became(changes.broken[0].constraint, changes.broken[0].now) == (
        "c0 in ('F', 'O'); new value 'P'"
    )


@pytest.mark.parametrize(
    ("cells", "bound"),
    [
        ([Decimal(i) / 100 for i in range(100)], "between 0 and 1"),
        ([Decimal(i) for i in range(1, 98)], "between 0 and 100"),
        ([Decimal(i) for i in range(1, 50)], "> 0"),
        ([Decimal(-i) for i in range(50)], "<= 0"),
        ([Decimal(-1 - i) for i in range(50)], "< 0"),
    ],
)
def test_natural_bounds(tmp_path: Path, cells: list[Decimal], bound: str) -> None:
    kind = replace(next(each for each in KINDS if "decimal" in each.name), cells=tuple(cells))
    shop = Shop(tmp_path / "p", [kind], column(*range(len(cells))), OPTIONS)
    assert f"t: c0 {bound}" in rules(shop)


def test_values_that_are_not_kept_are_counted(tmp_path: Path) -> None:
    rows = column(*[0, 1] * 20)
    options = Options(kinds=("columns",), keep_rows=False)
    shop = Shop(tmp_path / "p", [CODES], rows, options)
    assert rules(shop) == ["t: c0 not null"]
    (facts,) = shop.now.facts
    assert (facts.distinct, facts.estimated, facts.values, facts.pattern) == (2, False, None, None)


def test_rules_are_found_in_a_profile_of_an_earlier_holdfast(tmp_path: Path) -> None:
    """Where nothing is known of what occurs, it is looked for when the kind is added."""
    shop = Shop(tmp_path / "p", [ALIKE], column(0, 1, 2, 5), Options(kinds=("keys",)))
    with shop.store.writing() as lease:
        old = shop.store.read()
        record = old.tables["t"]
        facts = tuple(replace(each, values=None, shapes=None) for each in record.facts)
        tables = old.tables | {"t": replace(record, facts=facts)}
        shop.store.publish(replace(old, tables=tables), lease)
    shop.apply(inserts=column(3), deletes=column(0))
    assert shop.verify().equal
    assert KIND.name not in shop.now.found
    flow.extend(shop.runner, shop.store, ["columns"], {}, no_progress)
    assert rules(shop) == [
        "t: c0 not null",
        "t: c0 matches '[A-Z][0-9]{1,2}'",
    ]
    assert shop.verify().equal


def test_a_profile_that_does_not_look_for_them_counts_none(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", [ALIKE], column(0, 1), Options(kinds=("keys",)))
    assert FIELD not in shop.apply(inserts=column(2)).kinds
    assert KIND.name not in snapshot(shop.store).tables["t"].found


def test_more_than_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A domain that grows beyond the limit breaks, and nothing holds in its place but bounds."""
    varied(monkeypatch, segment_rows=16)
    rows = column(*[i % 32 for i in range(64)])
    shop = Shop(tmp_path / "p", [BIGINT], rows, OPTIONS, 2)
    assert len(Counter(rules(shop))) == 2
    told = shop.apply(inserts=column(32, 33))[FIELD]
    assert [str(each.now) for each in told.broken] == ["t: c0 between 0 and 33"]
    told = shop.apply(deletes=column(32, 33))[FIELD]
    assert [str(each.by)[:12] for each in told.superseded] == ["t: c0 in (0,"] * 2
