"""What the terminal shows: short, the shortest sets first, and never wider than the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from holdfast import families
from holdfast.families.base import Kind
from holdfast.model.changes import (
    Changes,
    Entry,
    KindChanges,
    KindDiff,
    TableDiff,
    Verification,
)
from holdfast.model.constraints import (
    AgreeSet,
    Constraint,
    ForeignKey,
    FunctionalDependency,
    InclusionDependency,
    Key,
    NonKey,
    Row,
    shortest_first,
)
from holdfast.model.names import listed
from holdfast.report import forms
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.screen.page import GAP, cell, figures
from holdfast.screen.page import Page as Page
from holdfast.screen.text import count, moment, plain, share, size, value_text

_NULLS = {
    "equal": "Two nulls count as equal.",
    "unequal": "A null differs from every value, also from another null.",
}


_INCLUSION_NULLS = {
    "ignored": "A null need not occur on the right side.",
    "values": "A null is a value: it has to occur on the right side, too.",
}


_FEW_DEPENDENCIES = 10_000
"""Up to so many functional dependencies are told apart by whether a key implies them."""


def show(
    page: Page,
    path: str,
    snapshot: Snapshot,
    parts: Sequence[str] = forms.PARTS,
    *,
    verbose: bool = False,
    sizes: dict[str, int] | None = None,
) -> None:
    """A version of a profile."""
    page.line(f"{path}, version {snapshot.version} of {moment(snapshot.created)} UTC")
    of_tables = [part for part in parts if part in forms.TABLE_PARTS]
    if of_tables:
        page.line(_NULLS[snapshot.options["nulls"]], "dim")
    for table in snapshot.tables.values() if of_tables or verbose else ():
        page.line()
        rows, columns = count(table.rows, "row"), count(len(table.columns), "column")
        page.line(f"{plain(table.name)}: {rows}, {columns}", "bold")
        if table.duplicates:
            _duplicates(page, table.duplicates, table.duplicated)
        if "keys" in parts and forms.seeks_keys(snapshot.options):
            _keys(page, table, snapshot.options)
        if "non_keys" in parts and forms.seeks_keys(snapshot.options):
            _non_keys(page, table, snapshot.options, verbose)
        if "fds" in parts and table.functional_dependencies is not None:
            _dependencies(page, table, snapshot.options)
        elif "fds" in parts and forms.is_left_out(table, snapshot.options):
            why = table.details["pairs"]["choice"]["reason"]
            page.line(f"functional dependencies were not searched for: {why} (--kinds)", "", 2)
        if verbose:
            _inside(page, table)
    if snapshot.inclusions is not None:
        # That there are none is told to those who ask for nothing else.
        asked = len(parts) == 1
        contained = forms.about(snapshot, snapshot.inclusions.dependencies())
        if "inds" in parts and (contained or asked):
            _inclusions(page, contained, snapshot.options)
        keys = forms.about(snapshot, snapshot.inclusions.foreign_keys())
        if "foreign_keys" in parts and (keys or asked):
            _foreign_keys(page, keys)
    if verbose:
        _settings(page, snapshot.options, sizes or {})


def _inclusions(page: Page, found: Sequence[InclusionDependency], options: dict[str, Any]) -> None:
    page.line()
    heading = count(len(found), "inclusion dependency", "inclusion dependencies")
    page.line(heading if found else "no inclusion dependency", "bold")
    page.line(_INCLUSION_NULLS[options["inclusion_nulls"]], "dim", 2)
    for each in found[: page.limit]:
        page.line(plain(str(each)) + _covered(each), "green" if each.coverage == 1 else "", 2)
    page.more(len(found))


def _foreign_keys(page: Page, found: Sequence[ForeignKey]) -> None:
    page.line()
    page.line(count(len(found), "foreign key") if found else "no foreign key", "bold")
    if found:
        page.line("The score says how likely each is meant as one: 0 to 1.", "dim", 2)
    for each in found[: page.limit]:
        line = f"{each.score:.2f}  {plain(str(each))}{_covered(each)}"
        page.line(line, "green" if each.coverage == 1 else "", 2, hang=6)
    page.more(len(found))


def _covered(each: InclusionDependency | ForeignKey, still: str = "") -> str:
    """How many of the dependent's values are contained, where it is not all of them."""
    if each.coverage is None or each.coverage == 1:
        return ""
    return f"  ({still}{share(each.coverage)} of the values)"


