"""Files of expectations, for version control: YAML with nothing in it but rules.

::

    version: 1
    rules:
      - rule: 'orders: key(id)'
        name: one row per order
      - rule: 'orders(customer) in customers(id)'
        severity: warn
        max_error: 0.01
      - rule: 'orders: city -> country'
        max_rows: 20
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from holdfast.input.yaml_file import Block, described, expect_keys, read_versioned
from holdfast.model.errors import HoldfastError, InputError
from holdfast.model.expectations import Expectation
from holdfast.model.grammar import parse

_FIELDS: dict[str, tuple[tuple[type, ...], str]] = {
    "rule": ((str,), "text, such as 'orders: key(id)'"),
    "severity": ((str,), "error or warn"),
    "max_error": ((int, float), "a number, such as 0.01"),
    "max_rows": ((int,), "a number of rows, such as 20"),
    "name": ((str,), "text"),
}

Entry = tuple[str, Expectation]
"""Where in the file a rule is, and the rule."""


def read(path: str | os.PathLike[str]) -> list[Entry]:
    """The expectations of a file, each with its place for messages."""
    file = os.fspath(path)
    rules = read_versioned(Path(file), "rules", aliases=False)
    if not isinstance(rules, list):
        raise InputError(
            f"{file}: expected a list of rules under 'rules', found {described(rules)}"
        )
    entries = [
        _entry(_where(file, number, form), form) for number, form in enumerate(rules, start=1)
    ]
    names: dict[str, str] = {}
    for where, rule in entries:
        if rule.name is not None and names.setdefault(rule.name, where) != where:
            raise InputError(
                f"{where}: the name {rule.name!r} is that of another one, {names[rule.name]}"
            )
    return entries


def _where(file: str, number: int, form: Any) -> str:
    """The line in which a rule is, or begins."""
    lines = form.lines if isinstance(form, Block) else {}
    line = lines.get("rule", min(lines.values(), default=None))
    return f"{file}{'' if line is None else f', line {line}'}: rule {number}"


def _entry(where: str, form: Any) -> Entry:
    if not isinstance(form, dict):
        raise InputError(f"{where}: is {described(form)}, expected a rule with its settings")
    expect_keys(where, form, [*_FIELDS])
    for key, value in form.items():
        types, expected = _FIELDS[key]
        if not isinstance(value, types) or isinstance(value, bool):
            raise InputError(f"{where}: {key} is {described(value)}, expected {expected}")
    if "rule" not in form:
        raise InputError(f"{where}: rule is missing, expected {_FIELDS['rule'][1]}")
    try:
        parse(form["rule"])
        return where, Expectation(**form)
    except HoldfastError as error:
        raise type(error)(f"{where}: {error}") from error
