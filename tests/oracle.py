"""Slow, obvious versions of every stage, to hold the fast ones against."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, permutations, product
from typing import Any

from holdfast.model import identifiers
from holdfast.model.column_values import Domain, Pattern, ValueRule
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.likeness import alike
from holdfast.model.near import NearBounds
from holdfast.model.whole_tables import RowCount, TableRule

# --- covers -------------------------------------------------------------------------------


def minimal_sets(
    atoms: int, evidence: Iterable[Iterable[int]], max_size: int | None = None
) -> list[tuple[int, ...]]:
    """Minimal sets of atoms that no evidence contains, by size, then lexicographically."""
    shown = [frozenset(each) for each in evidence]
    found: list[frozenset[int]] = []
    for size in range((atoms if max_size is None else min(atoms, max_size)) + 1):
        for columns in combinations(range(atoms), size):
            candidate = frozenset(columns)
            contained = any(candidate <= each for each in shown)
            if not contained and not any(smaller <= candidate for smaller in found):
                found.append(candidate)
    return [tuple(sorted(each)) for each in found]


def minimal_sets_stepwise(
    atoms: int, evidence: Iterable[Iterable[int]], max_size: int | None = None
) -> list[tuple[int, ...]]:
    """The same for many atoms: one evidence after the other, supersets thrown out each time."""
    sets = {frozenset[int]()}
    for each in evidence:
        shown = frozenset(each)
        broken = {one for one in sets if one <= shown}
        grown = {one | {atom} for one in broken for atom in set(range(atoms)) - shown}
        grown |= sets - broken
        sets = {one for one in grown if not any(other < one for other in grown)}
    short = [one for one in sets if max_size is None or len(one) <= max_size]
    return sorted((tuple(sorted(one)) for one in short), key=lambda one: (len(one), one))


def minimal_within(
    atoms: int,
    evidence: Iterable[tuple[Iterable[int], int]],
    most: int,
    limit: int | None = None,
    without: int | None = None,
    groups: list[int] | None = None,
    trivial: Iterable[Iterable[int]] = (),
) -> dict[tuple[int, ...], int]:
    """Minimal sets inside evidences that weigh at most ``most`` together, with that weight; those
    that touch more than ``limit`` groups or contain a trivial set are left out."""
    shown = [(frozenset(each), weight) for each, weight in evidence]
    usable = [atom for atom in range(atoms) if atom != without]
    found: dict[tuple[int, ...], int] = {}
    for size in range(len(usable) + 1):
        for chosen in combinations(usable, size):
            weight = sum(weight for each, weight in shown if each.issuperset(chosen))
            if weight <= most and not any(set(less) <= set(chosen) for less in found):
                found[chosen] = weight
    group = list(range(atoms)) if groups is None else groups
    touched = {one: len({group[atom] for atom in one}) for one in found}
    return {
        one: weight
        for one, weight in found.items()
        if (limit is None or touched[one] <= limit)
        and not any(set(each) <= set(one) for each in trivial)
    }


def maximal_sets(sets: Iterable[Iterable[int]]) -> list[tuple[int, ...]]:
    """The sets that no other one strictly contains, by size, then lexicographically."""
    distinct = {frozenset(each) for each in sets}
    kept = [one for one in distinct if not any(one < other for other in distinct)]
    return sorted((tuple(sorted(one)) for one in kept), key=lambda one: (len(one), one))


# --- keys ---------------------------------------------------------------------------------


def agree_sets(rows: Sequence[tuple[object, ...]], columns: int, nulls: str) -> set[frozenset[int]]:
    """The agree-set of every pair of rows, without that of rows which agree everywhere."""
    found = set()
    for one, two in combinations(rows, 2):
        agreed = frozenset(c for c in range(columns) if _agree(one[c], two[c], nulls))
        if len(agreed) < columns:
            found.add(agreed)
    return found


def _agree(one: object, two: object, nulls: str) -> bool:
    if one is None or two is None:
        return one is two and nulls == "equal"
    return one == two


def keys(
    rows: Sequence[tuple[object, ...]], columns: int, nulls: str = "equal", most: int | None = None
) -> list[tuple[int, ...]]:
    """The minimal keys of the distinct rows."""
    return minimal_sets(columns, agree_sets(rows, columns, nulls), most)


def non_keys(
    rows: Sequence[tuple[object, ...]], columns: int, nulls: str = "equal"
) -> list[tuple[int, ...]]:
    """The maximal non-keys of the distinct rows."""
    return maximal_sets(agree_sets(rows, columns, nulls))


def duplicates(rows: Sequence[tuple[object, ...]], nulls: str = "equal") -> int:
    """Rows that agree everywhere with an earlier one."""
    if nulls == "unequal":
        rows = [row for row in rows if None not in row]
    return len(rows) - len(set(rows))


# --- functional dependencies --------------------------------------------------------------


def counted_agree_sets(
    rows: Sequence[tuple[object, ...]], columns: int, nulls: str = "equal"
) -> dict[tuple[int, ...], int]:
    """Every agree-set with its number of pairs, that of equal rows included."""
    found: dict[tuple[int, ...], int] = {}
    for one, two in combinations(rows, 2):
        agreed = tuple(c for c in range(columns) if _agree(one[c], two[c], nulls))
        found[agreed] = found.get(agreed, 0) + 1
    return found


def violations(
    rows: Sequence[tuple[object, ...]],
    left: tuple[int, ...],
    right: int | None,
    nulls: str = "equal",
) -> int:
    """Pairs of rows that agree on ``left`` and not in ``right`` (``None``: at all)."""
    return sum(
        all(_agree(one[c], two[c], nulls) for c in left)
        and (right is None or not _agree(one[right], two[right], nulls))
        for one, two in combinations(rows, 2)
    )


def dependencies(
    rows: Sequence[tuple[object, ...]], columns: int, nulls: str = "equal", most: int | None = None
) -> set[tuple[tuple[int, ...], int]]:
    """All minimal functional dependencies with at most ``most`` columns on the left."""
    shown = agree_sets(rows, columns, nulls)
    found = set()
    for right in range(columns):
        minimal: list[tuple[int, ...]] = []
        others = [c for c in range(columns) if c != right]
        for size in range(min(len(others), columns if most is None else most) + 1):
            for left in combinations(others, size):
                refuted = any(set(left) <= each and right not in each for each in shown)
                if not refuted and not any(set(less) <= set(left) for less in minimal):
                    minimal.append(left)
        found |= {(left, right) for left in minimal}
    return found


def approximate(
    rows: Sequence[tuple[object, ...]],
    columns: int,
    right: int | None,
    bound: float,
    most: int | None = None,
    nulls: str = "equal",
) -> dict[tuple[int, ...], int]:
    """The minimal left-hand sides whose share of violating pairs is within a bound."""
    pairs = len(rows) * (len(rows) - 1) // 2
    found: dict[tuple[int, ...], int] = {}
    others = [c for c in range(columns) if c != right]
    for size in range(len(others) + 1):
        for left in combinations(others, size):
            if any(set(smaller) <= set(left) for smaller in found):
                continue
            wrong = violations(rows, left, right, nulls)
            if wrong == 0 or wrong / pairs <= bound:
                found[left] = wrong
    return {left: wrong for left, wrong in found.items() if most is None or len(left) <= most}


# --- comparisons --------------------------------------------------------------------------

Comparison = tuple[int, int, str, bool]
"""The column of the first cell, that of the second, whose they are ("ts", "tt" or "ss"), and
whether they are compared by order."""


def outcome(one: object, two: object, ordered: bool, nulls: str = "equal") -> str:
    """How two cells compare: ``<``, ``=``, ``>`` or ``?`` where there is an order, else ``=`` or
    ``!=``."""
    if one is None or two is None:
        same = one is two and nulls == "equal"
        return "=" if same else "?" if ordered else "!="
    # NaN equals itself and is last.
    a, b = ((cell != cell, 0 if cell != cell else cell) for cell in (one, two))
    if a == b:
        return "="
    if not ordered:
        return "!="
    return "<" if a < b else ">"


def outcomes(
    t: tuple[object, ...],
    s: tuple[object, ...],
    comparisons: list[Comparison],
    nulls: str = "equal",
) -> tuple[str, ...]:
    """How two rows compare in every comparison."""
    rows = {"t": t, "s": s}
    return tuple(
        outcome(rows[whose[0]][left], rows[whose[1]][right], ordered, nulls)
        for left, right, whose, ordered in comparisons
    )


def counted_outcomes(
    pairs: Iterable[tuple[tuple[object, ...], tuple[object, ...]]],
    comparisons: list[Comparison],
    nulls: str = "equal",
) -> dict[tuple[str, ...], int]:
    """How many of some pairs of rows (t, s) compare in each way."""
    found: dict[tuple[str, ...], int] = {}
    for t, s in pairs:
        shown = outcomes(t, s, comparisons, nulls)
        found[shown] = found.get(shown, 0) + 1
    return found


def satisfied(shown: tuple[str, ...], atoms: Sequence[tuple[str, ...]]) -> set[int]:
    """Which operators hold, each comparison's list of them numbered one after the other."""
    hold = {
        "<=": {"<", "="},
        ">=": {">", "="},
        "=": {"="},
        "!=": {"<", ">", "?", "!="},
    }
    each = [
        (each, operator)
        for each, operators in zip(shown, atoms, strict=True)
        for operator in operators
    ]
    return {number for number, (each, operator) in enumerate(each) if each in hold[operator]}


