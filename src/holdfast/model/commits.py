"""What a commit stores: a version, its tables, what is known of them, and where that lies.

These are plain values: names of files, numbers and text. :mod:`holdfast.model.records` reads and
writes their JSON forms, ``docs/directory-format.md`` describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.model.batch_indexes import LookUp
from holdfast.model.comparisons import Space
from holdfast.model.concealment import SecretRecord
from holdfast.model.constraints import Row
from holdfast.model.errors import UnknownTableError
from holdfast.model.expectations import Standing
from holdfast.model.limits import Limits
from holdfast.model.names import lacking
from holdfast.model.near import NearList
from holdfast.model.options import Options
from holdfast.model.records import ADDED, Serializable
from holdfast.model.samples import Sample

Form = dict[str, Any]
"""A JSON object that a commit stores and somebody else reads."""


@dataclass(frozen=True)
class Segment:
    """Where a segment's files are, relative to the profile, and how many rows it has."""

    number: int
    rows: int
    live: int
    words: str
    raw: str | None
    dead: str | None = None
    indexes: dict[str, str] = field(default_factory=dict)  # name → file

    @property
    def base(self) -> int:
        """The row id of position 0."""
        return self.number << 32

    @property
    def files(self) -> list[str]:
        """Every file of the segment."""
        rest = [self.raw] if self.raw else []
        rest += [self.dead] if self.dead else []
        return [self.words, *rest, *self.indexes.values()]


@dataclass(frozen=True)
class ColumnsRecord:
    """A table's columns: their names, their types in Spark's words, and the Arrow schema of the raw
    rows as base64; whether keyed hashes are kept in place of the cells."""

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    arrow: str = ""
    concealed: bool = field(default=False, metadata=ADDED)


@dataclass(frozen=True)
class SourceRecord:
    """How a table's first rows were read, which later batches follow."""

    format: str = "dataframe"
    options: dict[str, Any] = field(default_factory=dict)  # Spark's own, as they were given
    schema: str | None = None
    all_text: bool = False
    multi_line: bool = False
    delimiter: str | None = None
    header: bool = True
    escape: str | None = None
    encoding: str | None = None
    null_values: tuple[str, ...] = ()
    flatten: bool = field(default=False, metadata=ADDED)
    round_nanoseconds: bool = field(default=False, metadata=ADDED)
    date_format: str | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Choice:
    """How a table's functional dependencies are known, and what the choice came from."""

    strategy: str | None  # None: not looked for
    seconds: float  # expected for counting all pairs
    limit: float
    reason: str
    device: str | None = field(default=None, metadata=ADDED)  # that counted last: cpu, or a card
    pairs_per_second: float | None = field(default=None, metadata=ADDED)  # of each task, then


@dataclass(frozen=True)
class EvidenceRecord:
    """What pairs of a table's rows show in one space of comparisons."""

    choice: Choice
    limits: Limits = field(default_factory=Limits)  # up to which it is complete, and kept
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by role
    space: Space | None = None  # None: that the columns agree
    lookups: tuple[LookUp, ...] = field(default=(), metadata=ADDED)  # for batches
    lookups_at: int = field(default=0, metadata=ADDED)  # the rows when they were chosen
    sampled_at: int = field(default=0, metadata=ADDED)  # the rows when pairs were sampled


@dataclass(frozen=True)
class Extreme:
    """The lowest or the highest value of a column: as it is shown, as hexadecimal text that has the
    order of the values, and how many rows have it (None: not known)."""

    value: Any
    key: str
    rows: int | None


@dataclass(frozen=True)
class ColumnRecord:
    """What is known of a column's values."""

    nulls: int
    lowest: Extreme | None  # None: there is no value, or none with an order
    highest: Extreme | None
    values: Sample | None = field(default=None, metadata=ADDED)  # None: not known
    shapes: Sample | None = field(default=None, metadata=ADDED)  # of texts; None: not known


