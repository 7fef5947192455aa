"""Expectations on the command line: gates, messages, and files of rules."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from holdfast.input import rules_file
from holdfast.model.errors import InputError
from tests.cli.conftest import Run, write

TWICE = "id,customer,day,first name,note\n2,9,2026-01-05,Eve,\n5,9,2026-01-06,Eve,\n"
NEW = "id,customer,day,first name,note\n5,9,2026-01-06,Eve,\n"


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    return write(tmp_path, "twice", TWICE)


def test_check_is_about_what_is_expected(shop: Path, run: Run, tmp_path: Path, twice: Path) -> None:
    # Without expectations an accidental key that breaks stops a load.
    new = write(tmp_path, "new", "id,customer,day,first name,note\n5,7,2026-01-01,Eve,\n")
    assert run("check", shop, "--table", "orders", "--inserts", new).code == 1

    told = run("expect", shop, "orders: key(id)", "--name", "ids")
    assert (told.code, told.out) == (0, "expected, and holds: orders: key(id)  (ids)\n")
    checked = run("check", shop, "--table", "orders", "--inserts", new)
    assert checked.code == 0
    assert "1 expected rule would hold" in checked.out
    assert "besides, not expected" in checked.out

    checked = run("check", shop, "--table", "orders", "--inserts", twice)
    assert checked.code == 1
    assert "1 expected rule would break\n    orders: key(id)  (ids)" in checked.out
    assert "2 rows share it" in checked.out
    form = json.loads(
        run("check", shop, "--table", "orders", "--inserts", twice, "--format", "json").out
    )
    assert form["breaks"]
    (rule,) = form["expectations"]
    assert (rule["rule"], rule["breaks"], rule["violations"]) == ("orders: key(id)", True, 1)
    assert [row["id"] for row in rule["groups"][0]["rows"]] == [2, 2]


def test_rules_of_whole_tables(in_process: None, run: Run, tmp_path: Path) -> None:
    """They gate batches, go through a file, and no quarantine helps where they would break."""
    rows = write(tmp_path, "t", "id,sent\n1,2001-02-03\n2,9999-12-31\n")
    newest = write(tmp_path, "newest", "id,sent\n2,9999-12-31\n")
    shop, quarantine, rules = tmp_path / "p", tmp_path / "q", tmp_path / "rules.yml"
    assert run("profile", rows, "--into", shop, "--kinds", "keys").code == 0
    told = run("expect", shop, "t: rows > 1", "t: newest(sent) within 48 hours")
    assert told.out == (
        "expected, and holds: t: rows >= 2\nexpected, and holds: t: newest(sent) within 2 days\n"
    )
    assert run("expectations", shop, "--output", rules).code == 0
    assert run("expect", shop, "--from", rules).code == 0
    batch = (shop, "--table", "t", "--deletes", newest)
    checked = run("check", *batch)
    assert checked.code == 1
    assert "    t: rows >= 2\n      1 row, 1 too few\n" in checked.out
    assert "the newest sent is 2001-02-03, more than 2 days before 20" in checked.out.replace(
        "\n      ", " "
    )
    for how in (["--strict"], ["--quarantine", quarantine]):
        refused = run("apply", *batch, *how)
        assert refused.code == 1
        assert "Nothing was applied" in refused.out
        assert "t: rows >= 2: no row breaks this by itself" in refused.out
        assert not quarantine.exists() or not [*quarantine.iterdir()]
    form = json.loads(run("apply", *batch, "--format", "json").out)
    few, old = form["expectations"]
    assert few["found"] == {"rows": 1, "newest": None, "moment": None, "wrong": 1}
    assert (old["found"]["newest"], old["found"]["wrong"]) == ("2001-02-03", 1)
    told = run("explain", shop, "t: newest(sent) within 2 days")
    assert "before that it held in version 1 to 2" in told.out
    masked = run("explain", shop, "t: newest(sent) within 2 days", "--mask").out
    assert "the newest sent is value 1" in masked
    assert "2001" not in masked
    left = run("export", shop, "--to", "sql", "--all").out
    assert "rows >= 2" not in left  # it does not hold


def test_what_is_expected_is_not_told_twice(in_process: None, run: Run, tmp_path: Path) -> None:
    """A broken rule that is expected is none of those that broke besides."""
    rows = write(tmp_path, "t", "id,day\n1,1\n2,2\n3,3\n")
    batch = write(tmp_path, "batch", "id,day\n3,5\n4,3\n")
    bad = write(tmp_path, "bad", "id,day\n3,4\n")
    shop = tmp_path / "p"
    assert run("profile", rows, "--into", shop, "--kinds", "keys").code == 0
    assert run("expect", shop, "t: key(id)").code == 0
    checked = run("check", shop, "--table", "t", "--inserts", bad)
    assert checked.code == 1
    assert "besides" not in checked.out
    checked = run("check", shop, "--table", "t", "--inserts", batch)
    assert "    keys: 1 would break, 1 would be gained\n" in checked.out  # day; id, day


def test_the_offender_is_shown_first_and_marked_as_new(
    in_process: None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one row for each value on the right; the columns in which they differ come next."""
    columns = "id,region,day,clerk,priority,comment,shipped,status"
    same = "a rather long region,2026-01-01,the same clerk,low,no comment"
    old = [f"{n},{same},1,O" for n in range(29)]
    new = f"100,{same},2,F"
    rows = write(tmp_path, "t", "\n".join([columns, *old, ""]))
    batch = write(tmp_path, "batch", f"{columns}\n{new}\n")
    shop = tmp_path / "p"
    assert run("profile", rows, "--into", shop, "--kinds", "keys").code == 0
    assert run("expect", shop, "t: day -> status").code == 0
    monkeypatch.setenv("COLUMNS", "66")
    checked = run("check", shop, "--table", "t", "--inserts", batch)
    assert checked.code == 1
    lines = checked.out.splitlines()
    at = lines.index("      30 rows agree on the left")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["day", "status", "id", "shipped", "region"],
        ["new", "2026-01-01", "F", "100", "2", "a", "rather", "long", "region"],
        ["2026-01-01", "O", "0", "1", "a", "rather", "long", "region"],
    ]
    assert lines[at + 4 : at + 6] == ["      … and 3 more columns", "      … and 28 more rows"]
    form = json.loads(
        run("check", shop, "--table", "t", "--inserts", batch, "--format", "json").out
    )
    [group] = form["expectations"][0]["groups"]
    assert (group["number"], group["new"]) == (30, [True, False])
    assert [(row["id"], row["status"]) for row in group["rows"]] == [(100, "F"), (0, "O")]


