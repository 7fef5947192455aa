"""Every command, for real but without a JVM: what it prints, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Profile, __version__
from holdfast.model.versions import Verification
from tests.card import NAME, Card, stand_in
from tests.cli.conftest import ORDERS, Run, write

HEADER = ORDERS.splitlines()[0] + "\n"
BREAKING = HEADER + "5,7,2026-01-01,Ann,\n"
HARMLESS = HEADER + "5,10,2026-01-09,Zoe,new\n"


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"holdfast {__version__}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_every_command(run: Run, flag: str) -> None:
    result = run(flag)
    assert result.code == 0
    for name in ("profile", "apply", "check", "show", "history", "diff", "verify"):
        assert name in result.out


def test_profile_shows_the_keys(run: Run, in_process: None, tmp_path: Path) -> None:
    path = write(tmp_path, "orders", ORDERS)
    result = run("profile", f"sales={path}", "--into", tmp_path / "new")
    assert result.code == 0
    assert "version 1" in result.out
    assert "Two nulls count as equal." in result.out
    assert "sales: 4 rows, 5 columns\n" in result.out
    assert "    id, never null\n    customer, day, never null\n" in result.out
    assert "non-key" not in result.out


def test_profile_as_json_is_what_show_prints(run: Run, in_process: None, tmp_path: Path) -> None:
    path = write(tmp_path, "orders", ORDERS)
    told = run("profile", path, "--into", tmp_path / "new", "--format", "json").out
    assert json.loads(told) == json.loads(run("show", tmp_path / "new", "--format", "json").out)


def test_parallelism_is_handed_on(
    run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []
    real = Profile._running

    def running(profile: Profile) -> Any:
        asked.append(profile._parallelism)
        return real(profile)

    monkeypatch.setattr(Profile, "_running", running)
    more = write(tmp_path, "more", HARMLESS)
    assert run("profile", more, "--into", tmp_path / "new", "--parallelism", 64).code == 0
    assert run("check", shop, "--table", "orders", "--inserts", more).code == 0
    assert run("verify", shop, "--parallelism", 3).code == 0
    assert asked == [64, None, 3]
    result = run("verify", shop, "--parallelism", 0)
    assert result.code == 2
    assert "parallelism must be a number of tasks, 1 or more, not 0" in result.err


def test_show_json(run: Run, shop: Path) -> None:
    result = run("show", shop, "--format", "json")
    form = json.loads(result.out)
    assert result.err == ""
    assert form["version"] == 1
    assert form["nulls"] == "equal"
    orders = form["tables"]["orders"]
    assert orders["rows"] == 4
    assert orders["columns"] == HEADER.strip().split(",")
    assert orders["keys"][:2] == [{"columns": ["id"]}, {"columns": ["customer", "day"]}]
    assert orders["duplicates"] == 0
    lists = {"keys", "non_keys", "functional_dependencies", "column_facts", "near", "column_rules"}
    assert set(orders) == {"rows", "columns", "duplicates", "grain", "first", "by_chance", *lists}
    assert not any(each.get("by_chance") for each in orders["first"]["functional_dependencies"])
    assert orders["grain"]["columns"] == ["id"]
    assert orders["first"]["keys"][0]["columns"] == ["id"]
    assert {"lhs": ["id"], "rhs": "day", "error": 0.0} in orders["functional_dependencies"]
    for non_key in orders["non_keys"]:
        one, two = non_key["witness"]
        agree = [name for name in orders["columns"] if one[name] == two[name]]
        assert agree == non_key["columns"]


def test_show_columns(run: Run, shop: Path) -> None:
    text = run("show", shop, "columns").out
    assert text.splitlines()[0] == "orders: 4 rows"
    lines = [line.split() for line in text.splitlines()[1:]]
    assert lines[0] == ["column", "type", "nulls", "distinct", "minimum", "maximum"]
    assert lines[1] == ["id", "bigint", "0", "4", "1", "4"]
    assert lines[4] == ["`first", "name`", "string", "0", "2", "Ann", "Bob"]
    assert lines[5] == ["note", "string", "2", "2", "late", "'null'"]
    form = json.loads(run("show", shop, "columns", "--format", "json", "--limit", "1").out)
    orders = form["tables"]["orders"]
    assert orders["counts"] == {"column_facts": 5}
    assert orders["column_facts"] == [
        {"name": "id", "type": "bigint", "nulls": 0, "distinct": 4, "estimated": False,
         "minimum": 1, "maximum": 4}
    ]  # fmt: skip
    whole = json.loads(run("show", shop, "--format", "json").out)["tables"]["orders"]
    assert whole["column_facts"][:1] == orders["column_facts"]
    facts = Profile.open(shop).columns("orders")
    assert facts.to_dict() == whole["column_facts"]
    assert facts.to_pandas()["minimum"].tolist()[:2] == ["1", "7"]


def test_columns_on_a_narrow_screen(
    run: Run, in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and numbers are whole, values as far as they fit."""
    path = write(tmp_path, "t", f"a_rather_long_name,b\n{'x' * 90},1\n{'y' * 90},2\n")
    assert run("profile", path, "--into", tmp_path / "new").code == 0
    monkeypatch.setenv("COLUMNS", "64")
    lines = run("show", tmp_path / "new", "columns").out.splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 64
    cells = lines[2].split()
    assert cells[:4] == ["a_rather_long_name", "string", "0", "2"]
    assert [cell.strip("xy") for cell in cells[4:]] == ["…", "…"]


