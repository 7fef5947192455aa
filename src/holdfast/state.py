"""A table's state between batches, and its files: keys, non-keys, evidence with witnesses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast import counting
from holdfast.counting import COUNTED_FILES, Counted, masks_of, matrix_of
from holdfast.cover.cover import Cover
from holdfast.cover.evidence import Evidence
from holdfast.feed import Columns
from holdfast.kernels import bitsets
from holdfast.kernels.evidence import WITNESSES
from holdfast.options import Options
from holdfast.snapshot import KEY, NON_KEY
from holdfast.store import Lease, Store
from holdfast.tasks.encode import layout
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View

I64 = NDArray[np.int64]


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
    indexed: tuple[int, ...]
    evidence: Evidence
    cover: Cover
    duplicates: int  # rows that repeat an earlier one
    repeated: list[list[int]]  # a few pairs of such rows
    counted: Counted | None = None  # where pairs of rows are counted
    files: dict[str, str] = field(default_factory=dict)  # of keys and evidence, once written

    @property
    def rows(self) -> int:
        """The number of living rows."""
        return sum(segment.live for segment in self.segments)

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
            "keys": self.files["keys"],
            "evidence": self.files["evidence"],
            **{name: self.files[name] for name in COUNTED_FILES if name in self.files},
        }


def load(store: Store, name: str, form: dict[str, Any], options: Options) -> Table:
    """The table that a commit stored."""
    columns = Columns.from_dict(form["columns"])
    atoms = len(columns.names)
    words = bitsets.words_for(atoms)
    keys = pa.ipc.open_file(pa.memory_map(store.file(form["keys"]))).read_all()
    masks = matrix_of(keys.column("mask"), words)
    kinds = keys.column("kind").to_numpy()
    seen = pa.ipc.open_file(pa.memory_map(store.file(form["evidence"]))).read_all()
    pairs = seen.column("witnesses").combine_chunks().flatten().to_numpy()
    evidence = Evidence(
        matrix_of(seen.column("mask"), words), pairs.reshape(-1, WITNESSES, 2).astype(np.int64)
    )
    cover = Cover(atoms, evidence.masks, masks[kinds == KEY], options.max_columns)
    files = {name: form[name] for name in ("keys", "evidence", *COUNTED_FILES) if name in form}
    counted = counting.load(store, files, atoms, options) if "agree" in files else None
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
        cover,
        form["duplicates"],
        form["repeated"],
        counted,
        files,
    )


def save(
    store: Store,
    lease: Lease,
    options: Options,
    table: Table,
    before: Table | None,
    shown: dict[int, str],
) -> Table:
    """Write what changed; ``shown`` has the text of every row that a first witness pair names."""
    files = dict(before.files) if before else {}
    same = before is not None and _same(before.cover.minimal, table.cover.minimal)
    if not same or not _same(before.evidence.masks if before else None, table.evidence.masks):
        files["keys"] = write(store, lease, "keys", _keys(table))
    if before is None or not (
        _same(before.evidence.masks, table.evidence.masks)
        and _same(before.evidence.witnesses, table.evidence.witnesses)
    ):
        files["evidence"] = write(store, lease, "evidence", _evidence(table, shown))
    if table.counted is not None:
        for name, content in counting.contents(table.counted, options):
            files[name] = write(store, lease, name, content)
    return replace(table, files=files)


def _same(one: NDArray[Any] | None, two: NDArray[Any]) -> bool:
    return one is not None and np.array_equal(one, two)


def _keys(table: Table) -> pa.Table:
    minimal, maximal = table.cover.minimal, table.evidence.masks
    kinds = np.repeat(np.array([KEY, NON_KEY], np.int8), [len(minimal), len(maximal)])
    return pa.table({"kind": kinds, "mask": masks_of(np.concatenate([minimal, maximal]))})


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


def write(store: Store, lease: Lease, kind: str, table: pa.Table) -> str:
    """Write a file of a kind; its path."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    path = lease.new_path(kind, "arrow")
    store.write(path, sink.getvalue())
    return path