def test_strict_applies_nothing_and_a_warning_exits_with_0(
    shop: Path, run: Run, twice: Path
) -> None:
    run("expect", shop, "orders: key(id)")
    batch = ("--table", "orders", "--inserts", twice)
    strict = run("apply", shop, *batch, "--strict")
    assert strict.code == 1
    assert "Nothing was applied" in strict.out
    assert "2 rules" not in run("history", shop).out
    run("expect", shop, "orders: key(id)", "--severity", "warn")
    strict = run("apply", shop, *batch, "--strict")
    assert strict.code == 0
    assert "1 expected rule broken, only a warning" in strict.out
    listed = run("expectations", shop)
    assert listed.out == "orders: key(id)\n  does not hold (1 pair of rows), only a warning\n"
    assert "1 rule expected" in run("history", shop).out


def test_apply_that_breaks_an_expected_rule_says_so(shop: Path, run: Run, twice: Path) -> None:
    run("expect", shop, "orders: key(id)")
    batch = ("--table", "orders", "--inserts", twice, "--batch-id", "b")
    told = run("apply", shop, *batch)
    assert told.code == 1
    assert "1 expected rule broken" in told.out
    again = run("apply", shop, *batch)  # it was applied, and a retry has nothing to do
    assert again.code == 0


def test_strict_without_expectations_is_about_what_held(shop: Path, run: Run, twice: Path) -> None:
    strict = run("apply", shop, "--table", "orders", "--inserts", twice, "--strict")
    assert strict.code == 1
    assert json.loads(run("history", shop, "--format", "json").out)["versions"][-1]["version"] == 1


def test_a_rule_that_does_not_hold_is_told_with_its_rows(shop: Path, run: Run) -> None:
    told = run("expect", shop, "orders: key(`first name`)")
    assert told.code == 0
    assert "expected, and does not hold:" in told.out
    assert "3 rows share it" in told.out
    assert told.out.count("Ann") == 3


