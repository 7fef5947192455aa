"""A table's state between batches, and its files: keys, non-keys, evidence with witnesses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.cover.cover import Cover
from holdfast.cover.dependencies import KEY as KEY_SIDE
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence import counted as counting
from holdfast.evidence.counted import Counted
from holdfast.evidence.strategy import COUNTED, WITNESSED
from holdfast.input.row_input import Columns
from holdfast.kernels import bitsets
from holdfast.kernels.evidence import WITNESSES
from holdfast.model.limits import Limits
from holdfast.model.options import Options
from holdfast.store import Lease, Store
from holdfast.store.codecs import KEY, NON_KEY, masks_of, matrix_of, stored, write
from holdfast.tasks.encode import layout
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View

I64 = NDArray[np.int64]

FILES = ("keys", "cover", "evidence", "agree", "fds", "recount")
"""The kinds of files that a table has beside its segments; the first three always."""


@dataclass(frozen=True)
class Table:
    """Everything that is known of one table in one version."""

    name: str
    columns: Columns
    source: dict[str, Any]
    segments: tuple[Segment, ...]
    next_number: int
    distinct: list[float]  # estimated distinct values per column
    estimated_at: int  # the number of rows when they were estimated
    indexed: tuple[str, ...]  # the names of its indexes, apart from that of whole rows
    evidence: Evidence
    covers: Covers
    duplicates: int  # rows that repeat an earlier one
    repeated: list[list[int]]  # a few pairs of such rows
    limits: Limits = field(default_factory=Limits)  # up to which it is complete, and kept
    choice: dict[str, Any] = field(default_factory=lambda: {"way": None})  # see ways.Choice
    counted: Counted | None = None  # where pairs of rows are counted
    files: dict[str, str] = field(default_factory=dict)  # by kind (FILES), once written

    @property
    def way(self) -> str | None:
        """How functional dependencies are known; None: they are not looked for."""
        return self.choice["way"]  # type: ignore[no-any-return]

    @property
    def rows(self) -> int:
        """The number of living rows."""
        return sum(segment.live for segment in self.segments)

    @property
    def sides(self) -> tuple[int, ...]:
        """The right sides whose evidence is witnessed."""
        columns = range(len(self.columns.names)) if self.way == WITNESSED else ()
        return (KEY_SIDE, *columns)

    def view(
        self, root: str, options: Options, segments: tuple[Segment, ...] | None = None
    ) -> View:
        """Some segments (by default all) as tasks see them."""
        chosen = self.segments if segments is None else segments
        return View(root, chosen, layout(self.columns.schema).widths, options.nulls == "equal")

    @property
    def witness_ids(self) -> I64:
        """Every row that something in the state refers to."""
        return np.unique(np.concatenate([self.evidence.ids, np.ravel(self.repeated).astype(int)]))

    def renumbered(self, old: I64, new: I64) -> Table:
        """The same state after rows moved."""
        at = dict(zip(old.tolist(), new.tolist(), strict=True))
        repeated = [[at.get(id_, id_) for id_ in pair] for pair in self.repeated]
        return replace(self, evidence=self.evidence.renumbered(old, new), repeated=repeated)

    def to_dict(self) -> dict[str, Any]:
        """The form that a commit stores."""
        return {
            "columns": self.columns.to_dict(),
            "source": self.source,
            "rows": self.rows,
            "segments": [segment.to_dict() for segment in self.segments],
            "next_number": self.next_number,
            "distinct": self.distinct,
            "estimated_at": self.estimated_at,
            "indexed": list(self.indexed),
            "duplicates": self.duplicates,
            "repeated": self.repeated,
            "evidence": self.choice,
            "limits": self.limits.to_dict(),
            "files": self.files,
        }


def load(store: Store, name: str, form: dict[str, Any]) -> Table:
    """The table that a commit stored."""
    columns = Columns.from_dict(form["columns"])
    atoms = len(columns.names)
    words = bitsets.words_for(atoms)
    files = dict(form["files"])
    keys = stored(store, files["keys"])
    masks = matrix_of(keys.column("mask"), words)
    minimal = {KEY_SIDE: masks[keys.column("kind").to_numpy() == KEY]}
    seen = stored(store, files["evidence"])
    pairs = seen.column("witnesses").combine_chunks().flatten().to_numpy()
    evidence = Evidence(
        matrix_of(seen.column("mask"), words), pairs.reshape(-1, WITNESSES, 2).astype(np.int64)
    )
    counted = None
    if form["evidence"]["way"] is not None:
        sides = list(range(atoms))
        minimal |= counting.by_side(stored(store, files["fds"]), sides, words)
    if form["evidence"]["way"] == COUNTED:
        counted = counting.load(store, files["agree"], atoms)
    kept = stored(store, files["cover"])
    masks = matrix_of(kept.column("mask"), words)
    rights = matrix_of(kept.column("maximal_for"), bitsets.words_for(atoms + 1))
    limits = Limits.from_dict(form["limits"])
    covers = Covers.restored(atoms, masks, rights, minimal, limits)
    return Table(
        name,
        columns,
        form["source"],
        tuple(Segment.from_dict(each) for each in form["segments"]),
        form["next_number"],
        form["distinct"],
        form["estimated_at"],
        tuple(form["indexed"]),
        evidence,
        covers,
        form["duplicates"],
        form["repeated"],
        limits,
        form["evidence"],
        counted,
        files,
    )


def shown(store: Store, table: Table) -> dict[int, str]:
    """The text of the rows that a table's non-keys were last shown with, by id."""
    kept = stored(store, table.files["evidence"])
    text: dict[int, str] = {}
    for side, name in enumerate(("one", "two")):
        rows = zip(
            table.evidence.witnesses[:, 0, side].tolist(),
            kept.column(name).to_pylist(),
            strict=True,
        )
        text.update((id_, each) for id_, each in rows if each is not None)
    return text


