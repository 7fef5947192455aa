"""One inclusion dependency: which values are missing on the right, and in how many rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from holdfast.kinds.examine import Examiner
from holdfast.model.errors import SchemaError
from holdfast.model.explanation import NEAREST, Nearby
from holdfast.model.inclusion_dependencies import (
    EMPTY,
    HOLDS,
    UNKNOWN,
    Attribute,
    InclusionDependency,
)
from holdfast.model.options import Options
from holdfast.model.tuples import TupleSide
from holdfast.rules.form import Tables, columns_of
from holdfast.rules.version import Version
from holdfast.store.codecs import stored
from holdfast.values.shared import shared_values

if TYPE_CHECKING:
    from holdfast.rules.contained import ContainedTuples
    from holdfast.rules.question import Question

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
                raise SchemaError(
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

    def nearby(
        self, question: Question, version: Version, rule: InclusionDependency, holds: bool
    ) -> Nearby:
        """The largest parts of one that does not hold."""
        from holdfast.rules.contained import missing_tuples
        from holdfast.tasks.groups import ExampleLimits

        arity = len(rule.dependent)
        if holds or not 1 < arity <= _PARTS_UP_TO:
            return Nearby()
        parts = [
            InclusionDependency(
                tuple(rule.dependent[k] for k in places),
                tuple(rule.referenced[k] for k in places),
            )
            for size in range(arity - 1, 0, -1)
            for places in combinations(range(arity), size)
        ]
        forms = [self.form(part, {}, version.commit.options) for part in parts]
        results = missing_tuples(question, forms, ExampleLimits(0, 0))
        holding = [
            part
            for part, of_part in zip(parts, results, strict=True)
            if not any(result.facts["missing"] for result in of_part)
        ]
        largest = [part for part in holding if not any(_inside(part, other) for other in holding)]
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
        return False if version.commit.options.inclusion_nulls == "values" else None

    def _several(self, version: Version, rule: InclusionDependency) -> bool | None:
        """What was found of one with several columns, each of which is contained by itself."""
        record = version.commit.inclusion
        assert record is not None
        if "tuples" not in record.files:
            return None
        left, right = (version.commit.table(side[0].table).columns.names for side in rule.sides)
        wanted = {
            "table": rule.dependent[0].table,
            "columns": [left.index(each.column) for each in rule.dependent],
            "other": rule.referenced[0].table,
            "others": [right.index(each.column) for each in rule.referenced],
        }
        for row in stored(version.store, record.files["tuples"]).to_pylist():
            if all(row[name] == value for name, value in wanted.items()):
                status = row["status"]
                return None if status == UNKNOWN else status in (HOLDS, EMPTY)
        return None


def _inside(one: InclusionDependency, other: InclusionDependency) -> bool:
    mine, theirs = ({*zip(*each.sides, strict=True)} for each in (one, other))
    return mine < theirs
