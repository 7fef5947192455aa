"""Where tests write."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_SHARED = Path("/dev/shm")
_ENOUGH = 2 << 30  # bytes: a container may have hardly any


def memory() -> Path | None:
    """A folder in memory: what tests write is needed by nobody tomorrow, and flushing it to a disk
    is a third of what many tests take. None where there is no such place, or not enough of it."""
    if not os.access(_SHARED, os.W_OK) or shutil.disk_usage(_SHARED).free < _ENOUGH:
        return None
    return _SHARED
