"""Keys: sets of columns on which no two rows agree (SWAN's minimal uniques)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.base import Kind, Suggestions
from holdfast.kinds.keys.show import KeyList, NonKeyList, column_names, nulls_of
from holdfast.model.changes import KindChanges
from holdfast.model.comparisons import AGREEMENTS, agreements
from holdfast.model.constraints import Key
from holdfast.model.limits import Limits
from holdfast.model.ranking import Ranked, broke
from holdfast.model.versions import KindDiff
from holdfast.screen.page import FEW

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.evidence.pairs import Need
    from holdfast.kinds.keys.examine import KeyExaminer
    from holdfast.kinds.keys.export import KeyExporter
    from holdfast.kinds.keys.reading import FoundKeys
    from holdfast.kinds.stored import StoredTable
    from holdfast.kinds.table_state import Step, TableState
    from holdfast.model.options import Options
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.rules.form import Tables
    from holdfast.rules.looked_up import LookedUpGroups
    from holdfast.runtime.run import Run
    from holdfast.screen.page import Page
    from holdfast.table.state import Table


class Keys(Kind):
    """Minimal keys, and maximal non-keys beside them: known wherever pairs of rows are compared."""

    name = "keys"
    field = "keys"
    nouns = ("key", "keys")
    how_broken = "two rows agree on it"
    pairs = True
    needs_distinct_rows = True
    optional = True
    parts = (KeyList(), NonKeyList())
    classes = (Key,)
    role = "key"
    compares_rows = True
    sharing = "share it"
    # The grain alone: one of many columns that are no identifiers is not meant.
    suggestions = Suggestions(0.4)

    def of_table(self, stored: StoredTable) -> FoundKeys | None:
        """The keys of the distinct rows, and the non-keys."""
        from holdfast.kinds.keys.reading import stored_keys

        return stored_keys(stored) if AGREEMENTS in stored.record.evidence else None

    def within(self, sets: pa.Table, table: TableSnapshot) -> FoundKeys:
        """The keys."""
        from holdfast.kinds.keys.reading import FoundKeys, keys_of

        return FoundKeys(*keys_of(sets, table.name, list(table.columns)))

    def count(self, known: TableState) -> int | None:
        """The keys of the distinct rows."""
        pairs = known.evidence.get(AGREEMENTS)
        return None if pairs is None else len(pairs.covers.keys.minimal)

    def needs(self, run: Run, table: Table) -> Need:
        """No two rows may agree."""
        from holdfast.cover.dependencies import KEY
        from holdfast.evidence.pairs import Need

        space = agreements(len(table.columns.names))
        return Need(space, (KEY,), Limits.both(run.options.max_columns))

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """Those that came and went. Where rows are repeated there is none, whatever the distinct
        rows have: the first repeated row breaks all, and the last one that goes brings all back."""
        from holdfast.cover.dependencies import KEY
        from holdfast.kernels import bitsets
        from holdfast.kinds.sets import SetChanges, changes_of_kind

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

        return changes_of_kind(run, step, AGREEMENTS, [sets], key, counts)

    def exporter(self) -> KeyExporter:
        """Its part of every form."""
        from holdfast.kinds.keys.export import KeyExporter

        return KeyExporter(self)

    def examiner(self) -> KeyExaminer:
        """One by one, whether or not they are looked for."""
        from holdfast.kinds.keys.examine import KeyExaminer

        return KeyExaminer()

    def near_form(self, rule: Key, tables: Tables, options: Options) -> LookedUpGroups | None:
        """Groups of rows that agree."""
        from holdfast.rules.looked_up import LookedUpGroups

        form = self.examiner().form(rule, tables, options)
        return LookedUpGroups.of_form(form) if rule.columns else None

    def broke(self, rule: Key, step: Step) -> bool:
        """By the minimal sets before and after."""
        from holdfast.kinds.sides import was_broken

        return was_broken(rule, step)

    def rank(self, snapshot: Snapshot, table: str) -> list[Ranked]:
        """Those that somebody would declare first."""
        from holdfast.kinds.keys.rank import ranked

        return ranked(snapshot, table)

    def judged(self, constraint: Key, snapshot: Snapshot, table: str) -> Ranked:
        """How likely somebody would declare one that does not hold."""
        from holdfast.kinds.keys.rank import judged

        return judged(constraint, snapshot, table)

    def diff(self, before: Snapshot, after: Snapshot, table: str) -> KindDiff:
        """Keys that hold in one version alone."""
        old, new = before.tables[table], after.tables[table]
        return KindDiff(_more(new, old), _more(old, new))

    def overview(
        self, page: Page, snapshot: Snapshot, table: TableSnapshot, ranking: Sequence[Ranked]
    ) -> None:
        """Those that somebody would declare."""
        if not ranking:
            super().overview(page, snapshot, table, ranking)
            return
        part = KeyList()
        page.line(part.heading(len(table.keys)) + part.limited(table, snapshot.options), indent=2)
        first = [each for each in ranking if not each.implied_by][:FEW]
        for each in first:
            assert isinstance(each.constraint, Key)
            nulls = nulls_of(each.constraint, table)
            page.line(self.body(each.constraint) + nulls + broke(each), "green", 4)
        page.rest(len(table.keys) - len(first))

    def body(self, constraint: Key) -> str:
        """Its columns alone: the heading says that it is a key."""
        return column_names(constraint)


def _more(one: TableSnapshot, two: TableSnapshot) -> tuple[Key, ...]:
    """The keys that only the first version of a table has; of its distinct rows, where both
    versions have repeated ones."""
    if one.duplicates and not two.duplicates:
        return ()
    known = set(two.keys) if bool(one.duplicates) == bool(two.duplicates) else set()
    return tuple(key for key in one.keys if key not in known)
