"""Helpers: rows as row inputs for the in-process runner, and what a profile says of them.

Tests think in small integers. A column's *kind* says what cell stands for each of them, so that one
oracle serves every type; what a profile shows is turned back into the integers.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast import flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.kernels import bitsets, evidence
from holdfast.kinds import registry
from holdfast.kinds.table_state import TableState
from holdfast.model.changes import Changes
from holdfast.model.commits import Choice, Commit, TableRecord
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.model.records import from_form, to_form
from holdfast.model.versions import Verification
from holdfast.report.snapshot import TableSnapshot, snapshot
from holdfast.runtime import sealed
from holdfast.runtime.run import Run
from holdfast.runtime.runner import InProcess, Runner
from holdfast.store import Store, files
from holdfast.table.batch import change_rows, read_batch
from holdfast.table.state import Table
from holdfast.tasks.segments import live_positions, map_arrays, write_arrays
from holdfast.tasks.shown import cells, plain
from holdfast.tasks.view import View
from tests import oracle
from tests.limits import varied
from tests.places import memory
from tests.strategies import Rows


@dataclass(frozen=True)
class Kind:
    """A type, and the cells that stand for 0, 1, …; without cells the integers themselves."""

    name: str
    arrow: pa.DataType
    cells: tuple[Any, ...] = ()

    def cell(self, number: int | None, row: int) -> Any:
        if number is None or not self.cells:
            return number
        value = self.cells[number]
        # Zero has two signs, and they are one value.
        return -value if value == 0 and isinstance(value, float) and row % 2 else value

    def number(self, shown: Any) -> int | None:
        """The integer behind a cell that a witness shows."""
        if shown is None or not self.cells:
            return shown  # type: ignore[no-any-return]
        if isinstance(shown, float) and shown == 0:
            shown = 0.0
        stored = cells(pa.chunked_array([pa.array(self.cells, self.arrow)]))
        return [json.loads(json.dumps(plain(cell))) for cell in stored].index(shown)


NULL_WORD = 0x9E3779B97F4A7C15 - (1 << 64)
"""The bigint whose word the kernels use for a null when they group rows."""

BIGINT = Kind("bigint", pa.int64())
KINDS = (
    BIGINT,
    Kind("bigint", pa.int64(), (0, NULL_WORD, -(1 << 63), (1 << 63) - 1, -1, 1)),
    Kind("string", pa.string(), ("", "a", "A", "a ", "a\0", "ä" * 20)),
    Kind(
        "decimal(38,10)",
        pa.decimal128(38, 10),
        tuple(map(Decimal, ("0", "1", "18446744073.709551616", "-1", "1e27", "0.0000000001"))),
    ),
    Kind("decimal(10,2)", pa.decimal128(10, 2), tuple(Decimal(i) / 4 for i in range(-3, 3))),
    Kind("double", pa.float64(), (0.0, math.nan, math.inf, -math.inf, 5e-324, 0.1)),
    Kind("date", pa.date32(), tuple(date(1969, 12, 30 - i) for i in range(6))),
    Kind("timestamp_ntz(9)", pa.timestamp("ns"), (0, 1, 999, 1_000, -1, (1 << 63) - 1)),
    Kind("binary", pa.binary(), (b"", b"\0", b"\0\0", b"a", b"\xff", b"a" * 40)),
)


SECRET = b"a secret of the tests"
"""That of profiles without values."""


def row_input(columns: int | Sequence[Kind], rows: Rows, label: str = "rows") -> RowInput:
    """Rows of small integers as a row_input."""
    kinds = [BIGINT] * columns if isinstance(columns, int) else list(columns)
    names = [f"c{c}" for c in range(len(kinds))]
    cells = [
        pa.array([kind.cell(row[c], i) for i, row in enumerate(rows)], kind.arrow)
        for c, kind in enumerate(kinds)
    ]
    table = pa.table(dict(zip(names, cells, strict=True)))
    told = Columns.of(names, [kind.name for kind in kinds], [kind.arrow for kind in kinds])
    return RowInput(label, told, table)


def picked(rows: RowInput, names: Sequence[str]) -> RowInput:
    """The row input with only some of its columns."""
    places = [rows.columns.names.index(name) for name in names]
    return RowInput(rows.label, rows.columns.pick(places), rows.rows.select(list(names)))


def text_input(
    header: Sequence[str], rows: Sequence[Sequence[str]], label: str = "rows"
) -> RowInput:
    """Rows of text as a row input."""
    cells = [
        pa.array(list(column), pa.string())
        for column in (zip(*rows, strict=True) if rows else [()] * len(header))
    ]
    table = pa.table(cells, names=[f"c{c}" for c in range(len(header))])
    told = Columns.of(list(header), ["string"] * len(header), [pa.string()] * len(header))
    return RowInput(label, told, table)


class Shop:
    """A profile of one table, in process."""

    secret: bytes | None = None

    def __init__(
        self,
        path: Path,
        columns: int | Sequence[Kind],
        rows: Rows,
        options: Options | None = None,
        tasks: int = 2,
        runner: Runner | None = None,
    ) -> None:
        self.kinds = [BIGINT] * columns if isinstance(columns, int) else list(columns)
        self.columns = len(self.kinds)
        self.options = registry.completed(options or Options())
        self.runner: Runner = runner or InProcess(tasks)
        self.store = Store.create(path)
        self.secret = None if self.options.keep_values else SECRET
        row_inputs = {"t": row_input(self.kinds, rows)}
        flow.profile(self.runner, self.store, row_inputs, self.options, no_progress, self.secret)

    def copied(self, path: Path) -> Shop:
        """The same profile in another folder."""
        shutil.copytree(self.store.path, path)
        shop = copy(self)
        shop.store = Store.open(path)
        return shop

    @property
    def choice(self) -> Choice:
        """How dependencies are known."""
        choice = self.now.choice
        assert choice is not None
        return choice

    def apply(self, dry_run: bool = False, device: str | None = None, **batch: Any) -> Changes:
        """Apply what :meth:`batch` takes."""
        read = self.batch(**batch)
        return flow.apply(
            self.runner, self.store, "t", read, no_progress, dry_run, device, secret=self.secret
        )

    @contextmanager
    def opened(self) -> Iterator[tuple[Run, Table]]:
        """A run that asks about the table's rows, and the table."""
        with self.store.asking() as lease:
            version = self.store.read(lease.version)
            run = Run(self.runner, self.store, version.options, lease, no_progress)
            yield run, Table.stored("t", version.table("t"))

    @contextmanager
    def tried(self, **batch: Any) -> Iterator[tuple[TableState, TableState]]:
        """What is known before a batch and after it, at the time when changes are told: nothing is
        committed."""
        with self.store.trying() as lease:
            before = TableState.load(self.store, self.store.read(lease.version), "t")
            run = Run(self.runner, self.store, self.options, lease, no_progress)
            intake = read_batch(run, before.table, self.batch(**batch))
            (change,) = change_rows(run, [(before.table, intake)])
            yield before, before.change(run, change)[0]

    def batch(
        self,
        inserts: Rows | None = None,
        deletes: Rows | None = None,
        updates: Rows | None = None,
        upserts: Rows | None = None,
        snapshot: Rows | None = None,
        row_key: tuple[str, ...] = (),
        batch_id: str | None = None,
        key_only: bool = False,
        if_exists: bool = False,
        allow_shrink: bool = False,
    ) -> flow.Batch:
        given = {"inserts": inserts, "deletes": deletes, "updates": updates, "upserts": upserts}
        given["snapshot"] = snapshot
        row_inputs: dict[str, Any] = {
            kind: row_input(self.kinds, rows, kind)
            for kind, rows in given.items()
            if rows is not None
        }
        if key_only and "deletes" in row_inputs:
            row_inputs["deletes"] = picked(row_inputs["deletes"], row_key)
        return flow.Batch(
            **row_inputs,
            row_key=row_key,
            batch_id=batch_id,
            if_exists=if_exists,
            allow_shrink=allow_shrink,
        )

    def verify(self) -> Verification:
        return flow.verify(self.runner, self.store, no_progress)

    @property
    def now(self) -> TableSnapshot:
        return snapshot(self.store).tables["t"]

    def row(self, shown: dict[str, Any]) -> tuple[int | None, ...]:
        """A row that a witness shows, as integers."""
        return tuple(kind.number(shown[f"c{c}"]) for c, kind in enumerate(self.kinds))

    def places(self, sets: tuple[object, ...]) -> list[tuple[int, ...]]:
        """Keys or non-keys as column numbers."""
        return sorted(
            (tuple(int(name[1:]) for name in each.columns) for each in sets),  # type: ignore[attr-defined]
            key=lambda one: (len(one), one),
        )

    def assert_exact(self, rows: Rows) -> None:
        """The profile says what the oracle says, and every witness shows what it should."""
        now, nulls = self.now, self.options.nulls
        assert now.rows == len(rows)
        assert now.duplicates == oracle.duplicates(rows, nulls)
        shown = oracle.agree_sets(rows, self.columns, nulls)
        maximal = oracle.maximal_sets(shown)
        if self.columns <= 10:
            expected = oracle.minimal_sets(self.columns, maximal, self.options.max_columns)
        else:
            expected = oracle.minimal_sets_stepwise(self.columns, maximal, self.options.max_columns)
        assert self.places(now.keys) == expected
        if self.options.max_columns is None:
            assert self.places(now.non_keys) == maximal
        if now.functional_dependencies is not None and self.columns <= 10:
            told = [fd for fd in now.functional_dependencies if fd.error == 0]
            found = {(tuple(int(c[1:]) for c in fd.lhs), int(fd.rhs[1:])) for fd in told}
            limits = (nulls, self.options.max_columns)
            assert len(told) == len(found)
            assert found == set(oracle.dependencies(rows, self.columns, *limits))
        if self.options.keep_rows:
            self.assert_witnessed(now, rows)
        self.assert_kept_pairs()

    def assert_witnessed(self, now: TableSnapshot, rows: Rows) -> None:
        left = {row: rows.count(row) for row in rows}
        for non_key in now.non_keys:
            assert non_key.witness is not None
            one, two = (self.row(row) for row in non_key.witness)
            assert one in left
            assert two in left
            assert one != two or (left[one] > 1 and None in one)
            agreed = [
                c for c in range(self.columns) if oracle._agree(one[c], two[c], self.options.nulls)
            ]
            assert [f"c{c}" for c in agreed] == list(non_key.columns)
        if now.duplicates:
            (row,) = now.duplicated
            assert left[self.row(row)] > 1

    def assert_violated(self, fd: FunctionalDependency, witness: Sequence[dict[str, Any]]) -> None:
        """Two rows that show that a functional dependency does not hold."""
        one, two = (self.row(row) for row in witness)
        nulls = self.options.nulls
        lhs, rhs = [int(name[1:]) for name in fd.lhs], int(fd.rhs[1:])
        assert all(oracle._agree(one[c], two[c], nulls) for c in lhs)
        assert not oracle._agree(one[rhs], two[rhs], nulls)

    def assert_kept_pairs(self) -> None:
        """Every stored witness pair is two living rows that agree in exactly its columns."""
        known = TableState.load(self.store, self.store.read(), "t")
        kept, pairs = known.table, known.evidence[AGREEMENTS]
        view = kept.view(self.store.path, self.options)
        rows = living_words(view)
        assert len(rows) == kept.rows
        mask = np.empty(bitsets.words_for(self.columns), np.uint64)
        evidences = zip(pairs.evidence.masks, pairs.evidence.witnesses, strict=True)
        for expected, witnesses in evidences:
            real = [pair for pair in witnesses.tolist() if pair[0] >= 0]
            assert real
            assert len({tuple(pair) for pair in real}) == len(real)
            for one, two in real:
                evidence.pair_mask(rows[one], rows[two], view.shape, mask)
                assert np.array_equal(mask, expected)
        for one, two in kept.repeated:
            assert one != two
            assert np.array_equal(rows[one], rows[two])
        for segment in kept.segments:
            assert {*kept.index_names, "rows"} == set(segment.indexes)


