"""What the terminal shows: short, the shortest sets first, and never wider than the screen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.table import Table

from holdfast import families
from holdfast.families.base import Kind
from holdfast.families.denial_constraints.chosen import Predicates
from holdfast.families.ranking import TableRanking, sentence
from holdfast.model.changes import (
    BatchChanges,
    Changes,
    Entry,
    KindChanges,
    KindDiff,
    TableDiff,
    Verification,
)
from holdfast.model.columns import ColumnFacts
from holdfast.model.constraints import (
    AgreeSet,
    Constraint,
    FunctionalDependency,
    Key,
    Row,
    Rule,
)
from holdfast.model.expectations import (
    ERROR,
    SEVERITIES,
    WARN,
    Expectation,
    ExpectationChange,
    Quarantine,
    Standing,
    involved,
)
from holdfast.model.explanation import ChangedRows, Example, Explanation, Past
from holdfast.model.names import listed
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.report.standing import how_far
from holdfast.screen.page import GAP, WIDEST_CELL, figures
from holdfast.screen.page import Page as Page
from holdfast.screen.text import count, moment, plain, share, size, value_text

_NARROWEST = 6
"""How much of a value is shown at least where there is little room."""

_NULLS = {
    "equal": "Two nulls count as equal.",
    "unequal": "A null differs from every value, also from another null.",
}


def show(
    page: Page,
    path: str,
    snapshot: Snapshot,
    parts: Collection[str] | None = None,
    *,
    verbose: bool = False,
    sizes: dict[str, int] | None = None,
) -> None:
    """A version of a profile: the asked-for parts (None: all)."""
    options = snapshot.options
    page.line(f"{path}, version {snapshot.version} of {moment(snapshot.created)} UTC")
    of_tables = families.table_parts(parts)
    if of_tables:
        page.line(_NULLS[options["nulls"]], "dim")
    for table in snapshot.tables.values() if of_tables or verbose else ():
        page.line()
        rows, columns = count(table.rows, "row"), count(len(table.columns), "column")
        page.line(f"{plain(table.name)}: {rows}, {columns}", "bold")
        if table.duplicates:
            _duplicates(page, table.duplicates, table.duplicated)
        for kind, asked in of_tables.items():
            if kind.name in table.found:
                for part in asked:
                    part.show(page, table, options, verbose)
            elif kind.name in options["kinds"] and (why := kind.left_out(table)):
                page.line(f"{kind.nouns[1]} were not searched for: {why} (--kinds)", "", 2)
        if verbose:
            _inside(page, table)
    for kind, of_profile in families.profile_parts(parts).items():
        for each in of_profile if kind.name in snapshot.found else ():
            each.show(page, snapshot, asked=parts is not None and len(parts) == 1)
    if verbose:
        _settings(page, options, sizes or {})


def overview(
    page: Page, path: str, snapshot: Snapshot, ranking: Mapping[str, TableRanking]
) -> None:
    """What matters first in each table of a version."""
    page.line(f"{path}, version {snapshot.version} of {moment(snapshot.created)} UTC")
    kinds = families.named(snapshot.options["kinds"])
    if families.compare_pairs(snapshot.options["kinds"]):
        page.line(_NULLS[snapshot.options["nulls"]], "dim")
    for name, table in snapshot.tables.items():
        page.line()
        rows, columns = count(table.rows, "row"), count(len(table.columns), "column")
        page.line(f"{plain(name)}: {rows}, {columns}", "bold")
        if table.duplicates:
            _duplicates(page, table.duplicates, table.duplicated)
        elif ranking[name].grain.key is not None:
            page.line(plain(sentence(ranking[name].grain)), "", 2)
        for kind in kinds:
            if why := kind.left_out(table) if kind.name not in table.found else "":
                page.line(f"{kind.nouns[1]} were not searched for: {why} (--kinds)", "", 2)
            else:
                kind.overview(page, snapshot, table, ranking[name][kind.field])
    for kind in kinds:
        kind.overview_of_profile(page, snapshot)


def predicates(page: Page, chosen: Mapping[str, Predicates]) -> None:
    """What denial constraints compare in each table, and what today's rows would choose."""
    for place, (name, each) in enumerate(chosen.items()):
        if place:
            page.line()
        page.line(plain(name), "bold")
        for line in each.lines:
            page.line(plain(line), indent=2)
        if each.today is None:
            continue
        if each.today == each.stored:
            page.line("Today's rows would choose the same.", "dim", 2)
            continue
        page.line("Today's rows would choose otherwise:", "", 2)
        for line in each.otherwise:
            page.line(plain(line), "yellow", 4)


