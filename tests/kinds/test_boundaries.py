"""Nobody but a kind knows it: others ask the registry which kind a constraint is of, and then the
kind. So no code tests for a constraint's class, or imports a kind's modules, outside of ``model``
and the kind's own folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast.kinds import registry

PACKAGE = Path(holdfast.__file__).parent

CLASSES = {each.__name__ for kind in registry.every() for each in kind.classes}

FOLDERS = {type(kind).__module__.rpartition(".")[0] for kind in registry.every()}
"""The packages of kinds: ``holdfast.kinds.keys``."""

PUBLIC = "holdfast"
"""The package itself gives the public names of all modules, each when it is asked for."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module by its dotted name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, ast.parse(path.read_text("utf-8"))


def folder_of(module: str) -> str | None:
    """The package of a kind that a module belongs to."""
    return next((each for each in FOLDERS if module == each or module.startswith(f"{each}.")), None)


def at_run_time(tree: ast.Module) -> Iterator[ast.AST]:
    """All of a module but what is there for type checkers."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            left += node.orelse
            continue
        yield node
        left += ast.iter_child_nodes(node)


def classes_asked_for(node: ast.AST) -> set[str]:
    """The names that a node tests the class of a value by."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        tested: ast.AST = node.args[1]
    elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
        tested = ast.Tuple(node.comparators)
    elif isinstance(node, ast.MatchClass):
        tested = node.cls
    else:
        return set()
    return {each.id for each in ast.walk(tested) if isinstance(each, ast.Name)}


def imported(node: ast.AST) -> list[str]:
    """The modules that a node imports."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
    return [each.name for each in node.names] if isinstance(node, ast.Import) else []


def test_there_are_kinds_and_classes() -> None:
    assert {"Key", "FunctionalDependency", "NotNull", "ForeignKey"} <= CLASSES
    assert {"holdfast.kinds.keys", "holdfast.kinds.not_null"} <= FOLDERS
    assert len(list(modules())) > 200


def test_nobody_tests_for_the_class_of_a_constraint() -> None:
    found = [
        f"{name}:{node.lineno} tests for {', '.join(sorted(names))}"  # type: ignore[attr-defined]
        for name, tree in modules()
        if not name.startswith("holdfast.model.") and folder_of(name) is None
        for node in ast.walk(tree)
        if (names := classes_asked_for(node) & CLASSES)
    ]
    assert not found, "ask the kind instead (registry.of):\n" + "\n".join(found)


def test_nobody_imports_the_modules_of_a_kind() -> None:
    found = [
        f"{name}:{node.lineno} imports {module}"  # type: ignore[attr-defined]
        for name, tree in modules()
        if name not in (PUBLIC, "holdfast.kinds.registry")
        for node in at_run_time(tree)
        for module in imported(node)
        if folder_of(module) not in (None, folder_of(name))
    ]
    assert not found, "ask the registry instead:\n" + "\n".join(found)
