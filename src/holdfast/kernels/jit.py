"""The one place that says how kernels are compiled.

Compiled code is cached on disk, because a fresh Python worker would otherwise spend seconds
compiling. Numba raises at import when its cache folder cannot be written, so an unwritable
place falls back to a folder under the system's temporary directory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import config

F = TypeVar("F", bound=Callable[..., Any])


def _writable_cache() -> None:
    """Point Numba at a cache folder that can be written."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    spare = str(Path(tempfile.gettempdir()) / f"holdfast-kernels-{user}")
    if not Path(__file__).exists():
        # Sent to a worker in a zip: from there Numba caches only in the folder that is the user's
        # own, and the user that a worker runs as may have none.
        os.environ.setdefault("XDG_CACHE_HOME", spare)
        return
    if config.CACHE_DIR:
        return
    beside = Path(__file__).with_name("__pycache__")
    try:
        beside.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=beside):
            return
    except OSError:
        config.CACHE_DIR = spare


_writable_cache()


def kernel(function: F) -> F:
    """Compile a kernel: nopython, cached, without the interpreter lock.

    ``HOLDFAST_BOUNDS=1`` compiles with bounds checks (and without the cache), for tests.
    """
    bounds = os.environ.get("HOLDFAST_BOUNDS") == "1"
    compiled: Any = numba.njit(cache=not bounds, nogil=True, boundscheck=bounds)(function)
    return cast("F", compiled)
