"""What commands print: results as text or as JSON, progress beside them."""

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

if TYPE_CHECKING:
    from holdfast.api import Profile
    from holdfast.cli.progress import Progress
    from holdfast.report.snapshot import Snapshot
    from holdfast.screen.page import Page


class Output(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


OutputFormat = Annotated[Output, flag("--format", "How results are printed.")]


@dataclass(frozen=True)
class Printing:
    """How much is printed. Every command has these options."""

    everything: Annotated[bool, flag("--all", "Show long lists whole.")] = False
    quiet: Annotated[bool, flag("--quiet -q", "Neither progress nor notes.")] = False
    verbose: Annotated[bool, flag("--verbose -v", "Tell more.")] = False

    def result(
        self,
        output: str,
        form: Callable[[], dict[str, Any]],
        text: Callable[[Page], None],
        limit: int | None = None,
    ) -> None:
        """Print a result: its JSON form, or what ``text`` writes on a page."""
        if output == Output.JSON:
            print_json(form())
        else:
            from holdfast.screen.page import Page

            text(Page(sys.stdout, everything=self.everything, limit=limit))

    def profile(
        self,
        output: str,
        opened: Profile,
        directory: str,
        snapshot: Snapshot,
        parts: Sequence[str] | None,
        limit: int | None = None,
    ) -> None:
        """Print what a profile knows, or only these ``parts`` of it."""
        from holdfast.report import forms, terminal

        verbose = self.verbose
        sizes = opened.sizes() if verbose else None
        ranking = opened.ranking_of(snapshot) if parts is None else None

        def form() -> dict[str, Any]:
            return forms.show(
                snapshot, parts, verbose=verbose, sizes=sizes, limit=limit, ranking=ranking
            )

        def text(page: Page) -> None:
            name = shown_path(directory)
            if ranking is not None and not (self.everything or verbose or limit is not None):
                terminal.overview(page, name, snapshot, ranking)
            else:
                terminal.show(page, name, snapshot, parts, verbose=verbose, sizes=sizes)

        self.result(output, form, text, limit)

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """Show how far the work is, on standard error; None where nothing of it is shown."""
        if self.quiet:
            yield None
            return
        from holdfast.cli.progress import Progress

        try:
            # A copy, because a starting JVM is given another standard error for a while.
            stream: TextIO = os.fdopen(os.dup(sys.stderr.fileno()), "w")
        except (OSError, ValueError):  # not a file: a test, a notebook
            stream = sys.stderr
        with Progress(stream) as progress:
            yield progress


def print_json(form: dict[str, Any]) -> None:
    """Print a JSON object."""
    from holdfast.report import forms

    encoding = (sys.stdout.encoding or "utf-8").lower().replace("-", "")
    for chunk in forms.chunks(form, ascii_only=encoding != "utf8"):
        sys.stdout.write(chunk)
    sys.stdout.write("\n")


def shown_path(directory: str) -> str:
    """A profile directory as results name it."""
    from holdfast.runtime.objects import is_remote, shown
    from holdfast.store import local_path

    return shown(directory) if is_remote(directory) else str(Path(local_path(directory)))
