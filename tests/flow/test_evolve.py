"""A table that follows its source: new columns, and wider types."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.row_input import RowInput
from holdfast.input.type_names import exact_type
from holdfast.model.errors import SchemaError
from holdfast.model.expectations import Expectation
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.tasks.dialect import Dialect
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, Kind, folder, small_limits, text_input
from tests.flow.test_alter import OPTIONS, Altered
from tests.flow.test_law import LIMITS, law
from tests.strategies import Rows, rows_of


def chain(cells: tuple[Any, ...], *types: pa.DataType) -> list[Kind]:
    """Kinds of the same cells, each wider than the one before."""
    return [Kind(exact_type("", kind)[0], kind, cells) for kind in types]


CENTS = tuple(Decimal(n).scaleb(-2) for n in (0, 1, -1, 99999999, -50, 7))
CHAINS = [
    chain((0, 1, -1, 127, -128, 5), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    # Cells that a float has exactly.
    chain((0.0, 0.5, -1.5, 2.0**100, -2.0, 3.25), pa.float32(), pa.float64()),
    chain(CENTS, *(pa.decimal128(*each) for each in ((10, 2), (12, 2), (14, 4), (20, 4), (38, 8)))),
]


@law(30)
@given(data=st.data(), options=OPTIONS)
def test_widened_equals_fresh(data: st.DataObject, options: Options) -> None:
    chains = data.draw(st.lists(st.sampled_from(CHAINS), min_size=1, max_size=3))
    at = [0] * len(chains)
    with folder() as path, small_limits(**data.draw(LIMITS)):
        rows = data.draw(rows_of(len(chains), 9))
        shop = Altered(Path(path) / "p", [each[0] for each in chains], rows, options)
        if rule := data.draw(st.sampled_from([None, "t: key(c0)", "t: c0 not null"])):
            flow.expect(shop.runner, shop.store, [Expectation(rule)], no_progress)
        for step in range(data.draw(st.integers(1, 3))):
            c = data.draw(st.integers(0, len(chains) - 1))
            if at[c] + 1 < len(chains[c]):
                at[c] = data.draw(st.integers(at[c] + 1, len(chains[c]) - 1))
                shop.kinds[c] = chains[c][at[c]]
                alteration = evolution(shop, shop.input(shop.rows))
                assert alteration is not None
                assert [*alteration.widen] == [f"c{c}"]
                flow.alter(shop.runner, shop.store, "t", alteration, no_progress)
                assert evolution(shop, shop.input(shop.rows)) is None
            else:
                batch = data.draw(batches(len(chains), shop.rows))
                shop.apply(batch.batch)
                shop.rows = batch.after
            shop.assert_fresh(Path(path) / f"fresh{step}")


def evolution(shop: Altered, *rows: RowInput) -> flow.Alteration | None:
    return flow.evolution(shop.runner, shop.store, shop.store.read(), "t", rows)


ROWS: Rows = [(1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 2, None)]


@pytest.fixture
def shop(tmp_path: Path) -> Altered:
    with small_limits():
        kinds = [Kind("int", pa.int32()), BIGINT, BIGINT]
        return Altered(tmp_path / "p", kinds, ROWS, Options())


def test_the_same_encoding_changes_only_raw_rows(shop: Altered) -> None:
    before = shop.store.read().table("t")
    shop.kinds[0] = BIGINT
    alteration = evolution(shop, shop.input(ROWS))
    assert alteration is not None
    flow.alter(shop.runner, shop.store, "t", alteration, no_progress)
    after = shop.store.read().table("t")
    assert after.columns.types == ("bigint", "bigint", "bigint")
    assert after.evidence == before.evidence
    for old, new in zip(before.segments, after.segments, strict=True):
        assert replace(new, raw=None) == replace(old, raw=None)
        assert new.raw != old.raw
    shop.apply({"inserts": [(1 << 40, 1, 1)], "deletes": [(1, 1, 0)]})
    shop.rows = [*ROWS[1:], (1 << 40, 1, 1)]
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_new_columns_of_typed_rows(shop: Altered) -> None:
    shop.kinds.append(KINDS[2])
    shop.names.append("d")
    alteration = evolution(shop, shop.input([(5, 5, 5, 1)]))
    assert alteration is not None
    assert alteration.add == {"d": ("string", pa.string())}


def test_new_columns_of_text_get_the_type_that_all_cells_fit(shop: Altered) -> None:
    lines = ["1,2,3,4,x\n"] * 3 + ["1,2,3,4.5,\n"]
    given = text_input(["c0", "c1", "c2", "d", "e"], [])
    rows = pa.table({"line": lines, "origin": pa.nulls(len(lines), pa.int64())})
    read = replace(given, rows=rows, lines=Dialect(), guessed=True, header=False)
    alteration = evolution(shop, read)
    assert alteration is not None
    assert {name: kind for name, (kind, _) in alteration.add.items()} == {
        "d": "double",
        "e": "string",
    }


def test_what_a_person_has_to_decide(shop: Altered) -> None:
    shop.names[2] = "d"
    assert evolution(shop, shop.input(ROWS)) is None
    with pytest.raises(
        SchemaError,
        match=r"lacks the column 'c2' and has the column 'd', .*; if it got another name: holdfast "
        r"alter DIR --table t --rename-column c2=d$",
    ):
        shop.apply({"inserts": ROWS})
    shop.names, shop.kinds = ["c0", "c1"], shop.kinds[:2]
    assert evolution(shop, shop.input([(1, 1)])) is None
    with pytest.raises(
        SchemaError,
        match=r"gone for good: holdfast alter DIR --table t --drop-column c2$",
    ):
        shop.apply({"inserts": [(1, 1)]})
    shop.names, shop.kinds = ["c0", "c1", "c2"], [Kind("smallint", pa.int16()), BIGINT, BIGINT]
    assert evolution(shop, shop.input(ROWS)) is None
    with pytest.raises(SchemaError, match="column 'c0' is smallint, but int in table 't'; cast it"):
        shop.apply({"inserts": ROWS})
    assert shop.store.head() == 1


def test_without_evolve_the_message_names_it(shop: Altered) -> None:
    shop.kinds[0] = BIGINT
    with pytest.raises(SchemaError, match=r"c0' is bigint, but int .*; --evolve makes it wider"):
        shop.apply({"inserts": ROWS})
    shop.kinds, shop.names = [Kind("int", pa.int32()), *[BIGINT] * 3], [*shop.names, "d"]
    with pytest.raises(
        SchemaError,
        match=r"has the column 'd', .*; --evolve lets it join as nulls .*--add-column d=TYPE$",
    ):
        shop.apply({"inserts": [(1, 1, 1, 1)]})
