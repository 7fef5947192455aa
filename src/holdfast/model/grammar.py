"""The grammar of constraints: what a constraint prints is what is read here.

::

    orders: key(a, b)            orders: key()
    orders: a, b -> c            orders: {} -> c
    orders: a not null
    orders: a in ('x', 'y')      orders: a between 0 and 10      orders: a > 0
    orders: a matches '[A-Z]+'
    orders: rows >= 1000         orders: newest(a) within 2 days
    orders: not (t.a = s.a and t.b < s.b)
    orders(a, b) in customers(c, d)

``docs/semantics.md`` has it in full. A name that is not made of letters, digits and underscores, or
is a word of the grammar, is in backticks, and a backtick inside is doubled. Text is in single
quotes, and a quote inside it is doubled. Whitespace is free.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from holdfast.model.column_values import (
    BETWEEN,
    MATCHES,
    ROWS,
    SYMBOLS,
    Bounds,
    Domain,
    Pattern,
    ValueRule,
)
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import OPERATORS, Cell, DenialConstraint, Predicate
from holdfast.model.denial_constraints import ROWS as ROW_NAMES
from holdfast.model.errors import RuleError
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.literals import BOOLEAN, NUMBER, TEXT, is_long, plain_number
from holdfast.model.names import is_keyword, quoted
from holdfast.model.whole_tables import NEWEST, UNITS, WITHIN, Newest, RowCount, TableRule

__all__ = ["Rule", "parse", "quoted"]

Rule = (
    Key
    | FunctionalDependency
    | InclusionDependency
    | NotNull
    | ValueRule
    | TableRule
    | DenialConstraint
)
"""What the grammar can say."""

COLUMN_RULES: dict[str, Callable[[str, str], Rule]] = {"not null": NotNull}
"""Rules about single columns, by the words behind the column, which are ``names.KEYWORDS``."""

_BOUNDS = {symbol: name for name, symbol in SYMBOLS.items()}

_VALUE_RULES = ("in", BETWEEN, MATCHES, *_BOUNDS)
"""What stands between a column and values. ``between`` and ``matches`` are words there alone."""

_ROW_COUNTS: dict[str, tuple[int | None, int | None]] = {
    ">=": (0, None), ">": (1, None), "<=": (None, 0), "<": (None, -1), "=": (0, 0),
}  # fmt: skip
"""The least and the most rows that a comparison allows, as steps from its number."""

_BY_UNIT = {word: unit for unit in UNITS for word in (unit, unit[:-1])}
_UNITS = "minutes, hours, days or weeks"

_NAME, _TEXT, _NUMBER, _END = "a name", "a text", "a number", "the end"

_ALSO = {"→": "->", "⊆": "in", "==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
"""Other ways to write a symbol."""

_SLIPS = {"-->": ("->",), "=>": ("->", ">="), "=<": ("<=",), "&&": ("and",), ",": ("and",),
          "<=": ("in",), "references": ("in",), "=": ("in",), "is": ("not",),
          "unique": ("key",)}  # fmt: skip
"""What is written by mistake, and what may be meant, as far as that is expected there."""

_SYMBOL = re.compile(r"-->|->|==|!=|<>|<=|>=|=>|=<|&&|[(){},:.=<>≠≤≥→⊆]")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`(?!`)")
_LITERAL = re.compile(r"'((?:[^']|'')*)'(?!')")
_DIGITS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")

_SHOWN = 76
"""So many places of a terminal's line show the text around an error in it."""

_BEGINS = "; a rule begins with its table, as in orders: key(id)"


def parse(text: str) -> Rule:
    """The constraint that is written so.

    >>> parse("orders: a, b → c")
    <FunctionalDependency orders: a, b -> c>
    >>> str(parse("`my orders` (a) ⊆ people ( id )"))
    '`my orders`(a) in people(id)'
    """
    reader = _Reader(text)
    table = reader.name("a table", instead=_BEGINS)
    if reader.next(":", "(", instead=_BEGINS) == ":":
        constraint = _of_one_table(reader, table)
    else:
        constraint = _inclusion_dependency(reader, table)
    reader.next(_END)
    return constraint


