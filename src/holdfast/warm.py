"""Compile every kernel once, ahead of time: ``python -m holdfast.warm``.

Compiled kernels are cached on disk, but in a fresh installation each of Spark's Python workers
would compile them for itself. A small profile in this process fills the cache for all.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from holdfast import flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.input.type_names import exact_type
from holdfast.model.date_forms import ISO
from holdfast.model.expectations import Expectation
from holdfast.model.grammar import parse
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.ingest import Ingest, learn


def main() -> None:
    """Profile a few rows with every kind of column, counted and witnessed, and apply batches."""
    runner = InProcess(2)
    for _ in learn(iter(_records().rows.to_batches()), Ingest("", "", pa.schema([]), ())):
        pass
    tables = {
        "rows": _rows(0, 60),
        "records": _records(),
        "wide": _digits(20, 30),
        "narrow": _digits(8, 600),
    }
    for evidence, bound in (("counted", 0.01), ("witnessed", None)):
        with tempfile.TemporaryDirectory() as folder:
            store = Store.create(Path(folder) / "profile")
            options = Options(evidence=evidence, max_error=bound)
            flow.profile(runner, store, tables, options, no_progress)
            for table, batch in (
                ("rows", flow.Batch(inserts=_rows(60, 70), deletes=_rows(0, 40))),
                ("rows", flow.Batch(updates=_rows(50, 52), row_key=("id",))),
                ("rows", flow.Batch(deletes=_rows(52, 53), row_key=("day", "same"))),
                ("rows", flow.Batch(snapshot=_rows(51, 78))),
                ("narrow", flow.Batch(inserts=_digits(8, 620, 600))),
            ):
                flow.apply(runner, store, table, batch, no_progress)
            flow.error(lambda: runner, store, parse("rows: name -> share"), no_progress)
            rules = ("key(id)", "name -> share", "not (t.id < s.id and t.sum > s.sum)",
                     "name in ('n')")  # fmt: skip
            wanted = [Expectation(f"rows: {rule}") for rule in rules]
            flow.expect(runner, store, wanted, no_progress)
            again = flow.Batch(inserts=_rows(65, 75))
            shelf = str(Path(folder) / "quarantine")
            flow.apply(runner, store, "rows", again, no_progress, quarantine=shelf)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "profile")
        options = Options(kinds=("keys",), keep_values=False)
        flow.profile(
            runner, store, {"rows": _rows(0, 60)}, options, no_progress, b"only to compile kernels"
        )


def _rows(start: int, end: int) -> RowInput:
    """Lines of text, as from a CSV file."""
    types = {
        "id": pa.int64(),
        "name": pa.string(),
        "share": pa.float64(),
        "day": pa.date32(),
        "sum": pa.decimal128(30, 2),
        "same": pa.bool_(),
    }
    lines = [
        f'{i},"n ""{i % 7}""",{i % 5}.5,2026-01-{i % 28 + 1:02},{i % 3}.25,true\n'
        for i in range(start, end)
    ]
    named = [exact_type(column, kind)[0] for column, kind in types.items()]
    columns = Columns.of(list(types), named, list(types.values()))
    return RowInput(
        "rows", columns, _lines(lines), lines=Dialect(escape="\\", nulls=("NA",), dates=ISO)
    )


def _records() -> RowInput:
    """Records, as from a file of JSON."""
    columns = Columns.of(["id", "x"], ["bigint", "double"], [pa.int64(), pa.float64()])
    lines = [f'{{"id": {i}, "x": {i % 7}.5}}\n' for i in range(60)]
    return RowInput("records", columns, _lines(lines), json=(("id",), ("x",)))


def _digits(columns: int, end: int, start: int = 0) -> RowInput:
    """Digits that look random, many of them equal, whose types are to be guessed."""
    names = [f"digit{c}" for c in range(columns)]
    lines = [
        ",".join(str(i * i * (c + 3) // 7 % 4) for c in range(columns)) + "\n"
        for i in range(start, end)
    ]
    text = Columns.of(names, ["string"] * columns, [pa.string()] * columns)
    return RowInput("digits", text, _lines(lines), lines=Dialect(), guessed=True)


def _lines(lines: list[str]) -> pa.Table:
    return pa.table({"line": lines, "origin": pa.nulls(len(lines), pa.int64())})


if __name__ == "__main__":
    main()
