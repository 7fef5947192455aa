"""One key: who shares it, when it held, what is a key near it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.kinds import sides
from holdfast.kinds.examine import Examiner
from holdfast.kinds.sides import MinimalSets, counted_error
from holdfast.kinds.stored import KEY_RHS
from holdfast.model.constraints import Key
from holdfast.model.explanation import Nearby
from holdfast.model.options import Options
from holdfast.rules.form import Tables, columns_of, in_order
from holdfast.rules.version import Version
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.kinds.table_state import TableState
    from holdfast.rules.agreeing import AgreeingTuples
    from holdfast.rules.question import Question


class KeyExaminer(Examiner[Key]):
    """Keys."""

    kind = "keys"

    def checked(self, rule: Key, tables: Tables) -> Key:
        """Its columns are in table order."""
        return Key(rule.table, in_order(rule.columns, rule.table, columns_of(rule.table, tables)))

    def form(self, rule: Key, tables: Tables, options: Options) -> AgreeingTuples:
        """Rows that agree on it."""
        from holdfast.rules.agreeing import AgreeingTuples

        return AgreeingTuples.of(rule.table, rule.columns, None, tables[rule.table], options)

    def cells(self, rule: Key) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Rows agree on it."""
        return rule.columns, ()

    def counted_error(self, state: TableState, rule: Key) -> float | None:
        """The share of the pairs that agree on it."""
        return counted_error(state, rule.columns, None)

    def nearby(self, question: Question, version: Version, rule: Key, holds: bool) -> Nearby:  # noqa: ARG002
        """Keys with more columns, or with fewer."""
        record = version.commit.table(rule.table)
        if record.duplicates:
            repeated = count(record.duplicates, "row repeats", "rows repeat")
            return Nearby(notes=(f"no set of columns is a key: {repeated} another one",))
        known = MinimalSets(version, rule.table, KEY_RHS)
        return known.nearby(rule.columns, holds, lambda e: Key(rule.table, e), "keys")

    def source(self, version: Version, rule: Key) -> Any:
        """Minimal keys, and whether rows are repeated."""
        return sides.source(version, rule.table)

    def held(self, version: Version, rule: Key) -> bool | None:
        """Whether it contained a minimal key, and no row was repeated."""
        said = MinimalSets(version, rule.table, KEY_RHS).says(rule.columns)
        return False if said is not None and version.commit.table(rule.table).duplicates else said
