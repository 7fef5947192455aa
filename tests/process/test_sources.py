"""How files are divided among tasks, and the forms in which rows come without Spark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Options, Profile, Source
from holdfast.input import type_names
from holdfast.input.file_parts import _alternatives, packed
from holdfast.input.sources import named_file
from holdfast.model.errors import InputError, SchemaError, SourceError
from holdfast.tasks import text_files
from holdfast.tasks.text_files import FilePart
from tests.limits import varied

KEYS = Options(kinds=("keys",))


@given(
    pieces=st.lists(st.sampled_from([b"\n", b"a", b"bc\n", b"\r\n", "ä".encode()]), max_size=20),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    size=st.integers(1, 9),
)
def test_every_line_is_in_one_part(pieces: list[bytes], cuts: list[int], size: int) -> None:
    """Wherever a file is cut, and however much is read at once."""
    data = b"".join(pieces)
    expected = [line + b"\n" for line in data.split(b"\n")]
    if not data or data.endswith(b"\n"):
        expected.pop()
    else:
        expected[-1] = expected[-1].removesuffix(b"\n") + b"\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_PIECE", size)
        patch.setattr(text_files, "_plain", lambda _: _File(data))
        places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        parts = [FilePart("f", 2, a, b) for a, b in pairwise(places)]
        for asked in (tuple(parts), (FilePart("f", 2),)):
            batches = [*text_files.lines(asked)]
            lines = [line for batch in batches for line in batch.column(0).to_pylist()]
            assert lines == expected
        first = [o for b in text_files.lines(tuple(parts[:1])) for o in b.column(1).to_pylist()]
        assert set(first) <= {3}


class _File:
    """A file in memory, which is read as one on disk."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def seek(self, place: int) -> None:
        self._place = place

    def read(self, size: int) -> bytes:
        piece = self._data[self._place : self._place + size]
        self._place += len(piece)
        return piece


def test_parts_are_packed() -> None:
    given = [("a", 3), ("b", 3), ("c", 9), ("d", 0), ("e", 1)]
    assert packed(given, 7) == (("a", "b"), ("c",), ("d", "e"))


def rows(profile: Profile) -> int:
    return profile.snapshot().tables["t"].rows


