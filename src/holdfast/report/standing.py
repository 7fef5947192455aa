"""How far rows are from a rule, in words."""

from __future__ import annotations

from holdfast.model.expectations import Standing, is_of_rows
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.screen.text import count, share


def how_far(standing: Standing) -> str:
    """What violates a rule."""
    rule, bound = standing.expectation.constraint, standing.expectation.max_error
    tally = standing.tally
    if tally.violations is None or tally.wrong is None:
        return "violated by pairs of rows, too many to count"
    allowed = f"; {share(bound)} may be" if bound else ""
    number = tally.violations
    if isinstance(rule, InclusionDependency):
        values = f"{tally.wrong:,} of {count(tally.total, 'value')} missing"
        said = f"{count(number, 'row')} without a match: {values}"
    elif tally.total and is_of_rows(rule):
        said = f"{count(number, 'row')} of {tally.total:,}"
    else:
        said = f"{count(number, 'pair')} of rows"
    return f"{said}{allowed}"
