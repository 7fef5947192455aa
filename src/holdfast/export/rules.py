"""Expectations as the file that ``holdfast expect --from`` takes."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.export.yaml_text import dumps
from holdfast.model.expectations import ERROR, Expectation
from holdfast.model.records import JsonObject
from holdfast.screen.text import plain

RULES = "rules.yml"
"""What the file is called in a folder."""


def rules_file(rules: Sequence[Expectation], reasons: Sequence[str] = ()) -> str:
    """The text of the file, with the settings that are not the usual ones; and above each rule,
    why it is there, if there are ``reasons``.

    >>> print(rules_file([Expectation("orders: key(id)", max_rows=9)], ["its grain"]), end="")
    version: 1
    rules:
      # its grain
      - rule: 'orders: key(id)'
        max_rows: 9
    """
    lines = ["version: 1", "rules:" if rules else "rules: []"]
    for place, each in enumerate(rules):
        if reasons:
            lines.append(f"  # {plain(reasons[place])}")
        lines += dumps({"rules": [_entry(each)]}).splitlines()[1:]
    return "\n".join(lines) + "\n"


def _entry(rule: Expectation) -> JsonObject:
    form: JsonObject = {"rule": rule.rule}
    if rule.name is not None:
        form["name"] = rule.name
    if rule.severity != ERROR:
        form["severity"] = rule.severity
    if rule.max_error:
        form["max_error"] = rule.max_error
    if rule.max_rows is not None:
        form["max_rows"] = rule.max_rows
    return form
