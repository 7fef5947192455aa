"""One rule: whether it holds, since when, and what violates it."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from holdfast.kinds import registry
from holdfast.model.explanation import ChangedRows, Example, Explanation, Past
from holdfast.report.terminal.batch import rows_changed
from holdfast.report.terminal.near import suspects_command
from holdfast.screen.page import Page
from holdfast.screen.text import count, moment, plain, share


def explanation(page: Page, path: str, explained: Explanation) -> None:
    """What is said of one rule of a profile."""
    wrap_after = registry.of(explained.rule).wrap_after
    page.line(plain(str(explained.rule)), "bold", wrap_after=wrap_after)
    page.line(_standing(explained), "green" if explained.holds else "red", 2)
    for line in _course(explained.past):
        page.line(line, "", 2)
    for line in _numbers(explained):
        page.line(line, "", 2)
    for line in _nearly(explained):
        page.line(line, "", 2)
    if explained.near is not None and not explained.near.holds:
        page.line(suspects_command(path, quote(str(explained.rule))), "dim", 2)
    for each in explained.violations.examples:
        page.line(_rows_of(each, explained.named_rows), "dim", 4)
        page.rows(each.shown, explained.same, 6, explained.apart)
    near = explained.nearby
    if near.instead:
        page.line("what holds instead:", "", 2)
    for rule in near.instead:
        page.line(plain(rule.body), "green", 4, wrap_after=registry.of(rule).wrap_after)
    if near.minimal:
        page.line("nothing less is enough", "", 2)
    elif near.enough:
        page.line("already enough:", "", 2)
    for rule in near.enough:
        page.line(plain(rule.body), "green", 4, wrap_after=registry.of(rule).wrap_after)
    for note in near.notes:
        page.line(f"({plain(note)})", "dim", 2)


def _rows_of(example: Example, named: bool) -> str:
    """What is above the rows of an example."""
    if named and example.rows == 2:
        return "rows t and s"
    shown = len(example.shown)
    more = f", {shown} of them shown" if shown < example.rows else ""
    return f"{count(example.rows, 'row')}{more}"


def _standing(explained: Explanation) -> str:
    """Whether it holds, and since when."""
    verb = "holds" if explained.holds else "does not hold"
    past = explained.past
    if past.since is None:
        return f"{verb}; since when is not known"
    since = past.since
    least = "at least " if past.at_least else ""
    when = f"version {since.version} of {moment(since.created)} UTC"
    if since.version == 1:
        return f"{verb}, since the first version"
    if not since.tables:
        return f"{verb}, {least}since {when}"
    batch = f"batch {plain(since.batch_id)!r}" if since.batch_id else "a batch"
    did = ", ".join(f"{plain(each.table)} ({rows_changed(_sizes(each))})" for each in since.tables)
    return f"{verb}, {least}since {when}: {batch} for {did}"


def _sizes(rows: ChangedRows) -> dict[str, int]:
    return {"inserted": rows.inserted, "deleted": rows.deleted, "updated": rows.updated}


def _course(past: Past) -> Iterator[str]:
    """What it did before, and how it stood up to batches."""
    before = [each for each in past.stretches[:-1] if each.holds is not None][-5:]
    if before:
        stretches = (
            f"{'held' if each.holds else 'did not hold'} in version {each.first}"
            + (f" to {each.last}" if each.last > each.first else "")
            for each in before
        )
        yield f"before that it {', '.join(stretches)}"
    if past.stability is not None:
        yield f"{past.stability.sentence} (confidence {past.stability.confidence:.2f})"


def _nearly(explained: Explanation) -> Iterator[str]:
    """How it is listed among the rules that nearly hold."""
    near, since = explained.near, f"since version {explained.listed_since}"
    if near is None:
        return
    if near.holds:
        yield f"listed among the rules that nearly hold, {since}"
        return
    strength = "" if near.strength is None else f", strength {near.strength:g}"
    yield f"nearly holds: {plain(near.sentence)}{strength}; listed {since}"


def _numbers(explained: Explanation) -> Iterator[str]:
    """What violates it, in numbers."""
    violations, rows = explained.violations, count(explained.rows, "row")
    if violations.found is not None:
        yield plain(registry.of(explained.rule).finding(explained.rule, violations.found))
        return
    if explained.holds:
        if violations.tested is not None:
            nouns = ("row", "rows")
            if violations.of_pairs is not None:
                nouns = ("pair of rows", "pairs of rows")
            yield f"{count(violations.tested, *nouns)} could have broken it"
        return
    if violations.rows is None:
        yield "too many pairs would have to be compared to count what violates it"
        return
    groups = (
        f", in {count(violations.groups, explained.unit)}" if violations.groups is not None else ""
    )
    verb = "violates" if violations.rows == 1 else "violate"
    error = f" (error {violations.error:.3g})" if violations.of_rows is not None else ""
    yield f"{violations.rows:,} of {rows} {verb} it{groups}{error}"
    if violations.removal is not None:
        least, most = violations.removal.at_least, violations.removal.at_most
        number = count(least, "row") if least == most else f"{least:,} to {count(most, 'row')}"
        share_ = share(least / explained.rows)
        bound = "" if violations.removal.exact else "; the exact number is too hard to find"
        yield f"{number} would have to go ({'' if least == most else 'at least '}{share_}{bound})"
    if violations.of_pairs is not None:
        of = f"{violations.pairs:,} of {violations.of_pairs:,} row pairs"
        yield f"{of} violate it (error {violations.error:.3g})"
    if violations.coverage is not None:
        yield f"{share(violations.coverage)} of the values are contained"
