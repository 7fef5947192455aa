"""What a batch changed, in words that people read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.dependencies import Covers
from holdfast.families.inclusion_dependencies import clusters as inclusion_clusters
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.families.inclusion_dependencies.foreign_keys import Shared
from holdfast.flow.known import Known
from holdfast.kernels import bitsets
from holdfast.model.changes import Changes, Lost
from holdfast.model.constraints import FunctionalDependency, InclusionDependency, Key, Row
from holdfast.model.options import Options
from holdfast.store.run import Run
from holdfast.table.batch import Batch, BatchIntake
from holdfast.table.witnesses import rows_as_text

U64 = NDArray[np.uint64]

_SHOWN_LOST = 100
"""Lost keys whose witness rows a commit keeps; the rest are named without rows."""


def changes_of(
    run: Run,
    before: Known,
    after: Known,
    batch: Batch,
    intake: BatchIntake,
    version: int,
    dry_run: bool,
) -> Changes:
    rows = before.table, after.table
    name = before.table.name
    facts: dict[str, Any] = {
        "table": rows[0].name,
        "version": version,
        "batch_id": batch.batch_id,
        "applied": not dry_run,
        "inserted": intake.inserted,
        "deleted": intake.deleted,
        "updated": intake.updated,
        "rows": rows[1].rows,
        "duplicates": rows[1].duplicates,
        "duplicates_before": rows[0].duplicates,
        "seconds": run.seconds,
    }
    if before.pairs is None or after.pairs is None:
        return Changes(**facts, gained=(), lost=(), non_keys_gained=0, non_keys_lost=0)
    evidence = after.pairs.evidence
    covers = before.pairs.covers, after.pairs.covers
    old, new = covers[0].keys.minimal, covers[1].keys.minimal
    lost = old[~bitsets.is_member(old, new)]
    gained = new[~bitsets.is_member(new, old)]
    # Where rows are repeated no set of columns is a key, whatever the distinct rows have.
    first_repeated = rows[1].duplicates > 0 and not rows[0].duplicates
    if first_repeated:
        lost, gained = old, new[:0]
    elif rows[0].duplicates and not rows[1].duplicates:
        lost, gained = old[:0], new
    names = rows[0].columns.names
    ends = [(mask, evidence.against(mask)) for mask in lost]
    shown = [at for _, at in ends if at >= 0][:_SHOWN_LOST]
    pairs = evidence.witnesses[shown][:, 0] if shown else np.empty((0, 2), np.int64)
    twice = rows[1].repeated[0] if rows[1].duplicates > rows[0].duplicates else []
    ids = np.concatenate([np.ravel(pairs), np.array(twice, np.int64)])
    text = rows_as_text(run.store.path, rows[1].segments, names, ids)
    told = []
    left = _SHOWN_LOST
    for mask, at in ends:
        key = Key(name, names_of(mask, names))
        if at < 0 and first_repeated:
            told.append(Lost(key, _rows(twice, text) if left > 0 else None, duplicated=True))
            left -= 1
        elif at < 0:
            # It holds, but not as a minimal one: a gained key lies inside it, unless it is longer
            # than what there was time for.
            smaller = gained[((gained & ~mask) == 0).all(axis=1)]
            instead = Key(name, names_of(smaller[0], names)) if len(smaller) else None
            told.append(Lost(key, replaced_by=instead, unchecked=instead is None))
        else:
            pair = evidence.witnesses[at, 0]
            told.append(Lost(key, _rows(pair, text) if left > 0 else None))
            left -= 1
    non_keys = covers[0].keys.evidence, covers[1].keys.evidence
    kept = bitsets.is_member(*non_keys).sum()
    return Changes(
        **facts,
        gained=tuple(Key(name, names_of(mask, names)) for mask in gained),
        lost=tuple(told),
        non_keys_gained=int(len(non_keys[1]) - kept),
        non_keys_lost=int(len(non_keys[0]) - kept),
        duplicated=tuple(json.loads(text[id_]) for id_ in twice[:1]),
        **_dependency_changes(name, *covers, names),
    )


def _dependency_changes(
    table: str, held: Covers, holds: Covers, names: tuple[str, ...]
) -> dict[str, Any]:
    """The functional dependencies that came and went: how many, and the shortest of them."""
    if not held.columns or not holds.columns:
        return {}
    sides: dict[str, list[FunctionalDependency]] = {"gained": [], "lost": []}
    counts = {"gained": 0, "lost": 0}
    for side, right in enumerate(names):
        old, new = held.by_side.get(side), holds.by_side.get(side)
        if old is None or new is None or old.minimal is new.minimal:
            continue
        for what, mine, others in (("gained", new, old), ("lost", old, new)):
            masks = mine.minimal[~bitsets.is_member(mine.minimal, others.minimal)]
            counts[what] += len(masks)
            some = masks[:_SHOWN_LOST]
            sides[what] += [
                FunctionalDependency(table, names_of(mask, names), right) for mask in some
            ]
    told: dict[str, Any] = {f"fds_{what}": count for what, count in counts.items()}
    for what, found in sides.items():
        shortest = sorted(found, key=lambda each: len(each.lhs))[:_SHOWN_LOST]
        told[f"dependencies_{what}"] = tuple(shortest)
    return told


def inclusion_changes(
    before: Inclusion | None, after: Inclusion | None, options: Options
) -> dict[str, Any]:
    """The inclusion dependencies that came, and those that went with what is left of them."""
    if before is None or after is None or before is after:
        return {}
    lists: list[dict[Any, InclusionDependency]] = [
        {each.sides: each for each in inclusion_clusters.dependencies(values, options)}
        for values in (before, after)
    ]
    old, new = lists
    shared = Shared(after.attributes, after.families, after.overlaps)
    return {
        "inclusions_gained": tuple(each for sides, each in new.items() if sides not in old),
        "inclusions_lost": tuple(
            shared.lost(each) for sides, each in old.items() if sides not in new
        ),
    }


def _rows(pair: Iterable[int], text: dict[int, str]) -> tuple[Row, Row]:
    one, two = (json.loads(text[int(id_)]) for id_ in pair)
    return one, two


def names_of(mask: U64, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(names[c] for c in bitsets.to_columns(mask[None, :])[0])
