"""Lists on the pages and in docstrings, and names of files, are those of the code."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store import CONCEALED, EXPIRED, FOLLOWING, FORMAT, GROUPED

ROOT = Path(__file__).parent.parent
ROOMS = ROOT / "src" / "holdfast"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ABOUT_CODE = [
    page
    for page in PAGES
    if page.name in ("CONTRIBUTING.md", "how-it-works.md", "directory-format.md")
    or page.parent.name == "decisions"
]
PLACES = (ROOMS, ROOT, ROOT / "src")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def docstring(path: Path) -> str:
    """What a package or a module says of itself."""
    file = path / "__init__.py" if path.is_dir() else path
    return ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""


def summary(path: Path) -> str:
    """The first sentence of its docstring."""
    first = docstring(path).split("\n\n")[0].replace("\n", " ")
    return re.sub(r":class:`~?([\w.]+)`", r"`\1`", re.split(r"\.(?: |$)", first)[0])


def layers() -> list[str]:
    """The layers of the import contract, as CONTRIBUTING shows them."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (contract,) = (each for each in tool["contracts"] if each["type"] == "layers")
    return [re.sub(r"[()]", "", layer).replace(" : ", ", ") for layer in contract["layers"]]


def section(heading: str) -> str:
    """The text of CONTRIBUTING under a heading, or after a paragraph that begins like that."""
    return CONTRIBUTING.split(heading, 1)[1]


def block(text: str) -> list[str]:
    """The lines of the first fenced block."""
    return text.split("```", 2)[1].splitlines()[1:]


def test_the_list_of_layers_is_the_import_contract() -> None:
    assert block(section("**Who may import whom**")) == layers()


def test_the_list_of_rooms_is_what_they_say_of_themselves() -> None:
    """In the order of the layers. On a failure: the block as it should be."""
    names = [name for layer in layers() for name in re.split(r" \| |, ", layer)]
    rooms = [name for name in names if (ROOMS / name).is_dir()]
    width = max(map(len, rooms)) + 3
    expected = [f"{room + '/':{width}}{summary(ROOMS / room)}" for room in rooms]
    shown = block(section("## The shape of the code"))
    assert shown == expected, "\n".join(expected)


def packages() -> Iterator[Path]:
    for path in sorted(ROOMS.rglob("__init__.py")):
        if re.search(r"^\s*[\w/]+(\.py|/)\s", docstring(path.parent), flags=re.MULTILINE):
            yield path.parent


@pytest.mark.parametrize("package", packages(), ids=lambda path: path.name)
def test_docstrings_of_packages_list_their_modules(package: Path) -> None:
    """All that there are, and no others."""
    text = docstring(package)
    modules = {path.name for path in package.glob("*.py") if path.name != "__init__.py"}
    folders = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    listed = set(re.findall(r"(?<![\w/])(\w+(?:\.py|/))(?!\w)", text))
    assert listed == modules | folders


@pytest.mark.parametrize("page", ABOUT_CODE, ids=name)
def test_files_that_pages_name_exist(page: Path) -> None:
    """``…`` stands for any folder; a name without a folder is that of some module."""
    text = page.read_text("utf-8")
    for path in set(re.findall(r"`([\w…/-]+\.py)`", text)):
        pattern = path.replace("…", "*")
        found = [*(file for place in PLACES for file in place.glob(pattern))]
        if "/" not in path:
            found += [*ROOMS.rglob(path)]
        assert found, path
    for path in set(re.findall(r"`((?:src|tests|benchmarks)/[\w/-]+/)`", text)):
        assert (ROOT / path).is_dir(), path


def defined(path: Path) -> set[str]:
    """The functions and classes of a module, and the methods of these."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            inner = node.body if isinstance(node, ast.ClassDef) else []
            names |= {f"{node.name}.{m.name}" for m in inner if isinstance(m, ast.FunctionDef)}
    return names


def test_the_steps_of_a_batch_are_where_the_page_says() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    steps = re.findall(
        r"^\| .+? \| `([\w/.]+)` \| `([\w.]+)` \|$",
        text.split("## The steps of a batch")[1].split("\n## ")[0],
        flags=re.MULTILINE,
    )
    assert len(steps) > 20
    for path, function in steps:
        assert function in defined(ROOMS / path), f"{path}: {function}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_formats_of_the_directory_are_those_of_the_code(page: Path) -> None:
    expect_formats(page)


def test_modules_speak_of_no_other_formats() -> None:
    for module in ROOMS.rglob("*.py"):
        expect_formats(module)


def expect_formats(path: Path) -> None:
    numbers = re.findall(r"\bformat (\d+)\b", path.read_text("utf-8"), flags=re.IGNORECASE)
    assert {*map(int, numbers)} <= {FORMAT, CONCEALED, GROUPED, FOLLOWING, EXPIRED}, path


def glossary() -> dict[str, str]:
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", section("## Glossary"), flags=re.MULTILINE)
    return {term: meaning for term, meaning in rows if term not in ("word", "---")}


def test_the_glossary_is_short_and_says_each_word_once() -> None:
    terms = [term for words in glossary() for term in words.split(", ")]
    assert 0 < len(terms) <= 40
    assert len(terms) == len(set(terms))


def test_words_that_the_glossary_rules_out_name_nothing() -> None:
    """No module of the package has one as its name, nor a class or function in one."""
    banned = set(re.findall(r"`(\w+)`", section("Names that are not used:").split("\n\n")[0]))
    assert banned
    used = set()
    for path in ROOMS.rglob("*.py"):
        used.add(path.stem)
        used |= {
            node.name
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
        }
    assert not banned & used
