"""What a profile without rows keeps: no text of the data in any of its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from holdfast import Options, flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds import registry
from holdfast.model.expectations import Expectation
from holdfast.model.grammar import parse
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store

PLANTED = "zqsecret"
"""Eight letters: texts that are cut into words of eight bytes show it, too."""

SCHEMA = {
    "id": ("bigint", pa.int64()),
    "name": ("string", pa.string()),
    "city": ("string", pa.string()),
    "photo": ("binary", pa.binary()),
    "tags": ("array<string>", pa.list_(pa.string())),
    "home": ("struct<street:string>", pa.struct([("street", pa.string())])),
}


def row(number: int, name: str) -> tuple[object, ...]:
    text = f"{PLANTED}{name:_>8}{PLANTED}"
    return number, text, PLANTED, text.encode(), [PLANTED, text], {"street": text}


def rows_of(label: str, rows: list[tuple[object, ...]]) -> RowInput:
    types = [kind for _, kind in SCHEMA.values()]
    columns = Columns.of([*SCHEMA], [spark for spark, _ in SCHEMA.values()], types)
    arrays = [
        pa.array(cells, kind) for cells, kind in zip(zip(*rows, strict=True), types, strict=True)
    ]
    return RowInput(label, columns, pa.table(arrays, names=columns.schema.names))


def contents(folder: Path, known: set[Path] | None = None) -> Iterator[tuple[str, bytes]]:
    """Every file as it is, and what Arrow files hold as it is without compression; those that are
    known are passed by, and all others become so."""
    known = set() if known is None else known
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        if path in known:
            continue
        known.add(path)
        name = str(path.relative_to(folder))
        yield name, path.read_bytes()
        if path.suffix == ".arrow":
            try:
                table = pa.ipc.open_file(path).read_all()
            except pa.ArrowInvalid:
                known.discard(path)  # another task is still writing it
                continue
            for column in table.itercolumns():
                for chunk in column.chunks:
                    for buffer in chunk.buffers():
                        yield name, b"" if buffer is None else buffer.to_pybytes()


def planted_in(folder: Path) -> set[str]:
    """The kinds of the files in which planted text is, as it is or in hexadecimal digits."""
    forms = (PLANTED.encode(), PLANTED.encode().hex().encode())
    return {
        name.partition("-")[0]
        for name, content in contents(folder)
        if any(form in content for form in forms)
    }


@pytest.mark.parametrize("keep_rows", [False, True])
def test_no_text_is_in_a_profile_without_rows(tmp_path: Path, keep_rows: bool) -> None:
    store = Store.create(tmp_path / "p")
    options = registry.completed(Options(kinds="keys,fds,inds,dcs", keep_rows=keep_rows))
    rows = [row(number, f"n{number % 9}") for number in range(20)]
    tables = {name: rows_of(name, rows) for name in "tu"}
    runner = InProcess()
    flow.profile(runner, store, tables, options, no_progress)
    rules = [
        "t: key(id)",
        "t: key(name)",
        "t: name -> id",
        "t(name) in u(name)",
        "t: city not null",
    ]
    flow.expect(runner, store, [Expectation(rule) for rule in rules], no_progress)

    def apply(batch: flow.Batch, quarantine: str | None = None, *, dry_run: bool = False) -> None:
        flow.apply(runner, store, "t", batch, no_progress, dry_run=dry_run, quarantine=quarantine)
        if not keep_rows:  # also just after rows were looked at for the quarantine
            assert planted_in(tmp_path / "p") == set()

    strange = [row(3, "broken"), row(30, "new"), row(31, "n1")]
    apply(flow.Batch(inserts=rows_of("inserts", strange)), dry_run=True)
    apply(flow.Batch(inserts=rows_of("inserts", strange)), str(tmp_path / "left-out"))
    apply(flow.Batch(inserts=rows_of("inserts", [row(4, "n4"), row(40, "extra")])))
    apply(flow.Batch(deletes=rows_of("deletes", rows[:2])))
    changed = rows_of("updates", [row(7, "changed")])
    apply(flow.Batch(updates=changed, row_key=("id",)))
    flow.explain(lambda: runner, store, parse("t: key(name)"), 3, no_progress)
    if keep_rows:  # the same search finds them where they are kept
        assert {"data/table", "data/raw"} <= planted_in(tmp_path / "p")
    else:
        assert planted_in(tmp_path / "p") == set()
    assert planted_in(tmp_path / "left-out")  # whom rows are quarantined for gets them
