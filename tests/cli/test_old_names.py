"""Options under the names that they had before: they work, and a note says the new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, write

BATCH = "id,customer,day,first name,note\n9,9,2026-01-09,Eve,\n"


@pytest.mark.parametrize("option", [["--format", "csv"], ["--format=csv"]])
def test_the_format_of_sources(run: Run, shop: Path, tmp_path: Path, option: list[str]) -> None:
    batch = ("check", shop, "--table", "orders", "--inserts", write(tmp_path, "new", BATCH))
    result = run(*batch, *option)
    assert result.code == 1
    assert result.err == "note: --format csv is now --input-format csv\n"
    assert result.out == run(*batch, "--input-format", "csv").out
    both = run(*batch, "--format", "json", *option)
    assert both.err == result.err
    assert json.loads(both.out)["breaks"] is True
    assert run(*batch, *option, "--quiet").err == ""


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        (["report"], "--no-values", "--hide-values"),
        (["export", "--to", "sql"], "--tables", "--create-tables"),
    ],
)
def test_flags(
    run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    command: list[str], old: str, new: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    result = run(name, shop, *rest, old)
    assert (result.code, result.err) == (0, f"note: {old} is now {new}\n")
    assert result.out == run(name, shop, *rest, new).out
    assert old not in run(name, "--help").out


@pytest.mark.parametrize("spaced", [True, False])
def test_where_an_export_is_written(run: Run, shop: Path, tmp_path: Path, spaced: bool) -> None:
    path = tmp_path / "out.sql"
    option = ["--out", path] if spaced else [f"--out={path}"]
    result = run("export", shop, "--to", "sql", *option)
    assert (result.code, result.err) == (0, "note: --out is now --output\n")
    assert path.exists()


def test_what_only_looks_like_an_old_name(run: Run, shop: Path) -> None:
    """A value, an argument after ``--``, an option of another command."""
    assert run("export", shop, "--to", "sql", "--namespace", "--tables").err == ""
    assert "note" not in run("export", "--to", "sql", "--", "--tables").err
    assert "there is no option --no-values" in run("show", shop, "--no-values").err
    assert "there is no option --out" in run("history", shop, "--out", "x").err
