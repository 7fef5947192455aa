"""The report page in a real browser: opened, filtered, clicked, by keyboard, with hostile data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast import Profile
from holdfast.report.page import page
from tests.browser import Browser
from tests.report.conftest import applied, profiled
from tests.report.test_document import HOSTILE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(shop: Profile, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shop's report, as a file."""
    path = tmp_path_factory.mktemp("page") / "shop.html"
    shop.report(path)
    return path.as_uri()


def many(constraints: int) -> dict[str, Any]:
    """A document with so many dependencies, and as many rules, in one table."""
    names = [f"column_{place}" for place in range(30)]
    lhs = [(a, b, c) for a in range(30) for b in range(a) for c in range(b)]
    dependencies = []
    rules = []
    for number in range(constraints):
        left = [names[place] for place in lhs[number % len(lhs)]]
        right = names[(number // len(lhs) + 7 * number) % 30]
        text = f"{', '.join(left)} -> {right}"
        dependencies.append({"lhs": left, "rhs": right, "error": 0.0, "text": text})
        rule = f"not (t.{left[0]} = s.{left[0]} and rule {number})"
        rules.append({"form": "other", "error": 0.0, "columns": left, "text": rule})
    nouns = {"fds": ["dependency", "dependencies"], "dcs": ["rule", "rules"]}
    lists = [
        {"name": name, "field": name, "nouns": nouns[name], "total": len(some), "note": "",
         "entries": some}
        for name, some in (("fds", dependencies), ("dcs", rules))
    ]  # fmt: skip
    table = {
        "name": "wide", "rows": 10**6, "duplicates": 0, "duplicated": [], "points": None,
        "columns": [{"name": name, "type": "bigint"} for name in names], "lists": lists,
        "grain": {"columns": None, "reason": "no key is known"}, "left_out": {},
    }  # fmt: skip
    versions = [
        {"version": version, "created": "2026-11-16T04:28:55.362+00:00", "what": None,
         "numbers": {"wide": {"rows": 10**6, "fds": constraints, "dcs": constraints}},
         "batches": [{"table": "wide", "batch_id": f"b{version}", "inserted": 1, "deleted": 0,
                      "updated": 0, "rows": 10**6, "duplicates": 0, "duplicated": [],
                      "changes": {}}], "seconds": {"read": 0.1}}
        for version in range(1, 301)
    ]  # fmt: skip
    return {
        "name": "many", "version": 300, "created": "2026-11-16T04:28:55.362+00:00",
        "nulls": "equal", "values": True, "tables": [table], "lists": [], "lives": {},
        "kinds": [{"field": name, "nouns": nouns[name]} for name in nouns], "versions": versions,
    }  # fmt: skip


def test_it_opens_from_disk_and_loads_nothing(chromium: Browser, url: str) -> None:
    chromium.open(url)
    assert chromium.texts("h1") == ["shop"]
    assert chromium.texts("nav a span:first-child")[1:] == [
        "customers", "order_items", "orders", "products",
    ]  # fmt: skip
    assert chromium.requests == [url]
    assert chromium.problems == []


def test_tables_are_drawn_with_their_foreign_keys(chromium: Browser, url: str) -> None:
    chromium.open(url)
    assert chromium.texts(".diagram text.name") != []
    assert chromium.texts(".diagram .edge title")[0].startswith(
        "order_items(product_id) in products(product_id), score"
    )
    assert len(chromium.texts(".diagram .edge")) == 3
    scores = [float(text.split("score ")[1]) for text in chromium.texts(".diagram .edge title")]
    assert min(scores) >= 0.6  # others are only listed
    assert "11 less likely ones" in chromium.texts("section[aria-label=Tables] .about")[0]
    chromium.ask("document.querySelector('.diagram a').dispatchEvent(new MouseEvent('click'))")
    chromium.wait("location.hash.startsWith('#/table/')")
    assert chromium.problems == []


def test_a_table_has_its_sections(chromium: Browser, url: str) -> None:
    chromium.open(f"{url}#/table/orders")
    assert chromium.texts("h1") == ["orders"]
    assert chromium.texts(".grain")[0].startswith("One row per order_id")
    headings = chromium.texts("section h2")
    expected = ["Columns", "Keys", "Non-keys", "Dependencies", "Rules", "Lifetimes", "Batches"]
    assert [each for each in headings if each in expected] == expected
    assert chromium.texts(".plot p")[0] == "ordered_on rises with order_id"
    assert chromium.ask("document.querySelectorAll('.plot circle').length") > 50
    assert chromium.texts("section[aria-label=Keys] .row .text") == [
        "order_id", "customer_idordered_on",
    ]  # fmt: skip
    assert len(chromium.texts(".cell.yes")) > 0
    assert chromium.problems == []


def test_columns_have_facts_and_rules_their_state(
    chromium: Browser, url: str, expecting: Profile, tmp_path: Path
) -> None:
    chromium.open(f"{url}#/table/orders")
    assert chromium.texts("section[aria-label=Columns] th")[:6] == [
        "column", "type", "nulls", "distinct", "minimum", "maximum",
    ]  # fmt: skip
    assert chromium.texts("section[aria-label=Columns] tbody tr:first-child td")[:6] == [
        "order_id", "bigint", "0", "353", "1", "353",
    ]  # fmt: skip
    assert "Expectations" not in chromium.texts("section h2")
    expecting.report(tmp_path / "expecting.html")
    page = (tmp_path / "expecting.html").as_uri()
    chromium.open(page)
    rows = "section[aria-label=Expectations] .row"
    assert chromium.texts(f"{rows} .state") == ["violated", "violated", "holds", "holds"]
    assert chromium.texts(f"{rows} .side") == [
        "1 pair of rows", "2 rows without a match: 1 of 3 values missing, only a warning",
        "1 row of 4; 50% may be",
    ]  # fmt: skip
    chromium.click(f"{rows}:nth-child(2)")
    assert chromium.texts("dialog h2") == ["every order has its customer"]
    assert "orders(customer) in customers(id)" in chromium.texts("dialog .rule")[0]
    assert chromium.texts("dialog .body p")[0].startswith("Does not hold: 2 rows without a match")
    chromium.press("Escape")
    chromium.open(f"{page}#/table/customers")
    assert chromium.texts(f"{rows} .text") == [
        "every order has its customer orders(customer) in customers(id)"
    ]
    assert chromium.problems == []


def test_a_click_shows_the_rows_behind_a_change(chromium: Browser, url: str) -> None:
    chromium.open(f"{url}#/table/orders")
    chromium.click("section[aria-label=Batches] .row:nth-child(2)")  # tuesday
    assert chromium.ask("document.querySelector('dialog').open")
    assert "tuesday" in chromium.texts("dialog h2")[0]
    assert "key(customer_id, ordered_on)" in chromium.texts("dialog .rule")[0]
    marked = "dialog .witness:first-of-type th.mark"
    assert chromium.texts(marked)[:2] == ["customer_id", "ordered_on"]
    assert len(chromium.texts("dialog .witness:first-of-type tbody tr")) >= 2
    chromium.press("Escape")
    assert not chromium.ask("document.querySelector('dialog').open")
    assert chromium.problems == []


def test_a_batch_tells_which_rows_were_left_out(
    chromium: Browser, sifted: Profile, tmp_path: Path
) -> None:
    sifted.report(tmp_path / "sifted.html")
    chromium.open((tmp_path / "sifted.html").as_uri())
    rows = "section[aria-label=Batches] .row"
    assert chromium.texts(f"{rows} .left-out") == ["3 rows quarantined"]
    chromium.click(f"{rows}:nth-child(2)")
    assert "3 quarantined" in chromium.texts("dialog .body p")[0]
    assert "3 rows quarantined, not applied" in chromium.texts("dialog h3")
    assert "3 by orders: key(id)" in chromium.texts("dialog .change li")
    assert chromium.texts("dialog .change li")[1].endswith(".parquet")
    chromium.press("Escape")
    assert chromium.problems == []


def test_the_keyboard_is_enough(chromium: Browser, url: str) -> None:
    chromium.open(f"{url}#/table/order_items")
    chromium.press("/")
    assert chromium.ask("document.activeElement.id") == "filter"
    chromium.press(*"discount rises")
    rules = "section[aria-label=Rules]"
    assert chromium.texts(f"{rules} .row .text")[0] == "discount rises with quantity"
    assert " of " in chromium.texts(f"{rules} .count")[0]
    chromium.press("Escape")
    assert chromium.ask("document.getElementById('filter').value") == ""
    chromium.ask(f"document.querySelector('{rules} .list').focus()")
    chromium.press("ArrowDown", "ArrowDown")
    active = "document.activeElement.getAttribute('aria-activedescendant')"
    second = f"document.getElementById({active}).querySelector('.text').textContent"
    told = chromium.ask(second)
    assert told == chromium.texts(f"{rules} .row .text")[2]
    chromium.press("Enter")
    assert chromium.texts("dialog h2") == [told]
    chromium.press("Escape")
    assert chromium.ask("document.activeElement.classList.contains('list')")  # where it was
    chromium.press("End")
    assert chromium.ask(active).endswith(f"-{int(chromium.texts(f'{rules} .count')[0]) - 1}")
    # From the top, Tab goes through the page in its order.
    chromium.ask("document.querySelector('.skip').focus()")
    order = []
    for _ in range(5):
        chromium.press("Tab")
        order.append(chromium.ask("document.activeElement.className || document.activeElement.id"))
    assert order[:3] == ["brand", "filter", "quiet"]
    assert chromium.ask("!!document.activeElement.closest('nav')")
    chromium.press("ArrowUp", "Enter")
    chromium.wait("location.hash !== '#/table/order_items'")
    assert chromium.problems == []


def test_a_filter_that_nothing_fits_says_so(chromium: Browser, url: str) -> None:
    chromium.open(f"{url}#/table/orders")
    chromium.press("/", *"zzz")
    empty = chromium.texts("section[aria-label=Keys] .empty:not([hidden])")
    assert empty == ["None of them matches “zzz”."]
    assert chromium.problems == []


def test_light_and_dark(chromium: Browser, url: str) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    chromium.open(url)
    light = chromium.ask(background)
    chromium.open(url, dark=True)
    dark = chromium.ask(background)
    assert light != dark
    chromium.click("#theme")
    assert chromium.ask(background) == light
    chromium.click("#theme")
    assert chromium.ask(background) == dark
    chromium.click("#theme")  # as the system has it
    assert chromium.problems == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(chromium: Browser, url: str, dark: bool) -> None:
    """All texts have the contrast that WCAG AA asks for."""
    chromium.open(f"{url}#/table/orders", dark=dark)
    assert chromium.ask(CONTRAST) == []


CONTRAST = """(() => {
  const numbers = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = (color) => numbers(color).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (numbers(color)[3] !== 0) return color;
    }
    return getComputedStyle(document.documentElement).backgroundColor;
  };
  const poor = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, noscript, script, style, .skip, .hidden")) continue;
    const [one, two] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) poor.add(`${element.className || element.tagName} ${ratio.toFixed(2)}`);
  }
  return [...poor];
})()"""  # noqa: E501


def test_a_narrow_screen_has_no_sideways_scrolling(chromium: Browser, url: str) -> None:
    for place in ("", "#/table/orders", "#/table/order_items"):
        chromium.open(f"{url}{place}", 360, 740)
        assert chromium.ask("document.documentElement.scrollWidth") == 360
    assert chromium.problems == []


def test_ten_thousand_constraints_cost_what_is_seen(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    path.write_text(page(many(10_000)), "utf-8")
    chromium.open(f"{path.as_uri()}#/table/wide")
    chromium.settle()
    elements = "document.querySelectorAll('*').length"
    assert chromium.ask(elements) < 5_000
    chromium.press("/", *"rule 9999)")
    assert chromium.texts("section[aria-label=Rules] .row .text")[0].endswith("and rule 9999)")
    chromium.press("Escape")
    chromium.ask("document.querySelector('section[aria-label=Rules] .list').focus()")
    chromium.press("End")
    seen = chromium.texts("section[aria-label=Rules] .row.active .text")
    assert seen[0].endswith("and rule 9999)")
    chromium.ask("document.querySelector('.matrix').scrollTop = 20000")
    chromium.settle()
    assert len(chromium.texts(".matrix .row")) < 60
    assert chromium.ask(elements) < 5_000
    assert chromium.problems == []


def test_hostile_data_does_nothing(chromium: Browser, tmp_path: Path) -> None:
    cells = list(HOSTILE)
    rows = pa.table(
        {name: pa.array(cells[place:] + cells[:place]) for place, name in enumerate(HOSTILE)}
    )
    profile = profiled(tmp_path / HOSTILE[1], dict.fromkeys(HOSTILE[:3], rows))
    applied(profile, HOSTILE[0], HOSTILE[1], inserts=rows.slice(0, 2))
    path = tmp_path / "hostile.html"
    profile.report(path)
    chromium.open(path.as_uri())
    count = "document.querySelectorAll('script').length"
    assert chromium.ask(count) == 2
    for table in HOSTILE[:3]:
        chromium.ask(f"location.hash = '#/table/' + encodeURIComponent({json.dumps(table)})")
        chromium.wait(f"document.querySelector('h1').textContent === {json.dumps(table)}")
        chromium.settle()
        for row in ("section[aria-label=Batches] .row", "section[aria-label='Non-keys'] .row"):
            if chromium.ask(f'!!document.querySelector("{row}")'):
                chromium.click(row)
                chromium.press("Escape")
    assert chromium.ask(count) == 2
    assert chromium.ask("document.querySelectorAll('main img, dialog img, nav img').length") == 0
    assert chromium.requests == [path.as_uri()]
    assert chromium.problems == []
    # Had a script come in as markup after all, the policy would not let it run.
    chromium.ask(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')"
    )
    script = "Object.assign(document.createElement('script'), {text: 'window.ran = 1'})"
    chromium.ask(f"document.body.append({script})")
    chromium.settle()
    assert chromium.ask("window.ran") is None


def test_tables_of_all_shapes(chromium: Browser, tmp_path: Path) -> None:
    """No rows, one row, repeated rows, keys alone, and tables that refer to each other."""
    ring = {
        "a": pa.table({"id": list(range(50)), "b_id": [row % 40 for row in range(50)]}),
        "b": pa.table({"id": list(range(40)), "a_id": [row % 37 for row in range(40)]}),
    }
    shapes: dict[str, dict[str, Any]] = {
        "none": {"t": pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})},
        "one": {"t": pa.table({"a": [1]})},
        "repeated": {"t": pa.table({"a": [1, 1, 2, 2, 2], "b": [1, 1, 2, 2, 3]})},
        "ring": ring,
    }
    for name, tables in shapes.items():
        profile = profiled(tmp_path / name, tables, kinds="keys,fds,inds")
        path = Path(profile.report(tmp_path / f"{name}.html"))
        chromium.open(path.as_uri())
        edges = len(chromium.texts(".diagram .edge"))
        assert edges == (2 if name == "ring" else 0)
        chromium.open(f"{path.as_uri()}#/table/{next(iter(tables))}", 360, 740)
        told = chromium.texts(".grain")[0]
        assert told.startswith(GRAINS[name]), told
        assert chromium.ask("document.documentElement.scrollWidth") == 360
        assert chromium.problems == []


GRAINS = {
    "none": "At most one row",
    "one": "At most one row",
    "repeated": "No grain: 2 rows repeat another one.",
    "ring": "One row per id",
}
