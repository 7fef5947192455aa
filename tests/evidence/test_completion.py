"""Evidence completed without comparing all pairs equals that of all pairs, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import tax
from holdfast.cover.evidence import Evidence
from holdfast.evidence.comparison import completion, regions
from holdfast.evidence.comparison.completion import Late
from holdfast.evidence.comparison.regions import Sampled
from holdfast.evidence.scope import Scope
from holdfast.kernels import bitsets, groups, violations
from holdfast.model import limits
from holdfast.model.comparisons import EQUALITY, ORDER, Comparison, Space
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.grammar import parse
from holdfast.model.limits import Time
from holdfast.model.thresholds import Costs
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess
from holdfast.runtime.sealed import unique
from holdfast.runtime.timed import Timed
from holdfast.tasks import completion as tasks
from holdfast.tasks import encode
from holdfast.tasks.segments import Segment, with_dead, write_words
from holdfast.tasks.view import View
from tests import oracle
from tests.flow.tables import folder
from tests.kernels.test_violations import Row, evidence_of, spaces, tables
from tests.limits import varied
from tests.strategies import examples

PREFIX = "*-run-"

SEARCHED = {"all_pairs": -1, "costs": Costs(pairs_a_second=1e-9), "shown_pairs": 2}
GROUPED = {
    "all_pairs": -1,
    "costs": Costs(search_seconds_a_row=1e9, sweep_seconds_a_row=1e9),
}
MIXED = {
    "all_pairs": -1,
    "costs": Costs(
        pairs_a_second=1e3,
        edge_pairs_a_row=0,
        sweep_seconds_a_row=1e-3,
        search_seconds_a_row=1e-3,
    ),
    "share_pairs": 3,
    "share_pairs_a_row": 0,
}
BOXED = {
    "all_pairs": -1,
    "costs": Costs(
        pairs_a_second=1e3,
        edge_pairs_a_row=0,
        box_seconds_a_row=0,
        group_seconds_a_row=1e9,
        search_seconds_a_row=1e6,
        sweep_seconds_a_row=1e6,
    ),
    "share_pairs": 3,
    "share_pairs_a_row": 0,
}
WAYS: dict[str, dict[str, Any]] = {
    "all": {},
    "searched": SEARCHED,
    "grouped": GROUPED,
    "mixed": MIXED,
    "boxed": BOXED,
}


def written(
    root: Path, parts: list[pa.Table], nulls_equal: bool, dead: tuple[int, ...] = ()
) -> View:
    """Each part as a segment; of the first one some rows are deleted."""
    layout = encode.layout(parts[0].schema)
    segments = []
    for number, part in enumerate(parts):
        whole = part.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=part.schema)
        ]
        words = encode.encode(whole[0], layout).T
        matrix = np.ascontiguousarray(words).view(np.uint64)
        path = write_words(root, unique(PREFIX, "words"), matrix, [])
        segments.append(Segment(number, len(matrix), len(matrix), path, None))
    if dead:
        segments[0] = with_dead(root, segments[0], np.array(dead), unique(PREFIX, "dead"))
    return View(str(root), tuple(segments), layout.widths, nulls_equal)


def as_table(rows: list[Row], columns: int) -> pa.Table:
    schema = pa.schema([(f"c{c}", pa.int64()) for c in range(columns)])
    cells = [[row[c] for row in rows] for c in range(columns)]
    return pa.table([pa.array(each, pa.int64()) for each in cells], schema=schema)


def all_evidence(
    rows: dict[int, Row], space: Space, nulls_equal: bool
) -> dict[frozenset[int], set[tuple[int, int]]]:
    """What ordered pairs of rows show, and which pairs show it."""
    found: dict[frozenset[int], set[tuple[int, int]]] = {}
    for (i, t), (j, s) in permutations(rows.items(), 2):
        found.setdefault(evidence_of(t, s, space, nulls_equal), set()).add((i, j))
    return found


def assert_shown(evidence: Evidence, rows: dict[int, Row], space: Space, nulls_equal: bool) -> None:
    """Every witness shows its mask."""
    masks = bitsets.to_columns(evidence.masks)
    for mask, witnesses in zip(masks, evidence.witnesses.tolist(), strict=True):
        living = [pair for pair in witnesses if pair[0] >= 0]
        assert living
        for i, j in living:
            assert i != j
            assert evidence_of(rows[i], rows[j], space, nulls_equal) == set(mask)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Space, list[list[Row]], tuple[int, ...], bool]:
    columns = draw(st.integers(1, 3))
    parts = draw(st.lists(tables(columns, 7), min_size=1, max_size=3))
    dead = draw(st.sets(st.integers(0, max(0, len(parts[0]) - 1)), max_size=len(parts[0]) // 2))
    return draw(spaces(columns)), parts, tuple(sorted(dead)), draw(st.booleans())


def living(parts: list[list[Row]], dead: tuple[int, ...]) -> dict[int, Row]:
    return {
        (number << 32) + place: row
        for number, part in enumerate(parts)
        for place, row in enumerate(part)
        if number or place not in dead
    }


@settings(max_examples=examples(150), deadline=None)
@given(
    case=cases(),
    way=st.sampled_from([*WAYS]),
    runners=st.integers(1, 3),
    limit=st.one_of(st.none(), st.integers(1, 3)),
    small=st.booleans(),
)
def test_completed_evidence_is_that_of_all_pairs(
    case: tuple[Space, list[list[Row]], tuple[int, ...], bool],
    way: str,
    runners: int,
    limit: int | None,
    small: bool,
) -> None:
    space, parts, dead, nulls_equal = case
    rows = living(parts, dead)
    shown = all_evidence(rows, space, nulls_equal)
    maximal = oracle.maximal_sets(shown)
    minimal = oracle.minimal_sets_stepwise(space.atoms, shown)
    with folder() as root, pytest.MonkeyPatch.context() as patched:
        varied(patched, **WAYS[way])
        if small:
            patched.setattr(groups, "LARGE", 3)
            patched.setattr(violations, "LEAF", 1)
            patched.setattr(violations, "TILE", 2)
            # Nothing is sampled: everything is to be found.
            varied(patched, violating_rows=2, window_rows=2, sample_tile_rows=0)
        view = written(
            Path(root), [as_table(part, space.columns) for part in parts], nulls_equal, dead
        )
        schema = as_table([], space.columns).schema
        scope = Scope(InProcess(runners), view, schema, space, PREFIX)
        known = Evidence.none(space.atoms) if small else None
        found = completion.complete(scope, known, max_comparisons=limit)
        assert not [*Path(root).glob("codes-*")]
    if limit is not None:
        of = space.comparison_of
        minimal = [each for each in minimal if len({of[a] for a in each}) <= limit]
    else:
        assert sorted(bitsets.to_columns(found.evidence.masks)) == sorted(maximal)
    assert sorted(bitsets.to_columns(found.cover.minimal)) == sorted(minimal)
    assert_shown(found.evidence, rows, space, nulls_equal)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), data=st.data(), small=st.booleans())
def test_given_candidates_are_validated(
    case: tuple[Space, list[list[Row]], tuple[int, ...], bool], data: st.DataObject, small: bool
) -> None:
    space, parts, dead, nulls_equal = case
    rows = living(parts, dead)
    shown = all_evidence(rows, space, nulls_equal)
    atom = st.integers(0, space.atoms - 1)
    asked = data.draw(st.lists(st.sets(atom, max_size=4), max_size=5))
    with folder() as root, pytest.MonkeyPatch.context() as patched:
        if small:
            varied(patched, violating_rows=2)
            patched.setattr(violations, "LEAF", 1)
        tables = [as_table(part, space.columns) for part in parts]
        view = written(Path(root), tables, nulls_equal, dead)
        scope = Scope(InProcess(2), view, tables[0].schema, space, PREFIX)
        found, refuted = completion.validate(scope, bitsets.from_columns(asked, space.atoms))
    masks = [set(each) for each in bitsets.to_columns(found.masks)]
    for candidate, is_refuted in zip(asked, refuted.tolist(), strict=True):
        assert is_refuted == any(candidate <= each for each in shown)
        assert is_refuted <= any(candidate <= each for each in masks)
    assert_shown(found, rows, space, nulls_equal)


@settings(max_examples=examples(60), deadline=None)
@given(
    case=cases(), batch=st.sets(st.integers(0, 2)), runners=st.integers(1, 3), small=st.booleans()
)
def test_pairs_with_a_row_of_a_batch(
    case: tuple[Space, list[list[Row]], tuple[int, ...], bool],
    batch: set[int],
    runners: int,
    small: bool,
) -> None:
    space, parts, dead, nulls_equal = case
    rows = living(parts, dead)
    expected = {
        mask
        for mask, pairs in all_evidence(rows, space, nulls_equal).items()
        if any({i >> 32, j >> 32} & batch for i, j in pairs)
    }
    with folder() as root, pytest.MonkeyPatch.context() as patched:
        if small:
            varied(patched, coded_rows=2)
        tables = [as_table(part, space.columns) for part in parts]
        view = written(Path(root), tables, nulls_equal, dead)
        scope = Scope(InProcess(runners), view, tables[0].schema, space, PREFIX)
        segments = [segment for segment in view.segments if segment.number in batch]
        found = completion.beside(scope, segments)
    assert {frozenset(each) for each in bitsets.to_columns(found.masks)} == expected
    assert_shown(found, rows, space, nulls_equal)


def test_what_held_before_is_not_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only candidates that contain no held set are searched violations of."""
    varied(monkeypatch, **SEARCHED)
    rows: list[Row] = [(n % 7, n % 3, -n) for n in range(40)]
    space = Space("denial", 3, tuple(Comparison(c, c, ORDER) for c in range(3)))
    view = written(tmp_path, [as_table(rows, 3)], nulls_equal=True)
    scope = Scope(Searches(), view, as_table([], 3).schema, space, PREFIX)
    first = completion.complete(scope)
    assert first.rounds
    again = completion.complete(scope, known=first.evidence, validated=first.cover.minimal)
    assert again.rounds == 0
    assert (again.cover.minimal == first.cover.minimal).all()
    assert (again.evidence.masks == first.evidence.masks).all()


