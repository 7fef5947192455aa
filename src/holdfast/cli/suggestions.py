"""Offering rules that could be expected: what is printed, and the answers to it.

Questions go to standard error, so that standard output has nothing but results.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.model.errors import InputError
from holdfast.screen.page import Page
from holdfast.screen.text import count, plain

if TYPE_CHECKING:
    from holdfast.model.expectations import Suggestion

_ANSWERS = {"y": "y", "yes": "y", "n": "n", "no": "n", "": "n",
            "a": "all", "all": "all", "q": "quit", "quit": "quit"}  # fmt: skip


def offered(directory: str, *, given: bool, suggest: bool) -> Sequence[Suggestion]:
    """What a profile suggests; ``given``: rules, or a name of one, are there already."""
    if not suggest:
        raise InputError("--yes takes what --suggest offers; give both")
    if given:
        raise InputError("--suggest chooses the rules; give no RULE, --from or --name with it")
    from holdfast.api import Profile

    return Profile.open(directory).suggest()


def printed(offers: Sequence[Suggestion], *, quiet: bool) -> None:
    """One rule a line, as ``expect`` takes it."""
    page = Page(sys.stdout, everything=True)
    for each in offers:
        page.line(plain(each.rule))
    if offers and not quiet:
        them = "it" if len(offers) == 1 else "them all"
        rules = count(len(offers), "rule")
        Page(sys.stderr).line(
            f"{rules} suggested; nothing was declared. --yes declares {them}", "dim"
        )
    elif not offers:
        nothing(offers, quiet=quiet)


def nothing(offers: Sequence[Suggestion], *, quiet: bool) -> None:
    """Say why nothing was declared."""
    if not quiet:
        why = "nothing was declared" if offers else "no rule is suggested that is not expected yet"
        Page(sys.stderr).line(why, "dim")


def chosen(offers: Sequence[Suggestion]) -> list[Suggestion]:
    """Those that somebody at a terminal says yes to; nothing, if the terminal ends before that."""
    page = Page(sys.stderr)
    taken: list[Suggestion] = []
    for place, each in enumerate(offers):
        page.line(plain(each.rule))
        page.line(plain(each.reason), "dim", 2)
        answer = _answer(place + 1, len(offers))
        if answer is None:
            return []
        if answer == "quit":
            break
        if answer == "all":
            return [*taken, *offers[place:]]
        if answer == "y":
            taken.append(each)
    return taken


def _answer(place: int, total: int) -> str | None:
    """One answer; None: there is nobody any more."""
    while True:
        sys.stderr.write(f"  {place} of {total}, expect it? y/N/all/quit ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return None
        answer = _ANSWERS.get(line.strip().lower())
        if answer is not None:
            return answer
        sys.stderr.write("  the answer is y, n, all or quit\n")
