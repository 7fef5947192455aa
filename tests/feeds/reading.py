"""Reading the steps of a feed in this process, as tasks would."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from holdfast.feeds.contract import Bounds, Feed, Position, Step
from holdfast.input.change_rows import ChangeRows
from holdfast.runtime.runner import Parts

Multiset: TypeAlias = Counter[tuple[Any, ...]]

EVERYTHING = Bounds()


def fetched(changes: ChangeRows | None) -> list[pa.Table]:
    """The change rows of each part, fetched by a function that went over the wire."""
    assert changes is not None
    assert isinstance(changes.rows, Parts)
    schema = changes.rows.schema
    sent = pickle.dumps((changes.rows.fetch, changes.rows.parts))
    fetch, parts = pickle.loads(sent)  # noqa: S301  as it goes to workers
    return [pa.Table.from_batches(fetch(part), schema) for part in parts]


def read(step: Step | None) -> pa.Table:
    """The change rows of a step."""
    assert step is not None
    assert step.changes is not None
    assert isinstance(step.changes.rows, Parts)
    return pa.concat_tables([step.changes.rows.schema.empty_table(), *fetched(step.changes)])


def applied(rows: Multiset, changes: ChangeRows | None, columns: Iterable[str]) -> Multiset:
    """Rows after the changes of a step, which are added up."""
    if changes is None:
        return rows
    after: Multiset = Counter() if changes.replaces else Counter(rows)
    names = [*columns]
    for table in fetched(changes):
        for row in table.to_pylist():
            cells = tuple(row[name] for name in names)
            op = row[changes.op_column] if changes.op_column else "insert"
            after[cells] += 1 if op in ("insert", "update_postimage") else -1
    assert min(after.values(), default=0) >= 0
    return +after


def steps(feed: Feed, after: Position | None, bounds: Bounds = EVERYTHING) -> Iterable[Step]:
    """The steps to the head."""
    while step := feed.read(after, bounds):
        yield step
        assert step.position != after
        after = step.position
