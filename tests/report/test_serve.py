"""The served report: what is answered, to whom, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from holdfast import Profile
from holdfast.model.errors import InputError
from holdfast.report import forms
from holdfast.report.page import policy
from holdfast.report.serve import Server
from tests.browser import Browser
from tests.cli.conftest import Run
from tests.report.conftest import applied, profiled

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "b"]})


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> Any:
        return json.loads(self.body)


@contextmanager
def running(profile: Profile, host: str = "127.0.0.1", values: bool = True) -> Iterator[Server]:
    server = profile._server(host, 0, None, values)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(
    server: Server, path: str, method: str = "GET", host: str | None = "localhost", **headers: str
) -> Answer:
    """One request; ``host`` is what its Host header says."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.putrequest(method, path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    found = Answer(response.status, dict(response.getheaders()), response.read())
    connection.close()
    return found


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return profiled(tmp_path / "p", {"t": ROWS})


@pytest.mark.slow
def test_what_can_be_asked(shop: Profile) -> None:
    with running(shop) as server:
        page = ask(server, "/")
        assert page.status == 200
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert b'data-mode="live"' in page.body
        assert ask(server, "/api/version").form == {"version": 6}
        document = json.loads(json.dumps(shop.document()))
        assert ask(server, "/api/document").form == document
        now = shop.snapshot()
        shown = json.loads(forms.dumps(forms.show(now, ranking=shop.ranking_of(now))))
        assert ask(server, "/api/show").form == shown
        assert ask(server, "/api/show?limit=1").form["tables"]["orders"]["counts"]["keys"] == 2
        told = json.loads(forms.dumps(forms.history(shop.history())))
        assert ask(server, "/api/history").form == told
        differs = json.loads(forms.dumps(forms.diff(1, 2, shop.diff(1, 2))))
        assert ask(server, "/api/diff?from=1&to=2").form == differs


def test_what_cannot_be_asked(profile: Profile) -> None:
    with running(profile) as server:
        for path in ("/api", "/api/", "/api/x", "/x", "/../p", "/api/version/"):
            assert ask(server, path).status == 404, path
        assert ask(server, "/api/diff?from=1").status == 400
        assert ask(server, "http://[/").status == 400
        answer = ask(server, "/api/diff?from=1&to=99")
        assert answer.status in (400, 503)
        assert "99" in answer.form["error"]
        wrong = ask(server, "/api/show?limit=-1")
        assert (wrong.status, "whole number" in wrong.form["error"]) == (400, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_is_written(profile: Profile, method: str) -> None:
    with running(profile) as server:
        answer = ask(server, "/api/version", method)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
        # What a request brings along is not taken for another one.
        hidden = b"GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
            head = (
                f"{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(hidden)}\r\n\r\n"
            )
            connection.sendall(head.encode() + hidden)
            told = b""
            while piece := connection.recv(1 << 16):
                told += piece
        assert told.count(b"HTTP/1.") == 1


def test_a_head_has_no_body(profile: Profile) -> None:
    with running(profile) as server:
        whole, head = ask(server, "/"), ask(server, "/", "HEAD")
        assert head.status == 200
        assert head.body == b""
        assert head.headers["Content-Length"] == str(len(whole.body))


def test_other_names_of_this_machine_get_nothing(profile: Profile) -> None:
    """A page of another site whose name leads to 127.0.0.1 (DNS rebinding)."""
    with running(profile) as server:
        for name in (
            "localhost",
            "localhost:9",
            "127.0.0.1",
            "127.0.0.1:80",
            "[::1]:80",
            "127.1.2.3",
        ):
            assert ask(server, "/api/version", host=name).status == 200, name
        for other in (
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "10.0.0.1",
            "",
            "[",
            None,
        ):
            answer = ask(server, "/", host=other)
            assert answer.status in (400, 421), other
            assert b"<html" not in answer.body


def test_headers_keep_it_to_itself(profile: Profile) -> None:
    with running(profile) as server:
        for path in ("/", "/api/version", "/none"):
            headers = ask(server, path).headers
            told = f"{policy(live=True)}; frame-ancestors 'none'"
            assert headers["Content-Security-Policy"] == told
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Access-Control-Allow-Origin" not in headers
            assert "Python" not in headers["Server"]


def test_elsewhere_it_takes_the_token(profile: Profile) -> None:
    with running(profile, "0.0.0.0") as server:
        token = server.token
        assert token is not None
        assert len(token) >= 32
        assert server.url.endswith(f"/?token={token}")
        for path in ("/", "/api/version", "/api/document", "/none", "/?token=", "/?token=ä"):
            answer = ask(server, path.replace("ä", "%C3%A4"))
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), path
        assert ask(server, "/", Authorization="Bearer wrong").status == 401
        assert ask(server, "/", Cookie="holdfast=wrong").status == 401
        assert ask(server, "/api/version", Authorization=f"Bearer {token}").status == 200
        assert ask(server, f"/api/version?token={token}").status == 200
        # By any name, because no other site has the token.
        given = ask(server, f"/?token={token}", host="box.example")
        assert (given.status, given.headers["Location"]) == (303, "/")
        cookie = given.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert ask(server, "/", Cookie=cookie.partition(";")[0]).status == 200
    with running(profile, "0.0.0.0") as again:
        assert again.token != token