def test_keys_are_shown_with_their_nulls(run: Run, in_process: None, tmp_path: Path) -> None:
    path = write(tmp_path, "t", "a,b,note\n1,1,\n2,2,x\n2,3,\n")
    told = run("profile", path, "--into", tmp_path / "new", "--nulls", "unequal").out
    assert "    b, never null\n    note, 2 nulls\n" in told
    path = write(tmp_path, "u", "a,day\n1,\n2,x\n2,\n")
    told = run("profile", path, "--into", tmp_path / "other").out
    assert "    a, day, 2 nulls in day\n" in told


def test_show_a_part(run: Run, shop: Path) -> None:
    keys = json.loads(run("show", shop, "keys", "--format", "json").out)["tables"]["orders"]
    non_keys = json.loads(run("show", shop, "non-keys", "--format", "json").out)["tables"]["orders"]
    assert "non_keys" not in keys
    assert "keys" not in non_keys
    text = run("show", shop, "non-keys").out
    assert "maximal non-keys" in text
    assert "`first name`" in text


def test_show_verbose(run: Run, shop: Path) -> None:
    text = run("show", shop, "--verbose").out
    for word in ("selectivity", " segments, ", "index_quota: 8", "on disk", "words: "):
        assert word in text
    form = json.loads(run("show", shop, "--verbose", "--format", "json").out)
    assert form["bytes"]["log"] > 0
    assert form["options"]["nulls"] == "equal"
    assert form["tables"]["orders"]["indexes"][0] == {
        "columns": ["id"],
        "distinct": 4,
        "selectivity": 1.0,
    }


def test_apply_tells_what_broke_and_shows_the_rows(run: Run, shop: Path, tmp_path: Path) -> None:
    batch = write(tmp_path, "new", BREAKING)
    result = run("apply", shop, "--table", "orders", "--inserts", batch, "--batch-id", "b1", "-v")
    assert result.code == 0
    assert "orders, version 2: 1 inserted; 5 rows now\n" in result.out
    assert "broken" in result.out
    lines = result.out.splitlines()
    at = lines.index("    customer, day")
    assert lines[at + 1].split()[:3] == ["customer", "day", "id"]
    assert sorted(line.split()[2] for line in lines[at + 2 : at + 4]) == ["1", "5"]
    assert "times: " in result.out

    again = run("apply", shop, "--table", "orders", "--inserts", batch, "--batch-id", "b1")
    assert again.code == 0
    assert again.out == "orders: batch 'b1' was applied before, as version 2; nothing to do\n"


def test_check_of_a_batch_that_was_applied(run: Run, shop: Path, tmp_path: Path) -> None:
    """So that ``check && apply`` can be run again, whatever the batch broke."""
    batch = write(tmp_path, "new", BREAKING)
    arguments = (shop, "--table", "orders", "--inserts", batch, "--batch-id", "b1")
    assert run("check", *arguments).code == 1
    assert run("apply", *arguments).code == 0
    again = run("check", *arguments)
    assert again == (0, "orders: batch 'b1' was applied before, as version 2; nothing to do\n", "")
    form = json.loads(run("check", *arguments, "--format", "json").out)
    assert (form["breaks"], form["applied"], form["applied_before"]) == (False, False, True)
    assert form == {
        **json.loads(run("apply", *arguments, "--format", "json").out), "breaks": False
    }  # fmt: skip
    write(tmp_path, "new", HARMLESS)
    other = run("check", *arguments)
    assert (other.code, other.out) == (2, "")
    assert "was already used for other rows" in other.err


