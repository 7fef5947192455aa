"""The command line without a JVM, and a kind of constraint that is registered for a test."""

from __future__ import annotations

from tests.cli.conftest import _any_width, in_process, run, sessions
from tests.kinds.toy import toy

__all__ = ["_any_width", "in_process", "run", "sessions", "toy"]
