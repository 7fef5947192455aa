"""Making, opening and reading a profile directory, and what is said when that cannot be."""

from __future__ import annotations

import ast
import errno
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast.store
from holdfast.model.commits import Commit
from holdfast.model.errors import ConflictError, StoreError
from holdfast.model.records import to_form
from holdfast.store import FORMAT, Store
from holdfast.store.disk import Disk
from holdfast.store.log import canonical
from tests.store.versions import check_exact, commit, content, fill, hints, says


def test_versions_follow_each_other(store: Store) -> None:
    assert store.head() == 0
    assert [commit(store) for _ in range(3)] == [1, 2, 3]
    again = Store.open(store.path)
    assert again.versions() == [1, 2, 3]
    assert check_exact(again) == 3
    assert [says(each) for each in again.summaries()] == [1, 2, 3]
    assert [says(each) for each in again.summaries(last=2)] == [2, 3]


def test_another_process_sees_a_new_version(store: Store) -> None:
    other = Store(store.path)
    commit(store)
    assert other.head() == 1
    commit(store)
    assert other.head() == 2
    assert says(other.read(2)) == 2


def test_what_a_commit_says_comes_back_as_it_was(store: Store) -> None:
    said = {"ключ": ["é", "\u2028", '"', "\\", 2**70, 0.1, None, True], "nested": {"b": 1, "a": {}}}
    with store.writing() as lease:
        store.publish(Commit(changes=said), lease)
    found = Store.open(store.path).read()
    assert found.changes == said
    assert found.batch is None
    assert found.created.endswith("+00:00")


def test_create_takes_an_empty_directory(tmp_path: Path) -> None:
    Store.create(tmp_path)
    assert json.loads((tmp_path / "holdfast.json").read_text())["format"] == FORMAT


def test_create_makes_parents(tmp_path: Path) -> None:
    assert commit(Store.create(tmp_path / "a" / "b")) == 1


def test_create_finishes_an_interrupted_first_run(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    (tmp_path / "data" / "rows-0123456789ab-0001.bin").write_bytes(b"half")
    shutil.rmtree(tmp_path / "leases")
    again = Store.create(tmp_path)
    assert commit(again) == 1
    assert check_exact(store) == 1


def test_create_refuses_a_directory_with_other_content(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(StoreError, match=r"not empty and not a profile \(it holds 'data'\)"):
        Store.create(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "data"]


def test_create_refuses_a_profile_with_versions(store: Store) -> None:
    commit(store)
    with pytest.raises(StoreError, match=r"a profile already.*holdfast apply"):
        Store.create(store.path)


def test_create_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="this is a file"):
        Store.create(tmp_path / "file")


def test_open_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no profile directory.*holdfast profile"):
        Store.open(tmp_path / "missing")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="this is a file"):
        Store.open(tmp_path / "file")
    with pytest.raises(StoreError, match=r"not a profile \(it has no holdfast.json\)"):
        Store.open(tmp_path)
    Store.create(tmp_path / "new")
    with pytest.raises(StoreError, match=r"no version yet.*Run it again"):
        Store.open(tmp_path / "new")


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ('{"format": 9}', r"newer Holdfast \(format 9, this one reads 8\): upgrade holdfast"),
        ('{"format": 1}', r"older Holdfast.*holdfast profile SOURCE... --into NEW_DIRECTORY"),
        ('{"format": "1"}', "damaged"),
        ('{"created": 1}', "damaged"),
        ("[]", "damaged"),
        ("", "damaged"),
    ],
)
def test_other_formats_are_refused(store: Store, marker: str, says: str) -> None:
    commit(store)
    Path(store.path, "holdfast.json").write_text(marker)
    with pytest.raises(StoreError, match=says):
        Store.open(store.path)
    with pytest.raises(StoreError, match=says):
        Store.create(store.path)


