"""A page about the tables, for people: columns, keys, parents and rules."""

from __future__ import annotations

import re

from holdfast.export.contract import Contract, TableContract, allowed
from holdfast.export.dialects import Dialect, nulls_sentence
from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
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
        facts += ["never null"] if column.name in table.never_null else []
        if column.name in parents:
            parent = parents[column.name]
            facts.append(f"refers to {_code(parent.table)}, {_code(parent.column)}")
        lines.append(f"| {_code(column.name)} | {_code(column.type)} | {', '.join(facts)} |")
    for heading, entries in _lists(contract, table).items():
        lines += ["", f"{heading}:", "", *(f"- {entry}" for entry in entries)]
    return lines


def _lists(contract: Contract, table: TableContract) -> dict[str, list[str]]:
    """Its constraints by their headings: keys, what relates it to others, and the rest. What is
    said of single columns stands beside these."""
    nearly = [rule for rule in table.rules if rule in table.bounds]
    rules = [rule for rule in table.strict if registry.of(rule).role is None]
    lists: dict[str, list[str]] = {}
    for rule in (*table.keys, *contract.across_of(table.name), *rules, *nearly):
        entry, bound = _entry(rule), contract.bounds.get(rule)
        entry += "" if bound is None else f" ({allowed(bound)})"
        lists.setdefault(registry.of(rule).exporter().heading, []).append(entry)
    return lists


def _entry(rule: Constraint) -> str:
    kind = registry.of(rule)
    sentence, body = kind.exporter().sentence(rule), _code(kind.body(rule))
    return f"{_text(sentence)}: {body}" if sentence else body


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
