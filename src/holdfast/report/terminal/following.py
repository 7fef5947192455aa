"""Steps of feeds, and how far a profile follows them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kinds import registry
from holdfast.model.commits import LastStep
from holdfast.model.following import FeedStatus, FeedStep
from holdfast.report.terminal.batch import changes
from holdfast.screen.page import Page, figures
from holdfast.screen.text import count, moment, plain


def stepped(page: Page, step: FeedStep, *, verbose: bool = False) -> None:
    """A line about a step; and what it did, if something broke or with ``verbose``."""
    what = "refused" if step.refused else f"version {step.version}"
    behind = f"; {plain(step.behind)} behind" if step.behind else ""
    page.line(
        f"{plain(step.feed)}: {plain(step.span)}: {what}, {count(step.rows, 'row')} changed, "
        f"{step.seconds:.1f} s{behind}"
    )
    if step.refused or verbose or registry.breaks(step.changes):
        changes(page, step.changes, verbose=verbose)


def feeds(page: Page, every: Sequence[FeedStatus]) -> None:
    """How far a profile follows each feed."""
    if not every:
        page.line("This profile follows no feed.")
        return
    table = figures("feed", "table", "version", "time", "read last", "rows", "seconds", "behind")
    for feed in every:
        behind = feed.behind or ("" if feed.behind is None else "nothing")
        table.add_row(
            plain(feed.name),
            plain(feed.table),
            str(feed.version or ""),
            moment(feed.time) if feed.time else "",
            *(_step(feed.last) if feed.last else ("", "", "")),
            plain(behind if feed.error is None else "not known"),
        )
    page.table(table, 0)
    for feed in every:
        if feed.error is not None:
            page.line(f"{plain(feed.name)}: {plain(feed.error)}", "red")
        if feed.stopped is not None:
            when, why = moment(feed.stopped.time), plain(feed.stopped.error)
            page.line(f"{plain(feed.name)}: stopped at {when}: {why}", "red")
    which = []
    if len({feed.table for feed in every if feed.version}) > 1:
        which.append("different feeds, which are read one after the other,")
    which += [
        f"{plain(feed.name)}, whose transactions may arrive in parts,"
        for feed in every
        if feed.apart
    ]
    for each in which:
        page.line(
            f"Tables of {each} are not at the same moment of the source: an inclusion dependency "
            "between them can break in one version and hold again in a later one.",
            "dim",
        )


def _step(last: LastStep) -> tuple[str, str, str]:
    return plain(last.span), f"{last.rows:,}", f"{last.seconds:.1f}"
