"""Functional dependencies in JSON and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.parts import TablePart
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.options import Settings
from holdfast.screen.text import plain

if TYPE_CHECKING:
    from holdfast.report.snapshot import TableSnapshot
    from holdfast.screen.page import Page

_FEW = 10_000
"""Up to so many dependencies are told apart by whether a key implies them."""


class DependencyList(TablePart):
    """Minimal functional dependencies."""

    name = "fds"
    field = "functional_dependencies"
    nouns = ("functional dependency", "functional dependencies")
    limit = "functional_dependencies"

    def listed(self, table: TableSnapshot) -> Sequence[FunctionalDependency]:
        """Shortest first."""
        return table.functional_dependencies or ()

    def show(self, page: Page, table: TableSnapshot, options: Settings, verbose: bool) -> None:
        """Those that a key implies are counted unless all are shown; with what implies each."""
        dependencies = self.listed(table)
        heading = self.heading(len(dependencies))
        shown = dependencies
        if len(dependencies) <= _FEW:
            # What a key determines is everything: worth a number, but not a line each.
            keys = {key.columns for key in table.keys}
            near = {key.columns for key in table.approximate_keys}
            others = [
                each
                for each in dependencies
                if each.lhs not in (keys | near if each.error else keys)
            ]
            if len(others) < len(dependencies):
                implied = "all" if not others else f"{len(dependencies) - len(others):,}"
                heading += f", {implied} with a key on the left"
                if page.limit is not None:
                    heading += " (--all shows them)"
                    shown = others
        page.line(heading + self.limited(table, options), "", 2)
        follows = _implied(table) if verbose and len(dependencies) <= _FEW else {}
        for each in shown[: page.limit]:
            error = f"  (violated by {each.error:.3g} of the row pairs)" if each.error else ""
            note = f"  (implied by {follows[each]})" if each in follows else error
            page.line(plain(each.body) + note, "green" if not each.error else "", 4)
        page.more(len(shown), 4)


def _implied(table: TableSnapshot) -> dict[FunctionalDependency, str]:
    """What the dependencies outside of a cover follow from."""
    from holdfast.kinds.functional_dependencies.rank import ranked

    return {
        each.constraint: plain("; ".join(by.body for by in each.implied_by))
        for each in ranked(table)
        if each.implied_by and isinstance(each.constraint, FunctionalDependency)
    }
