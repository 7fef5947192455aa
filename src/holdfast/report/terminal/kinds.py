"""What happened to the constraints of one kind, in a batch or between two versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.kinds.base import Kind
from holdfast.kinds.ranking import Weighed
from holdfast.model.changes import KindChanges
from holdfast.model.constraints import Constraint
from holdfast.model.versions import KindDiff
from holdfast.screen.page import Page
from holdfast.screen.text import count

Weigh = Callable[[Kind, Sequence[Constraint]], Weighed]
"""Which of some constraints of a table matter."""

_LISTS = ("gained", "broken", "superseded", "unchecked", "errors")


def kind_changes(
    page: Page,
    kind: Kind,
    changes: KindChanges,
    weigh: Weigh | None = None,
    *,
    check: bool,
    verbose: bool,
) -> None:
    """What happened to one kind of constraint, what broke first. Of what was gained those are
    listed that matter, if ``weigh`` says which these are."""
    counts = changes.counts
    by_rows = [each for each in changes.broken if not each.repeated]
    repeated = [each for each in changes.broken if each.repeated]
    if by_rows:
        number = counts["broken"] - len(repeated)
        how = kind.how_broken if number == 1 else kind.how_broken.replace(" it", " each")
        verb, style = kind.how_lost[check], "red" if kind.gates else ""
        page.line(f"{count(number, *kind.nouns)} {verb}{': ' if how else ''}{how}", style, 2)
        for each in by_rows[: page.limit]:
            line = kind.body(each.constraint)
            if each.now is not None:
                line = kind.became(each.constraint, each.now)
            page.line(line, style, 4, wrap_after=kind.wrap_after)
            if each.witness and (how or verbose):
                page.rows(each.witness, each.constraint.involved, 6)
        page.more(number, 4)
    if repeated:
        verb = "would break" if check else "broken"
        heading = f"{count(len(repeated), *kind.nouns)} {verb}, only because rows are repeated"
        _listed(page, kind, [each.constraint for each in repeated], heading, "red", len(repeated))
    if changes.superseded:
        verb = "would become" if check else "became"
        page.line(f"{count(counts['superseded'], *kind.nouns)} {verb} {kind.how_minimal}", "", 2)
        for shorter in changes.superseded[: page.limit]:
            both = kind.became(shorter.constraint, shorter.by)
            page.line(both, "", 4, wrap_after=kind.wrap_after)
        page.more(counts["superseded"], 4)
    if changes.unchecked:
        left_out = count(counts["unchecked"], *kind.nouns)
        heading = f"{left_out} left out: longer than there was time to check"
        _listed(page, kind, changes.unchecked, heading, "", counts["unchecked"])
    if changes.gained:
        verb = "would be gained" if check else "gained"
        heading = f"{count(counts['gained'], *kind.nouns)} {verb}"
        if weigh is None:
            _listed(page, kind, changes.gained, heading, "green", counts["gained"])
        else:
            _weighed(page, kind, weigh(kind, changes.gained), heading, "green", counts["gained"])
    if changes.errors:
        page.line(
            f"{count(counts['errors'], 'error')} of approximate {kind.nouns[1]} changed", "", 2
        )
        for error in changes.errors[: page.limit]:
            was, now = (_share(share) for share in (error.before, error.after))
            page.line(
                f"{kind.body(error.constraint)}  {was} → {now}", "", 4, wrap_after=kind.wrap_after
            )
        page.more(counts["errors"], 4)
    for name in [name for name in counts if name not in _LISTS and name.endswith("_gained")]:
        what = name.removesuffix("_gained")
        came, went = counts[name], counts[f"{what}_lost"]
        if came or went:
            page.line(f"{what.replace('_', '-')}: {came:,} gained, {went:,} lost", "dim", 2)


def kind_diff(page: Page, kind: Kind, diff: KindDiff) -> None:
    """What one version has and the other has not."""
    for verb, style, some in (("lost", "red", diff.lost), ("gained", "green", diff.gained)):
        if some:
            number = len(some)
            told = Weighed(some, diff.first.get(verb, number), diff.by_chance.get(verb, 0))
            _weighed(page, kind, told, f"{count(number, *kind.nouns)} {verb}", style, number)


def _weighed(page: Page, kind: Kind, told: Weighed, heading: str, style: str, total: int) -> None:
    """Constraints that matter, and how many others there are; on request all."""
    if page.limit is None or told.first == total:
        _listed(page, kind, told.constraints, heading, style, total)
        return
    first, chance = told.constraints[: min(told.first, page.limit)], told.by_chance
    if not first:
        luck = "may well be chance" if chance == total else f"matter{'s' * (total == 1)} little"
        them = "it" if total == 1 else "them"
        page.line(f"{heading}, which {luck} (--all shows {them})", "dim", 2)
        return
    page.line(f"{heading}; those that matter:", style, 2)
    for each in first:
        page.line(kind.body(each), style, 4, wrap_after=kind.wrap_after)
    page.rest(total - len(first), by_chance=chance)


def _listed(
    page: Page,
    kind: Kind,
    constraints: Sequence[Constraint],
    heading: str,
    style: str,
    total: int,
) -> None:
    page.line(heading, style, 2)
    for each in constraints[: page.limit]:
        page.line(kind.body(each), style, 4, wrap_after=kind.wrap_after)
    page.more(total, 4)


def _share(error: float | None) -> str:
    return "none" if error is None else f"{error:.3g}"