def test_a_quarantine_leaves_the_rest(shop: Path, run: Run, tmp_path: Path, twice: Path) -> None:
    batch = ("--table", "orders", "--inserts", twice)
    none = run("apply", shop, *batch, "--quarantine", tmp_path / "q")
    assert (none.code, "none is expected" in none.err) == (2, True)
    run("expect", shop, "orders: key(id)")
    told = run("apply", shop, *batch, "--quarantine", tmp_path / "q")
    assert told.code == 0
    assert "orders, version 3: 1 inserted, 1 quarantined; 5 rows now" in told.out
    assert "1 by orders: key(id)" in told.out
    (file,) = (tmp_path / "q").iterdir()
    assert file.name in told.out
    assert "quarantined" in run("history", shop).out
    away = run("apply", shop, *batch, "--quarantine", "s3://bucket/q")
    assert (away.code, "quarantined rows are written to a folder" in away.err) == (2, True)


def test_forget(shop: Path, run: Run) -> None:
    run("expect", shop, "orders: key(id)", "--name", "ids")
    run("expect", shop, "orders: note not null", "--max-error", "0.5")
    assert "holds (2 rows of 4; 50% may be)" in run("expectations", shop).out
    assert run("forget", shop, "ids").out == "orders: key(id): not expected any more\n"
    assert run("forget", shop, "orders: note  not null").code == 0
    gone = run("forget", shop, "ids")
    assert (gone.code, gone.err) == (
        2, "error: the profile expects no rule 'ids'; expected are: none\n"
    )  # fmt: skip
    assert "no rule is expected" in run("expectations", shop).out
    assert json.loads(run("expectations", shop, "--format", "json").out) == {"expectations": []}


def test_a_bound_in_rows(shop: Path, run: Run, tmp_path: Path, twice: Path) -> None:
    """One row may be too many; of two, a load is stopped."""
    once = write(tmp_path, "once", TWICE.replace("\n5,", "\n6,"))  # 2 is there twice then
    told = run("expect", shop, "orders: key(id)", "--max-rows", "1", "--max-error", "0.1")
    assert (told.code, "give one of them" in told.err) == (2, True)
    assert run("expect", shop, "orders: key(id)", "--max-rows", "1").code == 0
    batch = ("--table", "orders", "--inserts", once)
    assert run("check", shop, *batch).code == 0
    assert run("apply", shop, *batch, "--strict").code == 0
    listed = run("expectations", shop)
    assert listed.out == "orders: key(id)\n  holds (1 row breaks it, at most 1 may)\n"
    batch = ("--table", "orders", "--inserts", twice)
    strict = run("apply", shop, *batch, "--strict")
    assert strict.code == 1
    assert "orders: key(id)\n      2 rows break it, at most 1 may\n" in strict.out
    form = json.loads(run("check", shop, *batch, "--format", "json").out)
    [rule] = form["expectations"]
    assert (rule["max_rows"], rule["removal"], rule["holds"], rule["breaks"]) == (1, 2, False, True)
    assert (rule["before"]["removal"], rule["before"]["holds"]) == (1, True)
    order = "orders: not (t.id < s.id and t.customer > s.customer)"
    refused = run("expect", shop, order, "--max-rows", "1")
    assert (refused.code, "give --max-error in place of --max-rows" in refused.err) == (2, True)


SUGGESTED = ["orders: key(id)", "orders: id not null"]


AS_FILE = """\
version: 1
rules:
  # its grain: one column, never null, called like an identifier
  - rule: 'orders: key(id)'
    severity: warn
  # in the grain, and never null
  - rule: 'orders: id not null'
    severity: warn
"""


def versions_of(shop: Path, run: Run) -> int:
    return len(json.loads(run("history", shop, "--format", "json").out)["versions"])


