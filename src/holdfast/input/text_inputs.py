"""CSV and JSON as row inputs: their columns, whichever engine brings their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from holdfast.input import headers, type_names
from holdfast.input.reading import bad_data
from holdfast.input.row_input import Columns, RowInput
from holdfast.input.sources import Source
from holdfast.model.errors import SchemaError, SourceError
from holdfast.runtime.runner import Runner
from holdfast.tasks.ingest import Ingest, learn
from holdfast.tasks.json_types import JsonForm
from holdfast.tasks.votes import TYPES

File = Callable[[int], str | None]
"""The name of the file with an origin."""


def csv_input(
    source: Source,
    first_lines: Sequence[tuple[str, str]],
    lines: Callable[[bool], Any],
    file: File,
    first: bool,
) -> RowInput:
    """Rows of CSV. ``first_lines`` are those of its files, with their names; ``lines`` gives the
    lines of all files or, if it is asked to, whole files. Whether they are the ``first`` of their
    table decides what is worth a note."""
    source = headers.with_delimiter(source, first_lines)
    names = headers.names_of(source, first_lines)
    if first and source.header:
        headers.note_names(source, first_lines, names)
    columns, guessed = _csv_columns(source, names)
    whole = source.multi_line or not source.dialect.by_lines
    return RowInput(
        source.path,
        columns,
        lines(whole),
        source.stored(),
        lines=source.dialect,
        header=source.header,
        whole=whole,
        guessed=guessed,
        file=file,
    )


def json_input(runner: Runner, source: Source, lines: Any, file: File, first: bool) -> RowInput:
    """Records; their types are given, or those of the table's first rows, or found out here."""
    row_input = RowInput(
        source.path,
        Columns.of([], [], []),
        lines,
        source.stored(),
        whole=source.multi_line,
        file=file,
    )
    if source.schema:
        schema = type_names.parsed(source.schema)
    else:
        schema = _learned(runner, row_input, source.all_text)
    if first:
        row_input = replace(
            row_input, source=replace(row_input.source, schema=type_names.written(schema))
        )
    paths, fields = zip(*flattened(schema, source.flatten), strict=True)
    columns = typed_columns([".".join(path) for path in paths], [field.type for field in fields])
    return replace(row_input, columns=columns, json=paths)


def typed_columns(names: Sequence[str], kinds: Sequence[pa.DataType]) -> Columns:
    """Columns of these types, or of those as which they are stored."""
    expect_names(names)
    exact = [type_names.exact_type(name, kind) for name, kind in zip(names, kinds, strict=True)]
    return Columns.of(list(names), [name for name, _ in exact], [arrow for _, arrow in exact])


def expect_names(names: Sequence[str]) -> None:
    """See that every column has a name of its own."""
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"the column name {name!r} occurs twice; rename one of them")


def flattened(
    fields: pa.Schema | pa.StructType, flatten: bool, outer: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
    """The path of every column with its field; of those inside structs if these are flattened."""
    for field in fields:
        path = (*outer, field.name)
        if flatten and at.is_struct(field.type):
            yield from flattened(field.type, True, path)
        else:
            yield path, field


def _csv_columns(source: Source, names: list[str]) -> tuple[Columns, bool]:
    """The columns as they are known before reading, and whether their types are a guess."""
    if source.schema is None:
        count = len(names)
        return Columns.of(names, ["string"] * count, [pa.string()] * count), not source.all_text
    given = type_names.parsed(source.schema)
    if source.header and sorted(given.names) != sorted(names):
        raise SchemaError(
            f"{source.path}: the schema names {', '.join(given.names)}, but the file has "
            f"{', '.join(names)}"
        )
    expect_names(given.names)
    names = names if source.header else given.names
    return typed_columns(names, [given.field(name).type for name in names]), False


def _learned(runner: Runner, row_input: RowInput, all_text: bool) -> pa.Schema:
    """The types that hold all records exactly, by the names of their fields."""
    spec = Ingest("", "", pa.schema([]), (), whole=row_input.whole)
    form = JsonForm()
    for task_result in runner.read(learn, row_input.rows, spec):
        if trouble := task_result.facts.get("trouble"):
            raise bad_data(row_input, trouble)
        form = form.join(JsonForm.unpacked(task_result.facts["form"]))
    if not form.fields:
        raise SourceError(f"{row_input.label}: there are no records with fields in it")
    return pa.schema(_fields(form, all_text))


def _fields(form: JsonForm, all_text: bool) -> list[pa.Field]:
    return [pa.field(name, _type(inner, all_text)) for name, inner in sorted(form.fields.items())]


def _type(form: JsonForm, all_text: bool) -> pa.DataType:
    if form.kind == "struct":
        return pa.struct(_fields(form, all_text))
    if form.kind == "array":
        return pa.list_(_type(form.element or JsonForm(), all_text))
    return pa.string() if all_text else TYPES[form.kind]
