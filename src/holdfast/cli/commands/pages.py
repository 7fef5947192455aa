"""What a profile is for others: the forms of other tools, and the report page."""

from __future__ import annotations

import logging
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.options import At, Directory
from holdfast.cli.printing import Output, OutputFormat, Printing, print_json, shown_path
from holdfast.export import DIALECTS, FORMS
from holdfast.screen.text import plain

log = logging.getLogger("holdfast")

Open = Annotated[bool, flag("--open", "Show it in the browser.")]
Limit = Annotated[int | None, flag("--limit", "At most so many of each list; else 10,000.", "N")]
NoValues = Annotated[bool, flag("--no-values", "Show no cell of the data: no rows, no plots.")]


@dataclass(frozen=True)
class _ExportPrinting(Printing):
    everything: Annotated[bool, flag("--all", "Every constraint that holds.")] = False


def export(
    directory: Directory,
    to: Annotated[str, flag("--to", f"One of {', '.join(FORMS)}.", "FORM")],
    *,
    dialect: Annotated[str, flag("--dialect", f"Of SQL: {', '.join(DIALECTS)}.", "NAME")] = "spark",
    out: Annotated[
        str | None, flag("--out -o", "Write a file, or a folder of several.", "PATH")
    ] = None,
    table: Annotated[
        list[str] | None, flag("--table", "Only this table. Repeatable.", "NAME")
    ] = None,
    tables: Annotated[bool, flag("--tables", "For sql: make the tables, too.")] = False,
    namespace: Annotated[
        str | None, flag("--namespace", "Where the tables are, as in main.sales.", "NAME")
    ] = None,
    at: At = None,
    output: OutputFormat = Output.TEXT,
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
        create=tables,
        version=at,
    )
    if out is not None:
        written = files.write(out)
        if output == Output.JSON:
            print_json({"written": written})
        else:
            sys.stdout.write("".join(f"{plain(each)}\n" for each in written))
    elif output == Output.JSON:
        print_json({"files": dict(files)})
    else:
        sys.stdout.write(str(files))
    return 0


def report(
    directory: Directory,
    *,
    file: Annotated[
        str | None, flag("--output -o", "The file to write; else called after DIR.", "FILE")
    ] = None,
    show_it: Open = False,
    limit: Limit = None,
    no_values: NoValues = False,
    output: OutputFormat = Output.TEXT,
    printing: Printing,
) -> int:
    """Write a profile as one HTML page that needs nothing else: tables, constraints, history."""
    from holdfast.api import Profile

    arguments.expect_limit(limit, printing.everything)
    most = arguments.page_limit(limit, printing.everything)
    with printing.progress() as progress:
        opened = Profile.open(directory, progress=progress)
        written = opened.report(file, values=not no_values, **most)
    if output == Output.JSON:
        print_json({"file": written, "bytes": Path(written).stat().st_size})
    else:
        sys.stdout.write(f"{written}\n")
    if show_it:
        _browse(Path(written).resolve().as_uri())
    return 0


def serve(
    directory: Directory,
    *,
    host: Annotated[
        str, flag("--host", "Where to listen; anything but loopback takes a token.", "ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, flag("--port", "The port; 0 for any that is free.", "N")] = 8400,
    show_it: Open = False,
    limit: Limit = None,
    no_values: NoValues = False,
    output: OutputFormat = Output.TEXT,
    printing: Printing,
) -> int:
    """Serve the report as a page that follows the profile, read-only, until an interrupt."""
    from holdfast.api import Profile

    arguments.expect_limit(limit, printing.everything)
    opened = Profile.open(directory)

    def ready(url: str) -> None:
        if output == Output.JSON:
            print_json({"url": url})
        else:
            sys.stdout.write(f"{shown_path(directory)}: {url} (Ctrl-C stops)\n")
        sys.stdout.flush()
        if show_it:
            _browse(url)

    # A service manager ends what it started by this signal, a terminal by the other.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        most = arguments.page_limit(limit, printing.everything)
        opened.serve(host, port, values=not no_values, ready=ready, **most)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _browse(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        log.warning("there is no browser to show it with; open %s", url)