def test_apply_json(run: Run, shop: Path, tmp_path: Path) -> None:
    batch = write(tmp_path, "new", BREAKING)
    told = run("apply", shop, "--table", "orders", "--inserts", batch, "--format", "json").out
    form = json.loads(told)
    assert form["applied"] is True
    assert form["version"] == 2
    keys = form["changes"]["keys"]
    (broken,) = [key for key in keys["broken"] if key["columns"] == ["customer", "day"]]
    assert len(broken["witness"]) == 2
    assert keys["counts"]["broken"] == len(keys["broken"])


def test_updates_by_row_key(run: Run, shop: Path, tmp_path: Path) -> None:
    batch = write(tmp_path, "new", HEADER + "4,9,2026-01-03,Zoe,fixed\n")
    result = run("apply", shop, "--table", "orders", "--updates", batch, "--row-key", "id")
    assert result.code == 0
    assert "1 updated; 4 rows now" in result.out


@pytest.mark.parametrize(("text", "code"), [(BREAKING, 1), (HARMLESS, 0)])
def test_check_exits_1_when_a_key_would_break(
    run: Run, shop: Path, tmp_path: Path, text: str, code: int
) -> None:
    batch = write(tmp_path, "new", text)
    result = run("check", shop, "--table", "orders", "--inserts", batch)
    assert result.code == code
    assert ("would break" in result.out) == bool(code)
    told = run("check", shop, "--table", "orders", "--inserts", batch, "--format", "json")
    assert told.code == code
    assert json.loads(told.out)["breaks"] == bool(code)
    assert json.loads(told.out)["applied"] is False
    assert len(json.loads(run("history", shop, "--format", "json").out)["versions"]) == 1


def test_a_repeated_row_leaves_no_key(run: Run, shop: Path, tmp_path: Path) -> None:
    batch = write(tmp_path, "new", HEADER + "1,7,2026-01-01,Ann,\n")
    checked = run("check", shop, "--table", "orders", "--inserts", batch)
    assert checked.code == 1
    assert "no key: 1 row would repeat another row" in checked.out
    run("apply", shop, "--table", "orders", "--inserts", batch)
    text = run("show", shop).out
    assert "no key: 1 row repeats another row" in text
    assert "keys if the duplicated rows were removed" in text
    orders = json.loads(run("show", shop, "--format", "json").out)["tables"]["orders"]
    assert orders["keys"] == []
    assert {"columns": ["id"]} in orders["keys_of_distinct_rows"]
    assert orders["duplicates"] == 1
    assert orders["duplicated"][0]["id"] == 1
    assert "the distinct rows have n keys" in run("history", shop).out


def test_a_file_that_is_loaded_twice_breaks_every_key(run: Run, shop: Path, tmp_path: Path) -> None:
    def diff(one: int, two: int) -> dict[str, Any]:
        told = run("diff", shop, one, two, "--format", "json").out
        form: dict[str, Any] = json.loads(told)["tables"]["orders"]
        return form

    before = Profile.open(shop).keys("orders")
    batch = write(tmp_path, "orders", ORDERS)
    arguments = (shop, "--table", "orders", "--inserts", batch)
    checked = run("check", *arguments)
    assert checked.code == 1
    assert f"{len(before)} keys would break, only because rows are repeated\n    id" in checked.out
    told = json.loads(run("apply", *arguments, "--format", "json").out)
    broken = told["changes"]["keys"]["broken"]
    assert {tuple(key["columns"]) for key in broken} == {key.columns for key in before}
    for each in broken:
        assert each["repeated"] is True
        one, two = each["witness"]
        assert one == two
    profile = Profile.open(shop)
    changes = profile.history()[1].changes
    assert changes is not None
    assert [each.constraint for each in changes["keys"].broken] == list(before)

    text = run("diff", shop, 1, 2).out
    assert f"no key any more: 4 rows repeat another row\n  {len(before)} keys lost\n" in text
    assert "the same" not in text
    assert {*profile.diff(1, 2)["orders"]["keys"].lost} == {*before}
    assert diff(1, 2)["duplicates"] == [0, 4]
    assert {"columns": ["id"]} in diff(1, 2)["changes"]["keys"]["lost"]
    assert diff(1, 2)["changes"]["keys"]["gained"] == []

    # More of the same: what is told then is of the distinct rows.
    run("apply", *arguments)
    text = run("diff", shop, 2, 3).out
    assert "no key: 4 → 8 rows repeat another row\n  of the distinct rows:\n  the same" in text
    for _ in range(2):
        result = run("apply", shop, "--table", "orders", "--deletes", batch, "--format", "json")
    assert {"columns": ["id"]} in json.loads(result.out)["changes"]["keys"]["gained"]
    assert json.loads(result.out)["changes"]["keys"]["broken"] == []
    assert "no row repeats another one any more (4 did): keys hold again" in (
        run("diff", shop, 2, 5).out
    )
    assert diff(2, 5)["changes"]["keys"]["gained"] == diff(1, 2)["changes"]["keys"]["lost"]
    assert "as many rows, and the same constraints" in run("diff", shop, 1, 5).out


