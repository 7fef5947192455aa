"""Maps that a process keeps: of all files that there are, and of no others for long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.runtime import maps, sealed
from holdfast.runtime.maps import Maps
from holdfast.runtime.sealed import stamp
from holdfast.tasks import segments


class Made:
    """Counts what is made anew."""

    def __init__(self) -> None:
        self.paths: list[Path] = []

    def __call__(self, path: Path) -> str:
        self.paths.append(path)
        return path.read_text()


def files(folder: Path, number: int, size: int = 1) -> list[Path]:
    paths = [folder / f"{k}" for k in range(number)]
    for path in paths:
        path.write_text("x" * size)
    return paths


def walk(held: Maps[str], paths: list[Path]) -> None:
    for path in paths:
        assert held.get(path, stamp(path)) == path.read_text()


def test_more_files_than_a_small_cache_has_are_mapped_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a task meets them: one after the other, again and again."""
    mapped: list[Path] = []

    def opened(path: Path) -> segments.ArrayFile:
        mapped.append(path)
        return segments.ArrayFile(path)

    monkeypatch.setattr(segments, "_maps", Maps(opened, sealed.is_here))
    monkeypatch.setattr(sealed, "flush", lambda _: None)
    paths = [
        tmp_path / segments.write_arrays(tmp_path, f"index-{k}.arrow", {"codes": np.arange(3)})
        for k in range(700)
    ]
    sealed.flushed()
    for _ in range(3):
        for path in paths:
            assert segments.map_arrays(path)[0]["codes"].tolist() == [0, 1, 2]
    assert mapped == paths


def test_files_that_are_gone_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bytes stay on the disk as long as they are mapped."""
    monkeypatch.setattr(maps, "_FEW", 10)
    made = Made()
    held = Maps(made, Path.exists)
    for round_ in range(20):
        (tmp_path / f"{round_}").mkdir()
        paths = files(tmp_path / f"{round_}", 9)
        walk(held, paths)
        for path in paths:
            path.unlink()
    assert len(made.paths) == 20 * 9
    assert len(held) <= 2 * 10


def test_looking_for_files_costs_a_look_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "_FEW", 10)
    paths = files(tmp_path, 300)
    looks: list[Path] = []
    real = Path.exists

    def exists(path: Path) -> bool:
        looks.append(path)
        return real(path)

    monkeypatch.setattr(Path, "exists", exists)
    walk(Maps(Made(), Path.exists), paths)
    assert len(looks) <= 2 * len(paths)


def test_no_more_than_a_process_may_have(tmp_path: Path) -> None:
    made = Made()
    held = Maps(made, Path.exists, most=5)
    paths = files(tmp_path, 8)
    walk(held, paths)
    assert len(held) == 5
    walk(held, paths[3:])
    assert made.paths == paths, "the five that were asked for last are there"
    walk(held, paths[:1])
    assert made.paths[8:] == paths[:1]
    walk(held, paths[4:])
    assert made.paths[8:] == paths[:1], "what was not asked for longest went first"


def test_no_more_bytes_than_it_may_map(tmp_path: Path) -> None:
    made = Made()
    held = Maps(made, Path.exists, most_bytes=30)
    paths = files(tmp_path, 8, 10)
    walk(held, paths)
    assert len(held) == 3
    (tmp_path / "large").write_text("x" * 100)
    walk(held, [tmp_path / "large"])
    assert len(held) == 1, "one is always there, however large"


def test_a_changed_file_is_mapped_anew(tmp_path: Path) -> None:
    made = Made()
    held = Maps(made, Path.exists, most_bytes=3)
    (path,) = files(tmp_path, 1)
    walk(held, [path])
    path.write_text("other")
    walk(held, [path, path])
    assert made.paths == [path, path]
    assert len(held) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
def test_a_map_needs_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "flush", lambda _: None)
    path = tmp_path / segments.write_arrays(tmp_path, "words.arrow", {"words": np.arange(9)})
    sealed.flushed()
    arrays, _ = segments.map_arrays(path)
    opened = [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert path not in opened
    assert str(path) in Path("/proc/self/maps").read_text()
    assert arrays["words"].sum() == 36
