"""The cells that make rules nearly hold only, found group by group and added up cell by cell.

Tasks write the codes of their rows (:mod:`tasks.near`); the next ones take ranges of these and
write the rows that disagree with their group; the last take ranges of rows, rank their cells and
write them with their rows, so that whoever wants them in order has only to merge files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.kernels.arrays import F64, I64, U64
from holdfast.kernels.explained import disagreeing
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.tasks import exchange
from holdfast.tasks.near import NearCandidate, grouped
from holdfast.tasks.segments import Segment, map_passing, write_arrays
from holdfast.tasks.shown import rows_as_text

SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""A row, times this, is spread evenly."""

NO_ROW = -1
"""The row to compare one with that there is none for."""

_WORDS = 6
"""The words of a finding: the row, spread evenly; the row; the rule; a row to compare it with, the
same for all of a group; how many rows agree with that one; the size of the group."""

_AT_ONCE = 20_000
"""Cells whose rows a task reads at once, and writes into one file."""

_HELD = 1_000
"""Cells of a file that its reader holds at once."""

_DIGITS = 6
"""Those of a score."""

_CELL = ("row", "rule", "other", "agreeing", "size", "rules")
"""The numbers of a cell, beside its score."""


@dataclass(frozen=True)
class FindSuspects:
    """Find the rows of one range of groups that disagree with their group."""

    root: str
    files: tuple[str, ...]
    candidate: NearCandidate
    rules: tuple[int, ...]  # by rhs; of a key its own
    part: int
    parts: int
    prefix: str


@dataclass(frozen=True)
class Suggesting:
    """A column of a table whose values a rule suggests."""

    segments: tuple[Segment, ...]
    names: tuple[str, ...]
    column: str


@dataclass(frozen=True)
class RankSuspects:
    """Add up what rules say of the cells of one range of rows."""

    root: str
    files: tuple[str, ...]
    cells: tuple[int, ...]  # by rule: its column, or a number of its own
    suggesting: tuple[Suggesting | None, ...]  # by rule: where the rows lie to compare with
    scores: tuple[float, ...]  # by rule
    most: int | None
    segments: tuple[Segment, ...]
    names: tuple[str, ...]
    part: int
    parts: int
    prefix: str


def find_suspects(item: FindSuspects) -> Iterator[TaskResult]:
    """The file of findings, and in how many groups they are."""
    width = 3 + 2 * len(item.candidate.rhs)
    words = exchange.between(Path(item.root), item.files, item.part, item.parts, width)
    order, starts = grouped(words[:, :2])
    words = words[order]
    sizes = np.repeat(np.diff(starts), np.diff(starts))
    ids = words[:, -1]
    of_rows = sizes.view(np.uint64)
    found, groups = [np.empty((0, _WORDS), np.uint64)], 0
    if item.candidate.rhs:
        for place, rule in enumerate(item.rules):
            right = np.ascontiguousarray(words[:, 2 + 2 * place : 4 + 2 * place])
            rows, others, counts = disagreeing(starts, right)
            groups += len(np.unique(others))
            found.append(
                findings(ids[rows], rule, ids[others], counts.view(np.uint64), of_rows[rows])
            )
    else:
        rows = np.flatnonzero(sizes > 1)
        firsts = np.repeat(starts[:-1], np.diff(starts))[rows]
        groups += len(np.unique(firsts))
        found.append(findings(ids[rows], item.rules[0], ids[firsts], of_rows[rows], of_rows[rows]))
    file = exchange.write(Path(item.root), item.prefix, np.concatenate(found))
    yield TaskResult({"files": [file], "groups": groups})


def findings(ids: U64, rule: int, others: U64, agreeing: U64, sizes: U64) -> U64:
    """Rows that a rule suspects, each with the row to compare it with, how many rows agree with
    that one, and how many are in the group."""
    rules = np.full(len(ids), rule, np.uint64)
    return np.column_stack([ids * SPREAD, ids, rules, others, agreeing, sizes])


