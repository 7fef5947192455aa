"""Real tables whose agree-sets and functional dependencies are known, and kept through changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.kernels import pairs
from holdfast.model.options import Options
from holdfast.report.snapshot import TableSnapshot, agree_sets
from holdfast.store import Store
from tests.data import MISSING, data_dir, read_table
from tests.flow.test_known_data import SMALL, Real

pytestmark = pytest.mark.skipif(data_dir() is None, reason=MISSING)

WITH_FDS = Options(kinds=("keys", "fds"))


def dependencies(now: TableSnapshot) -> set[tuple[frozenset[str], str]]:
    return {(frozenset(fd.lhs), fd.rhs) for fd in now.functional_dependencies or ()}


def counted(store: Store) -> dict[tuple[str, ...], int]:
    return {each.columns: each.pairs for each in agree_sets(store, "t")}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SMALL, "adult"])
def test_known_dependencies(tmp_path: Path, name: str) -> None:
    real = Real(tmp_path, name, WITH_FDS)
    known = real.known["functional_dependencies"]
    assert dependencies(real.now) == {(frozenset(fd["lhs"]), fd["rhs"]) for fd in known}
    found = counted(real.store)
    assert len(found) == real.known["agree_sets"]
    assert sum(found.values()) == len(real.rows) * (len(real.rows) - 1) // 2

    some = real.rows[:: max(2, len(real.rows) // 40)]
    left = list(real.rows)
    for row in some:
        left.remove(row)
    real.apply([], some)
    fresh = real.fresh(left)
    assert counted(real.store) == counted(fresh)
    real.apply(some, [])
    assert dependencies(real.now) == {(frozenset(fd["lhs"]), fd["rhs"]) for fd in known}
    assert counted(real.store) == found


@pytest.mark.long
def test_flight_has_nearly_a_million(tmp_path: Path) -> None:
    real = Real(tmp_path, "flight", WITH_FDS)
    before = real.now.functional_dependencies
    assert before is not None
    assert len(before) == real.known["fd_count"]
    assert len(counted(real.store)) == real.known["agree_sets"]
    real.apply([], real.rows[:10])
    real.apply(real.rows[:10], [])
    after = real.now.functional_dependencies
    assert after is not None
    assert len(after) == len(before)
    assert not after.without(before)
    assert not before.without(after)


def test_uniprot_has_222_columns() -> None:
    folder = data_dir()
    assert folder is not None
    _, rows = read_table(folder / "uniprot.csv")
    columns = [np.unique(column, return_inverse=True)[1] for column in zip(*rows, strict=True)]
    masks, counts = pairs.agree_sets(np.array(columns, np.int32), np.arange(len(rows)), True)
    assert len(masks) == 326_698
    assert counts.sum() == len(rows) * (len(rows) - 1) // 2
