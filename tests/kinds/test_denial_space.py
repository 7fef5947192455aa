"""The choice of predicates: from types and shared values, as JSON, and for people."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.input.row_input import Columns
from holdfast.kinds.denial_constraints import predicate_listing as chosen_predicates
from holdfast.kinds.denial_constraints import space as predicates
from holdfast.kinds.denial_constraints.space import Choice
from holdfast.model.comparisons import EQUALITY, FIRST, ORDER, SECOND, Comparison, Space
from holdfast.model.errors import InputError, SchemaError

TYPES = {
    "id": ("bigint", pa.int64()),
    "low": ("decimal(9,2)", pa.decimal128(9, 2)),
    "high": ("double", pa.float64()),
    "from": ("date", pa.date32()),
    "at": ("timestamp", pa.timestamp("us", "UTC")),
    "local": ("timestamp_ntz", pa.timestamp("us")),
    "name": ("string", pa.string()),
    "code": ("string", pa.dictionary(pa.int32(), pa.string())),
    "paid": ("boolean", pa.bool_()),
    "raw": ("binary", pa.binary()),
}
COLUMNS = Columns.of(
    list(TYPES), [name for name, _ in TYPES.values()], [type_ for _, type_ in TYPES.values()]
)
PLACE = {name: c for c, name in enumerate(TYPES)}


def pairs(*named: tuple[str, str]) -> list[tuple[int, int]]:
    return [(PLACE[one], PLACE[two]) for one, two in named]


def test_types_say_how_columns_are_compared() -> None:
    ways = predicates.ways("orders", COLUMNS, Choice())
    assert dict(zip(TYPES, ways, strict=True)) == {
        **dict.fromkeys(("id", "low", "high", "from", "at", "local"), "ordered"),
        **dict.fromkeys(("name", "code", "paid", "raw"), "equality"),
    }


def test_columns_of_one_family_can_be_compared() -> None:
    numbers = pairs(("id", "low"), ("id", "high"), ("low", "high"))
    assert predicates.comparable("orders", COLUMNS, Choice()) == [
        *numbers, *pairs(("name", "code"))
    ]  # fmt: skip
    off = Choice({"low": "off"})
    assert predicates.comparable("orders", COLUMNS, off) == pairs(("id", "high"), ("name", "code"))
    assert predicates.comparable("orders", COLUMNS, Choice(across=False, within=False)) == []
    assert predicates.comparable("orders", COLUMNS, Choice(across=False)) == [
        *numbers, *pairs(("name", "code"))
    ]  # fmt: skip


def chosen(choice: Choice, **shares: float) -> Space:
    every = dict.fromkeys(predicates.comparable("orders", COLUMNS, choice), 0.0)
    every |= {
        pairs((name.split("_")[0], name.split("_")[1]))[0]: each for name, each in shares.items()
    }
    return predicates.space("orders", COLUMNS, every, choice)


def across(space: Space) -> list[Comparison]:
    return [each for each in space.comparisons if each.left != each.right]


def test_columns_that_share_values_are_compared_in_two_rows_and_in_one() -> None:
    space = chosen(Choice(), low_high=0.3, id_low=0.299)
    assert [each.operators for each in space.comparisons[:10]] == [ORDER] * 6 + [EQUALITY] * 4
    low, high = PLACE["low"], PLACE["high"]
    assert across(space) == [
        Comparison(low, high, ORDER),
        Comparison(high, low, ORDER),
        Comparison(low, high, ORDER, FIRST),
        Comparison(low, high, ORDER, SECOND),
    ]
    assert [space.mirror[space.mirror[atom]] for atom in range(space.atoms)] == list(
        range(space.atoms)
    )


def test_options() -> None:
    assert across(chosen(Choice(min_share=0.5), low_high=0.4)) == []
    only = chosen(Choice(within=False), low_high=1.0)
    assert {each.rows for each in across(only)} == {0}
    within = chosen(Choice(across=False), low_high=1.0)
    assert [each.rows for each in across(within)] == [FIRST, SECOND]
    mixed = chosen(Choice({"low": "equality", "paid": "ordered", "raw": "off"}), low_high=1.0)
    assert {each.operators for each in across(mixed)} == {EQUALITY}
    ways = chosen_predicates.columns_of(mixed, COLUMNS.names)
    assert (ways["low"], ways["paid"], ways["raw"], ways["id"]) == (
        "equality", "ordered", "off", "ordered",
    )  # fmt: skip


def test_options_that_do_not_fit_are_named() -> None:
    with pytest.raises(InputError, match=r"column 'a' can be compared as .*, not 'sorted'"):
        Choice({"a": "sorted"})
    with pytest.raises(InputError, match="min_share must be a share from 0 to 1, not 3"):
        Choice(min_share=3)
    with pytest.raises(SchemaError, match="table 'orders' has no column 'nme'"):
        predicates.ways("orders", COLUMNS, Choice({"nme": "off"}))
    with pytest.raises(InputError, match="column 'name' of table 'orders' is of type string"):
        predicates.ways("orders", COLUMNS, Choice({"name": "ordered"}))


VALUES = st.lists(st.integers(0, 5), max_size=12)


@given(VALUES, VALUES)
def test_shares(one: list[int], two: list[int]) -> None:
    a, b = Counter(one), Counter(two)
    common = np.array([[len(one), (a & b).total()], [(a & b).total(), len(two)]])
    most = (a | b).total()
    expected = (a & b).total() / most if most else 0.0
    assert predicates.shares(common) == {(0, 1): expected}


def test_what_people_see() -> None:
    space = chosen(Choice({"raw": "off"}), low_high=1.0, name_code=0.5)
    assert list(chosen_predicates.listing(space, COLUMNS.names)) == [
        "id     ordered",
        "low    ordered",
        "high   ordered",
        "from   ordered",
        "at     ordered",
        "local  ordered",
        "name   equality",
        "code   equality",
        "paid   equality",
        "raw    off",
        "low, high: ordered, in two rows and in one row",
        "name, code: equality, in two rows and in one row",
    ]
    assert chosen_predicates.pairs_of(space, COLUMNS.names)[0].to_dict() == {
        "columns": ["low", "high"],
        "compared": "ordered",
        "across_rows": True,
        "within_row": True,
    }
    one = chosen_predicates.pairs_of(chosen(Choice(across=False), low_high=1.0), COLUMNS.names)
    assert [str(each) for each in one] == ["low, high: ordered, in one row"]
