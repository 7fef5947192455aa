"""Constraints in the forms of other tools. Reaches no Spark and reads no rows.

files.py               the texts of an export, and where they are written
contract.py            what is exported of a version: tables, and their best constraints
dialects.py            how databases write names, types and comparisons
patterns.py            regular expressions as more than one engine reads them
queries.py             queries that find the violations of a constraint
sql.py                 constraints of databases
dbt.py, great_expectations.py, soda.py, odcs.py, mermaid.py, markdown.py, document.py
                       the other forms, one module each; a new one is a line in the registry
rules.py               expectations, as the file that they are declared with
yaml_text.py           YAML that every reader understands in the same way

An exported check never fails on the rows of the profile. It can be weaker than the constraint if a
tool compares nulls in another way; the queries are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.export import (
    dbt,
    document,
    great_expectations,
    markdown,
    mermaid,
    odcs,
    queries,
    soda,
    sql,
)
from holdfast.export.contract import Contract, contract_of
from holdfast.export.dialects import DIALECTS, Dialect, dialect
from holdfast.export.files import Exported
from holdfast.model.errors import InputError

__all__ = ["DIALECTS", "FORMS", "Contract", "Exported", "contract_of", "exported"]


@dataclass(frozen=True)
class Form:
    """A form that constraints can be exported in."""

    about: str
    files: Callable[[Contract, Dialect, bool], dict[str, str]]
    comment: str  # what a line of comment begins with, between files that are printed together


_UNCHOSEN = (
    "no rule is expected or suggested, so this is the grain of each table and the foreign keys; "
    "holdfast expect chooses rules, and --all exports every constraint that holds"
)

FORMS = {
    "sql": Form("SQL constraints", sql.files, "-- "),
    "queries": Form("SQL queries that find violations", queries.files, "-- "),
    "dbt": Form("dbt tests and constraints", dbt.files, "# "),
    "gx": Form("suites of Great Expectations", great_expectations.files, "// "),
    "soda": Form("Soda contracts", soda.files, "# "),
    "odcs": Form("an Open Data Contract", odcs.files, "# "),
    "mermaid": Form("a diagram of the tables", mermaid.files, "%% "),
    "markdown": Form("a page about the tables", markdown.files, ""),
    "json": Form("JSON", document.files, ""),
}
"""Every form by the name that ``--to`` gives it."""


def exported(
    what: Contract, to: str, in_dialect: str = "spark", *, create: bool = False
) -> Exported:
    """A contract in a form. ``create`` asks SQL for statements that make the tables, too."""
    if to not in FORMS:
        raise InputError(f"unknown form {to!r}; there are: {', '.join(FORMS)}")
    chosen = dialect(in_dialect)
    if create and to != "sql":
        raise InputError(f"only sql creates tables, and {to} does not; leave out --create-tables")
    form = FORMS[to]
    return Exported(form.files(what, chosen, create), form.comment, _UNCHOSEN * what.unchosen)
