"""A page about the tables, for people: columns, keys, parents and rules."""

from __future__ import annotations

import re

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect, nulls_sentence
from holdfast.model.names import listed
from holdfast.screen.text import count, plain


def files(contract: Contract, _dialect: Dialect, _create: bool) -> dict[str, str]:
    """One page."""
    lines = [
        f"# {_text(contract.name)}",
        "",
        f"Version {contract.version}. {nulls_sentence(contract)}",
    ]
    for table in contract.tables:
        lines += _table(contract, table)
    return {"tables.md": "\n".join(lines) + "\n"}


def _table(contract: Contract, table: TableContract) -> list[str]:
    lines = ["", f"## {_text(table.name)}", "", f"{count(table.rows, 'row')}.", ""]
    lines += ["| column | type | |", "|---|---|---|"]
    alone = {key.columns[0] for key in table.keys if len(key.columns) == 1}
    parents = {
        each.dependent[0].column: each.referenced[0]
        for each in contract.references(table.name)
        if len(each.dependent) == 1
    }
    for column in table.columns:
        facts = ["key"] if column.name in alone else []
        facts += ["never null"] if column.required else []
        if column.name in parents:
            parent = parents[column.name]
            facts.append(f"refers to {_code(parent.table)}, {_code(parent.column)}")
        lines.append(f"| {_code(column.name)} | {_code(column.type)} | {', '.join(facts)} |")
    lists = {
        "Keys": [_code(listed(key.columns)) for key in table.keys],
        "Contained elsewhere": [_code(str(e)) for e in contract.inclusions_of(table.name)],
        "Functional dependencies": [_code(each.body) for each in table.dependencies],
        "Rules": [
            f"{_text(each.sentence)}: {_code(each.body)}" if each.sentence else _code(each.body)
            for each in table.denials
        ],
    }
    for heading, entries in lists.items():
        if entries:
            lines += ["", f"{heading}:", "", *(f"- {entry}" for entry in entries)]
    return lines


def _code(text: str) -> str:
    """Text in a code span that nothing in it ends, also inside a table.

    >>> _code("a"), _code("`a`"), _code("a|b")
    ('`a`', '`` `a` ``', '`a\\\\|b`')
    """
    text = plain(text).replace("|", r"\|")
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _text(text: str) -> str:
    """Text that is no markup.

    >>> _text("a*b <script>")
    'a\\\\*b \\\\<script\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~&])", r"\\\1", plain(text)).replace(r"\_", "_")
