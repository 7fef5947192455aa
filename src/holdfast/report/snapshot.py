"""What a version of a profile says: read from its files, without Spark and without kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.stored import StoredProfile, StoredTable, columns_of
from holdfast.model.columns import ColumnFacts
from holdfast.model.commits import Choice, Commit, EvidenceRecord, TableRecord
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import AgreeSet, Key, NonKey, Row, shortest_first
from holdfast.model.errors import InputError
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.limits import Limits
from holdfast.model.near import NearList, NearRule
from holdfast.model.options import Settings
from holdfast.model.samples import pattern_of
from holdfast.store import Store
from holdfast.store.codecs import stored_file

if TYPE_CHECKING:
    from holdfast.kinds.functional_dependencies.reading import Dependencies
    from holdfast.kinds.inclusion_dependencies.reading import Inclusions
    from holdfast.kinds.keys.reading import FoundKeys


@dataclass(frozen=True)
class Index:
    """An index over columns; selectivity is distinct values per row, 1 for a key. That of several
    columns is at least that of each."""

    columns: tuple[str, ...]
    distinct: int  # estimated
    selectivity: float


@dataclass(frozen=True)
class TableSnapshot:
    """One table in one version."""

    name: str
    rows: int
    columns: tuple[str, ...]
    types: tuple[str, ...]
    duplicates: int
    duplicated: tuple[Any, ...]  # one row that occurs twice, as it was shown
    found: Mapping[str, Any] = field(default_factory=dict)  # by the kinds that looked, by name
    max_error: float | None = None  # the bound on the errors of what is listed
    evidence: Mapping[str, EvidenceRecord] = field(default_factory=dict)  # by space
    segments: int = 0
    indexes: tuple[Index, ...] = ()
    distinct: tuple[float, ...] = ()  # estimated distinct values per column
    facts: tuple[ColumnFacts, ...] = ()  # of each column
    near: NearList | None = None  # the rules that nearly hold; None: they were not looked for

    @property
    def near_rules(self) -> tuple[NearRule, ...]:
        """The rules that rows break which nearly hold, the strongest first; none where they were
        not looked for."""
        return self.near.listed if self.near else ()

    @property
    def keys(self) -> tuple[Key, ...]:
        """The minimal keys of the distinct rows."""
        return self._keys.keys if self._keys else ()

    @property
    def approximate_keys(self) -> tuple[Key, ...]:
        """Keys within the bound on the error, but violated."""
        return self._keys.approximate_keys if self._keys else ()

    @property
    def non_keys(self) -> tuple[NonKey, ...]:
        """The maximal non-keys."""
        return self._keys.non_keys if self._keys else ()

    @property
    def _keys(self) -> FoundKeys | None:
        return self.found.get(registry.KEYS.name)

    @property
    def functional_dependencies(self) -> Dependencies | None:
        """The minimal functional dependencies; None: they were not looked for."""
        return self.found.get(registry.FDS.name)

    @property
    def choice(self) -> Choice | None:
        """How functional dependencies are known; None: no pairs of rows are compared."""
        return self.evidence[AGREEMENTS].choice if AGREEMENTS in self.evidence else None

    @property
    def limits(self) -> Limits:
        """The most columns of a key, and of a left side, up to which all of them are listed."""
        return self.evidence[AGREEMENTS].limits if AGREEMENTS in self.evidence else Limits()

    def __repr__(self) -> str:
        sizes = {"rows": self.rows, "columns": len(self.columns)}
        for kind, parts in registry.table_parts().items():
            if kind.name in self.found:
                sizes |= {part.nouns[1]: len(part.listed(self)) for part in parts}
        sizes |= {"repeated rows": self.duplicates} if self.duplicates else {}
        numbers = ", ".join(f"{what} {size:,}" for what, size in sizes.items())
        return f"<TableSnapshot {self.name!r}: {numbers}>"


@dataclass(frozen=True)
class Snapshot:
    """One version."""

    version: int
    created: str
    options: Settings
    tables: dict[str, TableSnapshot]
    found: Mapping[str, Any] = field(default_factory=dict)  # across tables, by the kinds' names

    @property
    def inclusions(self) -> Inclusions | None:
        """Which columns are contained in which; None: that was not looked for."""
        return self.found.get(registry.INDS.name)

    def expect(self, kind: Kind) -> None:
        """See that the profile looks for a kind, or knows it all the same."""
        known = {*self.found, *(name for table in self.tables.values() for name in table.found)}
        if not kind.optional and kind.name not in {*self.options["kinds"], *known}:
            raise kind.missing(self.options["kinds"])

    def asked_with(self, options: Settings) -> Snapshot:
        """The same, with other values of options than the profile's."""
        kinds = registry.REGISTRY.values()
        concerned = {kind.name: kind for kind in kinds if {*options} & {*kind.options}}
        for kind in concerned.values():
            self.expect(kind)

        def again(readings: Mapping[str, Any]) -> dict[str, Any]:
            asked = {name: readings[name] for name in readings if name in concerned}
            return {**readings, **{n: concerned[n].asked_with(asked[n], options) for n in asked}}

        tables = {name: replace(t, found=again(t.found)) for name, t in self.tables.items()}
        return replace(self, tables=tables, found=again(self.found))

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} (rows {each.rows:,})" for name, each in self.tables.items())
        return f"<Snapshot of version {self.version}, {self.created}: {tables}>"


