"""Damaged files: every command says what it said before, or names the file and what to do."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast import Profile, flow
from holdfast.input.row_input import RowInput
from holdfast.model.errors import StoreError
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.store.files import is_kept
from holdfast.tasks.segments import map_arrays
from tests.flow.tables import KINDS, Shop, folder, row_input, small_limits
from tests.strategies import Rows

ROWS: Rows = [(i, i % 6, i // 6 % 4, i % 3 or None) for i in range(48)]
OTHERS: Rows = [(i, i % 6) for i in range(12)]
KIND = [KINDS[0], KINDS[0], KINDS[0], KINDS[5]]
OPTIONS = Options(evidence="counted", max_error=0.1, max_arity=2)
MORE: Rows = [(100, 1, 1, 0), (101, 1, 1, 0), (0, 5, 3, 1)]

PARTLY_READ = ("words-", "index-", "raw-", "values-")

Answer = Callable[[Path], Any]


def batch() -> flow.Batch:
    """Touches old rows through every index, and takes some of them away."""
    return flow.Batch(inserts=row_input(KIND, MORE), deletes=row_input(KIND, ROWS[4:7]))


def row_inputs() -> dict[str, RowInput]:
    return {"t": row_input(KIND, ROWS), "others": row_input(2, OTHERS)}


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of two tables and three versions, with a file of every kind."""
    path = tmp_path_factory.mktemp("damage") / "p"
    with small_limits(undivided_rows=0):
        store, runner = Store.create(path), InProcess(2)
        flow.profile(runner, store, row_inputs(), OPTIONS, no_progress)
        changes: dict[str, Any] = {
            "inserts": row_input(KIND, [(60, 1, 2, 0)]),
            "deletes": row_input(KIND, ROWS[:3]),
        }
        flow.apply(runner, store, "t", flow.Batch(**changes), no_progress)
        more = flow.Batch(inserts=row_input(2, [(50, 50)]), batch_id="more")
        flow.apply(runner, store, "others", more, no_progress)
        kinds = {name.split("/")[1].split("-")[0] for name in store.files()}
        assert kinds == {
            "words", "raw", "index", "dead", "sets", "non_keys", "cover", "evidence", "agree",
            "recount", "values", "attributes", "distinct", "clusters", "inclusions", "tuples",
            "table",
        }  # fmt: skip
    return path


def show(path: Path) -> Any:
    asked = Profile.open(path)
    found = asked.snapshot()
    tables = [
        (each.keys, each.non_keys, list(each.functional_dependencies or ()), each.approximate_keys)
        for each in found.tables.values()
    ]
    inclusions = [str(each) for each in asked.inclusion_dependencies()]
    sets = [asked.agree_sets("t"), asked.agree_sets("t", at=1)]
    history = [entry.to_dict() for entry in asked.history()]
    return tables, inclusions, asked.clusters(), sets, history, asked.diff(1, 3)


def change(path: Path, dry_run: bool) -> Any:
    store = Store.open(path)
    told = flow.apply(InProcess(2), store, "t", batch(), no_progress, dry_run)
    form = told.to_dict()
    return {name: form[name] for name in form if name not in ("seconds", "version")}


def check(path: Path) -> Any:
    return change(path, dry_run=True)


def apply(path: Path) -> Any:
    told = change(path, dry_run=False)
    assert Store.open(path).head() == 4
    return told


def verify(path: Path) -> Any:
    return flow.verify(InProcess(2), Store.open(path), no_progress)


def explain(path: Path) -> Any:
    """Says how rules stood in all versions, which the kept files of each know."""
    store = Store.open(path)
    rules = ["t(c1) in others(c1)", "t(c1, c2) in others(c0, c1)", "t: key(c0)", "t: c0 -> c2"]
    asked = (
        flow.explain(lambda: InProcess(2), store, parse(rule), 3, no_progress) for rule in rules
    )
    return [each.to_dict() for each in asked]


