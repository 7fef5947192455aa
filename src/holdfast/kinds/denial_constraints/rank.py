"""Which denial constraints matter: those that pairs of rows try and that chance does not explain,
order rules and conditional ones and short ones first; and a cover of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.denial_constraints.implied import covered
from holdfast.kinds.denial_constraints.show import never_both
from holdfast.kinds.denial_constraints.tested import Tested, TryingPairs, known_pairs
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.ranking import Ranked, behind
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.kinds.denial_constraints.reading import Denials
    from holdfast.report.snapshot import Snapshot, TableSnapshot

MOST = 2_000
"""So many are ranked, the first of those that are shown."""

KNOWN = 500
"""So many keys and dependencies are looked at, the shortest, for what follows from them."""

WORTHWHILE = 0.65
"""The score from which on one is shown among those that matter."""

FORMS = {"order": 1.0, "conditional": 0.9, "one row": 0.9, "other": 0.4}
"""How much a form matters; one row: it compares cells of single rows."""

WEIGHTS = {"form": 0.5, "succinctness": 0.25, "strength": 0.25}

_WORDS = {
    "order": "an order rule",
    "conditional": "an order rule among rows that agree",
    "one row": "about single rows",
}

_UNKNOWN = 0.5
"""The strength where pairs are neither counted nor drawn."""

_ELSEWHERE = {"keys": "key", "fds": "fd"}
"""Kinds that rank constraints of a form themselves."""


def ranked(snapshot: Snapshot, name: str) -> list[Ranked]:
    """The rules of a table, without keys and dependencies where those are ranked themselves."""
    table = snapshot.tables[name]
    denials: Denials | None = table.found.get("dcs")
    if denials is None:
        return []
    others = denials.besides([form for kind, form in _ELSEWHERE.items() if kind in table.found])
    rules = [each for each in others[:MOST] if not each.error]
    scored = weighed(rules, table)
    scored.sort(key=lambda each: (each.by_chance, -each.score))
    known = denials.of_forms(["key", "fd"])[:KNOWN]
    return behind(table.near_rules, covered(scored, known, table, denials.space))


def weighed(rules: Sequence[DenialConstraint], table: TableSnapshot) -> list[Ranked]:
    """Some rules, each by itself."""
    denials: Denials = table.found["dcs"]
    drawn = known_pairs(denials, table.rows)
    tested: list[Tested | None] = [None] * len(rules)
    if rules and drawn and drawn[0].sets.pairs:
        tested[:] = TryingPairs(denials.space, table.columns, table.rows, drawn).tested(rules)
    return [
        _scored(each, tries, denials.counts is None, never_both(each, table))
        for each, tries in zip(rules, tested, strict=True)
    ]


def _scored(
    rule: DenialConstraint, tested: Tested | None, estimated: bool, words: str | None
) -> Ranked:
    number = len(rule.predicates)
    form = "one row" if rule.is_within_a_row else rule.form
    parts = {
        "form": FORMS.get(form, FORMS["other"]),
        "succinctness": 1 / max(1, number),
        "strength": _UNKNOWN if tested is None else tested.strength,
    }
    score = sum(WEIGHTS[part] * value for part, value in parts.items())
    reasons = [words or _WORDS[form]] if form in _WORDS else []
    reasons.append(f"{number} comparison{'' if number == 1 else 's'}")
    if tested is None:
        return Ranked(rule, round(score, 4), tuple(reasons))
    what = "row" if rule.is_within_a_row else "pair of rows"
    about = "about " if estimated else ""
    plural = None if rule.is_within_a_row else "pairs of rows"
    reasons.append(f"{about}{count(tested.pairs, what, plural)} could have broken it")
    by_chance = not tested.strength and number > 0
    return Ranked(rule, round(score, 4), tuple(reasons), tested=tested.pairs, by_chance=by_chance)
