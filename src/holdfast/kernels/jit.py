"""The one place that says how kernels are compiled.

Compiled code is cached on disk, because a fresh Python worker would otherwise spend seconds
compiling. Numba raises at import when its cache folder cannot be written, so an unwritable
place falls back to a folder under the system's temporary directory.

Numba does not look at bounds checks when it takes code from a cache, so code with them has a cache
of its own; neither kind is ever taken for the other.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import config, types

F = TypeVar("F", bound=Callable[..., Any])

BOUNDS = os.environ.get("HOLDFAST_BOUNDS") == "1"
"""Whether kernels are compiled with bounds checks, for tests."""


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


def _cache_with_bounds() -> bool:
    """Point Numba at the cache for code with bounds checks; False: there is no place for one.

    It is named after the kernels' sources: Numba looks only at the file that a kernel is in, not
    at those of the kernels that it calls, and a check of old code would be none.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    if not sources:
        return False  # sent to a worker in a zip, where Numba chooses the folder
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    above = Path(config.CACHE_DIR or Path(__file__).with_name("__pycache__"))
    folder = above / f"bounds-{digest}"
    if not folder.exists():
        for outdated in above.glob("bounds-*"):
            shutil.rmtree(outdated, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    config.CACHE_DIR = str(folder)
    return True


_writable_cache()
_CACHED = not BOUNDS or _cache_with_bounds()


def kernel(function: F) -> F:
    """Compile a kernel: nopython, cached, without the interpreter lock.

    A kernel that another calls with a constant is compiled for the constant's type, like for any
    other integer: Numba would compile it for 0, and for all integers once more.

    It neither makes arrays nor returns any (:func:`allocating`), so references to arrays are not
    counted: Numba counts them in each kernel that is called with one, by atomic instructions that
    take longer than a small kernel does.

    ``HOLDFAST_BOUNDS=1`` compiles with bounds checks, for tests.
    """
    return _compiled(function, inside=False, counting=False)


def allocating(function: F) -> F:
    """Compile a kernel that makes arrays, or calls one that returns some: it counts references."""
    return _compiled(function, inside=False, counting=True)


def inlined(function: F) -> F:
    """Compile a small kernel, and put it into every kernel that calls it. LLVM by itself calls most
    of those that lie in other modules, which costs more than a look-up in a hash table does."""
    return _compiled(function, inside=True, counting=False)


def _compiled(function: F, *, inside: bool, counting: bool) -> F:
    options: Any = {"boundscheck": BOUNDS, "forceinline": inside, "_nrt": counting}
    compiled: Any = numba.njit(cache=_CACHED, nogil=True, **options)(function)
    if hasattr(compiled, "get_call_template"):  # not where kernels run as plain Python
        template = compiled.get_call_template
        typed: Any = types.unliteral
        compiled.get_call_template = lambda args, kws: template(
            tuple(map(typed, args)), {name: typed(type_) for name, type_ in kws.items()}
        )
        if not counting:
            compiled.compile = _without_arrays(compiled, compiled.compile)
        if cache := getattr(compiled._cache, "_cache_file", None):
            cache._load_index = _tolerant(cache._load_index)
    return cast("F", compiled)


def _without_arrays(compiled: Any, compile_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Refuse a kernel that returns an array to which references are not counted."""

    def checked(signature: Any) -> Any:
        entry = compile_(signature)
        for overload in compiled.overloads.values():
            if _has_array(overload.signature.return_type):
                raise TypeError(f"{compiled.__name__} returns an array: it has to be @allocating")
        return entry

    return checked


def _has_array(type_: Any) -> bool:
    return isinstance(type_, types.Array) or any(map(_has_array, getattr(type_, "types", ())))


def _tolerant(load_index: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """Numba reads an outdated cache before it sees that it is outdated. One that an earlier release
    left may name types that no longer exist: it counts as empty."""

    def load() -> dict[Any, Any]:
        try:
            return load_index()
        except (AttributeError, ImportError):
            return {}

    return load