def test_suggestions_are_only_printed_without_a_terminal(
    shop: Path, run: Run, tmp_path: Path
) -> None:
    told = run("expect", shop, "--suggest", "--severity", "warn")
    assert (told.code, told.out) == (0, AS_FILE)
    assert "nothing was declared" in told.err
    form = json.loads(run("expect", shop, "--suggest", "--format", "json").out)["suggestions"]
    assert [each["rule"] for each in form] == SUGGESTED
    assert form[0]["reason"].startswith("its grain: one column, never null")
    assert form[0]["max_rows"] is None
    assert versions_of(shop, run) == 1
    # What is printed is what expect takes, and is not suggested again.
    path = tmp_path / "rules.yml"
    path.write_text(told.out)
    assert run("expect", shop, "--from", path).code == 0
    listed = json.loads(run("expectations", shop, "--format", "json").out)["expectations"]
    assert [(each["rule"], each["severity"]) for each in listed] == [(e, "warn") for e in SUGGESTED]
    again = run("expect", shop, "--suggest")
    assert (again.code, again.out) == (0, "")
    assert "there are no suggestions" in again.err
    assert json.loads(run("expect", shop, "--suggest", "--format", "json").out) == {
        "suggestions": []
    }


def test_all_suggestions_are_taken_with_yes(shop: Path, run: Run) -> None:
    run("expect", shop, "orders: id  not null", "--severity", "warn")
    told = run("expect", shop, "--suggest", "--yes", "--quiet")
    assert (told.code, told.out) == (0, "expected, and holds: orders: key(id)\n")
    form = json.loads(run("expectations", shop, "--format", "json").out)["expectations"]
    assert [(each["rule"], each["severity"]) for each in form] == [
        ("orders: id not null", "warn"), ("orders: key(id)", "error"),
    ]  # fmt: skip
    assert json.loads(
        run("expect", shop, "--suggest", "--yes", "--format", "json").out
    ) == {"expectations": []}  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "declared"),
    [
        ("y\ny\n", SUGGESTED),
        ("n\nyes\n", ["orders: id not null"]),
        ("what\nn\nn\n", []),
        ("all\n", SUGGESTED),
        ("y\nquit\n", ["orders: key(id)"]),
        ("\n\n", []),  # no is what Enter says
        ("y\n", []),  # the terminal went away: nobody said that this is all
    ],
)
def test_suggestions_are_asked_for_one_by_one(
    shop: Path, run: Run, monkeypatch: pytest.MonkeyPatch, answers: str, declared: list[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answers))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told = run("expect", shop, "--suggest", "--severity", "warn")
    assert told.code == 0
    assert "its grain: one column, never null" in told.err
    assert ("y, n, all or quit" in told.err) == answers.startswith("what")
    form = json.loads(run("expectations", shop, "--format", "json").out)["expectations"]
    assert [(each["rule"], each["severity"]) for each in form] == [(e, "warn") for e in declared]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("orders: key(id)", "--suggest"), "--suggest chooses the rules"),
        (("--from", "rules.yml", "--suggest"), "--suggest chooses the rules"),
        (("--suggest", "--name", "ids"), "--suggest chooses the rules"),
        (("orders: key(id)", "--yes"), "--yes accepts what --suggest suggests"),
    ],
)
def test_suggestions_go_alone(shop: Path, run: Run, arguments: tuple[str, ...], why: str) -> None:
    told = run("expect", shop, *arguments)
    assert (told.code, why in told.err) == (2, True)


GOOD = """\
version: 1
rules:
  - rule: "orders: key(id)"
    name: ids
  - {rule: "orders: note not null", severity: warn, max_error: 0.75}
  - {rule: "orders: key(customer)", max_rows: 20}
"""


