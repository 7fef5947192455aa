"""Rules about the values of single columns as a kind of constraint: domains, bounds, patterns, and
columns without nulls. They follow from what is stored of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.kinds.base import Kind, Suggestions
from holdfast.kinds.columns.show import ColumnRuleList
from holdfast.model.changes import Broken, KindChanges, Superseded
from holdfast.model.column_values import Bounds, Domain, Pattern, ValueRule
from holdfast.model.constraints import Constraint, NotNull
from holdfast.model.ranking import Ranked
from holdfast.model.records import Json, from_form
from holdfast.screen.page import FEW
from holdfast.screen.text import count, plain

if TYPE_CHECKING:
    from holdfast.kinds.columns.examine import ValueExaminer
    from holdfast.kinds.columns.export import ValueExporter
    from holdfast.kinds.columns.reading import FoundRule
    from holdfast.kinds.stored import StoredTable
    from holdfast.kinds.table_state import Step
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.runtime.run import Run
    from holdfast.screen.page import Page


class ColumnRules(Kind):
    """What holds of columns one by one. It follows the data: a batch with other values is no error,
    unless somebody expects a rule."""

    name = "columns"
    field = "column_rules"
    nouns = ("rule of a column", "rules of columns")
    parts = (ColumnRuleList(),)
    classes = (Domain, Bounds, Pattern)
    gates = False
    samples = True
    how_lost = ("no longer valid", "would no longer be valid")
    how_minimal = "narrower"
    suggestions = Suggestions(0.6, by_chance=True, most=8)

    def of_table(self, stored: StoredTable) -> tuple[FoundRule, ...] | None:
        """By what is stored of its columns."""
        from holdfast.kinds.columns.reading import found

        if self.name not in stored.options["kinds"]:
            return None
        columns = stored.record.columns
        return found(stored.name, columns.names, columns.types, stored.record.facts)

    def constraint(self, table: str, form: Json) -> Constraint:
        """The rule whose fields a form has."""
        assert isinstance(form, Mapping)
        fields = {*form} & {"values", "pattern", "at_least"}
        classes: Mapping[str, Any] = {"values": Domain, "pattern": Pattern, "at_least": Bounds}
        kind = classes[fields.pop()] if fields else NotNull
        rule: Constraint = from_form(kind, form, table=table)
        return rule

    def changes(self, run: Run, step: Step) -> KindChanges:  # noqa: ARG002
        """Those that other values broke or narrowed, each with what holds in its place, and new
        ones. What nothing is left to say of is not told."""
        from holdfast.kinds.columns.reading import by_role, holds

        gained: list[Constraint] = []
        lost: list[Broken] = []
        narrower = []
        before, after = step.before.table, step.after.table
        columns = after.columns
        for name, type_, old, new in zip(
            columns.names, columns.types, before.facts, after.facts, strict=False
        ):
            were, are = (by_role(after.name, name, type_, facts) for facts in (old, new))
            for role, rule in were.items():
                now = are.get(role) or next((e for r, e in are.items() if r != "never null"), None)
                if rule == now:
                    continue
                if holds(rule, type_, new, after.rows) is False:
                    lost.append(Broken(rule, now=now if role != "never null" else None))
                elif now is not None and role != "never null":
                    narrower.append(Superseded(rule, now))
            known = [*were.values(), *(e.now for e in lost), *(e.by for e in narrower)]
            gained += [rule for rule in are.values() if rule not in known]
        return KindChanges(tuple(gained), tuple(lost), tuple(narrower))

    def rank(self, snapshot: Snapshot, table: str) -> list[Ranked]:
        """Those that say most of their column."""
        from holdfast.kinds.columns.rank import ranked

        return ranked(snapshot, table)

    def weigh(
        self, constraints: Sequence[FoundRule], snapshot: Snapshot, table: str
    ) -> list[Ranked]:
        """By what they say of their column."""
        from holdfast.kinds.columns.rank import weighed

        return weighed(constraints, snapshot, table)

    def matters(self, each: Ranked) -> bool:
        """Those that somebody would declare."""
        from holdfast.kinds.columns.rank import WORTHWHILE

        return each.score >= WORTHWHILE

    def overview(
        self,
        page: Page,
        snapshot: Snapshot,  # noqa: ARG002  ranks have what it says
        table: TableSnapshot,
        ranking: Sequence[Ranked],
    ) -> None:
        """The few that somebody would declare; which columns have nulls is said elsewhere."""
        part = ColumnRuleList()
        values = [each for each in ranking if type(each.constraint) in self.classes]
        first = [*filter(self.matters, values)][:FEW]
        heading = part.heading(len(part.listed(table)))
        page.line(heading + ("; those that matter:" if first else ""), indent=2)
        for each in first:
            page.line(self.body(each.constraint), "green", 4)
        if first:
            page.rest(len(part.listed(table)) - len(first))

    def became(self, old: Any, new: Any) -> str:
        """What is new: values, or a bound that values went beyond."""
        if isinstance(old, Domain) and isinstance(new, Domain):
            more = Domain(old.table, old.column, old.type, _others(new, old))
            if more.values:
                noun = count(len(more.values), "new value").partition(" ")[2]
                return f"{self.body(old)}; {noun} {plain(more.listed)}"
        return super().became(old, new)

    def of_rows(self, rule: ValueRule) -> bool:  # noqa: ARG002
        """Those with another value."""
        return True

    def exporter(self) -> ValueExporter:
        """Its part of every form."""
        from holdfast.kinds.columns.export import ValueExporter

        return ValueExporter(self)

    def examiner(self) -> ValueExaminer:
        """One by one."""
        from holdfast.kinds.columns.examine import ValueExaminer

        return ValueExaminer()


def _others(new: Domain, old: Domain) -> tuple[str, ...]:
    return tuple(value for value in new.values if value not in old.values)