def _keys(page: Page, table: TableSnapshot, options: dict[str, Any]) -> None:
    keys = shortest_first(table.keys, table.columns)
    heading = count(len(keys), "key") if keys else "no key"
    if table.duplicates:
        heading += " if the duplicated rows were removed"
    page.line(heading + _limited(table, options, "keys"), indent=2)
    for key in keys[: page.limit]:
        page.line(_set(key), "green", 4)
    page.more(len(keys), 4)
    if near := table.approximate_keys:
        page.line(count(len(near), "approximate key"), indent=2)
        for key in near[: page.limit]:
            page.line(f"{_set(key)}  (shared by {key.error:.3g} of the row pairs)", indent=4)
        page.more(len(near), 4)


def _dependencies(page: Page, table: TableSnapshot, options: dict[str, Any]) -> None:
    """The functional dependencies; those that a key implies are counted unless all are shown."""
    found = table.functional_dependencies or ()
    heading = count(len(found), "functional dependency", "functional dependencies")
    if not found:
        heading = "no functional dependency"
    shown: Sequence[FunctionalDependency] = found
    if len(found) <= _FEW_DEPENDENCIES:
        # What a key determines is everything: worth a number, but not a line each.
        keys = {key.columns for key in table.keys}
        near = {key.columns for key in table.approximate_keys}
        others = [each for each in found if each.lhs not in (keys | near if each.error else keys)]
        if len(others) < len(found):
            implied = "all" if not others else f"{len(found) - len(others):,}"
            heading += f", {implied} with a key on the left"
            if page.limit is not None:
                heading += " (--all shows them)"
                shown = others
    page.line(heading + _limited(table, options, "functional_dependencies"), "", 2)
    for each in shown[: page.limit]:
        error = f"  (violated by {each.error:.3g} of the row pairs)" if each.error else ""
        page.line(plain(each.body) + error, "green" if not each.error else "", 4)
    page.more(len(shown), 4)


def agree_sets(page: Page, counted: dict[str, list[AgreeSet] | None]) -> None:
    """Agree-sets, those of most pairs first; None: the pairs of a table are not counted."""
    for place, (name, found) in enumerate(counted.items()):
        if place:
            page.line()
        if found is None:
            page.line(f"{plain(name)}: pairs of rows are not counted", "bold")
            continue
        page.line(f"{plain(name)}: {count(len(found), 'agree-set')}", "bold")
        most = max((len(f"{each.pairs:,}") for each in found), default=0)
        for each in sorted(found, key=lambda each: -each.pairs)[: page.limit]:
            pairs = f"{each.pairs:>{most},} {'pair ' if each.pairs == 1 else 'pairs'}  "
            page.line(pairs + plain(listed(each.columns)), indent=2, hang=len(pairs))
        page.more(len(found))


def _non_keys(page: Page, table: TableSnapshot, options: dict[str, Any], verbose: bool) -> None:
    found = shortest_first(table.non_keys, table.columns)
    heading = count(len(found), "maximal non-key") if found else "no non-key"
    page.line(heading + _limited(table, options, "non_keys"), indent=2)
    if verbose:
        for non_key in found[: page.limit]:
            page.line(_set(non_key), "yellow", 4)
            if non_key.witness:
                page.rows(non_key.witness, non_key.columns, 6)
    elif found:
        _with_shared(page, found[: page.limit], 4)
    page.more(len(found), 4)


