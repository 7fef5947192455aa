"""Real tables with known errors: which rules are found, and which wrong cells are suspected."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import flow
from holdfast.flow.suspects import Asked, suspects
from holdfast.kinds import registry
from holdfast.model.near import LISTED, Suspects
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.data import MISSING, data_dir, read_table
from tests.flow.tables import text_input

DATA = data_dir()


@pytest.mark.slow
@pytest.mark.skipif(DATA is None or not (DATA / "dirty").is_dir(), reason=MISSING)
def test_wrong_cells_of_hospitals_are_suspected(tmp_path: Path) -> None:
    """The first twenty rules are listed, and all suspect cells."""
    assert DATA is not None
    folder = DATA / "dirty" / "hospital"
    header, dirty = read_table(folder / "dirty.csv")
    _, clean = read_table(folder / "clean.csv")
    numbered = [[str(place), *row] for place, row in enumerate(dirty)]
    store = Store.create(tmp_path / "p")
    options = registry.completed(Options())
    rows = {"hospital": text_input(["place", *header], numbered)}
    flow.profile(InProcess(), store, rows, options, no_progress)
    found = suspects(InProcess(), store, Asked(None, ["hospital"], None), no_progress)
    near = store.read().table("hospital").near
    assert near is not None
    assert len(near.listed) == LISTED < len(near.near)
    assert [near.unlisted + LISTED, near.more] == [len(found.near), 0]
    rules = {(each.lhs, each.rhs) for each in found.near}
    assert {(("measure_code",), rhs) for rhs in ("measure_name", "condition")} <= rules
    for lhs in ("provider_number", "name", "phone"):
        others = {"address_1", "city", "zip", "owner", "provider_number", "name", "phone"} - {lhs}
        assert {((lhs,), rhs) for rhs in others} <= rules
    wrong = {
        (place, name)
        for place, both in enumerate(zip(dirty, clean, strict=True))
        for name, one, other in zip(header, *both, strict=True)
        if one.strip() != other.strip()
    }
    precision, recall = quality(found, wrong, 2.5)
    assert precision >= 0.93
    assert recall >= 0.58


def quality(found: Suspects, wrong: set[tuple[int, str]], above: float) -> tuple[float, float]:
    """Precision and recall of the cells whose score is higher."""
    cells = {
        (int(str(cell.row["place"])), name)
        for cell in found.cells
        if cell.score > above
        for name in cell.columns
    }
    return len(cells & wrong) / len(cells), len(cells & wrong) / len(wrong)
