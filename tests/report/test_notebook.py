"""What a notebook shows: small, escaped, without scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from holdfast import Profile, flow
from holdfast.model.changes import Broken, Changes, KindChanges, Superseded
from holdfast.model.constraints import FunctionalDependency, Key, NonKey
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.inclusion_dependencies import Attribute, ForeignKey, InclusionDependency
from holdfast.model.progress import no_progress
from holdfast.model.results import Results
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.cli.conftest import Run
from tests.report.conftest import profiled, row_input
from tests.report.test_document import HOSTILE

RISES = (("a", "<="), ("b", ">"))
TAGS = {
    "div",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "span",
    "strong",
    "em",
    "bdi",
} | {"pre", "a"}


class Parsed(HTMLParser):
    """The tags of some HTML, and its text; all tags closed, and none that does anything."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.text = ""
        self.cells: list[str] = []
        self._open: list[str] = []
        self.feed(markup)
        assert not self._open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        assert {name for name, _ in attributes} <= ({"href"} if tag == "a" else {"style"})
        self._open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"td", "th"} & {*self._open}:
            self.cells[-1] += data


def test_a_profile(
    shop: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Run,
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Profile.open(shop.path)
    shop.show()
    printed = capsys.readouterr().out
    assert "orders: 353 rows, 6 columns\n  one row per order_id" in printed
    assert Parsed(shop._repr_html_()).text == f"{printed}report() writes a page about it"
    assert run("show", shop.path).out == printed


def test_a_profile_with_a_report(
    shop: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened = Profile.open(shop.path)
    (tmp_path / "shop.html").write_text("something else")
    assert "<a " not in opened._repr_html_()
    (tmp_path / "pages").mkdir()
    opened.report("pages/the shop.html")
    assert '<a href="pages/the%20shop.html"><bdi>the report: the shop.html' in opened._repr_html_()
    (tmp_path / "shop.html").unlink()
    opened.report()
    assert '<a href="shop.html">' in opened._repr_html_()
    assert '<a href="shop.html">' in Profile.open(shop.path)._repr_html_()
    opened.report(tmp_path / "shop.html")
    monkeypatch.chdir("/usr")
    assert f'<a href="{(tmp_path / "shop.html").as_uri()}">' in opened._repr_html_()


def test_a_profile_that_went_is_still_named(shop: Profile, tmp_path: Path) -> None:
    profile = profiled(tmp_path / "p", {"t": pa.table({"a": [1, 2]})})
    (tmp_path / "p").rename(tmp_path / "q")
    assert "<Profile " in Parsed(profile._repr_html_()).text


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (Key("t", ("a", "b c")), "t: key(a, `b c`)"),
        (Key("t", ("a",), 0.25), "t: key(a) violated by 0.25 of the row pairs"),
        (FunctionalDependency("t", ("a",), "b"), "t: a -> b"),
        (
            DenialConstraint("t", tuple(Predicate(("t", c), op, ("s", c)) for c, op in RISES)),
            "t: not (t.a <= s.a and t.b > s.b) b rises with a",
        ),
        (ForeignKey((Attribute("t", "a"),), (Attribute("u", "b"),), 0.9), "t(a) in u(b) score 0.9"),
        (
            InclusionDependency((Attribute("t", "a"),), (Attribute("u", "b"),), 0.5),
            "t(a) in u(b) 0.5 of the values",
        ),
    ],
)  # fmt: skip
def test_a_constraint(constraint: Key, text: str) -> None:
    assert Parsed(constraint._repr_html_()).text == text


def test_a_non_key_has_its_rows() -> None:
    rows = {"id": 1, "day": "x"}, {"id": 2, "day": "x"}
    shown = NonKey("t", ("day",), rows)._repr_html_()
    assert Parsed(shown).cells == ["day", "id", "x", "1", "x", "2"]
    assert shown.count("background") == 3  # the column in question, top to bottom


def test_a_change_tells_what_broke_with_its_rows(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "day": [1, 2]})
    profile = profiled(tmp_path / "p", {"t": rows})
    batch = flow.Batch(inserts=row_input("inserts", pa.table({"id": [1], "day": [3]})))
    changes = flow.apply(InProcess(), Store.open(profile.path), "t", batch, no_progress)
    shown = Parsed(changes._repr_html_())
    assert shown.text.startswith("t, version 2: 1 inserted3 rowskeys: 1 brokenkey(id)")
    assert shown.cells[:6] == ["id", "day", "1", "1", "1", "3"]


def test_a_long_change_is_short() -> None:
    keys = [Key("t", (f"c{number}",)) for number in range(100)]
    kinds = {
        "keys": KindChanges(
            gained=tuple(keys),
            broken=tuple(Broken(key, ({"c": 1}, {"c": 1})) for key in keys),
            superseded=tuple(Superseded(key, key) for key in keys),
        )
    }
    changes = Changes("t", 2, None, False, 0, 0, 0, 9, 3, kinds=kinds)
    shown = changes._repr_html_()
    assert len(shown) < 5_000
    assert Parsed(shown).text.count("and 95 more") == 3
    assert "(checked)" in shown
    nothing = Changes("t", 2, None, True, 1, 0, 0, 9)._repr_html_()
    assert "Nothing gained, nothing broken." in nothing


def test_a_list_has_its_first_entries() -> None:
    keys = Results(Key, [Key("t", (f"c{number}",)) for number in range(50)])
    shown = Parsed(keys._repr_html_())
    assert shown.cells[:2] == ["constraint", "t: key(c0)"]
    assert "and 30 more" in shown.text
    near = Results(Key, [Key("t", ("a",)), Key("t", ("b",), 0.5)])
    assert Parsed(near._repr_html_()).cells[2:] == ["t: key(a)", "null", "t: key(b)", "0.5"]
    assert Parsed(Results(Key)._repr_html_()).cells == ["constraint"]


def test_long_lists_of_a_profile(shop: Profile) -> None:
    found = shop.denial_constraints("order_items")
    shown = Parsed(found._repr_html_())
    assert f"and {len(found) - 20:,} more" in shown.text


def test_hostile_names_and_cells(tmp_path: Path) -> None:
    rows = pa.table({name: [*HOSTILE, *HOSTILE] for name in HOSTILE})
    profile = profiled(tmp_path / HOSTILE[1], {HOSTILE[0]: rows})
    shown = [profile._repr_html_(), profile.non_keys(HOSTILE[0])._repr_html_()]
    row = dict(zip(HOSTILE, HOSTILE, strict=True))
    shown += [NonKey(HOSTILE[0], HOSTILE, (row, row))._repr_html_()]
    changes = {HOSTILE[0]: KindChanges(broken=(Broken(Key(HOSTILE[0], HOSTILE), (row, row)),))}
    shown.append(Changes(HOSTILE[0], 1, HOSTILE[1], True, 1, 0, 0, 9, kinds=changes)._repr_html_())
    for each in shown:
        Parsed(each)
        assert not re.search("<(script|img)", each)
