"""Sealed files: written, flushed, named after their content, and checked against their name."""

from __future__ import annotations

import errno
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast.model.errors import MissingFileError, StoreError
from holdfast.runtime import sealed
from holdfast.runtime.result import TaskResult, guarded
from holdfast.runtime.sealed import Seal, Sink, seal_of, sealed_name
from holdfast.tasks.segments import RawRows, write_arrays


@pytest.mark.parametrize("suffix", [".arrow", ".jsonl", ""])
def test_a_name_and_its_seal(suffix: str) -> None:
    name = f"data/words-0123456789ab-d25be1f6430c{suffix}"
    assert seal_of(name) is None
    for seal in (Seal(0, 0), Seal(1 << 40, 0xFFFFFFFF), Seal(17, 0xA)):
        assert seal_of(sealed_name(name, seal)) == seal


@pytest.mark.parametrize(
    "name", ["", "a", "data/a-1", "a-1-12345678x.arrow", "a--12345678.arrow", "a-1-1234567.arrow"]
)
def test_a_name_without_a_seal(name: str) -> None:
    assert seal_of(name) is None


def test_it_is_flushed_before_anybody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.flushed()  # what other tests left
    events: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        if file.parent == tmp_path / "data":  # not one that a test before this one left
            events.append(file.name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "data").mkdir()
    path = write_arrays(tmp_path, "data/words-0123456789ab-1.arrow", {"a": np.arange(9)})
    told = guarded(iter([TaskResult({"words": path})]))
    assert next(told).facts == {"words": path}
    assert events == [Path(path).name]
    raw = RawRows(tmp_path, "data/*-0123456789ab-", pa.schema([("c0", pa.int64())]))
    raw.add(pa.record_batch({"c0": pa.array([1, 2, 3])}))
    other = raw.seal()
    sealed.flushed()
    assert events == [Path(path).name, Path(other).name]
    assert {each.name for each in (tmp_path / "data").iterdir()} == {
        Path(path).name,
        Path(other).name,
    }
    for each in (path, other):
        content = (tmp_path / each).read_bytes()
        assert seal_of(each) == Seal(len(content), zlib.crc32(content))


def test_a_file_that_cannot_be_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sealed, "flush", full)
    paths = [write_arrays(tmp_path, f"w-0123456789ab-{k}.arrow", {"a": np.arange(9)}) for k in "12"]
    with pytest.raises(OSError, match="No space left"):
        list(guarded(iter([TaskResult({"words": paths})])))
    assert len(list(guarded(iter([TaskResult({})])))) == 1, "a later task has nothing to do with it"


def test_what_is_mapped_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(tmp_path, "a.bin")
    sink.write(b"some")
    sink.write(np.arange(3))
    path = tmp_path / sink.seal()
    checks: list[Path] = []
    real = sealed._compare

    def noted(path: Path, *others: Any) -> None:
        checks.append(path)
        real(path, *others)

    monkeypatch.setattr(sealed, "_compare", noted)
    for _ in range(3):
        assert sealed.mapped(path).to_pybytes() == b"some" + np.arange(3).tobytes()
    assert checks == [path]
    assert sealed.damage(path) is None
    assert checks == [path, path], "who asks for damage wants to know"


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    sink = Sink(tmp_path, "a.bin")
    sink.write(b"content")
    path = tmp_path / sink.seal()
    for content, why in ((b"", "it has 0 bytes, not 7"), (b"contenT", "does not match its check")):
        path.write_bytes(content)
        for look in (sealed.read, sealed.mapped):
            with pytest.raises(StoreError, match=f"a-7-.*{why}.*holdfast profile SOURCE"):
                look(path)
    path.unlink()
    with pytest.raises(MissingFileError, match=r"a-7-.* is missing.*holdfast profile SOURCE"):
        sealed.mapped(path)
    path.mkdir()
    with pytest.raises(StoreError, match=r"a-7-.*cannot be read \(Is a directory\)"):
        sealed.read(path)
    (tmp_path / "plain").write_bytes(b"x")
    with pytest.raises(StoreError, match="its name does not end with"):
        sealed.read(tmp_path / "plain")