# --- denial constraints -------------------------------------------------------------------


def operators(comparisons: Iterable[Comparison]) -> list[tuple[str, ...]]:
    """The atoms of every comparison."""
    return [("<=", ">=", "!=") if ordered else ("=", "!=") for *_, ordered in comparisons]


def evidence(
    t: tuple[object, ...],
    s: tuple[object, ...],
    comparisons: Iterable[Comparison],
    nulls: str = "equal",
) -> frozenset[int]:
    """The atoms that two rows satisfy."""
    space = list(comparisons)
    return frozenset(satisfied(outcomes(t, s, space, nulls), operators(space)))


@cache
def possible_evidence(
    columns: int, comparisons: tuple[Comparison, ...], nulls: str = "equal"
) -> list[tuple[frozenset[int], frozenset[int]]]:
    """What two rows of any values can show, each with what they show when they change places. As
    many values as there are cells, and null, are all that there can be."""
    values = [*range(2 * columns), None]
    seen = set()
    for cells in product(values, repeat=2 * columns):
        t, s = cells[:columns], cells[columns:]
        seen.add((evidence(t, s, comparisons, nulls), evidence(s, t, comparisons, nulls)))
    return sorted(seen, key=lambda both: [sorted(each) for each in both])


class Meaning:
    """Which pairs of rows a set of atoms denies, among all that there can be."""

    def __init__(self, columns: int, comparisons: Iterable[Comparison], nulls: str) -> None:
        self.possible = possible_evidence(columns, tuple(comparisons), nulls)

    def denied(self, atoms: Iterable[int], mirrored: bool = False) -> frozenset[int]:
        """The pairs that satisfy all the atoms, or those whose mirror images do."""
        wanted = frozenset(atoms)
        return frozenset(k for k, both in enumerate(self.possible) if wanted <= both[mirrored])

    def implies(self, one: Iterable[int], two: Iterable[int]) -> bool:
        """Whether all that ``two`` denies is denied by ``one``, or by its mirror image."""
        one, denied = list(one), self.denied(two)
        return denied <= self.denied(one) or denied <= self.denied(one, mirrored=True)