def test_rows_that_come_as_they_are_are_said_to_be_unchanged(
    run: Run, shop: Path, tmp_path: Path
) -> None:
    same = ("--table", "orders", "--upserts", tmp_path / "orders.csv", "--row-key", "id")
    assert "orders, checked against version 1: 4 unchanged; 4 rows then" in (
        run("check", shop, *same).out
    )
    assert "orders, version 2: 4 unchanged; 4 rows now" in run("apply", shop, *same).out
    one = write(tmp_path, "one", ORDERS.replace("Bob", "Eve") + "5,9,2026-01-09,Zoe,new\n")
    others = ("--table", "orders", "--upserts", one, "--row-key", "id", "--format", "json")
    form = json.loads(run("apply", shop, *others).out)
    assert (form["inserted"], form["updated"], form["unchanged"]) == (1, 1, 3)
    history = run("history", shop).out
    assert "4 unchanged " in history
    assert "1 inserted, 1 updated, 3 unchanged " in history


def test_upserts_and_replayed_deletes(run: Run, shop: Path, tmp_path: Path) -> None:
    rows = write(tmp_path, "new", HEADER + "4,9,2026-01-03,Eve,\n5,10,2026-01-09,Zoe,new\n")
    arguments = ("--table", "orders", "--upserts", rows, "--row-key", "id")
    assert "1 inserted, 1 updated; 5 rows then" in run("check", shop, *arguments).out
    assert "1 inserted, 1 updated" in run("apply", shop, *arguments).out
    gone = ("--table", "orders", "--deletes", rows, "--row-key", "id", "--if-exists")
    assert "2 deleted" in run("apply", shop, *gone).out
    assert "2 skipped (not there)" in run("apply", shop, *gone).out
    assert json.loads(run("check", shop, *gone, "--format", "json").out)["skipped"] == 2
    refused = run("apply", shop, *gone[:-1])
    assert (refused.code, "matches no row" in refused.err) == (2, True)


def test_history_and_diff(run: Run, shop: Path, tmp_path: Path) -> None:
    batch = write(tmp_path, "new", BREAKING)
    run("apply", shop, "--table", "orders", "--inserts", batch, "--batch-id", "monday")
    text = run("history", shop).out
    assert "first profile" in text
    assert "monday" in text
    versions = json.loads(run("history", shop, "--format", "json").out)["versions"]
    assert [entry["version"] for entry in versions] == [1, 2]
    assert versions[0]["changes"] is None
    assert versions[1]["tables"]["orders"]["rows"] == 5

    text = run("diff", shop, 1, 2).out
    assert "orders: 4 → 5 rows\n" in text
    assert "lost" in text
    form = json.loads(run("diff", shop, 1, 2, "--format", "json").out)
    assert {"columns": ["customer", "day"]} in form["tables"]["orders"]["changes"]["keys"]["lost"]
    assert (form["from"], form["to"]) == (1, 2)
    back = json.loads(run("diff", shop, 2, 1, "--format", "json").out)
    then, now = (each["tables"]["orders"]["changes"]["keys"] for each in (form, back))
    assert now["gained"] == then["lost"]


