"""What a notebook shows of values: small HTML without scripts, in which all text is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SHOWN = 20
"""Entries of a list that are shown; how many more there are is told."""

FEW = 5
"""Constraints of one kind that a change shows: each may come with its rows."""

_MARK = "background: rgba(200, 60, 40, .14)"  # readable on light and on dark
_SOFT = "opacity: .7"


class Written:
    """What prints as a rule: a notebook shows it so, and what else there is to say."""

    tells_values = False
    """Whether it is written with values of cells, which what shows none leaves out."""

    def _repr_html_(self) -> str:
        notes = "".join(f" {soft(each)}" for each in self._notes())
        return f"<div>{code(str(self))}{notes}</div>"

    def _notes(self) -> list[str]:
        error = getattr(self, "error", None)
        return [f"violated by {error:.3g} of the row pairs"] if error else []


def text(value: object) -> str:
    """Escaped, and kept from reordering what stands beside it.

    >>> text("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    return f"<bdi>{html.escape(str(value))}</bdi>"


def code(value: object) -> str:
    """Text as it is written."""
    return f"<code>{text(value)}</code>"


def soft(value: object) -> str:
    """What is said beside."""
    return f'<span style="{_SOFT}">{text(value)}</span>'


def heading(value: object) -> str:
    """A line above the rest."""
    return f"<div><strong>{text(value)}</strong></div>"


def link(address: str, value: object) -> str:
    """A link to a file."""
    return f'<a href="{html.escape(address)}">{text(value)}</a>'


def lines(value: str) -> str:
    """Lines of a terminal."""
    return f"<pre>{html.escape(value)}</pre>"


def cell(value: Any) -> str:
    """A value of a row; a null is told from the text "null"."""
    if value is None:
        return "<em>null</em>"
    return text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def table(heads: Sequence[str], lines: Iterable[Sequence[str]], marked: Sequence[str] = ()) -> str:
    """A table of cells that are HTML already; ``marked`` columns stand out."""
    styles = [f' style="{_MARK}"' if head in marked else "" for head in heads]
    top = "".join(
        f"<th{style}>{text(head)}</th>" for head, style in zip(heads, styles, strict=True)
    )
    body = ""
    for line in lines:
        cells = zip(line, styles, strict=True)
        body += f"<tr>{''.join(f'<td{style}>{each}</td>' for each, style in cells)}</tr>"
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def rows(found: Sequence[Mapping[str, Any]], marked: Sequence[str] = ()) -> str:
    """Rows of the data, with the columns in question first."""
    names = list(dict.fromkeys(name for row in found for name in row))
    first = [name for name in dict.fromkeys(marked) if name in names]
    heads = [*first, *(name for name in names if name not in first)]
    return table(heads, ([cell(row.get(name)) for name in heads] for row in found), first)


def more(number: int, shown: int = SHOWN) -> str:
    """How many are not shown."""
    return f"<div>{soft(f'… and {number - shown:,} more')}</div>" if number > shown else ""
