"""The command line: thin commands over :class:`holdfast.api.Profile`, and their arguments."""

from holdfast.cli.commands import app, main

__all__ = ["app", "main"]