def _of_one_table(reader: _Reader, table: str) -> Rule:
    if reader.skip("key"):
        reader.next("(", instead="; a column that is called key goes in backticks")
        return Key(table, reader.names(")"))
    if reader.skip("not"):
        reader.next("(", instead="; a column that is called not goes in backticks")
        return DenialConstraint(table, _predicates(reader))
    if reader.skip("{"):
        reader.next("}")
        reader.next("->")
        return FunctionalDependency(table, (), reader.name("a column"))
    columns = [reader.name("a column, 'key', 'not' or '{}'")]
    if (of_rows := _of_all_rows(reader, table)) is not None:
        return of_rows
    reader.expect_no_call("key(", "not (", f"{NEWEST}(")
    while reader.skip(","):
        columns.append(reader.name("a column"))
    if len(columns) == 1 and (rule := _of_one_column(reader, table, columns[0])) is not None:
        return rule
    reader.next("->", ",", *((*COLUMN_RULES, *_VALUE_RULES) if len(columns) == 1 else ()))
    return FunctionalDependency(table, tuple(columns), reader.name("a column"))


def _of_all_rows(reader: _Reader, table: str) -> TableRule | None:
    """What follows a word for a whole table, which is one only before what follows; None: it is
    none."""
    if reader.was_word(NEWEST) and reader.skip("("):
        column = reader.name("a column")
        reader.next(")")
        if not reader.word(WITHIN):
            reader.fail(f"'{WITHIN}'")
        number = reader.whole(f"a number of {_UNITS}", at_least=1)
        return Newest.of(table, column, number, reader.one_of(_BY_UNIT, _UNITS))
    if not reader.was_word(ROWS):
        return None
    hint = f"a number of rows; a column that is called {ROWS} goes in backticks"
    if reader.word(BETWEEN):
        least = reader.whole(hint)
        reader.next("and")
        return RowCount(table, least, reader.whole(hint))
    for symbol, (above, below) in _ROW_COUNTS.items():
        if reader.skip(symbol):
            rows = reader.whole(hint)
            return RowCount(
                table,
                None if above is None else rows + above,
                None if below is None else rows + below,
            )
    return None


def _of_one_column(reader: _Reader, table: str, column: str) -> Rule | None:
    """What follows a column that a rule is about; None: it is none."""
    for words, rule in COLUMN_RULES.items():
        first, *rest = words.split()
        if reader.skip(first):
            for word in rest:
                reader.next(word)
            return rule(table, column)
    if reader.skip("in"):
        reader.next("(")
        type_, value = reader.literal()
        values = [value]
        while reader.next(",", ")") == ",":
            values.append(reader.literal(type_)[1])
        return Domain(table, column, type_, tuple(values))
    if reader.word(BETWEEN):
        type_, least = reader.literal()
        reader.next("and")
        return Bounds(table, column, type_, at_least=least, at_most=reader.literal(type_)[1])
    if reader.word(MATCHES):
        return Pattern(table, column, reader.text("a pattern in quotes"))
    for symbol, bound in _BOUNDS.items():
        if reader.skip(symbol):
            type_, value = reader.literal()
            return Bounds(table, column, type_, **{bound: value})
    return None


def _predicates(reader: _Reader) -> tuple[Predicate, ...]:
    if reader.skip(")"):
        return ()
    predicates = [_predicate(reader)]
    while reader.next("and", ")") == "and":
        predicates.append(_predicate(reader))
    return tuple(predicates)


def _predicate(reader: _Reader) -> Predicate:
    left = _cell(reader)
    operator = reader.next(*OPERATORS)
    return Predicate(left, operator, _cell(reader))


def _cell(reader: _Reader) -> Cell:
    row = reader.name("a row, t or s", ROW_NAMES)
    reader.next(".")
    return row, reader.name("a column")


