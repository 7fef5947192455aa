"""What commands print: results as text or JSON, and progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from holdfast.cli.command import flag
from holdfast.model.records import JsonObject

if TYPE_CHECKING:
    from holdfast.api import Profile
    from holdfast.cli.progress import Progress
    from holdfast.screen.page import Page


class Output(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class Printing:
    """How results are printed. Every command has these options."""

    output: Annotated[Output, flag("--format", "How results are printed.")] = Output.TEXT
    everything: Annotated[bool, flag("--all", "Show long lists in full.")] = False
    quiet: Annotated[bool, flag("--quiet -q", "Print neither progress nor notes.")] = False
    verbose: Annotated[bool, flag("--verbose -v", "Print more.")] = False

    @property
    def as_json(self) -> bool:
        """Whether results are printed as JSON."""
        return self.output == Output.JSON

    def result(
        self,
        form: Callable[[], JsonObject],
        text: Callable[[Page], None],
        limit: int | None = None,
    ) -> None:
        """Print a result: its JSON form, or the text that ``text`` writes on a page."""
        if self.as_json:
            print_json(form())
        else:
            from holdfast.screen.page import Page

            text(Page(sys.stdout, everything=self.everything, limit=limit))

    def version(
        self,
        opened: Profile,
        directory: str,
        parts: Sequence[str] | None = None,
        **asked: Any,
    ) -> None:
        """Print a version of a profile, or only these ``parts`` of it."""
        from holdfast.report.shown import version_shown

        shown = version_shown(
            opened,
            shown_path(directory),
            parts,
            everything=self.everything,
            verbose=self.verbose,
            **asked,
        )
        self.result(shown.form, shown.text, asked.get("limit"))

    def lines(self, form: JsonObject, text: str) -> None:
        """Print a short result: its JSON form, or lines of text."""
        if self.as_json:
            print_json(form)
        else:
            sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Tell something about a result, if there is something to tell."""
        if text and not self.quiet:
            from holdfast.screen.page import Page

            Page(sys.stderr).line(text, "dim")

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """Show progress on standard error; None if nothing is shown."""
        if self.quiet:
            yield None
            return
        from holdfast.cli.progress import Progress

        try:
            # A copy, because a starting JVM has another standard error for a while.
            stream: TextIO = os.fdopen(os.dup(sys.stderr.fileno()), "w")
        except (OSError, ValueError):  # not a file: a test, a notebook
            stream = sys.stderr
        with Progress(stream) as progress:
            yield progress


def print_json(form: JsonObject) -> None:
    """Print a JSON object."""
    from holdfast.report import forms

    encoding = (sys.stdout.encoding or "utf-8").lower().replace("-", "")
    for chunk in forms.chunks(form, ascii_only=encoding != "utf8"):
        sys.stdout.write(chunk)
    sys.stdout.write("\n")


def shown_path(directory: str) -> str:
    """A profile directory as it is shown in results."""
    from holdfast.runtime.objects import is_remote, shown
    from holdfast.store import local_path

    return shown(directory) if is_remote(directory) else str(Path(local_path(directory)))