def test_a_file_in_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its types are those of all lines, its errors have the number of the line."""
    varied(monkeypatch, joined_bytes=1_000)
    path = tmp_path / "t.csv"
    lines = [f'{i},"a ""b"" {i % 7}",{i}.5' for i in range(3_000)]
    path.write_text("id,name,x\n" + "\n".join(lines) + "\n")
    kept = Profile.create(tmp_path / "p", path, options=KEYS, engine="process", parallelism=3)
    now = kept.snapshot().tables["t"]
    assert (now.rows, now.types) == (3_000, ("bigint", "string", "double"))
    assert {key.columns for key in now.keys} == {("id",), ("x",)}
    assert now.segments == 3
    path.write_text("id,name,x\n" + "\n".join(lines) + "\n1,x\n")
    with pytest.raises(SourceError, match=r"t\.csv, line 3002: malformed line, expected 3 col"):
        kept.apply("t", inserts=path)
    # A type that only the last line shows.
    path.write_text("id,name,x\n" + "\n".join(lines) + "\nx7,x,1.5\n")
    again = Profile.create(tmp_path / "q", path, options=KEYS, engine="process", parallelism=3)
    assert again.snapshot().tables["t"].types[0] == "string"


def test_patterns(tmp_path: Path) -> None:
    assert [*_alternatives("a{b,c}d{e,}")] == ["abde", "abd", "acde", "acd"]
    for name in ("a1.csv", "a2.csv", "b1.csv", "_a3.csv", ".a4.csv", "c/a5.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"id,name\n{name[1]},{name}\n")
    for pattern, count in (
        ("a*.csv", 2),
        ("a[2-9].csv", 1),
        ("[^a]1.csv", 1),
        ("{a2,b1}.csv", 2),
        ("?1.csv", 2),
        ("*/*.csv", 1),
        ("*", 4),
        ("", 4),
    ):
        source = Source(str(tmp_path / pattern), format="csv")
        kept = Profile.create(
            tmp_path / f"_p{len(list(tmp_path.iterdir()))}",
            {"t": source},
            options=KEYS,
            engine="process",
        )
        assert rows(kept) == count, pattern


def test_names_of_files() -> None:
    assert named_file("/x/*.csv", "/x/a.csv") == "/x/a.csv"
    assert named_file("a.csv", str(Path("a.csv").absolute())) == "a.csv"


# Parquet


def test_row_groups_are_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    varied(monkeypatch, joined_bytes=1)
    table = pa.table({"id": range(1_000), "x": [f"v{i % 10}" for i in range(1_000)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    kept = Profile.create(
        tmp_path / "p", tmp_path / "t.parquet", options=KEYS, engine="process", parallelism=4
    )
    now = kept.snapshot().tables["t"]
    assert (now.rows, [key.columns for key in now.keys]) == (1_000, [("id",)])
    assert now.segments > 1
    assert kept.apply("t", deletes=table.slice(990)).rows == 990


def test_folders_with_values_in_their_names(tmp_path: Path) -> None:
    def write(folder: str, **columns: Any) -> None:
        (tmp_path / "t" / folder).mkdir(parents=True)
        pq.write_table(pa.table(columns), tmp_path / "t" / folder / "a.parquet")

    write("day=2026-01-01/shop=7", id=[1, 2])
    write("day=2026-01-02/shop=__HIVE_DEFAULT_PARTITION__", id=[1])
    source = Source(str(tmp_path / "t"), format="parquet")
    kept = Profile.create(tmp_path / "p", {"t": source}, options=KEYS, engine="process")
    now = kept.snapshot().tables["t"]
    assert (now.columns, now.types) == (("id", "day", "shop"), ("bigint", "date", "int"))
    assert {key.columns for key in now.keys} == {("id", "day"), ("id", "shop")}
    write("other", id=[1])
    with pytest.raises(SourceError, match="folder unlike the others"):
        Profile.create(tmp_path / "q", {"t": source}, options=KEYS, engine="process")


def test_parquet_whose_files_differ(tmp_path: Path) -> None:
    """What a file lacks is null, and what cannot be read as the first file has it is refused."""
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1], "x": ["a"]}), folder / "a.parquet")
    pq.write_table(pa.table({"ID": pa.array([2], pa.int32()), "more": [1]}), folder / "b.parquet")
    source = Source(str(folder), format="parquet")
    kept = Profile.create(tmp_path / "p", {"t": source}, options=KEYS, engine="process")
    assert kept.snapshot().tables["t"].types == ("bigint", "string")
    assert [c.nulls for c in kept.columns("t")] == [0, 1]
    pq.write_table(pa.table({"id": ["one"]}), folder / "c.parquet")
    with pytest.raises(SourceError, match=r"c\.parquet: column 'id' is string"):
        kept.apply("t", inserts=source)


# Engines and frames


def test_frames_and_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table(
        {"id": pa.array([1, 2], pa.uint16()), "day": pa.array([86_400_000] * 2, pa.date64())}
    )
    monkeypatch.setenv("HOLDFAST_ENGINE", "process")
    kept = Profile.create(tmp_path / "p", {"t": table.to_pandas()}, options=KEYS)
    kept = Profile.create(tmp_path / "q", {"t": table}, options=KEYS)
    assert kept.snapshot().tables["t"].types == ("int", "date")
    assert kept.apply("t", inserts=table.slice(0, 1)).rows == 3

    class Frame:
        def mapInArrow(self) -> None:
            pass

    frame: Any = Frame()
    with pytest.raises(InputError, match="only Spark reads a Spark DataFrame"):
        kept.apply("t", inserts=frame)
    with pytest.raises(InputError, match="not both"):
        Profile.open(tmp_path / "q", engine="process", session=lambda: frame)
    with pytest.raises(InputError, match="engine must be spark or process"):
        Profile.open(tmp_path / "q", engine="Process")


# Types


def test_schemas_are_read_as_they_are_written() -> None:
    ddl = "id bigint, `a,``b` array<struct<x: decimal(10,2), y: map<string, int>>> NOT NULL"
    schema = type_names.parsed(ddl)
    assert schema.names == ["id", "a,`b"]
    assert type_names.parsed(type_names.written(schema)) == schema
    assert type_names.parsed("a DEC(5), b: varchar(3) COMMENT 'it', c INTEGER").types == [
        pa.decimal128(5, 0),
        pa.string(),
        pa.int32(),
    ]


@pytest.mark.parametrize(
    "ddl",
    ["", "id", "id what", "id int,", "id int x", "id array<int", "id decimal(39)", "id int; x int"],
)
def test_schemas_that_are_none(ddl: str) -> None:
    with pytest.raises(SchemaError, match=r"cannot be read .* write it as"):
        type_names.parsed(ddl)
