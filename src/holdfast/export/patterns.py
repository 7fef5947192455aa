"""Regular expressions as more than one engine reads them."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?|.", re.DOTALL)

_SETS = {r"\d": "0-9", r"\w": "0-9A-Za-z_", r"\s": r"\t\n\f\r "}
"""What RE2 has of ASCII and others of all alphabets."""


def spelled_out(pattern: str) -> str:
    r"""A pattern of RE2 whose sets of characters are written out, so that other engines read the
    same; what else differs between engines stays as it is.

    >>> spelled_out(r"\d+[\w.]*\S.\.")
    '[0-9]+[0-9A-Za-z_.]*[^\\t\\n\\f\\r ][^\\n]\\.'
    """
    parts, inside = [], False
    for token in _TOKEN.findall(pattern):
        known = _SETS.get(token.lower()) if token[0] == "\\" else None
        if known is not None and token.islower():
            parts.append(known if inside else f"[{known}]")
        elif known is not None and not inside:
            parts.append(f"[^{known}]")
        elif token == "." and not inside:
            parts.append(r"[^\n]")
        else:
            parts.append(token)
        if token[0] == "[":
            inside = True
        elif token == "]":
            inside = False
    return "".join(parts)
