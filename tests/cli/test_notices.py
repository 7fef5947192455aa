"""A batch as a test report, and as JSON at an address."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from holdfast.cli import notices
from tests.cli.conftest import Run, write

TWICE = "id,customer,day,first name,note\n2,9,2026-01-05,Eve,\n5,9,2026-01-06,Eve,\n"
FINE = "id,customer,day,first name,note\n7,17,2026-03-05,Zoe,\n"


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    return write(tmp_path, "twice", TWICE)


Cases = dict[str, tuple[str, str, str]]
"""By the name of a test case its outcome, the message, and what it told."""


def cases(path: Path) -> Cases:
    """The test cases of a report of one table, whose numbers are right."""
    [suite] = ElementTree.parse(path).getroot()
    found: Cases = {}
    for case in suite:
        assert (case.tag, case.get("classname")) == ("testcase", suite.get("name"))
        outcomes = [(each.tag, each.get("message") or "", each.text or "") for each in case]
        [found[case.get("name") or ""]] = outcomes or [("passed", "", "")]
    outcomes_ = [outcome for outcome, _, _ in found.values()]
    assert suite.get("tests") == str(len(found))
    assert suite.get("failures") == str(outcomes_.count("failure"))
    assert suite.get("skipped") == str(outcomes_.count("skipped"))
    return found


def test_a_report_has_a_case_for_each_expectation(
    shop: Path, run: Run, tmp_path: Path, twice: Path
) -> None:
    run("expect", shop, "orders: key(id)", "--name", "one row per order")
    run("expect", shop, "orders: key(customer, day)")
    run("expect", shop, "orders: key(`first name`)")  # which does not hold
    run("expect", shop, "orders: customer -> day", "--severity", "warn")
    report = tmp_path / "report.xml"
    checked = run("check", shop, "--table", "orders", "--inserts", twice, "--junit", report)
    assert checked.code == 1
    found = cases(report)
    outcome, message, text = found["one row per order"]
    assert (outcome, message) == ("failure", "1 pair of rows")
    assert "orders: key(id)  (one row per order)" in text
    assert "2026-01-05" in text
    assert found["orders: key(customer, day)"][0] == "passed"
    outcome, message, _ = found["orders: customer -> day"]
    assert (outcome, "of rows" in message) == ("skipped", True)
    # The batch makes it worse, which is a failure like that of a rule that held.
    assert found["orders: key(`first name`)"][0] == "failure"
    # What breaks besides is told, and does not count.
    assert found["functional dependencies"][0] == "skipped"
    fine = write(tmp_path, "fine", FINE)
    assert run("check", shop, "--table", "orders", "--inserts", fine, "--junit", report).code == 0
    found = cases(report)
    assert "failure" not in {outcome for outcome, _, _ in found.values()}
    outcome, message, _ = found["orders: key(`first name`)"]
    assert (outcome, "it did not hold before" in message) == ("skipped", True)


def test_a_report_without_expectations_has_a_case_for_each_kind(
    shop: Path, run: Run, tmp_path: Path, twice: Path
) -> None:
    report = tmp_path / "report.xml"
    batch = ("--table", "orders", "--inserts", twice, "--junit", report)
    assert run("check", shop, *batch).code == 1
    found = cases(report)
    outcome, message, text = found["keys"]
    assert (outcome, "would break" in message, "id" in text) == ("failure", True, True)
    assert run("check", shop, *batch, "--kinds", "inds").code == 0
    assert {outcome for outcome, _, _ in cases(report).values()} <= {"passed", "skipped"}
    assert run("apply", shop, *batch, "--strict").code == 1
    assert cases(report)["keys"][0] == "failure"
    # Without --strict nothing counts.
    assert run("apply", shop, *batch, "--batch-id", "b").code == 0
    assert cases(report)["keys"][0] == "skipped"
    assert run("apply", shop, *batch, "--batch-id", "b").code == 0
    assert cases(report) == {"batch b": ("skipped", "was applied before, as version 2", "")}


def test_a_report_that_cannot_be_written_is_refused_before(
    shop: Path, run: Run, tmp_path: Path, twice: Path
) -> None:
    for path in (tmp_path / "none" / "report.xml", tmp_path):
        told = run("apply", shop, "--table", "orders", "--inserts", twice, "--junit", path)
        assert (told.code, "a report cannot be written there" in told.err) == (2, True)
    assert len(json.loads(run("history", shop, "--format", "json").out)["versions"]) == 1


def test_names_that_xml_cannot_have(in_process: None, run: Run, tmp_path: Path) -> None:
    rows = write(tmp_path, "t", 'id,"a\x01<&>"\n1,1\n2,2\n')
    assert run("profile", rows, "--into", tmp_path / "p", "--kinds", "keys").code == 0
    assert run("expect", tmp_path / "p", "t: key(`a\x01<&>`)").code == 0
    report = tmp_path / "r.xml"
    new = write(tmp_path, "new", 'id,"a\x01<&>"\n3,1\n')
    args = ("--table", "t", "--inserts", new, "--junit", report)
    assert run("check", tmp_path / "p", *args).code == 1
    assert cases(report)["t: key(`a\\x01<&>`)"][0] == "failure"


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted, and answers as it is told to."""

    posted: list[tuple[str, str, Any]]
    status: int
    wait: threading.Event

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posted.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.wait.wait(20)
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hook() -> Iterator[tuple[type[Hook], str]]:
    """A server, and its address."""
    kind: Any = type("Own", (Hook,), {"posted": [], "status": 200, "wait": threading.Event()})
    kind.wait.set()
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield kind, f"http://127.0.0.1:{server.server_port}/secret"
        kind.wait.set()
        server.shutdown()


