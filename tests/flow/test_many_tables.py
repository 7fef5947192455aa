"""Many tables in one profile: what a batch reads, compares and writes is that of its own table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import flow
from holdfast.model.commits import TableRecord
from holdfast.model.errors import ConflictError, InputError
from holdfast.model.expectations import Expectation
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess, Read, Reader
from holdfast.store import Store, clean
from holdfast.store.files import is_kept
from holdfast.store.log import Log
from holdfast.tasks.ingest import Ingest
from holdfast.values import n_ary
from holdfast.values.overlaps import Entries, Overlaps
from tests.flow.tables import row_input, small_limits
from tests.flow.test_inclusion import Cells, Shops, inclusions
from tests.limits import varied

TABLES = 12


def tables() -> dict[str, tuple[list[str], Cells]]:
    """Tables that all share some numbers, each with some of its own."""
    return {
        f"t{n:02}": (
            ["bigint", "bigint", "string"],
            [(i, 100 * n + i % 3, f"n{(i + n) % 5}") for i in range(6 + n)],
        )
        for n in range(TABLES)
    }


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shops:
    """A profile whose shared values lie in several files."""
    varied(monkeypatch, overlap_cells=100)
    return Shops(tmp_path / "p", tables(), Options(kinds=("inds",)))


def test_a_batch_reads_and_compares_what_its_table_shares(
    shop: Shops, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = shop.inclusion.overlaps
    assert len(run.files) > TABLES
    files: set[str] = set()
    stretches: set[tuple[int, int]] = set()
    read, rows = Overlaps._file, Overlaps.rows

    def file(self: Overlaps, path: str) -> Entries:
        files.add(path)
        return read(self, path)

    def of_stretch(self: Overlaps, low: int, high: int) -> Any:
        stretches.add((low, high))
        return rows(self, low, high)

    before = shop.dependencies()
    monkeypatch.setattr(Overlaps, "_file", file)
    monkeypatch.setattr(Overlaps, "rows", of_stretch)
    told = shop.apply("t04", inserts=[(10, 1_003, "x"), (77, 1_003, "x")])
    low = 4 * 3
    assert stretches == {(low, low + 3)}
    assert 0 < len(files) <= 3
    monkeypatch.undo()
    now = shop.dependencies()
    changes = told["inclusion_dependencies"]
    listed = [
        {tuple(str(side[0]) for side in each.sides) for each in inclusions(some)}
        for some in (changes.gained, changes.lost)
    ]
    assert listed == [now - before, before - now]
    assert all(listed)


def test_what_a_batch_writes_follows_its_table(shop: Shops) -> None:
    def written(version: int) -> list[int]:
        record = shop.store.read(version).inclusion
        assert record is not None
        return [run.entries for run in (*record.overlaps, *record.clusters)]

    first = written(1)
    shop.apply("t04", inserts=[(5, 400, "n1"), (50, 401, "y")])
    new = [size for size in written(2) if size not in first]
    # 50 and y are new to the table: nobody shares them.
    assert sum(new) <= 8
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_tuples_of_other_tables_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [(i, i % 3) for i in range(6)]
    shop = Shops(
        tmp_path / "p",
        {name: (["bigint"] * 2, pairs) for name in ("a", "b", "c", "d")},
        Options(kinds=("inds",), max_arity=2),
    )
    assert len(shop.wide()) == 12
    seen: set[frozenset[str]] = set()
    kept = n_ary._still_known

    def noted(search: Any, known: n_ary.Verdicts, batches: n_ary.RowChanges) -> n_ary.Verdicts:
        seen.update(frozenset((each.table, each.other)) for each in known)
        return kept(search, known, batches)

    monkeypatch.setattr(n_ary, "_still_known", noted)
    shop.apply("b", inserts=[(0, 1)])
    assert seen == {frozenset(("b", other)) for other in "acd"}
    monkeypatch.undo()
    # Its columns still lie in those of the others, but no longer its pairs.
    assert {(left, right) for left, _, right, _ in shop.wide()} == {
        (left, right) for left in "acd" for right in "abcd" if left != right
    }
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def files_in(store: Store, *folders: str) -> dict[str, int]:
    """The bytes of every file of some folders."""
    files = [file for folder in folders for file in Path(store.path, folder).iterdir()]
    return {file.name: file.stat().st_size for file in files}


def small(path: Path, count: int) -> Shops:
    """A profile of tables that share some of their numbers."""
    rows = {
        f"t{n:02}": (["bigint", "string"], [(i, f"{n}:{i}") for i in range(5 + n % 3)])
        for n in range(count)
    }
    return Shops(path, rows, Options(kinds=("keys", "inds")))


@pytest.mark.slow
def test_a_commit_says_what_changed(tmp_path: Path) -> None:
    """And names a manifest for every other table, however many files that one has."""
    sizes, counts = [], []
    for tables in (3, 30):
        shop = small(tmp_path / str(tables), tables)
        before = files_in(shop.store, "log", "data")
        shop.apply("t01", inserts=[(3, "1:x")])
        written = {
            name: size
            for name, size in files_in(shop.store, "log", "data").items()
            if name not in before
        }
        counts.append(len(written))
        sizes.append(written["000000000002.json"])
    assert counts[0] == counts[1]
    assert sizes[1] - sizes[0] < 27 * 100


def test_a_batch_reads_the_manifest_of_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    varied(monkeypatch, swept_tables=3)
    shop = small(tmp_path / "p", 12)
    read: set[str] = set()
    manifest = Log._manifest

    def noted(log: Log, path: str) -> TableRecord:
        read.add(path)
        return manifest(log, path)

    monkeypatch.setattr(Log, "_manifest", noted)
    shop.store = Store.open(tmp_path / "p")
    shop.apply("t01", inserts=[(7, "1:7")])
    assert read == {shop.store.read(version).tables.manifests["t01"] for version in (1, 2)}
    read.clear()
    shop.store.read(1).table("t05")
    assert len(read) == 1


def needed(store: Store) -> set[str]:
    """What is there for a reason: the files of the last version, and what stays of others."""
    earlier = {name for version in store.versions() for name in store.files(version)}
    return {name[5:] for name in {*store.files(), *filter(is_kept, earlier)}}


@pytest.mark.slow
def test_clean_up_removes_what_versions_no_longer_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    varied(monkeypatch, swept_tables=3, merged_segments=2, merged_runs=2, small_run=2)
    shop = small(tmp_path / "p", 8)
    for step in range(6):
        shop.apply(f"t0{step}", inserts=[(70 + step, "x")], deletes=[(0, f"{step}:0")])
        assert files_in(shop.store, "data").keys() == needed(shop.store)
    # What a reader holds goes when it is done, with the next clean-up.
    held = {name[5:] for name in shop.store.files()}
    with shop.store.reading():
        for step in range(3):
            shop.apply("t06", inserts=[(80 + step, "y")])
            assert files_in(shop.store, "data").keys() >= held
    assert files_in(shop.store, "data").keys() > needed(shop.store)
    shop.apply("t06", inserts=[(90, "y")])
    assert files_in(shop.store, "data").keys() == needed(shop.store)
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_clean_up_looks_at_all_files_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    varied(monkeypatch, swept_tables=3)
    shop = small(tmp_path / "p", 5)
    stray = tmp_path / "p" / "data" / "values-0123456789ab-1.arrow"
    stray.touch()
    shop.apply("t00", inserts=[(70, "x")])
    assert stray.exists()
    monkeypatch.setattr(clean, "_SPAN", 3)
    shop.apply("t00", inserts=[(71, "x")])
    assert not stray.exists()


class Meanwhile(InProcess):
    """Lets something happen once, after so many jobs."""

    def __init__(self, jobs: int, happens: Callable[[], object]) -> None:
        super().__init__(2)
        self.left, self.happens = jobs, happens

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        results = super().run(calls)
        self.left -= 1
        if self.left == 0:
            self.happens()
        return results


def beside(shop: Shops, jobs: int, happens: Callable[[], object], table: str, **batch: Any) -> Any:
    """A batch, with something that happens to the profile after so many of its jobs."""
    row_inputs: dict[str, Any] = {name: shop.row_input(table, rows) for name, rows in batch.items()}
    given = flow.Batch(**row_inputs)
    runner = Meanwhile(jobs, happens)
    told = flow.apply(runner, Store.open(shop.store.path), table, given, no_progress)
    assert runner.left <= 0, "it did not happen"
    return told


@pytest.mark.parametrize("jobs", [1, 2])
def test_writers_of_different_tables_do_not_conflict(tmp_path: Path, jobs: int) -> None:
    """Also where both bring the same new value, of which neither knows that the other has it."""
    rows = {name: [(i,) for i in range(4)] for name in "abc"}
    options = Options(kinds=("keys", "inds"), max_arity=2)
    tables = {name: (["bigint"], each) for name, each in rows.items()}
    shop = Shops(tmp_path / "p", tables, options)
    assert len(shop.dependencies()) == 6

    def other() -> None:
        shop.apply("b", inserts=[(9,)], deletes=[(0,)])
        shop.apply("c", inserts=[(8,)])

    told = beside(shop, jobs, other, "a", inserts=[(9,), (7,)], deletes=[(0,)])
    assert (told.version, shop.store.head()) == (4, 4)
    after = {"a": [1, 2, 3, 9, 7], "b": [1, 2, 3, 9], "c": [0, 1, 2, 3, 8]}
    shop.assert_exact({name: [(i,) for i in each] for name, each in after.items()})
    # b was in c no more when a came, and is in a since.
    changes = told["inclusion_dependencies"]
    assert {str(each) for each in changes.gained} == {"b(A) in a(A)"}
    assert {str(each) for each in changes.lost} == {"a(A) in c(A)"}
    assert flow.verify(shop.runner, shop.store, no_progress).equal
    assert files_in(shop.store, "data").keys() == needed(shop.store)
    assert [each.batch.table for each in shop.store.summaries() if each.batch] == ["b", "c", "a"]


def test_expected_rules_are_counted_with_what_others_changed(tmp_path: Path) -> None:
    tables = {name: (["bigint"], [(i,) for i in range(4)]) for name in "ab"}
    shop = Shops(tmp_path / "p", tables, Options(kinds=("keys", "inds")))
    flow.expect(shop.runner, shop.store, [Expectation("a(A) in b(A)")], no_progress)
    told = beside(shop, 2, lambda: shop.apply("b", inserts=[(9,)]), "a", inserts=[(9,), (8,)])
    (rule,) = told.expectations
    assert (told.version, rule.after.violations) == (4, 1)
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_writers_of_one_table_conflict(tmp_path: Path) -> None:
    tables = {name: (["bigint"], [(i,) for i in range(4)]) for name in "ab"}
    shop = Shops(tmp_path / "p", tables, Options(kinds=("keys", "inds")))
    happenings = [
        lambda: shop.apply("a", inserts=[(5,)]),
        lambda: flow.expect(shop.runner, shop.store, [Expectation("a: key(A)")], no_progress),
    ]
    for happens in happenings:
        before = shop.store.head()
        with pytest.raises(ConflictError, match="another writer committed version"):
            beside(shop, 1, happens, "a", inserts=[(6,)])
        assert shop.store.head() == before + 1
        assert files_in(shop.store, "data").keys() == needed(shop.store)
        assert not files_in(shop.store, "leases")
    shop.assert_exact({"a": [(i,) for i in (0, 1, 2, 3, 5)], "b": [(i,) for i in range(4)]})


class Counting(InProcess):
    """Counts jobs."""

    def __init__(self) -> None:
        super().__init__(2)
        self.jobs = 0

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        self.jobs += 1
        return super().run(calls)

    def read(self, task: Reader, rows: Any, spec: Ingest) -> list[TaskResult]:
        self.jobs += 1
        return super().read(task, rows, spec)

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        before = self.jobs
        results = super().read_all(reads)
        self.jobs = before + 1
        return results


def profiled(path: Path, count: int, options: Options) -> tuple[Store, int]:
    """A profile of some tables, and its number of jobs."""
    rows = {
        f"t{n}": row_input(4, [(i, i % (2 + n), i // 4, i % 3) for i in range(20 + 3 * n)])
        for n in range(count)
    }
    store, runner = Store.create(path), Counting()
    flow.profile(runner, store, rows, options, no_progress)
    return store, runner.jobs


@pytest.mark.slow
@pytest.mark.parametrize("evidence", ["witnessed", "counted"])
def test_tables_share_the_jobs_of_a_first_profile(tmp_path: Path, evidence: str) -> None:
    options = Options(evidence=evidence)
    apart = [profiled(tmp_path / f"p{n}", n, options)[1] for n in (1, 2, 3)]
    together, jobs = profiled(tmp_path / "p", 8, options)
    # Each table is like the others, apart from a round of searching more or less.
    assert jobs <= max(apart) + 3
    with small_limits(tables_at_once=1):
        one_by_one, many = profiled(tmp_path / "q", 8, options)
    assert many > 2 * jobs
    found, expected = snapshot(together), snapshot(one_by_one)
    for name, table in expected.tables.items():
        mine = found.tables[name]
        assert mine.keys == table.keys
        assert [*(mine.functional_dependencies or ())] == [*(table.functional_dependencies or ())]
    assert found.inclusions is not None
    assert expected.inclusions is not None
    assert found.inclusions.dependencies() == expected.inclusions.dependencies()
    verified = Counting()
    assert flow.verify(verified, together, no_progress).equal
    assert verified.jobs < many


def test_the_first_table_that_fails_is_named(tmp_path: Path) -> None:
    """As if one table had been profiled after the other; and nothing is left."""
    rows = {name: row_input(2, [(1, 2)]) for name in ("a", "b", "c")}
    rows["b"] = row_input(0, [], "rows of b")
    rows["c"] = row_input(0, [], "rows of c")
    store = Store.create(tmp_path / "p")
    with pytest.raises(InputError, match="rows of b has no columns"):
        flow.profile(InProcess(), store, rows, Options(), no_progress)
    assert not list((tmp_path / "p" / "data").iterdir())
    assert not list((tmp_path / "p" / "leases").iterdir())
