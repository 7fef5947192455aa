"""The command line as a user runs it, and a real profile that needs no JVM."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pytest

from holdfast.api import Profile
from holdfast.cli import main, progress
from holdfast.input.row_input import Columns, RowInput
from holdfast.input.sources import Source
from holdfast.runtime.runner import InProcess

ORDERS = """\
id,customer,day,first name,note
1,7,2026-01-01,Ann,
2,7,2026-01-02,Ann,late
3,8,2026-01-01,Bob,
4,9,2026-01-03,Ann,null
"""

TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
}


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line. However slow the machine is, there are no lines about progress."""
    monkeypatch.setattr(progress, "AFTER_S", 1e6)

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["holdfast", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        told = capsys.readouterr()
        return Result(int(exit_.value.code or 0), told.out, told.err)

    return call


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """No Spark: the arguments of every session that was asked for."""
    asked: list[tuple[Any, ...]] = []
    place = SimpleNamespace(open_session=lambda *arguments: asked.append(arguments))
    monkeypatch.setitem(sys.modules, "holdfast.spark.session", place)
    return asked


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, sessions: list[tuple[Any, ...]]) -> None:
    """Commands work for real, in this process, on CSV files that pyarrow reads."""

    def row_input(_: Profile, rows: Source, label: str, stored: Any = None) -> RowInput:
        options = pa.csv.ConvertOptions(
            column_types={"day": pa.string(), "note": pa.string()},
            null_values=[""],
            strings_can_be_null=True,
        )
        table = pa.csv.read_csv(rows.path, convert_options=options)
        types = [TYPES[each] for each in table.schema.types]
        columns = Columns.of(table.column_names, types, table.schema.types)
        return RowInput(label, columns, table.rename_columns(columns.schema.names))

    def running(profile: Profile) -> InProcess:
        profile._spark()
        return InProcess()

    monkeypatch.setattr(Profile, "_running", running)
    monkeypatch.setattr(Profile, "_row_input", row_input)


@pytest.fixture
def shop(
    in_process: None, run: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A profile of one table, with its rows in ``orders.csv`` beside it: made once, then copied."""
    made = tmp_path_factory.getbasetemp() / "shop-of-commands"
    rows = write(tmp_path, "orders", ORDERS)
    if not made.exists():
        result = run("profile", rows, "--into", made)
        assert result.code == 0, result.err
    shutil.copytree(made, tmp_path / "shop")
    return tmp_path / "shop"


def write(folder: Path, name: str, text: str) -> Path:
    """A CSV file."""
    path = folder / f"{name}.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a spread test run set a width of their own."""
    monkeypatch.delenv("COLUMNS", raising=False)