def denial_constraints(
    rows: Sequence[tuple[object, ...]],
    columns: int,
    comparisons: Iterable[Comparison],
    nulls: str = "equal",
    most: int | None = None,
) -> list[tuple[int, ...]]:
    """The minimal sets of atoms that no two rows satisfy, without those that no values can satisfy
    and those that another one implies; of equivalent ones the first. By size, then
    lexicographically. With a limit, all of that among the sets that touch no more comparisons."""
    space = tuple(comparisons)
    of = [k for k, each in enumerate(operators(space)) for _ in each]
    atoms = sum(map(len, operators(space)))
    shown = {evidence(t, s, space, nulls) for t, s in permutations(rows, 2)}
    meaning = Meaning(columns, space, nulls)
    sets = minimal_sets_stepwise(atoms, sorted(shown, key=sorted))
    sets = [each for each in sets if most is None or len({of[a] for a in each}) <= most]
    sets = [each for each in sets if meaning.denied(each)]
    denied = [(meaning.denied(each), meaning.denied(each, mirrored=True)) for each in sets]

    def implies(one: int, two: int) -> bool:
        return denied[two][0] <= denied[one][0] or denied[two][0] <= denied[one][1]

    numbers = range(len(sets))
    return [
        sets[two]
        for two in numbers
        if not any(
            implies(one, two) and (one < two or not implies(two, one))
            for one in numbers
            if one != two
        )
    ]


