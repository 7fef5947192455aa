"""A real S3 server on loopback, and a proxy before it that fails, or answers late, on request."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

USER, SECRET = "somebody-who-tests", "a-secret-of-the-tests"
BUCKET = "profiles"
INSTALLED = Path(__file__).parents[2] / ".venv-store" / "bin" / "minio"

Fault = Literal["refuse", "busy", "forbid", "lose", "hold"]
"""What becomes of a request: nobody takes it; it is answered by 503, or by 403; it takes effect,
but its answer is lost; it takes effect when it is let go, after the client has given up."""


def program() -> Path | None:
    """The server's program, if it is installed."""
    given = os.environ.get("HOLDFAST_S3_SERVER") or shutil.which("minio")
    path = Path(given) if given else INSTALLED
    return path if path.exists() else None


def environment(port: int) -> dict[str, str]:
    """What a client of the server needs to know."""
    return {
        "AWS_ACCESS_KEY_ID": USER,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def serving(program: Path, folder: Path) -> Iterator[int]:
    """Run the server over a folder, with a bucket; its port."""
    (folder / BUCKET).mkdir(parents=True)
    port = _free_port()
    settings = {"MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_BROWSER": "off"}
    command = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder)]
    with (folder.parent / "server.log").open("wb") as log:
        running = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _await(port, running)
            yield port
        finally:
            running.terminate()
            running.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await(port: int, running: subprocess.Popen[bytes]) -> None:
    while True:
        if running.poll() is not None:
            raise RuntimeError(f"the S3 server ended with code {running.returncode}")
        try:
            connection = HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/minio/health/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)


@dataclass
class Rule:
    """The fault of the next requests of a method whose path fits a pattern."""

    method: str
    pattern: str
    fault: Fault
    left: int = 1
    met: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Passes requests on to a server, and counts them and the bytes of objects that were read; some
    meet a fault."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self.requests: list[str] = []
        self.fetched: Counter[str] = Counter()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def fault(self, method: str, pattern: str, fault: Fault, times: int = 1) -> Rule:
        """The next requests of that kind meet a fault."""
        rule = Rule(method, pattern, fault, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """From here on all is well."""
        with self._lock:
            self._rules.clear()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def rule(self, method: str, path: str) -> Rule | None:
        with self._lock:
            self.requests.append(f"{method} {path}")
            for rule in self._rules:
                if rule.left and rule.method == method and re.search(rule.pattern, path):
                    rule.left -= 1
                    rule.met.set()
                    return rule
        return None

    def forward(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection("127.0.0.1", self._target)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if method == "GET":
            with self._lock:
                self.fetched[path.partition("?")[0]] += len(content)
        return response.status, response.getheaders(), content


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"

    def do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = (self.command, self.path, list(self.headers.items()), body)
        rule = self.proxy.rule(self.command, self.path)
        fault = rule.fault if rule else None
        if fault in ("busy", "forbid"):
            self.send_response(503 if fault == "busy" else 403)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if rule and fault == "hold":
            rule.let_go.wait()
        if fault != "refuse":
            status, headers, content = self.proxy.forward(*request)
        if rule:
            rule.done.set()
        if fault:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(status)
        length = str(len(content))
        for name, value in headers:
            if name.lower() == "content-length":
                length = value  # of HEAD, what GET would bring
            elif name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = do

    def log_message(self, *_: object) -> None:
        """The tests look at the requests themselves."""
