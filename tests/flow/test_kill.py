"""Killed at any moment: the last committed version is there, exact, and can be built upon."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.model.options import Options
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.store.files import is_kept
from tests.flow.tables import BIGINT, Shop
from tests.strategies import Rows

COLUMNS = 4


def start() -> Rows:
    return [(i, i % 5, i % 7, i // 6) for i in range(40)]


def batch(version: int) -> tuple[Rows, Rows]:
    """Inserts and deletes that lead from a version to the next; known from its number alone."""
    inserts: Rows = [(100 * version + k, k % 3, version % 4, version // 3) for k in range(6)]
    deletes: Rows = [(100 * (version - 1) + k, k % 3, (version - 1) % 4, (version - 1) // 3)
                     for k in (1, 4)] if version > 1 else []  # fmt: skip
    return inserts, deletes


def rows_at(version: int) -> Rows:
    rows = start()
    for step in range(1, version):
        inserts, deletes = batch(step)
        rows = [row for row in rows if row not in deletes] + inserts
    return rows


def opened(path: Path) -> Shop:
    shop = Shop.__new__(Shop)
    shop.kinds, shop.columns = [BIGINT] * COLUMNS, COLUMNS
    shop.options, shop.runner, shop.store = Options(), InProcess(), Store.open(path)
    return shop


def work(path: Path) -> None:
    """Apply batch after batch, for ever."""
    shop = opened(path)
    print("ready", flush=True)
    while True:
        version = shop.store.head()
        inserts, deletes = batch(version)
        shop.apply(inserts=inserts, deletes=deletes, batch_id=str(version))


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2)),
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12)),
    ],
)
def test_killed_while_it_applies(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "p"
    Shop(path, COLUMNS, start())
    for attempt in range(2):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.flow.test_kill", path], stdout=subprocess.PIPE
        ) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            time.sleep(random.Random(2 * seed + attempt).uniform(0.05, 0.4))
            worker.kill()
        shop = opened(path)
        version = shop.store.head()
        shop.assert_exact(rows_at(version))
    assert shop.verify().equal
    # The same batch again is applied once, and the next ones clean up what was left behind.
    inserts, deletes = batch(version)
    assert shop.apply(inserts=inserts, deletes=deletes, batch_id=str(version)).applied
    shop.assert_exact(rows_at(version + 1))
    assert not list((path / "leases").iterdir())
    named = shop.store.files()
    for earlier in shop.store.versions():
        named |= set(filter(is_kept, shop.store.files(earlier)))
    assert {f"data/{file.name}" for file in (path / "data").iterdir()} == named


if __name__ == "__main__":
    work(Path(sys.argv[1]))