# --- inclusions ---------------------------------------------------------------------------


def exact(cell: object) -> object:
    """A cell as something that is equal to another iff the values are."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    if isinstance(cell, int | float | Decimal):
        return Fraction(cell)
    return cell


def value_sets(
    columns: dict[str, tuple[str, list[object]]], nulls: bool = False
) -> dict[str, tuple[str, frozenset[object]]]:
    """Of each column, given with the family of its type, the distinct values."""
    return {
        name: (family, frozenset(exact(cell) for cell in cells if nulls or cell is not None))
        for name, (family, cells) in columns.items()
    }


def inclusions(
    sets: dict[str, tuple[str, frozenset[object]]], empty: bool = False
) -> dict[tuple[str, str], float]:
    """The share of every column's values that another one of its family has."""
    found = {}
    for a, (family, mine) in sets.items():
        for b, (other, theirs) in sets.items():
            if a != b and family == other and (mine or empty):
                found[a, b] = len(mine & theirs) / len(mine) if mine else 1.0
    return found


def clusters(sets: dict[str, tuple[str, frozenset[object]]]) -> dict[frozenset[str], int]:
    """How many values occur in just these columns, for all sets of columns with any."""
    found: dict[frozenset[str], int] = {}
    for family, value in {(family, each) for family, values in sets.values() for each in values}:
        where = frozenset(
            name for name, (own, values) in sets.items() if own == family and value in values
        )
        found[where] = found.get(where, 0) + 1
    return found


def wide_inclusions(
    tables: Mapping[str, Sequence[tuple[object, ...]]],
    unary: set[tuple[str, int, str, int]],
    arity: int,
    nulls: bool = False,
    empty: bool = False,
) -> set[tuple[str, tuple[int, ...], str, tuple[int, ...]]]:
    """Inclusions of two to ``arity`` columns that hold, and hold without any of their columns."""
    holding: set[tuple[str, tuple[int, ...], str, tuple[int, ...]]] = {
        (one, (a,), two, (b,)) for one, a, two, b in unary
    }
    found: set[tuple[str, tuple[int, ...], str, tuple[int, ...]]] = set()
    for size in range(2, arity + 1):
        level = set()
        for one, mine in tables.items():
            for two, theirs in tables.items():
                for left in combinations(range(len(mine[0]) if mine else 0), size):
                    for right in permutations(range(len(theirs[0]) if theirs else 0), size):
                        fewer = [
                            (one, left[:k] + left[k + 1 :], two, right[:k] + right[k + 1 :])
                            for k in range(size)
                        ]
                        if all(each in holding for each in fewer):
                            tuples = _tuples(mine, left, nulls)
                            if tuples <= _tuples(theirs, right, nulls) and (tuples or empty):
                                level.add((one, left, two, right))
        found |= level
        holding = level
    return found


def _tuples(
    rows: Sequence[tuple[object, ...]], columns: tuple[int, ...], nulls: bool
) -> set[tuple[object, ...]]:
    cells = [[row[c] for c in columns] for row in rows]
    return {tuple(map(exact, each)) for each in cells if nulls or None not in each}


