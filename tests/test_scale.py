"""The cost model: its bytes are those of real runs, and the page has the tables that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import bench_model, scale_model
from benchmarks.bench_model import TASKS, Run

PAGE = Path(__file__).parent.parent / "docs/scale.md"
SEGMENTS = 16
ROWS = SEGMENTS * 1_024


def run_of(folder: Path, tasks: int, segments: int = SEGMENTS) -> Run:
    return Run.of(folder / "p", bench_model.orders(ROWS), tasks, segments)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("known"), 2)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", TASKS)
def test_bytes_are_exact(tasks: int, known: Run, tmp_path: Path) -> None:
    run = known if tasks == 2 else run_of(tmp_path, tasks)
    compared = run.expected(known)
    assert {what: measured for what, (measured, _) in compared.items()} == {
        what: expected for what, (_, expected) in compared.items()
    }
    assert run.layout.segments == SEGMENTS
    assert known.counts.searches == int(known.counts.searches), "whole passes through an index"


@pytest.mark.slow
def test_files_are_exact_however_rows_are_divided(known: Run, tmp_path: Path) -> None:
    few = run_of(tmp_path, 4, SEGMENTS // 4)
    compared = few.expected(known)
    files = [pair for what, pair in compared.items() if not what.startswith("read: ")]
    assert len(files) == 5
    assert all(measured == expected for measured, expected in files)


def test_the_page_has_the_tables_of_the_program() -> None:
    page = PAGE.read_text()
    for table in scale_model.tables():
        assert table in page, "python -m benchmarks.scale_model prints the tables"
