"""A real Chromium without a window, driven over its DevTools pipe: no further package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LONG = 120.0
"""Seconds after which something that is waited for will not come; a busy machine is slow."""

KEYS = {
    "ArrowDown": 40,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "End": 35,
    "Enter": 13,
    "Escape": 27,
    "Home": 36,
    "Tab": 9,
}


def executable() -> str | None:
    """Where Chromium is, if it is."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page; ``problems`` has what a page must not do: errors, dialogs,
    blocked or failed requests."""

    def __init__(self, program: str) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._folder = tempfile.TemporaryDirectory(
            prefix="holdfast-browser-", ignore_cleanup_errors=True
        )
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",  # root in a container has no other way
            "--remote-debugging-pipe",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--hide-scrollbars",
            f"--user-data-dir={self._folder.name}",
        ]

        # The pipes have to be numbers 3 and 4 in the browser.
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", program, *flags, "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest = b""
        self._count = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A DevTools command, and its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._count:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                result: dict[str, Any] = told["result"]
                return result

    def open(self, url: str, width: int = 1200, height: int = 900, *, dark: bool = False) -> None:
        """Show a page."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.problems, self.requests = [], []
        self.call("Page.navigate", url=url)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def ask(self, expression: str) -> Any:
        """What a JavaScript expression is."""
        told = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in told:
            raise RuntimeError(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + LONG
        while not self.ask(expression):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.ask(f"{frame}.then(() => true)")

    def texts(self, selector: str) -> list[str]:
        """The texts of the elements of a CSS selector."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        texts: list[str] = self.ask(f"{found}.map(each => each.textContent)")
        return texts

    def click(self, selector: str) -> None:
        """Click the middle of an element, as a mouse does."""
        chosen = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{chosen}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.ask(
            f"(b => [b.x + b.width / 2, b.y + b.height / 2])({chosen}.getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left",
                clickCount=1,
            )  # fmt: skip
        self.settle()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other: named ones, or characters."""
        for key in keys:
            code = KEYS.get(key)
            text = {"Enter": "\r"}.get(key, "" if code else key)
            facts: dict[str, Any] = {"key": key, "code": key if code else ""}
            if code:
                facts |= {"windowsVirtualKeyCode": code}
            if text:
                facts["text"] = text
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **facts)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Save what is seen, or the whole page, as PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise ConnectionError("the browser has ended")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        self._note(told.get("method", ""), told.get("params", {}))
        return told

    def _note(self, method: str, facts: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(facts["exceptionDetails"]))
        elif method == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.problems.append(facts["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "assert"):
            self.problems.append(json.dumps(facts["args"]))
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {facts['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
