"""One key: who shares it, when it held, what is a key near it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.kinds import sides
from holdfast.kinds.examine import Examiner, Version
from holdfast.kinds.sides import MinimalSets
from holdfast.kinds.stored import KEY_RHS
from holdfast.model.constraints import Key
from holdfast.model.explanation import Nearby, Violations
from holdfast.model.options import Options
from holdfast.rules.form import Tables, columns_of, in_order
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.kinds.question import Question
    from holdfast.rules.agreeing import AgreeingTuples


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

    def violations(self, question: Question, rule: Key) -> Violations:
        """All rows that share it with another one; all but one of each group would have to go."""
        from holdfast.kinds.question import agreeing

        return agreeing(question, rule.table, rule.columns, None)

    def tested(self, question: Question, rule: Key, violations: Violations) -> int | None:
        """The pairs that agree on all but one of its columns."""
        from holdfast.evidence.counting import agreeing

        if not rule.columns:
            return violations.tested
        table, run = question.table(rule.table), question.run
        places = tuple(table.columns.names.index(each) for each in rule.columns)
        sets = tuple(tuple(p for p in places if p != left_out) for left_out in places)
        view = table.view(run.store.path, run.options)
        return sum(agreeing(run.runner, view, sets, run.destination.prefix))

    def nearby(self, question: Question, rule: Key, holds: bool) -> Nearby:
        """Keys with more columns, or with fewer."""
        record = question.commit.table(rule.table)
        if record.duplicates:
            repeated = count(record.duplicates, "row repeats", "rows repeat")
            return Nearby(notes=(f"no set of columns is a key: {repeated} another one",))
        known = MinimalSets(question.version, rule.table, KEY_RHS)
        return known.nearby(rule.columns, holds, lambda e: Key(rule.table, e), "keys")

    def source(self, version: Version, rule: Key) -> Any:
        """Minimal keys, and whether rows are repeated."""
        return sides.source(version, rule.table)

    def held(self, version: Version, rule: Key) -> bool | None:
        """Whether it contained a minimal key, and no row was repeated."""
        said = MinimalSets(version, rule.table, KEY_RHS).says(rule.columns)
        return False if said is not None and version.commit.table(rule.table).duplicates else said
