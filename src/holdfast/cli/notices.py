"""Where the outcome of a batch is told besides: in a file for continuous integration, and at an
address. Neither changes the exit code."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from holdfast.cli.command import flag
from holdfast.cli.printing import shown_path
from holdfast.model.errors import InputError
from holdfast.model.records import JsonObject

if TYPE_CHECKING:
    from holdfast.model.changes import BatchChanges, Changes

log = logging.getLogger(__name__)

TIMEOUT = 10.0
"""So many seconds a webhook may take."""


@dataclass(frozen=True)
class Notices:
    """Who is told of a batch besides."""

    junit: Annotated[
        str | None, flag("--junit", "Write a test report in JUnit's XML there.", "FILE")
    ] = None
    webhook: Annotated[
        str | None, flag("--webhook", "Post the changes as JSON to this address.", "URL")
    ] = None

    def __post_init__(self) -> None:
        # What cannot be is reported before anything is done.
        if self.junit is not None:
            folder = Path(self.junit).absolute().parent
            if not os.access(folder, os.W_OK) or Path(self.junit).is_dir():
                raise InputError(f"{self.junit}: a report cannot be written there")
        if self.webhook is not None and not _is_address(self.webhook):
            raise InputError(
                f"--webhook takes an address that begins with https:// or http://, "
                f"not {self.webhook!r}"
            )

    def tell(
        self,
        directory: str,
        command: str,
        outcome: Changes | BatchChanges,
        form: Callable[[], JsonObject],
        gating: Collection[str],
    ) -> None:
        """Tell of a batch that a command applied or checked; ``form`` makes its JSON form, and
        ``gating`` are the kinds of constraints that count for the exit code."""
        if self.junit is not None:
            from holdfast.report.junit import junit

            text = junit(outcome, gating, check=command == "check")
            try:
                Path(self.junit).write_text(text, encoding="utf-8")
            except OSError as error:
                log.error("%s: the report was not written: %s", self.junit, error.strerror)
        if self.webhook is not None:
            told = {"profile": shown_path(directory), "command": command, **form()}
            if (why := posted(self.webhook, told)) is not None:
                # Whoever has the whole address can post there, too.
                where = urlsplit(self.webhook).hostname
                log.error("the webhook at %s was not told of the changes: %s", where, why)


def posted(url: str, form: JsonObject, seconds: float = TIMEOUT) -> str | None:
    """Post a JSON object; why it was not delivered in so many seconds, or None."""
    failed: list[str] = []
    thread = threading.Thread(target=_post, args=(url, form, seconds, failed), daemon=True)
    thread.start()
    # A time-out of a connection is that of each step, of which there may be many.
    thread.join(seconds)
    if thread.is_alive():
        return f"no answer in {seconds:g} seconds"
    return failed[0] if failed else None


def _post(url: str, form: JsonObject, seconds: float, failed: list[str]) -> None:
    import http.client
    import urllib.error
    import urllib.request

    from holdfast.report import forms

    body = "".join(forms.chunks(form, ascii_only=True)).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "holdfast"}
    request = urllib.request.Request(url, body, headers, method="POST")

    class Straight(urllib.request.HTTPRedirectHandler):
        """Elsewhere a browser would ask for a page, without what is posted."""

        def redirect_request(self, *_: Any) -> None:
            return None

    try:
        with urllib.request.build_opener(Straight()).open(request, timeout=seconds):
            pass
    except urllib.error.HTTPError as error:
        failed.append(f"it answered {error.code} {error.reason}")
    except urllib.error.URLError as error:
        failed.append(str(error.reason))
    except (OSError, ValueError, http.client.HTTPException) as error:
        failed.append(str(error) or type(error).__name__)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