@pytest.mark.parametrize(
    ("way", "tasks_used"),
    [
        ("all", {"code", "inside"}),
        ("searched", {"code", "sample", "violating"}),
        ("grouped", {"code", "sample", "inside"}),
        ("boxed", {"code", "sample", "together"}),
    ],
)
def test_costs_choose_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, tasks_used: set[str]
) -> None:
    varied(monkeypatch, **WAYS[way])
    rows: list[Row] = [(n % 7, n % 5, -n % 11, n) for n in range(60)]
    space = Space("denial", 4, tuple(Comparison(c, c, ORDER) for c in range(4)))
    view = written(tmp_path, [as_table(rows, 4)], nulls_equal=True)
    runner = Searches()
    scope = Scope(runner, view, as_table([], 4).schema, space, PREFIX)
    completion.complete(scope)
    assert tasks_used <= runner.used
    assert way == "boxed" or runner.used - {"draw"} == tasks_used  # for estimates


class Searches(InProcess):
    """Samples nothing, so that there is something to search; notes the tasks that are used."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        self.used |= {task.__name__ for task, _ in calls}
        return super().run(
            [
                (task, replace(item, pairs=0, windows=0) if task is tasks.sample else item)
                for task, item in calls
            ]
        )


def test_a_space_without_comparisons_is_refused(tmp_path: Path) -> None:
    view = written(tmp_path, [as_table([(1,)], 1)], nulls_equal=True)
    scope = Scope(InProcess(), view, as_table([], 1).schema, Space("none", 1, ()), PREFIX)
    with pytest.raises(ValueError, match="'none' has nothing to compare"):
        completion.complete(scope)


@pytest.mark.slow
@pytest.mark.parametrize("way", [*WAYS])
def test_planted_rules_of_tax_records_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    table = tax.rows(3_000, seed=1)
    comparisons = [
        Comparison(c, c, EQUALITY if each.type == pa.string() else ORDER)
        for c, each in enumerate(tax.SCHEMA)
    ]
    space = Space("denial", len(comparisons), tuple(comparisons))
    view = written(tmp_path, [table.slice(0, 2_000), table.slice(2_000)], nulls_equal=True)
    varied(monkeypatch, **WAYS[way], sample_pairs_a_row=64, windows=1)
    scope = Scope(InProcess(), view, tax.SCHEMA, space, PREFIX)
    found = completion.complete(scope, max_comparisons=4)
    minimal = [set(each) for each in bitsets.to_columns(found.cover.minimal)]
    for rule in tax.planted():
        atoms = atoms_of(rule, space)
        assert any(each <= atoms for each in minimal), rule
    monkeypatch.undo()
    everything = completion.complete(scope, max_comparisons=4)
    assert bitsets.to_columns(everything.cover.minimal) == bitsets.to_columns(found.cover.minimal)


def atoms_of(rule: str, space: Space) -> set[int]:
    """The atoms of a rule of tax records."""
    weak = {"=": ("<=", ">=", "="), "<": ("<=", "!="), ">": (">=", "!="), "!=": ("!=",)}
    constraint = parse(rule)
    assert isinstance(constraint, DenialConstraint)
    found = set()
    for each in constraint.predicates:
        k = tax.SCHEMA.get_field_index(each.left[1])
        operators = space.comparisons[k].operators
        found |= {space.first[k] + operators.index(op) for op in weak[each.op] if op in operators}
    return found


@pytest.mark.parametrize("tasks", [2, 64, 4_096])
def test_bringing_rows_together_costs_no_more_than_comparing_them(tasks: int) -> None:
    """Every part brings all rows together: with many tasks there must be pairs enough in each."""
    for rows in (1_000, 100_000, 5_000_000):
        for pairs in (rows, 1_000 * rows, rows * rows // 2):
            parts = completion.parts_of(pairs, rows, tasks)
            assert 1 <= parts <= tasks
            assert (parts - 1) * rows * 128 <= pairs
    assert completion.parts_of(100_000_000_000, 1_000_000, 64) == 64


def test_a_region_of_too_many_different_pairs_is_not_compared_in_a_hurry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the time can end, the price of a region has what it takes to learn its pairs."""
    varied(monkeypatch, costs=Costs(sweep_seconds_a_row=1e-5, search_seconds_a_row=1e-5))
    space = Space("denial", 2, (Comparison(0, 0, ORDER), Comparison(1, 1, ORDER)))
    candidates = bitsets.from_columns([[0, 1, atom] for atom in (3, 4, 5)], space.atoms)

    def is_compared(shown: int, hurried: bool) -> bool:
        """With random pairs of which each different one was shown so often."""
        masks = np.full((20_000 // shown, 1), 1, np.uint64)
        sampled = Sampled(masks, np.full(len(masks), shown), 1_000_000)
        _, left = regions.choose(candidates, space, sampled, hurried)
        return not left.any()

    assert is_compared(shown=1, hurried=False)
    assert not is_compared(shown=1, hurried=True)
    assert is_compared(shown=100, hurried=True)


def test_what_a_late_round_has_found_is_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches end with the time, and what they found until then is evidence."""
    now, find = [0.0], violations.find

    def slow(*given: Any) -> Any:
        now[0] += 0.3
        return find(*given)

    varied(monkeypatch, **SEARCHED, sample_pairs_a_row=0)
    monkeypatch.setattr(limits, "clock", lambda: now[0])
    monkeypatch.setattr(violations, "find", slow)
    rows: list[Row] = [(n % 7, n % 5, -n % 11, n) for n in range(60)]
    space = Space("denial", 4, tuple(Comparison(c, c, ORDER) for c in range(4)))
    view = written(tmp_path, [as_table(rows, 4)], nulls_equal=True)
    time = Time.of(3.0)
    runner = Timed(InProcess(2), time)
    stages: list[str] = []

    def progress(stage: str, **_facts: Any) -> None:
        stages.append(stage)

    scope = Scope(runner, view, as_table([], 4).schema, space, PREFIX, progress, time)
    with pytest.raises(Late):
        completion.complete(scope)
    assert stages.count("learn") > 2  # rounds become shorter with the time
    assert now[0] < 3.6
