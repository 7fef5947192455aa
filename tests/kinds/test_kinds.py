"""A kind of constraint is one type: what is in the registry is looked for, shown, told of and
compared, and no other code names it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import holdfast
from holdfast import Options, Profile
from holdfast.export import FORMS
from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.model.errors import InputError
from tests.cli.conftest import Run, write

ORDERS = "id,customer,land\n1,7,Italy\n2,7,Italy\n3,8,Italy\n"
FROM_SPAIN = "id,customer,land\n4,8,Spain\n5,8,Spain\n6,9,Spain\n7,9,Italy\n"


@pytest.fixture
def shop(toy: Kind, in_process: None, run: Run, tmp_path: Path) -> Path:
    """A profile that looks for the toy kind; a batch that breaks its only constraint beside it."""
    orders = write(tmp_path, "orders", ORDERS)
    write(tmp_path, "spain", FROM_SPAIN)
    result = run("profile", orders, "--into", tmp_path / "shop", "--kinds", "keys,constants")
    assert result.code == 0, result.err
    assert "  1 constant column\n    land constant\n" in result.out
    return tmp_path / "shop"


def test_it_is_shown(shop: Path, run: Run) -> None:
    whole = run("show", shop).out
    part = run("show", shop, "constant-columns").out
    for text in (whole, part):
        assert "  1 constant column\n    land constant\n" in text
    assert "1 key\n" in whole
    assert "1 key\n" not in part
    assert "land constant" not in run("show", shop, "keys").out


def test_it_is_in_json(shop: Path, run: Run) -> None:
    whole = json.loads(run("show", shop, "--format", "json").out)["tables"]["orders"]
    part = json.loads(run("show", shop, "constant-columns", "--format", "json").out)
    assert whole["constant_columns"] == [{"column": "land"}]
    assert whole["keys"] == [{"columns": ["id"]}]
    told = {"rows": 3, "columns": ["id", "customer", "land"], "duplicates": 0}
    told["constant_columns"] = [{"column": "land"}]
    assert part["tables"]["orders"] == told


def test_a_batch_tells_of_it(shop: Path, run: Run, tmp_path: Path) -> None:
    batch = (shop, "--table", "orders", "--inserts", tmp_path / "spain.csv")
    checked = run("check", *batch)
    assert "1 constant column would break\n    land constant\n" in checked.out
    told = json.loads(run("apply", *batch, "--format", "json").out)["changes"]["constant_columns"]
    assert told["broken"] == [{"column": "land", "witness": []}]
    assert "1 constant column lost\n    land constant\n" in run("diff", shop, 1, 2).out
    differs = json.loads(run("diff", shop, 1, 2, "--format", "json").out)["tables"]["orders"]
    assert differs["changes"]["constant_columns"] == {
        "gained": [],
        "lost": [{"column": "land"}],
        "first": {"gained": 0, "lost": 1},
        "by_chance": {"gained": 0, "lost": 0},
    }
    assert "land constant" in run("show", shop, "constant-columns", "--at", 1).out
    assert "no constant column\n" in run("show", shop, "constant-columns").out


def test_it_is_ranked(shop: Path, run: Run) -> None:
    first = Profile.open(shop).rank("orders")["constant_columns"]
    assert [(str(each), each.reasons) for each in first] == [
        ("orders: land constant", ("one value",))
    ]
    whole = json.loads(run("show", shop, "--format", "json").out)["tables"]["orders"]
    assert whole["first"]["constant_columns"][0]["column"] == "land"


def test_it_is_expected(shop: Path, run: Run, tmp_path: Path) -> None:
    declared = run("expect", shop, "orders: land constant")
    assert (declared.code, declared.out) == (0, "expected, and holds: orders: land constant\n")
    batch = (shop, "--table", "orders", "--inserts", tmp_path / "spain.csv")
    checked = run("check", *batch)
    assert checked.code == 1
    assert "1 expected rule would break" in checked.out
    assert "rows are in the table" in checked.out
    assert "Nothing was applied" in run("apply", *batch, "--strict").out
    assert "1 expected rule broken" in run("apply", *batch).out
    assert "does not hold (12 pairs of rows)" in run("expectations", shop).out


def test_it_is_explained(shop: Path, run: Run, tmp_path: Path) -> None:
    assert "orders: land constant\n  holds" in run("explain", shop, "orders: land constant").out
    run("apply", shop, "--table", "orders", "--inserts", tmp_path / "spain.csv")
    told = json.loads(run("explain", shop, "orders: land constant", "--format", "json").out)
    assert (told["kind"], told["holds"]) == ("constant_columns", False)
    assert told["violations"]["pairs"] == 12


def test_it_is_exported(shop: Path, run: Run) -> None:
    forms = {
        form: run("export", shop, "--to", form, "--dialect", "sqlite", "--all").out
        for form in FORMS
    }
    for form in {*FORMS} - {"mermaid"}:  # a diagram has columns, keys and references alone
        assert "land constant" in forms[form], form
    assert 'HAVING count(DISTINCT "land") > 1' in forms["queries"]
    assert json.loads(forms["json"])["tables"]["orders"]["constant_columns"] == [
        {"rule": "orders: land constant", "column": "land"}
    ]


def test_only_kinds_that_gate_stop_a_load(shop: Path, run: Run, tmp_path: Path) -> None:
    batch = (shop, "--table", "orders", "--inserts", tmp_path / "spain.csv")
    assert run("check", *batch).code == 0
    assert json.loads(run("check", *batch, "--format", "json").out)["breaks"] is False
    assert run("check", *batch, "--kinds", "constants").code == 1
    assert run("check", *batch, "--kinds", "keys").code == 0


def test_history_counts_it(shop: Path, run: Run, tmp_path: Path) -> None:
    run("apply", shop, "--table", "orders", "--inserts", tmp_path / "spain.csv")
    lines = run("history", shop).out.splitlines()
    assert lines[0].split()[-3:] == ["keys", "constant", "columns"]
    assert lines[1].split()[-2:] == ["1", "1"]
    assert lines[2].split()[-3:] == ["0", "(+0", "−1)"]
    versions = json.loads(run("history", shop, "--format", "json").out)["versions"]
    tables = [each["tables"]["orders"] for each in versions]
    assert [each["constant_columns"] for each in tables] == [1, 0]
    assert [each["keys"] for each in tables] == [1, 1]


def test_values_tell_of_it(shop: Path, run: Run) -> None:
    orders = Profile.open(shop).snapshot().tables["orders"]
    assert "keys 1, non-keys 1, constant columns 1>" in repr(orders)
    (entry,) = Profile.open(shop).history()
    assert entry.counts == {"orders": {"keys": 1, "constant_columns": 1}}
    assert entry.keys == {"orders": 1}


def test_the_command_line_knows_it(toy: Kind, run: Run) -> None:
    profile, check, show = (
        " ".join(re.sub(r"[│╭╮╰╯─]", " ", run(name, "--help").out).split())
        for name in ("profile", "check", "show")
    )
    kinds = "keys, fds, inds, dcs, columns, constants, with commas; by default keys, fds, inds"
    assert f"What to look for: {kinds}, columns." in profile
    assert f"Which kinds count for the exit code: {kinds}." in check
    assert "keys, non-keys, fds, dcs, column-rules, constant-columns, agree-sets, inds" in show


def test_it_is_looked_for_only_by_name(
    toy: Kind, in_process: None, run: Run, tmp_path: Path
) -> None:
    orders = write(tmp_path, "orders", ORDERS)
    assert run("profile", orders, "--into", tmp_path / "p").code == 0
    assert "constant" not in run("show", tmp_path / "p").out
    result = run("show", tmp_path / "p", "constant-columns")
    assert result.code == 2
    assert (
        "the profile does not look for constant columns; "
        "profile it with --kinds keys,fds,inds,columns,constants" in result.err
    )


def test_without_the_registry_it_is_unknown(run: Run, tmp_path: Path) -> None:
    result = run("profile", tmp_path / "x.csv", "--into", tmp_path / "p", "--kinds", "constants")
    assert result.code == 2
    assert "unknown kind 'constants'; there are: keys, fds, inds" in result.err
    assert run("show", tmp_path / "p", "constant-columns").code == 2


# Options


def test_kinds_by_default(toy: Kind) -> None:
    options = registry.completed(Options())
    assert options.kinds == ("keys", "fds", "inds", "columns")
    assert options.named == ()
    named = registry.completed(Options(kinds="constants, fds"))
    assert named.kinds == named.named == ("constants", "fds")
    for each in (options, named):
        assert Options.from_dict(each.to_dict()) == each
        assert registry.completed(each) == each


def test_options_that_a_kind_refuses() -> None:
    with pytest.raises(InputError, match="counted pairs of rows: add fds or dcs to the kinds"):
        registry.completed(Options(kinds="keys", max_error=0.1))


def test_options_of_kinds_are_options() -> None:
    known = Options().to_dict()
    for kind in registry.REGISTRY.values():
        assert set(kind.options) <= set(known), kind.name


# Names


def test_what_goes_round_kinds_names_none() -> None:
    names = {
        name
        for kind in registry.REGISTRY.values()
        for name in (
            *(kind.name, kind.field),
            *(name for part in kind.parts for name in (part.name, part.field)),
        )
    } - {"columns"}  # a word of all tables
    package = Path(holdfast.__file__).parent
    modules = [package / "report" / "forms.py"]
    for room in (package / "report" / "terminal", package / "cli"):
        modules += sorted(room.rglob("*.py"))
    assert len(modules) > 20
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Constant):
                named = node.value in names
                assert not named, f"{module.name}:{node.lineno} names {node.value!r}"


def test_names_are_told_apart() -> None:
    kinds = registry.REGISTRY.values()
    for names in (
        [kind.name for kind in kinds],
        [kind.field for kind in kinds],
        [part.name for kind in kinds for part in kind.parts],
        [part.field for kind in kinds for part in kind.parts],
    ):
        assert len({*names}) == len(names)
