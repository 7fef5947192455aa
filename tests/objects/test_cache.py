"""The cache of a machine: a file is fetched once, whole or not at all, and there is a bound."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from holdfast.model.errors import MissingFileError, StoreError
from holdfast.runtime import cached, maps, objects, sealed
from holdfast.runtime.maps import Maps
from holdfast.runtime.sealed import Seal, Sink, sealed_name
from holdfast.tasks import segments


@pytest.fixture
def fetched(memory: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The objects that were fetched, by name."""
    names: list[str] = []
    original = objects.download

    def download(path: Path, *rest: object) -> int:
        names.append(path.name)
        return original(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(objects, "download", download)
    return names


def stored(folder: str, content: bytes, name: str = "rows-0123456789ab-1.bin") -> Path:
    """An object that others wrote."""
    path = Path(folder, "data", sealed_name(name, Seal(len(content), zlib.crc32(content))))
    objects.put(path, content)
    return path


def test_a_file_is_fetched_once(memory: str, fetched: list[str], cache: Path) -> None:
    path = stored(memory, b"content")
    for _ in range(3):
        assert sealed.read(path) == b"content"
        assert bytes(sealed.mapped(path)) == b"content"
    assert fetched == [path.name]
    other = stored(f"{memory}-2", b"content")
    assert sealed.read(other) == b"content"
    assert len(fetched) == 2
    assert not list(cache.glob(".tmp-*"))


def test_a_large_file_comes_in_parts(
    memory: str, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_PART", 1000)
    content = os.urandom(12_345)
    assert sealed.read(stored(memory, content)) == content
    sink = Sink(Path(memory), "data/words-0123456789ab-2.arrow")
    for start in range(0, len(content), 100):
        sink.write(content[start : start + 100])
    name = sink.seal()
    sealed.flushed()
    assert objects.get(Path(memory, name)).data == content


def test_what_is_written_is_in_the_cache_and_uploaded(memory: str, fetched: list[str]) -> None:
    sink = Sink(Path(memory), "data/words-0123456789ab-2.arrow")
    sink.write(b"some words")
    name = sink.seal()
    assert sealed.read(Path(memory, name)) == b"some words"
    sealed.uploaded()
    assert objects.get(Path(memory, name)).data == b"some words"
    assert fetched == []


def test_an_upload_that_fails_is_an_error(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, *_: object) -> None:
        raise ConnectionError(5, "503 Slow Down", str(path))

    monkeypatch.setattr(objects, "upload", fail)
    sink = Sink(Path(memory), "data/words-0123456789ab-2.arrow")
    sink.write(b"some words")
    name = sink.seal()
    with pytest.raises(StoreError, match=rf"{memory}/{name}: cannot be uploaded \(503 Slow Down\)"):
        sealed.flushed()
    sealed.flushed()


def test_a_file_that_is_given_up_leaves_nothing(memory: str, cache: Path) -> None:
    sink = Sink(Path(memory), "data/words-0123456789ab-2.arrow")
    sink.write(b"some words")
    sink.close()
    assert [path for path in cache.iterdir() if not path.name.startswith(".lock")] == []


def test_workers_share_what_one_of_them_fetches(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(memory, b"content")
    original, calls = objects.download, []

    def slow(path: Path, *rest: object) -> int:
        calls.append(path)
        time.sleep(0.2)
        return original(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(objects, "download", slow)
    threads = [threading.Thread(target=sealed.read, args=[path]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_a_damaged_copy_is_fetched_again(memory: str, fetched: list[str], cache: Path) -> None:
    path = stored(memory, b"content")
    for use in (sealed.read, lambda path: bytes(sealed.mapped(path))):
        assert use(path) == b"content"
        (copy,) = cache.glob("*-rows-*")
        copy.write_bytes(b"connect")
        assert use(path) == b"content"
    assert len(fetched) == 3


def test_a_damaged_object_is_an_error_that_names_it(memory: str, cache: Path) -> None:
    path = stored(memory, b"content")
    assert sealed.damage(path) is None
    sealed.read(path)
    objects.put(path, b"connect")
    # The copy is fine, and is used; who verifies reads the object itself.
    assert sealed.read(path) == b"content"
    wrong = sealed.damage(path)
    assert wrong is not None
    where = f"{memory}/data/{path.name}: this data file is damaged: its content does not match"
    assert where in str(wrong)
    cached.drop(path)
    with pytest.raises(StoreError, match=where):
        sealed.read(path)
    assert not [each for each in cache.iterdir() if not each.name.startswith(".lock")]
    objects.delete(path)
    with pytest.raises(MissingFileError, match=f"{memory}/data/{path.name}: .* is missing"):
        sealed.mapped(path)


def test_the_cache_is_bounded(
    memory: str, fetched: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was not used for longest goes; who has mapped it keeps it."""
    monkeypatch.setenv("HOLDFAST_CACHE_GB", "1e-5")
    paths = [stored(memory, os.urandom(3_000), f"rows-0123456789ab-{n}.bin") for n in range(9)]
    first = sealed.mapped(paths[0])
    content = bytes(first)
    for age, path in enumerate(paths):
        sealed.read(path)
        for each in cache.glob(f"*-{path.name}"):
            os.utime(each, (age, age))
        total = sum(each.stat().st_size for each in cache.iterdir())
        assert total <= 10_000
    assert not list(cache.glob(f"*-{paths[0].name}"))
    assert list(cache.glob(f"*-{paths[8].name}"))
    assert bytes(first) == content
    assert bytes(sealed.mapped(paths[0])) == content


def test_what_was_forgotten_is_removed(memory: str, cache: Path) -> None:
    folder = cached.folder()
    old, new = folder / ".tmp-1-a", folder / ".tmp-1-b"
    for path in (old, new):
        path.write_bytes(b"half a file")
    os.utime(old, (0, 0))
    sealed.read(stored(memory, b"content"))
    assert (old.exists(), new.exists()) == (False, True)


def test_a_cache_of_somebody_else_is_refused(
    cache: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(memory, b"content")
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(StoreError, match=rf"{cache}: .* only its user can write to"):
        sealed.read(path)


KILLED = """
import os, sys
from pathlib import Path
from holdfast.runtime import cached, objects

def half(path, descriptor, size, pool):
    os.pwrite(descriptor, b"half", 0)
    sys.stdout.write("fetching\\n")
    sys.stdout.flush()
    sys.stdin.read()

objects.download = half
cached.local(Path(sys.argv[1]), 7, 0)
"""


def test_killed_while_it_fetches(memory: str, fetched: list[str], cache: Path) -> None:
    """Its lock is free, and half a file is nobody's."""
    path = stored(memory, b"content")
    worker = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stdout is not None
    assert worker.stdout.readline() == "fetching\n"
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert len(list(cache.glob(".tmp-*"))) == 1
    assert sealed.read(path) == b"content"
    assert fetched == [path.name]


def test_maps_stay_while_their_copies_do(
    memory: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object is no file of this machine, however often somebody looks for one."""
    mapped: list[Path] = []

    def opened(path: Path) -> segments.ArrayFile:
        mapped.append(path)
        return segments.ArrayFile(path)

    monkeypatch.setattr(segments, "_maps", Maps(opened, sealed.is_here))
    monkeypatch.setattr(maps, "_FEW", 10)
    names = [f"data/index-0123456789ab-{k}.arrow" for k in range(31)]
    rows = {"codes": np.arange(3)}
    paths = [Path(memory, segments.write_arrays(Path(memory), name, rows)) for name in names]
    sealed.flushed()
    for _ in range(2):
        for path in paths[:30]:
            segments.map_arrays(path)
    assert mapped == paths[:30]
    for each in cache.glob("*-index-*"):
        if not each.name.endswith(paths[30].name):
            each.unlink()
    segments._maps._looked = 0
    segments.map_arrays(paths[30])
    assert len(segments._maps) == 1
