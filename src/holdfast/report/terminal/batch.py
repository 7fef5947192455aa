"""What a batch did, or would do, table by table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from shlex import quote

from holdfast.kinds import registry
from holdfast.kinds.ranking import weighed
from holdfast.model.changes import BatchChanges, Changes, KindChanges
from holdfast.model.expectations import Quarantine
from holdfast.report.snapshot import Snapshot
from holdfast.report.terminal.expectation import expectation_changes
from holdfast.report.terminal.kinds import kind_changes
from holdfast.report.terminal.near import happened, near_changes
from holdfast.report.terminal.repeated import hold_again, none_repeats, repeating, show_repeated
from holdfast.screen.page import Page
from holdfast.screen.text import count, plain


def changes(
    page: Page,
    outcome: Changes | BatchChanges,
    *,
    check: bool = False,
    verbose: bool = False,
    path: str = "DIR",
    snapshot: Snapshot | None = None,
) -> None:
    """What a batch did, or with ``check`` would do, to the profile at ``path``, table by table. A
    ``snapshot`` of the version that there is now tells which constraints matter."""
    tables = outcome.by_table
    if outcome.applied_before:
        batch, names = plain(outcome.batch_id or ""), plain(", ".join(tables))
        page.line(
            f"{names}: batch {batch!r} was applied before, as version {outcome.version}; "
            "nothing to do"
        )
        return
    for place, each in enumerate(tables.values()):
        if place:
            page.line()
        _table_changes(page, each, snapshot, check=check, verbose=verbose)
    if (check or outcome.refused) and registry.breaks(outcome) and outcome.expectations is None:
        page.line("What holds by chance can stop a good batch: choose the rules that count, with")
        page.line(plain(f"  holdfast expect {quote(path)} --suggest"))
    if verbose and outcome.seconds:
        times = ", ".join(f"{stage} {spent:.2f} s" for stage, spent in outcome.seconds.items())
        page.line(f"times: {times}", "dim", 2)


def _table_changes(
    page: Page, outcome: Changes, snapshot: Snapshot | None, *, check: bool, verbose: bool
) -> None:
    check = check or outcome.refused
    what = f"checked against version {outcome.version}" if check else f"version {outcome.version}"
    rows = count(outcome.rows, "row")
    after = f"{rows} then" if check else f"{rows} now"
    page.line(f"{plain(outcome.table)}, {what}: {batch_text(outcome)}; {after}", "bold")
    if outcome.quarantined is not None:
        _quarantined(page, outcome.quarantined)
    if outcome.refused:
        page.line("Nothing was applied: it would break what it should not.", "red", 2)
        for each in outcome.expectations or ():
            if each.stops and each.is_whole:
                why = "no row breaks this by itself, so leaving rows out does not help"
                page.line(f"{plain(each.rule)}: {why}", "", 2)
    if outcome.expectations is not None:
        expectation_changes(page, outcome.expectations, check=check)
        if not verbose:
            _briefly(page, outcome, check=check)
            return
    _duplicates_changed(page, outcome, check)
    weigh = None
    if snapshot is not None:
        weigh = partial(weighed, snapshot=snapshot, table=outcome.table, hold=not check)
    for kind in registry.named_in(outcome.kinds):
        kind_changes(page, kind, outcome.kinds[kind.field], weigh, check=check, verbose=verbose)
    near_changes(page, outcome.near)
    something = outcome.duplicates or outcome.near
    if not something and not any(each.any for each in outcome.kinds.values()):
        page.line("Nothing would change." if check else "Nothing gained, nothing broken.", "", 2)


def _quarantined(page: Page, left: Quarantine) -> None:
    """The rows that were not applied."""
    page.line(f"{count(left.rows, 'row')} quarantined, not applied", "yellow", 2)
    for rule, number in left.rules.items():
        page.line(f"{number:,} by {plain(rule)}", "", 4)
    for name in left.files[: page.limit]:
        page.line(plain(name), "dim", 4)
    page.more(len(left.files), 4)


def _briefly(page: Page, outcome: Changes, *, check: bool) -> None:
    """What else happens, in a line for each kind: with expectations it is information."""
    said = []
    expected = {each.rule for each in outcome.expectations or ()}
    for kind in registry.named_in(outcome.kinds):
        counts = _not_expected(outcome.kinds[kind.field], expected)
        verbs = {"broken": kind.how_lost[check], "gained": "would be gained" if check else "gained"}
        numbers = [f"{counts[what]:,} {verb}" for what, verb in verbs.items() if counts[what]]
        if numbers:
            said.append(f"{kind.nouns[1]}: {', '.join(numbers)}")
    if outcome.duplicates and outcome.duplicates != outcome.duplicates_before:
        said.insert(0, repeating(outcome.duplicates, would=check))
    said += [happened(each) for each in outcome.near if each.rule not in expected]
    if said:
        page.line("besides, not expected (--verbose tells more):", "dim", 2)
    for line in said:
        page.line(line, "dim", 4)


def _not_expected(changes: KindChanges, expected: Collection[str]) -> dict[str, int]:
    """How many broke and were gained, but for those that are expected and told as such."""
    listed = {
        "broken": [each.constraint for each in changes.broken],
        "gained": changes.gained,
    }
    return {
        what: changes.counts[what] - sum(str(each) in expected for each in some)
        for what, some in listed.items()
    }


def _duplicates_changed(page: Page, outcome: Changes, check: bool) -> None:
    now, before = outcome.duplicates, outcome.duplicates_before
    if now:
        was = "" if before in (0, now) else f" ({before:,} before)"
        show_repeated(page, now, outcome.duplicated, would=check, was=was)
        if before and any(each.any for each in outcome.kinds.values()):
            page.line("of the distinct rows:", indent=2)
    elif before:
        page.line(f"{none_repeats(before, would=check)}: {hold_again()}", "", 2)


def batch_text(outcome: Changes) -> str:
    """What it did to the rows of a table."""
    counts = {
        "inserted": outcome.inserted,
        "deleted": outcome.deleted,
        "updated": outcome.updated,
        "unchanged": outcome.unchanged,
        "skipped (not there)": outcome.skipped,
    }
    if outcome.quarantined is not None:
        counts["quarantined"] = outcome.quarantined.rows
    return rows_changed(counts)


def rows_changed(counts: Mapping[str, int]) -> str:
    """How many rows, by what was done with them."""
    done = [f"{number:,} {verb}" for verb, number in counts.items() if number]
    return ", ".join(done) or "no rows changed"
