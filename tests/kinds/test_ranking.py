"""What matters first: scores put what somebody would declare before what holds by chance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Options, Profile, flow, sample
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds import ranking, registry
from holdfast.kinds.denial_constraints.tested import TryingPairs, known_pairs
from holdfast.kinds.functional_dependencies.rank import covered
from holdfast.kinds.keys.rank import ranked as rank_keys
from holdfast.kinds.keys.reading import FoundKeys
from holdfast.kinds.ranking import sentence
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.errors import UnknownTableError
from holdfast.model.grammar import parse
from holdfast.model.progress import no_progress
from holdfast.model.ranking import Ranked
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.flow.tables import Shop
from tests.strategies import Rows

SHOP = Path(sample.__file__).with_name("shop")
TABLES = ("customers", "products", "orders", "order_items")
TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
}


def rows_of(path: Path) -> RowInput:
    table = pa.csv.read_csv(path)
    types = [TYPES[each] for each in table.schema.types]
    columns = Columns.of(table.column_names, types, table.schema.types)
    return RowInput(path.stem, columns, table.rename_columns(columns.schema.names))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The sample shop, with all kinds."""
    store = Store.create(tmp_path_factory.mktemp("ranking") / "shop")
    options = registry.completed(Options(kinds="keys,fds,inds,dcs"))
    rows = {name: rows_of(SHOP / f"{name}.csv") for name in TABLES}
    flow.profile(InProcess(), store, rows, options, no_progress)
    return Profile(store)


def test_every_designed_rule_of_the_shop_is_among_the_first_ten(shop: Profile) -> None:
    first = {
        str(each) for name in TABLES for found in shop.rank(name).values() for each in found[:10]
    }
    assert {str(parse(rule)) for rule in sample.DESIGNED} <= first


def test_the_grain_of_the_shops_tables(shop: Profile) -> None:
    assert {name: sentence(shop.grain(name)).partition(":")[0] for name in TABLES} == {
        "customers": "one row per customer_id",
        "products": "one row per product_id",
        "orders": "one row per order_id",
        "order_items": "one row per order_id, line_no",
    }
    assert shop.grain("orders").reason == (
        "one column, never null, called like an identifier, referenced by order_items"
    )


def test_a_few_of_the_first_are_suggested(shop: Profile) -> None:
    found = shop.suggest()
    assert [each.rule for each in found if each.rule.startswith("orders")] == [
        "orders: key(order_id)",
        "orders: order_id not null",
        "orders(customer_id) in customers(customer_id)",
        "orders: not (t.ordered_on > t.shipped_on)",
        "orders: not (t.order_id <= s.order_id and t.ordered_on > s.ordered_on)",
    ]
    assert [each.rule for each in found if each.rule.startswith("order_items")] == [
        "order_items: key(order_id, line_no)",
        "order_items: order_id not null",
        "order_items: line_no not null",
        "order_items(product_id) in products(product_id)",
        "order_items(order_id) in orders(order_id)",
        "order_items: quantity -> discount",
        "order_items: product_id -> unit_price",
        "order_items: total -> discount",
        "order_items: not (t.quantity <= s.quantity and t.discount > s.discount)",
        "order_items: not (t.product_id = s.product_id and t.quantity <= s.quantity"
        " and t.total > s.total)",
    ]
    assert {each.rule for each in found} >= {"customers: city -> country"}
    reasons = {each.rule: each.reason for each in found}
    assert reasons["orders: key(order_id)"].startswith("its grain: one column, never null")
    assert reasons["orders: order_id not null"] == "in the grain, and never null"
    assert reasons["orders(customer_id) in customers(customer_id)"].startswith("a foreign key")
    assert found.to_arrow().column_names == ["rule", "reason", "max_rows"]


def test_what_may_hold_by_chance_is_not_suggested(tmp_path: Path) -> None:
    few: Rows = [(1, 1, 7), (2, 1, 7), (3, 2, 7)]  # a dependency of three rows says nothing
    profile = Profile(Shop(tmp_path / "few", 3, few, Options(kinds=("keys", "fds"))).store)
    assert [each.rule for each in profile.suggest()] == ["t: key(c0)", "t: c0 not null"]
    none = Profile(Shop(tmp_path / "none", 2, [], Options(kinds=("keys", "fds"))).store)
    assert none.suggest() == []
    # A key that breaks as often as it is tried is luck.
    shop = Shop(tmp_path / "broke", 1, [(1,), (2,)], Options(kinds=("keys",)))
    for _ in range(2):
        shop.apply(inserts=[(1,)])
        shop.apply(deletes=[(1,)])
    assert Profile(shop.store).suggest() == []


