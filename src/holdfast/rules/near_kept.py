"""Rules of a table that nearly hold, kept under batches.

They are counted as expected rules are (:mod:`holdfast.rules.expectations`), mostly by their tuples,
and where these would be many by look-ups (:mod:`holdfast.rules.looked_up`), so a batch changes
removal and strength exactly, at the cost of its rows. A listed rule stays until
it fails the bounds twice over. A rule that held, matters (it is *watched*) and breaks is counted in
all rows once, and listed if it nearly holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.model.constraints import Constraint
from holdfast.model.near import NearBounds, NearList, NearRule
from holdfast.model.options import Options
from holdfast.rules.form import RuleForm
from holdfast.runtime.run import Run
from holdfast.runtime.sealed import seal_of
from holdfast.table import indexing
from holdfast.table.change import RowChange
from holdfast.table.state import Table
from holdfast.values.tuples import TupleCounts

_SMALL = 4 << 20
"""What is kept of near rules may take so many bytes, however small the table is."""


NearForms = Mapping[Constraint, RuleForm]
"""What rules are judged by, for those that can be counted."""


@dataclass(frozen=True)
class NearState:
    """The list of a table in one version, and what each rule is judged by."""

    near: NearList
    forms: tuple[RuleForm, ...]  # of its rules

    @staticmethod
    def of(near: NearList, forms: NearForms) -> NearState:
        """What a version lists of a table."""
        return NearState(near, tuple(forms[each.rule] for each in near.rules))

    def recounted(
        self,
        run: Run,
        counts: TupleCounts,
        tables: Mapping[str, Table],
        changes: Sequence[RowChange] | None = (),
    ) -> NearState:
        """The same rules after batches, or, if it is None that changed, counted in all rows; their
        tuples are counted already."""
        before = self.near.rules
        if changes is None:
            before = tuple(replace(each, removal=0) for each in before)
            changes = _everything((each.rule for each in before), tables)
        now = _recounted(run, self.forms, before, counts, changes, tables)
        return self._with(list(zip(now, self.forms, strict=True)))

    def still_near(self, options: Options, counts: TupleCounts) -> NearState:
        """Without the rules that fail the bounds twice over; or whose counts are lost, because two
        groups are taken for one."""
        bounds = NearBounds.of(options).twice()
        return self._with(
            [
                (rule, form)
                for rule, form in self._pairs
                if bounds.admit(rule)
                and not (counts.merged and rule.rhs is not None and rule.sums is None)
            ]
        )

    def indexed(self, run: Run, table: Table) -> Table:
        """The table with the indexes that its rules are kept by."""
        columns = [form.looked_up for form in self.forms if form.looked_up]
        return indexing.looked_up_by(run, table, [table.positions(each) for each in columns])

    def joined(self, rules: Sequence[tuple[NearRule, RuleForm]]) -> NearState:
        """With more rules at the end."""
        return self._with([*self._pairs, *rules])

    @property
    def _pairs(self) -> list[tuple[NearRule, RuleForm]]:
        return list(zip(self.near.rules, self.forms, strict=True))

    def _with(self, rules: Sequence[tuple[NearRule, RuleForm]]) -> NearState:
        near = replace(self.near, rules=tuple(rule for rule, _ in rules))
        return NearState(near, tuple(form for _, form in rules))

    def watched(self, expected: Iterable[str]) -> list[str]:
        """The rules that are watched, with expected ones, but for those that are listed or
        dismissed."""
        known = {str(each.rule) for each in self.near.rules} | {*self.near.dismissed}
        texts = dict.fromkeys((*self.near.watched, *expected))
        return [text for text in texts if text not in known]


def counted(
    run: Run, forms: NearForms, counts: TupleCounts, tables: Mapping[str, Table]
) -> tuple[TupleCounts, list[tuple[NearRule, RuleForm]]]:
    """Rules with their tuples counted in all rows of their tables, as far as these were not counted
    before; those that nearly hold."""
    counts = also_counted(run, forms, counts, tables)
    bounds = NearBounds.of(run.options)
    before = [NearRule(rule, form.table, 0, 0) for rule, form in forms.items()]
    changes = _everything(forms, tables)
    now = _recounted(run, [*forms.values()], before, counts, changes, tables)
    near = zip(now, forms.values(), strict=True)
    return counts, [(rule, form) for rule, form in near if not rule.holds and bounds.admit(rule)]


def _recounted(
    run: Run,
    forms: Sequence[RuleForm],
    before: Sequence[NearRule],
    counts: TupleCounts,
    changes: Sequence[RowChange],
    tables: Mapping[str, Table],
) -> list[NearRule]:
    """How far rows are from some rules after batches; form by form."""
    now = [*before]
    kinds: dict[type[RuleForm], None] = dict.fromkeys(type(each) for each in forms)
    for form in kinds:
        places = [place for place, each in enumerate(forms) if type(each) is form]
        old, own = [before[place] for place in places], [forms[place] for place in places]
        after = form.recounted(run, own, old, counts, changes, tables)
        for place, each in zip(places, after, strict=True):
            now[place] = each
    return now


def also_counted(
    run: Run, forms: NearForms, counts: TupleCounts, tables: Mapping[str, Table]
) -> TupleCounts:
    """Counted tuples with those of further rules."""
    return counts.also(run, [*forms.values()], {name: tables[name] for name in _tables_of(forms)})


def _everything(rules: Iterable[Constraint], tables: Mapping[str, Table]) -> list[RowChange]:
    """A table is a batch that brought all its rows."""
    return [RowChange(tables[n], tables[n], tables[n].segments) for n in _tables_of(rules)]


def _tables_of(rules: Iterable[Constraint]) -> list[str]:
    """The tables that rules are about."""
    return list(dict.fromkeys(name for rule in rules for name in rule.tables))


def affordable(
    near: Sequence[NearRule], forms: NearForms, table: Table, tables: Mapping[str, Table]
) -> list[NearRule]:
    """Some rules of a table without those whose counted tuples would take more than a quarter of
    what its rows take, together with those of the rules before them."""
    files = [file for segment in table.segments for file in segment.files]
    room = max(_SMALL, sum(seal.size for file in files if (seal := seal_of(file))) // 4)
    kept = []
    for each in near:
        size = forms[each.rule].near_bytes(each, tables)
        if size <= room:
            room -= size
            kept.append(each)
    return kept
