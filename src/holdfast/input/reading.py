"""Reading a row input into segments: deciding types, writing rows, and turning bad data into clear
errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.input.row_input import Columns, RowInput
from holdfast.model import thresholds
from holdfast.model.errors import SchemaError, SourceError
from holdfast.model.names import to_alter
from holdfast.model.progress import Progress
from holdfast.runtime.objects import is_remote
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Runner
from holdfast.tasks import json_values, text
from holdfast.tasks.concealing import Concealing
from holdfast.tasks.encode import UnsupportedType, layout
from holdfast.tasks.ingest import WHOLE_MICROSECONDS, Ingest, guess, infer, ingest
from holdfast.tasks.segments import ROWS, Segment
from holdfast.tasks.votes import arrow_type, join, settled, type_name

_WATCH_SECONDS = 1.0

log = logging.getLogger("holdfast")


@dataclass(frozen=True)
class Intake:
    """The result of reading a row input."""

    columns: Columns
    segments: tuple[Segment, ...]
    fingerprint: str  # of the rows, whatever their order
    task_results: list[TaskResult]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(segment.rows for segment in self.segments)


def read(
    runner: Runner,
    row_input: RowInput,
    destination: Destination,
    first_number: int,
    progress: Progress,
    indexed: tuple[str, ...] = (),
    sketches: bool = False,
) -> Intake:
    """Write the rows of a row input as segments, numbered from ``first_number``."""
    if not row_input.columns.names:
        raise SchemaError(f"{row_input.label} has no columns")
    if row_input.columns.concealed and destination.key is None:
        raise ValueError(f"{row_input.label}: there is no key to conceal the rows with")
    columns, dated = row_input.columns, dict[str, list[str]]()
    if row_input.guessed:
        columns, dated = _guess(runner, row_input, destination)
    _check_types(row_input, columns)
    indexes = (ROWS, *indexed)
    spec = _spec(row_input, columns, destination, indexes, sketches)
    with watched(destination, progress):
        task_results = runner.read(ingest, row_input.rows, spec)
    if votes := facts_of(task_results, "votes"):
        voted = _voted(row_input, votes)
        if voted.types != columns.types:
            # The sample misled: read again with the types that all rows fit.
            columns = voted
            spec = _spec(row_input.typed(columns), columns, destination, indexes, sketches)
            with watched(destination, progress):
                task_results = runner.read(ingest, row_input.rows, spec)
    for task_result in task_results:
        if trouble := task_result.facts.get("trouble") or task_result.facts.get("misfit"):
            raise bad_data(row_input, trouble)
    written = [task_result for task_result in task_results if "words" in task_result.facts]
    segments = tuple(segment_of(first_number + i, result) for i, result in enumerate(written))
    rows = sum(segment.rows for segment in segments)
    _expect_all(row_input, facts_of(task_results, "counts"), rows)
    _note_dates(row_input, columns, dated)
    columns = replace(columns, concealed=destination.key is not None)
    return Intake(columns, segments, fingerprint_of(written), written)


def fingerprint_of(written: Sequence[TaskResult]) -> str:
    """A digest of the rows that tasks have written, whatever their order."""
    total = np.zeros(2, np.uint64)
    for task_result in written:
        total += task_result.arrays["fingerprint"]
    rows = sum(task_result.facts["rows"] for task_result in written)
    return f"{rows}:{total[0]:016x}{total[1]:016x}"


def facts_of(task_results: list[TaskResult], name: str) -> list[Any]:
    """The facts of this name, of those tasks that report one."""
    return [each.facts[name] for each in task_results if name in each.facts]


@contextmanager
def watched(destination: Destination, progress: Progress) -> Iterator[None]:
    """Report how many rows were read while tasks are at work: each leaves its count in a file, if
    the profile is on a file system."""
    if is_remote(destination.root):
        yield
        return
    done = threading.Event()

    def watch() -> None:
        reports = Path(destination.root, destination.prefix.replace("*", "progress") + "*")
        while not done.wait(_WATCH_SECONDS):
            counts = [file.read_text() for file in reports.parent.glob(reports.name)]
            if rows := sum(int(count) for count in counts if count):
                progress("read", rows=rows)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def segment_of(number: int, task_result: TaskResult) -> Segment:
    """The segment that a task has written."""
    facts = task_result.facts
    rows = facts["rows"]
    return Segment(number, rows, rows, facts["words"], facts["raw"], None, facts["indexes"])


def _spec(
    row_input: RowInput,
    columns: Columns,
    destination: Destination,
    indexes: tuple[str, ...],
    sketches: bool,
) -> Ingest:
    concealing = None
    if destination.key is not None:
        families = tuple(map(columns.family, range(len(columns.names))))
        concealing = Concealing(destination.key, families)
    return Ingest(
        root=destination.root,
        prefix=destination.prefix,
        schema=columns.given,
        names=columns.names,
        indexes=indexes,
        # Whoever asks for them: rows of a profile without values are nowhere in its directory.
        keep_raw=destination.keep_rows and concealing is None,
        sketches=sketches,
        concealing=concealing,
        **row_input.settings,
    )


def _guess(
    runner: Runner, row_input: RowInput, destination: Destination
) -> tuple[Columns, dict[str, list[str]]]:
    """Types guessed from the first rows, which reading checks against all others; and the columns
    that look like dates, with their forms."""
    spec = _spec(row_input, row_input.columns, destination, (), False)
    votes: list[list[str]] = []
    forms: dict[str, list[list[str]]] = {}
    # A whole file is many rows.
    count = 1 if row_input.whole else thresholds.current.guess_rows
    for task_result in runner.head(guess, row_input.rows, spec, count):
        if "trouble" in task_result.facts:
            raise bad_data(row_input, task_result.facts["trouble"])
        votes.append(task_result.facts["votes"])
        for form, own in task_result.facts["dated"].items():
            forms.setdefault(form, []).append(own)
    names = row_input.columns.names
    dated: dict[str, list[str]] = {}
    for form, own in forms.items():
        for name, vote in zip(names, _joined(own, len(names)), strict=True):
            if vote == "date":
                dated.setdefault(name, []).append(form)
    return _voted(row_input, votes), dated


def _note_dates(row_input: RowInput, columns: Columns, dated: Mapping[str, Sequence[str]]) -> None:
    """Say which columns of text look like dates."""
    given = row_input.lines.dates.text if row_input.lines and row_input.lines.dates else None
    for name, kind in zip(columns.names, columns.types, strict=True):
        forms = dated.get(name, ())
        if kind != "string" or not forms:
            continue
        where = f"{row_input.label}: column {name!r}"
        if given in forms:
            log.warning("%s is text: some of its cells are no dates written as %s", where, given)
            continue
        options = " or ".join(f"'{form}'" for form in forms)
        log.warning("%s is text that looks like dates: --date-format %s reads it", where, options)


def typed(runner: Runner, row_input: RowInput, destination: Destination) -> Columns:
    """The columns of a row input with the types that all its rows fit; its rows are read where
    these are not known."""
    if not row_input.guessed:
        return row_input.columns
    spec = _spec(row_input, row_input.columns, destination, (), False)
    results = runner.read(infer, row_input.rows, spec)
    for trouble in facts_of(results, "trouble"):
        if trouble is not None:
            raise bad_data(row_input, trouble)
    return _voted(row_input, facts_of(results, "votes"))


def _voted(row_input: RowInput, votes: list[list[str]]) -> Columns:
    names = row_input.columns.names
    joined = settled(_joined(votes, len(names)), len(names))
    types = [type_name(vote) for vote in joined]
    return Columns.of(list(names), types, [arrow_type(vote) for vote in joined])


def _joined(votes: Sequence[Sequence[str]], columns: int) -> list[str]:
    """The votes of several tasks as one each."""
    if not votes:
        return ["null"] * columns
    return [reduce(join, cells) for cells in zip(*votes, strict=True)]


def _check_types(row_input: RowInput, columns: Columns) -> None:
    verb = "compared"
    try:
        layout(columns.given)
        if row_input.lines is not None:
            verb = "read from text"
            text.check_types(columns.given)
        elif row_input.json:
            verb = "read from JSON"
            json_values.check_types(columns.given)
    except UnsupportedType as wrong:
        destination = int(wrong.column.removeprefix("c"))
        raise SchemaError(
            f"{row_input.label}: column {columns.names[destination]!r} has the type "
            f"{columns.types[destination]}, which cannot be {verb}; cast it or leave it out"
        ) from None


def _expect_all(row_input: RowInput, counts: list[Mapping[str, Any]], rows: int) -> None:
    """Check that every record became a row, in each task and in all.

    Wrong cells are reported before this. It is a safeguard against anything unforeseen, so that a
    table never has fewer rows than were given.
    """
    for count in counts:
        if count["rows"] != count["records"]:
            where = row_input.file(count["origin"]) or row_input.label
            raise _lost(where, count["records"], count["rows"])
    records = sum(count["records"] for count in counts)
    if records != rows:
        raise _lost(row_input.label, records, rows)


def _lost(where: str, records: int, rows: int) -> SourceError:
    return SourceError(
        f"{where}: {records:,} records were read, but {rows:,} rows written; nothing was kept. "
        "This is an error in Holdfast: please report it with the file"
    )


def bad_data(row_input: RowInput, trouble: Mapping[str, Any]) -> SourceError | SchemaError:
    """A sentence that names the file, the line and the column, and says what was expected."""
    where = row_input.file(trouble["origin"]) or row_input.label
    number = trouble["number"] or _line_number(row_input, where, trouble["line"])
    if trouble["kind"] == "field":
        line = f" (line {number})" if number else ""
        return SchemaError(
            f"{where} has the column {trouble['expected']!r}{line}, which the table does not; it "
            f"has {', '.join(row_input.columns.names)}{to_alter([], [trouble['expected']])}"
        )
    if number:
        where += f", line {number}"
    column = f", column {trouble['column']!r}" if trouble["column"] else ""
    fit = "unfit value" if row_input.is_json else "unfit cell"
    what = "malformed line" if trouble["kind"] == "line" else fit
    expected = f"{trouble['expected']}{_hint(row_input, trouble)}"
    return SourceError(f"{where}{column}: {what}, expected {expected}: {trouble['line']!r}")


def _hint(row_input: RowInput, trouble: Mapping[str, Any]) -> str:
    """The option that may help with this kind of trouble."""
    if trouble["expected"] == WHOLE_MICROSECONDS:
        return f" ({_rounding(row_input)}, or profile the table again, which keeps nanoseconds)"
    is_csv = row_input.lines is not None
    if is_csv and trouble["expected"].startswith("text in"):
        return " (--encoding says how the text is encoded)"
    if (is_csv or row_input.is_json) and trouble["kind"] == "cell":
        return (
            " (columns keep the types of the first profile: for another, profile the table again "
            "with --schema or --all-text)"
        )
    if row_input.is_json and trouble["kind"] == "line" and not row_input.whole:
        return " in each line (records over several lines need --multi-line)"
    if row_input.lines is None:
        return ""
    if trouble["kind"] == "line" and '\\"' in trouble["line"] and row_input.lines.escape is None:
        return " (quotes with a backslash before them need --escape '\\')"
    if trouble["kind"] == "line" and '"' in trouble["line"] and not row_input.whole:
        return " (cells with line breaks need --multi-line)"
    return ""


def _rounding(row_input: RowInput) -> str:
    if row_input.source.format == "dataframe":
        return "round it first, as df['at'].dt.floor('us') does in pandas"
    return "--round-nanoseconds rounds down"


def _line_number(row_input: RowInput, path: str, line: str) -> int | None:
    """The number of a line in a file that the driver can open; workers see only parts of files."""
    file = Path(path)
    if not line or row_input.whole or not file.is_file() or file.suffix in {".gz", ".bz2", ".zst"}:
        return None
    encoding = row_input.lines.encoding if row_input.lines else "utf-8"
    with file.open(encoding=encoding, errors="replace", newline="\n") as lines:
        for number, other in enumerate(lines, 1):
            if other.removeprefix("\ufeff").rstrip("\r\n")[:200] == line:
                return number
    return None