def test_rules_come_with_their_reasons(shop: Profile) -> None:
    first = shop.rank("order_items")["denial_constraints"][0]
    assert str(first) == "order_items: not (t.quantity <= s.quantity and t.discount > s.discount)"
    assert first.reasons[:2] == ("an order rule", "2 comparisons")
    assert first.reasons[2] == "180,089 pairs of rows could have broken it"
    assert first.tested == 180_089
    table = shop.rank("order_items")["functional_dependencies"].to_arrow()
    rows = {row["constraint"]: row["implied_by"] for row in table.to_pylist()}
    assert rows["order_items: product_id, quantity -> total"] == [
        "order_items: product_id -> unit_price",
        "order_items: quantity, unit_price -> total",
    ]
    with pytest.raises(UnknownTableError, match="no table 'nobody'"):
        shop.rank("nobody")


def test_what_survives_batches_comes_before_what_broke(tmp_path: Path) -> None:
    rows: Rows = [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
    shop = Shop(tmp_path / "p", 3, rows, Options(kinds=("keys",)))
    profile = Profile(shop.store)
    assert [str(e) for e in profile.rank("t")["keys"]] == ["t: key(c0)", "t: key(c1)", "t: key(c2)"]
    shop.apply(inserts=[(1, 4, 4)])
    shop.apply(deletes=[(1, 4, 4)])
    shop.apply(inserts=[(4, 5, 5), (5, 6, 6)])
    ranked = profile.rank("t")["keys"]
    assert [str(e) for e in ranked] == ["t: key(c1)", "t: key(c2)", "t: key(c0)"]
    first, last = ranked[0].stability, ranked[-1].stability
    assert first is not None
    assert last is not None
    assert (first.batches, first.rows, first.broke) == (3, 4, 0)
    assert (last.batches, last.rows, last.broke, last.since) == (1, 2, 1, 3)
    assert last.sentence == "held through 1 batch with 2 changed rows, broke once before"
    assert first.confidence == pytest.approx(0.8)
    assert last.confidence == pytest.approx(0.5)
    assert profile.grain("t").reason == (
        "one column, never null, held through 3 batches with 4 changed rows"
    )


def test_a_key_without_nulls_comes_first(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(None, 1), (1, 2), (2, 3)], Options(kinds=("keys",)))
    ranked = Profile(shop.store).rank("t")["keys"]
    assert [str(each) for each in ranked] == ["t: key(c1)", "t: key(c0)"]
    assert [each.reasons[1] for each in ranked] == ["never null", "1 null"]


def test_not_more_is_read_than_is_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path / "p", 3, [(1, 1, 1), (2, 2, 2)], Options(kinds=("keys",)))
    for number in range(3, 6):
        shop.apply(inserts=[(number, 1, number)])
    whole = Profile(shop.store).rank("t")["keys"][0].stability
    monkeypatch.setattr(ranking, "READ", 1)
    part = Profile(shop.store).rank("t")["keys"][0].stability
    assert whole is not None
    assert part is not None
    assert (whole.batches, whole.known_from) == (3, 1)
    assert part.known_from > 1


def test_a_table_without_a_grain(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 3, [(1, 1, 1), (1, 1, 1)])
    found = Profile(shop.store).grain("t")
    assert found.key is None
    assert sentence(found) == "no grain: 1 row repeats another one"
    one = Shop(tmp_path / "q", 3, [(1, 1, 1)])
    assert sentence(Profile(one.store).grain("t")) == "there is at most one row"


@pytest.mark.parametrize(
    ("likely", "unlikely"),
    [
        (("id", "bigint"), ("price", "double")),
        (("id", "bigint"), ("comment", "string")),
        (("o_orderkey", "bigint"), ("o_totalprice", "decimal(15,2)")),
        (("email", "string"), ("created", "timestamp")),
        (("sku", "string"), ("name", "string")),
        (("lineNo", "int"), ("quantity", "int")),
    ],
)
def test_keys_that_somebody_would_declare(
    likely: tuple[str, str], unlikely: tuple[str, str]
) -> None:
    columns = (unlikely, likely)
    keys = tuple(Key("t", (name,)) for name, _ in columns)
    table = TableSnapshot(
        "t", 9, tuple(n for n, _ in columns), tuple(t for _, t in columns), 0, (),
        {"keys": FoundKeys(keys)},
    )  # fmt: skip
    ranked = rank_keys(Snapshot(1, "", {"kinds": ["keys"]}, {"t": table}), "t")
    assert [each.constraint for each in ranked] == [keys[1], keys[0]]


