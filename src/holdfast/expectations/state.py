"""All expectations of a profile in a version: declared, changed by a batch, verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.expectations import pairs, tuples
from holdfast.expectations.tuples import Tuples
from holdfast.kinds import registry
from holdfast.kinds.single_rows import tested
from holdfast.model.commits import Commit, TuplesRecord
from holdfast.model.expectations import Expectation, Standing, Tally
from holdfast.model.lazily import Lazily
from holdfast.model.options import Options
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.contained import ContainedTuples
from holdfast.rules.form import RuleForm
from holdfast.rules.pairs import RowPairs
from holdfast.rules.single_rows import SingleRows
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.change import RowChange, TableRows
from holdfast.table.state import Table

SHOWN = tuples.SHOWN

_NOTHING = Tuples(TuplesRecord())


@dataclass(frozen=True)
class Expected:
    """The expectations of a version, each with what it is measured by."""

    standings: tuple[Standing, ...] = ()
    measures: tuple[RuleForm, ...] = ()
    tuples: Tuples = _NOTHING

    def __bool__(self) -> bool:
        return bool(self.standings)

    @staticmethod
    def stored(version: Commit, tables: Mapping[str, Table]) -> Expected:
        """Those that a commit stored."""
        expectations = [each.expectation for each in version.expectations]
        measures = _measures(expectations, tables, version.options)
        counted = Tuples(version.tuples) if version.tuples else _NOTHING
        return Expected(version.expectations, measures, counted)

    @property
    def record(self) -> TuplesRecord | None:
        """What a commit stores beside the standings."""
        return self.tuples.record if self.tuples.record.sides else None

    def concern(self, table: str) -> list[int]:
        """Which of them a table's rows can break."""
        places = enumerate(self.standings)
        return [place for place, each in places if table in each.expectation.tables]


def declared(
    run: Run, before: Expected, wanted: Sequence[Expectation], tables: Mapping[str, Table]
) -> Expected:
    """Exactly these expectations: those that were expected before keep their counts."""
    known = {each.rule: each.tally for each in before.standings}
    measures = _measures(wanted, tables, run.options)
    counted = tuples.declared(run, before.tuples, measures, tables)
    numbers = {
        place: known[each.rule].violations
        for place, each in enumerate(wanted)
        if each.rule in known
    }
    new = [place for place in range(len(wanted)) if place not in numbers]
    numbers |= _of_rows(run, measures, new, [TableRows.living(t) for t in tables.values()])
    for name, table in tables.items():
        mine = _about_pairs(measures, name, new)
        counts = pairs.declared(run, table, [rule for _, rule in mine])
        numbers |= {place: number for (place, _), number in zip(mine, counts, strict=True)}
    for place, each in enumerate(wanted):
        if isinstance(measures[place], RowPairs) and each.max_error:
            table = tables[each.tables[0]]
            pairs.expect_countable(table, each.rule, numbers[place])
    return _expected(wanted, measures, counted, numbers, tables)


def without(before: Expected, rule: str) -> Expected:
    """The same without one rule."""
    kept = [place for place, each in enumerate(before.standings) if each.rule != rule]
    measures = tuple(before.measures[place] for place in kept)
    standings = tuple(before.standings[place] for place in kept)
    return Expected(standings, measures, tuples.only(before.tuples, measures))


def changed(
    run: Run, before: Expected, changes: Sequence[RowChange], tables: Mapping[str, Table]
) -> Expected:
    """After batches; ``tables`` are all of them, as they are afterwards."""
    rows = [some for change in changes for some in (change.arrived, change.departed)]
    counted = tuples.changed(run, before.tuples, rows)
    numbers = {place: each.tally.violations for place, each in enumerate(before.standings)}
    for place, more in _of_rows(run, before.measures, [*numbers], rows).items():
        numbers[place] = (numbers[place] or 0) + more
    for change in changes:
        mine = _about_pairs(before.measures, change.after.name, [*numbers])
        old = [numbers[place] for place, _ in mine]
        counts = pairs.changed(run, change, [rule for _, rule in mine], old)
        numbers |= {place: number for (place, _), number in zip(mine, counts, strict=True)}
    wanted = [each.expectation for each in before.standings]
    return _expected(wanted, before.measures, counted, numbers, tables)


