"""``holdfast report`` as a user runs it."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from holdfast import Profile
from holdfast.report.page import is_report
from tests.cli.conftest import Run


def test_it_writes_a_file_and_says_where(
    shop: Profile, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("report", shop.path)[:2] == (0, "shop.html\n")
    result = run("report", shop.path, "-o", "other.html", "--format", "json", "--no-values")
    told = json.loads(result.out)
    assert told == {"file": "other.html", "bytes": (tmp_path / "other.html").stat().st_size}
    assert is_report(tmp_path / "other.html")
    cell = "ada.again@example.org"  # of a row that two non-keys show
    assert cell in (tmp_path / "shop.html").read_text("utf-8")
    assert cell not in (tmp_path / "other.html").read_text("utf-8")


@pytest.mark.slow
def test_limits(shop: Profile, run: Run, tmp_path: Path) -> None:
    sizes = {}
    for option in ("--limit=0", "--limit=5", "--all"):
        told = run("report", shop.path, "-o", tmp_path / "x.html", option, "--format", "json")
        sizes[option] = json.loads(told.out)["bytes"]
    assert sizes["--limit=0"] < sizes["--limit=5"] < sizes["--all"]
    result = run("report", shop.path, "--limit", -1)
    assert (result.code, "--limit must be a number of entries" in result.err) == (2, True)


@pytest.mark.slow
def test_it_opens_the_browser(
    shop: Profile, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    run("report", shop.path, "-o", tmp_path / "x y.html", "--open")
    assert opened == [(tmp_path / "x y.html").as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    result = run("report", shop.path, "-o", tmp_path / "x.html", "--open")
    assert (result.code, "there is no browser to show it with" in result.err) == (0, True)


def test_a_folder_without_a_profile_is_told(run: Run, tmp_path: Path) -> None:
    result = run("report", tmp_path / "none")
    assert (result.code, "there is no profile directory" in result.err) == (2, True)
