"""One inclusion dependency: which values are missing on the right, and in how many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from holdfast.input.row_input import Columns
from holdfast.kinds.examine import Examiner, Version
from holdfast.model.errors import InputError
from holdfast.model.explanation import NEAREST, Nearby, Removal, Violations
from holdfast.model.inclusion_dependencies import EMPTY, HOLDS, Attribute, InclusionDependency
from holdfast.model.options import Options
from holdfast.rules.form import Tables, TupleSide, columns_of
from holdfast.store.codecs import stored
from holdfast.values.shared import shared_values

if TYPE_CHECKING:
    from holdfast.kinds.question import Question
    from holdfast.rules.contained import ContainedTuples
    from holdfast.runtime.result import TaskResult
    from holdfast.runtime.runner import Call
    from holdfast.tasks.examine import Shown
    from holdfast.tasks.values import RowValues

_PARTS_UP_TO = 4
"""Columns up to which the parts of a dependency that does not hold are looked at."""


class InclusionExaminer(Examiner[InclusionDependency]):
    """Inclusion dependencies of one column or of several."""

    kind = "inclusion_dependencies"
    unit = "value"

    def checked(self, rule: InclusionDependency, tables: Tables) -> InclusionDependency:
        """Its columns are in the order of the left table; those of a pair can be equal."""
        places: dict[tuple[Attribute, Attribute], tuple[int, int]] = {}
        for pair in zip(rule.dependent, rule.referenced, strict=True):
            columns = [columns_of(attribute.table, tables) for attribute in pair]
            left, right = (
                each.position(attribute.column, attribute.table)
                for each, attribute in zip(columns, pair, strict=True)
            )
            families = columns[0].family(left), columns[1].family(right)
            if families[0] != families[1]:
                raise InputError(
                    f"{rule}: {pair[0]} has values of the kind {families[0]} and {pair[1]} of the "
                    f"kind {families[1]}, which are never equal"
                )
            places[pair] = left, right
        pairs = sorted(places, key=lambda pair: places[pair])
        return InclusionDependency(
            tuple(left for left, _ in pairs), tuple(right for _, right in pairs)
        )

    def form(self, rule: InclusionDependency, tables: Tables, options: Options) -> ContainedTuples:  # noqa: ARG002
        """Tuples of the left side, and those of the right side."""
        from holdfast.rules.contained import ContainedTuples

        nulls = options.inclusion_nulls == "values"
        left, right = (
            TupleSide(side[0].table, tuple(attribute.column for attribute in side), nulls)
            for side in rule.sides
        )
        return ContainedTuples(replace(left, of=str(rule)), right)

    def cells(self, rule: InclusionDependency) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The values that are missing."""
        return (), tuple(each.column for each in rule.dependent)

    def violations(self, question: Question, rule: InclusionDependency) -> Violations:
        """Rows whose values are not on the right: all of them would have to go."""
        table = question.table(rule.dependent[0].table)
        [results] = _orphans(question, [rule], question.shown)
        values, every, missing, rows = (
            sum(each.facts[what] for each in results)
            for what in ("values", "all_rows", "missing", "rows")
        )
        return Violations(
            rows,
            missing,
            removal=Removal(rows, rows),
            examples=question.examples(table, results),
            tested=every,
            coverage=(values - missing) / values if values else 1.0,
        )

    def nearby(self, question: Question, rule: InclusionDependency, holds: bool) -> Nearby:
        """The largest parts of one that does not hold."""
        from holdfast.tasks.examine import Shown

        arity = len(rule.dependent)
        if holds or not 1 < arity <= _PARTS_UP_TO:
            return Nearby()
        chosen = [
            InclusionDependency(
                tuple(rule.dependent[k] for k in places),
                tuple(rule.referenced[k] for k in places),
            )
            for size in range(arity - 1, 0, -1)
            for places in combinations(range(arity), size)
        ]
        results = _orphans(question, chosen, Shown(0, 0))
        held = [each for each, mine in zip(chosen, results, strict=True) if not _missing(mine)]
        largest = [each for each in held if not any(_inside(each, other) for other in held)]
        return Nearby(tuple(largest[:NEAREST]))

    def source(self, version: Version, rule: InclusionDependency) -> Any:  # noqa: ARG002
        """The files of shared values."""
        record = version.commit.inclusion
        if record is None:
            return None
        return record.overlaps, record.files["distinct"], record.files.get("tuples")

    def held(self, version: Version, rule: InclusionDependency) -> bool | None:
        """Whether all values were on the right, as far as that was looked for."""
        record = version.commit.inclusion
        if record is None:
            return None
        shared = shared_values(version.store, record)
        pairs = list(zip(*rule.sides, strict=True))
        own = [shared.distinct[a] for a, _ in pairs]
        alone = [shared.common(*pair) == size for pair, size in zip(pairs, own, strict=True)]
        if len(pairs) == 1:
            return alone[0]
        if rule.dependent == rule.referenced or 0 in own:
            return True  # where a column has no values, no row has all of them
        if all(alone):
            return self._several(version, rule)
        # What a column lacks by itself may occur only beside a null, in a row that is ignored.
        return False if version.options["inclusion_nulls"] == "values" else None

    def _several(self, version: Version, rule: InclusionDependency) -> bool | None:
        """What was found of one with several columns, each of which is contained by itself."""
        record = version.commit.inclusion
        assert record is not None
        if "tuples" not in record.files:
            return None
        left, right = (_columns(version, side) for side in rule.sides)
        wanted = {
            "table": rule.dependent[0].table,
            "columns": [left.names.index(each.column) for each in rule.dependent],
            "other": rule.referenced[0].table,
            "others": [right.names.index(each.column) for each in rule.referenced],
        }
        for row in stored(version.store, record.files["tuples"]).to_pylist():
            if all(row[name] == value for name, value in wanted.items()):
                return row["status"] in (HOLDS, EMPTY)
        return None