def references_of_two(
    tables: Mapping[str, tuple[Sequence[str], Sequence[str], Sequence[tuple[object, ...]]]],
    unary: set[tuple[str, int, str, int]],
    key_nulls: str = "equal",
    nulls: bool = False,
    empty: bool = False,
    most: int = 200,
) -> set[tuple[str, tuple[int, ...], str, tuple[int, ...]]]:
    """Inclusions of two columns, each contained by itself, in a key of another table with names
    that are about alike; tables are names and types of columns, and rows. Of many candidates those
    with names most alike."""
    found = []
    for two, (names, types, theirs) in tables.items():
        if duplicates(theirs, key_nulls):
            continue
        pairs = [key for key in keys(theirs, len(names), key_nulls) if len(key) == 2]
        pairs.sort(key=lambda key: (-identifiers.of_set(key, names, types, two), key))
        for right in pairs[:5]:
            for one, (own, _, mine) in tables.items():
                for left in permutations(range(len(own)), 2):
                    sides = list(zip(left, right, strict=True))
                    if one == two or not all((one, a, two, b) in unary for a, b in sides):
                        continue
                    likeness = [
                        alike(Attribute(one, own[a]), Attribute(two, names[b])) for a, b in sides
                    ]
                    tuples = _tuples(mine, left, nulls)
                    contained = tuples <= _tuples(theirs, right, nulls) and (tuples or empty)
                    if sum(likeness) / 2 >= 0.55:
                        lefts, rights = zip(*sorted(sides), strict=True)
                        text = InclusionDependency(
                            tuple(Attribute(one, own[a]) for a in lefts),
                            tuple(Attribute(two, names[b]) for b in rights),
                        )
                        candidate = one, lefts, two, rights
                        found.append((-sum(likeness) / 2, str(text), candidate, contained))
    return {candidate for _, _, candidate, contained in sorted(found)[:most] if contained}


# --- columns ------------------------------------------------------------------------------


def column_facts(cells: list[object]) -> tuple[int, int, object, object]:
    """Nulls, distinct values, the lowest and the highest; NaN is the highest number."""
    there = [cell for cell in cells if cell is not None]

    def order(cell: Any) -> Any:
        if isinstance(cell, str):
            return cell.encode()
        nan = isinstance(cell, float) and math.isnan(cell)
        return (nan, 0.0 if nan else cell)

    lowest = min(there, key=order, default=None)
    highest = max(there, key=order, default=None)
    return len(cells) - len(there), len({exact(cell) for cell in there}), lowest, highest


EMAIL = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}"
UUID = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
URL = "https?://[!-~]+"


def shape(text: str) -> str:
    """What a text looks like: one word, or its characters with A, a and 9 in place of letters and
    digits; empty where nothing is said of it."""
    if any(not " " <= character <= "~" for character in text):
        return ""
    for name, pattern in (("e-mail", EMAIL), ("uuid", UUID), ("url", URL)):
        if len(text) <= 256 and re.fullmatch(pattern, text):
            return name
    if len(text) > 64:
        return ""
    marks = (("[A-Z]", "A"), ("[a-z]", "a"), ("[0-9]", "9"))
    return "".join(next((m for p, m in marks if re.fullmatch(p, c)), c) for c in text)


# --- expectations -------------------------------------------------------------------------