def rank_suspects(item: RankSuspects) -> Iterator[TaskResult]:
    """Files of the cells, the highest scores first (:func:`ranked_in` reads them); and how many
    cells there are."""
    found = exchange.between(Path(item.root), item.files, item.part, item.parts, _WORDS)
    rules = found[:, 2].astype(np.int64)
    cells = np.array(item.cells, np.int64)[rules]
    scores = np.array(item.scores)[rules]
    order = np.lexsort((rules, -scores, cells, found[:, 1]))
    found, cells, scores = found[order], cells[order], scores[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (found[1:, 1] != found[:-1, 1]) | (cells[1:] != cells[:-1])
    starts = np.flatnonzero(fresh)
    totals: F64 = np.add.reduceat(scores, starts) if len(starts) else scores
    totals = np.round(totals, _DIGITS).astype(np.float64)
    numbers = np.diff(np.append(starts, len(order)))
    ids, places, others = found[starts, 1:4].view(np.int64).T
    best = np.lexsort((ids, others, places, -totals))[: item.most]
    files: list[str] = []
    for start in range(0, len(best), _AT_ONCE):
        some = best[start : start + _AT_ONCE]
        cells_of = np.column_stack([found[starts[some], 1:].view(np.int64), numbers[some]])
        files += _written(item, totals[some], cells_of)
    yield TaskResult({"files": files, "cells": len(starts)})


def _written(item: RankSuspects, scores: F64, cells: I64) -> list[str]:
    """A file of numbers, and one of JSON texts."""
    root = Path(item.root)
    rows = rows_as_text(item.root, item.segments, item.names, np.unique(cells[:, 0]))
    suggested = _suggested(item, cells)
    texts = [
        f'{{"row": {rows[row]}, "suggested": {suggested.get((rule, other), "null")}}}'.encode()
        for row, rule, other, *_ in cells.tolist()
    ]
    columns = {name: np.ascontiguousarray(cells[:, k]) for k, name in enumerate(_CELL)}
    ends = np.cumsum([len(text) for text in texts])
    numbers = write_arrays(
        root, unique(item.prefix, "suspects"), {"scores": scores, **columns, "ends": ends}
    )
    content = np.frombuffer(b"".join(texts), np.uint8)
    return [numbers, write_arrays(root, unique(item.prefix, "suspects"), {"text": content})]


def _suggested(item: RankSuspects, cells: I64) -> dict[tuple[int, int], str]:
    """The values that rows have to compare with, as JSON, by rule and row."""
    texts = {}
    for number in np.unique(cells[:, 1]).tolist():
        suggesting, others = item.suggesting[number], np.unique(cells[cells[:, 1] == number, 2])
        if suggesting is None:
            continue
        rows = rows_as_text(item.root, suggesting.segments, suggesting.names, others)
        for other, row in rows.items():
            value = json.loads(row).get(suggesting.column)
            texts[number, other] = json.dumps(value, ensure_ascii=False)
    return texts


class RankedCell(NamedTuple):
    """A suspected cell, as it is written."""

    score: float
    row: int
    rule: int  # the one that suspects it most
    other: int  # a row to compare it with
    agreeing: int
    size: int
    rules: int  # so many suspect it
    text: bytes  # JSON: the row, and what is suggested

    @property
    def order(self) -> tuple[float, int, int, int]:
        """Where it is among others: by its score, then beside those of its group."""
        return -self.score, self.rule, self.other, self.row


def ranked_in(root: Path, numbers: str, content: str) -> Iterator[RankedCell]:
    """The cells of two files, in order; a few at a time are held."""
    arrays, text = map_passing(root / numbers), map_passing(root / content)["text"]
    begin = 0
    for start in range(0, len(arrays["ends"]), _HELD):
        some = (arrays[name][start : start + _HELD].tolist() for name in ("scores", *_CELL, "ends"))
        for *cell, end in zip(*some, strict=True):
            yield RankedCell._make((*cell, text[begin:end].tobytes()))
            begin = end
