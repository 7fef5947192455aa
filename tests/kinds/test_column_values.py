"""Rules about the values of single columns: exact for every type, and kept under batches."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.row_input import Columns
from holdfast.kernels import domains
from holdfast.kinds import registry
from holdfast.model.column_values import SYMBOLS
from holdfast.model.errors import InputError
from holdfast.model.expectations import Expectation
from holdfast.model.grammar import parse
from holdfast.model.literals import TEXT, written
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.tasks import literals
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, Kind, Shop, folder, small_limits
from tests.flow.test_law import law
from tests.strategies import rows_of

MOMENTS = tuple(datetime(2026, 11, 15, 12, 0, 0, i) for i in range(6))
WIDE = ("0", "1e27", "-1e27", "18446744073.709551616", "0.0000000001", "-18446744073.709551616")

TYPES: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        Kind("bigint", pa.int64(), (0, 1, -1, -(1 << 63), (1 << 63) - 1, 1 << 53)),
        ("0", "1.0", "-1", f"{-(1 << 63)}", f"{(1 << 63) - 1}", "9007199254740993"),
    ),
    (Kind("tinyint", pa.int8(), (0, 1, -1, -128, 127, 5)), ("0", "127", "-128", "-1e0", "6")),
    (Kind("decimal(38,10)", pa.decimal128(38, 10), tuple(map(Decimal, WIDE))), (*WIDE, "-1", "1")),
    (
        Kind("decimal(10,2)", pa.decimal128(10, 2), tuple(Decimal(i) / 4 for i in range(-3, 3))),
        ("-0.75", "-0.5", "0.000", "0.25", "99999999.99", "1"),
    ),
    (
        Kind("double", pa.float64(), (0.0, math.nan, math.inf, -math.inf, 5e-324, 0.1)),
        ("0", "-0.0", "0.1", "0.10000000000000001", "5e-324", "1e308", "-1e-400", "0.2"),
    ),
    (
        Kind("string", pa.string(), ("", "a", "A", "a ", "a\0", "ä'\\")),
        ("", "a", "A", "a ", "a\0", "ä'\\", "b"),
    ),
    (
        Kind("date", pa.date32(), tuple(date(1969, 12, 30 - i) for i in range(6))),
        ("1969-12-30", "1969-12-28", "0001-01-01", "9999-12-31"),
    ),
    (
        Kind("time", pa.time64("us"), tuple(time(8 * (i % 3), 30, 0, i // 3) for i in range(6))),
        ("00:30", "08:30:00.0", "08:30:00.000001", "23:59:59.999999"),
    ),
    (
        Kind(
            "timestamp_ntz",
            pa.timestamp("us"),
            MOMENTS,
        ),
        ("2026-11-15", "2026-11-15 12:00", "2026-11-15T12:00:00.000001", "1600-01-01"),
    ),
    (
        Kind(
            "timestamp",
            pa.timestamp("us", "UTC"),
            tuple(moment.replace(tzinfo=UTC) for moment in MOMENTS),
        ),
        ("2026-11-15", "2026-11-15T13:00:00.000001+01:00", "2026-11-15 11:00:00.000001-01:00"),
    ),
)
"""Types with six different cells, and how values are written."""


PATTERNS = ("", "a", "a|A", "[aA] ?", "a.", r"[^\s]*", r"\w+", "(a|ä).*", "^a$", ".*")


@st.composite
def rules(draw: st.DrawFn, kind: Kind, values: tuple[str, ...], raw: bool = False) -> str:
    type_ = literals.literal_type(kind.arrow)
    if raw and literals.is_text(kind.arrow) and draw(st.booleans()):
        return f"t: c0 matches {written(TEXT, draw(st.sampled_from(PATTERNS)))}"
    assert type_ is not None
    some = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    texts = [written(type_, value) for value in some]
    if not literals.has_bounds(kind.arrow) or draw(st.booleans()):
        return f"t: c0 in ({', '.join(texts)})"
    if len(texts) > 1 and draw(st.booleans()):
        return f"t: c0 between {texts[0]} and {texts[1]}"
    return f"t: c0 {draw(st.sampled_from(list(SYMBOLS.values())))} {texts[0]}"


@law(25)
@given(data=st.data(), chosen=st.sampled_from(TYPES), keep_rows=st.booleans())
def test_what_is_counted_is_what_the_cells_are(
    data: st.DataObject, chosen: tuple[Kind, tuple[str, ...]], keep_rows: bool
) -> None:
    """As declared, under batches, and as explained; with the versions in which it held."""
    kind, values = chosen
    rule = data.draw(rules(kind, values, keep_rows))
    rows = data.draw(rows_of(2, 8))
    with folder() as path, small_limits(segment_rows=data.draw(st.sampled_from([1 << 20, 3]))):
        options = Options(kinds=("keys",), keep_rows=keep_rows)
        shop = Shop(Path(path) / "p", (kind, BIGINT), rows, options)

        def wrong() -> list[int]:
            cells = [kind.cell(row[0], at) for at, row in enumerate(rows)]
            return [at for at, cell in enumerate(cells) if not oracle.passes(parse(rule), cell)]  # type: ignore[arg-type]

        held = [not wrong()]
        try:
            told = flow.explain(lambda: shop.runner, shop.store, parse(rule), 3, no_progress)
        except InputError as refused:
            assert "no value lies between them" in str(refused)  # noqa: PT017
            return
        assert told.holds == held[0]
        assert told.past.stretches[-1].holds in (held[0], None)
        flow.expect(shop.runner, shop.store, [Expectation(rule)], no_progress)
        for _ in range(3):
            [standing] = shop.store.read().expectations
            assert (standing.violations, standing.tally.total) == (len(wrong()), len(rows))
            told = flow.explain(lambda: shop.runner, shop.store, parse(rule), 3, no_progress)
            assert told.text == standing.rule
            assert told.violations.rows == len(wrong())
            assert told.past.stretches[-1].holds == (not wrong())
            change = data.draw(batches(2, rows))
            shop.apply(**change.batch)
            rows = change.after
        assert shop.verify().equal


@pytest.mark.parametrize(
    ("column", "rule", "canonical"),
    [
        (pa.string(), "in ('b', 'a', 'b')", "in ('a', 'b')"),
        (pa.string(), "in ('O''Neill')", "in ('O''Neill')"),
        (pa.string(), "MATCHES '[''a]+'", "matches '[''a]+'"),
        (pa.int64(), "in (10, 9, 9.0)", "in (9, 10)"),
        (pa.int64(), "between 5 and 5.0", "in (5)"),
        (pa.int64(), "between -5 and 5e3", "between -5 and 5000"),
        (pa.int64(), "> 0", "> 0"),
        (pa.decimal128(9, 2), "<= 1.50", "<= 1.5"),
        (pa.float64(), "< 0.10000000000000001", "< 0.1"),
        (pa.float64(), ">= 1e22", ">= 10000000000000000000000"),
        (pa.float32(), "in (0.1, 16777217)", "in (0.1, 16777216)"),
        (pa.bool_(), "in (true, false)", "in (false, true)"),
        (pa.date32(), "> '2026-11-15'", "> '2026-11-15'"),
        (pa.time64("ns"), "< '08:30'", "< '08:30:00'"),
        (pa.timestamp("us"), "< '2026-11-15T08:30'", "< '2026-11-15 08:30:00'"),
        (pa.timestamp("us", "UTC"), "< '2026-11-15'", "< '2026-11-15 00:00:00Z'"),
        (
            pa.timestamp("ns", "UTC"),
            "> '2026-11-15T00:30:00.123456789+01:00'",
            "> '2026-11-14 23:30:00.123456789Z'",
        ),
    ],
)
def test_a_rule_has_one_form(column: pa.DataType, rule: str, canonical: str) -> None:
    tables = {"t": Columns.of(["a"], ["it"], [column])}
    assert registry.canonical(f"t: a {rule}", tables) == f"t: a {canonical}"
    assert registry.canonical(f"t: a {canonical}", tables) == f"t: a {canonical}"


@pytest.mark.parametrize(
    ("column", "rule", "why"),
    [
        (pa.int64(), "> 1.5", "which has no value 1.5: its numbers are whole"),
        (pa.int8(), "in (1, 128)", "which has no value 128: its numbers are from -128 to 127"),
        (pa.int64(), "> '5'", "whose values are written as numbers"),
        (pa.decimal128(5, 2), "> 0.001", "which has no value 0.001: its numbers have 2 decimal"),
        (pa.decimal128(5, 2), "> 1000", "which has no value 1000: its numbers have 3 digits"),
        (pa.float64(), "> 1e309", "its numbers are smaller"),
        (pa.float32(), "> 1e39", "its numbers are smaller"),
        (pa.string(), "in (5)", "whose values are written as texts in quotes"),
        (pa.string(), "> 'a'", "which has no order here"),
        (pa.string(), "in ('\ud800')", "its texts are Unicode"),
        (pa.bool_(), "> true", "which has no order here"),
        (pa.bool_(), "in ('true')", "whose values are written as true and false"),
        (pa.binary(), "in ('a')", "which has no values that can be written down here"),
        (pa.list_(pa.int64()), "> 1", "which has no values that can be written down here"),
        (pa.date32(), "> '15.11.2026'", "its dates are written as '2026-11-15'"),
        (pa.date32(), "> '2026-02-30'", "there is no such day"),
        (pa.date32(), "> '0000-01-01'", "there is no such day"),
        (pa.time64("us"), "> '24:00'", "there is no such time of day"),
        (pa.time64("us"), "> '8:30'", "its times are written as '08:30:00'"),
        (pa.timestamp("us"), "> '2026-11-15Z'", "its times have no zone"),
        (pa.timestamp("us"), "> 'now'", "its times are written as '2026-11-15 08:30:00'"),
        (pa.timestamp("us"), "> '2026-11-15 08:30:00.1234567'", "its seconds have 6 decimal"),
        (pa.timestamp("us", "UTC"), "> '0001-01-01T00:00+01:00'", "in the years 1 to 9999"),
        (pa.timestamp("us", "UTC"), "> '2026-01-01+25:00'", "there is no such zone"),
        (pa.timestamp("ns"), "> '1600-01-01'", "in the years 1678 to 2261"),
        (pa.int64(), "between 5 and 4", "no value lies between them"),
        (pa.int64(), "matches '5'", "and patterns are of texts"),
        (pa.binary(), "matches '5'", "and patterns are of texts"),
        (pa.string(), "matches '('", "no regular expression as RE2 has it (missing ): ()"),
        (pa.string(), "matches 'a)|(b'", "no regular expression as RE2 has it (unexpected )"),
        (pa.string(), "matches '\\Qa'", "no regular expression as RE2 has it (missing )"),
        (pa.string(), "matches '(?=a)'", "no regular expression as RE2 has it (invalid"),
        (pa.string(), "matches 'a{2000}'", "no regular expression as RE2 has it (invalid"),
        (pa.string(), "matches '\ud800'", "no regular expression as RE2 has it"),
    ],
)
def test_what_a_column_cannot_have_is_an_error(column: pa.DataType, rule: str, why: str) -> None:
    tables = {"t": Columns.of(["a"], ["its type"], [column])}
    with pytest.raises(InputError) as caught:
        registry.canonical(f"t: a {rule}", tables)
    assert why in str(caught.value)
    assert "column a is of type its type" in str(caught.value) or "no " in why


def test_single_precision_is_compared_by_the_nearest_value(tmp_path: Path) -> None:
    cells = tuple(float(np.float32(x)) for x in (0.1, 0.2, 0.3))
    shop = Shop(tmp_path / "p", [Kind("float", pa.float32(), cells)], [(0,), (1,), (2,)])
    for rule, number in (("in (0.1, 0.3)", 1), ("<= 0.1", 2), ("< 0.1", 3), ("> 0.1", 1)):
        [told] = flow.expect(shop.runner, shop.store, [Expectation(f"t: c0 {rule}")], no_progress)
        assert told.after.violations == number


def test_booleans_are_true_or_false(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", [Kind("boolean", pa.bool_(), (True, False))], [(0,), (1,), (None,)])
    for rule, number in (("in (true)", 1), ("in (false)", 1), ("in (true, false)", 0)):
        [told] = flow.expect(shop.runner, shop.store, [Expectation(f"t: c0 {rule}")], no_progress)
        assert told.after.violations == number


def test_nanoseconds_count(tmp_path: Path) -> None:
    kind = Kind("timestamp_ntz(9)", pa.timestamp("ns"), (0, 1, 999, (1 << 63) - 1, -(1 << 63) + 1))
    shop = Shop(tmp_path / "p", [kind], [(c,) for c in range(5)])
    rules = {
        "> '1970-01-01 00:00:00'": 2,
        ">= '1970-01-01 00:00:00.000000001'": 2,
        "< '1970-01-01 00:00:00.000000999'": 2,
        "in ('1970-01-01', '1970-01-01 00:00:00.000000001')": 3,
    }
    for rule, number in rules.items():
        [told] = flow.expect(shop.runner, shop.store, [Expectation(f"t: c0 {rule}")], no_progress)
        assert told.after.violations == number, rule


def test_a_long_domain_is_looked_up() -> None:
    """As sets do, for cells of one and of two words."""
    random = np.random.default_rng(5)
    for width in (1, 2):
        words = random.integers(0, 40, (2_000, width)).astype(np.uint64)
        domain = np.unique(random.integers(0, 40, (500, width)).astype(np.uint64), axis=0)
        known = {*map(tuple, domain.tolist())}
        expected = [tuple(row) in known for row in words.tolist()]
        assert domains.among(words, domain).tolist() == expected


@pytest.mark.parametrize("keep", [True, False])
def test_patterns_need_the_texts(tmp_path: Path, keep: bool) -> None:
    text = Kind("string", pa.string(), ("a", "b"))
    shop = Shop(tmp_path / "p", [text], [(1,)], Options(keep_rows=False, keep_values=keep))
    rule, why = "t: c0 matches 'a'", "keeps no texts" if keep else "keeps no values"
    with pytest.raises(InputError, match=why):
        flow.expected(shop.store, [Expectation(rule)])
    with pytest.raises(InputError, match=why):
        flow.expect(shop.runner, shop.store, [Expectation(rule)], no_progress)
    with pytest.raises(InputError, match=why):
        flow.explain(lambda: shop.runner, shop.store, parse(rule), 3, no_progress)


@pytest.mark.parametrize("rule", ["c0 in (1)", "c0 > 0"])
def test_a_profile_without_values_compares_none(tmp_path: Path, rule: str) -> None:
    shop = Shop(tmp_path / "p", 1, [(1,)], Options(keep_values=False))
    with pytest.raises(InputError, match="keeps no values"):
        flow.expect(shop.runner, shop.store, [Expectation(f"t: {rule}")], no_progress)


def test_rows_that_break_one_are_left_out(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(0, 1), (1, 2)])
    flow.expect(shop.runner, shop.store, [Expectation("t: c1 between 0 and 2")], no_progress)
    batch: dict[str, Any] = {"inserts": [(2, 0), (3, 3), (4, None), (5, -1)]}
    folder = str(tmp_path / "q")
    told = flow.apply(
        shop.runner, shop.store, "t", shop.batch(**batch), no_progress, quarantine=folder
    )
    assert told.quarantined is not None
    assert told.quarantined.rows == 2
    assert told.inserted == 2
    [standing] = shop.store.read().expectations
    assert (standing.rule, standing.violations) == ("t: c1 between 0 and 2", 0)


def test_a_text_that_is_written_is_the_text(tmp_path: Path) -> None:
    """Also if it looks like a number or a word of the grammar."""
    texts = ("5", "true", "null", "in ('a')", "", "\n")
    shop = Shop(tmp_path / "p", [Kind("string", pa.string(), texts)], [(c,) for c in range(6)])
    for text in texts:
        rule = f"t: c0 in ({written(TEXT, text)})"
        [told] = flow.expect(shop.runner, shop.store, [Expectation(rule)], no_progress)
        assert told.after.violations == 5


def test_texts_are_found_whatever_lies_between_them(tmp_path: Path) -> None:
    """In segments of several raw batches, of which rows are deleted."""
    kind = Kind("string", pa.string(), tuple(f"{'ab'[c % 3 == 0]}{c}" for c in range(300)))
    with small_limits(segment_rows=100, raw_rows=7):
        shop = Shop(tmp_path / "p", [kind], [(c,) for c in range(250)])
        rule = Expectation("t: c0 matches 'a[0-9]+'")
        [told] = flow.expect(shop.runner, shop.store, [rule], no_progress)
        assert told.after.violations == 84
        gone = [(c,) for c in range(0, 200, 2)]
        shop.apply(deletes=gone, inserts=[(c,) for c in range(250, 300)])
        left = [c for c in range(300) if c % 2 or c >= 200]
        [standing] = shop.store.read().expectations
        assert standing.violations == sum(c % 3 == 0 for c in left)
        told_of = flow.explain(
            lambda: shop.runner, shop.store, parse("t: c0 matches 'b.*'"), 1, no_progress
        )
        assert told_of.violations.rows == sum(c % 3 > 0 for c in left)
        [example] = told_of.violations.examples
        assert all(row["c0"][0] == "a" for row in example.shown)
        assert shop.verify().equal
