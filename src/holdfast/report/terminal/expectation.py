"""Rules that are expected: how they stand, and what a batch does to them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kinds import registry
from holdfast.model.expectations import (
    ERROR,
    SEVERITIES,
    WARN,
    Expectation,
    ExpectationChange,
    Standing,
)
from holdfast.report.standing import how_far
from holdfast.screen.page import Page
from holdfast.screen.text import count, plain

_STYLES = {ERROR: "red", WARN: "yellow"}

_GROUPS = 3
"""So many groups of rows that violate a rule are shown, of those that are known."""


def expected(page: Page, rules: Sequence[ExpectationChange]) -> None:
    """Rules that were declared, and rows that violate those which do not hold."""
    for each in rules:
        if each.after.holds:
            page.line(f"expected, and holds: {_called(each.after.expectation)}", "green")
            continue
        page.line("expected, and does not hold:", _STYLES[each.after.expectation.severity])
        _violated(page, each, 2)


def expectations(page: Page, standings: Sequence[Standing]) -> None:
    """The rules that are expected, with their states."""
    if not standings:
        page.line("no rule is expected; holdfast expect declares one")
        return
    for each in standings:
        kept = each.expectation
        state = "holds" if each.holds else f"does not hold ({how_far(each)})"
        if each.holds and each.tally.wrong:
            state = f"holds ({how_far(each)})"
        severity = "" if kept.severity == ERROR else ", only a warning"
        page.line(_called(kept), "" if each.holds else _STYLES[kept.severity])
        page.line(f"{state}{severity}", "dim" if each.holds else "", 2)


def expectation_changes(page: Page, rules: Sequence[ExpectationChange], *, check: bool) -> None:
    """What happens to the rules that people rely on: what breaks first, with rows that show it."""
    breaking = [each for each in rules if each.breaks]
    verb = "would break" if check else "broken"
    for severity in SEVERITIES:
        mine = [each for each in breaking if each.after.expectation.severity == severity]
        if not mine:
            continue
        note = "" if severity == ERROR else ", only a warning"
        style = _STYLES[severity]
        page.line(f"{count(len(mine), 'expected rule')} {verb}{note}", style, 2)
        for each in mine[: page.limit]:
            _violated(page, each, 4)
        page.more(len(mine), 4)
    others = [each for each in rules if not each.breaks]
    broken = sum(not each.after.holds for each in others)
    if broken:
        more = "; this batch adds nothing to that"
        page.line(f"{count(broken, 'expected rule')} did not hold before{more}", "yellow", 2)
    if holding := len(others) - broken:
        verb = "would hold" if check else "holds" if holding == 1 else "hold"
        page.line(f"{count(holding, 'expected rule')} {verb}", "green", 2)
    if not rules:
        page.line("no expected rule is about this table", "dim", 2)


def _violated(page: Page, each: ExpectationChange, indent: int) -> None:
    """A rule that does not hold: how far from it the rows are, and some of them."""
    kept = each.after.expectation
    style = _STYLES[kept.severity]
    page.line(_called(kept), style, indent)
    rule = kept.constraint
    page.line(how_far(each.after), "", indent + 2)
    sharing = registry.of(rule).sharing
    for group in each.groups[: None if page.limit is None else _GROUPS]:
        if sharing:
            page.line(f"{count(group.number, 'row')} {sharing}", "dim", indent + 2)
        labels = ["new" if each else "" for each in group.new]
        page.rows(group.rows, rule.involved, indent + 2, labels=labels)
        if group.number > len(group.rows):
            others = count(group.number - len(group.rows), "more row")
            page.line(f"… and {others}", "dim", indent + 2)


def _called(kept: Expectation) -> str:
    """A rule with its name."""
    return plain(kept.rule if kept.name is None else f"{kept.rule}  ({kept.name})")