def test_rules_in_a_file(shop: Path, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(GOOD)
    assert run("expect", shop, "--from", path).code == 0
    form = json.loads(run("expectations", shop, "--format", "json").out)["expectations"]
    settings = ("rule", "name", "severity", "max_error", "max_rows")
    assert [tuple(map(each.get, settings)) for each in form] == [
        ("orders: key(id)", "ids", "error", 0.0, None),
        ("orders: note not null", None, "warn", 0.75, None),
        ("orders: key(customer)", None, "error", 0.0, 20),
    ]
    versions = json.loads(run("history", shop, "--format", "json").out)["versions"]
    assert [each["event"] for each in versions] == ["first profile", "3 rules expected"]
    assert run("expect", shop, "--from", path).code == 0  # the same again is no version
    assert len(json.loads(run("history", shop, "--format", "json").out)["versions"]) == 2
    both = run("expect", shop, "--from", path, "--severity", "warn")
    assert both.code == 2
    assert run("expect", shop, "--from", path, "--max-rows", "0").code == 2
    path.write_text(GOOD.replace("orders: note", "orders: nota"))
    wrong = run("expect", shop, "--from", path)
    assert wrong.code == 2
    there = f"{path}, line 5: rule 2: table 'orders' has no column 'nota'"
    assert f"{there}; did you mean 'note'?" in wrong.err


def test_expectations_are_written_as_expect_takes_them(
    shop: Path, run: Run, tmp_path: Path
) -> None:
    """Whatever is in their names; another profile that expects them writes the same file."""
    path, again = tmp_path / "rules.yml", tmp_path / "again.yml"
    run("expect", shop, "orders: `first name` -> note", "--max-rows", "3", "--name", "a: 'b' # c")
    run("expect", shop, "orders: note not null", "--severity", "warn", "--max-error", "0.75")
    run("expect", shop, "orders: key(id)", "--name", "no\nwarning")
    told = run("expectations", shop, "--output", path)
    assert (told.code, told.out) == (0, f"{path}\n")
    before = json.loads(run("expectations", shop, "--format", "json").out)["expectations"]
    for each in before:
        assert run("forget", shop, each["rule"]).code == 0
    assert run("expect", shop, "--from", path).code == 0
    after = json.loads(run("expectations", shop, "--format", "json").out)["expectations"]
    assert after == before
    assert run("expectations", shop, "-o", again).code == 0
    assert again.read_text() == path.read_text()
    assert run("expectations", shop, "--at", "1", "-o", again, "--format", "json").code == 0
    assert again.read_text() == "version: 1\nrules: []\n"
    assert rules_file.read(again) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "expected a YAML file in UTF-8"),
        (b"a" * (1 << 20) + b"a", "at most 1,048,576 bytes"),
        (b"[" * 100_000, "nested too deeply"),
        (b"- 1", "expected 'version: 1' and 'rules:'"),
        (b"", "expected 'version: 1' and 'rules:'"),
        (b"rules: []", "expected 'version: 1', found nothing"),
        (b"version: true\nrules: []", "expected 'version: 1', found true"),
        (b"version: 2\nrules: []", "expected 'version: 1', found 2"),
        (b"version: 1", "expected a list of rules under 'rules', found nothing"),
        (b"version: 1\nrules: {}", "expected a list of rules under 'rules', found a mapping"),
        (b"version: 1\nrules: []\nowner: me", "unknown key 'owner'"),
        (b"version: 1\nrules: [x]", "rule 1: is 'x'"),
        (b"version: 1\nrules: [{name: x}]", "rule 1: rule is missing"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', level: 1}]", "rule 1: unknown key 'level'"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', max_error: high}]", "max_error is 'high'"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', max_error: true}]", "max_error is true"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', max_error: .nan}]", "from 0 to below 1"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', max_rows: 0.5}]", "max_rows is 0.5"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', max_rows: -1}]", "a number of rows from 0"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', severity: bad}]", "one of error, warn"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', name: 7}]", "name is 7, expected text"),
        (b"version: 1\nrules: [{rule: 'o: key(a)', name: ' '}]", "at least one letter"),
        (b"version: 1\nrules: [{rule: 'o key a'}]", "rule 1: this is not a constraint"),
        (b"version: 1\nversion: 1\nrules: []", "line 2: 'version' is there twice"),
        (b"version: 1\nrules: [&a {rule: 'o: key(a)'}, *a]", "aliases are not taken"),
        (b"version: 1\nrules: !!python/object/apply:os.system [ls]", "could not determine"),
        (b"version: 1\nrules: [", "line 2"),
        (b"version: 1\nrules: []\n\x00", "not a YAML file"),
        (
            b"version: 1\nrules: [{rule: 'o: key(a)', name: x}, {rule: 'o: key(b)', name: x}]",
            "rule 2: the name 'x' is that of another one",
        ),
    ],
)
def test_a_hostile_file_is_an_error_that_names_it(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "rules.yml"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        rules_file.read(path)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)
    with pytest.raises(InputError, match="cannot be read"):
        rules_file.read(tmp_path / "none.yml")
