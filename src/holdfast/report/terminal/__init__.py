"""What the terminal shows: short, the shortest sets first, and never wider than the screen."""

from holdfast.report.terminal.batch import changes
from holdfast.report.terminal.expectation import expectations, expected
from holdfast.report.terminal.explained import explanation
from holdfast.report.terminal.following import feeds, stepped
from holdfast.report.terminal.suspects import suspects, suspects_of_rule
from holdfast.report.terminal.timeline import diff, history
from holdfast.report.terminal.version import (
    agree_sets,
    columns,
    overview,
    predicates,
    show,
    verification,
)

__all__ = [
    "agree_sets",
    "changes",
    "columns",
    "diff",
    "expectations",
    "expected",
    "explanation",
    "feeds",
    "history",
    "overview",
    "predicates",
    "show",
    "stepped",
    "suspects",
    "suspects_of_rule",
    "verification",
]