def tally(
    rule: Rule,
    tables: Mapping[str, Sequence[Mapping[str, object]]],
    nulls: str = "equal",
    inclusion_nulls: str = "ignored",
) -> tuple[int, int, int]:
    """What violates a rule: pairs or rows, then the numerator and the denominator of its error."""
    if isinstance(rule, InclusionDependency):
        sides = []
        for side in (rule.dependent, rule.referenced):
            rows = [tuple(row[each.column] for each in side) for row in tables[side[0].table]]
            whole = [row for row in rows if inclusion_nulls == "values" or None not in row]
            sides.append(whole)
        left, right = sides
        orphans = [row for row in left if row not in right]
        return len(orphans), len(set(orphans)), len(set(left))
    rows_ = tables[rule.table]
    if isinstance(rule, NotNull):
        number = sum(row[rule.column] is None for row in rows_)
        return number, number, len(rows_)
    if isinstance(rule, ValueRule):
        number = sum(not passes(rule, row[rule.column]) for row in rows_)
        return number, number, len(rows_)
    if isinstance(rule, DenialConstraint):
        if len({row for each in rule.predicates for row, _ in (each.left, each.right)}) == 1:
            number = sum(_denied(rule, row, row, nulls) for row in rows_)
            return number, number, len(rows_)
        number = sum(_denied(rule, t, s, nulls) for t, s in permutations(rows_, 2))
        return number, number, len(rows_) * (len(rows_) - 1)
    assert not isinstance(rule, TableRule)
    lhs = rule.columns if isinstance(rule, Key) else rule.lhs
    number = 0
    for one, two in combinations(rows_, 2):
        if all(_agree(one[c], two[c], nulls) for c in lhs):
            number += isinstance(rule, Key) or not _agree(one[rule.rhs], two[rule.rhs], nulls)
    return number, number, len(rows_) * (len(rows_) - 1) // 2


def whole_table(rule: TableRule, cells: Sequence[Any], moment: datetime) -> int:
    """How wrong a table is by a rule about it as a whole, at a moment: by how many rows, or 1.
    ``cells`` are those of the column that the rule is about, or any other."""
    if isinstance(rule, RowCount):
        least, most = rule.at_least or 0, rule.at_most
        allowed = range(least, len(cells) + least + 1 if most is None else most + 1)
        return min(abs(len(cells) - rows) for rows in allowed)
    age = timedelta(**{rule.unit: rule.within})
    there = [cell for cell in cells if cell is not None]
    if there and not isinstance(there[0], datetime):
        return int(not any(day + age >= moment.date() for day in there))
    return int(not any(time.replace(tzinfo=UTC) + age >= moment for time in there))


def passes(rule: ValueRule, cell: Any) -> bool:
    """Whether a cell has a value that a rule of its column lets pass; a null is none. NaN is the
    largest number."""
    if cell is None:
        return True
    if isinstance(rule, Pattern):
        return re.fullmatch(rule.pattern, cell, re.ASCII) is not None

    def value(text: str) -> Any:
        if isinstance(cell, bool | str):
            return text == "true" if isinstance(cell, bool) else text
        if isinstance(cell, float):
            return float(text)
        if isinstance(cell, int | Decimal):
            return Fraction(text)
        moment = type(cell).fromisoformat(text)
        if isinstance(cell, datetime) and cell.tzinfo and not moment.tzinfo:
            moment = moment.replace(tzinfo=UTC)
        return moment

    if isinstance(rule, Domain):
        return any(cell == value(text) for text in rule.values)
    if cell != cell:
        return rule.at_most is None and rule.below is None
    return (
        (rule.at_least is None or cell >= value(rule.at_least))
        and (rule.above is None or cell > value(rule.above))
        and (rule.at_most is None or cell <= value(rule.at_most))
        and (rule.below is None or cell < value(rule.below))
    )


def removal(
    rule: Rule,
    tables: Mapping[str, Sequence[Mapping[str, object]]],
    nulls: str = "equal",
    inclusion_nulls: str = "ignored",
) -> int | None:
    """The least number of rows that would have to go before a rule holds; None: pairs of rows
    violate it, in no groups."""
    if isinstance(rule, DenialConstraint) and not rule.is_within_a_row:
        if rule.plain is None:
            return None if tally(rule, tables, nulls)[0] else 0
        rule = rule.plain
    if isinstance(rule, Key):
        rows = tables[rule.table]
        return len(rows) - len(_agreeing(rows, rule.columns, nulls))
    if isinstance(rule, FunctionalDependency):
        return sum(
            len(group) - max(map(len, _agreeing(group, (rule.rhs,), nulls)))
            for group in _agreeing(tables[rule.table], rule.lhs, nulls)
        )
    return tally(rule, tables, nulls, inclusion_nulls)[0]


