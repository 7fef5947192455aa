"""How kernels are compiled: each once, and only when it is called."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from holdfast.kernels.jit import kernel


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_constant_is_no_reason_to_compile_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_BOUNDS", "1")  # without the cache, which would compile nothing

    @kernel
    def inner(x: int, y: int) -> int:
        return x + y

    @kernel
    def outer(x: int) -> int:
        return inner(0, 1) + inner(x, 2) + inner(x, y=x)

    assert outer(3) == 12
    compiled: Any = inner
    assert len({tuple(map(str, signature)) for signature in compiled.signatures}) == 1


_IMPORT = """
import importlib, pkgutil
from numba.core.dispatcher import Dispatcher
import holdfast, holdfast.api, holdfast.kernels, holdfast.warm
for found in pkgutil.iter_modules(holdfast.kernels.__path__):
    module = importlib.import_module(f"holdfast.kernels.{found.name}")
    for name, each in vars(module).items():
        if isinstance(each, Dispatcher) and each.signatures:
            print(module.__name__, name)
"""


@pytest.mark.slow
def test_nothing_is_compiled_before_it_is_called() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True
    )
    assert ran.stdout == ""
