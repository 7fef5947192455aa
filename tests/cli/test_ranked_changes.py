"""What matters of what came and went is told first; what holds by chance is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast import Profile
from holdfast.kinds import registry
from tests.cli.conftest import Run

COUNTRIES = ("AT", "ES", "FR")


def rows(start: int, end: int) -> list[str]:
    """Customers whose city tells their country, and much that is random."""
    lines = []
    for number in range(start, end):
        draw = Random(number)
        city = draw.randrange(12)
        cells = [number, f"city {city}", COUNTRIES[city % 3], *(draw.randrange(60) for _ in "abc")]
        lines.append(",".join(map(str, cells)))
    return lines


HEADER = "id,city,country,a,b,c"
WRONG = ",".join(["900", "city 0", "ES", *rows(5, 6)[0].split(",")[3:]])


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three versions: in the second, a city is in two countries."""
    monkeypatch.setenv("HOLDFAST_ENGINE", "process")
    (tmp_path / "t.csv").write_text("\n".join([HEADER, *rows(0, 300)]) + "\n")
    (tmp_path / "wrong.csv").write_text(f"{HEADER}\n{WRONG}\n")
    profile = Profile.create(tmp_path / "p", tmp_path / "t.csv", kinds=["keys", "fds"])
    profile.apply("t", inserts=tmp_path / "wrong.csv")
    profile.apply("t", deletes=tmp_path / "wrong.csv")
    return tmp_path / "p"


def listed(text: str, heading: str) -> list[str]:
    """The lines below a heading."""
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if re.match(rf"  \d+ {heading}", line))
    below = []
    for line in lines[at + 1 :]:
        if not line.startswith("    "):
            break
        below.append(line.strip())
    return below


def test_what_matters_of_what_was_lost_comes_first(shop: Path, run: Run) -> None:
    told = run("diff", shop, 1, 2).out
    first, rest = listed(told, "functional dependencies lost; those that matter:")
    assert first == "city -> country"
    assert rest == "… and 3 more, which may well be chance (--all shows them)"
    assert "5 functional dependencies gained, which matter little (--all shows them)" in told
    form = json.loads(run("diff", shop, 1, 2, "--format", "json").out)
    changes = form["tables"]["t"]["changes"]["functional_dependencies"]
    assert changes["lost"][0] == {"lhs": ["city"], "rhs": "country", "error": 0.0}
    assert changes["first"] == {"gained": 0, "lost": 1}
    assert changes["by_chance"] == {"gained": 2, "lost": 3}
    every = listed(run("diff", shop, 1, 2, "--all").out, "functional dependencies lost$")
    assert len(every) == len(changes["lost"])


def test_what_matters_of_what_was_gained_comes_first(shop: Path, run: Run, tmp_path: Path) -> None:
    told = run("diff", shop, 2, 3).out
    assert (
        listed(told, "functional dependencies gained; those that matter:")[0] == "city -> country"
    )
    run("apply", shop, "--table", "t", "--inserts", tmp_path / "wrong.csv")
    batch = (shop, "--table", "t", "--deletes", tmp_path / "wrong.csv")
    for command, verb in (("check", "would be gained"), ("apply", "gained")):
        first, *more = listed(run(command, *batch).out, f"functional dependencies {verb}; those")
        assert first == "city -> country"
        assert len(more) == 1
        assert "may well be chance" in more[0]


def test_nothing_is_left_out_of_a_diff(shop: Path) -> None:
    profile = Profile.open(shop)
    one, two = profile.snapshot(1), profile.snapshot(2)
    for kind in registry.named(["keys", "fds"]):
        plain, ordered = kind.diff(one, two, "t"), profile.diff(1, 2)["t"][kind.field]
        assert plain is not None
        for name in ("gained", "lost"):
            some: tuple[Any, ...] = getattr(ordered, name)
            assert {*some} == {*getattr(plain, name)}
            assert len(some) == len({*some})
            ranks = {each.constraint: each for each in profile.ranking_of(one)["t"][kind.field]}
            if name == "lost":
                matter = [ranks[each] for each in some if kind.matters(ranks[each])]
                assert [each.constraint for each in matter] == [*some[: len(matter)]]
                assert len(matter) == ordered.first.get(name, 0)
                assert [-each.score for each in matter] == sorted(-each.score for each in matter)
