"""Rules that nearly hold: which are found in tables with known errors, which wrong cells the
suspects are, and how long it takes beside an exact profile.

The tables ``hospital`` and ``flights`` are public (Raha's benchmark data), with a clean copy each;
they are looked for where the tests look for real tables, in ``dirty/``.
"""

from __future__ import annotations

import csv
import os
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.batches import verdict
from benchmarks.tpch import lineitem, tables
from holdfast import Options, Profile, Suspect
from tests.data import MISSING, data_dir

CITIES = {
    "Rome": "IT", "Graz": "AT", "Lyon": "FR", "Bonn": "DE",
    "Oslo": "NO", "Cork": "IE", "Faro": "PT", "Turku": "FI",
}  # fmt: skip

Cells = set[tuple[int, str]]


def main() -> None:
    """Print every figure with its target."""
    from holdfast.spark.session import open_session

    session = open_session()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-near-", dir=os.environ.get("HOLDFAST_BENCH")))
    try:
        data = data_dir()
        for name in ("hospital", "flights"):
            if data is None or not (data / "dirty" / name).is_dir():
                print(f"{name}: {MISSING}")
            else:
                _known_errors(session, folder, data / "dirty" / name)
        _planted_orders(session, folder)
        for scale in ("0.1", "1"):
            _planted_lineitem(session, folder, scale)
    finally:
        session.stop()
        shutil.rmtree(folder)


def _known_errors(session: Any, folder: Path, source: Path) -> None:
    """Suspects of a table beside its wrong cells, by their scores."""
    header, dirty = _read(source / "dirty.csv")
    _, clean = _read(source / "clean.csv")
    path = folder / f"{source.name}.csv"
    # A number of its own tells which row a suspect is in.
    numbered = [[str(place), *row] for place, row in enumerate(dirty)]
    _write(path, ["holdfast_row", *header], numbered)
    profile = Profile.create(
        folder / source.name, path, options=Options(kinds=("keys",)), session=session
    )
    start = time.perf_counter()
    suspects = profile.suspects(table=source.name)
    seconds = time.perf_counter() - start
    wrong = {
        (place, name)
        for place, rows in enumerate(zip(dirty, clean, strict=True))
        for name, one, other in zip(header, *rows, strict=True)
        if one.strip() != other.strip()
    }
    rules = len(suspects.near)
    print(f"\n{source.name}: {len(wrong):,} wrong cells, {rules} near rules, {seconds:.1f} s")
    precision, recall = _quality(suspects.cells, wrong, 2.5)
    scores = sorted({suspect.score for suspect in suspects.cells})
    best, at = max((_f1(*_quality(suspects.cells, wrong, score - 1e-9)), score) for score in scores)
    if source.name == "hospital":
        _at_least("precision of suspects above 2.5", precision, 0.93)
        _at_least("recall of suspects above 2.5", recall, 0.58)
        _at_least(f"best F1 (from a score of {at:.2f})", best, 0.82)
    else:
        print(f"  above 2.5: precision {precision:.2f}, recall {recall:.2f}; best F1 {best:.2f}")
    for near in suspects.near[:5]:
        print(f"    {near.rule} ({near.removal} rows, strength {near.strength})")


def _quality(cells: Sequence[Suspect], wrong: Cells, above: float) -> tuple[float, float]:
    """Precision and recall of the suspects whose score is higher."""
    found = {
        (int(str(cell.row["holdfast_row"])), name)
        for cell in cells
        if cell.score > above
        for name in cell.columns
    }
    right = len(found & wrong)
    return right / max(1, len(found)), right / len(wrong)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / max(1e-9, precision + recall)


def _planted_orders(session: Any, folder: Path) -> None:
    """60,000 orders with 9 repeated numbers and 12 wrong countries."""
    header, rows = _read(tables("0.1", ("orders",))["orders"])
    generator = random.Random(1)
    rows = rows[:60_000]
    for row in rows:
        city = generator.choice([*CITIES])
        row += [city, CITIES[city]]
    moved = generator.sample(range(len(rows)), 12)
    for place in moved:
        rows[place][-1] = next(c for c in CITIES.values() if c != rows[place][-1])
    for place in generator.sample(range(1, len(rows)), 9):
        rows[place][0] = rows[place - 1][0]
    path = folder / "orders.csv"
    _write(path, [*header, "city", "country"], rows)
    start = time.perf_counter()
    profile = Profile.create(folder / "orders", path, session=session)
    exact = time.perf_counter() - start
    start = time.perf_counter()
    suspects = profile.suspects(table="orders")
    seconds = time.perf_counter() - start
    print(f"\norders: profile {exact:.1f} s, near rules and suspects {seconds:.1f} s")
    for near in suspects.near:
        print(f"    {near.rule} ({near.removal} rows)")
    near_rules = [str(near.rule) for near in suspects.near]
    wanted = ("orders: key(o_orderkey)", "orders: city -> country", "orders: country -> city")
    verdict(
        "planted rules that are not among the first three", len({*wanted} - {*near_rules[:3]}), 0
    )
    suspected = {
        (str(cell.row["o_orderkey"]), name) for cell in suspects.cells for name in cell.columns
    }
    missed = [place for place in moved if (rows[place][0], "country") not in suspected]
    verdict("wrong countries that are not suspected", len(missed), 0)


def _planted_lineitem(session: Any, folder: Path, scale: str) -> None:
    """Lineitem with 1,000 wrong line statuses; near rules beside the exact profile."""
    path = folder / f"lineitem-{scale}.csv"
    generator = random.Random(2)
    source = lineitem(scale)
    lines = sum(1 for _ in source.open("rb")) - 1
    wrong = {*generator.sample(range(lines), 1_000)}
    with source.open() as dirty, path.open("w") as out:
        out.write(next(dirty))
        for place, line in enumerate(dirty):
            cells = line.split(",") if place in wrong else None
            if cells:
                cells[9] = "F" if cells[9] == "O" else "O"
                line = ",".join(cells)
            out.write(line)
    start = time.perf_counter()
    profile = Profile.create(
        folder / f"lineitem-{scale}",
        {"lineitem": path},
        options=Options(kinds=("keys", "fds")),
        session=session,
    )
    exact = time.perf_counter() - start
    for _ in range(2):
        start = time.perf_counter()
        near = profile.near("lineitem")
        seconds = time.perf_counter() - start
    print(f"\nlineitem {scale}: exact profile {exact:.1f} s, near rules {seconds:.1f} s")
    for rule in near:
        print(f"    {rule.rule} ({rule.removal:,} rows, strength {rule.strength})")
    verdict("near rules beside the exact profile", (exact + seconds) / exact, 1.3, " x")


def _at_least(what: str, figure: float, least: float) -> None:
    """A figure beside a target that it has to reach."""
    print(f"  {'ok ' if figure >= least else 'NOT'} {what:<52} {figure:6.2f} (at least {least})")


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main()
