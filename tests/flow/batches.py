"""Generated batches: inserts, deletes by row or by key, updates, upserts, snapshots, and the rows
afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.strategies import Rows, rows_of


@dataclass(frozen=True)
class Change:
    """What to apply, as the arguments of ``Shop.apply``, the rows that should be there then, and
    how many should be said to change in which way."""

    after: Rows
    batch: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    new: Rows = field(default_factory=list)  # in a snapshot

    @property
    def arrived(self) -> Rows:
        """The rows that it brings."""
        if "snapshot" in self.batch:
            return self.new
        kinds = ("inserts", "updates", "upserts")
        return [row for kind in kinds for row in self.batch.get(kind, [])]


@st.composite
def batches(draw: st.DrawFn, columns: int, rows: Rows, snapshots: bool = True) -> Change:
    """A batch that fits the rows: by whole rows, by a row key with updates, or a snapshot."""
    change = draw(_by_key(columns, rows) if draw(st.booleans()) else _by_row(columns, rows))
    if snapshots and draw(st.integers(0, 3)) == 0:
        return draw(_as_snapshot(rows, change.after))
    return change


@st.composite
def _as_snapshot(draw: st.DrawFn, before: Rows, after: Rows) -> Change:
    """All rows as they are after a change, in any order."""
    new, gone = Counter(after) - Counter(before), Counter(before) - Counter(after)
    batch = {"snapshot": draw(st.permutations(after)), "allow_shrink": True}
    counts = {"inserted": new.total(), "deleted": gone.total()}
    counts |= {"updated": 0, "unchanged": 0, "skipped": 0}
    return Change(after, batch, counts, list(new.elements()))


@st.composite
def _by_row(draw: st.DrawFn, columns: int, rows: Rows) -> Change:
    gone = draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
    inserts = draw(rows_of(columns, 6))
    if bool(inserts and rows) and draw(st.booleans()):
        inserts[0] = draw(st.sampled_from(rows))
    after = [row for i, row in enumerate(rows) if i not in set(gone)] + inserts
    deletes = [rows[i] for i in gone]
    batch: dict[str, Any] = {"inserts": inserts, "deletes": deletes}
    absent: Rows = []
    if draw(st.booleans()):
        # Rows that are not there, or not as often as they are deleted, among those that are.
        left = Counter(row for i, row in enumerate(rows) if i not in set(gone))
        absent = [row for row in draw(rows_of(columns, 3)) if not left[row]]
        batch |= {"deletes": absent + deletes, "if_exists": True}
    counts = {"inserted": len(inserts), "deleted": len(deletes), "skipped": len(absent)}
    return Change(after, batch, {**counts, "updated": 0, "unchanged": 0})


@st.composite
def _by_key(draw: st.DrawFn, columns: int, rows: Rows) -> Change:
    """Updates and deletes by a row key, of rows that it tells apart.

    Updates keep the row key's cells and change the others: to anything, or to those of the next
    updated row, which swaps two of them.
    """
    key = draw(st.lists(st.integers(0, columns - 1), unique=True, min_size=1))
    told = Counter(tuple(row[c] for c in key) for row in rows)
    meant = [i for i, row in enumerate(rows) if told[tuple(row[c] for c in key)] == 1]
    chosen = draw(st.lists(st.sampled_from(meant), unique=True)) if meant else []
    cut = draw(st.integers(0, len(chosen)))
    updated, gone = chosen[:cut], chosen[cut:]
    if draw(st.booleans()):
        others = [rows[i] for i in updated[1:] + updated[:1]]
    else:
        others = [(draw(rows_of(columns, 1)) or [rows[i]])[0] for i in updated]
    updates = [
        tuple(rows[i][c] if c in key else other[c] for c in range(columns))
        for i, other in zip(updated, others, strict=True)
    ]
    changed = sum(rows[i] != row for i, row in zip(updated, updates, strict=True))
    inserts = draw(rows_of(columns, 4))
    after = [row for i, row in enumerate(rows) if i not in set(chosen)] + updates + inserts
    # What is updated could as well be upserted, together with rows whose row key is new.
    upserts = {}
    if draw(st.booleans()):
        keys = {tuple(row[c] for c in key): row for row in draw(rows_of(columns, 4))}
        upserts = {each: row for each, row in keys.items() if not told[each]}
        after += upserts.values()
        cut = draw(st.integers(0, len(updates)))
        upserts |= {tuple(row[c] for c in key): row for row in updates[cut:]}
        updates = updates[:cut]
    batch = {
        "inserts": inserts,
        "updates": updates,
        "upserts": list(upserts.values()),
        "deletes": [rows[i] for i in gone],
        "row_key": tuple(f"c{c}" for c in key),
        "key_only": draw(st.booleans()),
    }
    counts = {
        "inserted": len(after) - len(rows) + len(gone),
        "deleted": len(gone),
        "updated": changed,
        "unchanged": len(updated) - changed,
        "skipped": 0,
    }
    return Change(after, batch, counts)