def _agreeing(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], nulls: str
) -> list[list[Mapping[str, object]]]:
    """Rows in groups that agree on some columns."""
    groups: list[list[Mapping[str, object]]] = []
    for row in rows:
        for group in groups:
            if all(_agree(row[c], group[0][c], nulls) for c in columns):
                group.append(row)
                break
        else:
            groups.append([row])
    return groups


_SATISFIED = {"<": ("<", "<=", "!="), "=": ("=", "<=", ">="), ">": (">", ">=", "!=")}


def _denied(
    rule: DenialConstraint, t: Mapping[str, object], s: Mapping[str, object], nulls: str
) -> bool:
    """Whether two rows satisfy all predicates."""
    rows = {"t": t, "s": s}
    for each in rule.predicates:
        (one, left), (two, right) = each.left, each.right
        came_out = outcome(rows[one][left], rows[two][right], True, nulls)
        if each.op not in _SATISFIED.get(came_out, ("!=",)):
            return False
    return True


def takes_part(
    rule: Rule,
    row: dict[str, object],
    others: Sequence[Mapping[str, object]],
    referenced: Sequence[Mapping[str, object]],
    nulls: str,
    inclusion_nulls: str,
) -> bool:
    """Whether a row violates a rule, by itself or with one of the others; ``referenced`` are the
    rows of the table on the right of an inclusion."""
    if isinstance(rule, InclusionDependency):
        cells = tuple(row[each.column] for each in rule.dependent)
        if None in cells and inclusion_nulls != "values":
            return False
        there = {tuple(each[one.column] for one in rule.referenced) for each in referenced}
        return cells not in there
    if isinstance(rule, NotNull):
        return row[rule.column] is None
    if isinstance(rule, ValueRule):
        return not passes(rule, row[rule.column])
    if isinstance(rule, DenialConstraint):
        if rule.is_within_a_row:
            return _denied(rule, row, row, nulls)
        return any(
            _denied(rule, row, each, nulls) or _denied(rule, each, row, nulls) for each in others
        )
    assert not isinstance(rule, TableRule)
    lhs = rule.columns if isinstance(rule, Key) else rule.lhs
    return any(
        all(_agree(row[c], each[c], nulls) for c in lhs)
        and (isinstance(rule, Key) or not _agree(row[rule.rhs], each[rule.rhs], nulls))
        for each in others
    )


# --- rules that nearly hold ---------------------------------------------------------------

Listed = dict[tuple[tuple[int, ...], int | None], tuple[int, float | None]]


def groups(rows: Sequence[tuple[object, ...]], chosen: tuple[int, ...], nulls: str) -> list[object]:
    """What rows agree in; where nulls differ, each is a value of its own."""
    return [
        tuple(
            ("null", i) if nulls == "unequal" and row[c] is None else exact(row[c]) for c in chosen
        )
        for i, row in enumerate(rows)
    ]


def nearness(
    rows: Sequence[tuple[object, ...]], lhs: tuple[int, ...], rhs: int | None, nulls: str
) -> tuple[int, float | None]:
    """Removal of a key (no rhs), or removal and μ⁺ of a dependency, from their definitions."""
    n, left = len(rows), groups(rows, lhs, nulls)
    sizes = Counter(left)
    if rhs is None:
        return n - len(sizes), None
    right = groups(rows, (rhs,), nulls)
    pairs = Counter(zip(left, right, strict=True))
    most: dict[object, int] = {}
    for (x, _), count in pairs.items():
        most[x] = max(most.get(x, 0), count)
    removal = n - sum(most.values())
    chance = 1 - sum(Fraction(count, n) ** 2 for count in Counter(right).values())
    if not chance or n == len(sizes):
        return removal, 0.0
    pdep = sum(Fraction(c * c, sizes[x]) for (x, _), c in pairs.items()) / n
    mu = 1 - (1 - pdep) / chance * Fraction(n - 1, n - len(sizes))
    return removal, math.floor(max(mu, 0) * 10**6 + Fraction(501, 1000)) / 10**6