@dataclass(frozen=True)
class TableRecord:
    """One table: its rows, and what is known of them."""

    columns: ColumnsRecord = field(default_factory=ColumnsRecord)
    source: SourceRecord = field(default_factory=SourceRecord)
    rows: int = 0  # living ones, repeated ones included
    segments: tuple[Segment, ...] = ()
    next_number: int = 1
    distinct: tuple[float, ...] = ()  # estimated distinct values per column
    estimated_at: int = 0  # the number of rows when they were estimated
    indexed: tuple[str, ...] = ()  # the names of its indexes, apart from that of whole rows
    duplicates: int = 0  # rows that repeat another one
    repeated: tuple[tuple[int, int], ...] = ()  # a few pairs of such rows
    duplicated: tuple[Row, ...] = ()  # one of them, as it is shown
    evidence: dict[str, EvidenceRecord] = field(default_factory=dict)  # by space of comparisons
    counts: dict[str, int] = field(default_factory=dict)  # of constraints, by kind
    facts: tuple[ColumnRecord, ...] = field(default=(), metadata=ADDED)  # per column; or not known
    looked_up: tuple[str, ...] = field(default=(), metadata=ADDED)  # the indexes of look-ups
    agreeing: tuple[float, ...] = field(default=(), metadata=ADDED)  # share of pairs, per column
    near: NearList | None = field(default=None, metadata=ADDED)  # None: not looked for
    changed: str | None = field(default=None, metadata=ADDED)  # when its rows were; or not known

    @property
    def data_files(self) -> list[str]:
        """Every file of the table."""
        rows = [file for segment in self.segments for file in segment.files]
        return rows + [file for record in self.evidence.values() for file in _all(record.files)]


