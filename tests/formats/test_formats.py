"""Profiles of every released format open, say what they should, and can be built upon."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from holdfast.model.errors import StoreError
from holdfast.model.options import Options
from holdfast.store import Store
from holdfast.store.directory import FORMAT
from holdfast.tasks.runner import InProcess
from tests.formats.make import BEFORE, DELETES, HERE, INSERTS, KINDS_OF, ROWS
from tests.pipeline.tables import Shop

SAMPLES = sorted(HERE.glob("format-*.zip"))


def unpacked(sample: Path, path: Path) -> Shop:
    shutil.unpack_archive(sample, path)
    shop = Shop.__new__(Shop)
    shop.kinds, shop.columns = KINDS_OF, len(KINDS_OF)
    shop.options, shop.runner = Options(index_quota=2), InProcess()
    shop.store = Store.open(path)
    return shop


def test_there_is_a_sample_of_the_format_that_is_written() -> None:
    assert f"format-{FORMAT}.zip" in [sample.name for sample in SAMPLES]
    assert all(sample.stat().st_size < 100_000 for sample in SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_sample_is_read_and_built_upon(sample: Path, tmp_path: Path) -> None:
    shop = unpacked(sample, tmp_path / "p")
    assert shop.store.head() == 2
    shop.assert_exact(ROWS)
    assert shop.verify().equal
    # The batch is known by its id, and content that this version encodes differently is not.
    again = shop.apply(inserts=INSERTS, deletes=DELETES, batch_id="first")
    assert (again.applied, again.version) == (False, 2)
    told = shop.apply(inserts=[(2, 0, 0, 0), BEFORE[0]], deletes=[BEFORE[7], INSERTS[0]])
    assert told.version == 3
    left = [row for row in ROWS if row not in (BEFORE[7], INSERTS[0])]
    shop.assert_exact([*left, (2, 0, 0, 0), BEFORE[0]])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            FORMAT + 1,
            rf"written by a newer Holdfast \(format {FORMAT + 1}, this one reads {FORMAT}\): "
            "upgrade holdfast",
        ),
        (0, r"written by an older Holdfast .*rebuild it: holdfast profile SOURCE\.\.\. --into"),
        ("one", r"holdfast\.json: this file is damaged"),
    ],
)
def test_another_format_is_refused_with_what_to_do(
    tmp_path: Path, found: object, message: str
) -> None:
    shutil.unpack_archive(SAMPLES[-1], tmp_path / "p")
    marker = tmp_path / "p" / "holdfast.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "format": found}))
    with pytest.raises(StoreError, match=message):
        Store.open(tmp_path / "p")
    with pytest.raises(StoreError, match=message):
        Store.create(tmp_path / "p")