def test_a_token_is_not_logged(profile: Profile, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "holdfast")
    with running(profile, "0.0.0.0") as server:
        ask(server, f"/api/version?x=1&token={server.token}")
        assert "/api/version?x=1&token=…" in caplog.text
        assert str(server.token) not in caplog.text


def test_a_new_version_is_served(profile: Profile) -> None:
    with running(profile) as server:
        before = ask(server, "/").body
        assert ask(server, "/").body == before
        applied(profile, "t", "more", inserts=ROWS.slice(0, 1))
        assert ask(server, "/api/version").form == {"version": 2}
        assert ask(server, "/api/document").form["tables"][0]["rows"] == 4
        assert b"more" in ask(server, "/").body


def test_a_profile_that_went_is_told(profile: Profile, tmp_path: Path) -> None:
    with running(profile) as server:
        (tmp_path / "p").rename(tmp_path / "q")
        answer = ask(server, "/api/document")
        assert answer.status == 503
        assert answer.form["error"]


def test_without_values_there_is_no_way_to_them(profile: Profile) -> None:
    with running(profile, values=False) as server:
        assert ask(server, "/api/document").form["values"] is False
        assert ask(server, "/api/show").status == 404
        assert ask(server, "/api/history").status == 404


def test_a_port_in_use_is_told(profile: Profile) -> None:
    with running(profile) as server:
        port = server.server_address[1]
        with pytest.raises(InputError, match=rf"port {port} of 127\.0\.0\.1 is in use; choose"):
            profile.serve("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_told(profile: Profile) -> None:
    with pytest.raises(InputError, match=r"192\.0\.2\.1:0: cannot listen there"):
        profile.serve("192.0.2.1", 0)
    with pytest.raises(InputError, match="from 0 to 65535, not 70000"):
        profile.serve("127.0.0.1", 70000)


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_with_an_interrupt(profile: Profile, end: signal.Signals) -> None:
    command = [sys.executable, "-m", "holdfast", "serve", profile.path, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = process.stdout.readline()
        assert "http://127.0.0.1:" in told
        assert told.endswith("(Ctrl-C stops)\n")
        process.send_signal(end)
        assert process.wait(120) == 0
        assert process.stderr.read() == ""


def test_the_command_tells_of_a_port_in_use(profile: Profile, run: Run) -> None:
    with running(profile) as server:
        result = run("serve", profile.path, "--port", server.server_address[1])
    assert result.code == 2
    assert result.err.startswith(f"error: port {server.server_address[1]} of 127.0.0.1 is in use")


@pytest.mark.slow
def test_the_page_follows_the_profile(chromium: Browser, profile: Profile) -> None:
    with running(profile) as server:
        chromium.open(f"{server.url}#/table/t")
        assert chromium.texts("#status") == ["live"]
        assert chromium.texts(".facts b")[0] == "3"
        applied(profile, "t", "more", inserts=pa.table({"id": [9], "name": ["z"]}))
        chromium.wait("document.querySelector('.facts b').textContent === '4'")
        assert chromium.texts("h1") == ["t"]
        assert chromium.problems == []
    chromium.wait("document.getElementById('status').textContent === 'no answer'")
