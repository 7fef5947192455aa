"""All expectations of a profile in a version: declared, changed by a batch, verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.model.commits import Commit
from holdfast.model.expectations import Expectation, Group, Standing
from holdfast.rules.form import RuleForm
from holdfast.rules.question import Question
from holdfast.runtime.run import Run
from holdfast.table.change import RowChange
from holdfast.table.state import Table
from holdfast.tasks.segments import Segment
from holdfast.values.tuples import TupleCounts


@dataclass(frozen=True)
class Expected:
    """The expectations of a version, each with its form."""

    standings: tuple[Standing, ...] = ()
    forms: tuple[RuleForm, ...] = ()
    counts: TupleCounts = TupleCounts()  # noqa: RUF009  # a frozen value

    def __bool__(self) -> bool:
        return bool(self.standings)

    @property
    def is_counted(self) -> bool:
        """Whether batches change anything of it: rules are expected, or nearly hold."""
        return bool(self) or self.counts.stored is not None

    @staticmethod
    def stored(version: Commit, forms: tuple[RuleForm, ...]) -> Expected:
        """Those that a commit stored."""
        return Expected(version.expectations, forms, TupleCounts.of(version.tuples))

    @property
    def expectations(self) -> list[Expectation]:
        """What is expected, whether it holds or not."""
        return [standing.expectation for standing in self.standings]

    def declare(
        self,
        run: Run,
        wanted: Sequence[Expectation],
        forms: tuple[RuleForm, ...],
        tables: Mapping[str, Table],
        near: Sequence[RuleForm] = (),
    ) -> Expected:
        """Exactly the wanted expectations: those that were expected before keep their counts, and
        so do the rules that nearly hold (``near``)."""
        known = {standing.rule: standing.tally for standing in self.standings}
        counts = self.counts.declare(run, [*forms, *near], tables)
        numbers = {
            place: known[expectation.rule].violations
            for place, expectation in enumerate(wanted)
            if expectation.rule in known
        }
        fresh: dict[int, int | None] = {p: 0 for p in range(len(wanted)) if p not in numbers}
        # A table is a batch that brought all its rows.
        changes = [RowChange(table, table, table.segments) for table in tables.values()]
        numbers |= changed_numbers(run, forms, changes, fresh)
        for place, expectation in enumerate(wanted):
            if expectation.max_error:
                form = forms[place]
                form.expect_countable(expectation.rule, numbers[place], tables[form.table])
        return _expected(wanted, forms, counts, numbers, tables)

    def without(self, rule: str, near: Sequence[RuleForm] = ()) -> Expected:
        """The same without one rule; with the counts of the rules that nearly hold."""
        places = [place for place, old in enumerate(self.standings) if old.rule != rule]
        forms = tuple(self.forms[place] for place in places)
        standings = tuple(self.standings[place] for place in places)
        return Expected(standings, forms, self.counts.only([*forms, *near]))

    def change(
        self, run: Run, changes: Sequence[RowChange], tables: Mapping[str, Table]
    ) -> Expected:
        """After batches; ``tables`` are all of them, as they are afterwards."""
        rows = [rows for change in changes for rows in (change.arrived, change.departed)]
        counts = self.counts.change(run, rows)
        before = {place: old.violations for place, old in enumerate(self.standings)}
        numbers = changed_numbers(run, self.forms, changes, before)
        return _expected(self.expectations, self.forms, counts, numbers, tables)

    def compact(self, run: Run) -> Expected:
        """With runs of tuples merged where there are many."""
        return replace(self, counts=self.counts.compact(run))

    def compare(self, run: Run, tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
        """Where the counts are not those of the rows: the table, and a sentence about it."""
        fresh = Expected().declare(run, self.expectations, self.forms, tables)
        for stored, counted in zip(self.standings, fresh.standings, strict=True):
            if stored.removal is None:  # as versions of before have it
                counted = replace(counted, tally=replace(counted.tally, removal=None))
            if stored != counted:
                yield (
                    stored.expectation.tables[0],
                    f"the profile counts {_number(stored)} of the expected rule {stored.rule}, "
                    f"but the rows have {_number(counted)}",
                )

    def question(
        self,
        run: Run,
        tables: Mapping[str, Table],
        added: Mapping[str, tuple[Segment, ...]] | None = None,
    ) -> Question:
        """The rows that these rules are asked about, perhaps after a batch that added some."""
        return Question(run, tables, self.counts, added or {})

    def groups(self, question: Question, place: int) -> list[Group]:
        """Some rows that violate an expectation: for a key those that share it; for a dependency
        those that agree on its left side, one for each value on the right; pairs for other rules
        about two rows, row t first; and rows that violate it by themselves in one group. Where
        rows that a batch brought take part, their groups, and in these they come first."""
        form = self.forms[place]
        groups = form.groups(question, self.standings[place].violations)
        return question.groups(question.tables[form.table], groups)


def _number(standing: Standing) -> str:
    number, removal = standing.violations, standing.removal
    counted = "some violations" if number is None else f"{number:,} violations"
    return counted if removal is None else f"{counted} ({removal:,} rows would have to go)"


def changed_numbers(
    run: Run,
    forms: Sequence[RuleForm],
    changes: Sequence[RowChange],
    before: Mapping[int, int | None],
) -> dict[int, int | None]:
    """How many violations some rules, by their places, have after batches; form by form."""
    numbers = dict(before)
    for form in dict.fromkeys(type(forms[place]) for place in before):
        places = [place for place in before if type(forms[place]) is form]
        old = [before[place] for place in places]
        new = form.change(run, [forms[place] for place in places], changes, old)
        numbers |= dict(zip(places, new, strict=True))
    return numbers


def _expected(
    wanted: Sequence[Expectation],
    forms: tuple[RuleForm, ...],
    counts: TupleCounts,
    numbers: Mapping[int, int | None],
    tables: Mapping[str, Table],
) -> Expected:
    standings = tuple(
        Standing(each, form.tally(counts, numbers[place], tables))
        for place, (each, form) in enumerate(zip(wanted, forms, strict=True))
    )
    return Expected(standings, forms, counts)
