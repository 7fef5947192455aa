"""Which inclusion dependencies are foreign keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.model.constraints import Key
from holdfast.model.inclusion_dependencies import ForeignKey, InclusionDependency
from holdfast.model.likeness import alike
from holdfast.model.precision import in_microseconds
from holdfast.values.shared import Shared


@dataclass(frozen=True)
class Facts:
    """What the score of a foreign key looks at, of one table."""

    keys: tuple[Key, ...]
    types: Mapping[str, str]
    rows: int


def foreign_keys(
    dependencies: Iterable[InclusionDependency], tables: Mapping[str, Facts], shared: Shared
) -> list[ForeignKey]:
    """The inclusions in a minimal key of another table, the likeliest first.

    The score, from 0 to 1, is the coverage times a weighted mean of

    ==================  ===  ====================================================================
    names               0.6  how alike the names are, column by column: the dependent's beside the
                             referenced one, and beside it with its table's name
    share used          0.2  how many of the key's values occur in the dependent column (its square
                             root, so that a tenth still counts)
    types               0.1  whether both columns have the same type, at any precision of times
    cardinality         0.1  whether the dependent's values recur: several rows refer to one
    ==================  ===  ====================================================================

    and halved where a column that is a key of its own table, and not named alike, lies inside a
    key of numbers: two sequences that both count from 1 contain each other by chance.
    """
    distinct = shared.overlaps.distinct
    keys = []
    for each in dependencies:
        left, right = each.dependent, each.referenced
        own, other = tables.get(left[0].table), tables.get(right[0].table)
        if own is None or other is None or left[0].table == right[0].table:
            continue
        columns = {attribute.column for attribute in right}
        if not any(set(key.columns) == columns for key in other.keys):
            continue
        names = sum(alike(a, b) for a, b in zip(left, right, strict=True)) / len(left)
        pairs = [(shared.number[a], shared.number[b]) for a, b in zip(left, right, strict=True)]
        coverage = each.coverage or 0.0
        # One of several columns holds for each of them alone.
        used = min(coverage * int(distinct[a]) / max(1, int(distinct[b])) for a, b in pairs)
        same = sum(
            in_microseconds(own.types[a.column]) == in_microseconds(other.types[b.column])
            for a, b in zip(left, right, strict=True)
        )
        most = max(int(distinct[a]) for a, _ in pairs)
        recur = 1.0 - most / max(own.rows, 1)
        score = 0.6 * names + 0.2 * used**0.5 + 0.1 * same / len(left) + 0.1 * max(recur, 0.0)
        keyed = any(set(key.columns) == {a.column for a in left} for key in own.keys)
        if keyed and names < 0.8 and all(shared.families[b] == "number" for _, b in pairs):
            score /= 2
        keys.append(ForeignKey(left, right, round(coverage * score, 4), coverage))
    return sorted(keys, key=lambda each: (-each.score, str(each)))
