"""Rules about whole tables: what is said of them is what the rows and the clock say, after any
batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.model.errors import InputError, RuleError
from holdfast.model.expectations import Expectation
from holdfast.model.grammar import parse
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.model.whole_tables import UNITS, Newest, RowCount
from holdfast.store.leases import Lease
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, Kind, Shop, folder, small_limits
from tests.flow.test_law import law
from tests.strategies import Rows, rows_of

START = datetime(2026, 11, 15, 23, 59, 59, 999_000, UTC)
HOUR = timedelta(hours=1)

MOMENTS = tuple(START + HOUR * h for h in (0, -24, -25, 24, -1, 1_000))
DAYS = Kind(
    "date", pa.date32(), tuple(moment.date() for moment in MOMENTS[:3]) + (date(2026, 11, 17),) * 3
)
TIMES = Kind("timestamp", pa.timestamp("us", "UTC"), MOMENTS)
CLOCKS = Kind("timestamp_ntz", pa.timestamp("us"), tuple(m.replace(tzinfo=None) for m in MOMENTS))
"""Six cells each, around the time when the rows come."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The time at which runs begin, which tests set."""
    now = [START]
    _set(monkeypatch, now)
    return now


def _set(patch: Any, now: Sequence[datetime]) -> None:
    moment = property(
        lambda _: now[-1].isoformat(timespec="milliseconds"), lambda _lease, _value: None
    )
    patch.setattr(Lease, "moment", moment, raising=False)


@st.composite
def rules(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        unit = draw(st.sampled_from([*UNITS]))
        return f"t: newest(c0) within {draw(st.integers(1, 50))} {unit}"
    symbol = draw(st.sampled_from([">=", ">", "<=", "<", "=", "between"]))
    least = draw(st.integers(1, 9))
    return f"t: rows {symbol} {least}" + (f" and {least + 2}" if symbol == "between" else "")


@law(30)
@given(data=st.data(), kind=st.sampled_from([DAYS, TIMES, CLOCKS]), keep_rows=st.booleans())
def test_what_is_said_is_what_rows_and_the_clock_say(
    data: st.DataObject, kind: Kind, keep_rows: bool
) -> None:
    """As declared, under batches, as explained, and in every version that was."""
    rule = data.draw(rules())
    rows = data.draw(rows_of(2, 8))
    now = [START]
    limits = small_limits(segment_rows=data.draw(st.sampled_from([1 << 20, 3])))
    with folder() as path, limits as patch:
        _set(patch, now)
        options = Options(kinds=("keys",), keep_rows=keep_rows)
        shop = Shop(Path(path) / "p", (kind, BIGINT), rows, options)

        def wrong() -> int:
            cells = [kind.cell(row[0], at) for at, row in enumerate(rows)]
            asked = parse(rule)
            assert isinstance(asked, RowCount | Newest)
            return oracle.whole_table(asked, cells, now[-1])

        try:
            told = flow.explain(lambda: shop.runner, shop.store, parse(rule), 3, no_progress)
        except InputError as refused:
            assert "dates are days or weeks old" in str(refused)  # noqa: PT017
            assert kind is DAYS
            return
        held = [not wrong()]
        assert told.holds == held[0]
        flow.expect(shop.runner, shop.store, [Expectation(rule)], no_progress)
        held.append(held[0])
        for _ in range(3):
            [standing] = shop.store.read().expectations
            assert standing.violations == wrong()
            assert standing.holds == (not wrong())
            told = flow.explain(lambda: shop.runner, shop.store, parse(rule), 3, no_progress)
            assert told.text == standing.rule
            assert told.violations.found == standing.tally.found
            said = [
                stretch.holds
                for stretch in told.past.stretches
                for _ in range(stretch.first, stretch.last + 1)
            ]
            assert said == held
            now.append(now[-1] + HOUR * data.draw(st.sampled_from([0, 1, 30])))
            change = data.draw(batches(2, rows))
            shop.apply(**change.batch)
            rows = change.after
            held.append(not wrong())
        assert shop.verify().equal


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("t: rows >= 5", RowCount("t", at_least=5)),
        ("t: ROWS > 4", RowCount("t", at_least=5)),
        ("t: rows <= 5.0", RowCount("t", at_most=5)),
        ("t: rows < 1e3", RowCount("t", at_most=999)),
        ("t: rows between 3 and 5", RowCount("t", 3, 5)),
        ("t: rows between 3 and 3", RowCount("t", 3, 3)),
        ("t: rows = 0", RowCount("t", 0, 0)),
        ("t: newest(day) within 1 hour", Newest("t", "day", 1, "hours")),
        ("t: Newest (`not`) WITHIN 48 hours", Newest("t", "not", 2, "days")),
        ("t: newest(within) within 168 hours", Newest("t", "within", 1, "weeks")),
        ("t: newest(newest) within 90 minutes", Newest("t", "newest", 90, "minutes")),
    ],
)
def test_rules_are_read_and_written(text: str, rule: RowCount | Newest) -> None:
    assert parse(text) == rule
    assert parse(str(rule)) == rule


