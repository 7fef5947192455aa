"""What look-ups find in a segment, against a comparison of every row in plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.batch_indexes import LookUp
from holdfast.model.comparisons import ORDER, Comparison, Space
from holdfast.tasks import batch_indexes as tasks
from holdfast.tasks.segments import build_indexes, chain_name, index_name, map_words
from holdfast.tasks.view import View
from tests import oracle
from tests.evidence.test_completion import PREFIX, written
from tests.flow.tables import folder
from tests.kinds.spaces import told
from tests.strategies import examples

LEAST, MOST = -(1 << 63), (1 << 63) - 1
ATOMS = {"=": (0, 1), "!=": (2,), "<=": (0,), ">=": (1,), "<": (0, 2), ">": (1, 2)}
NUMBER = st.sampled_from([0, 1, 2, 3, 0, 1, 2, 3, LEAST, MOST, None])
TEXT = st.sampled_from(["", "a", "b", None])
INEQUALITIES = ("<", "<=", ">", ">=", "!=", "=")


@st.composite
def asked(draw: st.DrawFn, texts: list[bool]) -> tuple[str, tuple[int, ...]]:
    """An index of the columns of row s, and what is asked of each."""
    columns = draw(st.permutations(range(len(texts))))
    groups = columns[: draw(st.sampled_from([0, 0, 1, 1, 2]))]
    order = columns[len(groups) :][: draw(st.sampled_from([0, 1, 1, 2, 2]))]
    op = draw(st.sampled_from(["=", "!="])) if len(groups) == 1 and order else "="
    terms = dict.fromkeys(groups, op)
    for column in order:
        terms[column] = draw(st.sampled_from(["!=", "="] if texts[column] else INEQUALITIES))
    if len(order) == 2 and draw(st.booleans()):
        del terms[order[1]]  # an index may go on where the look-up does not
    name = chain_name(sorted(groups), order, draw(st.booleans())) if order else index_name(groups)
    atoms = [3 * column + atom for column, op in terms.items() for atom in ATOMS[op]]
    return name, tuple(sorted(atoms))


@given(st.data(), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_all_rows_that_satisfy_what_is_asked_are_found(
    data: st.DataObject, nulls_equal: bool
) -> None:
    texts = data.draw(st.lists(st.sampled_from([False, False, True]), min_size=2, max_size=3))
    name, atoms = data.draw(asked(texts))
    if not atoms:
        return
    row = st.tuples(*(TEXT if text else NUMBER for text in texts))
    rows = data.draw(st.lists(row, min_size=3, max_size=12))
    batch = data.draw(st.lists(row, min_size=1, max_size=4)) + rows[:2]
    space = Space("denial", len(texts), tuple(Comparison(c, c, ORDER) for c in range(len(texts))))
    types = [pa.string() if text else pa.int64() for text in texts]
    schema = pa.schema([(f"c{c}", type_) for c, type_ in enumerate(types)])
    parts = [pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in part], schema)
             for part in (rows, batch)]  # fmt: skip
    with folder() as path:
        view = written(Path(path), parts, nulls_equal)
        held, arrived = view.segments
        words = map_words(view.path, held).whole()
        indexes = build_indexes(view.path, PREFIX, words, view.shape, [name])
        held.indexes.update(indexes)
        whole = View(path, (held, arrived), view.widths, nulls_equal)
        lookup = LookUp(name, atoms, 0.0)
        item = tasks.LookedUp(whole, (arrived,), schema, space, (lookup,), 1.0, 0, 0, 1)
        found = tasks._stretches(
            item, held, lookup, np.array(map_words(view.path, arrived).whole())
        )
        pairs = {
            (int(t), int(position))
            for t, start, stop in zip(found.t, found.start, found.stop, strict=True)
            for position in found.positions[start:stop]
        }
    nulls = "equal" if nulls_equal else "unequal"
    expected = {
        (i, j)
        for i, t in enumerate(batch)
        for j, s in enumerate(rows)
        if {*atoms} <= oracle.evidence(t, s, told(space), nulls)
    }
    assert expected <= pairs
    if not any(cell is None for row in (*rows, *batch) for cell in row):
        # Of hashes nothing is asked but whether they differ, so that nothing else is found.
        assert pairs == expected
