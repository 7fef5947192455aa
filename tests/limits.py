"""Other thresholds than those in force, for a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.model import thresholds


def varied(patch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Change some thresholds from here on; those that are not named stay as they are."""
    patch.setattr(thresholds, "current", replace(thresholds.current, **changed))
