"""Kernels that do not count references get no arrays that they would have to give back."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from holdfast import kernels
from holdfast.kernels.jit import kernel


def every() -> Iterator[Any]:
    """All kernels, each once."""
    for module in pkgutil.iter_modules(kernels.__path__, "holdfast.kernels."):
        if not module.ispkg:
            for each in vars(importlib.import_module(module.name)).values():
                if _is_kernel(each) and each.__module__ == module.name:
                    yield each


def _is_kernel(each: Any) -> bool:
    return hasattr(each, "py_func") and hasattr(each, "targetoptions")


def _tree(each: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(each.py_func)))


def _returns(each: Any) -> bool:
    returned = (node for node in ast.walk(_tree(each)) if isinstance(node, ast.Return))
    return any(node.value is not None for node in returned)


def _called(each: Any) -> Iterator[Any]:
    for node in ast.walk(_tree(each)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = each.py_func.__globals__.get(node.func.id)
            if _is_kernel(called):
                yield called


@pytest.mark.skipif(not any(every()), reason="kernels run as plain Python here")
def test_what_makes_arrays_is_called_by_what_counts_references() -> None:
    counting = {each for each in every() if each.targetoptions["_nrt"]}
    assert counting
    leaking = [
        f"{each.__module__}.{each.__name__} calls {called.__name__}"
        for each in every()
        if each not in counting
        for called in _called(each)
        if called in counting and _returns(called)
    ]
    assert leaking == []


@kernel
def _same(numbers: Any) -> Any:
    return numbers


@kernel
def _made(size: int) -> int:
    return int(np.zeros(size).size)


@pytest.mark.skipif(not any(every()), reason="kernels run as plain Python here")
def test_a_kernel_that_does_not_count_references_neither_returns_nor_makes_arrays() -> None:
    with pytest.raises(TypeError, match="_same returns an array"):
        _same(np.arange(3))
    with pytest.raises(Exception, match="Only accept returning of array"):
        _made(3)
