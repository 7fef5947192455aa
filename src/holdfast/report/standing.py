"""How far rows are from a rule, in words."""

from __future__ import annotations

from holdfast.kinds import registry
from holdfast.model.expectations import Standing
from holdfast.screen.text import count, share


def how_far(standing: Standing) -> str:
    """What violates a rule."""
    kept, tally = standing.expectation, standing.tally
    rule, bound = kept.constraint, kept.max_error
    if kept.max_rows is not None and tally.removal is not None:
        verb = "breaks" if tally.removal == 1 else "break"
        return f"{count(tally.removal, 'row')} {verb} it, at most {kept.max_rows:,} may"
    if tally.violations is None or tally.wrong is None:
        return "violated by pairs of rows, too many to count"
    allowed = f"; {share(bound)} may be" if bound else ""
    return registry.of(rule).violated_by(rule, tally) + allowed
