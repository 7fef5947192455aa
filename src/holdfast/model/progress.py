"""Progress: what a run tells of its stages while it works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Progress = Callable[..., None]
"""Told of every stage, with facts about it."""


def no_progress(_stage: str, **_facts: Any) -> None:
    """For callers that do not want to know."""
