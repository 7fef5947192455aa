"""Work that divides: 64 tasks read, and send back, about as much as two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import flow
from holdfast.evidence.counting import agreeing
from holdfast.kinds.table_state import TableState
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.maps import Maps
from holdfast.runtime.runner import InProcess
from holdfast.runtime.sealed import is_here
from holdfast.store import Store
from holdfast.tasks import segments
from tests import oracle
from tests.flow.tables import Shop, folder, small_limits
from tests.strategies import Rows, examples, rows_of
from tests.traffic import Counting

ROWS: Rows = [(i, i * i % 61, i % 7, (i % 7) % 3) for i in range(6_000)]
OPTIONS = Options(("keys", "fds", "inds"), evidence="witnessed", within_tables=True)
ENVELOPE = 750
"""Bytes that every result has, however little it says; what is counted of columns is among them."""


@contextmanager
def divided(**changed: Any) -> Iterator[None]:
    """Limits that leave a task a few hundred rows."""
    few = {"segment_rows": 1_000, "undivided_rows": 0, "located_rows": 20, "merged_segments": 100}
    survey = {"survey": 1, "surveyed_rows": 1_000, "large_groups": 8, "sent_positions": 200}
    with small_limits(**{**few, **survey, **changed}):
        yield


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    with divided():
        return Shop(tmp_path_factory.mktemp("divided") / "p", 4, ROWS, OPTIONS)


def assert_divides(work: Callable[[Counting], Any], kinds: tuple[str, ...]) -> None:
    """The same outcome, for about as much reading and no more to send back."""
    outcomes, runners = [], []
    for tasks in (2, 64):
        runner = Counting(tasks)
        with divided():
            outcomes.append(work(runner))
        runners.append(runner)
    few, many = runners
    assert outcomes[0] == outcomes[1]
    for kind in kinds:
        assert many.calls[kind] > few.calls[kind] > 0, kind
        assert many.bytes_read[kind] < 1.5 * few.bytes_read[kind], kind
        assert (
            many.bytes_returned[kind] < 1.5 * few.bytes_returned[kind] + many.calls[kind] * ENVELOPE
        ), kind


def test_group_counts(shop: Shop) -> None:
    table = TableState.load(shop.store, shop.store.read(), "t").table
    view = table.view(shop.store.path, shop.options)
    sets = ((1,), (1, 2), (0, 3))
    assert_divides(lambda runner: agreeing(runner, view, sets, "data/*-x-"), ("agreeing_in",))
    assert not list(Path(shop.store.path, "data").glob("*exchange*")), "the files are gone again"


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (Key("t", ("c1",)), "grouped_in"),
        (FunctionalDependency("t", ("c1",), "c2"), "grouped_in"),
        (InclusionDependency((Attribute("t", "c1"),), (Attribute("t", "c2"),)), "orphans_in"),
    ],
)
def test_explanations(shop: Shop, rule: Any, kind: str) -> None:
    def explained(runner: Counting) -> Any:
        return flow.explain(lambda: runner, shop.store, rule, 3, no_progress)

    assert_divides(explained, (kind,))
    with divided(undivided_rows=10_000):
        whole = flow.explain(lambda: InProcess(2), shop.store, rule, 3, no_progress)
    with divided():
        assert explained(Counting(64)) == whole
    assert not list(Path(shop.store.path, "data").glob("*exchange*")), "the files are gone again"


def test_a_first_profile(tmp_path: Path) -> None:
    """Duplicates and surveys in particular; what is sampled follows the segments."""

    def profiled(runner: Counting) -> Any:
        made = Shop(tmp_path / f"p{runner.tasks}", 4, ROWS, OPTIONS, runner=runner)
        return made.now.keys, list(map(str, made.now.functional_dependencies or ()))

    assert_divides(profiled, ("duplicates", "representatives", "search"))


def test_columns_that_all_have_few_values(tmp_path: Path) -> None:
    """Many combinations are possible, and few are there: with 64 tasks every value is heavy, and
    would be divided column by column."""
    dice = np.random.default_rng(3)
    a, b, c = (dice.integers(0, 4, 4_000) for _ in range(3))
    columns = [np.arange(4_000), a, b, c, a * b % 5, (a + c) % 3, (a * b + c) % 7]
    rows: Rows = [tuple(row) for row in np.stack(columns, axis=1).tolist()]
    # Of a table this short, near rules are counted by tasks that see all rows.
    options = Options(("keys", "fds"), evidence="witnessed", near="off")
    found, runners = [], []
    for tasks in (2, 64):
        runner = Counting(tasks)
        with divided(few_combinations=16, frequent_rows=200, sample_rows=3):
            made = Shop(tmp_path / f"p{tasks}", len(columns), rows, options, runner=runner)
        found.append([*map(str, made.now.functional_dependencies or ())])
        runners.append(runner)
    assert found[0] == found[1]
    assert len(found[0]) > 6
    few, many = (sum(each.bytes_read.values()) for each in runners)
    assert many < 1.5 * few


@pytest.mark.slow
@pytest.mark.parametrize("key", [False, True])
def test_batches(tmp_path: Path, key: bool) -> None:
    """Rows that are located, and rows that repeat others."""
    inserts: Rows = [*ROWS[:1_500], *((i, 1, 2, 0) for i in range(9_000, 9_500))]

    def applied(runner: Counting) -> Any:
        made = Shop(tmp_path / f"p{runner.tasks}", 4, ROWS, OPTIONS, runner=runner)
        with_key: dict[str, Any] = {"row_key": ["c0"]} if key else {}
        runner.bytes_read.clear()
        gone = made.apply(deletes=ROWS[3_000:5_000], **with_key)
        come = made.apply(inserts=inserts)
        assert not list(Path(made.store.path, "data").glob("*located*")), "the files are gone again"
        return gone.rows, come.rows, come.duplicates, made.now.duplicates

    assert_divides(applied, ("locate", "repeats"))


@pytest.mark.slow
def test_ids_of_many_deleted_rows_stay_in_files(tmp_path: Path) -> None:
    """What comes back to the driver for 5,000 rows is hardly more than for 1,000."""
    returned = []
    for size in (1_000, 5_000):
        runner = Counting(8)
        with divided(sent_positions=10):
            made = Shop(tmp_path / f"p{size}", 4, ROWS, OPTIONS, runner=runner)
            runner.bytes_returned.clear()
            made.apply(deletes=ROWS[:size])
            returned.append(runner.bytes_returned["locate"])
    assert returned[1] - returned[0] < 1_000, "segments are named, and no rows"


@pytest.mark.slow
def test_many_repeated_rows_come_back_as_a_number(tmp_path: Path) -> None:
    returned = []
    for size in (1_000, 5_000):
        runner = Counting(8)
        with divided():
            made = Shop(tmp_path / f"p{size}", 4, ROWS, OPTIONS, runner=runner)
            runner.bytes_returned.clear()
            assert made.apply(inserts=ROWS[:size]).duplicates == size
            returned.append(sum(runner.bytes_returned[kind] for kind in ("repeats", "probe")))
    assert returned[1] < 1.1 * returned[0] + 100


def test_ranges_are_cut_by_the_end_of_an_index_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver does not read a whole index."""
    with divided():
        made = Shop(tmp_path / "p", 2, [(i, i % 5) for i in range(3_000)], OPTIONS)
    table = TableState.load(made.store, made.store.read(), "t").table
    file = Path(made.store.path, table.segments[0].indexes[table.indexed[0]])
    monkeypatch.setattr(segments, "_maps", Maps(segments.ArrayFile, is_here))  # none is open yet
    cuts = segments.index_cuts(file)
    assert len(cuts) > 200
    assert (np.diff(cuts) >= 0).all()
    checked = segments.open_arrays(file).places["codes"].blocks.checked
    assert 0 < checked.sum() < len(checked) / 3


@given(
    rows=rows_of(3, 40),
    nulls=st.sampled_from(["equal", "unequal"]),
    tasks=st.integers(1, 9),
    columns=st.sets(st.integers(0, 2)),
)
@settings(deadline=None, max_examples=examples(60))
def test_pairs_that_agree_are_counted_in_any_number_of_ranges(
    rows: Rows, nulls: str, tasks: int, columns: set[int]
) -> None:
    some = tuple(sorted(columns))
    with folder() as place, small_limits(segment_rows=8, undivided_rows=0):
        shop = Shop(Path(place) / "p", 3, rows, Options(("keys",), nulls=nulls))
        table = TableState.load(Store.open(shop.store.path), shop.store.read(), "t").table
        view = table.view(shop.store.path, shop.options)
        (counted,) = agreeing(InProcess(tasks), view, (some,), "data/*-x-")
    assert counted == oracle.violations(rows, some, None, nulls)
