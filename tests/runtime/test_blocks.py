"""Checksums of blocks: what is used is checked, what is not used is not read."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import checksums
from holdfast.model.errors import StoreError
from holdfast.runtime import sealed
from holdfast.runtime.blocks import Sums, byte_tables, combined, find_table
from holdfast.runtime.checked import CheckedFile
from holdfast.runtime.sealed import seal_of
from holdfast.tasks import segments
from holdfast.tasks.segments import ArrayFile, RawRows, write_arrays, write_sorted
from tests.flow.tables import folder
from tests.limits import varied

BLOCK = 256


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    varied(monkeypatch, block_bytes=BLOCK, rung_entries=BLOCK // 8)
    monkeypatch.setattr(sealed, "flush", lambda _: None)


@given(st.lists(st.binary(max_size=300)), st.integers(4, 9), st.data())
def test_checksums_of_blocks_give_that_of_the_file(
    pieces: list[bytes], shift: int, data: st.DataObject
) -> None:
    sums, written = Sums(1 << shift), b""
    table_after = data.draw(st.integers(0, len(pieces)))
    for k, piece in enumerate([*pieces, b""]):
        if k == table_after:
            table = sums.table()
            sums.add(memoryview(table))
            written += table
        sums.add(memoryview(piece))
        written += piece
        assert sums.whole == zlib.crc32(written)


@given(st.binary(min_size=16, max_size=2_000), st.integers(4, 7))
def test_the_kernel_computes_crc_32(content: bytes, shift: int) -> None:
    count = len(content) >> shift
    blocks = [content[k << shift : (k + 1) << shift] for k in range(count)]
    sums = np.array([zlib.crc32(each) for each in blocks], np.uint32)
    words = np.frombuffer(content, np.uint64, (count << shift) // 8)
    file = checksums.blocks(words, sums, shift, byte_tables())
    checksums.check_entries(checksums.Place(file, 0, 1), np.array([0]), np.array([len(content)]))
    assert file.damaged[0] == -1
    assert file.checked.all()
    assert combined(sums, shift) == zlib.crc32(content[: count << shift])


def index_file(folder: Path, rows: int = 500) -> Path:
    arrays: dict[str, Any] = {
        "codes": np.arange(rows) * 3,
        "positions": np.arange(rows, dtype=np.int32)[::-1],
    }
    return folder / write_sorted(folder, "index-0123456789ab-1.arrow", arrays, cuts=[1, 2])


def used(file: ArrayFile) -> int:
    """How many blocks have been checked."""
    return int(file.places["codes"].blocks.checked.sum())


def test_plain_tools_read_the_file(tmp_path: Path) -> None:
    path = index_file(tmp_path)
    table = pa.ipc.open_file(path).read_all()
    assert table.column("codes").to_pylist() == [3 * k for k in range(500)]
    seal = seal_of(path.name)
    assert seal is not None
    found = find_table(memoryview(path.read_bytes()), seal.checksum)
    assert found is not None, "Arrow writes its footer in another way"
    assert len(found.sums) == (path.read_bytes().index(b"HFBLOCKS") - 4 * len(found.sums)) // BLOCK


def test_a_look_up_checks_the_blocks_on_its_way(tmp_path: Path) -> None:
    path = index_file(tmp_path, 20_000)
    file = ArrayFile(path)
    opened = used(file)
    blocks = len(file.places["codes"].blocks.checked)
    assert opened < blocks // 20  # among them the rungs
    assert [each.tolist() for each in file.search("codes", np.array([300, 301]))] == [
        [100, 101],
        [101, 101],
    ]
    assert used(file) - opened <= 2
    assert file.stretches("positions", np.array([100]), np.array([101]))[100] == 19_899
    assert used(file) - opened <= 3
    assert sum(map(len, file.whole().values())) == 40_000
    assert used(file) == blocks


@given(
    codes=st.lists(st.integers(-9, 9) | st.integers(-(1 << 63), (1 << 63) - 1), max_size=60),
    signed=st.booleans(),
    step=st.sampled_from([1, 2, 7, 99]),
)
@settings(deadline=None)
def test_a_search_finds_what_is_there(codes: list[int], signed: bool, step: int) -> None:
    """Whatever repeats, and whether a search begins at rungs or not."""
    array = np.array(sorted(codes), np.int64)
    wanted = np.array([*codes, -(1 << 63), -10, 0, 4, (1 << 63) - 1], np.int64)
    if not signed:
        array, wanted = np.sort(array.view(np.uint64)), wanted.view(np.uint64)
    with folder() as place, pytest.MonkeyPatch.context() as patch:
        varied(patch, rung_entries=step)
        path = Path(place) / write_sorted(Path(place), "x-1.arrow", {"code": array})
        lo, hi = ArrayFile(path).search("code", wanted)
    assert lo.tolist() == np.searchsorted(array, wanted, "left").tolist()
    assert hi.tolist() == np.searchsorted(array, wanted, "right").tolist()


def test_rungs_that_are_not_of_the_array_are_noticed(tmp_path: Path) -> None:
    codes: dict[str, Any] = {"codes": np.arange(100)}
    for name, rungs in (("right", codes["codes"][::40]), ("wrong", codes["codes"][1::40])):
        told = [40, b64encode(rungs.tobytes()).decode()]
        file = ArrayFile(tmp_path / write_arrays(tmp_path, f"{name}-1.arrow", codes, rungs=told))
        assert file.has_own_rungs("codes") == (name == "right")


Use = Callable[[Path], Any]


def looked_up(path: Path) -> Any:
    file = ArrayFile(path)
    lo, hi = file.search("codes", np.array([-1, 0, 600, 601, 9_999]))
    positions = file.stretches("positions", lo, hi)
    return file.facts, [positions[one:two].tolist() for one, two in zip(lo, hi, strict=True)]


def between(path: Path) -> Any:
    arrays = ArrayFile(path).between(40, 90)
    return [array.tolist() for array in arrays.values()]


def entries(path: Path) -> Any:
    return [a.tolist() for a in ArrayFile(path).entries(np.array([7, 444])).values()]


def whole(path: Path) -> Any:
    return [array.tolist() for array in ArrayFile(path).whole().values()]


def flipped(content: bytes) -> Iterator[bytes]:
    """The content with one bit of each seventh byte flipped."""
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        yield bytes(damaged)


def outcome(path: Path, use: Use, expected: Any) -> str:
    """Whether a damaged file is used, and right where it is, or is an error that names it."""
    try:
        found = use(path)
    except StoreError as error:
        return "error" if str(path) in str(error) else str(error)
    return "right" if found == expected else "wrong"


@pytest.mark.parametrize("use", [looked_up, between, entries, whole])
def test_a_flipped_bit_is_an_error_or_is_not_used(tmp_path: Path, use: Use) -> None:
    path = index_file(tmp_path)
    expected, content = use(path), path.read_bytes()
    outcomes = set()
    for damaged in flipped(content):
        path.write_bytes(damaged)
        outcomes.add(outcome(path, use, expected))
    assert outcomes == ({"error"} if use is whole else {"error", "right"})


def test_raw_rows_are_checked_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    varied(monkeypatch, block_bytes=BLOCK, raw_rows=64)
    (tmp_path / "data").mkdir()
    raw = RawRows(tmp_path, "data/*-0123456789ab-", pa.schema([("c0", pa.int64())]))
    numbers = np.random.default_rng(1).integers(0, 1 << 60, 640)
    raw.add(pa.record_batch({"c0": pa.array(numbers)}))
    segment = segments.Segment(1, 640, 640, "", raw.seal(), None, {})
    path, content = tmp_path / str(segment.raw), (tmp_path / str(segment.raw)).read_bytes()

    def third(_: Path) -> Any:
        return segments.open_raw(tmp_path, segment).get_batch(3).column(0).to_pylist()

    assert third(path) == numbers[192:256].tolist()
    outcomes = set()
    for damaged in flipped(content):
        path.write_bytes(damaged)
        outcomes.add(outcome(path, third, numbers[192:256].tolist()))
    assert outcomes == {"right", "error"}


def test_a_file_without_a_table_is_checked_as_a_whole(tmp_path: Path) -> None:
    """As earlier versions of Holdfast wrote it."""
    arrays: dict[str, Any] = {"codes": np.arange(500)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed.Sink, "write_table", lambda _: None)
        path = tmp_path / write_arrays(tmp_path, "index-0123456789ab-1.arrow", arrays)
    assert ArrayFile(path).between(3, 5)["codes"].tolist() == [3, 4]
    content = bytearray(path.read_bytes())
    content[2_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="its content does not match its checksum"):
        ArrayFile(path)


def test_a_table_that_is_wrong_is_not_used(tmp_path: Path) -> None:
    """The name vouches for it: no two changes, of a block and of its checksum, hide each other."""
    path = index_file(tmp_path)
    content = bytearray(path.read_bytes())
    table = content.index(b"HFBLOCKS")
    count = int.from_bytes(content[table + 8 : table + 12], "little")
    start = table - 4 * count - 4 * count % 8
    content[5 * BLOCK] ^= 1
    crc = zlib.crc32(content[5 * BLOCK : 6 * BLOCK])
    content[start + 20 : start + 24] = crc.to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(StoreError, match="its content does not match its checksum"):
        CheckedFile(path)
