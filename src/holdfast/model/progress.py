"""Progress: what a run reports of its stages while it works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Progress = Callable[..., None]
"""Called for every stage, with facts about it."""


def no_progress(_stage: str, **_facts: Any) -> None:
    """For callers that do not want to know."""
