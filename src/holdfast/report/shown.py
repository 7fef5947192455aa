"""What ``holdfast show`` and ``Profile.show`` say of a version: as text for a page, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.kinds import registry
from holdfast.model.commits import unknown_table
from holdfast.model.errors import InputError
from holdfast.model.names import nearest
from holdfast.model.records import JsonObject
from holdfast.report import forms, terminal
from holdfast.runtime.objects import is_remote, shown

if TYPE_CHECKING:
    from holdfast.kinds.ranking import TableRanking
    from holdfast.model.constraints import AgreeSet
    from holdfast.model.results import Results
    from holdfast.report.snapshot import Snapshot
    from holdfast.screen.page import Page


class Known(Protocol):
    """What is asked of a profile."""

    @property
    def path(self) -> str:
        """The profile directory."""
        ...

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A version."""
        ...

    def ranking_of(self, snapshot: Snapshot) -> Mapping[str, TableRanking]:
        """What matters first in its tables."""
        ...

    def counts_pairs(self, table: str) -> bool:
        """Whether a table has agree-sets."""
        ...

    def agree_sets(self, table: str, *, at: int | None = None) -> Results[AgreeSet]:
        """Those of a version."""
        ...

    def sizes(self) -> dict[str, int]:
        """The bytes of its files."""
        ...


@dataclass(frozen=True)
class Shown:
    """Something to show, in either form."""

    form: Callable[[], JsonObject]
    text: Callable[[Page], None]


def version_shown(
    profile: Known,
    name: str,
    parts: Sequence[str] | None = None,
    *,
    table: str | None = None,
    version: int | None = None,
    min_coverage: float | None = None,
    limit: int | None = None,
    everything: bool = False,
    verbose: bool = False,
) -> Shown:
    """A version of a profile that is called so: what matters first in it, or these ``parts``;
    ``everything``, and with a ``limit`` so many entries, of each list."""
    expect_parts(parts or ())
    snapshot = profile.snapshot(version)
    if table is not None:
        if table not in snapshot.tables:
            raise unknown_table(table, snapshot.tables)
        snapshot = replace(snapshot, tables={table: snapshot.tables[table]})
    if parts == [registry.COLUMN_FACTS]:
        return Shown(
            lambda: forms.columns(snapshot, limit), lambda page: terminal.columns(page, snapshot)
        )
    if parts == [registry.AGREE_SETS]:
        return _agree_sets(profile, snapshot, version, limit)
    for kind in registry.REGISTRY.values():
        if parts is not None and len(parts) == 1 and parts[0] in [each.name for each in kind.parts]:
            snapshot.expect(kind)
    if min_coverage is not None:
        snapshot = snapshot.asked_with({"min_coverage": min_coverage})
    sizes = profile.sizes() if verbose else None
    ranking = profile.ranking_of(snapshot) if parts is None else None

    def form() -> JsonObject:
        return forms.show(
            snapshot, parts, verbose=verbose, sizes=sizes, limit=limit, ranking=ranking
        )

    def text(page: Page) -> None:
        if ranking is not None and not (everything or verbose or limit is not None):
            terminal.overview(page, name, snapshot, ranking)
        else:
            terminal.show(page, name, snapshot, parts, verbose=verbose, sizes=sizes)

    return Shown(form, text)


def _agree_sets(
    profile: Known, snapshot: Snapshot, version: int | None, limit: int | None
) -> Shown:
    # If no table has agree-sets, asking for those of the first is the error that says why.
    counted_tables = {*filter(profile.counts_pairs, snapshot.tables)} or {*snapshot.tables}
    counted: dict[str, list[AgreeSet] | None] = {
        name: profile.agree_sets(name, at=version) if name in counted_tables else None
        for name in snapshot.tables
    }
    return Shown(
        lambda: forms.agree_sets(snapshot, counted, limit),
        lambda page: terminal.agree_sets(page, counted),
    )


def expect_parts(names: Sequence[str]) -> None:
    """See that there are such lists."""
    known = registry.part_names()
    for part in names:
        if part not in known:
            near = nearest(part, known)
            hint = f"; did you mean {near!r}?" if near else "."
            raise InputError(f"there is no part {part!r}{hint} There are {', '.join(known)}")


def short_path(directory: str) -> str:
    """A profile directory from the current folder, if it is there."""
    if is_remote(directory):
        return shown(directory)
    whole, here = Path(directory).absolute(), Path.cwd()
    return str(whole.relative_to(here) if here in whole.parents else whole)
