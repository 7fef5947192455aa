"""Which denial constraints matter: order rules and conditional ones, short ones, and those that
pairs of rows nearly break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model.constraints import DenialConstraint
from holdfast.model.ranking import Ranked

if TYPE_CHECKING:
    from holdfast.families.denial_constraints.reading import Denials
    from holdfast.report.snapshot import Snapshot

MOST = 500
"""So many are ranked, the first of those that are shown."""

FORMS = {"order": 1.0, "conditional": 0.8, "other": 0.6}
"""How much a form matters."""

_ELSEWHERE = {"keys": "key", "fds": "fd"}
"""Kinds that rank constraints of a form themselves."""


def ranked(snapshot: Snapshot, name: str) -> list[Ranked]:
    """The rules of a table, without keys and dependencies where those are ranked themselves."""
    table = snapshot.tables[name]
    found: Denials | None = table.found.get("dcs")
    if found is None:
        return []
    others = found.besides([form for kind, form in _ELSEWHERE.items() if kind in table.found])
    scored = [_scored(each) for each in others[:MOST] if not each.error]
    return sorted(scored, key=lambda each: -each.score)


def _scored(rule: DenialConstraint) -> Ranked:
    number = len(rule.predicates)
    form = FORMS.get(rule.form, FORMS["other"])
    score = 0.5 * form + 0.5 / max(1, number)
    what = {"order": "an order rule", "conditional": "an order rule among rows that agree"}
    reasons = [what[rule.form]] if rule.form in what else []
    reasons.append(f"{number} comparison{'' if number == 1 else 's'}")
    return Ranked(rule, round(score, 4), tuple(reasons))