def near_rules(
    rows: Sequence[tuple[object, ...]], columns: int, nulls: str, bounds: NearBounds
) -> Listed:
    """Removal and μ⁺ of every rule that nearly holds, by its columns and its rhs (None: a key),
    from their definitions."""
    n = len(rows)
    listed: Listed = {}
    determining: dict[int, list[set[int]]] = {c: [] for c in range(columns)}
    closed: list[set[int]] = []  # constant, or nearly keys: no extension says more
    if n < bounds.repeated_rows:
        return {}

    def cells(chosen: tuple[int, ...]) -> list[object]:
        return groups(rows, chosen, nulls)

    for lhs in chain.from_iterable(
        combinations(range(columns), size) for size in range(1, bounds.columns + 1)
    ):
        if any(each < {*lhs} for each in closed):
            continue
        sizes = Counter(cells(lhs))
        if n - len(sizes) <= bounds.key_removal * n:
            closed.append({*lhs})
            if n > len(sizes):
                listed[lhs, None] = (n - len(sizes), None)
            continue
        if len(sizes) == 1:
            closed.append({*lhs})
        shared = sum(count for count in sizes.values() if count > 1)
        repeats = shared >= bounds.repeated_rows and shared >= bounds.repeated_share * n
        for rhs in {*range(columns)} - {*lhs}:
            if len({*cells((rhs,))}) == 1 or any(each < {*lhs} for each in determining[rhs]):
                continue
            removal, strength = nearness(rows, lhs, rhs, nulls)
            assert strength is not None
            parts = combinations(lhs, len(lhs) - 1) if len(lhs) > 1 else ()
            strengths = [nearness(rows, part, rhs, nulls)[1] or 0.0 for part in parts]
            adds = all(1 - strength <= (1 - bounds.gain) * (1 - part) for part in strengths)
            is_strong = strength >= bounds.strength and adds
            passes = repeats and removal <= bounds.removal * n and is_strong
            if not removal or passes:
                determining[rhs].append({*lhs})
            if removal and passes:
                listed[lhs, rhs] = (removal, strength)
    return listed


def is_one_edit(one: str, other: str) -> bool:
    """Whether a text becomes another by adding, leaving out or changing one character, or by two
    neighbours changing places."""
    if len(one) > len(other):
        one, other = other, one
    if len(one) < len(other):
        return any(one == other[:k] + other[k + 1 :] for k in range(len(other)))
    differing = [k for k in range(len(one)) if one[k] != other[k]]
    if len(differing) == 2:
        low, high = differing
        swapped = one[:low] + one[high] + one[low + 1 : high] + one[low] + one[high + 1 :]
        return high == low + 1 and swapped == other
    return len(differing) == 1


def suspects(
    rows: Sequence[tuple[object, ...]], rules: Listed, nulls: str
) -> dict[tuple[int, tuple[int, ...]], tuple[float, set[tuple[int, ...]]]]:
    """The score of each suspected cell, and the rules that suspect it."""
    found: dict[tuple[int, tuple[int, ...]], tuple[float, set[tuple[int, ...]]]] = {}
    for (lhs, rhs), (_, strength) in rules.items():
        for place, row in enumerate(rows):
            group = [
                other for other in rows
                if other is row or all(_agree(row[c], other[c], nulls) for c in lhs)
            ]  # fmt: skip
            if rhs is None:
                wrong, cell, score = len(group) > 1, lhs, 1.0
            else:
                values = [
                    sum(other is one or _agree(one[rhs], other[rhs], nulls) for other in group)
                    for one in group
                ]
                most = max(values)
                own = values[[other is row for other in group].index(True)]
                wrong = most >= 2 and 2 * most > len(group) and own < most
                cell, score = (rhs,), strength or 0.0
            if wrong:
                before, by = found.get((place, cell), (0.0, set()))
                found[place, cell] = (before + score, by | {lhs})
    return found
