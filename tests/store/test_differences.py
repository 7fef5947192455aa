"""Tables as a base and differences: read as they were written, and no more written than changed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels import bitsets
from holdfast.model import thresholds
from holdfast.model.errors import StoreError
from holdfast.runtime.sealed import seal_of
from holdfast.store import Store
from holdfast.store.codecs import _changed, encoded, masks_of, stored
from holdfast.store.differences import difference, saved

Rows = list[tuple[int, int, str | None]]

rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(-2, 2), st.sampled_from([None, "", "a", "ä" * 9])),
    max_size=12,
)


def table(some: Rows) -> pa.Table:
    """A table with a column of every type that is stored."""
    masks = np.array([[1 << each[0], each[0]] for each in some], np.uint64).reshape(-1, 2)
    pairs = pa.array([v for each in some for v in (each[1], 7)], pa.int64())
    return pa.table(
        {
            "mask": masks_of(masks),
            "rhs": pa.array([each[1] for each in some], pa.int32()),
            "error": pa.array([each[1] / 3 for each in some], pa.float64()),
            "witnesses": pa.FixedSizeListArray.from_arrays(pairs, 2),
            "one": pa.array([each[2] for each in some], pa.string()).dictionary_encode(),
        }
    )


def as_read(some: pa.Table) -> pa.Table:
    return pa.ipc.open_file(encoded(some)).read_all()


@given(rows, rows)
def test_a_difference_makes_one_table_of_the_other(one: Rows, two: Rows) -> None:
    """Whatever the order, and with rows that are there twice."""
    change = difference(as_read(table(one)), table(two))
    assert change is not None
    after = _changed(as_read(table(one)), as_read(change), "file")
    assert after.to_pylist() == table(two).to_pylist()
    assert after.schema.equals(table(two).schema)
    assert change.num_rows <= len(one) + len(two)
    if len(set(one)) == len(one):
        assert (change.num_rows == 0) == (one == two)


def test_only_what_changed_is_in_a_difference() -> None:
    one: Rows = [(i % 6, i, None) for i in range(2000)]
    two = [*one[:300], (1, -1, "new"), (2, -1, None), *one[301:1999]]
    change = difference(as_read(table(one)), table(two))
    assert change is not None
    places = [(row["added"], row["place"]) for row in change.to_pylist()]
    assert places == [(True, 300), (True, 301), (False, 300), (False, 1999)]


def test_tables_of_other_types_have_none() -> None:
    assert difference(table([(1, 1, "a")]), table([(1, 1, "a")]).drop_columns(["one"])) is None


def some_masks(seed: int, count: int) -> Any:
    chosen = np.random.default_rng(seed).integers(0, 1 << 63, (count, 1), np.uint64)
    return bitsets.distinct(chosen)


def test_a_chain_of_versions(store: Store) -> None:
    """Every version stays readable, through several bases and differences; a base comes after so
    many differences, and an unchanged table writes nothing."""
    random.seed(7)
    masks = some_masks(1, 5_000)
    chain: list[tuple[tuple[str, ...], Any]] = []
    files: tuple[str, ...] = ()
    with store.writing() as lease:
        for _ in range(40):
            content = pa.table({"mask": masks_of(masks)})
            files = saved(store, lease, "sets", content, files)
            chain.append((files, masks))
            assert saved(store, lease, "sets", content, files) == files
            kept = np.delete(masks, random.randrange(len(masks)), axis=0)
            masks = bitsets.distinct(np.concatenate([kept, some_masks(len(chain) + 1, 1)]))
        assert [len(each) for each, _ in chain] == [*range(1, 18), *range(1, 18), *range(1, 7)]
        for named, expected in chain:
            assert stored(store, named).column("mask").to_pylist() == [
                mask.tobytes() for mask in expected
            ]


def test_differences_never_outgrow_half_of_their_base(store: Store) -> None:
    masks = some_masks(1, 4_000)
    files: tuple[str, ...] = ()
    bases = set()
    with store.writing() as lease:
        for step in range(12):
            files = saved(store, lease, "sets", pa.table({"mask": masks_of(masks)}), files)
            bases.add(files[0])
            base, *rest = (seal.size for seal in map(seal_of, files) if seal)
            assert sum(rest) <= thresholds.current.difference_share * base
            masks = bitsets.distinct(np.concatenate([masks[500:], some_masks(step + 2, 500)]))
        assert 2 <= len(bases) < 12
        # What is new throughout is written whole.
        anew = saved(store, lease, "sets", pa.table({"mask": masks_of(~masks)}), files)
        assert len(anew) == 1


def test_a_difference_to_something_else_is_damage(store: Store) -> None:
    with store.writing() as lease:
        masks = some_masks(1, 1_000)
        files = saved(store, lease, "sets", pa.table({"mask": masks_of(masks)}), ())
        one = saved(store, lease, "sets", pa.table({"mask": masks_of(masks[1:])}), files)
        two = saved(store, lease, "sets", pa.table({"mask": masks_of(masks[2:])}), one)
        assert (len(one), len(two)) == (2, 3)
        with pytest.raises(StoreError, match=r"sets-.*damaged: it changes 999 rows, but there are"):
            stored(store, (two[0], two[2]))
