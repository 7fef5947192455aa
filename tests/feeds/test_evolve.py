"""A table follows its feed: columns that come join it as nulls, wider types are taken, and what was
there before is applied first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import flow
from holdfast.feeds.followed import FeedTable, Followed
from holdfast.input.change_reading import ChangeInput
from holdfast.input.change_rows import ChangeRows
from holdfast.input.row_input import Columns
from holdfast.input.sources import Source
from holdfast.model.following import FeedRun
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess, Parts
from holdfast.store import Store
from tests.envelopes import CONNECT, ORDERS, in_block, unscaled
from tests.envelopes import envelope as event
from tests.feeds.brokers import Brokers
from tests.feeds.following import as_given, follow, profiled
from tests.feeds.test_events import failure, recorded, rows_of, write
from tests.flow.tables import folder, small_limits
from tests.strategies import examples

SMALL = {"id": pa.int64(), "name": pa.string()}

Row = dict[str, Any]


def evolving(store: Store, feed: Followed, **settings: Any) -> FeedRun:
    return follow(store, feed, as_given=as_given, **settings)


def files(place: Path, form: str = "json", **settings: Any) -> Followed:
    return Followed(
        "f", str(place), (FeedTable("t", ("id",)),), reading=Source(".", form), **settings
    )


def put(place: Path, name: str, rows: Sequence[Mapping[str, Any]], form: str) -> None:
    """A file of rows, which all have the same columns."""
    place.mkdir(exist_ok=True)
    path = place / f"{name}.{form}"
    if form == "json":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif form == "csv":
        lines = [[*rows[0]], *([*row.values()] for row in rows)]
        path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    else:
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


def types(store: Store) -> dict[str, str]:
    columns = store.read().table("t").columns
    return dict(zip(columns.names, columns.types, strict=True))


def equals_fresh(store: Store) -> bool:
    return flow.verify(InProcess(1), store, no_progress).equal


@pytest.mark.law
@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@given(data=st.data())
@settings(max_examples=examples(8), deadline=None)
def test_columns_join_whenever_they_come(form: str, data: st.DataObject) -> None:
    with folder() as path, small_limits():
        place = Path(path)
        store = profiled(place / "p", {"t": SMALL})
        place.joinpath("in").mkdir()
        expected: dict[int, Row] = {}
        names = ["id", "name"]
        for number in range(data.draw(st.integers(1, 6))):
            names += [f"new{number}"] * data.draw(st.booleans())
            rows: list[Row] = [
                {"id": id_, **{name: f"{name}{data.draw(st.integers(0, 2))}" for name in names[1:]}}
                for id_ in data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
            ]
            put(place / "in", str(number), rows, form)
            expected |= {row["id"]: row for row in rows}
            if data.draw(st.booleans()):
                most = data.draw(st.sampled_from([None, 1, 3]))
                assert not evolving(store, files(place / "in", form), files=most).failed
        assert not evolving(store, files(place / "in", form)).failed
        found = rows_of(store, "t")
        assert [*found[0]] == names
        whole = [{name: row.get(name) for name in names} for row in expected.values()]
        assert sorted(map(repr, found)) == sorted(map(repr, whole))
        assert equals_fresh(store)


def test_what_came_before_the_new_column_is_applied_before_it(tmp_path: Path) -> None:
    store = profiled(tmp_path / "p", {"t": SMALL})
    for number in range(30):
        new = {"x": 1.5} if number > 20 else {}
        put(tmp_path / "in", f"{number:02}", [{"id": number, "name": "n", **new}], "csv")
    feed = files(tmp_path / "in", "csv")
    assert "--evolve lets it join" in failure(follow(store, feed))
    assert store.head() == 1
    course = evolving(store, feed)
    assert (course.rows, types(store)) == (30, {"id": "bigint", "name": "string", "x": "double"})
    (added,) = [each.version for each in store.summaries() if each.event and "added" in each.event]
    assert len([*store.read(added).feeds["f"].position["files"]]) == 21
    assert equals_fresh(store)


def test_wider_types_are_taken(tmp_path: Path) -> None:
    store = profiled(tmp_path / "p", {"t": {"id": pa.int32(), "name": pa.string()}})
    put(tmp_path / "in", "a", [{"id": 1, "name": "a"}], "parquet")
    put(tmp_path / "in", "b", [{"id": 1 << 40, "name": "b"}], "parquet")
    feed = files(tmp_path / "in", "parquet")
    assert "--evolve takes a wider type" in failure(follow(store, feed))
    assert evolving(store, feed).rows == 2
    assert types(store)["id"] == "bigint"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_a_person_has_to_decide_stops_the_feed(tmp_path: Path, form: str) -> None:
    store = profiled(tmp_path / "p", {"t": SMALL})
    put(tmp_path / "in", "a", [{"id": 1, "called": "a"}], form)
    told = failure(evolving(store, files(tmp_path / "in", form)))
    assert "lacks the column 'name' and has the column 'called'" in told
    assert "holdfast alter DIR --table NAME --rename-column name=called" in told
    assert store.head() == 1


# Events of Debezium


def block(**fields: Any) -> dict[str, Any]:
    """The schema block of an envelope whose rows have these fields."""
    inside = [
        {"field": name, **(kind if isinstance(kind, dict) else {"type": kind})}
        for name, kind in fields.items()
    ]
    sides = [{"type": "struct", "field": side, "fields": inside} for side in ("before", "after")]
    return {"type": "struct", "fields": [*sides, {"type": "string", "field": "op"}]}


def decimal(digits: int, scale: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(digits)}
    name = "org.apache.kafka.connect.data.Decimal"
    return {"type": "bytes", "name": name, "parameters": parameters}


def events_of(place: Path) -> Followed:
    return files(place, debezium=True)


MOMENT = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
BEFORE = block(id="int64", amount=decimal(10, 2))
AFTER = block(id="int64", amount=decimal(14, 4), at=MOMENT, note="string")


def given_events() -> list[Any]:
    """An amount gets more digits, and two columns come."""
    late = {"amount": unscaled(12345), "at": 1_000_000, "note": "x"}
    return [
        in_block(event("c", None, {"id": 1, "amount": unscaled(100)}, 1), BEFORE),
        in_block(event("c", None, {"id": 2, **late}, 2, txId=10), AFTER),
        in_block(event("u", None, {"id": 1, **late, "note": None}, 3, txId=11), AFTER),
    ]


def test_columns_of_events_join_with_the_types_that_schema_blocks_say(tmp_path: Path) -> None:
    store = profiled(tmp_path / "p", {"t": {"id": pa.int64(), "amount": pa.decimal128(10, 2)}})
    for number, value in enumerate(given_events()):
        record = {"key": {"id": value["payload"]["after"]["id"]}, "value": value}
        write(tmp_path / "in", f"{number}.json", [json.dumps(record)])
    course = evolving(store, events_of(tmp_path / "in"))
    assert not course.failed, course.failed[0].error
    assert types(store) == {
        "id": "bigint", "amount": "decimal(14,4)", "at": "timestamp_ntz", "note": "string",
    }  # fmt: skip
    found = [(row["id"], str(row["amount"]), row["note"]) for row in rows_of(store, "t")]
    assert sorted(found) == [(1, "1.2345", None), (2, "1.2345", "x")]
    assert equals_fresh(store)


def test_a_default_that_the_feed_does_not_carry_stops_it(tmp_path: Path) -> None:
    """As it was recorded: the rows that were there got the default without an event."""
    lines = [
        line for line in recorded(CONNECT) if json.loads(line)["topic"] == "shop.public.orders"
    ]
    store = profiled(tmp_path / "p", {"orders": ORDERS})
    write(tmp_path / "in", "a.jsonl", lines)
    feed = Followed(
        "f", str(tmp_path / "in"), (FeedTable("orders", ("id",)),), debezium=True,
        reading=Source(".", "json"),
    )  # fmt: skip
    told = failure(evolving(store, feed))
    assert "the new column 'note' has the default 'dflt' in the source, also in rows" in told
    assert "holdfast alter DIR --table orders --add-column note=TYPE" in told
    assert "--snapshot" in told
    assert store.head() == 1


def test_without_a_schema_block_nothing_is_guessed(tmp_path: Path) -> None:
    store = profiled(tmp_path / "p", {"t": SMALL})
    write(tmp_path / "in", "a.json", [event("c", None, {"id": 1, "name": "n", "x": 1})])
    assert "has the column 'x'" in failure(evolving(store, events_of(tmp_path / "in")))
    assert store.head() == 1


# Topics


@pytest.mark.parametrize("rows", [None, 1, 3])
def test_fields_of_records_in_a_topic_join(tmp_path: Path, rows: int | None) -> None:
    pytest.importorskip("confluent_kafka")
    brokers, topic = Brokers(), f"evolving-{rows}"
    store = profiled(tmp_path / "p", {"t": SMALL})
    wanted = []
    for number in range(12):
        record = {"id": number, **({"name": "n"} if number % 2 else {})}
        record |= {"x": number / 2} if number > 6 else {}
        wanted.append({"name": None, "x": None, **record})
        brokers.put(topic, number % 3, json.dumps({"id": number}), json.dumps(record))
    brokers.put(topic, 0, json.dumps({"id": 0}), None)
    brokers.flush()
    feed = Followed(
        "f", f"kafka:{topic}", (FeedTable("t", ("id",)),), options={"bootstrap": brokers.bootstrap}
    )
    assert "has the column 'x'" in failure(follow(store, feed, rows=rows))
    course = evolving(store, feed, rows=rows)
    assert not course.failed, course.failed[0].error
    by_id = {row["id"]: row for row in rows_of(store, "t")}
    assert by_id == {row["id"]: row for row in wanted[1:]}
    assert equals_fresh(store)


def test_columns_of_events_in_a_topic_join(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    brokers, topic = Brokers(), "evolving-events"
    store = profiled(tmp_path / "p", {"t": {"id": pa.int64(), "amount": pa.decimal128(10, 2)}})
    for value in given_events():
        key = json.dumps({"id": value["payload"]["after"]["id"]})
        brokers.put(topic, 0, key, json.dumps(value))
    brokers.flush()
    feed = Followed(
        "f", f"kafka:{topic}", (FeedTable("t", ("id",)),), debezium=True,
        options={"bootstrap": brokers.bootstrap},
    )  # fmt: skip
    course = evolving(store, feed)
    assert not course.failed, course.failed[0].error
    assert types(store)["amount"] == "decimal(14,4)"
    assert len(rows_of(store, "t")) == 2
    assert equals_fresh(store)


# Delta


def test_types_are_called_as_they_are_stored() -> None:
    columns = Columns.of(["id", "name"], ["int", "string"], [pa.int32(), pa.string()])
    schema = pa.schema(
        [
            ("id", pa.int64()), ("name", pa.large_string()), ("ok", pa.bool_()),
            ("_change_type", pa.string()), ("_commit_version", pa.int64()),
        ]
    )  # fmt: skip
    rows = Parts(schema, (), lambda _: iter(()))
    given = ChangeInput.as_given(ChangeRows(rows), rows, "the changes", columns).columns
    assert given.names == ("id", "name", "ok")
    assert given.types == ("bigint", "string", "boolean")


@pytest.mark.parametrize("versions", [None, 1])
def test_columns_of_a_delta_table_join(tmp_path: Path, versions: int | None) -> None:
    deltalake = pytest.importorskip("deltalake")
    store = profiled(tmp_path / "p", {"t": SMALL})

    def commit(id_: int, **more: Any) -> None:
        rows = pa.Table.from_pylist([{"id": id_, "name": "n", **more}])
        settings = {"configuration": {"delta.enableChangeDataFeed": "true"}}
        deltalake.write_deltalake(
            tmp_path / "lake", rows, mode="append", schema_mode="merge", **settings
        )

    feed = Followed("f", f"delta:{tmp_path / 'lake'}", (FeedTable("t", ("id",)),))
    commit(1)
    commit(2)
    commit(3, x=1.5)
    assert "has the column 'x'" in failure(follow(store, feed, versions=versions))
    assert not evolving(store, feed, versions=versions).failed
    commit(4, x=2.5, y=True)
    assert not evolving(store, feed, versions=versions).failed
    assert types(store) == {"id": "bigint", "name": "string", "x": "double", "y": "boolean"}
    assert sorted((row["id"], row["x"], row["y"]) for row in rows_of(store, "t")) == [
        (1, None, None), (2, None, None), (3, 1.5, None), (4, 2.5, True),
    ]  # fmt: skip
    assert equals_fresh(store)