def test_show_an_earlier_version(run: Run, shop: Path, tmp_path: Path) -> None:
    before = json.loads(run("show", shop, "keys", "--format", "json").out)
    batch = write(tmp_path, "new", BREAKING)
    run("apply", shop, "--table", "orders", "--inserts", batch)
    assert json.loads(run("show", shop, "keys", "--at", 1, "--format", "json").out) == before
    assert run("show", shop, "--at", 9).code == 2


def test_verify(run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("verify", shop)
    assert (result.code, result.out) == (
        0, f"{shop}, version 1: equal to a fresh profile of its rows\n"
    )  # fmt: skip
    wrong = Verification(1, {"orders": ("the rows have the key id, which the profile lacks",)})
    monkeypatch.setattr("holdfast.api.Profile.verify", lambda _: wrong)
    result = run("verify", shop)
    assert result.code == 1
    assert "the rows have the key id" in result.out
    result = run("verify", shop, "--format", "json")
    assert result.code == 1
    assert json.loads(result.out)["equal"] is False


def test_max_columns_is_said(run: Run, in_process: None, tmp_path: Path) -> None:
    path = write(tmp_path, "orders", ORDERS)
    result = run("profile", path, "--into", tmp_path / "p", "--max-columns", 1)
    assert "searched up to 1 column: there may be more" in result.out
    orders = json.loads(run("show", tmp_path / "p", "--format", "json").out)["tables"]["orders"]
    assert orders["incomplete"] == ["keys", "non_keys", "functional_dependencies"]
    assert orders["max_columns"] == 1
    keys = json.loads(run("show", tmp_path / "p", "keys", "--format", "json").out)
    assert keys["tables"]["orders"]["incomplete"] == ["keys"]


def test_the_null_policy_is_printed(run: Run, in_process: None, tmp_path: Path) -> None:
    path = write(tmp_path, "orders", ORDERS)
    result = run("profile", path, "--into", tmp_path / "p", "--nulls", "unequal")
    assert "A null differs from every value" in result.out


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    return stand_in(monkeypatch)


def test_pairs_are_counted_with_the_device_that_is_asked_for(
    card: Card, run: Run, in_process: None, tmp_path: Path
) -> None:
    path, into = write(tmp_path, "orders", ORDERS), tmp_path / "p"
    made = run("profile", path, "--into", into, "--device", "gpu", "--verbose")
    assert (made.code, made.err) == (0, "")
    assert f"counted last on {NAME}: " in made.out
    assert card.counted == [6]
    batch = ("--table", "orders", "--inserts", write(tmp_path, "new", BREAKING))
    # The profile's own, unless told, which holds for once.
    run("check", into, *batch, "--device", "cpu")
    assert len(card.counted) == 1
    run("check", into, *batch)
    assert card.counted[1:] == [4]
    run("apply", into, *batch, "--device", "cpu")
    told = json.loads(run("show", into, "--verbose", "--format", "json").out)
    assert told["tables"]["orders"]["evidence"]["agreement"]["device"] == "cpu"
    assert told["options"]["device"] == "gpu"


def test_a_gpu_that_is_not_there_is_one_line(
    card: Card, run: Run, in_process: None, tmp_path: Path
) -> None:
    card.missing = "CUDA finds no GPU."
    path, into = write(tmp_path, "orders", ORDERS), tmp_path / "p"
    made = run("profile", path, "--into", into, "--device", "gpu", "--kinds", "keys,fds,dcs")
    assert made.code == 0
    said = "warning: Pairs are counted on the processor. CUDA finds no GPU.\n"
    assert made.err == said
    unknown = run("profile", path, "--into", tmp_path / "q", "--device", "tpu")
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err == "error: device can be 'auto', 'cpu' or 'gpu', not 'tpu'\n"
    batch = ("--table", "orders", "--inserts", write(tmp_path, "new", BREAKING))
    assert run("apply", into, *batch, "--device", "tpu").err == unknown.err


def test_a_profile_without_values(
    run: Run, in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs a secret to be made, the same one for batches, and none to be looked at."""
    for name in ("HOLDFAST_SECRET", "HOLDFAST_SECRET_FILE"):
        monkeypatch.delenv(name, raising=False)
    path, into = write(tmp_path, "orders", ORDERS), tmp_path / "p"
    made = ("profile", path, "--into", into, "--no-values", "--kinds", "keys,dcs")
    none = run(*made)
    assert (none.code, into.exists()) == (2, False)
    assert "a profile without values needs a secret: set HOLDFAST_SECRET" in none.err
    monkeypatch.setenv("HOLDFAST_SECRET", "a long enough secret")
    result = run(*made)
    assert result.code == 0
    assert "denial constraints compare by = and != alone" in result.err
    batch = ("--table", "orders", "--inserts", write(tmp_path, "new", BREAKING))
    monkeypatch.setenv("HOLDFAST_SECRET", "another, long enough")
    for command in ("check", "apply"):
        wrong = run(command, into, *batch)
        assert (wrong.code, wrong.out) == (2, "")
        assert "is not the one that this profile was made with" in wrong.err
    monkeypatch.setenv("HOLDFAST_SECRET", "a long enough secret")
    assert run("check", into, *batch).code == 1
    told = run("apply", into, *batch)
    assert told.code == 0
    assert "4 keys broken" in told.out
    assert not any(value in told.out for value in ("Ann", "Bob"))
    monkeypatch.delenv("HOLDFAST_SECRET")
    shown = json.loads(run("show", into, "--verbose", "--format", "json").out)
    assert (shown["options"]["keep_values"], shown["options"]["keep_rows"]) == (False, False)
    assert "row" in run("show", into, "non-keys").out


def test_options_reach_the_profile_and_the_session(
    run: Run, sessions: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def create(path: Path, tables: Any, *, options: Any, **rest: Any) -> None:
        made.extend([tables, options])
        rest["session"]()
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.api.Profile.create", create)
    result = run(
        "profile", "a.txt", "b=s3a://store/x=1/", "--into", tmp_path / "p", "--input-format",
        "delta", "--format", "json", "--option", "url=x=y", "--schema", "b=id int", "--all-text",
        "--multi-line", "--delimiter", ";", "--no-header", "--nulls", "unequal", "--start",
        "sample", "--no-rows", "--index-quota", "3", "--max-columns", "4", "--master", "local[1]",
        "--conf", "spark.x=1", "--conf", "spark.y=2",
    )  # fmt: skip
    assert (result.code, result.err) == (130, "interrupted: nothing was committed\n")
    assert sessions == [("local[1]", None, {"spark.x": "1", "spark.y": "2"})]
    tables, options = made
    assert list(tables) == ["a.txt", "b"]
    b = tables["b"]
    assert (b.path, b.format, b.options) == ("s3a://store/x=1/", "delta", {"url": "x=y"})
    assert (b.schema, tables["a.txt"].schema) == ("id int", None)
    assert (b.all_text, b.multi_line, b.delimiter, b.header) == (True, True, ";", False)
    assert (options.nulls, options.start, options.keep_rows) == ("unequal", "sample", False)
    assert (options.index_quota, options.max_columns) == (3, 4)


PEOPLE = "id,city,land\n7,Rome,IT\n8,Rome,IT\n9,Oslo,NO\n10,Oslo,NO\n"


def test_show_begins_with_what_matters(in_process: None, run: Run, tmp_path: Path) -> None:
    paths = [write(tmp_path, "orders", ORDERS), write(tmp_path, "customers", PEOPLE)]
    assert run("profile", *paths, "--into", tmp_path / "p").code == 0
    moment, *lines = run("show", tmp_path / "p").out.splitlines()
    assert moment.startswith(f"{tmp_path / 'p'}, version 1 of 20")
    assert lines[:7] == [
        "Two nulls count as equal.",
        "",
        "customers: 4 rows, 3 columns",
        "  one row per id: one column, never null, called like an identifier, referenced by orders",
        "  1 key",
        "    id, never null",
        "  4 functional dependencies, none of which explains redundancy",
    ]
    assert lines[7:9] == ["  7 rules of columns", ""]
    assert lines[10] == "  one row per id: one column, never null, called like an identifier"
    assert lines[-5:] == [
        "  1 parent",
        "    orders(customer) in customers(id)",
        "  11 rules of columns",
        "",
        "1 inclusion dependency, 1 of them into a key",
    ]
    whole = run("show", tmp_path / "p", "--all").out
    assert "maximal non-keys" in whole
    assert "one row per" not in whole
    assert "maximal non-keys" in run("show", tmp_path / "p", "--limit", 3).out
    implied = run("show", tmp_path / "p", "fds", "--all", "--verbose").out
    assert "    id -> city  (implied by key(id))\n" in implied
