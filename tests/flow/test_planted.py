"""The law on planted tables: what shows something goes pair by pair, until nothing shows it.

``HOLDFAST_EXAMPLES`` says how many tables to try; all of a table follows from its number.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.kernels import bitsets
from holdfast.kinds.table_state import TableState
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.options import Options
from holdfast.model.thresholds import Costs
from tests import oracle
from tests.flow.planted import Plot, rows_by_id
from tests.flow.tables import Shop, small_limits
from tests.flow.test_denials import as_oracle, expected, space_of, told
from tests.flow.test_inclusion import Shops
from tests.limits import LOOKED_UP
from tests.strategies import Rows, examples

Limits = dict[str, tuple[Any, ...]]
"""The values of each threshold to choose from."""

DIVIDED: Limits = {"segment_rows": (1 << 20, 12), "merged_segments": (100, 100, 2)}

LISTED: Limits = {
    "part_from_rows": (0,),
    "few_combinations": (0,),
    "frequent_rows": (1 << 30,),
    "undivided_rows": (0,),
    "part_from_candidates": (64, 4),
    "listed_pairs_a_mask": (1, 2, 5),
    "subkey_pairs_expected": (1e9,),
    "recent_share": (10.0,),
}
"""Pairs are listed whatever the rows, but few of each; rows that have come since are looked up."""

LOOKED_FOR: Limits = {
    "listed_subkeys": (0,),
    "part_from_rows": (0, 1 << 18),
    "recent_share": (10.0, 10.0, 0.25),
    "lookup_rows": (4_096, 0, 1),
    "own_index_rows": (64, 0),
    "large_groups": (64, 1),
    "few_combinations": (4_096, 0),
}
"""Nothing is listed."""


def some(random: Random, *limits: Limits) -> dict[str, Any]:
    """One value for each threshold."""
    return {name: random.choice(given) for each in limits for name, given in each.items()}


@pytest.mark.law
@pytest.mark.parametrize("seed", range(examples(40)))
def test_keys_and_dependencies(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    options = Options(
        random.choice((("keys",), ("keys", "fds"))),
        evidence=("witnessed", "witnessed", "witnessed", "counted")[seed % 4],
        nulls=random.choice(("equal", "unequal")),
        max_columns=random.choice((None, None, 2)),
        keep_rows=random.random() < 0.7,
    )
    columns = random.randint(4, 6)
    plot = Plot(random, columns, ordered=False)
    with small_limits(**some(random, DIVIDED, (LISTED, LOOKED_FOR)[seed % 2])):
        shop = Shop(tmp_path / "p", columns, [*plot.rows], options)
        shop.assert_exact(plot.rows)
        for batch in plot.batches(shop, AGREEMENTS):
            shop.apply(**batch)
            shop.assert_exact(plot.rows)


COMPARED: tuple[dict[str, Any], ...] = (
    {**LOOKED_UP, "whole_share": 1e9},
    {"all_pairs": -1},
    {**LOOKED_UP, "whole_share": 1e9},
    {"all_pairs": -1, "costs": Costs(pairs_a_second=1e-9)},
)


@pytest.mark.slow
@pytest.mark.law
@pytest.mark.parametrize("seed", range(examples(20)))
def test_denial_constraints(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    columns = random.choice((2, 3, 3))
    options = Options(
        ("dcs",),
        evidence=("witnessed", "witnessed", "witnessed", "witnessed", "counted")[seed % 5],
        nulls=random.choice(("equal", "unequal")),
        max_predicates=random.choice((None, None, 2)),
        keep_rows=random.random() < 0.7,
        columns=random.choice(((), (), ("c0=equality", "c1", "c2")))[:columns],
        cross_columns=random.choice((None, 0.0)) if columns == 2 else None,
    )
    plot = Plot(random, columns, ordered=True)
    with small_limits(**some(random, DIVIDED), **COMPARED[seed % 4]):
        shop = Shop(tmp_path / "p", columns, [*plot.rows], options)
        assert_denials(shop, plot.rows)
        for batch in plot.batches(shop, "denial"):
            shop.apply(**batch)
            assert_denials(shop, plot.rows)
    if columns == 2:
        space = space_of(shop)
        assert {*told(shop, space)} == expected(shop, plot.rows, space)


def assert_denials(shop: Shop, rows: Rows) -> None:
    """The cover and the evidence are those of all ordered pairs, and every stored pair shows its
    evidence."""
    pairs = TableState.load(shop.store, shop.store.read(), "t").evidence["denial"]
    space, most = pairs.space, shop.options.max_predicates
    asked, nulls = as_oracle(space), shop.options.nulls
    outcomes = oracle.counted_outcomes(permutations(rows, 2), asked, nulls)
    found = {
        frozenset(oracle.satisfied(each, oracle.operators(asked))): count
        for each, count in outcomes.items()
    }
    minimal = oracle.minimal_sets_stepwise(space.atoms, sorted(found, key=sorted))
    of = space.comparison_of
    minimal = [each for each in minimal if most is None or len({of[a] for a in each}) <= most]
    assert sorted(bitsets.to_columns(pairs.covers.keys.minimal)) == sorted(minimal)
    if pairs.counts is not None:
        counted = zip(bitsets.to_columns(pairs.counts.masks), pairs.counts.counts, strict=True)
        assert {frozenset(mask): count for mask, count in counted} == found
        return
    shown = bitsets.to_columns(pairs.evidence.masks)
    if most is None:
        assert sorted(shown) == sorted(oracle.maximal_sets(found))
    by_id = rows_by_id(shop, rows)
    for mask, witnesses in zip(shown, pairs.evidence.witnesses.tolist(), strict=True):
        real = [pair for pair in witnesses if pair[0] >= 0]
        assert real
        for one, two in real:
            assert one != two
            assert oracle.evidence(by_id[one], by_id[two], asked, nulls) == {*mask}


VALUES: Limits = {
    "merged_runs": (2, 3, 100),
    "task_cells": (0, 1 << 19),
    "task_entries": (2, 7, 1 << 22),
    "looked_up_rows": (1 << 17, 1 << 17, 0),
    "small_run": (2, 1 << 15),
}

COMMON = 3
"""Values that every column has; higher ones are planted."""

NUMBERS: dict[str, Callable[[int], Any]] = {"bigint": int, "double": float, "decimal(6,1)": Decimal}

NumberRow = tuple[int | None, int | None]


@pytest.mark.slow
@pytest.mark.law
@pytest.mark.parametrize("seed", range(examples(20)))
def test_inclusion_dependencies(tmp_path: Path, seed: int) -> None:
    """Values and pairs of values occur so often, and go one after another, or several at once."""
    random = Random(seed)
    options = Options(
        ("inds",),
        inclusion_nulls=random.choice(("ignored", "values")),
        max_arity=1 + seed % 2,
        within_tables=True,
        insert_only=seed % 5 == 4,
        keep_rows=random.random() < 0.7,
    )
    types = {name: random.choices([*NUMBERS], k=2) for name in "tu"}
    rows: dict[str, list[NumberRow]] = {
        name: [(value, value) for value in range(COMMON)] for name in "tu"
    }

    def cells(table: str, some_rows: list[NumberRow]) -> list[tuple[Any, ...]]:
        makers = [NUMBERS[kind] for kind in types[table]]
        return [
            tuple(None if n is None else make(n) for make, n in zip(makers, row, strict=True))
            for row in some_rows
        ]

    def planted() -> NumberRow:
        """Two values that are everywhere, but hardly side by side, or a value beside nothing."""
        if random.random() < (0.9 if (options.max_arity or 1) > 1 else 0.2):
            return random.randrange(COMMON), random.randrange(COMMON)
        value = random.randrange(COMMON, COMMON + 4)
        return random.choice(((value, None), (None, value)))

    for name in "tu":
        for _ in range(4):
            rows[name] += [planted()] * random.choice((1, 2, 4))
    with small_limits(**some(random, DIVIDED, VALUES)):
        tables = {name: (types[name], cells(name, rows[name])) for name in "tu"}
        shops = Shops(tmp_path / "p", tables, options)
        shops.assert_exact({name: each for name, (_, each) in tables.items()})
        for name in random.choices("tu", k=4):
            row = random.choice(rows[name])
            for count in random.choices((1, 2, 8), k=3):
                deletes = [] if options.insert_only else [row] * min(count, rows[name].count(row))
                inserts = random.choice(([], [], [row], [row, row], [planted()] * 2))
                for each in deletes:
                    rows[name].remove(each)
                rows[name] += inserts
                batch: dict[str, Any] = {"inserts": cells(name, inserts)}
                if deletes:
                    batch["deletes"] = cells(name, deletes)
                shops.apply(name, **batch)
                shops.assert_exact({each: cells(each, rows[each]) for each in "tu"})
                if row not in rows[name]:
                    break
