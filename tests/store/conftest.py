from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A profile without a version."""
    return Store.create(tmp_path / "profile")
