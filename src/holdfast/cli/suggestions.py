"""Suggesting rules to expect: what is printed, and the answers to it.

Questions go to standard error, so that standard output contains only results.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.model.errors import InputError
from holdfast.screen.page import Page
from holdfast.screen.text import count, plain

if TYPE_CHECKING:
    from holdfast.model.expectations import Suggestion

_ANSWERS = {"y": "y", "yes": "y", "n": "n", "no": "n", "": "n",
            "a": "all", "all": "all", "q": "quit", "quit": "quit"}  # fmt: skip


def offered(directory: str, *, given: bool, suggest: bool) -> Sequence[Suggestion]:
    """What a profile suggests; ``given``: rules, or the name of one, are among the arguments."""
    if not suggest:
        raise InputError("--yes accepts what --suggest suggests; give both")
    if given:
        raise InputError("--suggest chooses the rules; give no RULE, --from or --name with it")
    from holdfast.api import Profile

    return Profile.open(directory).suggest()


def printed(offers: Sequence[Suggestion], *, quiet: bool, **settings: Any) -> None:
    """A file of rules with their reasons, as ``expect --from`` takes it."""
    from holdfast.export.rules import rules_file
    from holdfast.input.validation import rules_with_settings

    if not offers:
        nothing(offers, quiet=quiet)
        return
    rules, _ = rules_with_settings(offers, name=None, file=None, **settings)
    sys.stdout.write(rules_file(rules, [offer.reason for offer in offers]))
    if not quiet:
        them = "it" if len(offers) == 1 else "all of them"
        Page(sys.stderr).line(
            f"{count(len(offers), 'rule')} suggested; nothing was declared. --yes declares {them}, "
            "and --from those of a file with this text",
            "dim",
        )


def nothing(offers: Sequence[Suggestion], *, quiet: bool) -> None:
    """Say why nothing was declared."""
    if not quiet:
        why = (
            "nothing was declared"
            if offers
            else "there are no suggestions that are not expected already"
        )
        Page(sys.stderr).line(why, "dim")


def chosen(offers: Sequence[Suggestion]) -> list[Suggestion]:
    """The rules that the user at the terminal accepts; none if the input ends before that."""
    page = Page(sys.stderr)
    accepted: list[Suggestion] = []
    for place, offer in enumerate(offers):
        page.line(plain(offer.rule))
        page.line(plain(offer.reason), "dim", 2)
        answer = _answer(place + 1, len(offers))
        if answer is None:
            return []
        if answer == "quit":
            break
        if answer == "all":
            return [*accepted, *offers[place:]]
        if answer == "y":
            accepted.append(offer)
    return accepted


def _answer(place: int, total: int) -> str | None:
    """One answer; None at the end of the input."""
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
