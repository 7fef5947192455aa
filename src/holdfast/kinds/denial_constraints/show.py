"""Denial constraints in JSON and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.parts import TablePart
from holdfast.model.denial_constraints import COMPATIBLE, DenialConstraint
from holdfast.model.names import quoted
from holdfast.model.options import Settings
from holdfast.model.records import JsonObject
from holdfast.screen.text import plain

if TYPE_CHECKING:
    from holdfast.kinds.denial_constraints.reading import Denials
    from holdfast.report.snapshot import TableSnapshot
    from holdfast.screen.page import Page

SPACE = "denial"
"""The name of the space of comparisons of denial constraints."""

WRAP_AFTER = " and "
"""Lines of a long constraint end between its predicates."""

_ELSEWHERE = {"keys": ("key", "key", "keys"), "fds": ("fd", "dependency", "dependencies")}
"""Kinds that list constraints of a form themselves; how people name one of them, and several."""


def sentence(rule: DenialConstraint, table: TableSnapshot | None) -> str | None:
    """An order rule in words: where one of two columns always has its lowest value, that is what
    it says, and not that one rises with the other."""
    return (never_both(rule, table) if table is not None else None) or rule.sentence


def never_both(rule: DenialConstraint, table: TableSnapshot) -> str | None:
    """What a rule says that forbids two columns to rise together, if in each row one of the two has
    its lowest value.

    If a row had neither, all rows with the lowest value of one would have a higher one of the
    other, so that the two lots would be different rows, and fewer than there are rows."""
    order = rule.order_rule
    if rule.form != "order" or order is None or not order.falling or order.strength != COMPATIBLE:
        return None
    facts = {each.name: each for each in table.facts}
    sides = [facts.get(column) for column in (order.lhs, order.rhs)]
    lowest = [None if each is None else each.at_minimum for each in sides]
    if None in lowest or sum(number or 0 for number in lowest) < table.rows:
        return None
    above = [f"{quoted(each.name)} above {each.minimum}" for each in sides if each is not None]
    return f"never both {above[0]} and {above[1]}"


class DenialList(TablePart):
    """Minimal denial constraints."""

    name = "dcs"
    field = "denial_constraints"
    nouns = ("denial constraint", "denial constraints")
    limit = "denial_constraints"
    unit = "predicate"
    option = "max_predicates"

    def listed(self, table: TableSnapshot) -> Sequence[DenialConstraint]:
        """Order rules first, then conditional ones."""
        denials: Denials = table.found["dcs"]
        return denials

    def described(self, constraint: DenialConstraint) -> JsonObject:
        """By the columns that it compares, an order rule also in words."""
        cells = [cell for each in constraint.predicates for cell in (each.left, each.right)]
        columns = list(dict.fromkeys(column for _, column in cells))
        whole = super().described(constraint)
        form = {name: whole[name] for name in whole if name != "predicates"} | {"columns": columns}
        if constraint.is_within_a_row:
            form["within_a_row"] = True
        rule = constraint.order_rule
        if rule is None:
            return form
        order = {"lhs": rule.lhs, "rhs": rule.rhs, "within": list(rule.within)}
        return {**form, "sentence": rule.sentence, "order": {**order, "falling": rule.falling}}

    def reached(self, table: TableSnapshot) -> int | None:
        """The most comparisons of a constraint, up to which all are listed."""
        return table.evidence[SPACE].limits.keys

    def most(self, table: TableSnapshot) -> int:
        """As many comparisons as there are."""
        space = table.evidence[SPACE].space
        return 0 if space is None else len(space.comparisons)

    def show(self, page: Page, table: TableSnapshot, options: Settings, verbose: bool) -> None:  # noqa: ARG002
        """Keys and functional dependencies are counted where they are listed themselves."""
        denials: Denials = table.found["dcs"]
        elsewhere = [names for kind, names in _ELSEWHERE.items() if kind in table.found]
        shown = denials.besides([form for form, *_ in elsewhere])
        heading = self.heading(len(denials))
        if hidden := len(denials) - len(shown):
            if len(denials) == 1:
                heading += f", a {' or '.join(noun for _, noun, _ in elsewhere)}"
            else:
                number = f"{hidden:,}" if len(shown) else "all"
                heading += f", {number} of them {' or '.join(nouns for *_, nouns in elsewhere)}"
            if page.limit is None:
                shown = denials
            else:
                heading += f" (--all shows {'it' if len(denials) == 1 else 'them'})"
        page.line(heading + self.limited(table, options), "", 2)
        for each in shown[: page.limit]:
            self.line(page, each, "", table)
        page.more(len(shown), 4)

    def line(
        self, page: Page, each: DenialConstraint, note: str = "", table: TableSnapshot | None = None
    ) -> None:
        """A rule in words, where there are some, above how it is written."""
        style = "" if each.error else "green"
        body = plain(each.body)
        if each.error:
            what = "rows" if each.is_within_a_row else "ordered row pairs"
            body += f"  (violated by {each.error:.3g} of the {what})"
        words = sentence(each, table) if each.predicates else "there are no two rows"
        if words is None:
            page.line(body + note, style, 4, wrap_after=WRAP_AFTER)
        else:
            page.line(plain(words) + note, style, 4)
            page.line(body, "dim", 6, wrap_after=WRAP_AFTER)
