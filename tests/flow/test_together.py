"""Batches of several tables: one version, or nothing; and what they leave is what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.kinds import registry
from holdfast.model.changes import BatchChanges
from holdfast.model.errors import BatchError, ConflictError, UnknownTableError
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess
from holdfast.store import Store
from tests import oracle
from tests.flow.tables import folder, small_limits
from tests.flow.test_inclusion import Cells, Shops, batch_of, rows_of
from tests.flow.test_law import law
from tests.limits import varied

KINDS = ("keys", "fds", "inds")
ORDERS: Cells = [(1, 10), (2, 10), (3, 20)]
LINES: Cells = [(1, 1, 7), (1, 2, 8), (2, 1, 7), (3, 1, 9)]


class Together(Shops):
    """A profile of several tables, in process, whose batches change several of them."""

    def batches(self, given_: Mapping[str, Any], batch_id: str | None) -> dict[str, Any]:
        def batch(table: str, one: Mapping[str, Any]) -> flow.Batch:
            arguments: dict[str, Any] = {
                name: self.row_input(table, value) if name in _ROWS else value
                for name, value in one.items()
            }
            return flow.Batch(**arguments, batch_id=batch_id)

        return {table: batch(table, one) for table, one in given_.items()}

    def together(
        self,
        given_: Mapping[str, Any],
        batch_id: str | None = None,
        dry_run: bool = False,
        runner: Any = None,
    ) -> BatchChanges:
        batches = self.batches(given_, batch_id)
        return flow.apply_together(runner or self.runner, self.store, batches, no_progress, dry_run)

    def assert_sets(self, tables: dict[str, Cells]) -> None:
        """Keys and functional dependencies are those of the rows."""
        now = snapshot(self.store).tables
        for name, rows in tables.items():
            width = len(self.types[name])
            cells = [tuple(oracle.exact(cell) for cell in row) for row in rows]
            assert now[name].rows == len(rows)
            assert now[name].duplicates == oracle.duplicates(cells)
            keys = [tuple("ABCDEFGH".index(c) for c in key.columns) for key in now[name].keys]
            assert sorted(keys, key=lambda one: (len(one), one)) == oracle.keys(cells, width)
            found = now[name].functional_dependencies
            if found is not None:
                told = {
                    (tuple("ABCDEFGH".index(c) for c in fd.lhs), "ABCDEFGH".index(fd.rhs))
                    for fd in found
                }
                assert told == set(oracle.dependencies(cells, width))


_ROWS = ("inserts", "deletes", "updates", "upserts")


def files(store: Store) -> list[str]:
    root = Path(store.path)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.fixture
def shop(tmp_path: Path) -> Together:
    tables = {
        "orders": (["bigint"] * 2, ORDERS),
        "lines": (["bigint"] * 3, LINES),
        "other": (["bigint"], [(5,)]),
    }
    with small_limits():
        return Together(tmp_path / "p", tables, Options(kinds=KINDS, max_arity=2))


# One version


def test_an_order_and_its_lines_break_nothing(shop: Together) -> None:
    foreign = "lines(A) in orders(A)"
    assert foreign in map(str, shop.now.dependencies())
    more: dict[str, Any] = {
        "orders": {"inserts": [(4, 20)]},
        "lines": {"inserts": [(4, 1, 6), (4, 2, 7)]},
    }
    foretold = shop.together(more, dry_run=True)
    told = shop.together(more)
    assert (foretold.version, foretold.applied) == (1, False)
    assert (told.version, told.applied, shop.store.head()) == (2, True, 2)
    for outcome in (foretold, told):
        assert list(outcome.tables) == ["lines", "orders"]
        assert not outcome["lines"]["inclusion_dependencies"].broken
        assert not outcome["orders"]["inclusion_dependencies"].broken
        assert (outcome["orders"].inserted, outcome["lines"].rows) == (1, 6)
    assert foreign in map(str, shop.now.dependencies())
    # In two versions it would have been broken in between.
    lines = shop.apply("lines", inserts=[(9, 1, 7)], dry_run=True)
    assert foreign in map(str, lines["inclusion_dependencies"].lost)
    rows = {"orders": [*ORDERS, (4, 20)], "lines": [*LINES, (4, 1, 6), (4, 2, 7)], "other": [(5,)]}
    shop.assert_exact(rows)
    shop.assert_sets(rows)
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_what_breaks_is_told_once_with_the_dependent_table(shop: Together) -> None:
    batch: dict[str, Any] = {"orders": {"deletes": [(3, 20)]}, "lines": {"inserts": [(9, 9, 9)]}}
    told = shop.together(batch)
    lost = {
        name: [str(e) for e in told[name]["inclusion_dependencies"].lost] for name in told.tables
    }
    assert "lines(A) in orders(A)" in lost["lines"]
    assert not [each for each in lost["orders"] if each.startswith("lines")]
    # The dependent table is not in the batch: with the referenced one.
    told = shop.together({"orders": {"deletes": [(2, 10)]}, "other": {"inserts": [(6,)]}})
    assert {n for n in told.tables if told[n]["inclusion_dependencies"].counts["broken"]} <= {
        "orders"
    }
    assert len({str(each.constraint) for each in told.broken}) == len(told.broken)
    assert told.to_arrow().num_rows == len(told.constraints)


def test_a_batch_of_one_table_is_that_of_the_table(shop: Together) -> None:
    shop.together({"orders": {"inserts": [(4, 20)]}}, batch_id="a")
    batch = flow.Batch(inserts=shop.row_input("orders", [(4, 20)]), batch_id="a")
    again = flow.apply(shop.runner, shop.store, "orders", batch, no_progress)
    assert again.applied_before
    assert "tables" not in (shop.store.read().changes or {})


# Whole or not at all


def test_a_failure_in_the_second_table_leaves_nothing_of_the_first(shop: Together) -> None:
    before = files(shop.store)
    bad = {"lines": {"inserts": [(1, 5, 5)]}, "orders": {"deletes": [(99, 99)]}}
    for dry_run in (True, False):
        with pytest.raises(BatchError, match="table 'orders': this delete matches no row"):
            shop.together(bad, dry_run=dry_run)
    shop.types["orderz"] = ["bigint"]
    with pytest.raises(UnknownTableError, match="no table 'orderz'"):
        shop.together({"lines": {"inserts": [(1, 5, 5)]}, "orderz": {"inserts": []}})
    with pytest.raises(BatchError, match="table 'orders': updates need --row-key"):
        shop.together({"lines": {"inserts": [(1, 5, 5)]}, "orders": {"updates": [(1, 1)]}})
    assert files(shop.store) == before
    rows = {"orders": ORDERS, "lines": LINES, "other": [(5,)]}
    shop.assert_exact(rows)
    shop.assert_sets(rows)


class FailsAt(InProcess):
    """A runner that dies at its n-th job."""

    def __init__(self, left: int) -> None:
        super().__init__(2)
        self.left = left

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("a worker died")
        return super().run(calls)

    def sharing(self, prefix: str) -> InProcess:
        return self


@pytest.mark.slow
def test_whichever_job_fails_nothing_is_left_and_a_retry_is_whole(shop: Together) -> None:
    before = files(shop.store)
    batch = {
        "orders": {"inserts": [(4, 20)], "deletes": [(2, 10)]},
        "lines": {"inserts": [(4, 1, 6)], "deletes": [(2, 1, 7)]},
    }
    failed = 0
    while True:
        try:
            told = shop.together(batch, "monday", runner=FailsAt(failed))
            break
        except RuntimeError:
            assert files(shop.store) == before
            failed += 1
    assert failed > 2
    assert told.applied
    again = shop.together(batch, "monday")
    assert (again.applied, again.applied_before, again.version) == (False, True, 2)
    assert again["lines"].inserted == 1
    rows = {"orders": [(1, 10), (3, 20), (4, 20)], "lines": [*LINES[:2], LINES[3], (4, 1, 6)]}
    rows["other"] = [(5,)]
    shop.assert_exact(rows)
    shop.assert_sets(rows)


def test_another_writer_first_is_a_conflict_and_then_a_retry(shop: Together) -> None:
    batch: dict[str, Any] = {"orders": {"inserts": [(4, 20)]}, "lines": {"inserts": [(4, 1, 6)]}}
    path = shop.store.path
    meanwhile: list[Any] = []

    class Overtaken(InProcess):
        def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
            if not meanwhile:
                meanwhile.append(1)
                other = flow.Batch(inserts=shop.row_input("orders", [(6, 20)]))
                flow.apply(InProcess(), Store(path), "orders", other, no_progress)
            return super().run(calls)

        def sharing(self, prefix: str) -> InProcess:
            return self

    with pytest.raises(ConflictError):
        shop.together(batch, "x", runner=Overtaken())
    assert shop.together(batch, "x").version == 3
    shop.assert_exact(
        {"orders": [*ORDERS, (6, 20), (4, 20)], "lines": [*LINES, (4, 1, 6)], "other": [(5,)]}
    )


# Once per id


def test_an_id_means_one_content_of_all_tables(shop: Together) -> None:
    batch: dict[str, Any] = {"orders": {"inserts": [(4, 20)]}, "lines": {"inserts": [(4, 1, 6)]}}
    shop.together(batch, "a")
    for other in (
        {"orders": {"inserts": [(4, 20)]}, "lines": {"inserts": [(4, 1, 7)]}},
        {"orders": {"inserts": [(4, 20)]}},
        {"lines": {"inserts": [(4, 1, 6)]}},
        {**batch, "other": {"inserts": []}},
        {"lines": {"inserts": [(4, 1, 6)]}, "other": {"inserts": []}},
    ):
        with pytest.raises(BatchError, match="batch id 'a' was already used for other rows"):
            shop.together(other, "a")
    # A table that it did not change may have a batch of that name.
    assert shop.together({"other": {"inserts": [(1,)]}}, "a").applied
    assert shop.together(dict(reversed(batch.items())), "a").applied_before
    entry = shop.store.summaries()[1]
    assert entry.batch is not None
    assert (entry.batch.tables, entry.batch.id) == (("lines", "orders"), "a")
    assert entry.changes is not None
    then = BatchChanges.from_stored(entry.changes, registry.makers())
    assert (then.version, then.batch_id, then["orders"].inserted) == (2, "a", 1)


# The law


@pytest.mark.slow
@law(12)
@given(
    data=st.data(),
    kinds=st.sampled_from([("inds",), ("keys", "inds"), KINDS, (*KINDS, "dcs")]),
    arity=st.integers(1, 3),
    tasks=st.integers(1, 3),
)
def test_kept_equals_fresh(
    data: st.DataObject, kinds: tuple[str, ...], arity: int, tasks: int
) -> None:
    options = Options(
        kinds=kinds,
        max_arity=arity,
        empty_columns=data.draw(st.booleans()),
        within_tables=data.draw(st.booleans()),
        evidence=data.draw(st.sampled_from(["witnessed", "counted"])),
    )
    tables: dict[str, tuple[list[str], Cells]] = {}
    for name in ("t", "u", "a.b"):
        types = data.draw(
            st.lists(st.sampled_from(["bigint", "decimal(6,1)"]), min_size=1, max_size=3)
        )
        tables[name] = (types, data.draw(rows_of(types, 8)))
    with (
        folder() as path,
        small_limits(segment_rows=data.draw(st.sampled_from([3, 1 << 20]))) as patch,
    ):
        if data.draw(st.booleans()):
            looked_up = data.draw(st.sampled_from([0, 3, 1 << 17]))
            varied(patch, task_cells=0, task_entries=3, looked_up_rows=looked_up, small_run=2)
        varied(patch, merged_runs=2, merged_segments=data.draw(st.sampled_from([2, 8])))
        shop = Together(Path(path) / "p", tables, options, tasks)
        rows = {name: each for name, (_, each) in tables.items()}
        for number in range(data.draw(st.integers(1, 3))):
            names = data.draw(st.lists(st.sampled_from(sorted(tables)), min_size=1, unique=True))
            drawn = {name: data.draw(batch_of(tables[name][0], rows[name])) for name in names}
            batch = {name: one for name, (one, _) in drawn.items()}
            before = {str(each) for each in shop.now.dependencies()}
            foretold = shop.together(batch, f"b{number}", dry_run=True)
            told = shop.together(batch, f"b{number}")
            rows |= {name: after for name, (_, after) in drawn.items()}
            shop.assert_exact(rows)
            if "keys" in kinds:
                shop.assert_sets(rows)
            now = {str(each) for each in shop.now.dependencies()}
            changes = [told[name]["inclusion_dependencies"] for name in names]
            listed = [str(each) for some in changes for each in some.gained]
            assert sorted(listed) == sorted(now - before)
            listed = [str(each) for some in changes for each in some.lost]
            assert sorted(listed) == sorted(before - now)
            for name in names:
                assert foretold[name].kinds == told[name].kinds
                assert told[name].rows == len(rows[name])
            again = shop.together(batch, f"b{number}")
            assert again.applied_before
            assert again.version == told.version
        assert flow.verify(shop.runner, shop.store, no_progress).equal