def snapshot(store: Store, version: int | None = None) -> Snapshot:
    """Everything that a version says. Witnesses are those of the current version only."""
    return store.ask(lambda asked: _snapshot(store, asked, version is None), version)


def _snapshot(store: Store, version: int, last: bool) -> Snapshot:
    return snapshot_of(store, store.read(version), last or version == store.head())


def snapshot_of(store: Store, commit: Commit, current: bool = True) -> Snapshot:
    """What a commit says, which need not be published yet, though its files are written."""
    options = dict(sorted(commit.options.to_dict().items()))
    tables = {
        name: _table(StoredTable(store, name, record, options, current))
        for name, record in commit.tables.items()
    }
    whole = StoredProfile(store, commit, options, tables)
    kinds = registry.REGISTRY.values()
    readings = _looked_for({kind.name: kind.of_profile(whole) for kind in kinds})
    counted: dict[Attribute, int] = {}
    for kind in registry.named(readings):
        counted |= kind.distinct_values(readings[kind.name])
    nulls = options["inclusion_nulls"] == "values"
    for name, table in tables.items():
        facts = tuple(_with_distinct(each, table, counted, nulls) for each in table.facts)
        tables[name] = replace(table, facts=facts)
    return Snapshot(commit.version, commit.created, options, tables, readings)


def _table(table: StoredTable) -> TableSnapshot:
    record, names = table.record, table.columns
    sampled = any(kind.samples for kind in registry.named(table.options["kinds"]))
    readings = {kind.name: kind.of_table(table) for kind in registry.REGISTRY.values()}
    return TableSnapshot(
        table.name,
        record.rows,
        record.columns.names,
        record.columns.types,
        record.duplicates,
        tuple(_in_order(row, names) for row in record.duplicated),
        _looked_for(readings),
        table.options["max_error"],
        record.evidence,
        len(record.segments),
        tuple(_index(record, name) for name in record.indexed),
        record.distinct,
        tuple(_facts(table.name, record, c, sampled) for c in range(len(names))),
        record.near,
    )


def _facts(table: str, record: TableRecord, column: int, sampled: bool) -> ColumnFacts:
    """What the rows tell of a column; its distinct values as they were estimated. What occurs in it
    is told where it is ``sampled``: a kind that is looked for needs it."""
    facts = ColumnFacts(table, record.columns.names[column], record.columns.types[column])
    if not record.facts:
        return facts
    known = record.facts[column]
    if record.estimated_at or not record.rows:
        # A null is one more value to the estimate.
        estimate = round(record.distinct[column]) - bool(known.nulls) if record.rows else 0
        most = record.rows - known.nulls
        number = min(max(estimate, int(most > 0)), most)
        facts = replace(facts, distinct=number, estimated=most > 1)
    lowest, highest = (end.value if end else None for end in (known.lowest, known.highest))
    facts = replace(facts, nulls=known.nulls, minimum=lowest, maximum=highest)
    if not sampled:
        known = replace(known, values=None, shapes=None)
    if known.values is not None and not known.values.more:
        labels = {label: rows for _, rows, label in known.values.entries if label is not None}
        number = len(known.values.entries)
        is_few = len(labels) == number and 0 < 2 * number <= sum(labels.values())
        listed = labels if is_few else None
        facts = replace(facts, distinct=number, estimated=False, values=listed)
    pattern = None if known.shapes is None else pattern_of(known.shapes)
    at_minimum = known.lowest.rows if known.lowest else None
    return replace(facts, pattern=pattern, at_minimum=at_minimum)