def test_every_flipped_byte_of_a_commit_is_noticed(store: Store) -> None:
    commit(store)
    path = Path(store.path, "log", "000000000001.json")
    raw = path.read_bytes()
    for at in range(len(raw)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(StoreError, match=r"000000000001.json: this commit is damaged"):
            store.read()
    for length in range(0, len(raw), 7):
        path.write_bytes(raw[:length])
        with pytest.raises(StoreError, match="damaged"):
            store.read()


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [("files", None, "files is None, not a list"), ("run", 5, "run is 5, not text")],
)
def test_a_commit_of_somebody_else_is_noticed(
    store: Store, field: str, value: object, says: str
) -> None:
    """Its checksum fits, its fields do not."""
    commit(store)
    body = {**to_form(store.read()), field: value}
    inner = canonical(body)
    checksum = hashlib.sha256(inner).hexdigest().encode()
    path = Path(store.path, "log", "000000000001.json")
    path.write_bytes(b'{"checksum":"' + checksum + b'","body":' + inner + b"}\n")
    for read in (store.read, store.clean, lambda: store.find_batch("t", "x")):
        with pytest.raises(StoreError, match=rf"000000000001.json: this commit is damaged: {says}"):
            read()


def test_a_commit_under_another_number_is_noticed(store: Store) -> None:
    commit(store)
    log = Path(store.path, "log")
    shutil.copy(log / "000000000001.json", log / "000000000002.json")
    with pytest.raises(StoreError, match="it holds version 1"):
        store.read()


def test_a_missing_commit_is_noticed(store: Store) -> None:
    for _ in range(3):
        commit(store)
    Path(store.path, "log", "000000000002.json").unlink()
    with pytest.raises(StoreError, match=r"000000000002.json.*missing"):
        Store.open(store.path)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_missing_last_commits_are_noticed(store: Store, left: int) -> None:
    for _ in range(3):
        commit(store)
    assert hints(store.path) == {3}
    log = Path(store.path, "log")
    contents = {path: path.read_bytes() for path in sorted(log.glob("*.json"))[left:]}
    for path in contents:
        path.unlink()
    for use in (Store.open, Store.create):
        with pytest.raises(StoreError) as caught:
            use(store.path)
        said = str(caught.value)
        assert f"{log / f'{left + 1:012}.json'}: this commit is missing" in said
        assert f"{log / 'head-000000000003'} says that version 3 was committed" in said
        assert ("To go on from version" in said) == bool(left)
    for path, held in contents.items():
        path.write_bytes(held)
    assert check_exact(Store.open(store.path)) == 3


def test_an_older_version_is_accepted_as_the_last_one(store: Store) -> None:
    for _ in range(3):
        commit(store)
    log = Path(store.path, "log")
    (log / "000000000003.json").unlink()
    (log / "head-000000000003").unlink()
    assert Store.open(store.path).versions() == [1, 2]
    assert commit(Store.open(store.path)) == 3
    assert hints(store.path) == {3}


def test_a_head_hint_that_is_behind_or_lost_says_nothing(store: Store) -> None:
    """As after a crash, or in a profile that an earlier Holdfast has written to."""
    for _ in range(3):
        commit(store)
    hint = Path(store.path, "log", "head-000000000003")
    hint.rename(hint.with_name("head-000000000001"))
    assert check_exact(Store.open(store.path)) == 3
    hint.with_name("head-000000000001").unlink()
    assert check_exact(Store.open(store.path)) == 3
    hint.with_name("head-000000000001").touch()
    hint.with_name("head-000000000002").touch()
    assert commit(Store.open(store.path)) == 4
    assert hints(store.path) == {4}


def test_a_head_hint_that_cannot_be_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: str, *rest: Any) -> int:
        if "head-" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, *rest)

    monkeypatch.setattr(os, "open", refuse)
    assert commit(store) == 1
    assert hints(store.path) == set()


