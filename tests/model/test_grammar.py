"""Constraints print and parse alike, whatever tables and columns are called."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from holdfast.model.column_values import SYMBOLS, Bounds, Domain, Pattern, ValueRule
from holdfast.model.constraints import (
    AgreeSet,
    Constraint,
    FunctionalDependency,
    Key,
    NonKey,
    NotNull,
)
from holdfast.model.denial_constraints import OPERATORS, ROWS, DenialConstraint, Predicate
from holdfast.model.errors import InputError, RuleError
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import (
    Attribute,
    Cluster,
    ForeignKey,
    InclusionDependency,
)
from holdfast.model.literals import plain_number
from holdfast.model.names import KEYWORDS, listed, quoted
from holdfast.model.records import from_form
from tests.strategies import examples

PAGE = Path(__file__).parent.parent.parent / "docs" / "semantics.md"

HOSTILE = st.sampled_from(
    ["", " ", "`", "``", "a`", "`a", "a b", "a.b", "1", "1a", "_", "t", "s", "key", "KEY", "In",
     "not null", "and", "null", "a, b", "a: key(b)", "a -> b", "(", ")", "{}", "->", "→", "\n",
     "a\nb", "\t", "\x00", "\x1b[2J", "é", "名前", "ﬁ", "K", "Key", "ı", "a·b", "²", "🦀", "\ud800",
     "\u2028", "\u200b", "--", "'", '"', "\\", "between", "Rows", "newest", "within",
     "matches", "true"]
)  # fmt: skip
NAMES = st.one_of(st.sampled_from(["a", "b", "orders"]), HOSTILE, st.text(max_size=6))
COLUMNS = st.lists(NAMES, max_size=4).map(tuple)
CELLS = st.tuples(st.sampled_from(ROWS), NAMES)
PREDICATES = st.builds(Predicate, CELLS, st.sampled_from(OPERATORS), CELLS)


@st.composite
def inclusions(draw: st.DrawFn) -> InclusionDependency:
    one, two = draw(NAMES), draw(NAMES)
    columns = draw(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=4))
    return InclusionDependency(
        tuple(Attribute(one, column) for column, _ in columns),
        tuple(Attribute(two, column) for _, column in columns),
    )


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False).filter(
    lambda number: abs(number.adjusted()) < 400
)
LITERALS = st.one_of(
    st.lists(NAMES, min_size=2, max_size=4).map(lambda values: ("text", *values)),
    st.lists(NUMBERS.map(str).map(plain_number), min_size=2, max_size=4).map(
        lambda values: ("number", *values)
    ),
    st.just(("boolean", "true", "false")),
)


@st.composite
def column_values(draw: st.DrawFn) -> ValueRule:
    table, column, (type_, *values) = draw(st.tuples(NAMES, NAMES, LITERALS))
    if draw(st.booleans()):
        return Pattern(table, column, values[0])
    if draw(st.booleans()):
        return Domain(table, column, type_, tuple(values))
    if draw(st.booleans()):
        return Bounds(table, column, type_, at_least=values[0], at_most=values[1])
    return Bounds(table, column, type_, **{draw(st.sampled_from([*SYMBOLS])): values[0]})


CONSTRAINTS: st.SearchStrategy[Constraint] = st.one_of(
    st.builds(Key, NAMES, COLUMNS),
    st.builds(FunctionalDependency, NAMES, COLUMNS, NAMES),
    st.builds(NotNull, NAMES, NAMES),
    st.builds(DenialConstraint, NAMES, st.lists(PREDICATES, max_size=4).map(tuple)),
    inclusions(),
    column_values(),
)


@given(CONSTRAINTS)
@settings(max_examples=examples(1_000), deadline=None)
def test_what_is_printed_parses_back(constraint: Constraint) -> None:
    assert parse(str(constraint)) == constraint
    if not isinstance(constraint, InclusionDependency):
        assert str(constraint) == f"{quoted(constraint.table)}: {constraint.body}"


TOKENS = st.sampled_from(
    ["orders", "a", "t.", "s.", "t", "`", "``", "`a`", *sorted(KEYWORDS), *OPERATORS, "≠", "≤", "⊆",
     "→", "->", "<>", "==", "(", ")", "()", "{", "}", "{}", ",", ":", ".", " ", "\n", "-", "1", "é",
     "'", "'x'", "''", "-1.50", "1e3", "between", "true", "rows", "matches"]
)  # fmt: skip


@given(st.one_of(st.lists(TOKENS, max_size=12).map("".join), st.text(max_size=20)))
@example("")
@example("orders: `a")
@example("`" * 2_001)
@example("a" * 100_000 + ":")
@example("名前: 名 名")
@example("名" * 200 + " 前")
@example("e\u0301\u0302: a ~")
@settings(max_examples=examples(1_000), deadline=None)
def test_any_other_text_is_refused_with_its_place(text: str) -> None:
    try:
        parsed = parse(text)
    except InputError as error:
        first, shown, caret = str(error).split("\n")
        assert "expected " in first
        at = int(re.search(r"at character (\d+)", first)[1])  # type: ignore[index]
        assert 1 <= at <= len(text) + 1
        place = caret.index("^")
        assert caret.isprintable()
        assert shown.isprintable()
        assert max(cell_len(shown), cell_len(caret)) <= 80
        if at <= len(text) and text[at - 1].isprintable():
            # The caret is where a terminal shows the character: some take two places, some none.
            there = [c for end, c in enumerate(shown) if cell_len(shown[:end]) == place]
            assert text[at - 1] in there
    else:
        assert parse(str(parsed)) == parsed


T, S = ("t", "a"), ("s", "a")
AFTER_COLUMN = "'->', ',', 'not null', 'in', 'between', 'matches', '>=', '>', '<=' or '<'"


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("orders: key(a, b)", Key("orders", ("a", "b"))),
        ("orders:KEY( a,b )", Key("orders", ("a", "b"))),
        ("orders: key()", Key("orders", ())),
        ("orders: a, b -> c", FunctionalDependency("orders", ("a", "b"), "c")),
        ("orders: a→c", FunctionalDependency("orders", ("a",), "c")),
        ("orders: { } -> c", FunctionalDependency("orders", (), "c")),
        ("orders: o_orderkey not null", NotNull("orders", "o_orderkey")),
        ("`or``ders`:\n`first name` Not NULL", NotNull("or`ders", "first name")),
        (
            "orders(a, b) in customers(c, d)",
            InclusionDependency(
                (Attribute("orders", "a"), Attribute("orders", "b")),
                (Attribute("customers", "c"), Attribute("customers", "d")),
            ),
        ),
        (
            "orders(a)⊆``(`in`)",
            InclusionDependency((Attribute("orders", "a"),), (Attribute("", "in"),)),
        ),
        ("orders: status in ('O', 'F')", Domain("orders", "status", "text", ("O", "F"))),
        ("orders:a IN('O''Neill','')", Domain("orders", "a", "text", ("O'Neill", ""))),
        ("orders: a ⊆ (1.50, -0, +12e2)", Domain("orders", "a", "number", ("1.5", "0", "1200"))),
        ("orders: a in (TRUE)", Domain("orders", "a", "boolean", ("true",))),
        ("orders: `in` in (1)", Domain("orders", "in", "number", ("1",))),
        (
            "orders: between BETWEEN 1 and 2",
            Bounds("orders", "between", "number", at_least="1", at_most="2"),
        ),
        ("orders: a ≥ '2026-11-15'", Bounds("orders", "a", "text", at_least="2026-11-15")),
        ("orders: a matches '[A-Z]''?'", Pattern("orders", "a", "[A-Z]'?")),
        ("orders: matches MATCHES ''", Pattern("orders", "matches", "")),
        ("orders: a -> matches", FunctionalDependency("orders", ("a",), "matches")),
        ("orders: a >-5", Bounds("orders", "a", "number", above="-5")),
        ("orders: `rows` < 5", Bounds("orders", "rows", "number", below="5")),
        ("orders: between -> rows", FunctionalDependency("orders", ("between",), "rows")),
        ("orders: matches, true -> a", FunctionalDependency("orders", ("matches", "true"), "a")),
        ("orders: newest not null", NotNull("orders", "newest")),
        ("orders: not ()", DenialConstraint("orders", ())),
        (
            "orders: not (t.a <= t.b)",
            DenialConstraint("orders", (Predicate(T, "<=", ("t", "b")),)),
        ),
        (
            "orders: NOT(t.a=s.a AND t.`x y`>s.`x y`)",
            DenialConstraint(
                "orders", (Predicate(T, "=", S), Predicate(("t", "x y"), ">", ("s", "x y")))
            ),
        ),
    ],
)
def test_forms(text: str, constraint: Constraint) -> None:
    assert parse(text) == constraint


@pytest.mark.parametrize(
    ("operators", "meant"),
    [("= ==", "="), ("!= <> ≠", "!="), ("<", "<"), ("<= ≤", "<="), (">", ">"), (">= ≥", ">=")],
)
def test_operators(operators: str, meant: str) -> None:
    for written in operators.split():
        parsed = parse(f"orders: not (t.a {written} s.a)")
        assert str(parsed) == f"orders: not (t.a {meant} s.a)"


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", 1, "a table"),
        ("orders", 7, "':' or '('"),
        ("orders: ", 9, "a column, 'key', 'not' or '{}'"),
        ("orders: a", 10, AFTER_COLUMN),
        ("orders: a, b", 13, "'->' or ','"),
        ("orders: a, b not null", 14, "'->' or ','"),
        ("orders: a ~ b", 11, "a name or a symbol"),
        ("orders: a -> b, c", 15, "the end"),
        ("orders: key -> a", 13, "'('; a column that is called key goes in backticks"),
        ("orders: a -> key", 14, "a column; a name goes in backticks: `key`"),
        ("orders: key(a", 14, "',' or ')'"),
        ("orders: key(a,)", 15, "a column"),
        ("orders: {a} -> b", 10, "'}'"),
        ("orders: first name -> b", 15, AFTER_COLUMN),
        ("orders: `a -> b", 9, "a second backtick"),
        ("orders: not (t.a = 5)", 20, "a row, t or s"),
        ("orders: 1 -> b", 9, "a column, 'key', 'not' or '{}'; a name goes in backticks: `1`"),
        ("orders: 1st -> b", 9, "a name or a symbol; a name that is no plain word goes"),
        ("orders: a in 5", 14, "'('"),
        ("orders: a in ()", 15, "a number, a text in quotes, true or false"),
        (
            "orders: a in (x)",
            15,
            "a number, a text in quotes, true or false; text goes in quotes: 'x'",
        ),
        ("orders: a matches 5", 19, "a pattern in quotes"),
        ("orders: a `matches` 'x'", 11, AFTER_COLUMN),
        ("orders: a in (1, 'x')", 18, "a number, as the values before"),
        ("orders: a between 1, 2", 20, "'and'"),
        ("orders: a > 'x", 13, "a second quote, which ends the text"),
        ("orders: a > 1e999999999", 13, "a number of fewer digits"),
        ("orders: not (t.a = r.a)", 20, "a row, t or s"),
        ("orders: not (t.a -> s.a)", 18, "'=', '!=', '<', '<=', '>' or '>='"),
        ("orders: not (t.a = s.a or t.b = s.b)", 24, "'and' or ')'"),
        ("orders() in customers()", 8, "a column"),
        ("orders(a, b) in customers(c)", 28, "as many columns on both sides"),
        ("orders(a) -> customers(b)", 11, "'in'"),
    ],
)
def test_errors_say_where_and_what(text: str, place: int, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert f"at character {place}, expected {expected}" in str(caught.value)
    assert str(caught.value).endswith(f"\n  {text}\n  {' ' * (place - 1)}^")


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("orders: kye(id)", 9, "did you mean key(?"),
        ("orders: Keys(id)", 9, "did you mean key(?"),
        ("orders: unique(id)", 9, "did you mean key(?"),
        ("orders: nto (t.a = s.a)", 9, "did you mean not (?"),
        ("orders: a = 5", 11, "did you mean in?"),
        ("orders: a betwen 1 and 3", 11, "did you mean between?"),
        ("orders: a nto null", 11, "did you mean not null?"),
        ("orders: a is not null", 11, "did you mean not null?"),
        ("orders: a not nul", 15, "did you mean null?"),
        ("orders: a => b", 11, "did you mean ->?"),
        ("orders: a --> b", 11, "did you mean ->?"),
        ("orders: not (t.a => s.a)", 18, "did you mean >=?"),
        ("orders: not (t.a =< s.a)", 18, "did you mean <=?"),
        ("orders: not (t.a = s.a adn t.b < s.b)", 24, "did you mean and?"),
        ("orders: not (t.a = s.a, t.b < s.b)", 23, "did you mean and?"),
        ("orders: not (t.a = s.a && t.b < s.b)", 24, "did you mean and?"),
        ("orders(a) inn customers(b)", 11, "did you mean in?"),
        ("orders(a) references customers(b)", 11, "did you mean in?"),
        ("orders(a) <= customers(b)", 11, "did you mean in?"),
        ("key(id)", 1, "a rule begins with its table, as in orders: key(id)"),
        ("kye(id)", 8, "a rule begins with its table, as in orders: key(id)"),
        ("a -> b", 3, "a rule begins with its table, as in orders: key(id)"),
    ],
)
def test_likely_slips_have_a_hint(text: str, place: int, hint: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(text)
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith(f"this is not a constraint; at character {place}, expected ")
    assert first.endswith(f"; {hint}")
    assert (shown, caret.index("^")) == (f"  {text}", place + 1)


@pytest.mark.parametrize("text", ["orders: a b", "orders: `kye`(id)", "orders: total(id)"])
def test_what_is_no_slip_has_no_hint(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert "did you mean" not in str(caught.value)


def test_the_page_about_the_grammar_shows_it() -> None:
    section = PAGE.read_text("utf-8").split("## How constraints are written")[1]
    forms = re.findall(r"^\| `(.+?)` \|", section, flags=re.MULTILINE)
    assert len(forms) == 15
    assert [str(parse(form)) for form in forms] == forms
    (shown,) = re.findall(r"```\n(.*?)\n```", section, flags=re.DOTALL)
    with pytest.raises(InputError) as caught:
        parse("people: zip city")
    assert str(caught.value) == shown


def test_a_long_text_is_shown_around_its_error() -> None:
    with pytest.raises(InputError) as caught:
        parse("orders: " + "a, " * 1_000 + "-> b")
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 100
    assert shown[caret.index("^") :] == "-> b"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("id", "id"),
        ("größe", "größe"),
        ("1st", "`1st`"),
        ("Key", "`Key`"),
        ("", "``"),
        ("`", "````"),
    ],
)
def test_names_are_in_backticks_where_they_are_unclear(name: str, shown: str) -> None:
    assert quoted(name) == shown
    assert listed([name, "b"]) == f"{shown}, b"


@pytest.mark.parametrize(
    "given", [{}, {"above": "1", "below": "2"}, {"above": "1", "at_least": "2"}]
)
def test_bounds_are_such_as_can_be_written(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match="at_least and at_most together, or one of"):
        Bounds("orders", "a", "number", **given)


def test_a_predicate_is_one() -> None:
    with pytest.raises(InputError, match="no comparison"):
        Predicate(T, "≤", S)
    with pytest.raises(InputError, match="t or s"):
        Predicate(("u", "a"), "=", S)


@pytest.mark.parametrize(
    "each",
    [
        Key("orders", ("a", "`")),
        Key("orders", (), 0.25),
        NonKey("orders", ("a",)),
        NonKey("orders", ("a",), ({"a": 1, "b": 2}, {"a": 1, "b": 3})),
        FunctionalDependency("orders", ("a",), "b", 0.5),
        NotNull("orders", "a.b"),
        Domain("orders", "a.b", "text", ("O'Neill", "")),
        Bounds("orders", "a", "number", at_least="0", at_most="0.5"),
        Bounds("orders", "a", "number", below="1"),
        DenialConstraint("orders", (Predicate(T, "<", S),), 0.125),
    ],
)
def test_json_forms_of_one_table_are_read_back(
    each: Key | NonKey | FunctionalDependency | NotNull | Domain | Bounds | DenialConstraint,
) -> None:
    assert from_form(type(each), json.loads(json.dumps(each.to_dict())), table="orders") == each


A, B, C = Attribute("a.b", "c"), Attribute("d", "`e"), Attribute("a.b", "f g")


@pytest.mark.parametrize(
    "each",
    [
        AgreeSet(("a",), 7),
        Cluster((A, B), 3),
        InclusionDependency((A, C), (B, B), 0.5),
        ForeignKey((A,), (B,), 0.75),
        Predicate(T, ">=", S),
    ],
)
def test_other_json_forms_are_read_back(
    each: AgreeSet | Cluster | InclusionDependency | ForeignKey | Predicate,
) -> None:
    assert from_form(type(each), json.loads(json.dumps(each.to_dict()))) == each


def test_json_forms_hold_names_and_nothing_to_be_parsed() -> None:
    assert InclusionDependency((A,), (B,)).to_dict() == {
        "dependent": {"table": "a.b", "columns": ["c"]},
        "referenced": {"table": "d", "columns": ["`e"]},
        "coverage": 1.0,
    }
    assert DenialConstraint("staff", (Predicate(T, "=", S),)).to_dict() == {
        "form": "key",
        "predicates": [{"left": ["t", "a"], "op": "=", "right": ["s", "a"]}],
        "error": 0.0,
    }
    assert Cluster((A, B), 3).to_dict() == {"attributes": [["a.b", "c"], ["d", "`e"]], "values": 3}
