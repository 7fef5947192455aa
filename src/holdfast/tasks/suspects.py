"""The cells that make rules nearly hold only, found group by group and added up cell by cell.

Tasks write the codes of their rows (:mod:`tasks.near`); the next ones take ranges of these and
write the rows that disagree with their group; the last take ranges of rows and rank their cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.explained import disagreeing
from holdfast.runtime.result import TaskResult
from holdfast.tasks import exchange
from holdfast.tasks.near import NearCandidate, grouped

_SPREAD = np.uint64(0x9E3779B97F4A7C15)

_WORDS = 6
"""The words of a finding: the row, spread evenly; the row; the rule; a row to compare it with; how
many rows agree with that one; the size of the group."""

_AT_ONCE = 100_000
"""Cells that a task sends back in one result."""


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
class RankSuspects:
    """Add up what rules say of the cells of one range of rows."""

    root: str
    files: tuple[str, ...]
    cells: tuple[int, ...]  # by rule: its column, or a number of its own
    scores: tuple[float, ...]  # by rule
    most: int | None
    part: int
    parts: int


def find_suspects(item: FindSuspects) -> Iterator[TaskResult]:
    """The file of findings."""
    width = 3 + 2 * len(item.candidate.rhs)
    words = exchange.between(Path(item.root), item.files, item.part, item.parts, width)
    order, starts = grouped(words[:, :2])
    words = words[order]
    sizes = np.repeat(np.diff(starts), np.diff(starts))
    ids = words[:, -1]
    findings = [np.empty((0, _WORDS), np.uint64)]
    if item.candidate.rhs:
        for place, rule in enumerate(item.rules):
            right = np.ascontiguousarray(words[:, 2 + 2 * place : 4 + 2 * place])
            rows, others, counts = disagreeing(starts, right)
            findings.append(_findings(ids, rows, rule, others, counts, sizes))
    else:
        rows = np.flatnonzero(sizes > 1)
        firsts = np.repeat(starts[:-1], np.diff(starts))
        others = np.where(rows == firsts[rows], rows + 1, firsts[rows])
        findings.append(_findings(ids, rows, item.rules[0], others, sizes[rows], sizes))
    yield TaskResult(
        {"files": [exchange.write(Path(item.root), item.prefix, np.concatenate(findings))]}
    )


def _findings(ids: U64, rows: I64, rule: int, others: I64, counts: I64, sizes: I64) -> U64:
    return np.column_stack(
        [
            ids[rows] * _SPREAD,
            ids[rows],
            np.full(len(rows), rule, np.uint64),
            ids[others],
            counts.view(np.uint64),
            sizes[rows].view(np.uint64),
        ]
    )


def rank_suspects(item: RankSuspects) -> Iterator[TaskResult]:
    """The cells with the highest scores: the row, the rule that suspects it most, a row to compare
    it with, how many rows of how many agree with that, how many rules suspect the cell, the score;
    and how many cells there are."""
    findings = exchange.between(Path(item.root), item.files, item.part, item.parts, _WORDS)
    rules = findings[:, 2].astype(np.int64)
    cells = np.array(item.cells, np.int64)[rules]
    scores = np.array(item.scores)[rules]
    order = np.lexsort((rules, -scores, cells, findings[:, 1]))
    findings, cells, scores = findings[order], cells[order], scores[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (findings[1:, 1] != findings[:-1, 1]) | (cells[1:] != cells[:-1])
    starts = np.flatnonzero(fresh)
    totals = np.add.reduceat(scores, starts) if len(starts) else scores
    numbers = np.diff(np.append(starts, len(order)))
    best = np.lexsort((cells[starts], findings[starts, 1], -totals))[: item.most]
    facts = {"cells": len(starts)}
    for start in range(0, max(1, len(best)), _AT_ONCE):
        some = best[start : start + _AT_ONCE]
        arrays = {
            "findings": findings[starts[some], 1:].view(np.int64),
            "rules": numbers[some],
            "scores": totals[some],
        }
        yield TaskResult(facts if not start else {}, arrays)
