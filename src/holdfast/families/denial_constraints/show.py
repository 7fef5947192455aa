"""Denial constraints in JSON and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.families.parts import Form, TablePart
from holdfast.model.constraints import DenialConstraint
from holdfast.screen.text import plain

if TYPE_CHECKING:
    from holdfast.families.denial_constraints.reading import Denials
    from holdfast.report.snapshot import TableSnapshot
    from holdfast.screen.page import Page

SPACE = "denial"
"""The name of the space of comparisons of denial constraints."""

_ELSEWHERE = {"keys": "key", "fds": "fd"}
"""Kinds that list constraints of a form themselves."""


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
        found: Denials = table.found["dcs"]
        return found

    def reached(self, table: TableSnapshot) -> int | None:
        """The most comparisons of a constraint, up to which all are listed."""
        return table.evidence[SPACE].limits.keys

    def most(self, table: TableSnapshot) -> int:
        """As many comparisons as there are."""
        space = table.evidence[SPACE].space
        return 0 if space is None else len(space["comparisons"])

    def show(self, page: Page, table: TableSnapshot, options: Form, verbose: bool) -> None:  # noqa: ARG002
        """Keys and functional dependencies are counted where they are listed themselves."""
        found: Denials = table.found["dcs"]
        elsewhere = [form for kind, form in _ELSEWHERE.items() if kind in table.found]
        shown = found.besides(elsewhere)
        heading = self.heading(len(found))
        if len(shown) < len(found):
            heading += f", {len(found) - len(shown):,} of them keys or functional dependencies"
            if page.limit is None:
                shown = found
            else:
                heading += " (--all shows them)"
        page.line(heading + self.limited(table, options), "", 2)
        for each in shown[: page.limit]:
            error = f"  (violated by {each.error:.3g} of the ordered row pairs)"
            page.line(plain(each.body) + (error if each.error else ""), _color(each), 4)
            if each.sentence:
                page.line(plain(each.sentence), "dim", 6)
        page.more(len(shown), 4)


def _color(each: DenialConstraint) -> str:
    return "" if each.error else "green"