def test_a_listing_that_has_the_hint_and_not_the_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both came while the folder was listed: the commit is there."""
    for _ in range(2):
        commit(store)
    real = Disk.entries

    def late(storage: Disk, folder: str) -> list[str]:
        return [name for name in real(storage, folder) if name != "000000000002.json"]

    monkeypatch.setattr(Disk, "entries", late)
    late_reader = Store(store.path)
    assert late_reader.versions() == [1, 2]
    assert late_reader.head() == 2


def test_an_unknown_version_is_an_error(store: Store) -> None:
    commit(store)
    for version in (-1, 0, 2):
        with pytest.raises(StoreError, match=f"no version {version}; .* versions 1 to 1"):
            store.read(version)


def test_two_writers_one_wins(store: Store) -> None:
    commit(store)
    rival = Store.open(store.path)
    with store.writing() as ours, rival.writing() as theirs:
        our_body, their_body = fill(store, ours), fill(rival, theirs)
        assert rival.publish(their_body, theirs) == 2
        with pytest.raises(ConflictError, match=r"committed version 2 first; nothing of yours"):
            store.publish(our_body, ours)
    assert check_exact(store) == 2
    assert store.read().run == theirs.run
    assert not list(Path(store.path, "data").glob(f"*{ours.run}*"))
    assert commit(store) == 3


def test_the_link_itself_decides(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival commits after our last look at the log."""
    with store.writing() as lease:
        body = fill(store, lease)
        commit(Store(store.path))
        with monkeypatch.context() as patch:
            patch.setattr(store, "head", lambda: 0)
            with pytest.raises(ConflictError, match="committed version 1 first"):
                store.publish(body, lease)
    assert check_exact(store) == 1


def test_one_lease_publishes_once(store: Store) -> None:
    with store.writing() as lease:
        body = fill(store, lease)
        store.publish(body, lease)
        with pytest.raises(ValueError, match="published once"):
            store.publish(body, lease)
    with store.reading() as lease, pytest.raises(ValueError, match="lease of a writer"):
        store.publish(body, lease)


def test_a_commit_is_what_its_lease_makes_it(store: Store) -> None:
    with store.writing() as lease:
        body = fill(store, lease)
        with pytest.raises(ValueError, match="cannot be kept for ever"):
            store.publish(replace(body, keep=body.files), lease)
        with pytest.raises(ValueError, match="does not end with a size and a checksum"):
            store.publish(replace(body, files=(f"data/rows-{lease.run}-1.bin",)), lease)
        assert store.publish(replace(body, version=7, parent=5, run="another"), lease) == 1
    found = store.read()
    assert (found.version, found.parent, found.run) == (1, 0, lease.run)


def test_a_named_file_must_be_there(store: Store) -> None:
    with store.writing() as lease:
        body = fill(store, lease)
        Path(store.file(body.files[0])).unlink()
        with pytest.raises(StoreError, match=r"rows-.*this data file is missing"):
            store.publish(body, lease)
    assert store.head() == 0


@pytest.mark.parametrize("name", ["holdfast.json", "data", "data/", "data/../log/1", "/etc/passwd"])
def test_only_data_files_are_reached(store: Store, name: str) -> None:
    with pytest.raises(StoreError, match="not the name of a data file"):
        store.file(name)
    with pytest.raises(StoreError, match="not the name of a data file"):
        store.write(name, b"")


def test_a_data_file_is_written_once(store: Store) -> None:
    with store.writing() as lease:
        path = lease.new_path("rows", ".bin")
        assert path == f"data/rows-{lease.run}-0001.bin"
        written = store.write(path, memoryview(b"12345678").cast("q"))
        assert written == f"data/rows-{lease.run}-0001-8-9ae0daaf.bin"
        assert store.content(written) == b"12345678"
        with pytest.raises(StoreError, match="exists"):
            store.write(path, b"12345678")
        with pytest.raises(ValueError, match="kind of data file"):
            lease.new_path("Rows-x", "bin")