def _with_shared(page: Page, found: Sequence[NonKey], indent: int) -> None:
    """Non-keys beside what two rows share or, where the names would leave too little room for
    that, above it. Names are shown whole, values as far as they fit."""
    sets = [_set(non_key) for non_key in found]
    shared = [_shared(non_key) for non_key in found]
    room = page.console.width - indent
    names = max(map(cell_len, ["columns", *sets]))
    values = max(each.cell_len for each in shared)
    beside = names + GAP + values <= room or names <= room // 3
    left = room - (names + GAP if beside else 2 * GAP)
    for each in shared:
        each.truncate(max(1, left), overflow="ellipsis")
    if not values:
        for columns in sets:
            page.line(columns, "yellow", indent)
    elif beside:
        grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        grid.add_column("columns", style="yellow", no_wrap=True)
        grid.add_column("shared by two rows", no_wrap=True)
        for columns, cells in zip(sets, shared, strict=True):
            grid.add_row(columns, cells)
        page.table(grid, indent)
    else:
        page.line("columns, and what two rows share in them", "dim", indent)
        for columns, cells in zip(sets, shared, strict=True):
            page.line(columns, "yellow", indent)
            page.line(cells, "", indent + 2 * GAP)


def _limited(table: TableSnapshot, options: dict[str, Any], part: str) -> str:
    """Why a list may lack something."""
    most = forms.longest(table, options, part)
    if most is None:
        return ""
    why = "there may be more"
    if ("keys" if part == "non_keys" else part) in forms.complete_up_to(table, options):
        why = f"the time budget of {options['time_budget']:g} s ended there"
    return f" (searched up to {count(most, 'column')}: {why})"


def _shared(non_key: NonKey) -> Text:
    """The values that the witness rows share."""
    if non_key.witness is None:
        return Text("")
    row = non_key.witness[0]
    if not all(column in row for column in non_key.columns):
        return Text(" and ").join(cell(each) for each in non_key.witness)
    return Text(" | ").join(cell(row[column]) for column in non_key.columns)


def _inside(page: Page, table: TableSnapshot) -> None:
    indexes = forms.indexes(table)
    segments = len(table.details.get("segments", ()))
    page.line(f"{count(segments, 'segment')}, {count(len(indexes), 'index', 'indexes')}", indent=2)
    if indexes:
        grid = figures("index", "distinct values", "selectivity")
        for index in indexes:
            share = f"{index['selectivity']:.4g}"
            name = plain(listed(index["columns"]))
            grid.add_row(name, f"{index['distinct']:,}", share)
        page.table(grid, 4)
    choice = (table.details.get("pairs") or {}).get("choice", {"strategy": None})
    if choice["strategy"] is not None:
        page.line(f"functional dependencies: {choice['strategy']}, {choice['reason']}", indent=2)
        seconds, limit = f"{choice['seconds']:,.1f} s", f"{choice['limit']:,.0f} s"
        page.line(f"counting all pairs: about {seconds}; the limit is {limit}", "dim", 4)


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


def changes(page: Page, outcome: Changes, *, check: bool = False, verbose: bool = False) -> None:
    """What a batch did, or with ``check`` would do."""
    table = plain(outcome.table)
    if outcome.applied_before:
        batch = plain(outcome.batch_id or "")
        page.line(
            f"{table}: batch {batch!r} was applied before, as version {outcome.version}; "
            "nothing to do"
        )
        return
    what = f"checked against version {outcome.version}" if check else f"version {outcome.version}"
    rows = count(outcome.rows, "row")
    after = f"{rows} then" if check else f"{rows} now"
    page.line(f"{table}, {what}: {_batch(outcome)}; {after}", "bold")
    _duplicates_changed(page, outcome, check)
    for kind in families.named_in(outcome.kinds):
        _kind_changes(page, kind, outcome.kinds[kind.field], check=check, verbose=verbose)
    if not outcome.duplicates and not any(each.any for each in outcome.kinds.values()):
        page.line("Nothing would change." if check else "Nothing gained, nothing broken.", "", 2)
    if verbose and outcome.seconds:
        times = ", ".join(f"{stage} {spent:.2f} s" for stage, spent in outcome.seconds.items())
        page.line(f"times: {times}", "dim", 2)


