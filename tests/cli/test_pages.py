"""The small examples of the pages about kinds of constraints do what the pages say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Run

KINDS = Path(__file__).parent.parent.parent / "docs" / "kinds"
TABLE = re.compile(r"`([\w-]+\.csv)`:\n\n```csv\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", sorted(KINDS.glob("*.md")), ids=lambda page: page.stem)
def test_its_example_shows_what_happens(
    page: Path,
    in_process: None,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every line that is shown is printed, in this order; the page leaves others out."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    tables = TABLE.findall(text)
    assert tables
    for name, rows in tables:
        Path(name).write_text(rows, "utf-8")
    steps = [each.split("\n") for each in "".join(SESSION.findall(text)).split("$ ")[1:]]
    assert steps
    for command, *shown in steps:
        told = run(*shlex.split(command)[1:])
        assert told.code == 0, told.err
        printed = iter(told.out.split("\n"))
        assert all(line in printed for line in shown), told.out


def test_every_kind_has_a_page() -> None:
    from holdfast.kinds import registry

    titles = [page.read_text("utf-8").partition("\n")[0].lower() for page in KINDS.glob("*.md")]
    for kind in registry.REGISTRY.values():
        assert any(kind.nouns[1] in title for title in titles), kind.nouns[1]