def missing(path: Path) -> Any:
    pair = (Attribute("t", "c0"), Attribute("others", "c0"))
    return flow.missing_values(InProcess(2), Store.open(path), *pair, None, no_progress)


ANSWERS: list[Any] = [
    pytest.param(show, marks=pytest.mark.slow),
    pytest.param(explain, marks=pytest.mark.slow),
    pytest.param(missing, marks=pytest.mark.slow),
    pytest.param(verify, marks=pytest.mark.slow),
    *(pytest.param(each, marks=pytest.mark.long) for each in (check, apply)),
]


def damages(content: bytes) -> Iterator[bytes]:
    """The content cut short, lengthened, and with single bits flipped: the first byte, the middle
    and the last."""
    yield b""
    yield content[: len(content) // 2]
    yield content[:-1]
    yield content + b"\0"
    for k in range(3 if content else 0):
        flipped = bytearray(content)
        at = (len(content) - 1) * k // 2
        flipped[at] ^= 1 << (3 * k % 8)
        yield bytes(flipped)


def overwrite(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # what is mapped in this process stays as it was
    path.write_bytes(content)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_any_damaged_file_is_named(profile: Path, answer: Answer) -> None:
    with folder() as place, small_limits(undivided_rows=0):
        path = Path(place) / "p"

        def copied() -> None:
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(profile, path)

        copied()
        expected = answer(path)
        copied()
        errors: list[tuple[str, str]] = []
        for file in sorted(each for each in path.rglob("*") if each.is_file()):
            content = file.read_bytes()
            # To apply is to check, and to write: a third of the damages shows that it stops, too.
            for damaged in list(damages(content))[:: 3 if answer is apply else 1]:
                overwrite(file, damaged)
                try:
                    assert answer(path) == expected, file
                except StoreError as error:
                    errors.append((str(file), str(error)))
                    continue
                if answer is apply:
                    copied()
                if not damaged:
                    break  # it is not even opened
            overwrite(file, content)
        assert not changed(path, profile)
    assert len(errors) > (30 if answer is apply else 50)
    for file_, said in errors:
        assert file_ in said
        assert re.search("holdfast profile|upgrade holdfast", said)
        assert "cannot be written" not in said


@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.long), pytest.param(29, marks=pytest.mark.slow)]
)
def test_a_damaged_block_is_named_or_not_used(profile: Path, step: int) -> None:
    """A batch reads parts of files. Whichever of their blocks is damaged, it is not taken for what
    it was: of all blocks of files that are read in part, each, or a sample."""
    with folder() as place, small_limits(undivided_rows=0):
        path = Path(place) / "p"
        shutil.copytree(profile, path)
        expected = check(path)
        outcomes = []
        files = [f for f in sorted((path / "data").iterdir()) if f.name.startswith(PARTLY_READ)]
        blocks = [(file, at) for file in files for at in range(0, file.stat().st_size, 64)]
        for file, at in blocks[::step]:
            content = file.read_bytes()
            damaged = bytearray(content)
            damaged[at + min(at // 64 % 64, len(content) - at - 1)] ^= 16
            overwrite(file, bytes(damaged))
            try:
                assert check(path) == expected, (file, at)
                outcomes.append("not used")
            except StoreError as error:
                outcomes.append("named" if str(file) in str(error) else str(error))
            overwrite(file, content)
    assert set(outcomes) == {"named", "not used"}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_any_deleted_file_is_named(profile: Path, answer: Answer) -> None:
    """The last commit, too, without which the version before would answer."""
    with folder() as place, small_limits(undivided_rows=0):
        path = Path(place) / "p"
        shutil.copytree(profile, path)
        expected = answer(path)
        shutil.rmtree(path)
        shutil.copytree(profile, path)
        errors: dict[str, str] = {}
        now = {Path(name).name for name in Store.open(path).files()}
        for file in sorted(each for each in path.rglob("*") if each.is_file()):
            if answer is explain and file.parent.name == "data" and file.name not in now:
                continue  # how a rule stood in an earlier version is not known then
            content = file.read_bytes()
            file.unlink()
            try:
                assert answer(path) == expected, file
            except StoreError as error:
                errors[file.name] = str(error)
            if answer is apply:
                shutil.rmtree(path)
                shutil.copytree(profile, path)
            else:
                overwrite(file, content)
        assert not changed(path, profile)
    for name, said in errors.items():
        assert name in said
        assert "holdfast profile" in said
    named = {name.split("-")[0] for name in errors}
    assert {"holdfast.json", *(f"{version:012}.json" for version in (1, 2, 3))} <= named
    if answer is explain:
        assert {"table", "sets", "attributes", "distinct", "inclusions", "tuples"} <= named


def changed(path: Path, profile: Path) -> set[str]:
    """The names of files that were not there before, or are gone."""
    names = [{str(file.relative_to(each)) for file in each.rglob("*")} for each in (path, profile)]
    return names[0] ^ names[1]


@pytest.mark.slow
def test_verify_checks_every_file(profile: Path, tmp_path: Path) -> None:
    """Those of earlier versions too; several at once are all named."""
    shutil.copytree(profile, tmp_path / "p")
    store = Store.open(tmp_path / "p")
    files = sorted((tmp_path / "p" / "data").iterdir())
    named = {name for version in (1, 2, 3) for name in store.files(version) if is_kept(name)}
    assert {f"data/{file.name}" for file in files} == named | store.files()
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 4
        overwrite(file, bytes(content))
        with pytest.raises(StoreError, match=re.escape(str(file))):
            verify(tmp_path / "p")
        content[len(content) // 3] ^= 4
        overwrite(file, bytes(content))
    files[0].unlink()
    overwrite(files[-1], b"")
    with pytest.raises(StoreError) as caught:
        verify(tmp_path / "p")
    assert f"{files[0]}: this data file is missing" in str(caught.value)
    assert f"{files[-1]}: this data file is damaged: it has 0 bytes, not" in str(caught.value)


def test_one_bit_of_an_index_hides_no_violation(tmp_path: Path) -> None:
    """The key {id} breaks when id 500 comes again; a look-up in the index would not find it."""
    shop = Shop(tmp_path / "p", 2, [(i, i % 7) for i in range(1000)])
    (segments,) = [table.segments for table in shop.store.read().tables.values()]
    (index,) = [s.indexes["0"] for s in segments if s.number == 500 // s.rows + 1]
    path = Path(shop.store.path, index)
    arrays, _ = map_arrays(path)
    (place,) = np.flatnonzero(arrays["codes"] == 500)
    content = bytearray(path.read_bytes())
    at = content.index(arrays["codes"].tobytes()) + 8 * int(place)
    assert int.from_bytes(content[at : at + 8], "little") == 500
    content[at] ^= 1
    path.write_bytes(content)  # in place, as a disk does it
    with pytest.raises(StoreError, match=re.escape(f"{path}: this data file is damaged")):
        shop.apply(inserts=[(500, 3)])
    assert shop.store.head() == 1
    content[at] ^= 1
    path.write_bytes(content)
    told = shop.apply(inserts=[(500, 8)])
    assert [str(broken.constraint) for broken in told["keys"].broken] == ["t: key(c0)"]


def test_a_file_that_changes_after_it_was_checked(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(i, i % 7) for i in range(20)])
    shop.apply(inserts=[(20, 0)], dry_run=True)
    words = Path(shop.store.path, shop.store.read().tables["t"].segments[0].words)
    content = bytearray(words.read_bytes())
    content[-1] ^= 1
    overwrite(words, bytes(content))
    with pytest.raises(StoreError, match=re.escape(str(words))):
        shop.apply(inserts=[(20, 0)])