def test_a_webhook_is_told(
    shop: Path, run: Run, tmp_path: Path, twice: Path, hook: tuple[type[Hook], str]
) -> None:
    server, url = hook
    run("expect", shop, "orders: key(id)")
    batch = ("--table", "orders", "--inserts", twice, "--webhook", url)
    checked = run("check", shop, *batch, "--format", "json")
    assert (checked.code, checked.err) == (1, "")
    assert run("apply", shop, *batch, "--strict").code == 1
    fine = write(tmp_path, "fine", FINE)
    assert run("apply", shop, "--table", "orders", "--inserts", fine, "--webhook", url).code == 0
    (path, kind, first), (_, _, refused), (_, _, last) = server.posted
    assert (path, kind) == ("/secret", "application/json")
    told = {"profile": str(shop), "command": "check", **json.loads(checked.out)}
    assert {**first, "seconds": None} == {**told, "seconds": None}
    assert (refused["command"], refused["refused"]) == ("apply", True)
    assert (last["command"], last["applied"], last["inserted"]) == ("apply", True, 1)


@pytest.mark.parametrize(
    ("status", "why"), [(500, "it answered 500"), (302, "it answered 302"), (404, "404")]
)
def test_a_webhook_that_refuses_is_told_of(
    shop: Path, run: Run, twice: Path, hook: tuple[type[Hook], str], status: int, why: str
) -> None:
    server, url = hook
    server.status = status
    told = run("apply", shop, "--table", "orders", "--inserts", twice, "--webhook", url, "-q")
    assert told.code == 0
    assert "the webhook at 127.0.0.1 was not told of the changes: " in told.err
    assert why in told.err
    assert "secret" not in told.err
    assert len(server.posted) == 1


def test_a_webhook_that_does_not_answer_is_not_waited_for(
    shop: Path, run: Run, twice: Path, hook: tuple[type[Hook], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, url = hook
    server.wait.clear()
    began = time.monotonic()
    assert notices.posted(url, {"a": 1}, 0.2) in ("no answer in 0.2 seconds", "timed out")
    assert time.monotonic() - began < 15
    server.wait.set()
    nobody = "http://127.0.0.1:9/"  # discard, where nobody listens
    told = run("check", shop, "--table", "orders", "--inserts", twice, "--webhook", nobody)
    assert (told.code, "was not told of the changes" in told.err) == (1, True)


@pytest.mark.parametrize("url", ["ftp://a/b", "file:///etc/passwd", "localhost:80", "http://", ""])
def test_what_is_no_address_is_refused(shop: Path, run: Run, twice: Path, url: str) -> None:
    told = run("check", shop, "--table", "orders", "--inserts", twice, "--webhook", url)
    assert (told.code, "--webhook takes an address" in told.err) == (2, True)
