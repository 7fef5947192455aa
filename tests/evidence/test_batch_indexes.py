"""Batches that are looked up in indexes: kept constraints against brute force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cover.cover import Cover
from holdfast.evidence.comparison import completion
from holdfast.evidence.counted import groups_of
from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints.predicates import atoms_of, denial_of
from holdfast.kinds.table_state import TableState
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.errors import StoreError
from holdfast.model.grammar import parse
from holdfast.model.options import Options
from holdfast.model.thresholds import Costs
from holdfast.tasks import compaction
from holdfast.tasks.segments import is_chained
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, Shop, folder, rewrite, small_limits
from tests.flow.test_denials import as_oracle, cells, space_of
from tests.flow.test_law import LIMITS, law
from tests.kernels.test_chains import TAX
from tests.limits import LOOKED_UP
from tests.strategies import Rows, rows_of

COMPLETED = st.sampled_from([0.0, 0.0, 1e9])
"""What a search of all pairs costs: nothing, or more than all else."""

OPTIONS = st.builds(
    Options,
    kinds=st.sampled_from([("dcs",), ("keys", "fds", "dcs")]),
    evidence=st.just("witnessed"),
    nulls=st.sampled_from(["equal", "unequal"]),
    max_predicates=st.sampled_from([None, None, 2]),
    cross_columns=st.sampled_from([None, None, 0.0]),
)


@contextmanager
def looked_up(**changed: Any) -> Iterator[pytest.MonkeyPatch]:
    with small_limits(**{**LOOKED_UP, **changed}) as patch:
        yield patch


def minimal(shop: Shop) -> set[tuple[int, ...]]:
    """The minimal sets that are kept."""
    known = TableState.load(shop.store, shop.store.read(), "t")
    return {*bitsets.to_columns(known.evidence["denial"].covers.keys.minimal)}


def expected(shop: Shop, rows: Rows) -> set[tuple[int, ...]]:
    """Those of all pairs of rows."""
    space = space_of(shop)
    asked = as_oracle(space)
    shown = {
        frozenset(oracle.evidence(t, s, asked, shop.options.nulls))
        for t, s in permutations(cells(shop, rows), 2)
    }
    masks = bitsets.from_columns([sorted(each) for each in shown], space.atoms)
    maximal = bitsets.maximal(masks) if len(masks) else masks
    limit = shop.options.max_predicates
    cover = Cover.build(space.atoms, maximal, limit, groups_of(space))
    return {*bitsets.to_columns(cover.minimal)}


@pytest.mark.slow
@given(st.data(), OPTIONS)
@law(20)
def test_kept_equals_fresh(data: st.DataObject, options: Options) -> None:
    """Also with batches that replace all rows, which every row may be deleted by."""
    kinds = st.sampled_from([BIGINT, BIGINT, BIGINT, *KINDS])
    columns = data.draw(st.lists(kinds, min_size=1, max_size=3))
    rows = data.draw(rows_of(len(columns), 9))
    costs = Costs(
        lookup_seconds=data.draw(st.sampled_from([0.0, 0.0, 0.0, 0.2])),
        fetched_seconds_a_pair=data.draw(st.sampled_from([0.0, 0.0, 0.0, 1.0])),
        pairs_a_second=1.0,
        completion_seconds_a_row=data.draw(COMPLETED),
    )
    limits = {
        **data.draw(LIMITS),
        "costs": costs,
        "returned_rows": data.draw(st.sampled_from([0, 1, 256])),
        "index_rows": data.draw(st.sampled_from([0, 0, 64])),
        "whole_share": data.draw(st.sampled_from([0.3, 1.0])),
        "fetched_pairs": data.draw(st.sampled_from([1, 1 << 18])),
        "past_sets": data.draw(st.sampled_from([2, 1 << 16])),
    }
    with folder() as path, looked_up(**limits):
        shop = Shop(Path(path) / "p", columns, rows, options, data.draw(st.sampled_from([1, 3])))
        assert minimal(shop) == expected(shop, rows)
        for _ in range(data.draw(st.integers(1, 4))):
            change = data.draw(batches(len(columns), rows))
            shop.apply(**change.batch)
            rows = change.after
            assert minimal(shop) == expected(shop, rows)
        assert shop.verify().equal


def counted_calls(patch: pytest.MonkeyPatch, module: Any, *names: str) -> dict[str, int]:
    """How often functions are called from here on."""
    calls = dict.fromkeys(names, 0)
    for name in names:
        real = getattr(module, name)

        def counting(*args: Any, name: str = name, real: Any = real) -> Any:
            calls[name] += 1
            return real(*args)

        patch.setattr(module, name, counting)
    return calls


def orders(start: int, end: int) -> Rows:
    """Numbers, days and sums that rise with them, shops, and their towns."""
    return [(i, i // 3, 10 * i + i * i % 7, i * i % 11, i * i % 11 % 4) for i in range(start, end)]


DENIALS = Options(kinds=("dcs",), evidence="witnessed", cross_columns=None)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 12])
def test_batches_of_one_row_and_of_a_third(size: int, tmp_path: Path) -> None:
    """They are looked up, in indexes that were built once."""
    with looked_up(index_rows=1, returned_rows=2) as patch:
        shop = Shop(tmp_path / "p", 5, orders(0, 40), DENIALS)
        names = TableState.load(shop.store, shop.store.read(), "t").table.looked_up
        assert any(is_chained(name) for name in names)
        assert any(not is_chained(name) for name in names)
        ways = counted_calls(patch, completion, "looked_up", "beside")
        built = counted_calls(patch, compaction, "build")
        rows = orders(0, 40)
        for new in (orders(40, 40 + size), [(200 + i, 0, 5, 3, 1) for i in range(size)]):
            shop.apply(inserts=new)
            rows = [*rows, *new]
            assert minimal(shop) == expected(shop, rows)
        assert ways == {"looked_up": 2, "beside": 0}
        shop.apply(deletes=rows[:3])
        assert minimal(shop) == expected(shop, rows[3:])
        assert built == {"build": 0}
        assert TableState.load(shop.store, shop.store.read(), "t").table.looked_up == names
        assert shop.verify().equal


def test_a_batch_of_everything(tmp_path: Path) -> None:
    """All rows are replaced by others, and half of these by the first ones."""
    with looked_up() as patch:
        shop = Shop(tmp_path / "p", 5, orders(0, 40), DENIALS)
        ways = counted_calls(patch, completion, "looked_up")
        other = [(row[1], row[0], row[3], row[2], row[4]) for row in orders(0, 40)]
        shop.apply(deletes=orders(0, 40), inserts=other)
        assert minimal(shop) == expected(shop, other)
        shop.apply(deletes=other[:20], inserts=orders(0, 40))
        assert minimal(shop) == expected(shop, [*other[20:], *orders(0, 40)])
        assert ways["looked_up"] >= 2
        assert shop.verify().equal


def test_what_held_before_rows_came_holds_once_they_are_gone(tmp_path: Path) -> None:
    """Without a look at any row; and with a look at those that came since, where some stay."""
    rows = orders(0, 40)
    wrong: Rows = [(100, 1, 2, 3, 0), (101, 2, 1, 3, 1)]
    with looked_up(costs=replace(LOOKED_UP["costs"], completion_seconds_a_row=1e9)) as patch:
        shop = Shop(tmp_path / "p", 5, rows, DENIALS)
        before = minimal(shop)
        shop.apply(inserts=wrong)
        assert minimal(shop) == expected(shop, [*rows, *wrong]) != before
        ways = counted_calls(patch, completion, "looked_up", "beside", "complete")
        shop.apply(deletes=wrong)
        assert minimal(shop) == before
        assert ways == {"looked_up": 0, "beside": 0, "complete": 0}
        shop.apply(inserts=wrong)
        shop.apply(deletes=wrong[1:])
        assert minimal(shop) == expected(shop, [*rows, *wrong[:1]])
        assert ways == {"looked_up": 2, "beside": 0, "complete": 0}
        assert shop.verify().equal


def test_segments_are_merged_with_their_indexes(tmp_path: Path) -> None:
    with looked_up(merged_segments=2, index_rows=1, returned_rows=2) as patch:
        shop = Shop(tmp_path / "p", 5, orders(0, 40), DENIALS, tasks=1)
        for start in range(40, 52, 3):
            shop.apply(inserts=orders(start, start + 3))
        known = TableState.load(shop.store, shop.store.read(), "t").table
        assert len(known.segments) < 4
        ways = counted_calls(patch, completion, "looked_up", "beside")
        shop.apply(inserts=[(7, 7, 7, 7, 7)])
        assert ways == {"looked_up": 1, "beside": 0}
        assert minimal(shop) == expected(shop, [*orders(0, 52), (7, 7, 7, 7, 7)])


def a_chained_index(shop: Shop) -> str:
    """The file of an index in chains, of the first segment."""
    segment = shop.store.read().tables["t"].segments[0]
    return next(path for name, path in segment.indexes.items() if is_chained(name))


@pytest.mark.parametrize("what", ["positions", "first", "ends"])
def test_verify_sees_an_index_that_is_not_of_its_rows(what: str, tmp_path: Path) -> None:
    with looked_up(index_rows=1, returned_rows=2):
        shop = Shop(tmp_path / "p", 5, orders(0, 40), DENIALS)
        assert shop.verify().equal

        def change(arrays: dict[str, Any]) -> None:
            arrays[what][3] += 1

        wrong = rewrite(shop.store, a_chained_index(shop), change)
        (line,) = shop.verify().differences["t"]
        assert line.startswith(f"{wrong}: is not the index ")


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    with looked_up(index_rows=1, returned_rows=2):
        shop = Shop(tmp_path / "p", 5, orders(0, 40), DENIALS)
        name = a_chained_index(shop)
        path = tmp_path / "p" / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(StoreError, match=f"{name}: this data file is damaged"):
            shop.apply(inserts=orders(40, 41))


def test_a_table_gets_indexes_when_it_is_long_enough(tmp_path: Path) -> None:
    with looked_up(lookup_table_rows=45) as patch:
        shop = Shop(tmp_path / "p", 5, orders(0, 40), DENIALS)
        assert not shop.store.read().tables["t"].looked_up
        ways = counted_calls(patch, completion, "looked_up", "beside")
        shop.apply(inserts=orders(40, 46))
        assert shop.store.read().tables["t"].looked_up
        shop.apply(inserts=orders(46, 48))
        assert ways == {"looked_up": 1, "beside": 1}
        assert minimal(shop) == expected(shop, orders(0, 48))


def test_example_14(tmp_path: Path) -> None:
    """IncDC's: what the rows t7 to t9 do to φ3, which t7 violates with t1, and t8 with t3. With a
    predicate on the state it holds again, with one on the phone number it does not."""
    phones = [6059466, 5872027, 1638673, 6192334, 6059466, 1638673, 8484643]
    phones += [5872027, 1638673, 6192334]
    states = [0, 0, 1, 2, 0, 1, 0, 2, 1, 2]
    rates = [round(100 * rate) for rate in TAX["RATE"]]
    rows: Rows = list(zip(TAX["TXA"], TAX["SAL"], rates, states, phones, strict=True))
    with looked_up() as patch:
        shop = Shop(tmp_path / "p", [BIGINT] * 3 + [KINDS[2], BIGINT], rows[:7], DENIALS)
        space = space_of(shop)
        names = [f"c{c}" for c in range(5)]
        rule = "not (t.c0 > s.c0 and t.c1 < s.c1 and t.c2 > s.c2"

        def holds(more: str = "") -> bool:
            atoms = {
                *atoms_of(
                    denial_of(cast(DenialConstraint, parse(f"t: {rule}{more})"))), space, names
                )
            }
            images = ({*space.mirrored(atoms)}, atoms)
            return any({*each} <= image for each in minimal(shop) for image in images)

        assert holds()
        ways = counted_calls(patch, completion, "looked_up", "beside")
        shop.apply(inserts=rows[7:])
        assert ways == {"looked_up": 1, "beside": 0}
        assert not holds()
        assert holds(" and t.c3 = s.c3")
        assert not holds(" and t.c4 = s.c4")
        assert minimal(shop) == expected(shop, rows)