@pytest.mark.parametrize(
    "text",
    [
        *("rows -> a", "rows, newest -> within", "a -> rows", "rows not null", "rows in (1, 2)"),
        *("rows matches 'a'", "`rows` >= 5", "`rows` between 1 and 2", "newest >= 5"),
        *("newest between 1 and 2", "newest in ('a')", "within > 0", "newest not null"),
        "key(rows, newest, within)",
    ],
)
def test_the_words_are_words_only_where_they_stand(text: str) -> None:
    rule = parse(f"t: {text}")
    assert not isinstance(rule, RowCount | Newest)
    assert str(rule) == f"t: {text}"


def test_tables_are_called_like_the_words() -> None:
    text = "newest(rows, within) in rows(newest, days)"
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rows >= -1", "expected a number of rows"),
        ("rows >= 1.5", "a column that is called rows goes in backticks"),
        ("rows > '2026-01-01'", "a column that is called rows goes in backticks"),
        ("newest(day)", "expected 'within'"),
        ("newest(day) within 0 days", "expected a number of minutes, hours, days or weeks"),
        ("newest(day) within 2", "expected minutes, hours, days or weeks"),
        ("newest(day) within 2 `days`", "expected minutes, hours, days or weeks"),
        ("newest(a, b) within 2 days", "expected ')'"),
        ("`newest`(a) within 2 days", "expected 'key', 'not' or 'newest' before '('"),
    ],
)
def test_slips_are_shown(text: str, why: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(f"t: {text}")
    assert why in str(caught.value)


@pytest.mark.parametrize("text", ["rows < 0", "rows between 5 and 4"])
def test_what_no_table_has_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="rows"):
        parse(f"t: {text}")


