"""What the README and the pages in docs/ show is what there is."""

from __future__ import annotations

import doctest
import pkgutil
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.program import parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    """Every holdfast command of a page's blocks, as words."""
    found = []
    for block in blocks(text, r"\w*"):
        lines = block.replace("\\\n", " ").splitlines()
        found += [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?holdfast ", line)]
    return [shlex.split(line, comments=True)[1:] for line in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_exist(page: Path) -> None:
    known = parser().commands
    for name, *rest in commands(page.read_text("utf-8")):
        assert name in known
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text("utf-8"), flags=re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}, target


def slug(heading: str) -> str:
    """A heading as links name it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_command_has_a_method() -> None:
    """One of its name, or those in the README's table, all of which there are."""
    table = re.findall(r"^\| `holdfast (\w+)[^|]*\| (.*) \|$", README, flags=re.MULTILINE)
    assert table
    for name, methods in table:
        assert name in parser().commands
        for method in re.findall(r"`(?:\w+\.)?(\w+)\(", methods):
            assert callable(getattr(holdfast.Profile, method)), method
    listed = {name for name, _ in table}
    assert all(name in listed or hasattr(holdfast.Profile, name) for name in parser().commands)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_programs_compile(page: Path) -> None:
    for block in blocks(page.read_text("utf-8"), "python"):
        compile(block, page.name, "exec")


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in PAGES:
        text = page.read_text("utf-8")
        shown = "\n".join(blocks(text, r"\w*"))
        named = re.findall(r"^make ([\w-]+)", shown, flags=re.MULTILINE)
        assert {*named, *re.findall(r"`make ([\w-]+)`", text)} <= targets, page


def test_variables_exist() -> None:
    sources = [
        path for name in ("src", "tests", "benchmarks") for path in (ROOT / name).rglob("*.py")
    ]
    known = set(re.findall(r"HOLDFAST_\w+", "".join(path.read_text("utf-8") for path in sources)))
    for page in PAGES:
        assert set(re.findall(r"HOLDFAST_\w+", page.read_text("utf-8"))) <= known, page


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text("utf-8")
    for page in folder.glob("[0-9]*.md"):
        assert f"]({page.name})" in index
        text = page.read_text("utf-8")
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequence"))


def test_examples_in_docstrings_are_right() -> None:
    """All but those of modules that need Spark."""
    names = [each.name for each in pkgutil.walk_packages(holdfast.__path__, "holdfast.")]
    modules = [
        import_module(name)
        for name in names
        if not name.startswith("holdfast.spark") and not name.endswith("__main__")
    ]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 100
