"""Runs the code cells of a notebook in this process, and has what each shows in the end."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run(path: Path) -> list[dict[str, str]]:
    """What each code cell shows: its last expression, as it is then."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for number, cell in enumerate(code_cells(path), 1):
        tree = ast.parse("".join(cell["source"]), f"{path.name}, cell {number}")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}, cell {number}", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
        shown.append(_output(value))
    return shown


def _output(value: Any) -> dict[str, str]:
    """How a notebook shows a value."""
    if value is None:
        return {}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_()}
    return {"text/plain": repr(value)}
