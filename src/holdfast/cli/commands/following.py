"""Following feeds of changes."""

from __future__ import annotations

import logging
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from holdfast.cli import arguments
from holdfast.cli.batch import (
    Debezium,
    Encodings,
    OpColumn,
    Operations,
    Order,
    columns,
    operations,
)
from holdfast.cli.command import flag
from holdfast.cli.failures import FOUND
from holdfast.cli.opening import Spark
from holdfast.cli.options import Directory, Evolve, Keep, Reading
from holdfast.cli.printing import Printing
from holdfast.model.errors import InputError

if TYPE_CHECKING:
    from holdfast.feeds.followed import Followed
    from holdfast.model.following import FeedFailure, FeedStatus, FeedStep


log = logging.getLogger(__name__)

TIMEOUT = 60.0
"""So many seconds a command may take that is told of a change."""


@dataclass(frozen=True)
class OneFeed:
    """A feed of one table, as options say it, or a file of several."""

    table: Annotated[str | None, flag("--table", "The table that follows the feed.", "NAME")] = None
    source: Annotated[
        str | None,
        flag("--from", "Where changes come from: a folder, delta:…, kafka:….", "FEED"),
    ] = None
    config: Annotated[str | None, flag("--config", "Several feeds, in a YAML file.", "FILE")] = None
    name: Annotated[
        str | None, flag("--name", "The name of the feed; else its address.", "NAME")
    ] = None
    row_key: Annotated[
        str | None, flag("--row-key", "The columns that identify a row, with commas.", "COLUMNS")
    ] = None
    op_column: OpColumn = None
    op: Operations = None
    order: Order = None
    debezium: Debezium = False
    encoding_of: Encodings = None
    bootstrap: Annotated[
        str | None, flag("--bootstrap", "The brokers of a topic.", "HOST:PORT")
    ] = None
    feed_option: Annotated[
        list[str] | None,
        flag("--feed-option", "An option of the feed, such as start=end. Repeatable.", "KEY=VALUE"),
    ] = None

    def feeds(self, reading: Reading) -> list[Followed]:
        """The feeds to follow."""
        from holdfast.feeds import followed
        from holdfast.input.sources import Source

        if self.config is not None:
            if self.source is not None or self.table is not None:
                raise InputError("--config has the feeds in it: leave out --from and --table")
            return followed.read(self.config)
        if self.source is None:
            return []
        if self.table is None:
            raise InputError("say which table follows the feed: --table NAME")
        options = arguments.pairs(self.feed_option, "--feed-option")
        if self.bootstrap is not None:
            options["bootstrap"] = self.bootstrap
        encodings = arguments.pairs(self.encoding_of, "--encoding-of")
        if encodings and not self.debezium:
            raise InputError("--encoding-of is about events of Debezium: give --debezium, too")
        key = columns(self.row_key)
        return [
            followed.Followed(
                self.name or self.source,
                self.source,
                (followed.FeedTable(self.table, key, encodings),),
                self.op_column,
                operations(self.op),
                columns(self.order),
                self.debezium,
                reading=Source(
                    ".",
                    reading.input_format or ("json" if self.debezium else None),
                    reading.reader_options(),
                    round_nanoseconds=reading.round_nanoseconds,
                    **reading.cells(),
                ),
                options=options,
            )
        ]


def follow(
    directory: Directory,
    *,
    feed: OneFeed,
    forever: Annotated[bool, flag("--forever", "Go on when there is nothing left.")] = False,
    every: Annotated[
        float, flag("--every", "With --forever: look every so many seconds.", "SECONDS")
    ] = 10.0,
    max_rows: Annotated[int | None, flag("--max-rows", "Rows of a step.", "N")] = None,
    max_files: Annotated[int | None, flag("--max-files", "Files of a step.", "N")] = None,
    max_versions: Annotated[int | None, flag("--max-versions", "Versions of a step.", "N")] = None,
    on_violation: Annotated[
        str,
        flag("--on-violation", "What a step that breaks rules does.", "continue|stop|quarantine"),
    ] = "continue",
    quarantine: Annotated[
        str | None, flag("--quarantine", "Where rows that break rules are written.", "FOLDER")
    ] = None,
    reset_position: Annotated[
        bool, flag("--reset-position", "Follow the feed from its beginning, or another one.")
    ] = False,
    publish: Annotated[
        str | None,
        flag("--publish", "Write each version there, as Parquet files or Delta.", "FOLDER"),
    ] = None,
    on_change: Annotated[
        str | None, flag("--on-change", "Run this, with the step as JSON as its input.", "COMMAND")
    ] = None,
    evolve: Evolve = False,
    keep: Keep,
    status: Annotated[bool, flag("--status", "Only show how far the profile is.")] = False,
    reading: Reading,
    spark: Spark,
    printing: Printing,
) -> int:
    """Follow feeds of changes: apply what is new, and keep the position in the profile."""
    feeds = feed.feeds(reading)
    if status:
        with spark.profile(directory, printing) as opened:
            rows = opened.feeds(feeds)
        _print_status([*rows], printing)
        return 0
    if not feeds:
        raise InputError("say what to follow: --from FEED --table NAME, or --config FILE")
    with _until_terminated() as stop, spark.profile(directory, printing) as opened:
        course = opened.follow(
            feeds,
            forever=forever,
            every=every,
            max_rows=max_rows,
            max_files=max_files,
            max_versions=max_versions,
            on_violation=on_violation,
            quarantine=quarantine,
            reset_position=reset_position,
            publish=publish,
            evolve=evolve,
            keep_versions=keep.keep_versions,
            keep_days=keep.keep_days,
            told=lambda each: _tell(each, printing, on_change),
            stop=stop,
        )
    if not printing.as_json and not (course.steps or course.refused or course.failed):
        printing.note("nothing new")
    for failed in course.failed[1:]:
        sys.stderr.write(f"error: {failed.feed}: {failed.error}\n")
    if course.failed:
        raise course.failed[0].error
    return FOUND if course.refused else 0


@contextmanager
def _until_terminated() -> Iterator[threading.Event]:
    """An event that SIGTERM sets, so that what is at work ends after its step."""
    stop = threading.Event()
    before: Any = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(each: FeedStep | FeedFailure, printing: Printing, on_change: str | None) -> None:
    """A line about a step, after the command that is to know of it."""
    from holdfast.model.following import FeedFailure
    from holdfast.report import forms, terminal
    from holdfast.screen.page import Page

    if on_change is not None and not isinstance(each, FeedFailure) and each.applied:
        why = _run(on_change, forms.compact(each.to_dict()))
        if why is not None:
            log.error("%s: failed after version %d: %s", on_change, each.version, why)
    if printing.as_json:
        sys.stdout.write(f"{forms.compact(each.to_dict())}\n")
    elif not isinstance(each, FeedFailure):
        page = Page(sys.stdout, everything=printing.everything)
        terminal.stepped(page, each, verbose=printing.verbose)
    sys.stdout.flush()


def _run(command: str, text: str) -> str | None:
    """Run a command with an input; why it failed, if it did."""
    try:
        done = subprocess.run(
            shlex.split(command),
            input=text.encode(),
            check=False,
            timeout=TIMEOUT,
            capture_output=True,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return ": ".join([f"exit code {done.returncode}", *said]) if done.returncode else None


def _print_status(feeds: Sequence[FeedStatus], printing: Printing) -> None:
    from holdfast.report import terminal

    printing.result(
        lambda: {"feeds": [each.to_dict() for each in feeds]},
        lambda page: terminal.feeds(page, feeds),
    )