def save(
    store: Store,
    lease: Lease,
    options: Options,
    table: Table,
    before: Table | None,
    shown: dict[int, str],
) -> Table:
    """Write what changed; ``shown`` has the text of every row that a non-key's first pair names."""
    files = dict(before.files) if before else {}
    old, new = before.covers if before else None, table.covers
    if old is None or not _same_cover(old.keys, new.keys):
        files["keys"] = write(store, lease, "keys", _keys(new.keys))
    if old is None or not all(map(_same, old.parts, new.parts)):
        files["cover"] = write(store, lease, "cover", _cover(new))
    if before is None or not same_evidence(before, table):
        files["evidence"] = write(store, lease, "evidence", _evidence(table, shown))
    for name in ("agree", "recount"):
        files.pop(name, None)
    contents: dict[str, pa.Table] = {}
    if table.counted is not None:
        contents.update(counting.contents(table.counted))
    if table.way is None:
        files.pop("fds", None)
    elif options.max_error is not None or old is None or not _same_dependencies(old, new):
        sets = table.counted.sets if table.counted else None
        contents["fds"] = counting.dependencies(new, sets, options)
    for name, content in contents.items():
        files[name] = write(store, lease, name, content)
    return replace(table, files=files)


def same_evidence(one: Table, two: Table) -> bool:
    """Whether two versions of a table have the same evidence with the same witnesses."""
    return (
        one.way == two.way
        and _same(one.evidence.masks, two.evidence.masks)
        and _same(one.evidence.witnesses, two.evidence.witnesses)
    )


def _same_dependencies(one: Covers, two: Covers) -> bool:
    return one.columns == two.columns and all(
        _same(one.by_side[side].minimal, two.by_side[side].minimal) for side in two.columns
    )


def _same_cover(one: Cover, two: Cover) -> bool:
    return _same(one.minimal, two.minimal) and _same(one.evidence, two.evidence)


def _same(one: NDArray[Any], two: NDArray[Any]) -> bool:
    return np.array_equal(one, two)


def _keys(cover: Cover) -> pa.Table:
    minimal, maximal = cover.minimal, cover.evidence
    kinds = np.repeat(np.array([KEY, NON_KEY], np.int8), [len(minimal), len(maximal)])
    return pa.table({"kind": kinds, "mask": masks_of(np.concatenate([minimal, maximal]))})


def _cover(covers: Covers) -> pa.Table:
    masks, rights = covers.parts
    return pa.table({"mask": masks_of(masks), "maximal_for": masks_of(rights)})


def _evidence(table: Table, shown: dict[int, str]) -> pa.Table:
    evidence = table.evidence
    pairs = pa.array(evidence.witnesses.reshape(-1, 2 * WITNESSES).tolist(), PAIRS)
    text = [
        pa.array([shown.get(int(id_)) for id_ in evidence.witnesses[:, 0, side]], pa.string())
        for side in (0, 1)
    ]
    return pa.table(
        {
            "mask": masks_of(evidence.masks),
            "witnesses": pairs,
            "one": text[0].dictionary_encode(),
            "two": text[1].dictionary_encode(),
        }
    )


PAIRS = pa.list_(pa.int64())
