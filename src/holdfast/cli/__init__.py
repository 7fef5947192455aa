"""The command line: thin commands over :class:`~holdfast.api.Profile`, and their options."""

from __future__ import annotations

from typing import Any

from holdfast.cli.session import main

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    """The commands are imported where a process runs them itself, and not to hand them on."""
    if name == "app":
        from holdfast.cli.program import app

        return app
    raise AttributeError(f"module 'holdfast.cli' has no attribute {name!r}")
