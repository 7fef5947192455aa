"""Which rows of a batch take part in violations, what they clash with, and files of them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.kernels import clashes
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.violations import Term
from holdfast.model.commits import Segment, ValueRun
from holdfast.model.errors import InputError
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import flush
from holdfast.tasks.coding import Coding
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.segments import live_positions, read_raw
from holdfast.tasks.shown import cells, plain, rows_as_text
from holdfast.tasks.values import CODES, RowValues, found_at, same_codes
from holdfast.tasks.view import View

RULE, CLASH = "_holdfast_rule", "_holdfast_clash"
"""The columns of a file of quarantined rows besides those of the rows."""

_CHUNK = 1 << 14
"""Rows that a batch is compared with at a time."""


@dataclass(frozen=True)
class Agreeing:
    """Rows that agree with others on one side and, where there is another, not on that. All rows
    agree on no columns."""

    view: View
    lhs: RowValues | None
    both: RowValues | None
    rows: int  # of the table


@dataclass(frozen=True)
class Referring:
    """Rows of one side whose tuples another side, by its number, lacks."""

    left: RowValues
    right: int


@dataclass(frozen=True)
class Involved:
    """Which rows take part in violations of a rule; the counted tuples are in runs."""

    root: str
    runs: tuple[ValueRun, ...]
    rule: Agreeing | Referring


@dataclass(frozen=True)
class Needed:
    """Which rows that went had tuples that no row of their side has any more, but some row of
    another side."""

    root: str
    runs: tuple[ValueRun, ...]
    gone: RowValues
    right: int
    left: int


@dataclass(frozen=True)
class Asking:
    """Which requests mean some rows: those that have the same tuple."""

    asked: RowValues
    taken: RowValues


@dataclass(frozen=True)
class Clashing:
    """Rows that have some tuples of a side: how many, and of each a few that differ in the other
    side, or any where there is none."""

    view: View
    lhs: RowValues | None
    both: RowValues | None
    codes: U64
    most: int


@dataclass(frozen=True)
class Beside:
    """Rows of a batch that satisfy terms with other rows of some segments."""

    view: View  # of the other rows
    batch: tuple[Segment, ...]
    schema: pa.Schema
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Shelf:
    """Where rows lie that others clash with: the segments of a table, and its columns."""

    segments: tuple[Segment, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """How a file of rows is written, and its columns."""

    format: str  # csv, json, parquet or orc
    names: tuple[str, ...]
    dialect: Dialect
    header: bool


@dataclass(frozen=True)
class Write:
    """Write rows of a segment that are quarantined, with the rule and the row they clash with."""

    root: str
    segment: Segment
    positions: I64
    rules: I64  # the place of each one's rule
    clashes: I64  # the id of a row; -1: there is none
    texts: tuple[str, ...]  # of the rules
    shelves: tuple[Shelf, ...]  # of each rule
    layout: Layout
    path: str  # which it keeps until a version is committed


def involved(item: Involved) -> Iterator[TaskResult]:
    """The ids of the rows, and their codes on the left side; those of a rule about agreement also
    have codes of the other side."""
    root = Path(item.root)
    rule = item.rule
    if isinstance(rule, Referring):
        for segment, positions, codes, present in rule.left.aligned():
            missing = present.copy()
            missing[present] = _counts(root, item.runs, rule.right, codes[present]) == 0
            ids = positions[missing] + segment.base
            yield TaskResult({}, {"ids": ids, "codes": codes[missing]})
        return
    for segment, positions, lhs, both in _both(rule.view, rule.lhs, rule.both):
        agreeing = np.full(len(positions), rule.rows, np.int64)
        present = np.ones(len(positions), np.bool_)
        if rule.lhs is not None:
            present = lhs[1]
            number = rule.lhs.attributes[0].number
            agreeing[present] = _counts(root, item.runs, number, lhs[0][present])
        same = np.ones(len(positions), np.int64)
        if rule.both is not None:
            number = rule.both.attributes[0].number
            same[both[1]] = _counts(root, item.runs, number, both[0][both[1]])
        wrong = present & (agreeing > same)
        ids = positions[wrong] + segment.base
        yield TaskResult(
            {}, {"ids": ids, "codes": lhs[0][wrong], "others": _other(both, ids, wrong)}
        )


def needed(item: Needed) -> Iterator[TaskResult]:
    """The ids of the rows, and their codes."""
    root = Path(item.root)
    for segment, positions, codes, present in item.gone.aligned():
        taken = present.copy()
        mine = codes[present]
        taken[present] = (_counts(root, item.runs, item.right, mine) == 0) & (
            _counts(root, item.runs, item.left, mine) > 0
        )
        yield TaskResult({}, {"ids": positions[taken] + segment.base, "codes": codes[taken]})


def asking(item: Asking) -> Iterator[TaskResult]:
    """The ids of the requests, and of one row that each means."""
    rows = [(codes, positions + s.base) for s, positions, codes, _ in item.taken.aligned()]
    codes, first = np.unique(np.concatenate([each for each, _ in rows]), axis=0, return_index=True)
    taken = np.concatenate([ids for _, ids in rows])[first]
    for segment, positions, mine, _ in item.asked.aligned():
        at = found_at(mine, codes)
        ids = positions[at >= 0] + segment.base
        yield TaskResult({}, {"ids": ids, "taken": taken[at[at >= 0]]})


Coded = tuple[U64, Flags]
"""Codes of rows, and which of them have one."""


def _both(
    view: View, lhs: RowValues | None, both: RowValues | None
) -> Iterator[tuple[Segment, I64, Coded, Coded]]:
    """Rows with their codes on both sides, segment by segment; a side of no columns has one."""
    sides = [None if side is None else side.aligned() for side in (lhs, both)]
    for segment in view.segments:
        positions = live_positions(view.path, segment)
        coded: list[Coded] = []
        for side in sides:
            none = np.zeros((len(positions), 2), np.uint64), np.ones(len(positions), np.bool_)
            coded.append(none if side is None else next(side)[2:])
        yield segment, positions, coded[0], coded[1]


def _other(both: Coded, ids: I64, chosen: Flags) -> U64:
    """Codes of the other side; a row without one differs from every row, also in its code."""
    codes = both[0][chosen].copy()
    absent = ~both[1][chosen]
    codes[absent, 0] = ids[absent].astype(np.uint64)
    codes[absent, 1] = np.uint64(CODES - 1)
    return codes


def _counts(root: Path, runs: tuple[ValueRun, ...], number: int, codes: U64) -> I64:
    """How many rows of a side have each code."""
    if not len(codes):
        return np.empty(0, np.int64)
    distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
    entries = same_codes(root, runs, 0, CODES, distinct)
    entries = entries[entries[:, 2] == number]
    at = found_at(np.ascontiguousarray(entries[:, :2]), distinct)
    counts = np.zeros(len(distinct), np.int64)
    counts[at] = entries[:, 3].view(np.int64)
    found: I64 = counts[inverse.reshape(-1)]
    return found


def clashing(item: Clashing) -> Iterator[TaskResult]:
    """Of each code the number of rows, and the first row for each of the first codes of the other
    side."""
    for segment, positions, lhs, both in _both(item.view, item.lhs, item.both):
        ids = positions + segment.base
        at = found_at(lhs[0], item.codes)
        at[~lhs[1]] = -1
        others = _other(both, ids, np.ones(len(ids), np.bool_))
        if item.both is None:  # any other row
            others[:, 0], others[:, 1] = ids.astype(np.uint64), 0
        rows = _differing(at, others, item.most)
        yield TaskResult(
            {},
            {
                "number": np.bincount(at[at >= 0], minlength=len(item.codes)),
                "codes": at[rows],
                "ids": ids[rows],
                "others": others[rows],
            },
        )


def _differing(at: I64, others: U64, most: int) -> I64:
    """Of the rows at each place, which -1 is not, the first ``most`` that differ from all before
    them."""
    having = np.flatnonzero(at >= 0)
    order = having[np.lexsort((others[having, 1], others[having, 0], at[having]))]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (at[order[1:]] != at[order[:-1]]) | (others[order[1:]] != others[order[:-1]]).any(1)
    rows = np.sort(order[fresh])
    rows = rows[np.argsort(at[rows], kind="stable")]
    turn = np.arange(len(rows)) - np.searchsorted(at[rows], at[rows])
    chosen: I64 = rows[turn < most]
    return chosen


def beside(item: Beside) -> Iterator[TaskResult]:
    """The ids of the rows of the batch, of one row each that they clash with, and which are t."""
    view = item.view
    coding = Coding.of(item.schema, [each for each, _ in item.terms])
    blocks = [(view.rows(s, live), live + s.base) for s in item.batch
              for live in [live_positions(view.path, s)]]  # fmt: skip
    words = np.concatenate([rows for rows, _ in blocks])
    ids = np.concatenate([mine for _, mine in blocks])
    clash, is_t = np.full(len(ids), -1, np.int64), np.zeros(len(ids), np.bool_)
    for segment in sorted(view.segments, key=lambda each: each.number):
        living = live_positions(view.path, segment)
        for start in range(0, len(living), _CHUNK):
            left = np.flatnonzero(clash < 0)
            chunk = living[start : start + _CHUNK]
            both = np.concatenate([words[left], view.rows(segment, chunk)])
            every = np.concatenate([ids[left], chunk + segment.base])
            codes = coding.codes(both, view.shape.first)
            found, first = clashes.partners(codes, every, len(left), item.terms, view.nulls_equal)
            clash[left[found >= 0]] = every[found[found >= 0]]
            is_t[left] = first
    wrong = clash >= 0
    yield TaskResult({}, {"ids": ids[wrong], "clashes": clash[wrong], "is_t": is_t[wrong]})


def write(item: Write) -> Iterator[TaskResult]:
    """Write a file, whole, flushed or not at all, and again where a task is tried again."""
    root = Path(item.root)
    rows = read_raw(root, item.segment, item.positions)
    text: dict[tuple[int, int], str] = {}
    for rule, shelf in enumerate(item.shelves):
        wanted = item.clashes[(item.rules == rule) & (item.clashes >= 0)]
        shown = rows_as_text(item.root, shelf.segments, shelf.names, wanted)
        text |= {(rule, id_): each for id_, each in shown.items()}
    told = [item.texts[rule] for rule in item.rules.tolist()]
    pairs = zip(item.rules.tolist(), item.clashes.tolist(), strict=True)
    clash = [text.get(pair) for pair in pairs]
    names = [*item.layout.names, RULE, CLASH]
    extra = [pa.array(each, pa.string()) for each in (told, clash)]
    table = pa.Table.from_arrays([*rows.columns, *extra], names=names)
    target = Path(item.path)
    temporary = target.with_name(f"{target.name}.{uuid.uuid4().hex}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _written(table, temporary, item.layout)
        with temporary.open("rb") as file:
            flush(file.fileno())
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(
            f"{target}: the quarantined rows cannot be written ({error.strerror or error}); "
            "name a folder that every worker can write to"
        ) from error
    yield TaskResult({"rows": table.num_rows})


def _written(table: pa.Table, path: Path, layout: Layout) -> None:
    if layout.format == "csv":
        lines = [(*layout.names, RULE, CLASH)] if layout.header else []
        content = [_line(names, layout.dialect) for names in lines]
        content += [_line(cells, layout.dialect) for cells in _cells(table)]
        path.write_bytes("".join(content).encode(layout.dialect.encoding, "backslashreplace"))
    elif layout.format == "json":
        with path.open("w", encoding="utf-8") as file:
            for cells in _cells(table):
                row = dict(zip(table.column_names, cells, strict=True))
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    elif layout.format == "orc":
        from pyarrow import orc

        orc.write_table(table, path)
    else:
        from pyarrow import parquet

        parquet.write_table(table, path)


def _cells(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    columns = [[plain(cell) for cell in cells(column)] for column in table.columns]
    return zip(*columns, strict=True)


def _line(cells: Sequence[Any], dialect: Dialect) -> str:
    return dialect.delimiter.join(_cell(cell, dialect) for cell in cells) + "\n"


def _cell(cell: Any, dialect: Dialect) -> str:
    """A cell as the reader of lines takes it back."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    text = cell if isinstance(cell, str) else json.dumps(cell)
    special = {dialect.delimiter, '"', "\r", "\n", dialect.escape}
    if not any(each in text for each in special if each):
        return text
    if dialect.escape:
        text = text.replace(dialect.escape, dialect.escape * 2)
    return '"' + text.replace('"', '""') + '"'
