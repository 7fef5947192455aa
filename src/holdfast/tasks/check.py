"""Checking stored files against each other: words against raw rows, indexes against words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels.evidence import pair_mask
from holdfast.model.records import JsonObject
from holdfast.runtime.result import TaskResult, facts_of
from holdfast.runtime.sealed import damage
from holdfast.tasks.columns import column_facts
from holdfast.tasks.encode import encode, layout
from holdfast.tasks.segments import (
    ROWS,
    Segment,
    are_signed,
    chain_numbers,
    index_codes,
    is_chained,
    live_positions,
    map_chains,
    map_words,
    open_arrays,
    open_raw,
)
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Check:
    """Check these segments, whose raw rows have this schema."""

    view: View
    schema: pa.Schema


@dataclass(frozen=True)
class Files:
    """Check that these files are whole."""

    root: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Witnesses:
    """Check that the ``k``-th pair of rows shows the ``k``-th mask."""

    view: View
    masks: NDArray[np.uint64]
    pairs: NDArray[np.int64]


def check_files(item: Files) -> Iterator[TaskResult]:
    """The errors of those that are not."""
    errors = [damage(Path(item.root, name)) for name in item.names]
    yield TaskResult({"wrong": [facts_of(error) for error in errors if error]})


def check(item: Check) -> Iterator[TaskResult]:
    """What is wrong with the files, in words."""
    wrong: list[str] = []
    for segment in item.view.segments:
        path = segment.words
        try:
            words = map_words(item.view.path, segment).whole()
            if len(words) != segment.rows:
                wrong.append(f"{path}: has {len(words)} rows, not {segment.rows}")
                continue
            path = segment.raw or path
            if segment.raw is not None and not _encodes(item, segment, words):
                wrong.append(f"{segment.words}: does not match the raw rows in {segment.raw}")
            path = segment.dead or path
            if len(live_positions(item.view.path, segment)) != segment.live:
                wrong.append(f"{segment.dead}: does not leave {segment.live} living rows")
            for name, path in segment.indexes.items():
                if is_chained(name):
                    if not _chains(item.view, segment, name, words):
                        wrong.append(f"{path}: is not the index {name} of {segment.words}")
                    continue
                codes = index_codes(words, name, item.view.shape).view(np.int64)
                right = _sorts(item.view.path / path, codes)
                if name == ROWS:
                    right = right and are_signed(item.view.path, segment, words, item.view.shape)
                if not right:
                    wrong.append(f"{path}: is not the sorted column {name} of {segment.words}")
        except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
            wrong.append(f"{path}: cannot be read ({error})")
    facts: JsonObject = {"wrong": wrong}
    if not wrong:
        numbers = range(len(item.schema))
        facts["columns"] = [column_facts(item.view, item.schema, c).to_form() for c in numbers]
    yield TaskResult(facts)


def check_witnesses(item: Witnesses) -> Iterator[TaskResult]:
    """How many of the pairs are not two living rows that agree in just their mask's columns."""
    view = item.view
    rows: dict[int, NDArray[np.uint64]] = {}
    for segment in view.segments:
        live = live_positions(view.path, segment)
        asked = np.unique(item.pairs[item.pairs >> 32 == segment.number]) - segment.base
        asked = asked[np.isin(asked, live)]
        rows.update(zip((asked + segment.base).tolist(), view.rows(segment, asked), strict=True))
    agreed = np.empty(view.shape.full.size, np.uint64)
    wrong = 0
    for mask, (one, two) in zip(item.masks, item.pairs.tolist(), strict=True):
        if one == two or one not in rows or two not in rows:
            wrong += 1
            continue
        pair_mask(rows[one], rows[two], view.shape, agreed)
        wrong += not np.array_equal(agreed, mask)
    yield TaskResult({"wrong": wrong})


def _encodes(item: Check, segment: Segment, words: NDArray[np.uint64]) -> bool:
    reader = open_raw(item.view.path, segment)
    start = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        fresh = encode(batch, layout(item.schema)).view(np.uint64)
        if not np.array_equal(fresh.T, words[start : start + batch.num_rows]):
            return False
        start += batch.num_rows
    return start == segment.rows


def _sorts(path: Path, codes: NDArray[np.int64]) -> bool:
    file = open_arrays(path)
    arrays = file.whole()
    stored, positions = arrays["codes"], arrays["positions"]
    whole = np.array_equal(np.sort(positions), np.arange(len(codes)))
    return (
        whole
        and file.has_own_rungs("codes")
        and bool((stored[1:] >= stored[:-1]).all())
        and np.array_equal(stored, codes[positions])
    )


def _chains(view: View, segment: Segment, name: str, words: NDArray[np.uint64]) -> bool:
    chains, _ = map_chains(view.path, segment, name)
    codes, first, second = chain_numbers(words, name, view.shape)
    places = np.arange(len(words))
    if not np.array_equal(np.sort(chains.positions), places) or (chains.ends <= places).any():
        return False
    of_rows = zip((codes, first, second), (chains.codes, chains.first, chains.second), strict=True)
    same = all(np.array_equal(of_words[chains.positions], of_file) for of_words, of_file in of_rows)
    inside = chains.ends[1:] == chains.ends[:-1]
    rises = (chains.first[1:] >= chains.first[:-1]) & (chains.second[1:] >= chains.second[:-1])
    rises &= chains.codes[1:] == chains.codes[:-1]
    ends = inside | (chains.ends[:-1] == places[1:])
    in_order = (chains.codes[1:] >= chains.codes[:-1]).all() and ends.all()
    return bool(same and in_order and rises[inside].all())
