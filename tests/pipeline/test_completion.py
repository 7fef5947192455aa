"""Evidence completed without comparing all pairs equals that of all pairs, in plain Python."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cover.evidence import Evidence
from holdfast.evidence import completion
from holdfast.evidence.completion import Scope, Thresholds
from holdfast.kernels import bitsets, groups, violations
from holdfast.model.comparisons import EQUALITY, ORDER, Comparison, Space
from holdfast.sample import tax
from holdfast.tasks import completion as tasks
from holdfast.tasks import encode
from holdfast.tasks.runner import InProcess
from holdfast.tasks.segments import Segment, unique, with_dead, write_words
from holdfast.tasks.view import View
from tests import oracle
from tests.kernels.test_violations import Row, evidence_of, spaces, tables
from tests.pipeline.tables import folder
from tests.strategies import examples

PREFIX = "*-run-"

SEARCHED = Thresholds(all_pairs=-1, pairs_a_second=1e-9, shown=2)
GROUPED = Thresholds(all_pairs=-1, search_seconds_a_row=1e9)
MIXED = Thresholds(all_pairs=-1, pairs_a_second=1e3, search_seconds_a_row=1e-3, share_pairs=3)
WAYS = {"all": Thresholds(), "searched": SEARCHED, "grouped": GROUPED, "mixed": MIXED}


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


def all_evidence(rows: dict[int, Row], space: Space, nulls_equal: bool) -> dict[frozenset[int], set[tuple[int, int]]]:
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
        if small:
            patched.setattr(groups, "LARGE", 3)
            patched.setattr(tasks, "MET", 2)
            patched.setattr(violations, "LEAF", 1)
            patched.setattr(tasks, "WINDOW", 2)
            patched.setattr(tasks, "SIDE", 0)  # nothing is sampled: everything is to be found
        view = written(
            Path(root), [as_table(part, space.columns) for part in parts], nulls_equal, dead
        )
        schema = as_table([], space.columns).schema
        scope = Scope(InProcess(runners), view, schema, space, PREFIX, thresholds=WAYS[way])
        known = Evidence.none(space.atoms) if small else None
        found = completion.complete(scope, known, max_comparisons=limit)
        assert not [*Path(root).glob("codes-*")]
    if limit is not None:
        touched = [{space.comparison_of[a] for a in each} for each in minimal]
        trivial = [len(each) > 2 * limit for each in minimal]
        minimal = [
            each
            for each, some, long in zip(minimal, touched, trivial, strict=True)
            if len(some) <= limit and not long
        ]
    else:
        assert sorted(bitsets.to_columns(found.evidence.masks)) == sorted(maximal)
    assert sorted(bitsets.to_columns(found.minimal)) == sorted(minimal)
    assert_shown(found.evidence, rows, space, nulls_equal)
