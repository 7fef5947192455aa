"""Verify says that all is well when it is, and what is wrong when a file was tampered with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.pairs import PairEvidence
from holdfast.evidence.witnessed import Witnessed
from holdfast.flow.commits import commit
from holdfast.kinds.table_state import TableState
from holdfast.model.commits import Segment
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.limits import Limits
from holdfast.model.progress import no_progress
from holdfast.runtime.run import Run
from holdfast.store import Store
from tests.flow.tables import KINDS, Shop, rewrite, small_limits
from tests.strategies import Rows

ROWS: Rows = [(i % 6, i // 6, i % 2, i % 3 or None) for i in range(36)]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    with small_limits(undivided_rows=0):
        shop = Shop(tmp_path / "p", [KINDS[0], KINDS[2], KINDS[5], KINDS[3]], ROWS, tasks=2)
        shop.apply(deletes=ROWS[:3], inserts=[(0, 0, 0, 0), (0, 0, 1, 0)])
    return shop


def segment(shop: Shop) -> Segment:
    return shop.store.read().tables["t"].segments[0]


def test_all_is_well(shop: Shop) -> None:
    before = sorted(Path(shop.store.path).rglob("*"))
    found = shop.verify()
    assert found.equal
    assert (found.version, found.differences) == (2, {"t": ()})
    assert sorted(Path(shop.store.path).rglob("*")) == before


def test_one_bit_of_the_words(shop: Shop) -> None:
    words = segment(shop).words

    def flip(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        arrays["words"][17] ^= np.uint64(1 << 40)

    words = rewrite(shop.store, words, flip)
    found = shop.verify()
    assert not found.equal
    assert found.differences["t"][0].startswith(
        f"{words}: does not match the raw rows in data/raw-"
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *product(["rows", "column"], ["codes", "positions", "beyond"]),
        ("rows", "signatures"),
    ],
)
def test_an_index(shop: Shop, name: str, what: str) -> None:
    indexes = segment(shop).indexes
    column = name if name == "rows" else next(each for each in indexes if each != "rows")

    def change(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        if what == "codes":
            arrays["codes"][0] -= 1
        elif what == "signatures":
            arrays["signatures"][0] ^= np.uint64(1)
        elif what == "positions":
            arrays["positions"][[0, -1]] = arrays["positions"][[-1, 0]]
        else:
            arrays["positions"][0] = 1_000_000

    index = rewrite(shop.store, indexes[column], change)
    wrong = f"{index}: is not the sorted column {column} of {segment(shop).words}"
    assert shop.verify().differences["t"] == (wrong,)


def test_the_deleted_rows(shop: Shop) -> None:
    dead = segment(shop).dead
    assert dead is not None

    def revive(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        arrays["dead"][:] = 0

    dead = rewrite(shop.store, dead, revive)
    (wrong,) = shop.verify().differences["t"]
    assert wrong == f"{dead}: does not leave {segment(shop).live} living rows"


def republish(shop: Shop, change: Callable[[TableState], TableState]) -> None:
    """Commit what is known of the table with something changed in it."""
    store = Store.open(shop.store.path)
    with store.writing() as lease:
        version = store.read()
        run = Run(shop.runner, store, version.options, lease, no_progress)
        kept = TableState.load(store, version, "t")
        commit(run, {"t": change(kept).save(run, kept)}, None)


def agreement(kept: TableState) -> tuple[PairEvidence, Witnessed]:
    pairs = kept.evidence[AGREEMENTS]
    assert pairs.witnessed is not None
    return pairs, pairs.witnessed


def with_witnessed(kept: TableState, witnessed: Witnessed) -> TableState:
    pairs = replace(kept.evidence[AGREEMENTS], witnessed=witnessed)
    return replace(kept, evidence={AGREEMENTS: pairs})


def test_a_key_that_is_none(shop: Shop) -> None:
    def without_first(kept: TableState) -> TableState:
        pairs, witnessed = agreement(kept)
        old = pairs.evidence
        evidence = Evidence(old.masks[1:], old.witnesses[1:])
        covers = Covers.build(shop.columns, [KEY], evidence.masks, Limits())
        return with_witnessed(kept, Witnessed(evidence, witnessed.covers.joined(covers)))

    republish(shop, without_first)
    found = shop.verify().differences["t"]
    assert any(line.startswith("the profile has the key") for line in found)
    assert any(line.startswith("the rows have the non-key") for line in found)


def test_a_witness_that_shows_something_else(shop: Shop) -> None:
    def swapped(kept: TableState) -> TableState:
        old, witnessed = agreement(kept)[0].evidence, agreement(kept)[1]
        pairs = old.witnesses.copy()
        pairs[[0, 1]] = pairs[[1, 0]]
        return with_witnessed(kept, replace(witnessed, evidence=Evidence(old.masks, pairs)))

    republish(shop, swapped)
    (found,) = shop.verify().differences["t"]
    assert found.endswith("pairs of rows do not show the evidence they stand for")


def test_a_count_of_duplicates(shop: Shop) -> None:
    republish(shop, lambda kept: replace(kept, table=replace(kept.table, duplicates=3)))
    found = shop.verify().differences["t"]
    assert found == ("the profile counts 3 repeated rows, but there are 0",)


def test_files_are_arrow(shop: Shop) -> None:
    """Nothing in the directory is executable, and plain Arrow reads all of it."""
    for relative in shop.store.files():
        if relative.endswith(".json"):
            continue  # a manifest
        assert pa.ipc.open_file(shop.store.file(relative)).num_record_batches > 0
