"""Dates in a form that a person names are read to the letter, as their slow twin reads them."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import InputError, Profile, Source
from holdfast.model.date_forms import ISO, USUAL, DateForm
from holdfast.model.errors import SourceError
from holdfast.tasks import quarantine
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.ingest import guess
from holdfast.tasks.text import Trouble, infer, parse
from holdfast.tasks.votes import settled
from tests.strategies import examples
from tests.tasks.test_ingest import lines, spec
from tests.tasks.test_text import kind_of, lines_of, written

FORMS = (
    *USUAL,
    "%Y-%m-%d",
    "%Y%m%d",
    "%d%m%Y",
    "%Y-%d-%m",
    "%Y-%-m-%-d",
    "day %d, %m %Y",
    "%%%d§%m§%y",
)

FIELDS = {
    "%d": r"(?P<d>[0-9]{2})",
    "%m": r"(?P<m>[0-9]{2})",
    "%Y": r"(?P<y>[0-9]{4})",
    "%y": r"(?P<y>[0-9]{2})",
    "%-d": r"(?P<d>[1-9][0-9]?)",
    "%-m": r"(?P<m>[1-9][0-9]?)",
    "%%": "%",
}


def day_of(cell: str, form: str) -> dt.date | None:
    """The slow twin: the day that a cell is in a form."""
    parts = re.split("(%-?.)", form)
    match = re.fullmatch("".join(FIELDS.get(part, re.escape(part)) for part in parts), cell)
    if match is None:
        return None
    year = int(match["y"])
    if len(match["y"]) == 2:
        year += 1900 if year > 68 else 2000
    try:
        return dt.date(year, int(match["m"]), int(match["d"]))
    except ValueError:
        return None


def read(cell: str, form: DateForm) -> dt.date | None:
    """A cell of a column of dates."""
    found = day_of(cell, form.text)
    return day_of(cell, "%Y-%m-%d") if found is None and form.has_iso else found


DAYS = st.dates(dt.date(1969, 1, 1), dt.date(2068, 12, 31)) | st.dates(
    dt.date(2024, 1, 1), dt.date(2024, 12, 31)
)


@st.composite
def cells(draw: st.DrawFn, form: str) -> str:
    """Cells that are dates of a form, or nearly, or of another one."""
    other = draw(st.sampled_from([form, form, form, "%Y-%m-%d", *FORMS]))
    cell = DateForm(other).written(draw(DAYS))
    change = draw(st.sampled_from(["", "", "", "", "digit", "cut", "more", "none", "number"]))
    if change == "digit":
        place = draw(st.integers(0, len(cell) - 1))
        cell = cell[:place] + draw(st.sampled_from("0123459/- ")) + cell[place + 1 :]
    return {
        "cut": cell[:-1],
        "more": cell + draw(st.sampled_from("0 /")),
        "none": "",
        "number": str(draw(st.integers(0, 99_999_999))),
    }.get(change, cell)


@given(st.data(), st.sampled_from(FORMS))
@settings(deadline=None, max_examples=examples(400))
def test_types_and_values_equal_those_of_the_slow_twin(data: st.DataObject, form: str) -> None:
    dates = DateForm(form)
    column = data.draw(st.lists(cells(form), min_size=1, max_size=6))
    text = lines_of(*(written(cell or None, quoted=cell == "") for cell in column))
    votes = infer(text, 1, ",", dates)
    assert not isinstance(votes, Trouble)
    filled = [cell for cell in column if cell]
    all_dates = bool(filled) and all(day_of(cell, form) for cell in filled)
    kinds = {kind_of(cell) for cell in filled}
    if all_dates:
        assert settled(votes, 1) == ["date"]
    elif kinds == {"date"}:
        assert settled(votes, 1) == ["date" if dates.has_iso else "string"]
    else:
        assert settled(votes, 1)[0] != "date"
    if not all_dates and dates.has_iso:
        assert settled(votes, 1) == infer(text, 1)
    days = [read(cell, dates) if cell else None for cell in column]
    parsed = parse(text, pa.schema([("c", pa.date32())]), ",", dates)
    wrong = [i for i, cell in enumerate(column) if cell and days[i] is None]
    if wrong:
        assert isinstance(parsed, Trouble)
        assert (parsed.kind, parsed.row, parsed.column) == ("cell", wrong[0], 0)
        assert parsed.expected == f"a date written as {form}"
    else:
        assert isinstance(parsed, pa.RecordBatch), parsed
        assert parsed.column(0).to_pylist() == days
        if all_dates:
            for a, b in pairwise(range(len(column))):
                assert (days[a] == days[b]) == (column[a] == column[b]), "kept apart"


@given(st.sampled_from(FORMS), st.dates())
@settings(deadline=None, max_examples=examples(200))
def test_what_is_written_is_read(form: str, day: dt.date) -> None:
    dates = DateForm(form)
    cell = dates.written(day)
    assert read(cell, dates) == day
    dialect = Dialect(";", dates=dates)
    table = pa.table({"day": pa.array([day, None])})
    rows = list(quarantine._cells(table, dialect.dates))
    assert rows == [(cell,), (None,)]


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ("", "one day"), ("%d/%m", "one year"), ("%d/%d/%m/%Y", "one day"),
        ("%m/%y/%Y/%d", "one year"),
        ("%d/%b/%Y", "'%b' is none of %d, %m"), ("%d/%m/%Y%", "'%' is none of"),
        ("%-d%m/%Y", "digits follow"), ("%-d1/%m/%Y", "digits follow"),
        ('"%d/%m/%Y"', "a quote"), ("%d/%m/%Y ", "a blank"), ("%d\n%m/%Y", "a line break"),
    ],
)  # fmt: skip
def test_forms_that_are_none(form: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        DateForm(form)
    if form:
        with pytest.raises(InputError, match=wrong):
            Source("a.csv", date_format=form)


def test_iso_is_read_unless_it_means_other_days() -> None:
    assert ISO.has_iso
    assert DateForm("%d/%m/%Y").has_iso
    assert DateForm("%Y-%-m-%-d").has_iso
    assert not DateForm("%Y-%d-%m").has_iso
    schema = pa.schema([("c", pa.date32())])
    parsed = parse(lines_of("2024-02-01"), schema, ",", DateForm("%Y-%d-%m"))
    assert isinstance(parsed, pa.RecordBatch)
    assert parsed.column(0).to_pylist() == [dt.date(2024, 1, 2)]
    assert isinstance(parse(lines_of("2024-01-31"), schema, ",", DateForm("%Y-%d-%m")), Trouble)


def test_formats_without_text_have_no_dates_to_read() -> None:
    for path in ("a.json", "a.parquet"):
        with pytest.raises(InputError, match="has no date format; that is for CSV"):
            Source(path, date_format="%d/%m/%Y")


def test_columns_that_look_like_dates(tmp_path: Path) -> None:
    schema = pa.schema([(f"c{i}", pa.string()) for i in range(3)])
    told = spec(tmp_path, schema=schema, lines=Dialect())
    (result,) = guess(iter([lines(["01/02/2024,13.2.2024,", "03/04/2024,1.12.2024,x"])]), told)
    found = {form: votes for form, votes in result.facts["dated"].items() if "date" in votes}
    assert found == {
        "%d/%m/%Y": ["date", "string", "string"],
        "%m/%d/%Y": ["date", "string", "string"],
        "%-d.%-m.%Y": ["string", "date", "string"],
    }


# Whole commands


ORDERS = "id,day,shipped,code\n1,01/02/2024,2024-02-03,20240101\n2,13/02/2024,2024-02-14,20240199\n"


def types(profile: Profile, table: str = "orders") -> dict[str, str]:
    return {facts.name: facts.type for facts in profile.columns(table)}


def profiled(tmp_path: Path, text: str = ORDERS, **given: str) -> Profile:
    path = tmp_path / "orders.csv"
    path.write_text(text)
    source = Source(str(path), **given)  # type: ignore[arg-type]
    return Profile.create(tmp_path / "shop", {"orders": source}, engine="process")


def test_a_table_is_read_and_its_batches_like_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profile = profiled(tmp_path, date_format="%d/%m/%Y")
    assert not caplog.messages
    assert types(profile) == {"id": "bigint", "day": "date", "shipped": "date", "code": "bigint"}
    batch = tmp_path / "new.csv"
    batch.write_text("id,day,shipped,code\n3,28/02/2024,2024-03-01,1\n")
    assert profile.apply("orders", inserts=batch).rows == 3
    day = profile.columns("orders")[1]
    assert (day.minimum, day.maximum) == ("2024-02-01", "2024-02-28")
    batch.write_text("id,day,shipped,code\n4,28/02/2024,,\n5,02/28/2024,2024-03-01,1\n")
    with pytest.raises(SourceError, match=r"line 3, column 'day'.*date written as %d/%m/%Y"):
        profile.apply("orders", inserts=batch)
    other = Source(str(batch), date_format="%m/%d/%Y")
    batch.write_text("id,day,shipped,code\n5,02/29/2024,2024-03-01,1\n")
    assert profile.apply("orders", inserts=other).rows == 4
    batch.write_text("id,day,shipped,code\n1,01/02/2024,2024-02-03,20240101\n")
    assert profile.apply("orders", deletes=batch).rows == 3
    assert Profile.open(profile.path, engine="process").verify().equal


def test_text_that_looks_like_dates_is_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profile = profiled(tmp_path, ORDERS.replace("13/02", "12/02"))
    assert types(profile)["day"] == "string"
    (note,) = caplog.messages
    assert note.endswith(
        "column 'day' is text that looks like dates: "
        "--date-format '%d/%m/%Y' or '%m/%d/%Y' reads it"
    )


def test_one_cell_that_is_no_date_makes_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profile = profiled(tmp_path, ORDERS + "3,soon,,\n", date_format="%d/%m/%Y")
    assert types(profile)["day"] == "string"
    assert not caplog.messages


def test_a_schema_is_strict(tmp_path: Path) -> None:
    schema = "id int, day date, shipped date, code string"
    profile = profiled(tmp_path, schema=schema, date_format="%d/%m/%Y")
    assert types(profile)["day"] == "date"
    (tmp_path / "other").mkdir()
    with pytest.raises(SourceError, match=r"line 4, column 'day'.*date written as %d/%m/%Y"):
        profiled(
            tmp_path / "other", ORDERS + "3,2024/01/01,,\n", schema=schema, date_format="%d/%m/%Y"
        )


@given(st.lists(DAYS, min_size=1, max_size=8), st.sampled_from(FORMS))
@settings(deadline=None, max_examples=examples(8))
def test_constraints_are_those_of_the_days(
    tmp_path_factory: pytest.TempPathFactory, days: list[dt.date], form: str
) -> None:
    folder = tmp_path_factory.mktemp("days")
    rows = [(i % 3, day) for i, day in enumerate(days)]
    for name, dates in (("own", DateForm(form)), ("iso", ISO)):
        body = "".join(f'{n},"{dates.written(day)}"\n' for n, day in rows)
        (folder / f"{name}.csv").write_text(f"n,day\n{body}")
    found = []
    for name, named in (("own", form), ("iso", None)):
        source = Source(str(folder / f"{name}.csv"), date_format=named)
        profile = Profile.create(folder / name, {"t": source}, engine="process")
        constraints = [*profile.keys("t"), *profile.functional_dependencies("t")]
        found.append(([*map(str, constraints)], profile.columns("t").to_dict()))
    assert found[0] == found[1]