def living_words(view: View) -> dict[int, Any]:
    """The words of all living rows, by id."""
    rows: dict[int, Any] = {}
    for segment in view.segments:
        live = live_positions(view.path, segment)
        rows.update(zip((live + segment.base).tolist(), view.rows(segment, live), strict=True))
    return rows


def rewrite(
    store: Store, relative: str, change: Callable[[dict[str, np.ndarray[Any, Any]]], None]
) -> str:
    """A version more, with the arrays of one file changed and nothing else, as if a task had
    written the wrong ones; where they are."""
    arrays, facts = map_arrays(Path(store.path) / relative)
    copies = {name: array.copy() for name, array in arrays.items()}
    change(copies)
    with store.writing() as lease:
        made = write_arrays(Path(store.path), lease.new_path("changed", "arrow"), copies, **facts)

        def renamed(kind: Any, value: Any) -> Any:
            return from_form(kind, json.loads(json.dumps(to_form(value)).replace(relative, made)))

        commit = store.read()
        changed = {
            name: renamed(TableRecord, each)
            for name, each in commit.tables.items()
            if relative in each.data_files
        }
        store.publish(replace(renamed(Commit, commit), tables=commit.tables | changed), lease)
    return made


def folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for one example: in memory where there is such a place, for speed."""
    return tempfile.TemporaryDirectory(dir=memory())


@contextmanager
def small_limits(**changed: Any) -> Iterator[pytest.MonkeyPatch]:
    """Thresholds low enough that small tables reach what large ones do; nothing is flushed."""
    few = {"part_from_candidates": 0, "difference_share": 1e9, "differences": 3, "located_rows": 1}
    few |= {
        "sent_positions": 1,
        "survey": 1,
        "surveyed_rows": 4,
        "block_bytes": 64,
        "rung_entries": 3,
    }
    with pytest.MonkeyPatch.context() as patch:
        varied(patch, **{**few, **changed})
        patch.setattr(files, "sync_file", lambda _path: None)
        patch.setattr(sealed, "flush", lambda _descriptor: None)
        yield patch
