"""How far rows are from a rule, in words."""

from __future__ import annotations

from holdfast.kinds import registry
from holdfast.model.expectations import Standing
from holdfast.screen.text import share


def how_far(standing: Standing) -> str:
    """What violates a rule."""
    rule, bound = standing.expectation.constraint, standing.expectation.max_error
    tally = standing.tally
    if tally.violations is None or tally.wrong is None:
        return "violated by pairs of rows, too many to count"
    allowed = f"; {share(bound)} may be" if bound else ""
    return registry.of(rule).violated_by(rule, tally) + allowed