def _with_distinct(
    facts: ColumnFacts, table: TableSnapshot, counted: Mapping[Attribute, int], nulls: bool
) -> ColumnFacts:
    """With the exact number of distinct values where it is known: where values are counted
    (``nulls``: a null with them), and of a column that is a key."""
    attribute = Attribute(facts.table, facts.name)
    if attribute in counted:
        one = nulls and (facts.nulls is None or facts.nulls > 0)
        return replace(facts, distinct=counted[attribute] - one, estimated=False)
    unique = not table.duplicates and any(key.columns == (facts.name,) for key in table.keys)
    if unique and facts.nulls is not None:
        return replace(facts, distinct=table.rows - facts.nulls, estimated=False)
    return facts


def _index(record: TableRecord, name: str) -> Index:
    places = [*dict.fromkeys(int(place) for place in name.split("+"))]
    distinct = max(1.0, *(record.distinct[place] for place in places))
    share = min(1.0, distinct / max(record.estimated_at or record.rows, 1))
    columns = tuple(record.columns.names[place] for place in places)
    return Index(columns, round(distinct), round(share, 6))


def _looked_for(readings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in readings.items() if each is not None}


def _in_order(row: Row, names: list[str]) -> Row:
    """A row as a commit holds it, with its columns in table order again."""
    return {name: row[name] for name in names} if {*row} == {*names} else row


def agree_sets(store: Store, table: str, at: int | None = None) -> list[AgreeSet]:
    """All agree-sets of a table with their numbers of pairs, shortest first, now or ``at`` a
    version."""

    def answer(version: int) -> list[AgreeSet]:
        record = store.read(version).table(table)
        # Only the last version's numbers are kept, and what every batch changed.
        changes = _recounted(store, table, version if at is None else at, version)
        files = record.evidence[AGREEMENTS].files["agree"]
        total = _added_up(store, record, files[:1], files[1:])
        for columns, change in changes.items():
            total[columns] = total.get(columns, 0) - change
        return _agree_sets(total, record)

    return store.ask(answer)


def changed_agree_sets(store: Store, table: str, since: int) -> list[AgreeSet]:
    """How the numbers of pairs of a table changed after a version."""
    record = store.read().table(table)
    return _agree_sets(_recounted(store, table, since, store.head()), record)


def _recounted(store: Store, table: str, since: int, last: int) -> dict[tuple[str, ...], int]:
    """How batches changed the numbers of pairs, all of which were counted."""
    if not store.first() <= since <= last:
        raise InputError(f"there is no version {since}; there are {store.first()} to {last}")
    records = {each: store.read(each).table(table) for each in range(since, last + 1)}
    if without := [version for version, each in records.items() if not is_counted(each)]:
        raise InputError(
            f"the pairs of rows of {table!r} were not counted in version {without[-1]}; "
            f"ask for version {without[-1] + 1} or later"
        )
    columns = records[last].columns.names
    if other := [version for version, each in records.items() if each.columns.names != columns]:
        raise InputError(
            f"{table!r} had other columns in version {other[-1]}; ask for version {other[-1] + 1} "
            "or later"
        )
    files = [each.evidence[AGREEMENTS].files["agree"] for each in records.values()]
    # What a version changed is the last of its files, if it changed anything.
    changes = [new[-1] for old, new in pairwise(files) if new != old]
    return _added_up(store, records[last], (), changes)


def is_counted(record: TableRecord, space: str = AGREEMENTS) -> bool:
    """Whether all pairs of a table's rows are counted in a space."""
    return space in record.evidence and "agree" in record.evidence[space].files


def _added_up(
    store: Store, record: TableRecord, bases: Sequence[str], changes: Sequence[str]
) -> dict[tuple[str, ...], int]:
    """Numbers of pairs, by columns: all those in some files, and what others changed of them."""
    total: dict[tuple[str, ...], int] = {}
    for column, files in (("pairs", bases), ("change", changes)):
        for path in files:
            kept = stored_file(store, path)
            sets = columns_of(kept.column("mask"), list(record.columns.names))
            for columns, pairs in zip(sets, kept.column(column).to_pylist(), strict=True):
                total[columns] = total.get(columns, 0) + pairs
    return total


def _agree_sets(total: dict[tuple[str, ...], int], record: TableRecord) -> list[AgreeSet]:
    sets = [AgreeSet(columns, pairs) for columns, pairs in total.items() if pairs]
    return shortest_first(sets, record.columns.names)