def compacted(run: Run, expected: Expected) -> Expected:
    """With runs of tuples merged where there are many."""
    counted = Tuples(tuples.compacted(run, expected.tuples.record))
    return replace(expected, tuples=counted)


def differences(run: Run, kept: Expected, tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Where the kept counts are not those of the rows: the table, and a sentence about it."""
    wanted = [each.expectation for each in kept.standings]
    fresh = declared(run, Expected(), wanted, tables)
    for mine, theirs in zip(kept.standings, fresh.standings, strict=True):
        if mine != theirs:
            yield (
                mine.expectation.tables[0],
                f"the profile counts {_said(mine)} of the expected rule {mine.rule}, "
                f"but the rows have {_said(theirs)}",
            )


def _said(standing: Standing) -> str:
    number = standing.violations
    return "some violations" if number is None else f"{number:,} violations"


def _measures(
    wanted: Sequence[Expectation], tables: Mapping[str, Table], options: Options
) -> tuple[RuleForm, ...]:
    columns = Lazily(tables, lambda name: tables[name].columns)
    rules = [each.constraint for each in wanted]
    return tuple(registry.of(rule).form(rule, columns, options) for rule in rules)


def _of_rows(
    run: Run, measures: Sequence[RuleForm], places: Sequence[int], rows: Sequence[TableRows]
) -> dict[int, int]:
    """By how many rows more some rules about rows are violated, in one job."""
    asked = [(p, each) for p in places if isinstance(each := measures[p], SingleRows)]
    numbers = {place: 0 for place, _ in asked}
    calls: list[Call] = []
    owners: list[list[int]] = []
    for some in rows:
        mine = [(place, rule) for place, rule in asked if rule.table == some.table.name]
        if mine and some.count:
            rules = tuple(rule.rule for _, rule in mine if rule.rule is not None)
            calls += tested(run, some, rules, 0)
            owners += [[place for place, _ in mine]] * (len(calls) - len(owners))
    for places_of, result in zip(owners, run.runner.run(calls) if calls else [], strict=True):
        for task_result in result:
            for place, more in zip(places_of, task_result.arrays["number"], strict=True):
                numbers[place] += int(more)
    return numbers


def _about_pairs(
    measures: Sequence[RuleForm], table: str, places: Sequence[int]
) -> list[tuple[int, RowPairs]]:
    asked = [(place, measures[place]) for place in places]
    return [(p, each) for p, each in asked if isinstance(each, RowPairs) and each.table == table]


def _expected(
    wanted: Sequence[Expectation],
    measures: tuple[RuleForm, ...],
    counted: Tuples,
    numbers: Mapping[int, int | None],
    tables: Mapping[str, Table],
) -> Expected:
    standings = tuple(
        Standing(each, _tally(measures[place], counted, numbers.get(place), tables))
        for place, each in enumerate(wanted)
    )
    return Expected(standings, measures, counted)


def _tally(
    rule: RuleForm, counted: Tuples, number: int | None, tables: Mapping[str, Table]
) -> Tally:
    if isinstance(rule, ContainedTuples):
        left, reference = counted.side(rule.left), counted.reference(rule)
        return Tally(left.rows - reference.rows, left.distinct - reference.distinct, left.distinct)
    size = tables[rule.table].rows
    if isinstance(rule, SingleRows):
        return Tally(number, number, size)
    if isinstance(rule, RowPairs):
        return Tally(number, number, size * (size - 1))
    assert isinstance(rule, AgreeingTuples)
    everything = size * (size - 1) // 2
    lhs = counted.side(rule.lhs).pairs if rule.lhs.columns else everything
    both = 0 if rule.both is None else counted.side(rule.both).pairs
    times = 2 if rule.ordered else 1
    return Tally(times * (lhs - both), times * (lhs - both), times * everything)
