"""A version of a profile as a notebook shows it: what the terminal shows, without scripts."""

from __future__ import annotations

import io
from pathlib import Path
from urllib.parse import quote

from holdfast.model import markup
from holdfast.report.page import is_report, place_of
from holdfast.report.shown import Known, short_path, version_shown
from holdfast.screen.page import Page


def version_in_notebook(profile: Known, page: str | None) -> str:
    """What ``Profile.show`` prints, with a link to the report if there is one: the ``page`` that
    was written, or one in the current folder that has its name."""
    text = io.StringIO()
    version_shown(profile, short_path(profile.path)).text(Page(text))
    file = Path(page) if page is not None else place_of(profile.path)
    if file.is_file() and is_report(file):
        beside = markup.link(_address(file), f"the report: {file.name}")
    else:
        beside = markup.soft("report() writes a page about it")
    return markup.lines(text.getvalue()) + f"<div>{beside}</div>"


def _address(file: Path) -> str:
    """A file as a link of a notebook has it: relative to the current folder, if it is in it."""
    whole, here = file.absolute(), Path.cwd()
    if here in whole.parents:
        return quote(whole.relative_to(here).as_posix())
    return whole.as_uri()
