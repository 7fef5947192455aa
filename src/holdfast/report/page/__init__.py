"""The report page: one HTML file that needs nothing else, over one JSON document.

page.html  what it is put into
page.css   how it looks, light and dark
page.js    what it does; plain JavaScript, which puts data in place as text and never as markup

Nothing of the data is markup: the document is JSON in a block that no browser runs, with ``<``,
``>`` and ``&`` escaped, and the page's own policy lets nothing run, load or send but the script and
the style that are in it, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from functools import cache
from importlib import resources
from pathlib import Path

from holdfast.model.errors import InputError
from holdfast.model.records import JsonObject
from holdfast.report import forms
from holdfast.report.written import whole

GENERATOR = '<meta name="generator" content="Holdfast">'
"""What tells a page that was made here from any other file."""


def page(document: JsonObject, *, live: bool = False) -> str:
    """The page of a document; ``live``: it is served, and asks its server for newer ones."""
    parts = {
        "policy": policy(live=live),
        "generator": GENERATOR,
        "title": html.escape(f"{document['name']} · Holdfast"),
        "live": "live" if live else "file",
        "style": _resource("page.css"),
        "document": embedded(document),
        "script": _resource("page.js"),
    }
    # In one pass, so that nothing that comes in is looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _resource("page.html"))


def policy(*, live: bool = False) -> str:
    """The Content-Security-Policy of the page."""
    rules = {
        "default-src": "'none'",
        "script-src": _hash("page.js"),
        "style-src": _hash("page.css"),
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def embedded(document: JsonObject) -> str:
    r"""A document as it stands in the page: JSON without a character that HTML knows.

    >>> embedded({"a": "</script>\u2028"})
    '{"a":"\\u003c/script\\u003e\\u2028"}'
    """
    text = forms.compact(document)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def write(text: str, profile: str, file: str | os.PathLike[str] | None = None) -> str:
    """Write a page, whole or not at all; its path. Without a ``file`` it is called after the
    profile, in the current folder, where it takes the place of no other kind of file."""
    path = place_of(profile) if file is None else Path(file)
    try:
        if file is None and path.exists() and not is_report(path):
            raise InputError(
                f"{path}: there is a file that is no report of Holdfast's. Name the file to write, "
                f"as in -o {path.stem}-report.html"
            )
        with whole(path) as place:
            place.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: the report cannot be written: {error.strerror}. Name another file with -o."
        ) from error
    return str(path)


def place_of(profile: str) -> Path:
    """Where the page of a profile is, unless a file is named."""
    return Path(f"{Path(profile).name or 'profile'}.html")


def is_report(path: Path) -> bool:
    """Whether a file is a page that was made here."""
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(2048)


def _hash(name: str) -> str:
    digest = hashlib.sha256(_resource(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
