"""A diagram of tables and foreign keys, as Mermaid draws it."""

from __future__ import annotations

import re

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect
from holdfast.model.names import identifier
from holdfast.screen.text import plain

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTABLE = re.compile(r'[^"%\\`;#<>{}\[\]]+')


def files(contract: Contract, _dialect: Dialect, _create: bool) -> dict[str, str]:
    """An entity relationship diagram: PK is the first key of a table, UK another of one column, FK
    a foreign key."""
    lines = ["erDiagram"]
    for table in contract.tables:
        lines += _entity(contract, table)
    for each in contract.foreign_keys:
        child, parent = map(contract.table, (each.tables[0], each.tables[-1]))
        assert child is not None
        assert parent is not None
        columns = [a.column for a in each.dependent]
        # At most one child row for each parent where the columns contain a key of the child.
        single = any({*key.columns} <= {*columns} for key in child.keys)
        optional = not child.never_null.issuperset(columns)
        ends = f"{'|o' if optional else '||'}--{'o|' if single else 'o{'}"
        label = _text(", ".join(columns))
        lines.append(f"    {_name(parent.name)} {ends} {_name(child.name)} : {label}")
    return {"tables.mmd": "\n".join(lines) + "\n"}


def _entity(contract: Contract, table: TableContract) -> list[str]:
    """A table with its columns."""
    first = table.keys[0].columns if table.keys else ()
    alone = {key.columns[0] for key in table.keys[1:] if len(key.columns) == 1}
    foreign = {a.column for each in contract.references(table.name) for a in each.dependent}
    lines = [f"    {_name(table.name)} {{"]
    for column in table.columns:
        marks = [
            mark
            for mark, group in (("PK", first), ("FK", foreign), ("UK", alone))
            if column.name in group
        ]
        said = _word(column.name)
        words = [_word(column.type), said]
        words += [", ".join(marks)] if marks else []
        words += [_text(column.name)] if said != column.name else []
        lines.append(f"        {' '.join(words)}")
    return [*lines, "    }"]


def _name(name: str) -> str:
    """A table's name: as it is, in quotes, or where these cannot hold it in plain letters.

    >>> _name("orders"), _name("my orders"), _name('a"b')
    ('orders', '"my orders"', 'a_b__043a23')
    """
    if _WORD.fullmatch(name):
        return name
    return f'"{name}"' if _QUOTABLE.fullmatch(name) and name.isprintable() else identifier([name])


def _word(text: str) -> str:
    """A column or type in the letters that the diagram takes.

    >>> _word("decimal(12,2)"), _word("first name"), _word("1")
    ('decimal_12_2', 'first_name', 'c_1')
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") if not _WORD.fullmatch(text) else text
    return word if _WORD.fullmatch(word) else f"c_{word}".strip("_")


def _text(text: str) -> str:
    """Text in quotes; Mermaid has no escape but entities.

    >>> _text('a "b"')
    '"a #quot;b#quot;"'
    """
    escaped = plain(text).replace("#", "#35;").replace('"', "#quot;")
    return f'"{escaped.replace("<", "#lt;").replace(">", "#gt;")}"'
