"""When something is wrong: one line, the right exit code, and nothing changed."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.api import Profile
from holdfast.input.sources import Source
from holdfast.model.errors import SetupError
from holdfast.store import Store
from holdfast.store.disk import Disk
from tests.cli.conftest import ORDERS, Run, write


def one_line(message: str) -> str:
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert "Traceback" not in message
    return message


def test_not_a_profile(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        result = run("show", path)
        assert (result.code, result.out) == (2, "")
        assert str(path) in one_line(result.err)


def test_unknown_table(run: Run, shop: Path) -> None:
    result = run("show", shop, "--table", "order")
    assert result.code == 2
    assert "'order'" in one_line(result.err)
    assert "orders" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a/x.csv", "b/x.csv"], "two tables are called 'x'"),
        (["=x.csv"], "NAME=PATH"),
        (["x.csv", "--nulls", "maybe"], "'maybe'"),
        (["x.csv", "--kinds", "keys,dreams"], "'dreams'"),
        (["x.csv", "--max-columns", "0"], "at least 1"),
        (["x.csv", "--option", "novalue"], "--option 'novalue'"),
        (["x.csv", "--conf", "=1"], "--conf '=1'"),
        (["x.csv", "y.csv", "--schema", "id int"], "say which one"),
        (["x.csv", "--schema", "id int", "--schema", "x=id int"], "twice"),
        (["x.csv", "--format", "csv", "--format", "orc"], "csv and orc"),
        (["x.csv", "--format", "csv", "--input-format", "json"], "csv and json"),
        (["x.csv", "--format", "text", "--format", "json"], "text and json"),
    ],
)
def test_bad_arguments_of_profile(
    run: Run, sessions: list[Any], tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = run("profile", *arguments, "--into", tmp_path / "p")
    assert result.code == 2
    assert said in one_line(result.err)
    assert not sessions
    assert not (tmp_path / "p").exists()


def test_a_directory_that_is_taken_is_told_before_spark_starts(
    run: Run, shop: Path, sessions: list[Any], tmp_path: Path
) -> None:
    sessions.clear()
    for path in (shop, tmp_path):
        result = run("profile", tmp_path / "orders.csv", "--into", path)
        assert result.code == 2
        one_line(result.err)
    assert run("apply", tmp_path, "--table", "t", "--inserts", "x.csv").code == 2
    assert not sessions


def wrong_profiles(folder: Path) -> list[tuple[list[Any], str]]:
    """Arguments of profile beside --into, and what is wrong with them."""
    (folder / "nothing").touch()
    return [
        (["missing.csv"], "missing.csv: no such file or folder"),
        (["orders.csv", "b=missing/"], "missing/: cannot tell the format"),
        (["orders.csv", "b=missing/", "--input-format", "orc"], "missing/: no such file or folder"),
        (["x=none-*.csv"], "none-*.csv: no file or folder matches"),
        (["nothing"], "nothing: cannot tell the format"),
        (["orders.csv", "--max-error", "7"], "max_error"),
    ]


def test_what_is_wrong_with_a_profile_is_told_before_spark_starts(
    run: Run, sessions: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "orders", ORDERS)
    cases = wrong_profiles(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for arguments, said in cases:
        result = run("profile", *arguments, "--into", "new/p")
        assert (result.code, result.out) == (2, "")
        assert said in one_line(result.err)
    result = run("profile", "orders.csv", "--into", "orders.csv/p")
    assert result.code == 2
    assert "orders.csv" in one_line(result.err)
    assert "cannot be written" in result.err
    assert not sessions
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told_before_spark_starts(
    run: Run, sessions: list[Any], tmp_path: Path
) -> None:
    rows = write(tmp_path, "orders", ORDERS)
    (tmp_path / "closed").mkdir(mode=0o500)
    result = run("profile", rows, "--into", tmp_path / "closed" / "p")
    assert result.code == 2
    assert "cannot be written" in one_line(result.err)
    assert not sessions


@pytest.mark.parametrize("command", ["apply", "check"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--table", "order", "--inserts", "orders.csv"], "did you mean 'orders'?"),
        (["--table", "orders", "--inserts", "missing.csv"], "missing.csv: no such file"),
        (["--table", "orders", "--updates", "orders.csv"], "updates need --row-key"),
        (
            ["--table", "orders", "--updates", "orders.csv", "--row-key", "number"],
            "has no column 'number'",
        ),
        (
            ["--table", "orders", "--inserts", "orders.csv", "--row-key", "id"],
            "leave --row-key out",
        ),
        (["--table", "orders", "--inserts", "orders.csv", "--batch-id", ""], "batch id is empty"),
        (["--table", "orders", "--inserts", "orders.csv", "--batch-id", " "], "batch id is empty"),
    ],
)
def test_what_is_wrong_with_a_batch_is_told_before_spark_starts(
    run: Run,
    shop: Path,
    sessions: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    arguments: list[str],
    said: str,
) -> None:
    def read(*_: Any) -> None:
        pytest.fail("nothing is to be read")

    sessions.clear()
    monkeypatch.chdir(shop.parent)
    monkeypatch.setattr("holdfast.api.Profile._row_input", read)
    monkeypatch.setattr("holdfast.api.Profile._running", read)
    result = run(command, "shop", *arguments)
    assert (result.code, result.out) == (2, "")
    assert said in one_line(result.err)
    assert not sessions
    assert Store.open(shop).head() == 1


@pytest.mark.parametrize("existing", [False, True])
def test_a_first_profile_that_fails_leaves_nothing(
    run: Run, in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    rows = write(tmp_path, "orders", ORDERS)
    into = tmp_path / "a" / "b"
    if existing:
        into.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))

    def fail(*_: Any, **__: Any) -> None:
        assert (into / "holdfast.json").exists()
        raise SetupError("Spark needs Java 17")

    for where in ("holdfast.api.Profile._running", "holdfast.store.directory.Store.publish"):
        with monkeypatch.context() as patch:
            patch.setattr(where, fail)
            result = run("profile", rows, "--into", into)
        assert (result.code, result.err) == (2, "error: Spark needs Java 17\n")
        assert sorted(tmp_path.rglob("*")) == before
    assert run("profile", rows, "--into", into).code == 0


def test_a_batch_needs_a_change(run: Run, shop: Path) -> None:
    result = run("apply", shop, "--table", "orders")
    assert result.code == 2
    assert "--inserts" in one_line(result.err)


def test_a_delete_that_matches_nothing(run: Run, shop: Path, tmp_path: Path) -> None:
    gone = write(tmp_path, "gone", ORDERS.splitlines()[0] + "\n99,1,2026-01-01,Ann,\n")
    result = run("apply", shop, "--table", "orders", "--deletes", gone)
    assert result.code == 2
    one_line(result.err)
    assert Store.open(shop).head() == 1


@pytest.mark.parametrize(
    "arguments", [["show"], ["diff", "x", "one", "2"], ["fly"], ["show", "-x"]]
)
def test_usage_errors(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err


def test_a_format_that_cannot_be_printed(run: Run, shop: Path) -> None:
    assert run("show", shop, "--format", "csv").code == 2


def test_setup_errors(run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise SetupError("Spark needs Java 17\nor newer \x1b[2J")

    monkeypatch.setattr(sys.modules["holdfast.spark.session"], "open_session", fail)
    result = run("verify", shop)
    assert result.code == 2
    assert result.err == "error: Spark needs Java 17 or newer \\x1b[2J\n"


def test_unexpected_errors_leave_a_log(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_: Any) -> None:
        raise TypeError("a bug\nof ours")

    monkeypatch.setattr("holdfast.api.Profile.history", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run("history", shop)
    assert result.code == 70
    assert "unexpected TypeError: a bug (details in" in one_line(result.err)
    (log,) = tmp_path.glob("holdfast-*.log")
    assert "Traceback" in log.read_text()
    assert str(log) in result.err

    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    with pytest.raises(TypeError, match="a bug"):
        run("history", shop)


@pytest.mark.parametrize(("rivals", "retries", "code"), [(1, 0, 75), (2, 1, 75), (2, 2, 0)])
def test_a_lost_race_can_be_tried_again(
    run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    rivals: int, retries: int, code: int,
) -> None:  # fmt: skip
    """Other writers commit just before us, so often."""
    publish = Store.publish
    header = ORDERS.splitlines()[0]
    mine = write(tmp_path, "new", f"{header}\n5,5,2026-01-05,Eve,\n")
    left = [
        write(tmp_path, f"rival-{n}", f"{header}\n{n},1,1,x,\n") for n in range(90, 90 + rivals)
    ]

    def late(store: Store, *arguments: Any) -> int:
        if left:
            rival = left.pop()
            with monkeypatch.context() as patch:
                patch.setattr(Store, "publish", publish)
                Profile.open(shop).apply("orders", inserts=Source(str(rival)))
        return publish(store, *arguments)

    monkeypatch.setattr(Store, "publish", late)
    batch = ("apply", shop, "--table", "orders", "--inserts", mine, "--retries", retries)
    result = run(*batch)
    assert result.code == code
    if code:
        assert "another writer committed version" in one_line(result.err)
    assert Store.open(shop).head() == 1 + rivals + (not code)
    monkeypatch.setattr(Store, "publish", publish)
    assert run("verify", shop).code == 0


def test_retries_are_counted_from_0(run: Run, shop: Path) -> None:
    batch = ("apply", shop, "--table", "orders", "--inserts", shop.parent / "orders.csv")
    result = run(*batch, "--retries", "-1")
    assert result.code == 2
    assert "retries cannot be negative" in one_line(result.err)


def test_interrupted_before_and_after_the_commit(
    run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    batch = write(tmp_path, "new", ORDERS.splitlines()[0] + "\n5,5,2026-01-05,Eve,\n")
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.api.Profile.apply", interrupt)
        result = run("apply", shop, "--table", "orders", "--inserts", batch)
    assert (result.code, result.err) == (130, "interrupted: nothing was committed\n")
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.report.terminal.changes", interrupt)
        result = run("apply", shop, "--table", "orders", "--inserts", batch)
    assert (result.code, result.err) == (130, "interrupted, but version 2 is committed\n")


def test_an_interrupt_that_another_error_hides(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Any) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("the connection is gone")

    monkeypatch.setattr("holdfast.api.Profile.verify", interrupt)
    result = run("verify", shop)
    assert (result.code, result.err) == (130, "interrupted: nothing was committed\n")


def test_notes_follow_quiet_and_verbose(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(_: Any) -> list[Any]:
        logging.getLogger("holdfast").warning("careful")
        logging.getLogger("holdfast.store").info("by the way")
        return []

    monkeypatch.setattr("holdfast.api.Profile.history", told)
    assert run("history", shop).err == "warning: careful\n"
    assert run("history", shop, "--quiet").err == ""
    assert run("history", shop, "--verbose").err == "warning: careful\ninfo: by the way\n"


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(shop: Path) -> None:
    read, written = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "holdfast", "show", shop],
        stdout=written,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(written)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.slow
def test_a_terminal_without_unicode(shop: Path) -> None:
    for form in ("text", "json"):
        result = subprocess.run(
            [sys.executable, "-m", "holdfast", "show", shop, "--format", form],
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, b"")


def test_a_profile_under_a_scheme_is_refused_by_every_command(
    run: Run, sessions: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = write(tmp_path, "orders", ORDERS)
    there = "hdfs://host/shop"
    for arguments in (
        ["profile", rows, "--into", there],
        ["apply", there, "--table", "orders", "--inserts", rows],
        ["check", there, "--table", "orders", "--inserts", rows],
        ["show", there],
        ["history", there],
        ["diff", there, 1, 2],
        ["verify", there],
    ):
        result = run(*arguments)
        assert (result.code, result.out) == (2, "")
        assert f"{there}: a profile is kept on a file system" in one_line(result.err)
    assert not sessions
    assert list(tmp_path.iterdir()) == [rows]


def test_a_file_scheme_is_a_path(run: Run, shop: Path) -> None:
    result = run("show", f"file://{shop}")
    assert result.code == 0
    assert result.out == run("show", f"{shop}/").out


@pytest.mark.parametrize(
    ("option", "given"),
    [(option, given) for option in ("delimiter", "escape") for given in ("", ";;", "é", "\n")],
)
def test_characters_that_are_none(
    run: Run, sessions: list[Any], tmp_path: Path, option: str, given: str
) -> None:
    for command in (
        ("profile", "t.csv", "--into", tmp_path / "p"),
        ("check", tmp_path, "--table", "t", "--inserts", "t.csv"),
    ):
        result = run(*command, f"--{option}", given)
        assert (result.code, sessions) == (2, [])
        assert f"t.csv: the {option} must be one ASCII character" in one_line(result.err)


def test_options_of_sparks_reader_are_refused_for_csv(
    run: Run, sessions: list[Any], tmp_path: Path
) -> None:
    rows = write(tmp_path, "orders", ORDERS)
    result = run("profile", rows, "--into", tmp_path / "p", "--option", "sep=;")
    assert (result.code, sessions) == (2, [])
    assert "CSV takes no Spark option ('sep' was given); use --delimiter" in one_line(result.err)


def test_encodings_that_are_none(run: Run, sessions: list[Any], tmp_path: Path) -> None:
    result = run("profile", "t.csv", "--into", tmp_path / "p", "--encoding", "utf-9")
    assert (result.code, sessions) == (2, [])
    assert result.err.startswith("error: t.csv: unknown encoding 'utf-9'; expected a name such as")


@pytest.mark.parametrize(
    ("command", "kind"),
    [("show", "sets"), ("show", "distinct"), ("check", "words"), ("apply", "index"),
     ("verify", "raw"), ("verify", "values")],
)  # fmt: skip
def test_a_damaged_file(run: Run, shop: Path, tmp_path: Path, command: str, kind: str) -> None:
    for path in (shop / "data").glob(f"{kind}-*"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 32
        path.write_bytes(content)
    more = ["--table", "orders", "--inserts", write(tmp_path, "more", ORDERS)]
    result = run(command, shop, *(more if command in ("check", "apply") else []))
    assert (result.code, result.out) == (2, "")
    assert f"{shop}/data/{kind}-" in one_line(result.err)
    assert "this data file is damaged" in result.err
    assert "holdfast profile SOURCE... --into" in result.err
    assert Store.open(shop).head() == 1


@pytest.mark.parametrize("command", ["show", "history", "diff", "check", "verify"])
def test_a_read_only_profile(
    run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    one_more = ORDERS.splitlines()[0] + "\n5,1,2026-01-01,Cy,\n"
    more = ["--table", "orders", "--inserts", write(tmp_path, "more", one_more)]
    every: dict[str, list[Any]] = {"check": more, "diff": [1, 1]}
    arguments = every.get(command, [])
    expected = run(command, shop, *arguments)
    assert expected.code == 0, expected.err
    before = sorted((path, path.stat().st_mtime_ns) for path in shop.rglob("*"))
    monkeypatch.setattr(Disk, "hold", refuse)
    assert run(command, shop, *arguments)[:2] == expected[:2]
    assert sorted((path, path.stat().st_mtime_ns) for path in shop.rglob("*")) == before


RULE = "orders: kye(id)"
BEFORE = "'key', 'not' or 'newest' before '('"
POINTED = f"""\
this is not a constraint; at character 9, expected {BEFORE}; did you mean key(?
  {RULE}
          ^
"""


@pytest.mark.parametrize(
    "command", [["explain", RULE], ["expect", RULE], ["explain", RULE, "--mask"]]
)
def test_the_caret_points_at_what_is_wrong_in_a_rule(
    run: Run, shop: Path, command: list[str]
) -> None:
    name, *arguments = command
    result = run(name, shop, *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {POINTED}"


def test_a_rule_of_a_file_is_named_by_its_line(run: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(
        f"version: 1\nrules:\n  - rule: 'orders: key(id)'\n  - name: a\n    rule: '{RULE}'\n"
    )
    result = run("expect", shop, "--from", file)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {file}, line 5: rule 2: {POINTED}"


def test_other_messages_stay_one_line(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise SetupError("Spark says\n  at Main.scala\x1b[2J")

    monkeypatch.setattr("holdfast.api.Profile.open", fail)
    assert run("show", shop).err == "error: Spark says   at Main.scala\\x1b[2J\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shwo", "x"], "there is no command 'shwo'; did you mean 'show'? See `holdfast --help`"),
        (["dance"], "there is no command 'dance'; see `holdfast --help`"),
        (["--bad"], "there is no option --bad; see `holdfast --help`"),
        (["show"], "missing argument 'DIR'; see `holdfast show --help`"),
        (["explain", "x"], "missing argument 'RULE'; see `holdfast explain --help`"),
        (["profile"], "missing argument 'SOURCE'; see `holdfast profile --help`"),
        (["profile", "x.csv"], "missing option '--into'; see `holdfast profile --help`"),
        (
            ["show", "x", "--frmat", "json"],
            "there is no option --frmat; did you mean --format? See `holdfast show --help`",
        ),
        (["history", "x", "--speed"], "there is no option --speed; see `holdfast history --help`"),
        (["show", "x", "-z"], "there is no option -z; see `holdfast show --help`"),
        (
            ["show", "x", "--format", "xml"],
            "invalid value for '--format': 'xml' is not one of 'text', 'json'; "
            "see `holdfast show --help`",
        ),
        (
            ["apply", "x", "--retries", "many"],
            "invalid value for '--retries': Input should be a valid integer, unable to parse "
            "string as an integer; see `holdfast apply --help`",
        ),
        (
            ["apply", "x", "--table"],
            "option '--table' requires an argument; see `holdfast apply --help`",
        ),
        (
            ["apply", "x", "--strict=1"],
            "option '--strict' does not take a value; see `holdfast apply --help`",
        ),
        (
            ["show", "x", "keys", "y\nz"],
            "got unexpected extra argument(s) (y\\x0az); see `holdfast show --help`",
        ),
    ],
)
def test_a_usage_error_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {said}\n"


def test_without_arguments_it_shows_the_help(run: Run) -> None:
    result = run()
    assert "Usage: holdfast" in result.out + result.err
    assert "error" not in result.err
