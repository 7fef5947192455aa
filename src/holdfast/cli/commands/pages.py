"""A profile in the forms of other tools, and as a page."""

from __future__ import annotations

import logging
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.options import At, Directory
from holdfast.cli.printing import Printing, shown_path
from holdfast.export import DIALECTS, FORMS
from holdfast.screen.text import plain

log = logging.getLogger("holdfast")


@dataclass(frozen=True)
class Page:
    """What the page shows, and whether a browser opens it."""

    browse: Annotated[bool, flag("--open", "Open it in the browser.")] = False
    limit: Annotated[
        int | None, flag("--limit", "Show at most N entries of each list, not 10,000.", "N")
    ] = None
    hide_values: Annotated[
        bool, flag("--hide-values", "Show no cell of the data: no rows, no plots.")
    ] = False

    def settings(self, printing: Printing) -> dict[str, Any]:
        """As ``Profile.report`` and ``Profile.serve`` take them."""
        arguments.expect_limit(self.limit, printing.everything)
        limited = printing.everything or self.limit is not None
        return {"values": not self.hide_values} | ({"limit": self.limit} if limited else {})

    def open(self, url: str) -> None:
        """Show it in the browser, if that was asked for."""
        import webbrowser

        if self.browse and not webbrowser.open(url):
            log.warning("there is no browser to show it with; open %s", url)


@dataclass(frozen=True)
class _ExportPrinting(Printing):
    everything: Annotated[bool, flag("--all", "Export every constraint that holds.")] = False


def export(
    directory: Directory,
    to: Annotated[str, flag("--to", f"One of {', '.join(FORMS)}.", "FORM")],
    *,
    dialect: Annotated[str, flag("--dialect", f"Of SQL: {', '.join(DIALECTS)}.", "NAME")] = "spark",
    path: Annotated[
        str | None, flag("--output -o", "The file to write, or the folder for several.", "PATH")
    ] = None,
    table: Annotated[
        list[str] | None, flag("--table", "Only this table. Repeatable.", "NAME")
    ] = None,
    create_tables: Annotated[
        bool, flag("--create-tables", "With --to sql: create the tables, too.")
    ] = False,
    namespace: Annotated[
        str | None, flag("--namespace", "Where the tables are, such as main.sales.", "NAME")
    ] = None,
    at: At = None,
    printing: _ExportPrinting,
) -> int:
    """Write the constraints in the form of another tool: SQL, dbt tests, a diagram and so on."""
    from holdfast.api import Profile

    files = Profile.open(directory).export(
        to,
        dialect=dialect,
        everything=printing.everything,
        tables=table or None,
        namespace=arguments.split_names(namespace),
        create=create_tables,
        version=at,
    )
    printing.note(files.note)
    if path is None:
        printing.lines({"files": dict(files)}, str(files).removesuffix("\n"))
    else:
        written = files.write(path)
        printing.lines({"written": written}, "\n".join(map(plain, written)))
    return 0


def report(
    directory: Directory,
    *,
    path: Annotated[
        str | None, flag("--output -o", "The file to write; by default DIR.html.", "FILE")
    ] = None,
    page: Page,
    printing: Printing,
) -> int:
    """Write a profile as one self-contained HTML page: tables, constraints, history."""
    from holdfast.api import Profile

    settings = page.settings(printing)
    with printing.progress() as progress:
        written = Profile.open(directory, progress=progress).report(path, **settings)
    printing.lines({"file": written, "bytes": Path(written).stat().st_size}, written)
    page.open(Path(written).resolve().as_uri())
    return 0


def serve(
    directory: Directory,
    *,
    host: Annotated[
        str, flag("--host", "Where to listen; any but loopback requires a token.", "ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, flag("--port", "The port; 0 for any that is free.", "N")] = 8400,
    page: Page,
    printing: Printing,
) -> int:
    """Serve the report as a page that follows the profile, read-only, until interrupted."""
    from holdfast.api import Profile

    settings = page.settings(printing)
    opened = Profile.open(directory)

    def ready(url: str) -> None:
        printing.lines({"url": url}, f"{shown_path(directory)}: {url} (Ctrl-C stops)")
        page.open(url)

    # A service manager ends what it started by this signal, a terminal by the other.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        opened.serve(host, port, ready=ready, **settings)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
