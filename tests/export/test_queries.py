"""A violation query finds what violates a rule: by the oracle, on generated tables, with nulls."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.export.contract import Column, Contract, TableContract
from holdfast.export.dialects import DIALECTS, SQLITE
from holdfast.export.queries import Queries
from holdfast.model.column_values import SYMBOLS, Bounds, Domain, Pattern
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import OPERATORS, DenialConstraint, Predicate
from holdfast.model.grammar import Rule, parse
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from tests import oracle
from tests.export.brute import violations
from tests.export.contracts import ODD, ODD_BROKEN, ODD_ROWS, odd
from tests.export.databases import sqlite_of
from tests.strategies import examples, tables

NAMES = ("rows", 'a"b', "new\nline", "select", "T")
"""Of the generated columns: also what the queries call their own."""


NUMBERS = st.integers(-1, 4).map(str)


@st.composite
def rules(draw: st.DrawFn, columns: int) -> Rule:
    """Any constraint of a table ``t`` with so many columns."""
    names = st.sampled_from(NAMES[:columns])
    sets = st.lists(names, unique=True, max_size=3).map(tuple)
    kind = draw(st.sampled_from(["key", "fd", "ind", "dc", "dc", "null", "in", "bound"]))
    if kind == "key":
        return Key("t", draw(sets))
    if kind == "fd":
        right = draw(names)
        return FunctionalDependency("t", tuple(c for c in draw(sets) if c != right), right)
    if kind == "null":
        return NotNull("t", draw(names))
    if kind == "in":
        values = draw(st.lists(NUMBERS, min_size=1, max_size=3).map(tuple))
        return Domain("t", draw(names), "number", values)
    if kind == "bound":
        bounds = st.fixed_dictionaries({"at_least": NUMBERS, "at_most": NUMBERS})
        one = st.sampled_from([*SYMBOLS]).flatmap(lambda n: NUMBERS.map(lambda v: {n: v}))
        return Bounds("t", draw(names), "number", **draw(bounds | one))
    if kind == "ind":
        pairs = draw(st.lists(st.tuples(names, names), min_size=1, max_size=2, unique=True))
        dependent, referenced = zip(*pairs, strict=True)
        return InclusionDependency(
            tuple(Attribute("t", c) for c in dependent),
            tuple(Attribute("t", c) for c in referenced),
        )
    cells = st.tuples(st.sampled_from("ts"), names)
    predicates = st.builds(Predicate, cells, st.sampled_from(OPERATORS), cells)
    return DenialConstraint("t", tuple(draw(st.lists(predicates, max_size=3))))


def contract(columns: int, nulls: str, inclusion_nulls: str = "ignored") -> Contract:
    """That of a table which had no nulls when it was profiled; now it may have some."""
    described = tuple(Column(NAMES[c], "bigint") for c in range(columns))
    present = tuple(NotNull("t", NAMES[c]) for c in range(columns))
    table = TableContract("t", described, 0, present)
    return Contract("any", 1, nulls, inclusion_nulls, (table,))


@settings(max_examples=examples(150))
@given(st.data(), st.sampled_from(["equal", "unequal"]), st.sampled_from(["ignored", "values"]))
def test_a_query_finds_what_violates_a_rule(
    data: st.DataObject, nulls: str, inclusion_nulls: str
) -> None:
    columns, rows = data.draw(tables(max_rows=8))
    rule = data.draw(rules(columns))
    asked = contract(columns, nulls, inclusion_nulls)
    database = sqlite_of(asked, SQLITE, {"t": rows})
    answer = database.execute(Queries(SQLITE, asked).of(rule)).fetchall()
    database.close()
    expected = violations(rule, rows, NAMES, nulls, inclusion_nulls)
    if isinstance(rule, Key) or (isinstance(rule, DenialConstraint) and not rule.predicates):
        width = len(rule.columns) if isinstance(rule, Key) else 0
        assert {row[:width] for row in answer} == expected
        # The number of rows in each group is told, too.
        assert sum(n * (n - 1) // 2 for *_, n in answer) == oracle.violations(
            rows, tuple(map(NAMES.index, getattr(rule, "columns", ()))), None, nulls
        )
    elif isinstance(rule, FunctionalDependency):
        assert {row[: len(rule.lhs)] for row in answer} == expected
    else:
        assert set(answer) == expected


@settings(max_examples=examples(150))
@given(st.data(), st.sampled_from(["equal", "unequal"]), st.sampled_from(["ignored", "values"]))
def test_a_query_counts_the_rows_that_would_have_to_go(
    data: st.DataObject, nulls: str, inclusion_nulls: str
) -> None:
    columns, rows = data.draw(tables(max_rows=8))
    rule = data.draw(rules(columns))
    asked = contract(columns, nulls, inclusion_nulls)
    cells = {"t": [dict(zip(NAMES, row, strict=False)) for row in rows]}
    if isinstance(rule, InclusionDependency) and len(rule.dependent) > 1:
        inclusion_nulls = "ignored"  # of several columns the queries always do
    removal = oracle.removal(rule, cells, nulls, inclusion_nulls)
    if isinstance(rule, DenialConstraint) and not rule.is_within_a_row and rule.plain is None:
        return  # of which nothing is bounded
    assert removal is not None
    queries = Queries(SQLITE, asked)
    database = sqlite_of(asked, SQLITE, {"t": rows})
    [(number,)] = database.execute(queries.total(rule)).fetchall()
    told = database.execute(queries.too_many(rule, max(removal - 1, 0))).fetchall()
    none = database.execute(queries.too_many(rule, removal)).fetchall()
    database.close()
    assert number == removal
    assert (told, none) == ([(removal,)] if removal else [], [])


@settings(max_examples=examples(60))
@given(
    st.data(), st.sampled_from(["rows >= {}", "rows <= {}", "rows between {} and 9", "rows = {}"])
)
def test_rows_are_counted(data: st.DataObject, form: str) -> None:
    columns, rows = data.draw(tables(max_rows=8))
    rule = parse("t: " + form.format(data.draw(st.integers(0, 9))))
    asked = contract(columns, "equal")
    database = sqlite_of(asked, SQLITE, {"t": rows})
    answer = database.execute(Queries(SQLITE, asked).of(rule)).fetchall()
    database.close()
    wrong = oracle.whole_table(rule, rows, datetime.now(UTC))  # type: ignore[arg-type]
    assert answer == ([(len(rows),)] if wrong else [])


@pytest.mark.parametrize("type_", ["date", "timestamp", "timestamp_ntz(9)"])
def test_the_newest_value_is_compared_with_now(type_: str) -> None:
    table = TableContract("t", (Column("newest", type_),))
    asked = Contract("any", 1, "equal", "ignored", (table,))
    now = datetime.now(UTC)
    if type_ == "date":
        value = str(now.date() - timedelta(days=2))
    else:
        value = str(now - timedelta(hours=47))[: len("2026-11-15 08:30:00")]
    for rows, within, found in (
        ([(value,), ("1999-01-01",), (None,)], "3 days", False),
        ([(value,), ("1999-01-01",), (None,)], "1 day", True),
        ([(None,)], "3 days", True),
        ([], "3 days", True),
    ):
        database = sqlite_of(asked, SQLITE, {"t": rows})
        rule = parse(f"t: newest(newest) within {within}")
        answer = database.execute(Queries(SQLITE, asked).of(rule)).fetchall()
        database.close()
        assert bool(answer) == found


def test_an_inclusion_between_tables_finds_the_missing_values() -> None:
    asked = odd()
    database = sqlite_of(asked, SQLITE, ODD_BROKEN)
    (rule,) = asked.across_of(asked.tables[0].name)
    assert sorted(database.execute(Queries(SQLITE, asked).of(rule))) == [(98,), (99,)]


@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_odd_names_are_asked_for(nulls: str) -> None:
    asked = odd(nulls)
    for rows, found in ((ODD_ROWS, False), (ODD_BROKEN, True)):
        database = sqlite_of(asked, SQLITE, rows)
        for rule in asked.rules:
            if not isinstance(rule, NotNull):
                answer = database.execute(Queries(SQLITE, asked).of(rule)).fetchall()
                assert bool(answer) == found, rule


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_says_how_nulls_compare(name: str) -> None:
    """Where the database has another way to say it, the query has, too."""
    queries = Queries(DIALECTS[name], odd())
    different = DIALECTS[name].different.split("{}")[1].strip()
    text = queries.of(DenialConstraint(odd().tables[0].name, (
        Predicate(("t", ODD[1]), "=", ("s", ODD[1])), Predicate(("t", ODD[2]), "!=", ("s", ODD[2])),
    )))  # fmt: skip
    assert different in text


def test_a_pattern_is_asked_for() -> None:
    """SQLite asks a function that its program has."""
    columns = (Column("code", "string"),)
    asked = Contract("any", 1, "equal", "ignored", (TableContract("t", columns, 0, ()),))
    texts = ("AB-1", "ab-1", "AB-1\n", "XAB-1", "", None, "AB-é", "AB- ")
    database = sqlite_of(asked, SQLITE, {"t": [(text,) for text in texts]})

    def is_found(pattern: str, text: str | None) -> bool | None:
        # In Python, $ also stands before a line break at the end.
        return None if text is None else bool(re.search(pattern.replace("$", r"\Z"), text))

    database.create_function("regexp", 2, is_found)
    for pattern in (r"[A-Z]{2}-\d", r"AB-\w|ab-1", "AB.*", r"AB-\S", r"AB-[\s\d]"):
        rule = Pattern("t", "code", pattern)
        answer = {row for (row,) in database.execute(Queries(SQLITE, asked).of(rule))}
        assert answer == {text for text in texts if not oracle.passes(rule, text)}, pattern
    database.close()