def _inclusion_dependency(reader: _Reader, table: str) -> InclusionDependency:
    dependent = _side(reader, table)
    reader.next("in", instead=_BEGINS if reader.at_end else "")
    other = reader.name("a table")
    reader.next("(")
    referenced = _side(reader, other)
    if len(dependent) != len(referenced):
        reader.fail(
            f"as many columns on both sides: {len(dependent)} on the left, "
            f"{len(referenced)} on the right",
            at=reader.last,
        )
    return InclusionDependency(dependent, referenced)


def _side(reader: _Reader, table: str) -> tuple[Attribute, ...]:
    columns = reader.names(")", at_least=1)
    return tuple(Attribute(table, column) for column in columns)


@dataclass(frozen=True)
class _Token:
    """A word of the text: ``kind`` is a name, a keyword, a symbol or the end."""

    kind: str
    text: str
    at: int  # where it begins


class _Reader:
    """Goes through the tokens of a text, one ahead, and says what was expected where."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self.last: _Token | None = None
        self._ahead = next(self._tokens)

    def next(self, *kinds: str, instead: str = "") -> str:
        """Take a token that has to be of one of these kinds, and say of which it is."""
        kind = self._ahead.kind
        if kind not in kinds:
            self.fail(_either(kinds) + (instead or self._meant(self._ahead, kinds)))
        self._take()
        return kind

    @property
    def at_end(self) -> bool:
        return self._ahead.kind == _END

    def skip(self, kind: str) -> bool:
        """Take the token if it is of this kind."""
        if self._ahead.kind != kind:
            return False
        self._take()
        return True

    def word(self, word: str) -> bool:
        """Take the token if it is a word that is one here alone, and no name in backticks."""
        return self._is_word(word) and self.skip(_NAME)

    def was_word(self, word: str) -> bool:
        """Whether the last token is such a word."""
        return self.last is not None and self._is_word(word, self.last)

    def one_of(self, words: Mapping[str, str], what: str) -> str:
        """Take a token that is one of some such words; what it stands for."""
        word = next((each for each in words if self.word(each)), None)
        if word is None:
            self.fail(what)
        return words[word]

    def whole(self, what: str, at_least: int = 0) -> int:
        """Take a whole number."""
        token = self._ahead
        is_whole = token.kind == _NUMBER and token.text.isdigit()
        if not is_whole or int(token.text) < at_least:
            self.fail(what)
        self._take()
        return int(token.text)

    def _is_word(self, word: str, token: _Token | None = None) -> bool:
        token = token or self._ahead
        return token.text.lower() == word and self._text[token.at : token.at + 1] not in ("`", "'")

    def literal(self, type_: str | None = None) -> tuple[str, str]:
        """Take a value, perhaps of the type of those before; its type and what it is."""
        token = self._ahead
        if token.kind == _NAME and (self._is_word("true") or self._is_word("false")):
            found = BOOLEAN, token.text.lower()
        else:
            found = {_TEXT: TEXT, _NUMBER: NUMBER}.get(token.kind, ""), token.text
        if not found[0]:
            hint = f"; text goes in quotes: '{token.text}'" if token.kind == _NAME else ""
            self.fail("a number, a text in quotes, true or false" + hint)
        if type_ not in (None, found[0]):
            self.fail(f"a {type_}, as the values before")
        self._take()
        return found

    def text(self, what: str) -> str:
        """Take a text in quotes."""
        token = self._ahead
        if token.kind != _TEXT:
            self.fail(what)
        self._take()
        return token.text

    def name(self, what: str, only: tuple[str, ...] | None = None, instead: str = "") -> str:
        """Take a name, perhaps one of a few."""
        token = self._ahead
        if token.kind != _NAME or (only is not None and token.text not in only):
            hint = instead or f"; a name goes in backticks: {quoted(token.text)}"
            is_hidden = token.kind in (_TEXT, _NUMBER) or is_keyword(token.text)
            self.fail(what + (hint if only is None and is_hidden else ""))
        self._take()
        return token.text

    def names(self, end: str, at_least: int = 0) -> tuple[str, ...]:
        """Take names with commas between them, and what ends them."""
        if not at_least and self.skip(end):
            return ()
        names = [self.name("a column" if at_least else f"a column or '{end}'")]
        while self.next(",", end) == ",":
            names.append(self.name("a column"))
        return tuple(names)

    def expect_no_call(self, *words: str) -> None:
        """See that the last name is not followed by a parenthesis, as these words are."""
        if self._ahead.kind == "(" and self.last is not None:
            names = tuple(word.rstrip(" (") for word in words)
            self.fail(f"{_either(names)} before '('" + self._meant(self.last, words), self.last)

    def _meant(self, token: _Token, kinds: tuple[str, ...]) -> str:
        """A hint, where a token looks like a slip for one of these."""
        if self._text[token.at : token.at + 1] == "`":
            return ""
        # Imported here, because most rules have no mistake in them.
        import difflib

        by_word = {re.split(r"\W", kind)[0] or kind: kind for kind in kinds}
        slips = [word for word in _SLIPS.get(token.text.lower(), ()) if word in by_word]
        words = [word for word in by_word if word.isalpha()] if token.kind == _NAME else []
        near = slips or difflib.get_close_matches(token.text.lower(), words, 1)
        return f"; did you mean {by_word[near[0]]}?" if near else ""

    def fail(self, expected: str, at: _Token | None = None) -> NoReturn:
        """Raise an error that shows where in the text something else was expected."""
        self._fail(expected, (at or self._ahead).at)

    def _take(self) -> None:
        self.last = self._ahead
        if self._ahead.kind != _END:
            self._ahead = next(self._tokens)

    def _fail(self, expected: str, at: int) -> NoReturn:
        from rich.cells import cell_len

        # What cannot be printed is one place wide, so that the caret stays below its character.
        shown = "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in self._text)
        before = shown[max(0, at - _SHOWN // 2) : at]
        while cell_len(before) > _SHOWN // 2:
            before = before[1:]
        after = shown[at : at + _SHOWN]
        while cell_len(before + after) > _SHOWN:
            after = after[:-1]
        raise RuleError(
            f"this is not a constraint; at character {at + 1}, expected {expected}\n"
            f"  {before}{after}\n"
            f"  {' ' * cell_len(before)}^"
        )

    def _split(self) -> Iterator[_Token]:
        text, at = self._text, 0
        while True:
            while at < len(text) and text[at].isspace():
                at += 1
            if at == len(text):
                break
            if match := _QUOTED.match(text, at):
                yield _Token(_NAME, match[1].replace("``", "`"), at)
                at = match.end()
            elif match := _LITERAL.match(text, at):
                yield _Token(_TEXT, match[1].replace("''", "'"), at)
                at = match.end()
            elif match := _DIGITS.match(text, at):
                if is_long(match[0]):
                    self._fail("a number of fewer digits", at)
                yield _Token(_NUMBER, plain_number(match[0]), at)
                at = match.end()
            elif match := _SYMBOL.match(text, at):
                yield _Token(_ALSO.get(match[0], match[0]), match[0], at)
                at = match.end()
            else:
                if not text[at].isidentifier():
                    self._fail(_instead(text[at]), at)
                end = at + 1
                while end < len(text) and f"_{text[end]}".isidentifier():
                    end += 1
                word = text[at:end]
                yield _Token(word.lower() if is_keyword(word) else _NAME, word, at)
                at = end
        yield _Token(_END, "", at)


def _instead(character: str) -> str:
    if character == "`":
        return "a second backtick, which ends the name"
    if character == "'":
        return "a second quote, which ends the text"
    return "a name or a symbol; a name that is no plain word goes in backticks"


def _either(kinds: tuple[str, ...]) -> str:
    *others, last = (kind if kind == _END else f"'{kind}'" for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last