@pytest.mark.parametrize(
    ("column", "rule", "why"),
    [
        (pa.int64(), "newest(a) within 2 days", "newest is said of dates and timestamps"),
        (pa.string(), "newest(a) within 2 days", "newest is said of dates and timestamps"),
        (pa.time64("us"), "newest(a) within 2 days", "newest is said of dates and timestamps"),
        (pa.date32(), "newest(a) within 36 hours", "dates are days or weeks old"),
        (pa.date32(), "newest(b) within 2 days", "has no column 'b'"),
    ],
)
def test_what_a_column_cannot_have_is_an_error(column: pa.DataType, rule: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        registry.canonical(f"t: {rule}", {"t": Columns.of(["a"], ["its type"], [column])})


def expect(shop: Shop, *rules: str, **settings: Any) -> list[bool]:
    wanted = [Expectation(f"t: {rule}", **settings) for rule in rules]
    told = flow.expect(shop.runner, shop.store, wanted, no_progress)
    return [each.after.holds for each in told]


def test_dates_count_by_whole_days(tmp_path: Path, clock: list[datetime]) -> None:
    """At any time of the day, up to its last moment."""
    yesterday: Rows = [(1, 0)]
    for at, (hour, holds) in enumerate([(0, True), (23, True), (24, False)]):
        clock.append(datetime(2026, 11, 15, tzinfo=UTC) + HOUR * hour)
        shop = Shop(tmp_path / str(at), (DAYS, BIGINT), yesterday)
        assert expect(shop, "newest(c0) within 1 day") == [holds]


@pytest.mark.parametrize("kind", [TIMES, CLOCKS])
def test_times_count_to_the_last_digit(tmp_path: Path, kind: Kind, clock: list[datetime]) -> None:
    newest: Rows = [(1, 0)]  # a day before the start
    for at, (after, holds) in enumerate([(0, True), (1, False)]):
        clock.append(START + timedelta(milliseconds=after))
        shop = Shop(tmp_path / str(at), (kind, BIGINT), newest)
        rules = ("newest(c0) within 24 hours", "newest(c0) within 1440 minutes")
        assert expect(shop, *rules[:1]) == [holds]
        assert expect(shop, rules[1]) == [holds]
        assert len(shop.store.read().expectations) == 1


def test_nanoseconds_count(tmp_path: Path, clock: list[datetime]) -> None:
    second = 10**9
    kind = Kind("timestamp_ntz(9)", pa.timestamp("ns"), (0, 60 * second, 60 * second - 1))
    clock.append(datetime(1970, 1, 1, 0, 2, tzinfo=UTC))
    for row, holds in ((0, False), (1, True), (2, False)):
        shop = Shop(tmp_path / str(row), (kind, BIGINT), [(row, 0)])
        assert expect(shop, "newest(c0) within 1 minute") == [holds]


@pytest.mark.parametrize("rows", [[], [(None, 1)]])
def test_without_a_value_nothing_is_new(tmp_path: Path, rows: Rows, clock: list[datetime]) -> None:
    shop = Shop(tmp_path / "p", (DAYS, BIGINT), rows)
    assert expect(shop, "newest(c0) within 9 weeks", "rows = 0") == [False, not rows]
    shop.apply(inserts=[(0, 0)])
    assert [each.holds for each in shop.store.read().expectations] == [True, False]


def test_an_answer_does_not_change_with_the_clock(tmp_path: Path, clock: list[datetime]) -> None:
    """Nor with what is done besides changing rows."""
    shop = Shop(tmp_path / "p", (DAYS, BIGINT), [(0, 0)])
    rule = "newest(c0) within 1 day"
    assert expect(shop, rule) == [True]
    clock.append(START + 1_000 * HOUR)
    assert expect(shop, "rows >= 1", rule) == [True, True]
    flow.forget(shop.store, "t: rows >= 1")
    assert shop.verify().equal
    told = flow.explain(lambda: shop.runner, shop.store, parse(f"t: {rule}"), 3, no_progress)
    assert told.holds
    refused = shop.apply(inserts=[(0, 1)], dry_run=True)
    assert refused.stops
    shop.apply(inserts=[(5, 1)])
    [standing] = shop.store.read().expectations
    assert (standing.holds, standing.tally.found.wrong) == (False, 1)  # type: ignore[union-attr]


def test_a_batch_of_another_table_changes_nothing(tmp_path: Path, clock: list[datetime]) -> None:
    """It is judged when rows of its table change."""
    shop = Shop(tmp_path / "p", (DAYS, BIGINT), [(0, 0)])
    assert expect(shop, "newest(c0) within 1 day") == [True]
    before = shop.store.read().table("t").changed
    clock.append(START + 1_000 * HOUR)
    alteration = flow.Alteration(rename={"c1": "other"})
    flow.alter(shop.runner, shop.store, "t", alteration, no_progress)
    assert shop.store.read().table("t").changed == before
    assert shop.verify().equal


def test_a_profile_without_values_knows_no_newest(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", (DAYS, BIGINT), [(0, 0)], Options(keep_values=False))
    with pytest.raises(InputError, match=r"keeps no values \(--no-values\)"):
        expect(shop, "newest(c0) within 1 day")
    assert expect(shop, "rows >= 1") == [True]
    assert expect(shop, "rows >= 2") == [False]


@pytest.mark.parametrize("settings", [{"max_error": 0.1}, {"max_rows": 1}])
def test_a_bound_has_no_bound(tmp_path: Path, settings: dict[str, Any]) -> None:
    shop = Shop(tmp_path / "p", (DAYS, BIGINT), [(0, 0)])
    with pytest.raises(InputError, match="is a bound itself"):
        expect(shop, "rows >= 1", **settings)


def test_no_row_shows_a_violation(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", (DAYS, BIGINT), [(0, 0)])
    with pytest.raises(InputError, match="no row violates this rule by itself"):
        flow.violations(shop.runner, shop.store, parse("t: rows >= 2"), 3, no_progress)
    share = flow.error(lambda: shop.runner, shop.store, parse("t: rows >= 4"), no_progress)
    assert share == 0.75


def test_a_quarantine_cannot_save_a_batch(tmp_path: Path) -> None:
    """No row can be left out for a whole table; but rows that are left out for other rules may be
    those that it lacks."""
    shop = Shop(tmp_path / "p", 2, [(0, 0), (1, 1), (2, 2)])
    assert expect(shop, "rows >= 3", "key(c0)") == [True, True]
    version = shop.store.head()

    def applied(**batch: Any) -> Any:
        read = shop.batch(**batch)
        return flow.apply(
            shop.runner, shop.store, "t", read, no_progress, quarantine=str(tmp_path / "q")
        )

    told = applied(deletes=[(0, 0)])
    assert (told.refused, told.applied, told.quarantined) == (True, False, None)
    told = applied(deletes=[(0, 0)], inserts=[(1, 5)])
    assert told.refused
    assert shop.store.head() == version
    assert not [*tmp_path.glob("q/*")]
    told = applied(deletes=[(0, 0)], inserts=[(1, 5), (7, 7)])
    assert told.applied
    assert told.quarantined.rows == 1
    assert json.loads(json.dumps(told.to_dict())) == told.to_dict()


def test_a_warning_stops_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(0, 0)])
    expect(shop, "rows >= 1", severity="warn")
    told = flow.apply(
        shop.runner, shop.store, "t", shop.batch(deletes=[(0, 0)]), no_progress, strict=True
    )
    assert told.applied
    [change] = told.expectations or ()
    assert (change.breaks, change.stops) == (True, False)
    assert flow.apply(
        shop.runner, shop.store, "t", shop.batch(inserts=[(0, 0)]), no_progress
    ).expectations


def test_few_rows_break_again_only_if_they_get_fewer(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(i, i) for i in range(4)])
    assert expect(shop, "rows >= 9") == [False]
    assert not shop.apply(inserts=[(5, 5)], dry_run=True).stops
    assert shop.apply(deletes=[(0, 0)], dry_run=True).stops


def test_rows_of_an_earlier_holdfast_have_no_time(tmp_path: Path, clock: list[datetime]) -> None:
    from dataclasses import replace

    from holdfast.model.commits import Commit

    shop = Shop(tmp_path / "p", (DAYS, BIGINT), [(0, 0)])
    with shop.store.writing() as lease:
        version: Commit = shop.store.read()
        tables = version.tables | {"t": replace(version.table("t"), changed=None)}
        shop.store.publish(replace(version, tables=tables), lease)
    with pytest.raises(InputError, match="apply a batch to the table first"):
        expect(shop, "newest(c0) within 1 day")
    assert expect(shop, "rows = 1") == [True]
    shop.apply(inserts=[(0, 1)])
    assert expect(shop, "newest(c0) within 1 day") == [True]
    told = flow.explain(
        lambda: shop.runner, shop.store, parse("t: newest(c0) within 1 day"), 3, no_progress
    )
    assert [stretch.holds for stretch in told.past.stretches] == [True, None, True]
