"""Profiles of every released format open, say what they should, and can be built upon."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.model.errors import StoreError
from holdfast.runtime.runner import InProcess
from holdfast.store import EXPIRED, FOLLOWING, FORMAT, GROUPED, Store
from tests import oracle
from tests.flow.tables import SECRET, Shop
from tests.formats.make import (
    BEFORE,
    DELETES,
    FEEDS,
    HERE,
    INSERTS,
    KINDS_OF,
    OPTIONS,
    ROWS,
)
from tests.strategies import Rows

SAMPLES = sorted(HERE.glob("format-*.zip"))


def unpacked(sample: Path, path: Path) -> Shop:
    shutil.unpack_archive(sample, path)
    shop = Shop.__new__(Shop)
    shop.kinds, shop.columns = KINDS_OF, len(KINDS_OF)
    shop.store, shop.runner = Store.open(path), InProcess()
    shop.options = shop.store.read().options
    shop.secret = None if shop.options.keep_values else SECRET
    return shop


def assert_exact(shop: Shop, rows: Rows) -> None:
    """The profile says what the oracle says, also if it has no values to show."""
    if shop.options.keep_values:
        shop.assert_exact(rows)
        return
    maximal = oracle.maximal_sets(oracle.agree_sets(rows, shop.columns, "equal"))
    assert shop.places(shop.now.non_keys) == maximal
    assert shop.places(shop.now.keys) == oracle.minimal_sets(shop.columns, maximal, None)


def test_there_is_a_sample_of_the_formats_that_are_written() -> None:
    assert {f"format-{number}.zip" for number in OPTIONS} == {each.name for each in SAMPLES}
    assert all(sample.stat().st_size < 100_000 for sample in SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_sample_is_read_and_built_upon(sample: Path, tmp_path: Path) -> None:
    shop = unpacked(sample, tmp_path / "p")
    assert shop.store.head() == 2
    assert_exact(shop, ROWS)
    assert shop.verify().equal
    # The batch is known by its id, and content that this version encodes differently is not.
    again = shop.apply(inserts=INSERTS, deletes=DELETES, batch_id="first")
    assert (again.applied, again.version) == (False, 2)
    told = shop.apply(inserts=[(2, 0, 0, 0), BEFORE[0]], deletes=[BEFORE[7], INSERTS[0]])
    assert told.version == 3
    left = [row for row in ROWS if row not in (BEFORE[7], INSERTS[0])]
    assert_exact(shop, [*left, (2, 0, 0, 0), BEFORE[0]])
    assert shop.verify().equal


def test_a_profile_has_the_lowest_format_that_it_needs(tmp_path: Path) -> None:
    """That of near rules is needed once there is one."""
    shop = Shop(tmp_path / "p", KINDS_OF, BEFORE, OPTIONS[GROUPED])
    assert format_of(shop) == FORMAT
    shop.apply(inserts=INSERTS, deletes=DELETES)
    near = shop.store.read().table("t").near
    assert near is not None
    assert [str(each.rule) for each in near.near] == ["t: key(c0)"]
    assert format_of(shop) == GROUPED


def test_positions_of_feeds_are_carried_on(tmp_path: Path) -> None:
    shop = unpacked(HERE / f"format-{FOLLOWING}.zip", tmp_path / "p")
    expected = {name: replace(feed, version=2) for name, feed in FEEDS.items()}
    assert shop.store.read().feeds == expected
    shop.apply(inserts=[BEFORE[0]])
    assert shop.store.read().feeds == expected
    assert format_of(shop) == FOLLOWING


def format_of(shop: Shop) -> int:
    return int(json.loads((Path(shop.store.path) / "holdfast.json").read_text())["format"])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            EXPIRED + 1,
            rf"written by a newer Holdfast \(format {EXPIRED + 1}, this one reads {EXPIRED}\): "
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
