"""Keys: sets of columns on which no two rows agree (SWAN's minimal uniques)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.model.changes import KindChanges, KindDiff
from holdfast.model.comparisons import AGREEMENTS, agreements
from holdfast.model.constraints import Key
from holdfast.model.limits import Limits

if TYPE_CHECKING:
    from holdfast.evidence.pairs import Need
    from holdfast.families.known import Step
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.store.run import Run
    from holdfast.table.state import Table


class Keys:
    """Minimal keys, and maximal non-keys beside them."""

    name = "keys"
    field = "keys"
    nouns = ("key", "keys")
    how_broken = "two rows agree on it"

    def needs(self, run: Run, table: Table) -> Need:
        """No two rows may agree."""
        from holdfast.cover.dependencies import KEY
        from holdfast.evidence.pairs import Need

        space = agreements(len(table.columns.names))
        return Need(space, (KEY,), Limits.both(run.options.max_columns))

    def constraint(self, table: str, form: dict[str, Any]) -> Key:
        """The key of a JSON form."""
        return Key.from_dict(table, form)

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """Those that came and went. Where rows are repeated there is none, whatever the distinct
        rows have: the first repeated row breaks all, and the last one that goes brings all back."""
        from holdfast.cover.dependencies import KEY
        from holdfast.families.sets import SetChanges, found_in
        from holdfast.kernels import bitsets

        pairs = step.evidence(AGREEMENTS)
        if pairs is None:
            return None
        before, after = step.before.table, step.after.table
        covers = pairs[0].covers.keys, pairs[1].covers.keys
        sets = SetChanges(KEY, *covers)
        repeated = after.repeated[0] if after.repeated else None
        if after.duplicates and not before.duplicates:
            sets = sets.all_lost(repeated)
        elif before.duplicates and not after.duplicates:
            sets = sets.all_gained()
        kept = int(bitsets.is_member(covers[0].evidence, covers[1].evidence).sum())
        counts = {
            "non_keys_gained": len(covers[1].evidence) - kept,
            "non_keys_lost": len(covers[0].evidence) - kept,
        }

        names = before.columns.names

        def key(atoms: tuple[int, ...], _rhs: int, error: float | None) -> Key:
            return Key(before.name, tuple(names[c] for c in atoms), error)

        return found_in(run, step, AGREEMENTS, [sets], key, counts)

    def diff(self, before: Snapshot, after: Snapshot, table: str) -> KindDiff:
        """Keys that hold in one version alone."""
        old, new = before.tables[table], after.tables[table]
        return KindDiff(_more(new, old), _more(old, new))


def _more(one: TableSnapshot, two: TableSnapshot) -> tuple[Key, ...]:
    """The keys that only the first version of a table has; of its distinct rows, where both
    versions have repeated ones."""
    if one.duplicates and not two.duplicates:
        return ()
    known = set(two.keys) if bool(one.duplicates) == bool(two.duplicates) else set()
    return tuple(key for key in one.keys if key not in known)
