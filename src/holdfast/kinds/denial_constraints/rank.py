"""Which denial constraints matter: order rules and conditional ones, short ones, and those that
pairs of rows nearly break (succinctness and coverage: Chu, Ilyas, Papotti, "Discovering Denial
Constraints", PVLDB 2013, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints.predicates import atoms_of
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.ranking import Ranked, behind
from holdfast.screen.text import share

if TYPE_CHECKING:
    from holdfast.cover.counts import EvidenceCounts
    from holdfast.kinds.denial_constraints.reading import Denials
    from holdfast.model.comparisons import Space
    from holdfast.report.snapshot import Snapshot

MOST = 500
"""So many are ranked, the first of those that are shown."""

EVIDENCES = 20_000
"""Of more distinct evidences, those that most pairs show are looked at, and that is said."""

FORMS = {"order": 1.0, "conditional": 0.9, "one row": 0.7, "other": 0.4}
"""How much a form matters; one row: it compares cells of single rows."""

WEIGHTS = {"form": 0.5, "succinctness": 0.25, "coverage": 0.25}

_WORDS = {
    "order": "an order rule",
    "conditional": "an order rule among rows that agree",
    "one row": "about single rows",
}

_UNKNOWN = 0.5
"""The coverage where pairs are neither counted nor sampled."""

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
    counts, label = denials.counts, ""
    if counts is None and (counts := denials.sampled) is not None:
        label = f", estimated from {counts.pairs:,} sampled pairs"
    shares, in_part = coverages(rules, denials.space, table.columns, counts)
    if in_part:
        label = label or ", estimated"
    scored = [_scored(each, near, label) for each, near in zip(rules, shares, strict=True)]
    return behind(table.near_rules, scored)


def _scored(rule: DenialConstraint, coverage: float | None, label: str) -> Ranked:
    number = len(rule.predicates)
    rows = {row for each in rule.predicates for row, _ in (each.left, each.right)}
    form = "one row" if len(rows) == 1 else rule.form
    parts = {
        "form": FORMS.get(form, FORMS["other"]),
        "succinctness": 1 / max(1, number),
        "coverage": _UNKNOWN if coverage is None else coverage,
    }
    score = sum(WEIGHTS[part] * value for part, value in parts.items())
    reasons = [_WORDS[form]] if form in _WORDS else []
    reasons.append(f"{number} comparison{'' if number == 1 else 's'}")
    if coverage is not None:
        reasons.append(f"coverage {share(round(coverage, 3))}{label}")
    return Ranked(rule, round(score, 4), tuple(reasons))


def coverages(
    rules: Sequence[DenialConstraint],
    space: Space,
    columns: Sequence[str],
    counts: EvidenceCounts | None,
) -> tuple[list[float | None], bool]:
    """How near pairs come to breaking each rule, from 0 to 1: a pair that satisfies k of n
    predicates counts (k + 1) / n. And whether not all evidence was looked at."""
    if counts is None or not counts.pairs:
        return [None] * len(rules), False
    masks, numbers = counts.masks, counts.counts
    estimated = len(masks) > EVIDENCES
    if estimated:
        most = np.argsort(-numbers, kind="stable")[:EVIDENCES]
        masks, numbers = masks[most], numbers[most]
    shares: list[float | None] = []
    known: dict[object, NDArray[np.bool_]] = {}
    for rule in rules:
        satisfied = np.zeros(len(masks), np.int64)
        for predicate in rule.predicates:
            if predicate not in known:
                atoms = atoms_of(DenialConstraint(rule.table, (predicate,)), space, columns)
                [mask] = bitsets.from_columns([atoms], space.atoms)
                known[predicate] = ((mask & ~masks) == 0).all(axis=1)
            satisfied += known[predicate]
        # Sampled pairs may be of rows that have gone since, and violate it.
        number = max(1, len(rule.predicates))
        weights = np.minimum(satisfied + 1, number) / number
        shares.append(float((weights * numbers).sum() / numbers.sum()))
    return shares, estimated
