"""Files in a folder, as they arrive."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.feeds.addresses import opened
from holdfast.feeds.contract import Bounds, Feed, Given, Position, Step
from holdfast.input.row_input import Columns
from holdfast.input.sources import Source
from holdfast.model.errors import InputError, SourceError

EVERYTHING = Bounds()


def feed(folder: Path, **options: str) -> Feed:
    given = Given("t", Columns.of([], [], []), options=options, reading=Source(".", "csv"))
    return opened(str(folder), given)


def names(step: Step | None) -> list[str]:
    assert step is not None
    assert step.changes is not None
    assert isinstance(step.changes.rows, tuple)
    return [Path(source.path).name for source in step.changes.rows]


def write(folder: Path, *files: str, time: int | None = None) -> None:
    for name in files:
        (folder / name).write_text(f"id\n{name}\n")
        if time is not None:
            os.utime(folder / name, ns=(time, time))


def read_to_head(feed: Feed, after: Position | None, bounds: Bounds) -> tuple[list[str], Position]:
    read: list[str] = []
    while step := feed.read(after, bounds):
        read += names(step)
        after = step.position
    assert after is not None
    return read, after


@pytest.mark.parametrize("files", [1, 2, 100])
def test_each_file_is_read_once_in_the_order_of_names(tmp_path: Path, files: int) -> None:
    write(tmp_path, "b.csv", "a.csv", "_SUCCESS", ".c.csv.tmp")
    read, after = read_to_head(feed(tmp_path), None, Bounds(files=files))
    assert read == ["a.csv", "b.csv"]
    assert after == feed(tmp_path).head()
    assert feed(tmp_path).behind(after) == ""
    write(tmp_path, "d.csv", "0.csv", "c.csv")  # one of them sorts before what was read
    assert feed(tmp_path).behind(after) == "3 files"
    read, after = read_to_head(feed(tmp_path), after, Bounds(files=files))
    assert read == ["0.csv", "c.csv", "d.csv"]
    assert after == feed(tmp_path).head()


def test_the_order_can_be_that_of_times(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", time=2_000_000_000)
    write(tmp_path, "b.csv", time=1_000_000_000)
    assert names(feed(tmp_path, order="time").read(None, EVERYTHING)) == ["b.csv", "a.csv"]
    with pytest.raises(InputError, match="in the order of name or time, not 'size'"):
        feed(tmp_path, order="size")
    with pytest.raises(InputError, match="no option 'bootstrap'"):
        feed(tmp_path, bootstrap="host:9092")


def test_a_file_that_changed_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "b.csv")
    step = feed(tmp_path).read(None, EVERYTHING)
    assert step is not None
    (tmp_path / "a.csv").write_text("id\nanother\n")
    with pytest.raises(SourceError, match=r"a\.csv: this file changed after it was applied"):
        feed(tmp_path).read(step.position, EVERYTHING)
    (tmp_path / "a.csv").unlink()
    assert feed(tmp_path).read(step.position, EVERYTHING) is None


def test_files_that_were_removed_are_forgotten(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "b.csv")
    _, after = read_to_head(feed(tmp_path), None, EVERYTHING)
    (tmp_path / "a.csv").unlink()
    write(tmp_path, "c.csv")
    _, after = read_to_head(feed(tmp_path), after, EVERYTHING)
    assert after == feed(tmp_path).head()


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="gone: there is no such folder"):
        feed(tmp_path / "gone").read(None, EVERYTHING)
    with pytest.raises(InputError, match="a feed of files is a folder of a file system"):
        opened("s3://bucket/changes", Given("t", Columns.of([], [], [])))