def test_a_folder_of_files_is_a_data_file(store: Store) -> None:
    """Spark and others write a file as a folder of parts."""
    with store.writing() as lease:
        folder = lease.prefix("rows") + "parts"
        Path(store.file(folder)).mkdir()
        part = store.write(f"{folder}/part-0", b"0")
        store.publish(Commit(files=(part,)), lease)
    assert store.clean() == []
    assert store.sizes()["rows"] == 1
    commit(store)
    assert store.clean() == [folder]


def test_sizes_by_kind(store: Store) -> None:
    commit(store)
    commit(store)
    sizes = store.sizes()
    assert sizes["rows"] == len(content(2, "rows"))
    assert sizes["sets"] == len(content(2, "sets"))
    log = Path(store.path, "log")
    assert sizes["log"] == sum(path.stat().st_size for path in log.iterdir())


def test_a_copy_without_its_empty_folders_works(store: Store) -> None:
    commit(store)
    Path(store.path, "leases").rmdir()
    copy = Store.open(store.path)
    assert copy.clean() == []
    with copy.reading() as lease:
        assert lease.version == 1
    Path(store.path, "leases").rmdir()
    assert commit(copy) == 2


def test_nothing_executable_is_loaded() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "importlib", "runpy"}
    for path in Path(holdfast.store.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, path
            # The version of the installed package is all that is asked of importlib.
            assert not forbidden & {name for name in names if name != "importlib.metadata"}, path
            assert not {name.split(".")[0] for name in names} & (forbidden - {"importlib"}), path


@pytest.mark.parametrize(
    "path",
    [
        "hdfs://host:8020/p", "http://host/p", "dbfs:/p", "s3:", "s3://", "GS:", Path("hdfs://host/p"),
        "file://host/p", "file:",
    ],
)  # fmt: skip
def test_a_profile_is_not_kept_under_a_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (Store.create, Store.open):
        with pytest.raises(
            StoreError, match=r"on a file system or an object store .* not under"
        ) as e:
            use(path)
        assert str(path) in str(e.value)
    assert not list(tmp_path.iterdir())


def test_a_file_scheme_is_a_path(tmp_path: Path) -> None:
    for number, scheme in enumerate(("file:", "file://", "FILE://")):
        store = Store.create(f"{scheme}{tmp_path}/{number}")
        assert store.path == str(tmp_path / str(number))
        commit(store)
        assert Store.open(f"{scheme}{tmp_path}/{number}").head() == 1
        assert Store.open(Path(f"{scheme}{tmp_path}/{number}")).head() == 1


def test_a_colon_alone_is_no_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("12:30", "a:b", "./s3:/p", str(tmp_path / "s3:" / "q")):
        assert Store.create(name).path == str(tmp_path / name)


def test_what_has_no_version_in_the_end_is_not_left(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    with pytest.raises(FileExistsError), Store.creating(root) as store:
        Path(store.path, "holdfast.json").touch(exist_ok=False)
    assert not list(tmp_path.iterdir())
    with Store.creating(root) as store:
        commit(store)
    assert check_exact(Store.open(root)) == 1


def test_a_version_stays_whatever_happens_after_it(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Store.creating(tmp_path / "p") as store:
        commit(store) / 0
    assert check_exact(Store.open(tmp_path / "p")) == 1


def test_what_another_first_run_uses_stays(tmp_path: Path) -> None:
    """Two first runs into one directory: one fails, before or while the other one writes."""
    for number, late in enumerate((False, True)):
        root = tmp_path / str(number)
        with Store.creating(root) as other:
            if late:
                with pytest.raises(ValueError, match="failed"), Store.creating(root):
                    raise ValueError("failed")
            with other.writing() as lease:
                if not late:
                    with pytest.raises(ValueError, match="failed"), Store.creating(root):
                        raise ValueError("failed")
                other.publish(Commit(), lease)
        assert Store.open(root).head() == 1
