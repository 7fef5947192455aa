"""Which inclusion dependencies are foreign keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from holdfast.model.constraints import Key
from holdfast.model.inclusion_dependencies import Attribute, ForeignKey, InclusionDependency
from holdfast.model.names import words_of
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
        names = sum(_alike(a, b) for a, b in zip(left, right, strict=True)) / len(left)
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


def _alike(one: Attribute, two: Attribute) -> float:
    """How alike a column's name is to the one that it may refer to: 0 to 1.

    >>> _alike(Attribute("orders", "customer_id"), Attribute("customers", "id"))
    1.0
    >>> _alike(Attribute("lineitem", "l_orderkey"), Attribute("orders", "o_orderkey"))
    1.0
    """
    mine, theirs = _words(one), _words(two)
    table = [_singular(word) for word in words_of(two.table)]
    whole = max(_ratio(mine, theirs), _ratio(mine, table + theirs), _ratio(mine, table) * 0.9)
    # A name such as "id" says the same of every table: it is the table's name that counts.
    if mine == theirs and len("".join(mine)) <= 3:
        return min(whole, 0.5)
    return whole


def _ratio(one: list[str], two: list[str]) -> float:
    if one == two:
        return 1.0
    return SequenceMatcher(None, "".join(one), "".join(two), autojunk=False).ratio() ** 2


def _words(attribute: Attribute) -> list[str]:
    """The words of a column's name, without a prefix that abbreviates its table's."""
    words = words_of(attribute.column)
    table = "".join(words_of(attribute.table))
    if len(words) > 1 and len(words[0]) <= 3 and _abbreviates(words[0], table):
        words = words[1:]
    return [_singular(word) for word in words]


def _abbreviates(short: str, long: str) -> bool:
    """Whether the letters occur in this order, beginning with the first."""
    rest = iter(long)
    return long.startswith(short[:1]) and all(letter in rest for letter in short)


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
