"""Foreign keys that nearly hold: few values are missing, and the score is that of a likely one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.kinds.inclusion_dependencies.foreign_keys import Facts, foreign_keys
from holdfast.kinds.inclusion_dependencies.reading import Inclusions
from holdfast.kinds.table_state import Step
from holdfast.model.constraints import Key
from holdfast.model.inclusion_dependencies import HOLDS, InclusionDependency
from holdfast.model.near import NearBounds, NearRule
from holdfast.model.ranking import Ranked
from holdfast.values.n_ary import Candidate
from holdfast.values.shared import Wanted
from holdfast.values.state import ValueState


def nearly(
    inclusions: Inclusions,
    table: str,
    bounds: NearBounds,
    keys: Mapping[str, Sequence[Key]],
    values: ValueState | None,
    score: float,
) -> list[tuple[float, NearRule]]:
    """The foreign keys of a table with at least this score that nearly hold: into keys that hold,
    or nearly do. How many rows break them is not known yet: at least as many as values miss."""
    shared = inclusions._shared if values is None else values.shared
    partial = [
        each
        for each in shared.inclusion_dependencies(1 - bounds.missing)
        if each.dependent[0].table == table and each.coverage is not None and each.coverage < 1
    ]
    near = []
    for each in foreign_keys(partial, _facts(inclusions, keys), shared):
        if each.score >= score:
            (one,), (two,) = each.sides
            distinct = shared.distinct[one]
            missing = distinct - shared.common(one, two)
            rule = InclusionDependency(each.dependent, each.referenced)
            rows = inclusions.tables[table].rows
            rule_now = NearRule(rule, table, missing, rows, values=missing, of_values=distinct)
            near.append((each.score, rule_now))
    return near


def judged(
    rule: InclusionDependency, inclusions: Inclusions, keys: Mapping[str, Sequence[Key]]
) -> Ranked:
    """One as it would be ranked if it held: by its score as a foreign key, if it is one."""
    now = inclusions.lost(rule)
    likely = foreign_keys([now], _facts(inclusions, keys), inclusions._shared)
    return Ranked(rule, max((each.score for each in likely), default=0.0))


def _facts(inclusions: Inclusions, keys: Mapping[str, Sequence[Key]]) -> dict[str, Facts]:
    """What scores look at, with further keys."""
    return {
        name: replace(of_table, keys=(*of_table.keys, *keys.get(name, ())))
        for name, of_table in inclusions.tables.items()
    }


def was_broken(rule: InclusionDependency, step: Step) -> bool:
    """Whether a batch broke one, by the values before and after."""
    before, after = step.values_before, step.values_after
    if before is None or after is None:
        return False
    if len(rule.dependent) > 1:
        return any(before.named(each).sides == rule.sides for each in _went(before, after))
    return _holds(rule, before) and not _holds(rule, after)


def _holds(rule: InclusionDependency, values: ValueState) -> bool:
    (one,), (two,) = rule.sides
    shared = values.shared
    return shared.common(one, two) == int(shared.overlaps.distinct[shared.number[one]])


def _went(before: ValueState, after: ValueState) -> list[Candidate]:
    """Those of several columns that held, and are broken."""
    held, holds = (
        {each for each, verdict in values.verdicts.items() if verdict.status == HOLDS}
        for values in (before, after)
    )
    return [each for each in held - holds if not after.is_dropped(each)]


def broken_elsewhere(step: Step) -> set[str]:
    """The tables that had only values of a table that a batch changed, and have others now."""
    before, after = step.values_before, step.values_after
    if before is None or after is None or before is after:
        return set()
    stretch = after.stretches[step.after.table.name]
    _, lost = after.shared.changes(before.shared, *stretch, Wanted())
    tables = {after.attributes[number].table for number in lost.dependent.tolist()}
    tables |= {each.table for each in _went(before, after)}
    return tables - {step.after.table.name} - step.others
