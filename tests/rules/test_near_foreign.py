"""Foreign keys that nearly hold: what is kept is what the rows say, whichever table a batch
changes, and which of several writers was first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.model.changes import BatchChanges
from holdfast.model.errors import InputError
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.model.near import NearList, NearRule
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess
from holdfast.store import Store
from holdfast.store.log import Log
from tests import oracle
from tests.flow.tables import folder, row_input, small_limits
from tests.flow.test_law import law
from tests.rules.test_expectations import Tables, named
from tests.rules.test_near_kept import near_list, wanted
from tests.strategies import Rows

PARENTS = 40
RULE = "t(c0) in u(c0)"


def options(**given: Any) -> Options:
    return Options(kinds=("keys", "fds", "inds"), near_columns=1, **given)


def foreign(near: NearList) -> dict[str, NearRule]:
    """The foreign keys of a list."""
    return {str(e.rule): e for e in near.rules if isinstance(e.rule, InclusionDependency)}


def assert_kept(kept: Tables) -> None:
    """Whatever is listed is as the oracle counts it."""
    for table, rows in kept.rows.items():
        for near in near_list(kept, table).rules:
            rule = parse(str(near.rule))
            assert near.of_rows == len(rows)
            if isinstance(rule, InclusionDependency):
                assert (near.removal, near.values, near.of_values) == missing(kept, rule), near
            else:
                now = near.removal, near.strength, near.values, near.rows
                assert now == wanted(near, rows, kept.options.nulls), near


def missing(kept: Tables, rule: InclusionDependency) -> tuple[int, int, int]:
    """Rows without a match, values that are missing, and all values, as the oracle counts them."""
    return oracle.tally(rule, named(kept.rows), kept.options.nulls, kept.options.inclusion_nulls)


def assert_listed(kept: Tables, before: NearList, held: set[str], after: NearList) -> None:
    """What a batch breaks of the watched foreign keys that held is listed, if few values miss;
    and what was listed leaves when twice as many do."""
    listed = foreign(before)
    for text in {*before.watched, *listed} - {*before.dismissed}:
        rule = parse(text)
        if isinstance(rule, InclusionDependency):
            _, values, every = missing(kept, rule)
            bound = kept.options.near_missing * (1 if text in held and text not in listed else 2)
            if text in listed or (text in held and values):
                assert (text in foreign(after)) == (values <= bound * every), text


def assert_told(
    changes: BatchChanges, before: dict[str, NearList], after: dict[str, NearList]
) -> None:
    """A batch tells once of every foreign key that other numbers of rows break, or that is listed
    from now on, or not any more."""
    told = [each for table in changes.by_table.values() for each in table.near if "(" in each.rule]
    told = [each for each in told if isinstance(parse(each.rule), InclusionDependency)]
    old, new = (
        {rule: each for near in lists.values() for rule, each in foreign(near).items()}
        for lists in (before, after)
    )
    wanted = {
        rule: (old.get(rule), new.get(rule))
        for rule in {*old, *new}
        if rule not in old or rule not in new or old[rule].removal != new[rule].removal
    }
    assert len(told) == len(wanted)
    assert {each.rule: (each.before, each.after) for each in told} == wanted


def cell(random: Random, wrong: float) -> int | None:
    """A value of the dependent column: mostly one that there is."""
    if random.random() < wrong:
        return random.choice([None, 90, 91, random.randrange(PARENTS, 80)])
    return random.randrange(PARENTS)


def children(random: Random, number: int, wrong: float = 0.03) -> Rows:
    """Rows that refer to others, and in which c1 follows from c0, but for a few."""
    rows: Rows = []
    for _ in range(number):
        parent = cell(random, wrong)
        kind = random.randrange(9) if random.random() < wrong else ((parent or 0) * 7 + 1) % 5
        rows.append((parent, kind, random.randrange(1_000)))
    return rows


def parents(random: Random) -> Rows:
    """Rows with one number each, but for a few."""
    rows: Rows = [(number, random.randrange(3), number // 2) for number in range(PARENTS)]
    if random.random() < 0.3:
        rows.append((random.choice([0, None]), 7, 7))
    return rows


BOUNDS: dict[str, Any] = {"near_key_removal": 0.1, "near_missing": 0.2, "near_strength": 0.3}
SMALL: dict[str, list[int]] = {
    "segment_rows": [1 << 20, 30],
    "task_cells": [1 << 20, 1],
    "task_entries": [1 << 20, 40],
    "merged_runs": [2, 4],
    "merged_segments": [2, 8],
    "lookup_rows": [1 << 12, 16],
}


@law(20)
@given(seed=st.integers(0, 1 << 30))
def test_kept_near_rules_of_two_tables_are_those_of_the_rows(seed: int) -> None:
    with folder() as path:
        near_rules_of_two_tables(Path(path), seed)


def near_rules_of_two_tables(path: Path, seed: int) -> None:
    """The law: whatever batches come, what is kept is what the rows say."""
    random = Random(seed)
    insert_only = random.random() < 0.3
    given = options(
        nulls=random.choice(["equal", "unequal"]),
        inclusion_nulls=random.choice(["ignored", "values"]),
        insert_only=insert_only,
        **BOUNDS,
    )
    limits = {name: random.choice(values) for name, values in SMALL.items()}
    with small_limits(**limits):
        tables = {"t": children(random, 150, random.choice([0, 0.03])), "u": parents(random)}
        kept = Tables(path / "p", tables, given, random.randint(1, 3))
        assert_kept(kept)
        for _ in range(random.randint(1, 5)):
            batch, after = changed(random, kept.rows, insert_only)
            before = {name: near_list(kept, name) for name in kept.rows}
            held = {rule for rule in watched(before) if not missing(kept, watched(before)[rule])[0]}
            checked = kept.apply_together(batch, dry_run=True)
            changes = kept.apply_together(batch)
            kept.rows |= after
            lists = {name: near_list(kept, name) for name in kept.rows}
            assert_kept(kept)
            assert_told(changes, before, lists)
            if all(lists[name].since == before[name].since for name in lists):
                for name, near in lists.items():
                    assert_listed(kept, before[name], held, near)
                told = [[e.near for e in each.by_table.values()] for each in (checked, changes)]
                assert told[0] == told[1]
        assert flow.verify(kept.runner, kept.store, no_progress).equal


def watched(lists: dict[str, NearList]) -> dict[str, InclusionDependency]:
    """The foreign keys among the rules that are watched."""
    rules = {text: parse(text) for near in lists.values() for text in near.watched}
    return {text: rule for text, rule in rules.items() if isinstance(rule, InclusionDependency)}


def changed(
    random: Random, rows: dict[str, Rows], insert_only: bool
) -> tuple[dict[str, Any], dict[str, Rows]]:
    """A batch of one table or both, and the rows of these afterwards."""
    batch: dict[str, Any] = {}
    after: dict[str, Rows] = {}
    for name in random.choice(["t", "u", "tu"]):
        old = rows[name]
        gone = [] if insert_only else random.sample(range(len(old)), random.choice([0, 1, 4]))
        came = children(random, random.choice([0, 3, 20]))
        if name == "u":
            came = [(random.randrange(PARENTS, 92), 1, 1)] * random.choice([0, 0, 1])
            came += [old[0]] * random.choice([0, 0, 1])
        batch[name] = {"inserts": came}
        if not insert_only:
            batch[name]["deletes"] = [old[place] for place in gone]
        after[name] = [row for place, row in enumerate(old) if place not in gone] + came
    return batch, after


CLEAN = {
    "t": [(number % PARENTS, number % 3, number) for number in range(200)],
    "u": [(number, number % 3, number // 2) for number in range(PARENTS)],
}


@pytest.fixture
def kept(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "p", CLEAN, options())


def stray(kept: Tables) -> NearRule:
    return foreign(near_list(kept))[RULE]


def test_a_foreign_key_that_misses_a_value_is_found(tmp_path: Path) -> None:
    rows = {**CLEAN, "t": [*CLEAN["t"], (77, 0, 0), (77, 1, 1)]}
    kept = Tables(tmp_path / "p", rows, options())
    near = stray(kept)
    assert (near.removal, near.of_rows, near.values, near.of_values) == (2, 202, 1, PARENTS + 1)
    assert not near.holds
    inclusions = snapshot(kept.store).inclusions
    assert inclusions is not None
    likely = [each for each in inclusions.foreign_keys(0.95) if str(each) == RULE]
    assert likely[0].score >= 0.6


def test_one_that_misses_many_values_is_not(tmp_path: Path) -> None:
    strays = [(1_000 + number, 0, 0) for number in range(3)]
    kept = Tables(tmp_path / "p", {**CLEAN, "t": [*CLEAN["t"], *strays]}, options())
    assert RULE not in foreign(near_list(kept))
    flow.look_for_near(kept.runner, kept.store, ["t"], {"near_missing": 0.2}, no_progress)
    assert stray(kept).removal == 3


def test_one_into_a_key_that_nearly_holds_is_found(tmp_path: Path) -> None:
    parents = [*CLEAN["u"], (0, 9, 9)]
    rows = {"t": [*CLEAN["t"], (77, 0, 0)], "u": parents}
    kept = Tables(tmp_path / "p", rows, options(near_key_removal=0.1))
    assert "u: key(c0)" in {str(each.rule) for each in near_list(kept, "u").near}
    assert stray(kept).removal == 1


def test_without_inclusions_there_are_none(tmp_path: Path) -> None:
    rows = {**CLEAN, "t": [*CLEAN["t"], (77, 0, 0)]}
    kept = Tables(tmp_path / "p", rows, Options(kinds=("keys", "fds")))
    assert not foreign(near_list(kept))


def test_one_that_held_is_watched_and_holds_again(kept: Tables) -> None:
    assert RULE in near_list(kept).watched
    assert kept.store.read().tuples is None
    told = kept.apply("t", inserts=[(77, 0, 0), (77, 1, 1), (None, 2, 2)])
    [change] = [each for each in told.near if each.rule == RULE]
    assert (change.before, change.more) == (None, 2)
    assert stray(kept).values == 1
    again = kept.apply("t", deletes=[(77, 0, 0), (77, 1, 1)])
    [change] = [each for each in again.near if each.rule == RULE]
    assert change.after is not None
    assert change.after.holds
    assert near_list(kept).near == ()
    assert stray(kept).of_values == PARENTS


def test_a_batch_of_the_referenced_table_changes_the_other_ones_list(kept: Tables) -> None:
    manifest = kept.store.read().tables.manifests["t"]
    told = kept.apply("u", deletes=[(7, 1, 3)])
    [change] = [each for each in told.near if each.rule == RULE]
    assert change.more == stray(kept).removal == 5
    assert kept.store.read().tables.manifests["t"] != manifest
    repaired = kept.apply("u", inserts=[(7, 5, 5)])
    assert [each.more for each in repaired.near if each.rule == RULE] == [-5]
    assert stray(kept).holds
    manifest = kept.store.read().tables.manifests["t"]
    assert not kept.apply("u", inserts=[(99, 5, 5)]).near
    assert kept.store.read().tables.manifests["t"] == manifest


def test_manifests_of_tables_that_refer_elsewhere_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {**CLEAN, "v": [(number, 5, 5) for number in range(500, 560)]}
    kept = Tables(tmp_path / "p", rows, options())
    manifests = kept.store.read().tables.manifests
    read: list[str] = []
    manifest = Log._manifest

    def noted(log: Log, path: str) -> Any:
        read.append(path)
        return manifest(log, path)

    monkeypatch.setattr(Log, "_manifest", noted)
    batch = flow.Batch(deletes=row_input(kept.kinds, [(7, 1, 3)]))
    flow.apply(kept.runner, Store(kept.store.path), "u", batch, no_progress, dry_run=True)
    assert manifests["t"] in read
    assert manifests["v"] not in read


def test_one_of_several_columns_is_watched(tmp_path: Path) -> None:
    pairs = [(number % 8, number // 8, number) for number in range(PARENTS)]
    rows = {"t": [*pairs, *pairs], "u": pairs}
    kept = Tables(tmp_path / "p", rows, options(max_arity=2))
    wide = "t(c0, c1) in u(c0, c1)"
    watched = near_list(kept).watched
    kept.apply("u", deletes=[(3, 2, 19)])
    listed = foreign(near_list(kept))
    assert (wide in listed) == (wide in watched)
    kept.rows["u"] = [row for row in pairs if row != (3, 2, 19)]
    assert_kept(kept)
    assert "t(c2) in u(c2)" in listed


def test_a_dismissed_one_is_not_listed_again(kept: Tables) -> None:
    kept.apply("t", inserts=[(77, 0, 0)])
    flow.dismiss(kept.store, parse(RULE))
    assert RULE not in foreign(near_list(kept))
    with pytest.raises(InputError, match="none of the rules that are looked for as nearly"):
        flow.dismiss(kept.store, parse("t: c0 not null"))
    flow.look_for_near(kept.runner, kept.store, ["t", "u"], {}, no_progress)
    assert RULE not in foreign(near_list(kept))
    kept.apply("u", deletes=[(7, 1, 3)])
    assert RULE not in foreign(near_list(kept))


class Meanwhile(InProcess):
    """Another writer changes another table while this one works."""

    def __init__(self, kept: Tables, table: str, **batch: Any) -> None:
        super().__init__(2)
        self.kept, self.table, self.batch = kept, table, batch
        self.done = False

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        if not self.done:
            self.done = True
            other: Any = {
                kind: row_input(self.kept.kinds, rows) for kind, rows in self.batch.items()
            }
            path = self.kept.store.path
            flow.apply(InProcess(), Store(path), self.table, flow.Batch(**other), no_progress)
        return super().run(calls)

    def sharing(self, prefix: str) -> InProcess:
        return self


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("first", ["t", "u"])
def test_another_writer_may_be_first(kept: Tables, first: str, listed: bool) -> None:
    """Both change what misses a value: the one that comes later builds on both."""
    rows = {name: [*of_table] for name, of_table in CLEAN.items()}
    if listed:
        kept.apply("t", inserts=[(88, 0, 0)])
        rows["t"].append((88, 0, 0))
    batches: dict[str, Any] = {
        "t": {"inserts": [(77, 0, 0), (78, 0, 0)]},
        "u": {"inserts": [(77, 0, 0)], "deletes": [(7, 1, 3)]},
    }
    [second] = {"t", "u"} - {first}
    kept.runner = Meanwhile(kept, first, **batches[first])
    kept.apply(second, **batches[second])
    rows["t"] += batches["t"]["inserts"]
    rows["u"] = [row for row in rows["u"] if row != (7, 1, 3)] + batches["u"]["inserts"]
    kept.rows, kept.runner = dict(rows), InProcess(2)
    assert stray(kept).removal == 6 + listed
    assert_kept(kept)
    assert flow.verify(kept.runner, kept.store, no_progress).equal
    kept.apply("t", rows["t"] + [(79, 0, 0)], inserts=[(79, 0, 0)])
    assert_kept(kept)


def test_a_table_that_has_doubled_is_searched_again(kept: Tables) -> None:
    more = [(number % PARENTS, 5, 1_000 + number) for number in range(200)]
    strays = [(77, 5, 1), (78, 5, 2)]
    kept.apply("t", [*CLEAN["t"], *more, *strays], inserts=[*more, *strays])
    assert near_list(kept).since == 2
    assert stray(kept).values == 2
    assert_kept(kept)


def test_verify_recounts_them(kept: Tables) -> None:
    kept.apply("t", inserts=[(77, 0, 0)])
    verified = flow.verify(kept.runner, kept.store, no_progress)
    assert verified.equal