def _kind_changes(
    page: Page, kind: Kind, changes: KindChanges, *, check: bool, verbose: bool
) -> None:
    """What happened to one kind of constraint, what broke first."""
    counts = changes.counts
    by_rows = [each for each in changes.broken if not each.repeated]
    repeated = [each for each in changes.broken if each.repeated]
    if by_rows:
        number = counts["broken"] - len(repeated)
        how = kind.how_broken if number == 1 else kind.how_broken.replace("on it", "on each")
        verb = "would break" if check else "broken"
        page.line(f"{count(number, *kind.nouns)} {verb}{': ' if how else ''}{how}", "red", 2)
        for each in by_rows[: page.limit]:
            page.line(_body(each.constraint), "red", 4)
            if each.witness and (how or verbose):
                page.rows(each.witness, getattr(each.constraint, "columns", ()), 6)
        page.more(number, 4)
    if repeated:
        verb = "would break" if check else "broken"
        heading = f"{count(len(repeated), *kind.nouns)} {verb}, only because rows are repeated"
        _listed(page, [each.constraint for each in repeated], heading, "red", len(repeated))
    if changes.superseded:
        verb = "would become" if check else "became"
        page.line(f"{count(counts['superseded'], *kind.nouns)} {verb} shorter", "", 2)
        for shorter in changes.superseded[: page.limit]:
            page.line(f"{_body(shorter.constraint)} → {_body(shorter.by)}", "", 4)
        page.more(counts["superseded"], 4)
    if changes.unchecked:
        left_out = count(counts["unchecked"], *kind.nouns)
        heading = f"{left_out} left out: longer than there was time to check"
        _listed(page, changes.unchecked, heading, "", counts["unchecked"])
    if changes.gained:
        verb = "would be gained" if check else "gained"
        heading = f"{count(counts['gained'], *kind.nouns)} {verb}"
        _listed(page, changes.gained, heading, "green", counts["gained"])
    if changes.errors:
        page.line(
            f"{count(counts['errors'], 'error')} of approximate {kind.nouns[1]} changed", "", 2
        )
        for error in changes.errors[: page.limit]:
            was, now = (_share(share) for share in (error.before, error.after))
            page.line(f"{_body(error.constraint)}  {was} → {now}", "", 4)
        page.more(counts["errors"], 4)
    for name in [name for name in counts if name not in _LISTS and name.endswith("_gained")]:
        what = name.removesuffix("_gained")
        came, went = counts[name], counts[f"{what}_lost"]
        if came or went:
            page.line(f"{what.replace('_', '-')}: {came:,} gained, {went:,} lost", "dim", 2)


_LISTS = ("gained", "broken", "superseded", "unchecked", "errors")


def _listed(
    page: Page, constraints: Sequence[Constraint], heading: str, style: str, total: int
) -> None:
    page.line(heading, style, 2)
    for each in constraints[: page.limit]:
        page.line(_body(each), style, 4)
    page.more(total, 4)


def _body(constraint: Constraint) -> str:
    """A constraint under its table's heading; keys by their columns alone."""
    if isinstance(constraint, Key):
        return _set(constraint)
    covered = ""
    if isinstance(constraint, InclusionDependency):
        covered = _covered(constraint, "still ")
    return plain(constraint.body) + covered


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
        page.line(f"{_none_repeats(before, would=check)}: keys hold again", "", 2)


def _none_repeats(before: int, *, would: bool = False) -> str:
    verb = "would repeat" if would else "repeats"
    return f"no row {verb} another one any more ({before:,} did)"


def _repeating(number: int, *, would: bool = False) -> str:
    verb = "would repeat" if would else "repeats" if number == 1 else "repeat"
    return f"{count(number, 'row')} {verb} another row"


