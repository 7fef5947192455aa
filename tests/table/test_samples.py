"""What occurs in columns: what is kept is what the rows have, whatever came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.model import samples as model
from holdfast.model.commits import ColumnRecord
from holdfast.model.expectations import Expectation
from holdfast.model.literals import plain_number
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.model.samples import Listing, Sample, pattern_of, shape_of
from holdfast.model.whole_tables import Newest
from holdfast.store.leases import Lease
from holdfast.tasks import samples as tasks
from holdfast.tasks.encode import words_of
from holdfast.tasks.literals import whole
from holdfast.tasks.samples import Sampler
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, Kind, Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.strategies import Rows, rows_of
from tests.traffic import Counting

START = datetime(2026, 11, 15, tzinfo=UTC)

TEXTS = (
    *("AB-1", "CD-2", "AB-12", "a@b.co", "x.y@example.org", "http://a", ""),
    *("zoë", "0d4a2c6e-3b1f-4d0a-9c3e-8f7b6a5d4c3b", "x" * 65, "A1", "B2", "C3"),
)
CODES = Kind("string", pa.string(), TEXTS)
ALIKE = Kind("string", pa.string(), ("A1", "B2", "C3", "D4", "E5", "F66"))


def written(cell: Any) -> str | None:
    """A value as rules write it."""
    if isinstance(cell, bool):
        return str(cell).lower()
    return cell if isinstance(cell, str) else plain_number(repr(cell))


def assert_exact(
    shop: Shop, rows: Rows, values: Listing, shapes: Listing, keep_rows: bool = True
) -> None:
    """What is said to occur is what does, as brute force finds it."""
    facts: Sequence[ColumnRecord] = shop.store.read().tables["t"].facts
    for c, (kind, known) in enumerate(zip(shop.kinds, facts, strict=True)):
        cells = [kind.cell(row[c], i) for i, row in enumerate(rows) if row[c] is not None]
        number = Counter(0.0 if cell == 0 else cell for cell in cells)
        if not tasks.is_sampled(kind.arrow):
            assert known.values is None
            continue
        assert known.values is not None
        assert known.values.more == (len(number) > values.most)
        is_text = kind.arrow == pa.string()
        if not known.values.more:
            listed = Counter({label: rows_ for _, rows_, label in known.values.entries})
            if keep_rows or not is_text:
                assert listed == Counter({written(cell): n for cell, n in number.items()})
            assert sorted(rows_ for _, rows_, _ in known.values.entries) == sorted(number.values())
        if not (is_text and keep_rows):
            assert known.shapes is None
            continue
        alike: dict[str, str] = {}
        for cell in cells:
            alike.setdefault(oracle.shape(cell), cell)
        assert known.shapes is not None
        assert known.shapes.more == (len(alike) > shapes.most)
        if not known.shapes.more:
            assert known.shapes.labels == {shape_of(cell) for cell in alike.values()}
        pattern = pattern_of(known.shapes)
        if pattern is not None:
            matched = pc.match_substring_regex(pa.array(cells, pa.string()), whole(pattern))
            assert pc.all(matched).as_py()


@pytest.mark.slow
@law(30)
@given(data=st.data(), tasks_=st.integers(1, 3))
def test_kept_equals_fresh(data: st.DataObject, tasks_: int) -> None:
    values = Listing(data.draw(st.sampled_from([1, 2, 3, 32])))
    shapes = Listing(data.draw(st.sampled_from([1, 2, 8])), data.draw(st.sampled_from([1, 2, 4])))
    keep_rows = data.draw(st.sampled_from([True, True, False]))
    kinds = data.draw(
        st.lists(st.sampled_from([CODES, CODES, ALIKE, *KINDS[:1]]), min_size=1, max_size=3)
    )
    rows = data.draw(rows_of(len(kinds), 12))
    options = Options(kinds=("keys",), keep_rows=keep_rows)
    with folder() as path, small_limits(**data.draw(LIMITS)) as patch:
        patch.setattr(tasks, "VALUES", values)
        patch.setattr(tasks, "SHAPES", shapes)
        shop = Shop(Path(path) / "p", kinds, rows, options, tasks_)
        assert_exact(shop, rows, values, shapes, keep_rows)
        for _ in range(data.draw(st.integers(1, 5))):
            change = data.draw(batches(len(kinds), rows))
            shop.apply(**change.batch)
            rows = change.after
            assert_exact(shop, rows, values, shapes, keep_rows)
        assert shop.verify().equal


@law(15)
@given(seed=st.integers(0, 1 << 20))
def test_what_proves_goes_first(seed: int) -> None:
    with folder() as path:
        what_proves_goes_first(Path(path), seed)


def what_proves_goes_first(path: Path, seed: int) -> None:
    """One table, whose batches take away what is known of a column, or most of its values, again
    and again; some bring values back. A rule about the newest value is kept with it."""
    random = Random(seed)
    number = random.choice([12, 30])
    kinds = [
        Kind("string", pa.string(), tuple(f"{'ab-'[c % 3] * (c % 5)}{c}" for c in range(number))),
        ALIKE,
        Kind("date", pa.date32(), tuple(START.date() - timedelta(c // 2) for c in range(number))),
    ]
    sizes = [len(kind.cells) for kind in kinds]
    values, shapes = Listing(random.choice([1, 2, 3])), Listing(random.choice([1, 2]), 2)
    rule = Newest("t", "c2", random.choice([1, 3, 6]), "days")
    rows: Rows = [
        (random.choice([None, random.randrange(sizes[0])]), *map(random.randrange, sizes[1:]))
        for _ in range(random.choice([8, 40]))
    ]
    went: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, small_limits(segment_rows=random.choice([5, 99])):
        now = START
        patch.setattr(tasks, "VALUES", values)
        patch.setattr(tasks, "SHAPES", shapes)
        patch.setattr(Lease, "moment", property(lambda _: now.isoformat(), lambda *_: None), False)
        shop = Shop(path / "p", kinds, rows, Options(kinds=("keys",)), random.randint(1, 2))
        expected = [Expectation(str(rule))]
        flow.expect(shop.runner, shop.store, expected, no_progress)
        for _ in range(random.randint(2, 6)):
            column = random.randrange(3)
            there = sorted({row[column] for row in rows if row[column] is not None}, reverse=True)
            some = random.choice([there[:1], there[: len(there) // 2], there[-1:]])
            gone = [row for row in rows if row[column] in some][: random.choice([2, 99])]
            back = random.sample(went, min(len(went), random.choice([0, 0, 3])))
            for row in gone:
                rows.remove(row)
            went += gone
            rows += back
            now += timedelta(hours=random.choice([1, 30]))
            shop.apply(deletes=gone, inserts=back)
            assert_exact(shop, rows, values, shapes)
            days = [kinds[2].cell(row[2], 0) for row in rows]
            [standing] = shop.store.read().expectations
            assert standing.violations == oracle.whole_table(rule, days, now)


@pytest.mark.parametrize("number", [31, 32, 33, 40, 41, 200])
def test_a_column_with_about_as_many_values_as_are_listed(tmp_path: Path, number: int) -> None:
    """Rows go one half at a time, until few values are left, and come again."""
    rows: Rows = [(i,) for i in range(number)]
    shop = Shop(tmp_path / "p", 1, rows, Options(kinds=("keys",)), 2)
    assert_exact(shop, rows, model.VALUES, model.SHAPES)
    gone: list[Any] = []
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        gone, rows = gone + half, rows[len(half) :]
        shop.apply(deletes=half)
        assert_exact(shop, rows, model.VALUES, model.SHAPES)
    shop.apply(inserts=gone)
    assert_exact(shop, [*rows, *gone], model.VALUES, model.SHAPES)
    assert shop.verify().equal


MANY = Kind("string", pa.string(), tuple(f"{'a' * (c % 30)}{c}" for c in range(30_000)))


@pytest.mark.parametrize("kind", [BIGINT, MANY])
def test_a_batch_that_is_undone_reads_few_rows(tmp_path: Path, kind: Kind) -> None:
    """What shows that a column has many values goes with the newest rows, and is found again in the
    first ones."""
    runner = Counting(2)
    every: Rows = [(i, i) for i in range(30_000)]
    rows, batch = every[:9_000] + every[9_100:], every[9_000:9_100]
    with small_limits(segment_rows=20_000):
        shop = Shop(tmp_path / "p", [BIGINT, kind], rows, Options(kinds=("keys",)), runner=runner)
        shop.apply(inserts=batch)
        runner.bytes_read.clear()
        shop.apply(deletes=batch)
    assert runner.calls["scan"]
    assert runner.bytes_read["scan"] < len(rows) * 8
    assert_exact(shop, rows, model.VALUES, model.SHAPES)
    assert shop.verify().equal


SOME = st.sampled_from([*"ABab09-@._ :/%é\\[]{}^$\n\x7f", "http", "https://", "@b.co", "a" * 60])


@law(60)
@given(texts=st.lists(st.lists(SOME, max_size=8).map("".join) | st.sampled_from(TEXTS), min_size=1))
def test_shapes_are_those_of_brute_force(texts: list[str]) -> None:
    """The kernel tells texts apart as the oracle does, and every pattern matches its text."""
    array = pa.array(texts, pa.string())
    sampler = Sampler(pa.string(), True)
    sampler._full = True  # there are too many values: shapes come from the kernel
    sampler.add(words_of(array)[0].view(np.uint64), array)
    fresh = {shape_of(text) for text in texts}
    shapes = sampler.samples.shapes
    assert shapes is not None
    assert shapes.more == (len(fresh) > model.SHAPES.most)
    if not shapes.more:
        assert shapes.labels == fresh
    by_shape: dict[str, set[str]] = {}
    for text in texts:
        by_shape.setdefault(oracle.shape(text), set()).add(shape_of(text))
        if pattern := shape_of(text):
            assert pc.match_substring_regex(pa.array([text]), whole(pattern))[0].as_py()
    assert all(len(patterns) == 1 for patterns in by_shape.values())
    named = [patterns for shape, patterns in by_shape.items() if shape]
    assert len(set().union(*named)) == len(named)


@pytest.mark.parametrize(
    ("shapes", "pattern"),
    [
        (["AB-1", "C-22"], "[A-Z]{1,2}-[0-9]{1,2}"),
        (["AB-1", "AB1"], None),
        (["a@b.co", "ab1"], None),
        (["a@b.co", "c@d.org"], model.EMAIL),
        (["zoë"], None),
        (["2026-01-02", "2025-11-30"], model.DATE),
        ([], None),
        (["(1)", "(22)"], r"\([0-9]{1,2}\)"),
    ],
)
def test_patterns(shapes: list[str], pattern: str | None) -> None:
    entries = [(number, 1, shape_of(text)) for number, text in enumerate(shapes)]
    assert pattern_of(Sample.of(entries, model.SHAPES)) == pattern