def drawn_rows(number: int) -> Rows:
    """Numbers that rise together, what follows from them, and what has nothing to do with them."""
    noise = np.random.default_rng(5).integers(0, 3, number).tolist()
    return [(i, 3 * i + each, i // 10, i // 10 % 4, each) for i, each in enumerate(noise)]


PAIRS = Options(kinds=("dcs",), cross_columns=None, max_predicates=3)


def test_pairs_that_could_have_broken_a_rule_are_estimated_where_they_are_not_counted(
    tmp_path: Path,
) -> None:
    """From pairs that are drawn, always the same ones, and of those that agree in each column."""
    rows = drawn_rows(300)
    counted = Shop(tmp_path / "counted", 5, rows, replace(PAIRS, evidence="counted"))
    witnessed = Shop(tmp_path / "witnessed", 5, rows, replace(PAIRS, evidence="witnessed"))
    exact, found = (each.now.found["dcs"] for each in (counted, witnessed))
    assert [*map(str, exact)] == [*map(str, found)]
    assert found.counts is None
    assert found.sampled.pairs == 20_000 < 300 * 299
    columns = counted.now.columns
    ways = [
        TryingPairs(each.space, columns, 300, known_pairs(each, 300)) for each in (exact, found)
    ]
    known, estimated = (way.tested(exact[:]) for way in ways)
    assert len(known) > 5
    for one, other in zip(known, estimated, strict=True):
        assert other.pairs == pytest.approx(one.pairs, rel=0.1, abs=20)
        assert (other.strength > 0) == (one.strength > 0)

    profile = Profile(witnessed.store)
    first = profile.rank("t")["denial_constraints"]
    assert all(re.match("about [0-9,]+ pairs? of rows could", each.reasons[-1]) for each in first)
    exactly = Profile(counted.store).rank("t")["denial_constraints"]
    assert not any("about" in each.reasons[-1] for each in exactly)


def test_of_few_rows_all_pairs_are_looked_at(tmp_path: Path) -> None:
    rows = drawn_rows(30)
    exact, found = (
        Shop(tmp_path / way, 5, rows, replace(PAIRS, evidence=way)).now.found["dcs"]
        for way in ("counted", "witnessed")
    )
    assert found.sampled.pairs == 30 * 29
    columns = [f"c{c}" for c in range(5)]
    known, estimated = (
        TryingPairs(each.space, columns, 30, known_pairs(each, 30)).tested(exact[:])
        for each in (exact, found)
    )
    assert known == estimated


def test_pairs_are_sampled_again_when_a_table_has_doubled(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 5, drawn_rows(30), replace(PAIRS, evidence="witnessed"))

    def sampled() -> tuple[tuple[str, ...], int]:
        record = shop.store.read().tables["t"].evidence["denial"]
        return record.files["sampled"], record.sampled_at

    first = sampled()
    assert first[1] == 30
    shop.apply(inserts=drawn_rows(31)[30:])
    assert sampled() == first
    shop.apply(inserts=drawn_rows(70)[31:])
    assert sampled()[1] == 70
    assert shop.now.found["dcs"].sampled.pairs == 70 * 69


# Covers of dependencies, against closures by brute force

COLUMNS = "abcde"


def closure(columns: set[str], known: Sequence[tuple[set[str], set[str]]]) -> set[str]:
    for _ in known:
        columns = columns.union(*(rhs for lhs, rhs in known if lhs <= columns))
    return columns


SIDES = st.sampled_from([*chain.from_iterable(combinations(COLUMNS, size) for size in range(4))])
DEPENDENCIES = st.lists(
    st.tuples(SIDES, st.sampled_from(COLUMNS)).filter(lambda each: each[1] not in each[0]),
    max_size=12,
    unique=True,
)


@given(DEPENDENCIES, st.lists(SIDES, max_size=2, unique=True))
def test_a_cover_implies_the_others_and_nothing_in_it_is_implied(
    dependencies: list[tuple[tuple[str, ...], str]], keys: list[tuple[str, ...]]
) -> None:
    scored = [
        Ranked(FunctionalDependency("t", lhs, rhs), 1 - at / 100)
        for at, (lhs, rhs) in enumerate(dependencies)
    ]
    found = covered(scored, [Key("t", key) for key in keys], COLUMNS)
    assert {each.constraint for each in found} == {each.constraint for each in scored}
    cover = [each.constraint for each in found if not each.implied_by]
    steps: Mapping[object, tuple[set[str], set[str]]] = {
        **{Key("t", key): (set(key), set(COLUMNS)) for key in keys},
        **{e: (set(e.lhs), {e.rhs}) for e in cover if isinstance(e, FunctionalDependency)},
    }
    for each in found:
        fd = each.constraint
        assert isinstance(fd, FunctionalDependency)
        if each.implied_by:
            used = [steps[by] for by in each.implied_by]
            assert fd.rhs in closure(set(fd.lhs), used)
        else:
            others = [step for of, step in steps.items() if of != fd]
            assert fd.rhs not in closure(set(fd.lhs), others)
