"""Other thresholds than those in force, for a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.model import thresholds
from holdfast.model.thresholds import Costs

LOOKED_UP: dict[str, Any] = {
    "all_pairs": -1,
    "lookup_table_rows": 0,
    "index_rows": 0,
    "costs": Costs(lookup_seconds=0.0, fetched_seconds_a_pair=0.0, pairs_a_second=1.0),
}
"""Every table gets indexes for look-ups, and nothing costs as much as comparing all rows."""


def varied(patch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Change some thresholds from here on; those that are not named stay as they are."""
    patch.setattr(thresholds, "current", replace(thresholds.current, **changed))