def columns(page: Page, snapshot: Snapshot) -> None:
    """What is known of each column."""
    for place, table in enumerate(snapshot.tables.values()):
        if place:
            page.line()
        page.line(f"{plain(table.name)}: {count(table.rows, 'row')}", "bold")
        rows = [_column_cells(each) for each in table.facts[: page.limit]]
        heading = ("column", "type", "nulls", "distinct", "minimum", "maximum")
        widths = [max(map(cell_len, cells)) for cells in zip(heading, *rows, strict=True)]
        # Names and numbers are shown whole, values as far as they fit.
        room = page.console.width - GAP - sum(widths[:4]) - 5 * GAP
        grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        for place, name in enumerate(heading):
            numbers, values = name in heading[2:4], name in heading[4:]
            grid.add_column(
                name,
                justify="right" if numbers else "left",
                overflow="ellipsis" if values else "fold",
                no_wrap=numbers or values or room > 2 * _NARROWEST,
                max_width=min(WIDEST_CELL, max(_NARROWEST, room // 2)) if values else None,
                min_width=None if values or room < 2 * _NARROWEST else widths[place],
            )
        for cells in rows:
            grid.add_row(*cells)
        page.table(grid, 2)
        page.more(len(table.facts))


def _column_cells(facts: ColumnFacts) -> tuple[str, ...]:
    nulls = "" if facts.nulls is None else f"{facts.nulls:,}"
    about = "about " if facts.estimated else ""
    distinct = "" if facts.distinct is None else f"{about}{facts.distinct:,}"
    ends = ["" if end is None else value_text(end) for end in (facts.minimum, facts.maximum)]
    return plain(listed([facts.name])), plain(facts.type), nulls, distinct, *ends


def agree_sets(page: Page, counted: dict[str, list[AgreeSet] | None]) -> None:
    """Agree-sets, those of most pairs first; None: the pairs of a table are not counted."""
    for place, (name, sets) in enumerate(counted.items()):
        if place:
            page.line()
        if sets is None:
            page.line(f"{plain(name)}: pairs of rows are not counted", "bold")
            continue
        page.line(f"{plain(name)}: {count(len(sets), 'agree-set')}", "bold")
        most = max((len(f"{each.pairs:,}") for each in sets), default=0)
        for each in sorted(sets, key=lambda each: -each.pairs)[: page.limit]:
            pairs = f"{each.pairs:>{most},} {'pair ' if each.pairs == 1 else 'pairs'}  "
            page.line(pairs + plain(listed(each.columns)), indent=2, hang=len(pairs))
        page.more(len(sets))


def explanation(page: Page, explained: Explanation) -> None:
    """What is said of one rule."""
    page.line(plain(str(explained.rule)), "bold", breaks=" and ")
    page.line(_standing(explained), "green" if explained.holds else "red", 2)
    for line in _course(explained.past):
        page.line(line, "", 2)
    for line in _numbers(explained):
        page.line(line, "", 2)
    for each in explained.violations.examples:
        page.line(_rows_of(each, explained.named_rows), "dim", 4)
        page.rows(each.shown, explained.same, 6, explained.apart)
    near = explained.nearby
    if near.instead:
        page.line("what holds instead:", "", 2)
    for rule in near.instead:
        page.line(plain(rule.body), "green", 4, breaks=" and ")
    if near.minimal:
        page.line("nothing less is enough", "", 2)
    elif near.enough:
        page.line("already enough:", "", 2)
    for rule in near.enough:
        page.line(plain(rule.body), "green", 4, breaks=" and ")
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
    did = ", ".join(f"{plain(each.table)} ({_sizes(each)})" for each in since.tables)
    return f"{verb}, {least}since {when}: {batch} for {did}"


def _sizes(rows: ChangedRows) -> str:
    sizes = {"inserted": rows.inserted, "deleted": rows.deleted, "updated": rows.updated}
    numbers = ", ".join(f"{number:,} {what}" for what, number in sizes.items() if number)
    return numbers or "no rows changed"


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


def _numbers(explained: Explanation) -> Iterator[str]:
    """What violates it, in numbers."""
    violations, rows = explained.violations, count(explained.rows, "row")
    if explained.holds:
        if violations.tested is not None:
            what = "row pair" if violations.of_pairs is not None else "row"
            nearly = "come near to violating it" if violations.of_pairs is not None else "try it"
            yield f"tested by {count(violations.tested, what)} that {nearly}"
        return
    if violations.rows is None:
        yield "too many pairs would have to be compared to count what violates it"
        return
    groups = (
        f", in {count(violations.groups, explained.unit)}" if violations.groups is not None else ""
    )
    verb = "violates" if violations.rows == 1 else "violate"
    yield f"{violations.rows:,} of {rows} {verb} it{groups}"
    if violations.removal is not None:
        least, most = violations.removal.at_least, violations.removal.at_most
        number = count(least, "row") if least == most else f"{least:,} to {count(most, 'row')}"
        share_ = share(least / explained.rows)
        bound = "" if violations.removal.exact else "; the exact number is too hard to find"
        yield f"{number} would have to go ({'' if least == most else 'at least '}{share_}{bound})"
    if violations.error is not None:
        of = f"{violations.pairs:,} of {violations.of_pairs:,} row pairs"
        yield f"{of} violate it (error {violations.error:.3g})"
    if violations.coverage is not None:
        yield f"{share(violations.coverage)} of the values are contained"


def _inside(page: Page, table: TableSnapshot) -> None:
    indexes = count(len(table.indexes), "index", "indexes")
    page.line(f"{count(table.segments, 'segment')}, {indexes}", indent=2)
    if table.indexes:
        grid = figures("index", "distinct values", "selectivity")
        for index in table.indexes:
            share = f"{index.selectivity:.4g}"
            grid.add_row(plain(listed(index.columns)), f"{index.distinct:,}", share)
        page.table(grid, 4)
    for kind in families.REGISTRY.values():
        kind.explain(page, table)


def _settings(page: Page, options: dict[str, Any], sizes: dict[str, int]) -> None:
    page.line()
    page.line("options", "bold")
    for name, value in options.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value_text(value)
        page.line(f"{name}: {shown}", indent=2)
    page.line()
    page.line(f"on disk: {size(sum(sizes.values()))}", "bold")
    for kind, taken in sorted(sizes.items(), key=lambda item: -item[1]):
        page.line(f"{kind}: {size(taken)}", indent=2)


def changes(
    page: Page, outcome: Changes | BatchChanges, *, check: bool = False, verbose: bool = False
) -> None:
    """What a batch did, or with ``check`` would do, table by table."""
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
        _table_changes(page, each, check=check, verbose=verbose)
    if verbose and outcome.seconds:
        times = ", ".join(f"{stage} {spent:.2f} s" for stage, spent in outcome.seconds.items())
        page.line(f"times: {times}", "dim", 2)


def _table_changes(page: Page, outcome: Changes, *, check: bool, verbose: bool) -> None:
    check = check or outcome.refused
    what = f"checked against version {outcome.version}" if check else f"version {outcome.version}"
    rows = count(outcome.rows, "row")
    after = f"{rows} then" if check else f"{rows} now"
    page.line(f"{plain(outcome.table)}, {what}: {_batch(outcome)}; {after}", "bold")
    if outcome.quarantined is not None:
        _quarantined(page, outcome.quarantined)
    if outcome.refused:
        page.line("Nothing was applied: it would break what it should not.", "red", 2)
    if outcome.expectations is not None:
        _expectation_changes(page, outcome.expectations, check=check)
        if not verbose:
            _briefly(page, outcome, check=check)
            return
    _duplicates_changed(page, outcome, check)
    for kind in families.named_in(outcome.kinds):
        _kind_changes(page, kind, outcome.kinds[kind.field], check=check, verbose=verbose)
    if not outcome.duplicates and not any(each.any for each in outcome.kinds.values()):
        page.line("Nothing would change." if check else "Nothing gained, nothing broken.", "", 2)


def _quarantined(page: Page, left: Quarantine) -> None:
    """The rows that were not applied."""
    page.line(f"{count(left.rows, 'row')} quarantined, not applied", "yellow", 2)
    for rule, number in left.rules.items():
        page.line(f"{number:,} by {plain(rule)}", "", 4)
    for name in left.files[: page.limit]:
        page.line(plain(name), "dim", 4)
    page.more(len(left.files), 4)


def _expectation_changes(page: Page, rules: Sequence[ExpectationChange], *, check: bool) -> None:
    """What happens to the rules that people rely on: what breaks first, with rows that show it."""
    breaking = [each for each in rules if each.breaks]
    verb = "would break" if check else "broken"
    for severity in SEVERITIES:
        mine = [each for each in breaking if each.after.expectation.severity == severity]
        if not mine:
            continue
        note = "" if severity == ERROR else ", only a warning"
        style = _STYLES[severity]
        page.line(f"{count(len(mine), 'expected rule')} {verb}{note}", style, 2)
        for each in mine[: page.limit]:
            _violated(page, each, 4)
        page.more(len(mine), 4)
    others = [each for each in rules if not each.breaks]
    broken = sum(not each.after.holds for each in others)
    if broken:
        more = "; this batch adds nothing to that"
        page.line(f"{count(broken, 'expected rule')} did not hold before{more}", "yellow", 2)
    if holding := len(others) - broken:
        verb = "would hold" if check else "holds" if holding == 1 else "hold"
        page.line(f"{count(holding, 'expected rule')} {verb}", "green", 2)
    if not rules:
        page.line("no expected rule is about this table", "dim", 2)


_STYLES = {ERROR: "red", WARN: "yellow"}

_GROUPS = 3
"""So many groups of rows that violate a rule are shown, of those that are known."""


def _violated(page: Page, each: ExpectationChange, indent: int) -> None:
    """A rule that does not hold: how far from it the rows are, and some of them."""
    kept = each.after.expectation
    style = _STYLES[kept.severity]
    page.line(_called(kept), style, indent)
    rule = kept.constraint
    page.line(how_far(each.after), "", indent + 2)
    together = isinstance(rule, Key | FunctionalDependency)
    for group in each.groups[: None if page.limit is None else _GROUPS]:
        if together:
            page.line(_shared(rule, group.number), "dim", indent + 2)
        page.rows(group.rows, involved(rule), indent + 2)
        if group.number > len(group.rows):
            page.line(f"… and {group.number - len(group.rows):,} more", "dim", indent + 2)


def _called(kept: Expectation) -> str:
    """A rule with its name."""
    return plain(kept.rule if kept.name is None else f"{kept.rule}  ({kept.name})")


def _shared(rule: Rule, number: int) -> str:
    return f"{count(number, 'row')} {'share it' if isinstance(rule, Key) else 'agree on the left'}"


def _briefly(page: Page, outcome: Changes, *, check: bool) -> None:
    """What else happens, in a line for each kind: with expectations it is information."""
    said = []
    for kind in families.named_in(outcome.kinds):
        counts = outcome.kinds[kind.field].counts
        verbs = {"broken": "would break", "gained": "would be gained"} if check else {}
        numbers = [f"{counts[w]:,} {verbs.get(w, w)}" for w in ("broken", "gained") if counts[w]]
        if numbers:
            said.append(f"{kind.nouns[1]}: {', '.join(numbers)}")
    if outcome.duplicates and outcome.duplicates != outcome.duplicates_before:
        said.insert(0, _repeating(outcome.duplicates, would=check))
    if said:
        page.line("besides, not expected (--verbose tells more):", "dim", 2)
    for line in said:
        page.line(line, "dim", 4)


def expected(page: Page, rules: Sequence[ExpectationChange]) -> None:
    """Rules that were declared, and rows that violate those which do not hold."""
    for each in rules:
        if each.after.holds:
            page.line(f"expected, and holds: {_called(each.after.expectation)}", "green")
            continue
        page.line("expected, and does not hold:", _STYLES[each.after.expectation.severity])
        _violated(page, each, 2)


def expectations(page: Page, standings: Sequence[Standing]) -> None:
    """The rules that are expected, with their states."""
    if not standings:
        page.line("no rule is expected; holdfast expect declares one")
        return
    for each in standings:
        kept = each.expectation
        state = "holds" if each.holds else f"does not hold ({how_far(each)})"
        if each.holds and each.tally.wrong:
            state = f"holds ({how_far(each)})"
        severity = "" if kept.severity == ERROR else ", only a warning"
        page.line(_called(kept), "" if each.holds else _STYLES[kept.severity])
        page.line(f"{state}{severity}", "dim" if each.holds else "", 2)


def _kind_changes(
    page: Page, kind: Kind, changes: KindChanges, *, check: bool, verbose: bool
) -> None:
    """What happened to one kind of constraint, what broke first."""
    counts = changes.counts
    by_rows = [each for each in changes.broken if not each.repeated]
    repeated = [each for each in changes.broken if each.repeated]
    if by_rows:
        number = counts["broken"] - len(repeated)
        how = kind.how_broken if number == 1 else kind.how_broken.replace(" it", " each")
        verb = "would break" if check else "broken"
        page.line(f"{count(number, *kind.nouns)} {verb}{': ' if how else ''}{how}", "red", 2)
        for each in by_rows[: page.limit]:
            page.line(kind.body(each.constraint), "red", 4, breaks=kind.breaks)
            if each.witness and (how or verbose):
                page.rows(each.witness, getattr(each.constraint, "columns", ()), 6)
        page.more(number, 4)
    if repeated:
        verb = "would break" if check else "broken"
        heading = f"{count(len(repeated), *kind.nouns)} {verb}, only because rows are repeated"
        _listed(page, kind, [each.constraint for each in repeated], heading, "red", len(repeated))
    if changes.superseded:
        verb = "would become" if check else "became"
        page.line(f"{count(counts['superseded'], *kind.nouns)} {verb} shorter", "", 2)
        for shorter in changes.superseded[: page.limit]:
            both = f"{kind.body(shorter.constraint)} → {kind.body(shorter.by)}"
            page.line(both, "", 4, breaks=kind.breaks)
        page.more(counts["superseded"], 4)
    if changes.unchecked:
        left_out = count(counts["unchecked"], *kind.nouns)
        heading = f"{left_out} left out: longer than there was time to check"
        _listed(page, kind, changes.unchecked, heading, "", counts["unchecked"])
    if changes.gained:
        verb = "would be gained" if check else "gained"
        heading = f"{count(counts['gained'], *kind.nouns)} {verb}"
        _listed(page, kind, changes.gained, heading, "green", counts["gained"])
    if changes.errors:
        page.line(
            f"{count(counts['errors'], 'error')} of approximate {kind.nouns[1]} changed", "", 2
        )
        for error in changes.errors[: page.limit]:
            was, now = (_share(share) for share in (error.before, error.after))
            page.line(f"{kind.body(error.constraint)}  {was} → {now}", "", 4, breaks=kind.breaks)
        page.more(counts["errors"], 4)
    for name in [name for name in counts if name not in _LISTS and name.endswith("_gained")]:
        what = name.removesuffix("_gained")
        came, went = counts[name], counts[f"{what}_lost"]
        if came or went:
            page.line(f"{what.replace('_', '-')}: {came:,} gained, {went:,} lost", "dim", 2)


_LISTS = ("gained", "broken", "superseded", "unchecked", "errors")


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
        page.line(kind.body(each), style, 4, breaks=kind.breaks)
    page.more(total, 4)


def _share(error: float | None) -> str:
    return "none" if error is None else f"{error:.3g}"


def _duplicates_changed(page: Page, outcome: Changes, check: bool) -> None:
    now, before = outcome.duplicates, outcome.duplicates_before
    if now:
        was = "" if before in (0, now) else f" ({before:,} before)"
        _duplicates(page, now, outcome.duplicated, would=check, was=was)
        if before and any(each.any for each in outcome.kinds.values()):
            page.line("of the distinct rows:", indent=2)
    elif before:
        page.line(f"{_none_repeats(before, would=check)}: {_again()}", "", 2)


def _none() -> str:
    """What a table with repeated rows has none of."""
    kinds = families.REGISTRY.values()
    nouns = [kind.nouns[0] for kind in kinds if kind.needs_distinct_rows]
    return f"no {' or '.join(nouns)}"


def _again() -> str:
    kinds = families.REGISTRY.values()
    nouns = [kind.nouns[1] for kind in kinds if kind.needs_distinct_rows]
    return f"{' and '.join(nouns)} hold again"


def _none_repeats(before: int, *, would: bool = False) -> str:
    verb = "would repeat" if would else "repeats"
    return f"no row {verb} another one any more ({before:,} did)"


def _repeating(number: int, *, would: bool = False) -> str:
    verb = "would repeat" if would else "repeats" if number == 1 else "repeat"
    return f"{count(number, 'row')} {verb} another row"


def _duplicates(
    page: Page, number: int, rows: Sequence[Row], *, would: bool = False, was: str = ""
) -> None:
    page.line(f"{_none()}: {_repeating(number, would=would)}{was}", "red", 2)
    if some := rows[: page.limit]:
        page.rows(some, (), 4)


def _batch(outcome: Changes) -> str:
    counts = {
        "inserted": outcome.inserted,
        "deleted": outcome.deleted,
        "updated": outcome.updated,
        "skipped (not there)": outcome.skipped,
    }
    if outcome.quarantined is not None:
        counts["quarantined"] = outcome.quarantined.rows
    said = [f"{number:,} {verb}" for verb, number in counts.items() if number]
    return ", ".join(said) or "no rows changed"


def history(page: Page, entries: Sequence[Entry]) -> None:
    """The versions, oldest first; the latest ones when there are many."""
    tables = [counts for entry in entries for counts in entry.counts.values()]
    kinds = families.named_in(field for counts in tables for field in counts)
    latest = entries if page.limit is None else entries[-page.limit :]
    if len(latest) < len(entries):
        hidden = len(entries) - len(latest)
        page.line(f"… {hidden:,} earlier (--all shows them)", "dim")
    (_one_table if _fits(page, latest, kinds) else _by_version)(page, latest, kinds)
    if any(any(entry.duplicates.values()) for entry in latest):
        for kind in kinds:
            if kind.needs_distinct_rows:
                has = f"the distinct rows have n {kind.nouns[1]}"
                page.line(f"0 (n): a row repeats another one; {has}", "dim")


def _one_table(page: Page, entries: Sequence[Entry], kinds: Sequence[Kind]) -> None:
    """All versions in one table."""
    page.table(_versions(entries, kinds), 0)


def _by_version(page: Page, entries: Sequence[Entry], kinds: Sequence[Kind]) -> None:
    """A line for each version and a table below it, for a screen too narrow for one table."""
    for entry in entries:
        events = _events(entry, kinds)
        batch = "".join(f", batch {name}" for _, name, *_ in events if name)
        page.line(f"version {entry.version}, {_minute(entry)} UTC{batch}", "bold")
        if entry.event is not None:
            page.line(entry.event, indent=2)
            continue
        # Numbers of one kind need a word above them that is as short as they are.
        grid = figures("table", "rows changed", "rows", *(kind.name for kind in kinds))
        grid.columns[0].no_wrap = grid.columns[2].no_wrap = True
        grid.columns[1].justify = "left"
        for table, _, *others in events:
            grid.add_row(table, *others)
        page.table(grid, 2)


def _fits(page: Page, entries: Sequence[Entry], kinds: Sequence[Kind]) -> bool:
    """Whether one table of all versions is as wide as the screen, at most."""
    without_end = page.console.options.update(width=10_000)
    wanted = page.console.measure(_versions(entries, kinds), options=without_end).maximum
    return wanted <= page.console.width


def _versions(entries: Sequence[Entry], kinds: Sequence[Kind]) -> Table:
    numbers = [kind.nouns[1] for kind in kinds]
    grid = figures("version", "when (UTC)", "table", "batch", "rows changed", "rows", *numbers)
    for column in (1, 2, 3, 4):
        grid.columns[column].justify = "left"
    for entry in entries:
        version = str(entry.version), _minute(entry)
        for event in _events(entry, kinds):
            grid.add_row(*version, *event)
            version = "", ""  # shown on the first of its lines
    return grid


def _minute(entry: Entry) -> str:
    return moment(entry.created)[: len("2026-11-15 08:52")]


def _events(entry: Entry, kinds: Sequence[Kind]) -> list[list[str]]:
    """What a version did: a batch to some tables, or the first profile to each."""
    if entry.event is not None:
        return [["", "", entry.event, "", *("" for _ in kinds)]]
    if entry.changes is None:
        return [
            [plain(table), "", entry.without_batch, f"{rows:,}"]
            + [_number(kind, entry, table, entry.duplicates[table]) for kind in kinds]
            for table, rows in entry.tables.items()
        ]
    events = []
    batch = plain(entry.changes.batch_id or "")
    for table, happened in entry.by_table.items():
        numbers = [
            _number(kind, entry, table, happened.duplicates) + _change(kind, happened)
            for kind in kinds
        ]
        events.append([plain(table), batch, _batch(happened), f"{happened.rows:,}", *numbers])
        batch = ""  # shown on the first of its lines
    return events


def _number(kind: Kind, entry: Entry, table: str, duplicates: int) -> str:
    """How many constraints a table has: of some kinds none, where a row repeats another one."""
    number = entry.counts[table].get(kind.field)
    if number is None:
        return ""
    return f"0 ({number:,})" if duplicates and kind.needs_distinct_rows else f"{number:,}"


def _change(kind: Kind, happened: Changes) -> str:
    """How many came and went; not where repeated rows leave none."""
    changed = happened.kinds.get(kind.field)
    none = happened.duplicates and kind.needs_distinct_rows
    if changed is None or none or not changed.any:
        return ""
    lost = sum(changed.counts[what] for what in ("broken", "superseded", "unchecked"))
    return f" (+{changed.counts['gained']:,} −{lost:,})"


def diff(page: Page, one: int, two: int, tables: dict[str, TableDiff]) -> None:
    """What differs between two versions."""
    page.line(f"from version {one} to {two}")
    for name, table in tables.items():
        page.line()
        page.line(f"{plain(name)}: {table.rows[0]:,} → {count(table.rows[1], 'row')}", "bold")
        before, after = table.duplicates
        if before and after:
            page.line(f"{_none()}: {before:,} → {_repeating(after)}", "red", 2)
            page.line("of the distinct rows:", indent=2)
        elif after:
            page.line(f"{_none()} any more: {_repeating(after)}", "red", 2)
        elif before:
            page.line(f"{_none_repeats(before)}: {_again()}", indent=2)
        for kind in families.named_in(table.kinds):
            _kind_diff(page, kind, table.kinds[kind.field])


def _kind_diff(page: Page, kind: Kind, diff: KindDiff) -> None:
    for verb, style, some in (("lost", "red", diff.lost), ("gained", "green", diff.gained)):
        if some:
            shortest = sorted(some, key=_length)
            _listed(
                page, kind, shortest, f"{count(len(some), *kind.nouns)} {verb}", style, len(some)
            )
    if not diff.lost and not diff.gained:
        page.line(f"the same {kind.nouns[1]}", indent=2)


def _length(constraint: Constraint) -> int:
    return len(getattr(constraint, "columns", getattr(constraint, "lhs", ())))


def verification(page: Page, path: str, outcome: Verification) -> None:
    """Whether a profile equals a fresh one."""
    if outcome.equal:
        page.line(f"{path}, version {outcome.version}: equal to a fresh profile of its rows")
        return
    page.line(f"{path}, version {outcome.version}: differs from a fresh profile", "red")
    for name, sentences in outcome.differences.items():
        if sentences:
            page.line(plain(name), "bold", 2)
        for each in sentences[: page.limit]:
            page.line(plain(each), indent=4)
        page.more(len(sentences), 4)