@dataclass(frozen=True)
class Tables(Mapping[str, TableRecord]):
    """The tables of a version, by name. Each is in a file of its own, its *manifest*, which is read
    when the table is asked for; one that changed has none yet."""

    manifests: dict[str, str] = field(default_factory=dict)
    changed: dict[str, TableRecord] = field(default_factory=dict)
    read: Callable[[str], TableRecord] | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> TableRecord:
        if name in self.changed:
            return self.changed[name]
        assert self.read is not None
        return self.read(self.manifests[name])

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.manifests, *self.changed)))

    def __len__(self) -> int:
        return len(self.manifests.keys() | self.changed.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.manifests or name in self.changed

    def __or__(self, changed: Mapping[str, TableRecord]) -> Tables:
        """The same with some that changed."""
        return replace(self, changed={**self.changed, **changed})

    def to_dict(self) -> dict[str, str]:
        """The form that a commit stores, once all manifests are written."""
        if self.changed:
            raise ValueError(f"tables without a manifest: {', '.join(self.changed)}")
        return dict(self.manifests)

    @staticmethod
    def from_dict(form: dict[str, str]) -> Tables:
        """The tables that a commit stored."""
        for name, path in form.items():
            if not isinstance(path, str):
                raise ValueError(f"the manifest of {name} is {path!r}, not text")
        return Tables(dict(form))


@dataclass(frozen=True)
class ValueRun:
    """Values in files: part k of n has the codes of the k-th of n equal ranges; or none."""

    parts: tuple[str | None, ...]
    entries: int

    @property
    def files(self) -> list[str]:
        """Every file of the run."""
        return [part for part in self.parts if part]


@dataclass(frozen=True)
class InclusionRecord:
    """The values of all tables together."""

    runs: tuple[ValueRun, ...]
    overlaps: tuple[ValueRun, ...]  # of values that two columns share, divided by columns
    clusters: tuple[ValueRun, ...]
    files: dict[str, tuple[str, ...]]  # of the columns, and of what follows, by role
    arity: int | None = field(default=None, metadata=ADDED)
    """Columns up to which dependencies are complete, where a time budget ended; None: all."""
    tuples: TuplesRecord | None = field(default=None, metadata=ADDED)  # of two columns and keys

    @property
    def data_files(self) -> list[str]:
        """Every file of the values."""
        runs = (*self.runs, *self.overlaps, *self.clusters)
        tuples = self.tuples.data_files if self.tuples else []
        return [*_all(self.files), *(file for run in runs for file in run.files), *tuples]


@dataclass(frozen=True)
class SideRecord:
    """Columns of a table whose tuples are counted for expectations."""

    number: int  # of its entries in the runs; none has it twice
    table: str
    columns: tuple[str, ...]
    nulls: bool  # whether a null is a value; else a tuple with one is left out
    of: str | None  # the rule whose left side it is, of an inclusion; None: shared among rules
    distinct: int = 0  # tuples
    rows: int = 0  # that have one
    pairs: int = 0  # of rows that have the same
    rhs: str | None = field(default=None, metadata=ADDED)  # a column, by groups that agree
    grouped: bool = field(default=False, metadata=ADDED)  # whether the following is counted, too
    explained: int = field(default=0, metadata=ADDED)  # rows whose rhs their group explains, whole
    fraction: int = field(default=0, metadata=ADDED)  # and fractions of them (kernels/explained.py)
    majority: int = field(default=0, metadata=ADDED)  # rows with the most frequent rhs of theirs


@dataclass(frozen=True)
class ReferenceRecord:
    """How much of one side is found in another, by their numbers."""

    left: int
    right: int
    distinct: int = 0  # tuples of the left side that the right side has
    rows: int = 0  # of the left side that have one


@dataclass(frozen=True)
class TuplesRecord:
    """Tuples that are counted for expectations: runs of them, and sums over them."""

    sides: tuple[SideRecord, ...] = ()
    references: tuple[ReferenceRecord, ...] = ()
    runs: tuple[ValueRun, ...] = ()
    next_number: int = 0  # of a side: none is given twice, as runs may have entries of an old one

    @property
    def data_files(self) -> list[str]:
        """Every file of the tuples."""
        return [file for run in self.runs for file in run.files]


@dataclass(frozen=True)
class BatchRecord:
    """The batch that a version applied."""

    table: str
    id: str | None  # None: it had none
    digest: str
    others: tuple[str, ...] = field(default=(), metadata=ADDED)  # further tables that it changed

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables that it changed."""
        return (self.table, *self.others)


@dataclass(frozen=True)
class LastStep(Serializable):
    """What a step of a feed came to."""

    span: str  # of the source, such as "versions 4 to 9"
    rows: int  # that changed
    seconds: float  # until its commit
    time: str = ""  # of its commit; the store gives it its time


@dataclass(frozen=True)
class FeedRecord:
    """How far a table follows a feed."""

    table: str
    address: str  # how it is written, without credentials
    identity: Form  # what must not change under the same name
    position: Form
    version: int = 0  # that went there; the store gives it its number
    last: LastStep | None = field(default=None, metadata=ADDED)  # None: it was not kept then


@dataclass(frozen=True)
class BlockRecord:
    """Where the ids of the batches since a version are listed."""

    file: str
    first: int


@dataclass(frozen=True, kw_only=True)
class Header:
    """What the store itself reads of a commit. It gives a commit its number, time and run."""

    version: int = 0
    parent: int = 0
    run: str = ""
    created: str = ""
    batch: BatchRecord | None = None
    files: tuple[str, ...] = ()  # data files that it names itself, apart from manifests
    keep: tuple[str, ...] = ()  # those among them that stay for ever
    dropped: tuple[str, ...] = ()  # data files of the version before that it no longer has
    tables: Tables = field(default_factory=Tables)
    batches: BlockRecord | None = None
    feeds: dict[str, FeedRecord] = field(default_factory=dict, metadata=ADDED)  # by name


@dataclass(frozen=True, kw_only=True)
class Commit(Header):
    """All that a version says."""

    options: Options = field(default_factory=Options)
    inclusion: InclusionRecord | None = None  # None: not looked for
    changes: Form | None = None  # what the batch changed, in the form that ``apply`` prints
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)  # by table, by stage
    values_seconds: dict[str, float] = field(default_factory=dict)
    expectations: tuple[Standing, ...] = field(default=(), metadata=ADDED)
    secret: SecretRecord | None = field(default=None, metadata=ADDED)  # None: values are kept
    tuples: TuplesRecord | None = field(default=None, metadata=ADDED)  # counted for expectations
    event: str | None = field(default=None, metadata=ADDED)  # what wrote it, where no batch did

    def table(self, name: str) -> TableRecord:
        """One of the tables; an unknown one is an error that says what there is."""
        if name not in self.tables:
            raise unknown_table(name, self.tables)
        return self.tables[name]


@dataclass(frozen=True)
class Summary:
    """A commit as the history of a profile shows it."""

    version: int
    created: str
    batch: BatchRecord | None
    changes: Form | None
    tables: Tables
    event: str | None = field(default=None, metadata=ADDED)


def unknown_table(name: str, tables: Iterable[str]) -> UnknownTableError:
    """What is said where a profile has no such table."""
    return UnknownTableError(lacking("the profile", "table", name, tables))


def _all(files: dict[str, tuple[str, ...]]) -> list[str]:
    return [path for paths in files.values() for path in paths]