def _missing(results: Sequence[TaskResult]) -> int:
    return sum(each.facts["missing"] for each in results)


def _inside(one: InclusionDependency, other: InclusionDependency) -> bool:
    mine, theirs = ({*zip(*each.sides, strict=True)} for each in (one, other))
    return mine < theirs


def _columns(version: Version, side: tuple[Attribute, ...]) -> Columns:
    return Columns.stored(version.commit.table(side[0].table).columns)


def _family(columns: Columns, attribute: Attribute) -> str:
    return columns.family(columns.position(attribute.column, attribute.table))


def _cells(question: Question, side: tuple[Attribute, ...]) -> RowValues:
    from holdfast.tasks.values import RowValues
    from holdfast.tasks.values import ValueColumns as Values

    table, options = question.table(side[0].table), question.run.options
    places = tuple(table.columns.position(each.column, each.table) for each in side)
    kinds = tuple(_family(table.columns, each) for each in side)
    return RowValues(
        table.view(question.run.store.path, options),
        table.columns.schema,
        (Values(0, places, kinds),),
        options.inclusion_nulls == "values",
    )


def _orphans(
    question: Question, rules: Sequence[InclusionDependency], shown: Shown
) -> list[list[TaskResult]]:
    """What tasks say of the values of several dependencies: one where there are few rows, else one
    for each range of codes, which are written first."""
    from holdfast.table.exchange import exchanged
    from holdfast.table.placement import parts, shares
    from holdfast.tasks import examine as tasks

    runner, root = question.run.runner, question.run.store.path
    prefix = question.run.destination.prefix
    sides = [tuple(_cells(question, side) for side in rule.sides) for rule in rules]
    counts = [max(parts(runner, each.view) for each in both) for both in sides]
    calls: list[list[Call]] = []
    writing: list[Call] = [
        (tasks.coded, tasks.Coded(replace(each, view=share), prefix))
        for both, count in zip(sides, counts, strict=True)
        for each in both
        for share in shares(each.view, count)
        if count > 1
    ]
    with exchanged(runner, root, writing) as written:
        files = iter([file for mine in written for file in mine])
        for both, count in zip(sides, counts, strict=True):
            if count == 1:
                dependent, referenced = both
                calls.append([(tasks.orphans, tasks.Orphans(dependent, referenced, shown))])
                continue
            left, right = (tuple(next(files) for _ in shares(each.view, count)) for each in both)
            calls.append(
                [
                    (tasks.orphans_in, tasks.OrphansIn(root, left, right, part, count, shown))
                    for part in range(count)
                ]
            )
        results = iter(runner.run([call for mine in calls for call in mine]))
        return [[each for _ in mine for each in next(results)] for mine in calls]
