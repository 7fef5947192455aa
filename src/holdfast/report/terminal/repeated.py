"""Rows that repeat another one, and what a table has none of because of them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kinds import registry
from holdfast.model.constraints import Row
from holdfast.screen.page import Page
from holdfast.screen.text import count


def show_repeated(
    page: Page, number: int, rows: Sequence[Row], *, would: bool = False, was: str = ""
) -> None:
    """How many rows repeat another one, and some of them."""
    page.line(f"{none_holds()}: {repeating(number, would=would)}{was}", "red", 2)
    if some := rows[: page.limit]:
        page.rows(some, (), 4)


def repeating(number: int, *, would: bool = False) -> str:
    """How many rows do."""
    verb = "would repeat" if would else "repeats" if number == 1 else "repeat"
    return f"{count(number, 'row')} {verb} another row"


def none_repeats(before: int, *, would: bool = False) -> str:
    """That no row does any more."""
    verb = "would repeat" if would else "repeats"
    return f"no row {verb} another one any more ({before:,} did)"


def none_holds() -> str:
    """What a table with repeated rows has none of."""
    kinds = registry.REGISTRY.values()
    nouns = [kind.nouns[0] for kind in kinds if kind.needs_distinct_rows]
    return f"no {' or '.join(nouns)}"


def hold_again() -> str:
    """What a table without repeated rows has again."""
    kinds = registry.REGISTRY.values()
    nouns = [kind.nouns[1] for kind in kinds if kind.needs_distinct_rows]
    return f"{' and '.join(nouns)} hold again"
