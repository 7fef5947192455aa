"""The batch of ``apply`` and ``check``: what changes in one table, or in several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.options import Reading
from holdfast.input.batch_files import CHANGES, TableFiles, table_files
from holdfast.input.sources import Source
from holdfast.model.errors import InputError

if TYPE_CHECKING:
    from holdfast.model.changes import BatchChanges, Changes

_ROW_KEY = (
    "The columns that identify a row, with commas; `a,b` in backticks is one column. With "
    "--batch: TABLE=COLUMNS, for each table."
)


_CHANGES = "Changes with operations"

OpColumn = Annotated[
    str | None,
    flag("--op-column", "What happened to a row; else _change_type.", "NAME", _CHANGES),
]
Operations = Annotated[
    list[str] | None,
    flag("--op", "What its values mean: insert=I,update=U,delete=D.", "WHAT=VALUE", _CHANGES),
]
Order = Annotated[
    str | None,
    flag("--order", "The columns that give the order of changes, with commas.", "NAMES", _CHANGES),
]

Debezium = Annotated[
    bool, flag("--debezium", "They are events of Debezium, in JSON.", panel=_CHANGES)
]
Encodings = Annotated[
    list[str] | None,
    flag(
        "--encoding-of",
        "How values without a schema are written.",
        "COLUMN=base64:2",
        _CHANGES,
    ),
]


@dataclass(frozen=True)
class Batch:
    """What changes: one table, whose rows are in up to four sources or in a snapshot, or the tables
    of a batch in files."""

    table: Annotated[str | None, flag("--table", "The table that changes.", "NAME")] = None
    inserts: Annotated[str | None, flag("--inserts", "New rows.", "SOURCE")] = None
    deletes: Annotated[
        str | None,
        flag("--deletes", "Rows to remove: whole rows, or only their row key.", "SOURCE"),
    ] = None
    updates: Annotated[
        str | None, flag("--updates", "New rows in place of those with the same row key.", "SOURCE")
    ] = None
    upserts: Annotated[
        str | None,
        flag("--upserts", "Rows to update where the row key exists, else to insert.", "SOURCE"),
    ] = None
    snapshot: Annotated[
        str | None,
        flag("--snapshot", "All rows as they are now: what changed is found.", "SOURCE"),
    ] = None
    changes: Annotated[
        str | None,
        flag("--changes", "Rows that say what happened to them: files, a table.", "SOURCE"),
    ] = None
    op_column: OpColumn = None
    op: Operations = None
    order: Order = None
    debezium: Debezium = False
    encoding_of: Encodings = None
    batch: Annotated[
        str | None,
        flag("--batch", "Several tables: a folder (TABLE/inserts.csv …) or a YAML file.", "PATH"),
    ] = None
    row_key: Annotated[list[str] | None, flag("--row-key", _ROW_KEY, "COLUMNS")] = None
    if_exists: Annotated[bool, flag("--if-exists", "Skip deletes of rows that do not exist.")] = (
        False
    )
    allow_shrink: Annotated[
        bool, flag("--allow-shrink", "The snapshot may have less than half of the rows.")
    ] = False
    batch_id: Annotated[
        str | None, flag("--batch-id", "A name; a batch is applied once under it.", "ID")
    ] = None
    device: Annotated[
        str | None,
        flag("--device", "What counts pairs, if not what the profile says.", "auto|cpu|gpu"),
    ] = None

    @property
    def sources(self) -> dict[str, str | None]:
        """The sources of ``--table``, by what is done with their rows."""
        return {change: getattr(self, change) for change in CHANGES}

    @contextmanager
    def read(self, directory: str, reading: Reading) -> Iterator[dict[str, dict[str, Any]]]:
        """What happens to each table, as :meth:`holdfast.api.Profile.apply` takes it. Standard
        input is in a file while the block runs."""
        if self.changes is not None:
            with arguments.spooled({"changes": self.changes}) as paths:
                yield self._changes(paths["changes"] or "", reading)
            return
        self._expect_no_changes()
        with arguments.spooled(self.sources) as paths:
            files = self._files(directory, paths)
            for name, table in files.items():
                options = {**reading.reader_options(), **table.options}
                format_ = table.format or reading.input_format
                files[name] = replace(table, format=format_, options=options)
            csv = [name for name, table in files.items() if table.may_be_csv] or list(files)
            for name in csv:
                cells: dict[str, Any] = {
                    option: value
                    for option, value in reading.cells().items()
                    if getattr(files[name], option) is None
                }
                files[name] = replace(files[name], **cells)
            yield reading.rounded({name: table.batch() for name, table in files.items()})

    def _changes(self, path: str, reading: Reading) -> dict[str, dict[str, Any]]:
        """The batch of ``--changes``."""
        from holdfast.input.validation import change_rows

        others = {**self.sources, "batch": self.batch}
        given = [name for name, source in others.items() if source is not None]
        if given:
            raise InputError(
                f"--changes says itself what happens to each row: leave --{given[0]} out, or it"
            )
        if self.table is None:
            raise InputError("say which table changes: --table NAME")
        source = Source(
            path,
            reading.input_format,
            reading.reader_options(),
            round_nanoseconds=reading.round_nanoseconds,
            **reading.cells(),
        )
        op, order = operations(self.op), columns(self.order)
        encodings = arguments.pairs(self.encoding_of, "--encoding-of")
        debezium = encodings if self.debezium else False
        return {
            self.table: {
                "changes": change_rows(source, self.op_column, op, order, debezium),
                "row_key": self._row_key(),
                "if_exists": self.if_exists,
            }
        }

    def _expect_no_changes(self) -> None:
        for name, value in (
            ("--op-column", self.op_column),
            ("--op", self.op),
            ("--order", self.order),
            ("--debezium", self.debezium or None),
            ("--encoding-of", self.encoding_of),
        ):
            if value is not None:
                raise InputError(f"{name} is about --changes, which are not given")

    def outcome(self, changes: BatchChanges) -> BatchChanges | Changes:
        """What is shown of it: of one table alone, if that was asked for."""
        return changes if self.table is None else changes.alone(self.table)

    def _files(self, directory: str, paths: Mapping[str, str | None]) -> dict[str, TableFiles]:
        """The sources of each table. What a file of ``--batch`` says itself takes precedence."""
        given = {change: path for change, path in paths.items() if path is not None}
        if self.batch is None:
            key = self._row_key()
            of_table = TableFiles(given, key, self.if_exists, self.allow_shrink)
            return {self._table(given): of_table}
        if self.table is not None or given:
            raise InputError(
                "--batch names the tables and their rows: leave out --table, --inserts, --deletes, "
                "--updates, --upserts and --snapshot, or --batch"
            )
        files = table_files(self.batch)
        for name, key in self._row_keys(files, directory):
            files[name] = replace(files[name], row_key=key)
        if self.if_exists:
            for name in self._with("deletes", files, "--if-exists is about deletes"):
                files[name] = replace(files[name], if_exists=True)
        if self.allow_shrink:
            for name in self._with("snapshot", files, "--allow-shrink is about snapshots"):
                files[name] = replace(files[name], allow_shrink=True)
        return files

    def _with(self, change: str, files: Mapping[str, TableFiles], about: str) -> list[str]:
        """The tables with a change; an error if there are none, by what would be about them."""
        tables = [name for name, table in files.items() if change in table.paths]
        if not tables:
            raise InputError(f"{about}, and {self.batch} has none")
        return tables

    def _table(self, given: Mapping[str, str]) -> str:
        if self.table is None:
            raise InputError(
                "say what changes: --table NAME and its rows, or --batch PATH for several tables"
            )
        if not given:
            raise InputError(
                "there is no change: give --inserts, --deletes, --updates or --upserts, or "
                "--snapshot, or --changes"
            )
        return self.table

    def _row_key(self) -> tuple[str, ...]:
        if not self.row_key:
            return ()
        if len(self.row_key) > 1:
            raise InputError("--row-key was given twice; a table has one, as in --row-key a,b")
        return tuple(arguments.split_columns(self.row_key[0]))

    def _row_keys(
        self, files: Mapping[str, TableFiles], directory: str
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The row keys of tables with more than inserts: those of one table, as TABLE=COLUMNS, or
        those of all tables that have none. So one command fits batches with and without updates."""
        keyed = {
            name for name, table in files.items() if not set(table.paths) <= {"inserts", "snapshot"}
        }
        for value in self.row_key or ():
            name, equals, columns = value.partition("=")
            if equals and name in _tables(directory):
                if name in keyed:
                    yield name, tuple(arguments.split_columns(columns))
                continue
            key = tuple(arguments.split_columns(value))
            yield from [(name, key) for name in keyed if not files[name].row_key]


def operations(given: list[str] | None) -> dict[str, list[str]]:
    """What operations mean, from ``insert=I,update=U``."""
    ops: dict[str, list[str]] = {}
    for each in ",".join(given or ()).split(",") if given else ():
        what, equals, value = each.partition("=")
        if not equals or not what.strip():
            raise InputError(
                f"--op {each}: expected WHAT=VALUE, such as insert=I,update=U,delete=D"
            )
        ops.setdefault(what.strip(), []).append(value)
    return ops


def columns(given: str | None) -> tuple[str, ...]:
    """Columns that an option names."""
    return tuple(arguments.split_columns(given)) if given else ()


def _tables(directory: str) -> tuple[str, ...]:
    """The tables of a profile."""
    from holdfast.api import Profile

    return Profile.open(directory).tables