def _duplicates(
    page: Page, number: int, rows: Sequence[Row], *, would: bool = False, was: str = ""
) -> None:
    page.line(f"no key: {_repeating(number, would=would)}{was}", "red", 2)
    if rows:
        page.rows(rows[: page.limit], (), 4)


def _batch(outcome: Changes) -> str:
    counts = {
        "inserted": outcome.inserted,
        "deleted": outcome.deleted,
        "updated": outcome.updated,
    }
    said = [f"{number:,} {verb}" for verb, number in counts.items() if number]
    return ", ".join(said) or "no rows changed"


def history(page: Page, entries: Sequence[Entry]) -> None:
    """The versions, oldest first; the latest ones when there are many."""
    grid = figures("version", "when (UTC)", "table", "batch", "rows changed", "rows", "keys")
    for column in (1, 2, 3, 4):
        grid.columns[column].justify = "left"
    for column in (0, 1, 5):
        grid.columns[column].no_wrap = True
    latest = entries if page.limit is None else entries[-page.limit :]
    if len(latest) < len(entries):
        hidden = len(entries) - len(latest)
        page.line(f"… {hidden:,} earlier (--all shows them)", "dim")
    for entry in latest:
        version = str(entry.version), moment(entry.created)[: len("2026-11-15 08:52")]
        for event in _events(entry):
            grid.add_row(*version, *event)
            version = "", ""  # told on the first of its lines
    page.table(grid, 0)
    if any(any(entry.duplicates.values()) for entry in latest):
        page.line("0 (n): a row repeats another one; the distinct rows have n keys", "dim")


def _events(entry: Entry) -> list[tuple[str, str, str, str, str]]:
    """What a version did: a batch to one table, or the first profile to each."""
    happened = entry.changes
    if happened is None:
        return [
            (
                plain(table),
                "",
                "first profile",
                f"{rows:,}",
                _key_count(entry.keys[table], entry.duplicates[table]),
            )
            for table, rows in entry.tables.items()
        ]
    keys = _key_count(entry.keys[happened.table], happened.duplicates)
    changed = happened.kinds.get("keys")
    if changed is not None and not happened.duplicates and changed.any:
        lost = sum(changed.counts[what] for what in ("broken", "superseded", "unchecked"))
        keys += f" (+{changed.counts['gained']:,} −{lost:,})"
    batch = plain(happened.batch_id or "")
    return [(plain(happened.table), batch, _batch(happened), f"{happened.rows:,}", keys)]


def _key_count(keys: int, duplicates: int) -> str:
    """How many keys a table has: none where a row repeats another one."""
    return f"0 ({keys:,})" if duplicates else f"{keys:,}"


def diff(page: Page, one: int, two: int, tables: dict[str, TableDiff]) -> None:
    """What differs between two versions."""
    page.line(f"from version {one} to {two}")
    for name, table in tables.items():
        page.line()
        page.line(f"{plain(name)}: {table.rows[0]:,} → {count(table.rows[1], 'row')}", "bold")
        before, after = table.duplicates
        if before and after:
            page.line(f"no key: {before:,} → {_repeating(after)}", "red", 2)
            page.line("of the distinct rows:", indent=2)
        elif after:
            page.line(f"no key any more: {_repeating(after)}", "red", 2)
        elif before:
            page.line(f"{_none_repeats(before)}: keys hold again", indent=2)
        for kind in families.named_in(table.kinds):
            _kind_diff(page, kind, table.kinds[kind.field])


def _kind_diff(page: Page, kind: Kind, diff: KindDiff) -> None:
    for verb, style, some in (("lost", "red", diff.lost), ("gained", "green", diff.gained)):
        if some:
            shortest = sorted(some, key=_length)
            _listed(page, shortest, f"{count(len(some), *kind.nouns)} {verb}", style, len(some))
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
    for name, found in outcome.differences.items():
        if found:
            page.line(plain(name), "bold", 2)
        for each in found[: page.limit]:
            page.line(plain(each), indent=4)
        page.more(len(found), 4)


def _set(constraint: Key | NonKey) -> str:
    return plain(listed(constraint.columns))
