"""Which engine runs the tasks: Spark, or this process."""

from __future__ import annotations

import os

from holdfast.model.errors import InputError

SPARK, PROCESS = "spark", "process"

VARIABLE = "HOLDFAST_ENGINE"
"""The variable that says which engine is used where nothing else does."""

WITHOUT_SPARK = "or leave Spark out with --engine process, which reads files on this machine itself"
"""What to do where Spark cannot be started."""


def chosen(given: str | None = None) -> str:
    """The engine that is given, or set by the environment; otherwise Spark."""
    name = given if given is not None else os.environ.get(VARIABLE) or SPARK
    if name not in (SPARK, PROCESS):
        where = "engine" if given is not None else VARIABLE
        raise InputError(f"{where} must be {SPARK} or {PROCESS}, not {name!r}")
    return name
