"""The report page from a small web server: read-only, and for this machine unless told otherwise.

Who may read: everybody on this machine where it listens on loopback, and then only pages that were
asked for by a name of this machine (so that a page of another site, whose name was made to lead
here, gets nothing); anywhere else whoever has the token. There is nothing to write: requests are
GET and HEAD. ``docs/serve.md`` describes what can be asked.
"""

from __future__ import annotations

import errno
import hmac
import ipaddress
import logging
import re
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from holdfast.model.errors import HoldfastError, InputError
from holdfast.model.records import JsonObject
from holdfast.report import forms
from holdfast.report.page import page, policy

PORT = 8400
LOOPBACK = "127.0.0.1"

_COOKIE = "holdfast"
_log = logging.getLogger("holdfast")


@dataclass(frozen=True)
class Answers:
    """What is served: each is asked when somebody asks, and again only for another version. What
    would show cells of the data is None where none are to be shown."""

    version: Callable[[], int]
    document: Callable[[], JsonObject]
    diff: Callable[[int, int], JsonObject]
    show: Callable[[int | None], JsonObject] | None = None  # with at most so many of each list
    history: Callable[[], JsonObject] | None = None


class Server(ThreadingHTTPServer):
    """Serves the answers of one profile."""

    daemon_threads = True

    def __init__(self, answers: Answers, host: str = LOOPBACK, port: int = PORT) -> None:
        self.host = host
        self.token = None if is_loopback(host) else secrets.token_urlsafe(24)
        self._answers = answers
        self._cache: dict[str, tuple[int, bytes]] = {}
        self._making = threading.Lock()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise _refused(host, port, error) from error

    @property
    def url(self) -> str:
        """Where to look, with the token if it takes one."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        start = f"http://{name}:{self.server_address[1]}/"
        return start if self.token is None else f"{start}?token={self.token}"

    def run(self, ready: Callable[[str], None] | None = None) -> None:
        """Serve until an interrupt, which is the usual end, also while ``ready`` is told where."""
        try:
            if ready is not None:
                ready(self.url)
            self.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            self.server_close()

    def answer(self, path: str, asked: dict[str, str]) -> tuple[str, bytes]:
        """The type and the content of an answer; a KeyError where there is none."""
        answers = self._answers
        if path == "/":
            return "text/html", self._kept(path, lambda: page(answers.document(), live=True))
        if path == "/api/document":
            return "application/json", self._kept(path, lambda: forms.compact(answers.document()))
        forms_by_path: dict[str, Callable[[], JsonObject]] = {
            "/api/version": lambda: {"version": answers.version()},
            "/api/diff": lambda: answers.diff(*_versions(asked)),
        }
        if answers.show is not None:
            forms_by_path["/api/show"] = partial(_shown, answers.show, asked)
        if answers.history is not None:
            forms_by_path["/api/history"] = answers.history
        return "application/json", forms.dumps(forms_by_path[path](), ascii_only=True).encode()

    def _kept(self, name: str, make: Callable[[], str]) -> bytes:
        """What was built for this version before, or is built now: once, whoever asks meanwhile."""
        with self._making:
            version = self._answers.version()
            if name not in self._cache or self._cache[name][0] != version:
                self._cache[name] = version, make().encode()
            return self._cache[name][1]

    def allows_name(self, named: str | None) -> bool:
        """Whether a request that says so in its Host header is meant for us."""
        if self.token is not None:
            return True  # it takes the token, which no other site has
        if named is None:
            return False
        try:
            name = urlsplit(f"//{named}").hostname or ""
        except ValueError:
            return False
        return name in ("localhost", self.host) or is_loopback(name)

    def allows(self, given: list[str]) -> bool:
        """Whether one of these is the token, or none is needed. It takes as long for a wrong one
        as for the right one."""
        if self.token is None:
            return True
        matches = [hmac.compare_digest(each.encode(), self.token.encode()) for each in given]
        return any(matches)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Somebody who left is no error."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            _log.error("%s: %s: %s", client_address[0], type(error).__name__, error)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 30  # seconds for a request to come; each has a connection of its own
    server_version, sys_version = "Holdfast", ""

    def do_GET(self) -> None:
        try:
            where = urlsplit(self.path)
        except ValueError:
            self._fail(HTTPStatus.BAD_REQUEST, "that is no path")
            return
        asked = {name: values[-1] for name, values in parse_qs(where.query).items()}
        if not self.server.allows_name(self.headers.get("Host")):
            names = "localhost or 127.0.0.1"
            self._fail(HTTPStatus.MISDIRECTED_REQUEST, f"this is served as {names} alone")
        elif not self.server.allows(self._given(asked)):
            self._fail(HTTPStatus.UNAUTHORIZED, "give the token that `holdfast serve` printed")
        elif where.path == "/" and "token" in asked and self.server.token is not None:
            # The token goes from the address, where it is seen and kept, into a cookie.
            cookie = f"{_COOKIE}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            self._send(HTTPStatus.SEE_OTHER, "text/plain", b"", Location="/", Set_Cookie=cookie)
        else:
            self._answer(where.path, asked)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        message = "this is read-only: there is GET and HEAD"
        self._fail(HTTPStatus.METHOD_NOT_ALLOWED, message, Allow="GET, HEAD")

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = do_POST

    def _answer(self, path: str, asked: dict[str, str]) -> None:
        try:
            kind, content = self.server.answer(path, asked)
        except KeyError:
            self._fail(HTTPStatus.NOT_FOUND, "there is no such page; docs/serve.md lists them")
        except InputError as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))
        except HoldfastError as error:
            self._fail(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        else:
            self._send(HTTPStatus.OK, kind, content)

    def _given(self, asked: dict[str, str]) -> list[str]:
        """The tokens that come with a request."""
        scheme, _, bearer = self.headers.get("Authorization", "").partition(" ")
        given = [bearer.strip()] if scheme.lower() == "bearer" else []
        given += [asked["token"]] if "token" in asked else []
        try:
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return given
        return given + ([cookies[_COOKIE].value] if _COOKIE in cookies else [])

    def _fail(self, status: HTTPStatus, error: str, **headers: str) -> None:
        if status == HTTPStatus.UNAUTHORIZED:
            headers["WWW_Authenticate"] = "Bearer"
        self._send(status, "application/json", forms.compact({"error": error}).encode(), **headers)

    def _send(self, status: HTTPStatus, kind: str, content: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", f"{policy(live=True)}; frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  as the base has it
        """Requests are logged with --verbose alone, and never with their token."""
        message = re.sub(r"token=[^& ]*", "token=…", format % arguments)
        _log.info("%s %s", self.address_string(), message)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(host: str, port: int, error: OSError | OverflowError) -> InputError:
    if isinstance(error, OverflowError):
        return InputError(f"--port must be from 0 to 65535, not {port}")
    if error.errno == errno.EADDRINUSE:
        return InputError(
            f"port {port} of {host} is in use; choose another one with --port, or 0 for any"
        )
    if error.errno == errno.EACCES:
        return InputError(f"port {port} needs rights that we do not have; choose one above 1023")
    return InputError(
        f"{host}:{port}: cannot listen there: {error.strerror}; "
        "give --host an address or a name of this machine"
    )


def _number(asked: dict[str, str], name: str) -> int | None:
    if name not in asked:
        return None
    if not asked[name].isdecimal():
        raise InputError(f"{name} must be a whole number, 0 or more, not {asked[name]!r}")
    return int(asked[name])


def _shown(show: Callable[[int | None], JsonObject], asked: dict[str, str]) -> JsonObject:
    return show(_number(asked, "limit"))


def _versions(asked: dict[str, str]) -> tuple[int, int]:
    one, two = _number(asked, "from"), _number(asked, "to")
    if one is None or two is None:
        raise InputError("give the two versions, as in /api/diff?from=1&to=2")
    return one, two
