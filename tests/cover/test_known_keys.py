"""The keys of real tables, from all pairs of rows, or learned from counterexamples alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from holdfast.cover.cover import Cover
from holdfast.kernels import bitsets
from holdfast.kernels.bitsets import Masks
from tests.data import MISSING, data_dir, read_table

Codes = npt.NDArray[np.int64]

pytestmark = pytest.mark.skipif(data_dir() is None, reason=MISSING)


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    folder = data_dir()
    assert folder is not None
    results: dict[str, Any] = json.loads((folder / "known-results.json").read_text())
    return results


def load(table: str) -> tuple[list[str], Codes]:
    """Column names, and the cells as numbers that are equal where the text is."""
    folder = data_dir()
    assert folder is not None
    header, rows = read_table(folder / f"{table}.csv")
    columns = [np.unique(cells, return_inverse=True)[1] for cells in zip(*rows, strict=True)]
    return header, np.array(columns, np.int64).T


def agree_sets(left: Codes, right: Codes) -> Masks:
    columns = right.shape[1]
    equal = np.zeros((len(right), 64 * bitsets.words_for(columns)), np.bool_)
    equal[:, :columns] = left == right
    return np.packbits(equal, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def all_agree_sets(rows: Codes) -> Masks:
    """The distinct agree-sets of all pairs of rows."""
    found = bitsets.empty(rows.shape[1])
    waiting: list[Masks] = []
    for i in range(len(rows) - 1):
        waiting.append(bitsets.distinct(agree_sets(rows[i], rows[i + 1 :])))
        if len(waiting) == 256 or i == len(rows) - 2:
            found = bitsets.distinct(np.concatenate([found, *waiting]))
            waiting.clear()
    return found


def counterexamples(columns: tuple[int, ...], rows: Codes) -> Masks:
    """Agree-sets of neighbouring rows that agree on the columns; none when they are a key."""
    order = np.lexsort([rows[:, c] for c in columns] or [np.zeros(len(rows))])
    first, second = rows[order[:-1]], rows[order[1:]]
    alike = (first[:, columns] == second[:, columns]).all(axis=1)
    return bitsets.distinct(agree_sets(first[alike], second[alike]))


def names(header: list[str], sets: Masks) -> set[frozenset[str]]:
    return {frozenset(header[c] for c in columns) for columns in bitsets.to_columns(sets)}


@pytest.mark.parametrize("table", ["abalone", "breast-cancer", "bridges", "hepatitis", "iris"])
def test_keys_from_all_pairs(table: str, known: dict[str, Any]) -> None:
    header, rows = load(table)
    evidence = all_agree_sets(rows)
    assert len(evidence) == known[table]["agree_sets"]
    cover = Cover.build(len(header), evidence)
    assert names(header, cover.minimal) == {frozenset(key) for key in known[table]["keys"]}


def test_many_keys_come_back_after_removals(known: dict[str, Any]) -> None:
    header, rows = load("flight")
    evidence = all_agree_sets(rows)
    assert len(evidence) == known["flight"]["agree_sets"]
    cover = Cover.build(len(header), evidence)
    minimal = cover.minimal
    assert len(minimal) == known["flight"]["key_count"]

    some = cover.evidence[::20]
    without = cover.remove(some)
    assert np.array_equal(cover.minimal, Cover.build(len(header), cover.evidence).minimal)
    with_again = cover.add(some)
    assert np.array_equal(cover.minimal, minimal)
    assert np.array_equal(without.gained, with_again.lost)
    assert np.array_equal(without.lost, with_again.gained)


@pytest.mark.slow
def test_keys_learned_from_counterexamples(known: dict[str, Any]) -> None:
    header, rows = load("adult")
    rows = np.unique(rows, axis=0)
    cover = Cover.build(len(header), bitsets.empty(len(header)))
    proven: set[tuple[int, ...]] = set()
    while candidates := set(bitsets.to_columns(cover.minimal)) - proven:
        found = {columns: counterexamples(columns, rows) for columns in candidates}
        proven |= {columns for columns, evidence in found.items() if not len(evidence)}
        cover.add(np.concatenate(list(found.values())))
    expected = {frozenset(key) for key in known["adult"]["keys_of_distinct_rows"]}
    assert names(header, cover.minimal) == expected
