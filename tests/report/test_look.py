"""How the report page looks in a real browser: what leads, what is red, wraps and scrolls."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from holdfast import Profile
from tests.browser import Browser
from tests.report.conftest import profiled

pytestmark = pytest.mark.slow

PHONE = (390, 844)

RED = """(() => {
  const probe = document.createElement("i");
  probe.className = "bad";
  document.body.append(probe);
  const bad = getComputedStyle(probe).color;
  probe.remove();
  const red = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const style = getComputedStyle(element);
    const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    const painted = [style.backgroundColor, style.borderLeftColor, element.tagName === "rect" && style.fill];
    if (element.checkVisibility() && ((own && style.color === bad) || painted.includes(bad)) && element.getBoundingClientRect().height > 0)
      red.add(element.closest("section, dialog").getAttribute("aria-label") || "dialog");
  }
  return [...red].sort();
})()"""  # noqa: E501
"""The sections in which anything is red."""

BEHIND = """(() => {
  const boxes = [...document.querySelectorAll(".diagram rect.box")].map((each) => each.getBBox());
  const behind = [];
  for (const path of document.querySelectorAll(".diagram .edge")) {
    const long = path.getTotalLength();
    for (let at = 0; at <= long; at += 1) {
      const {x, y} = path.getPointAtLength(at);
      if (boxes.some((box) => x > box.x + 1 && x < box.x + box.width - 1 && y > box.y && y < box.y + box.height))
        { behind.push(path.textContent); break; }
    }
  }
  return behind;
})()"""  # noqa: E501
"""The arrows that run behind a table."""

HIDDEN = """[...document.querySelectorAll(".scroll, .witness, .matrix, .diagram")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .filter((each) => !each.classList.contains("more-right"))
  .map((each) => each.className)"""
"""What is cut at its right side without a sign of it."""


@pytest.fixture(scope="module")
def pages(
    gated: Profile, chained: Profile, shop: Profile, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The reports, as files."""
    folder = tmp_path_factory.mktemp("look")
    profiles = {"gated": gated, "chained": chained, "shop": shop}
    paths = {name: Path(each.report(folder / f"{name}.html")) for name, each in profiles.items()}
    return {name: path.as_uri() for name, path in paths.items()}


def test_expectations_lead_each_batch(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages["gated"])
    rows = "section[aria-label=Batches] .row"
    assert chromium.texts(f"{rows} .expect") == ["1 of 3 broken", "1 of 3 broken", "3 hold"]
    colours = [
        chromium.ask(
            f"document.querySelectorAll('{rows} .expect')[{at}].className.split(' ').pop()"
        )
        for at in range(3)
    ]
    assert colours == ["warn", "bad", "good"]
    chromium.click(f"{rows}:nth-child(2)")  # tuesday
    assert chromium.texts("dialog .body h3")[0] == "1 expected rule broken"
    assert chromium.texts("dialog .rule")[0] == "one row per orderorders: key(order_id)"
    assert chromium.texts("dialog .body > .soft ~ .change .soft")[0] == "2 rows share it."
    first = "dialog .witness:first-of-type tbody tr td:first-child"
    assert chromium.texts(first)[:2] == ["new", ""]
    assert "1 expected rule holds." not in chromium.texts("dialog .good")
    assert chromium.texts("dialog .good") == ["2 expected rules hold."]
    # What broke by chance is there, but has to be asked for.
    assert chromium.texts("dialog summary") == ["Besides, not expected"]
    assert not chromium.ask("document.querySelector('dialog details').open")
    chromium.press("Escape")
    assert chromium.problems == []


def test_red_is_for_expectations_only(chromium: Browser, pages: dict[str, str]) -> None:
    for place in ("", "#/table/orders", "#/table/customers"):
        chromium.open(f"{pages['shop']}{place}")
        assert chromium.ask(RED) == []
    chromium.open(f"{pages['shop']}#/table/orders")
    chromium.click("section[aria-label=Batches] .row:nth-child(2)")
    assert "broken" in chromium.texts("dialog h3")[0]
    assert chromium.ask(RED) == []
    chromium.press("Escape")
    chromium.open(pages["gated"])
    assert chromium.ask(RED) == ["Batches", "Expectations"]
    chromium.click("section[aria-label=Batches] .row:nth-child(3)")  # monday
    assert chromium.texts("dialog summary") == ["Besides, not expected"]
    chromium.ask("document.querySelector('dialog details').open = true")
    assert " broken" in chromium.texts("dialog details h3")[0]
    assert chromium.ask(RED) == ["Batches", "Expectations"]
    chromium.press("Escape")


def test_the_diagram_fits_or_scrolls_visibly(chromium: Browser, pages: dict[str, str]) -> None:
    wide = "(each => each.scrollWidth - each.clientWidth)(document.querySelector('.diagram'))"
    classes = "[...document.querySelector('.diagram').classList].sort()"
    chromium.open(pages["chained"], 1280)
    chromium.settle()
    assert chromium.ask(wide) == 0
    assert chromium.ask(classes) == ["diagram"]
    chromium.open(pages["chained"], *PHONE)
    chromium.settle()
    assert chromium.ask(wide) > 300
    assert chromium.ask(classes) == ["diagram", "more-right"]
    assert chromium.ask("document.querySelector('.diagram').tabIndex") == 0
    chromium.ask("document.querySelector('.diagram').scrollLeft = 10000")
    chromium.wait(f"{classes}.includes('more-left')")
    assert chromium.ask(classes) == ["diagram", "more-left"]


def test_arrows_do_not_run_behind_tables(chromium: Browser, pages: dict[str, str]) -> None:
    for width in (1280, 390):
        chromium.open(pages["chained"], width)
        edges = chromium.texts(".diagram .edge")
        # Some pass other tables on their way.
        assert any(each.startswith("items(region_id) in regions(region_id)") for each in edges)
        assert any(each.startswith("items(nation_id) in nations(nation_id)") for each in edges)
        assert chromium.ask(BEHIND) == []


def test_foreign_keys_of_two_columns_are_drawn(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages["chained"])
    edges = chromium.texts(".diagram .edge")
    both = "items(part_no, store_no) in stock(part_no, store_no)"
    assert any(each.startswith(both) for each in edges)
    composite = [each for each in edges if "," in each.split(" in ")[0]]
    brackets = "document.querySelectorAll('.diagram .bracket').length"
    assert chromium.ask(brackets) == 2 * len(composite)


def test_keys_wrap(chromium: Browser, tmp_path: Path) -> None:
    """All columns of all keys can be read, also on a phone, and no row lies over another one."""
    names = [f"a_column_with_a_name_{each}" for each in "abcdef"]
    rows = Random(7).sample([*itertools.product(range(3), repeat=6)], 60)
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    profile = profiled(tmp_path / "p", {"t": table}, kinds="keys")
    keys = [list(each.columns) for each in profile.keys("t")]
    assert max(map(len, keys)) > 3
    url = Path(profile.report(tmp_path / "p.html")).as_uri()
    for width in (1280, 390):
        chromium.open(f"{url}#/table/t", width, 844)
        chromium.settle()
        for label in ("Keys", "Non-keys"):
            row = f"section[aria-label={label}] .row"
            outside = f"""[...document.querySelectorAll('{row}')].flatMap((row) => {{
              const around = row.getBoundingClientRect();
              return [...row.querySelectorAll('.chip')].filter((chip) => {{
                const own = chip.getBoundingClientRect();
                return own.right > around.right || own.bottom > around.bottom
                  || own.top < around.top || chip.scrollWidth > chip.clientWidth + 1;
              }});
            }}).length"""
            assert chromium.ask(outside) == 0
            boxes = chromium.ask(
                f"[...document.querySelectorAll('{row}')].map((row) => row.getBoundingClientRect())"
                ".map((box) => [box.top, box.bottom])"
            )
            assert all(one[1] <= two[0] + 0.5 for one, two in itertools.pairwise(sorted(boxes)))
    told = chromium.ask(
        "[...document.querySelector('section[aria-label=Keys] .row').querySelectorAll('.chip')]"
        ".map((each) => each.textContent)"
    )
    assert told in keys


def test_columns_of_the_grain_are_marked(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(f"{pages['shop']}#/table/order_items")
    row = "section[aria-label=Columns] tbody tr"
    marked = chromium.ask(
        f"[...document.querySelectorAll('{row}')].filter((row) => row.querySelector('.grain'))"
        ".map((row) => row.querySelector('code').textContent)"
    )
    assert marked == chromium.texts(".grain .chip")
    assert "in a key" not in chromium.texts(".tag")


def test_charts_have_axes(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages["gated"])
    assert chromium.texts(".chart h3") == [
        "Time of each batch", "Expected rules that each batch broke, in amber only a warning",
    ]  # fmt: skip
    assert chromium.texts(".chart:first-child .xs span") == ["3", "4", "5"]  # versions
    assert chromium.texts(".chart:first-child .ys span")[0] == "0"
    assert chromium.texts(".chart:last-child .ys span") == ["0", "1"]
    assert chromium.ask("document.querySelectorAll('.chart .axis').length") >= 4
    chromium.open(pages["shop"])
    assert chromium.texts(".chart h3")[1] == "Constraints gained and broken"
    chromium.open(f"{pages['shop']}#/table/orders", *PHONE)
    assert chromium.texts(".plot .name") == ["↑ ordered_on", "order_id →"]
    assert chromium.texts(".plot .ys span") == ["2026-02-01", "2026-03-01", "2026-04-01"]
    assert chromium.texts(".plot .xs span") == ["1", "353"]
    small = "parseFloat(getComputedStyle(document.querySelector('.plot .xs span')).fontSize)"
    assert chromium.ask(small) == 11  # however wide the picture


def test_numbers_have_separators(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(f"{pages['gated']}#/table/orders")
    row = "section[aria-label=Columns] tbody tr"
    ends = {
        name: chromium.texts(f"{row}:nth-child({at}) .limit")
        for at, name in ((1, "order_id"), (5, "year"), (6, "amount"))
    }
    assert ends == {
        "order_id": ["20,001", "40,001"],
        "year": ["1990", "2019"],  # a year has none
        "amount": ["0", "28"],
    }


def test_tables_on_a_phone_scroll_inside(chromium: Browser, pages: dict[str, str]) -> None:
    for name, place in itertools.product(pages, ("", "#/table/orders")):
        chromium.open(f"{pages[name]}{place}", *PHONE)
        chromium.settle()
        assert chromium.ask("document.documentElement.scrollWidth") == PHONE[0]
        assert chromium.ask(HIDDEN) == []
        assert chromium.ask("document.querySelectorAll('.more-right').length") > 0
    assert chromium.problems == []


def test_near_rules_and_suspects_have_a_section(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(f"{pages['gated']}#/table/orders")
    section = 'section[aria-label="Nearly holds"]'
    rules = dict(
        zip(
            chromium.texts(f"{section} .row .text"),
            chromium.texts(f"{section} .row .side"),
            strict=True,
        )
    )
    assert rules["city -> country"] == "3 rows of 153 differ from the rest of their city"
    cells = f"{section} .suspects tbody tr"
    suspected = chromium.ask(
        f"[...document.querySelectorAll('{cells}')].map((row) => [...row.cells].map((cell) => cell.textContent))"  # noqa: E501
    )
    assert any(row[2:5] == ["country", "XX", "AT"] for row in suspected)
    chromium.click(f"{cells}:nth-child(1)")
    assert chromium.ask("document.querySelector('dialog').open")
    assert len(chromium.texts("dialog .witness tbody tr")) == 1
    chromium.press("Escape")
    chromium.click(f"{section} .row")
    assert chromium.texts("dialog .rule")[0].startswith("holdfast suspects shop '")
    chromium.press("Escape")
    chromium.open(f"{pages['gated']}#/table/customers")
    assert "Nearly holds" not in chromium.texts("section h2")
    assert chromium.problems == []


def test_only_what_changed_has_a_lifetime(
    chromium: Browser, pages: dict[str, str], gated: Profile
) -> None:
    changed = gated.document()["lives"]["orders"]
    chromium.open(f"{pages['gated']}#/table/orders")
    section = "section[aria-label=Lifetimes]"
    assert chromium.texts(f"{section} .count") == [str(len(changed))]
    assert chromium.texts(f"{section} .row .text")[0] in {each["text"] for each in changed}
    assert chromium.texts(f"{section} .scale div span") == ["1", "2", "3", "4", "5"]
    left = "document.querySelector('{}').getBoundingClientRect().left"
    for width in (1280, 390):  # the scale is over the lines
        chromium.open(f"{pages['gated']}#/table/orders", width, 844)
        chromium.settle()
        scale, track = (chromium.ask(left.format(each)) for each in (".scale div", ".track"))
        assert abs(scale - track) < 1
    chromium.open(f"{pages['gated']}#/table/customers")
    assert "Lifetimes" not in chromium.texts("section h2")
    chromium.open(f"{pages['chained']}#/table/orders")  # of one version
    assert "Lifetimes" not in chromium.texts("section h2")
