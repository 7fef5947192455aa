"""Rules of a table that nearly hold, kept under batches.

Their tuples are counted as those of expected rules are (:mod:`holdfast.rules.tuples`), so a batch
changes removal and strength exactly, at the cost of its rows. A listed rule stays until it fails
the bounds twice over. A rule that held, matters (it is *watched*) and breaks is counted in all rows
once, and listed if it nearly holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.cover.dependencies import KEY
from holdfast.evidence.pairs import PairEvidence
from holdfast.kernels import bitsets
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Constraint
from holdfast.model.grammar import parse
from holdfast.model.near import NearBounds, NearList, NearRule, has_suspects, sides_of
from holdfast.model.options import Options
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.tuples import TupleCounts
from holdfast.runtime.run import Run
from holdfast.runtime.sealed import seal_of
from holdfast.table.state import Table

_ENTRY_BYTES = 28
"""What a counted tuple takes in its file."""

_SMALL = 4 << 20
"""Counted tuples may take so many bytes, however small the table is."""


@dataclass(frozen=True)
class NearState:
    """The list of a table in one version, and what each rule is judged by."""

    near: NearList
    forms: tuple[AgreeingTuples, ...]  # of its rules

    @staticmethod
    def of(near: NearList, table: Table, options: Options) -> NearState:
        """What a version lists of a table."""
        forms = tuple(form_of(each.rule, table, options) for each in near.rules)
        return NearState(near, forms)

    def recounted(self, counts: TupleCounts, table: Table) -> NearState:
        """The same rules as the counted tuples now have them."""
        rules = zip(self.near.rules, self.forms, strict=True)
        return self._with([(form.near(old.rule, counts, table), form) for old, form in rules])

    def still_near(self, options: Options, counts: TupleCounts) -> NearState:
        """Without the rules that fail the bounds twice over; or whose counts are lost, because two
        groups are taken for one."""
        bounds = NearBounds.of(options).twice()
        return self._with(
            [
                (rule, form)
                for rule, form in zip(self.near.rules, self.forms, strict=True)
                if bounds.admit(rule) and not (counts.merged and rule.rhs is not None)
            ]
        )

    def joined(self, rules: Sequence[tuple[NearRule, AgreeingTuples]]) -> NearState:
        """With more rules at the end."""
        return self._with([*zip(self.near.rules, self.forms, strict=True), *rules])

    def _with(self, rules: Sequence[tuple[NearRule, AgreeingTuples]]) -> NearState:
        near = replace(self.near, rules=tuple(rule for rule, _ in rules))
        return NearState(near, tuple(form for _, form in rules))

    def watched(self, expected: Iterable[str]) -> list[Constraint]:
        """The rules that are watched, with expected ones, but for those that are listed or
        dismissed."""
        known = {str(each.rule) for each in self.near.rules} | {*self.near.dismissed}
        texts = dict.fromkeys((*self.near.watched, *expected))
        rules = [parse(text) for text in texts if text not in known]
        return [rule for rule in rules if has_suspects(rule) and sides_of(rule)[0]]


def form_of(rule: Constraint, table: Table, options: Options) -> AgreeingTuples:
    """What a key or a dependency is judged by."""
    lhs, rhs = sides_of(rule)
    name = next(iter(rhs), None)
    return AgreeingTuples.of(rule.tables[0], lhs, name, table.columns, options).grouped()


def holds(rule: Constraint, table: Table, evidence: Mapping[str, PairEvidence]) -> bool:
    """Whether a key or a dependency holds in a table, as far as its evidence tells."""
    lhs, rhs = sides_of(rule)
    names, known = table.columns.names, evidence.get(AGREEMENTS)
    number = names.index(rhs[0]) if rhs else KEY
    if known is None or number not in known.covers.by_rhs or (not rhs and table.duplicates):
        return False
    cover = known.covers.by_rhs[number]
    mask = bitsets.from_columns([[names.index(name) for name in lhs]], cover.atoms)
    return bool(bitsets.any_subset(mask, cover.minimal)[0])


def counted(
    run: Run, rules: Iterable[Constraint], counts: TupleCounts, table: Table
) -> tuple[TupleCounts, list[tuple[NearRule, AgreeingTuples]]]:
    """Rules with their tuples counted in all rows, as far as these were not counted before; those
    that nearly hold."""
    forms = [(rule, form_of(rule, table, run.options)) for rule in rules]
    counts = counts.also(run, [form for _, form in forms], {table.name: table})
    bounds = NearBounds.of(run.options)
    near = [(form.near(rule, counts, table), form) for rule, form in forms]
    return counts, [(rule, form) for rule, form in near if not rule.holds and bounds.admit(rule)]


def affordable(near: Sequence[NearRule], table: Table) -> list[NearRule]:
    """Some rules without those whose counted tuples would take more than a quarter of what the rows
    take, together with those of the rules before them."""
    files = [file for segment in table.segments for file in segment.files]
    room = max(_SMALL, sum(seal.size for file in files if (seal := seal_of(file))) // 4)
    kept = []
    for each in near:
        distinct = dict(zip(table.columns.names, table.distinct, strict=False))
        sizes = [distinct.get(name, each.of_rows) for name in each.lhs]
        tuples = each.of_rows if each.rhs is None else int(min(math.prod(sizes), each.of_rows))
        if each.rhs is not None:
            tuples = 2 * tuples + each.removal + int(distinct.get(each.rhs, each.of_rows))
        if tuples * _ENTRY_BYTES <= room:
            room -= tuples * _ENTRY_BYTES
            kept.append(each)
    return kept
