"""What tests of evidence share with those of the whole flow."""

from __future__ import annotations

from tests.flow.conftest import brought_together, searched

__all__ = ["brought_together", "searched"]
