"""Records and their forms: there and back, and what is said of a form that is none."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.model.changes import Changes
from holdfast.model.commits import (
    BatchRecord,
    BlockRecord,
    Choice,
    ColumnsRecord,
    Commit,
    EvidenceRecord,
    Header,
    InclusionRecord,
    Segment,
    SourceRecord,
    Summary,
    TableRecord,
    Tables,
    ValueRun,
)
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Key
from holdfast.model.explanation import Explanation
from holdfast.model.limits import Limits
from holdfast.model.options import Options
from holdfast.model.records import (
    ADDED,
    INLINE,
    FormError,
    Serializable,
    _parts,
    form_of_field,
    from_form,
    to_form,
)
from holdfast.model.versions import Entry

SEGMENT = Segment(3, 10, 9, "data/w", None, "data/d", {"0": "data/i", "rows": "data/r"})
EVIDENCE = EvidenceRecord(
    Choice("counted", 0.25, 60, "asked for", "cpu", 6e7),
    Limits(3, None),
    {"sets": ("data/s", "data/t")},
)
TABLE = TableRecord(
    ColumnsRecord(("a", "b"), ("bigint", "string"), "//8="),
    SourceRecord("csv", {"mode": True}, None, null_values=("NA",)),
    9,
    (SEGMENT,),
    4,
    (9.0, 2),
    8,
    ("0",),
    1,
    ((1 << 32, (1 << 32) + 1),),
    ({"a": 1, "b": None},),
    {AGREEMENTS: EVIDENCE},
    {"keys": 2},
)
VALUES = InclusionRecord(
    (ValueRun(("data/v", None), 7),),
    (ValueRun(("data/i",), 2),),
    (ValueRun(("data/c",), 3),),
    {"distinct": ("data/d",)},
)
COMMIT = Commit(
    version=2,
    parent=1,
    run="0123456789ab",
    created="2026-11-15",
    batch=BatchRecord("t", None, "digest"),
    files=("data/s",),
    keep=("data/s",),
    batches=BlockRecord("data/b", 1),
    options=Options(kinds="keys", max_columns=3),
    dropped=("data/o",),
    tables=Tables({"t": "data/t"}),
    inclusion=VALUES,
    changes={"table": "t"},
    seconds={"t": {"read": 0.5}},
)


def form(record: Any = COMMIT) -> Any:
    return json.loads(json.dumps(to_form(record)))


def test_a_commit_comes_back() -> None:
    assert from_form(Commit, form()) == COMMIT
    assert from_form(Commit, form(Commit())) == Commit()
    assert from_form(TableRecord, form(TABLE)) == TABLE


def test_tables_are_read_when_they_are_asked_for() -> None:
    read: list[str] = []

    def manifest(path: str) -> TableRecord:
        read.append(path)
        return TABLE

    tables = Tables({"t": "data/t", "u": "data/u"}, read=manifest)
    changed = tables | {"u": TableRecord(rows=3), "v": TableRecord()}
    assert (list(changed), len(changed), "v" in changed, "w" in changed) == (
        ["t", "u", "v"], 3, True, False,
    )  # fmt: skip
    assert (changed["u"].rows, read) == (3, [])
    assert (changed["t"], read) == (TABLE, ["data/t"])
    with pytest.raises(ValueError, match="without a manifest: u, v"):
        to_form(changed)


def test_a_form_may_lack_what_was_added_to_its_record_later() -> None:
    """And nothing else; profiles of before stay readable."""
    old = Choice("counted", 0.25, 60, "asked for")
    before = {"strategy": "counted", "seconds": 0.25, "limit": 60, "reason": "asked for"}
    assert to_form(old) == before
    assert from_form(Choice, before) == old
    assert from_form(Choice, {**before, "device": "cpu"}).device == "cpu"
    with pytest.raises(FormError, match="device is None, not text"):
        from_form(Choice, {**before, "device": None})


@dataclass(frozen=True)
class City(Serializable):
    name: str
    mayors: tuple[str, ...] = ()
    twin: str | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class Visit(Serializable):
    FORM = ("days", ("by", "traveller"), (INLINE, "city"), ("city_name", "city.name"), "all")

    city: City
    traveller: str | int | None = None
    days: tuple[int, ...] = field(
        default=(),
        metadata=form_of_field(
            write=lambda days: list(map(hex, days)),
            read=lambda form: tuple(int(day, 16) for day in form),
        ),
    )
    all: dict[str, City] = field(default_factory=dict)


@dataclass(frozen=True)
class Tour(Serializable):
    FORM = (("mayors", "city.mayors"),)

    city: City | None = None


def test_a_form_can_name_other_attributes() -> None:
    rome = City("Rome", ("Ann", "Bob"), "Paris")
    visit = Visit(rome, None, (10, 11), {"o": City("Oslo")})
    assert visit.to_dict() == {
        "days": ["0xa", "0xb"], "by": None, **rome.to_dict(), "city_name": "Rome",
        "all": {"o": {"name": "Oslo", "mayors": []}},
    }  # fmt: skip
    assert Tour().to_dict() == {"mayors": None}
    form = visit.to_dict() | {"traveller": "Eve"}
    assert from_form(Visit, form, city=rome, traveller=None) == visit
    with pytest.raises(FormError, match="days cannot be read: invalid literal"):
        from_form(Visit, form | {"days": ["x"]}, city=rome, traveller=None)
    assert rome.to_dict() == {
        "name": "Rome", "mayors": ["Ann", "Bob"], "twin": "Paris",
    }  # fmt: skip
    assert from_form(City, rome.to_dict()) == rome
    assert from_form(City, {"mayors": []}, name="Oslo") == City("Oslo")


def subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


def test_every_class_that_people_see_has_a_form() -> None:
    """What is read of it is found from its types, when the first of it is written."""
    classes = {kind for kind in subclasses(Serializable) if is_dataclass(kind)}
    assert {Changes, Key, Explanation, Entry} <= classes
    for kind in classes:
        assert _parts(kind)


def test_a_part_of_a_commit_is_read_from_the_same_form() -> None:
    header = from_form(Header, form())
    assert (header.version, header.files, header.batches) == (2, ("data/s",), COMMIT.batches)
    summary = from_form(Summary, form())
    assert (summary.version, summary.batch, summary.changes) == (2, COMMIT.batch, COMMIT.changes)
    assert summary.tables == header.tables == COMMIT.tables


def test_every_file_is_named() -> None:
    named = ["data/w", "data/d", "data/i", "data/r", "data/s", "data/t"]
    assert TABLE.data_files == named
    assert VALUES.data_files == ["data/d", "data/v", "data/i", "data/c"]


def places(value: Any) -> list[tuple[Any, ...]]:
    """Every place in a form."""
    found: list[tuple[Any, ...]] = [()]
    if isinstance(value, dict | list):
        named = value.items() if isinstance(value, dict) else enumerate(value)
        found += [(name, *rest) for name, each in named for rest in places(each)]
    return found


# What a caller or another module wrote, and reads.
THEIRS = ("changes", "duplicated", "space", "mode", "options")


@pytest.mark.parametrize("wrong", [object, "text", -0.5, True, None, [], {}, [[]]], ids=str)
def test_anything_wrong_anywhere_is_a_form_error(wrong: Any) -> None:
    """Whatever stands in a place, the form is read as it stands or an error names the place."""
    refused: list[tuple[str, str]] = []
    every = [(each, place) for each in (COMMIT, TABLE) for place in places(form(each))]
    for record, place in every:
        if not place or set(place) & set(THEIRS):
            continue
        damaged = form(record)
        inside = damaged
        for name in place[:-1]:
            inside = inside[name]
        if wrong is object:
            del inside[place[-1]]
        else:
            inside[place[-1]] = wrong
        try:
            assert form(from_form(type(record), damaged)) == damaged
        except FormError as error:
            refused.append((str(place[0]), str(error)))
    assert len(refused) > 25
    assert [said for field, said in refused if not said.startswith(field)] == []


@pytest.mark.parametrize(
    ("place", "wrong", "said"),
    [
        (("version",), "2", "version is '2', not a whole number"),
        (("version",), True, "version is True, not a whole number"),
        (("tables", "t"), 5, "tables cannot be read: the manifest of t is 5, not text"),
        (("segments", 0, "live"), None, "segments[0].live is None, not"),
        (("repeated", 0), [1], r"repeated[0] is [1], not a list of 2"),
        (("evidence", AGREEMENTS), [], "evidence.agreement is [], not an"),
        (("batch",), {"table": "t"}, "batch.id is missing"),
        (("options",), {}, "options.kinds is missing"),
        (("options", "nulls"), "some", "options cannot be read: nulls can be 'equal' or"),
        (("files",), "x" * 50, "files is '" + "x" * 39 + "…, not a list"),
    ],
)
def test_the_error_says_where_and_what(place: tuple[Any, ...], wrong: Any, said: str) -> None:
    record = COMMIT if place[0] in form() else TABLE
    damaged = form(record)
    inside = damaged
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = wrong
    with pytest.raises(FormError) as caught:
        from_form(type(record), damaged)
    assert str(caught.value).startswith(said)


def test_few_forms_hold_anything() -> None:
    """What is written is ``JsonObject``, what is read by its fields has a class. What is left are
    task results, rows, and forms that are read part by part."""
    source = Path(holdfast.__file__).parent
    anything = [
        f"{path.relative_to(source)}:{number}"
        for path in source.rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "dict[str, Any]" in line
    ]
    assert len(anything) <= 40, anything
