"""Profiles without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Profile
from tests.spark.conftest import KEYS


@pytest.fixture
def profile(tmp_path: Path) -> Callable[..., Profile]:
    """Makes a profile of the keys of one table ``t``, in a new folder each time."""
    made = iter(range(100))

    def make(rows: Any) -> Profile:
        path = tmp_path / f"profile-{next(made)}"
        return Profile.create(path, {"t": rows}, options=KEYS, engine="process")

    return make
