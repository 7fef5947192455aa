"""Which indexes find the rows that violate the current constraints together with a new row.

A batch can only violate a minimal set of atoms through a pair that satisfies some of the set's
atoms. So a *look-up* by these atoms, in an index of every segment, finds all such pairs, and serves
all sets that contain them. What a batch brings is then known once every minimal set is served: a
set that replaces a violated one contains it, and is violated by the same pairs, or fewer.

The choice follows IncDC (VLDB Journal 2023, section 7, SelectIndex): equal columns first, as long
as they return few rows; then inequalities, two at a time; the next one is always that with the
smallest score, what a look-up costs for each set that it newly serves. What it returns is
estimated from sampled pairs, where the paper goes by distinct values and correlation; correlation
decides whether the second number falls along the chains. Inequalities may also be looked up inside
groups of equal rows, and ``!=`` is two inequalities, or all groups but one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from holdfast.evidence.comparison.regions import Sampled
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.values import FLOAT, INTEGER
from holdfast.model import thresholds
from holdfast.model.batch_indexes import LookUp
from holdfast.model.comparisons import BOTH, FIRST, SECOND, Space
from holdfast.tasks.coding import Coding
from holdfast.tasks.segments import chain_columns, chain_name, index_name, is_chained

_FEW_GROUPS = 64
"""Values of a column up to which all groups but one are looked at."""

_ASKED = 16
"""Sets whose look-ups are considered at a time."""

_MULTIPLE = 4
"""How many times the best price a look-up may cost that serves others, too."""

Term = tuple[int, str]
"""A comparison, by its number, and an operator: = != < <= > or >=."""


@dataclass(frozen=True)
class Option:
    """A possible look-up."""

    groups: tuple[Term, ...]  # equal columns; or one that differs
    order: tuple[Term, ...]  # up to two


def choose(
    sets: U64,
    space: Space,
    schema: pa.Schema,
    sampled: Sampled,
    distinct: list[float],
    lookups: tuple[LookUp, ...] = (),
) -> tuple[LookUp, ...]:
    """Look-ups that serve as many of these sets as possible, of which each has its mirror image:
    those that are kept, and others for what they do not serve."""
    return _Choice(space, schema, sampled, distinct).lookups(sets, lookups)


def plan(sets: U64, space: Space, lookups: Iterable[LookUp]) -> tuple[LookUp, ...] | None:
    """The look-ups that serve these sets, of those that there are; None where they serve not all.

    A set that says something of row s alone, and of nothing else, holds for all rows that there
    were, and its mirror image is served for the new ones.
    """
    flags = _served_somehow(sets, space)
    used = []
    for lookup in sorted(lookups, key=lambda lookup: lookup.share):
        served = flags[:, list(lookup.atoms)].all(axis=1)
        if served.any():
            used.append(lookup)
            flags = flags[~served]
    return None if len(flags) else tuple(used)


def short_segment(used: tuple[LookUp, ...]) -> int:
    """Rows of a segment up to which a row is compared with all of them at less than looking it up
    costs."""
    costs = thresholds.current.costs
    return int(costs.lookup_seconds * len(used) * costs.pairs_a_second)


def seconds(used: tuple[LookUp, ...], segments: Iterable[int]) -> float:
    """About what looking one row up costs in segments of so many rows."""
    costs, short = thresholds.current.costs, short_segment(used)
    returned = costs.fetched_seconds_a_pair * sum(lookup.share for lookup in used)
    each_long = costs.lookup_seconds * len(used)
    return sum(
        rows / costs.pairs_a_second if rows <= short else each_long + returned * rows
        for rows in segments
    )


def _served_somehow(sets: U64, space: Space) -> Flags:
    """The sets for which there has to be a look-up."""
    flags = bitsets.to_flags(sets, space.atoms)
    impossible = [
        list(range(first, first + len(comparison.operators)))
        for first, comparison in zip(space.first, space.comparisons, strict=True)
        if "!=" in comparison.operators
    ]
    trivial = np.zeros(len(flags), np.bool_)
    for atoms in impossible:
        trivial |= flags[:, atoms].all(axis=1)
    of_s = np.array([space.comparisons[k].rows == SECOND for k in space.comparison_of], np.bool_)
    alone = flags.any(axis=1) & ~flags[:, ~of_s].any(axis=1)
    open_sets: Flags = flags[~trivial & ~alone]
    return open_sets


def _within(name: str, names: Iterable[str]) -> str | None:
    """An index that will do for another one: the same, or one whose order goes on."""
    for other in names:
        if other == name:
            return other
    if is_chained(name):
        groups, order, _ = chain_columns(name)
        for other in names:
            if is_chained(other):
                same, longer, _ = chain_columns(other)
                if same == groups and {*order} <= {*longer}:
                    return other
    return None


class _Choice:
    """The choice of look-ups for a table."""

    def __init__(
        self, space: Space, schema: pa.Schema, sampled: Sampled, distinct: list[float]
    ) -> None:
        self._space, self._distinct, self._rows = space, distinct, sampled.rows
        self._shown, self._counts = sampled.masks, sampled.counts
        self._pairs = max(1, int(sampled.counts.sum()))
        self._shares: dict[tuple[int, ...], float] = {}
        words = Coding.of(schema, space.comparisons).words
        # Words are compared as they are stored, so they must hold values alike.
        self._usable = [
            k
            for k, comparison in enumerate(space.comparisons)
            if comparison.rows == BOTH and words[comparison.left] == words[comparison.right]
        ]
        self._ordered = {
            k
            for k in self._usable
            if "<=" in space.comparisons[k].operators
            and words[space.comparisons[k].left][0] in (INTEGER, FLOAT)
        }

    def lookups(self, sets: U64, lookups: tuple[LookUp, ...]) -> tuple[LookUp, ...]:
        """Equal columns first, then what else there is."""
        left = _served_somehow(sets, self._space)
        chosen = {lookup.atoms: lookup for lookup in lookups}
        for lookup in lookups:
            left = left[~left[:, list(lookup.atoms)].all(axis=1)]
        most = thresholds.current.returned_rows / max(1, self._rows)
        equal = [option for option in self._equal_options(left) if self._share(option) <= most]
        left = self._greedy(equal, left, np.arange(len(left)), chosen)
        while len(left):
            wanted = np.arange(0, len(left), -(-len(left) // _ASKED))
            options = dict.fromkeys(o for row in left[wanted] for o in self._options(row))
            before = len(left)
            left = self._greedy([*options], left, wanted, chosen)
            if len(left) == before:
                break
        self._of_row_t(left, chosen)
        return tuple(sorted(chosen.values(), key=lambda lookup: lookup.share))

    def _greedy(
        self,
        options: list[Option],
        left: Flags,
        wanted: I64,
        lookups: dict[tuple[int, ...], LookUp],
    ) -> Flags:
        """Take the option with the smallest score again and again, until some sets that are wanted
        are served, and with them others; the sets that are not served.

        No set is served by what costs a multiple of the best that it could have, however many
        others that serves."""
        if not options or not len(left):
            return left
        worth, most = thresholds.current.index_rows, thresholds.current.lookup_indexes
        price = np.array([worth + self._share(option) * self._rows for option in options])
        atoms = [list(self._atoms(option)) for option in options]
        own = [self._name(option) for option in options]
        serves = np.array([left[:, asked].all(axis=1) for asked in atoms])
        best = np.full(len(left), float(worth))
        best[wanted] = np.where(serves[:, wanted], price[:, None], np.inf).min(axis=0)
        serves &= price[:, None] <= _MULTIPLE * best
        open_ = np.ones(len(left), np.bool_)
        names = {lookup.index for lookup in lookups.values()}
        while len(names) < most and open_[wanted].any():
            useful = serves[:, wanted[open_[wanted]]].any(axis=1)
            if not useful.any():
                break
            there = np.array([bool(_within(name, names)) for name in own])
            costs = np.where(there, price - worth + 1, price)
            score = costs / np.maximum(serves[:, open_].sum(axis=1), 1)
            chosen = int(np.argmin(np.where(useful, score, np.inf)))
            for lookup in self._both_images(options[chosen], names):
                lookups.setdefault(lookup.atoms, lookup)
                names.add(lookup.index)
            for image in (atoms[chosen], list(self._space.mirrored(atoms[chosen]))):
                # Whatever else they could have, they are served now.
                open_ &= ~left[:, image].all(axis=1) | (price[chosen] > _MULTIPLE * best)
        return left[open_]

    def _of_row_t(self, left: Flags, lookups: dict[tuple[int, ...], LookUp]) -> None:
        """What sets say of row t alone serves those that no index does: all rows go with it."""
        of_t = [self._space.comparisons[k].rows == FIRST for k in self._space.comparison_of]
        for row in left:
            atoms = tuple(np.flatnonzero(row & np.array(of_t, np.bool_)).tolist())
            if atoms:
                lookups.setdefault(atoms, LookUp("", atoms, 0.0))

    def _equal_options(self, flags: Flags) -> Iterator[Option]:
        """One or two columns that some set asks to be equal."""
        equal = {k: flags[:, list(self._space.agreeing(k))].all(axis=1) for k in self._usable}
        asked = [k for k in self._usable if equal[k].any()]
        for k in asked:
            yield Option(((k, "="),), ())
        for one, two in combinations(asked, 2):
            both = ((one, "="), (two, "="))
            if (equal[one] & equal[two]).any() and self._apart(both):
                yield Option(both, ())

    def _options(self, row: Flags) -> Iterator[Option]:
        """All that could serve a set."""
        equal = [k for k in self._usable if row[list(self._space.agreeing(k))].all()]
        order = [term for k in self._usable if k not in equal for term in self._order(row, k)]
        groups: list[tuple[Term, ...]] = [(), *(((k, "="),) for k in equal)]
        groups += [((a, "="), (b, "=")) for a, b in combinations(equal, 2)]
        apart: list[tuple[Term, ...]] = [
            ((k, "!="),) for k, op in order if op == "!=" and self._few_values(k)
        ]
        # Numbers that only tell texts apart have an order that goes with nothing.
        numbers = [term for term in order if term[0] in self._ordered]
        numbers += [(k, "=") for k in equal if k in self._ordered]
        orders: list[tuple[Term, ...]] = [*((term,) for term in order), *combinations(numbers, 2)]
        for group in groups[1:]:
            if self._apart(group):
                yield Option(group, ())
        for group in (*groups, *apart):
            for terms in orders:
                if self._apart((*group, *terms)):
                    yield Option(group, tuple(sorted(terms, key=lambda term: self._right(term[0]))))

    def _order(self, row: Flags, k: int) -> Iterator[Term]:
        """The inequalities of a comparison that a set has, and weaker ones."""
        first, operators = self._space.first[k], self._space.comparisons[k].operators
        has = {op for place, op in enumerate(operators) if row[first + place]}
        if "!=" in has:
            yield k, "!="
        for weak, strong in (("<=", "<"), (">=", ">")):
            if weak in has and k in self._ordered:
                yield k, weak
                if "!=" in has:
                    yield k, strong

    def _both_images(self, option: Option, names: set[str]) -> Iterator[LookUp]:
        """A look-up and its mirror image, by indexes that there are where possible."""
        for image in (option, self._mirrored(option)):
            name = self._name(image)
            yield LookUp(_within(name, names) or name, self._atoms(image), self._share(image))

    def _name(self, option: Option) -> str:
        """The index that an option goes by."""
        groups = sorted(self._right(k) for k, _ in option.groups)
        order = [self._right(k) for k, _ in option.order]
        if not order:
            return index_name(groups)
        return chain_name(groups, order, len(order) == 2 and self._falls(*order))

    def _falls(self, one: int, two: int) -> bool:
        """Whether a column mostly falls where another rises."""
        own = {
            self._space.comparisons[k].left: k
            for k in self._ordered
            if self._space.comparisons[k].is_own
        }
        if one not in own or two not in own:
            return False
        rises, falls = (
            self._share(Option((), ((own[one], "<"), (own[two], op)))) for op in ("<", ">")
        )
        return falls > rises

    def _mirrored(self, option: Option) -> Option:
        """As the other row sees it."""
        swapped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        number = {comparison: k for k, comparison in enumerate(self._space.comparisons)}

        def image(terms: tuple[Term, ...]) -> tuple[Term, ...]:
            images = (
                (number[self._space.comparisons[k].mirror], swapped.get(op, op)) for k, op in terms
            )
            return tuple(sorted(images, key=lambda term: self._right(term[0])))

        return replace(option, groups=image(option.groups), order=image(option.order))

    def _atoms(self, option: Option) -> tuple[int, ...]:
        """What is asked of a pair."""
        atoms: set[int] = set()
        weak = {"<": ("<=", "!="), ">": (">=", "!=")}
        for k, op in (*option.groups, *option.order):
            if op == "=":
                atoms |= {*self._space.agreeing(k)}
                continue
            operators = self._space.comparisons[k].operators
            atoms |= {self._space.first[k] + operators.index(o) for o in weak.get(op, (op,))}
        return tuple(sorted(atoms))

    def _share(self, option: Option) -> float:
        """Of all pairs, how many satisfy it, in one of both orders."""
        atoms = self._atoms(option)
        if atoms not in self._shares:
            images = [atoms, self._space.mirrored(atoms)]
            inside = 0
            for mask in bitsets.from_columns(images, self._space.atoms):
                inside += int(self._counts[((mask & ~self._shown) == 0).all(axis=1)].sum())
            self._shares[atoms] = inside / (2 * self._pairs)
        return self._shares[atoms]

    def _apart(self, terms: tuple[Term, ...]) -> bool:
        """Whether they are about different columns of row s, and of row t, so that one index has
        them, and one their mirror images."""
        compared = [self._space.comparisons[k] for k, _ in terms]
        sides = (
            {comparison.left for comparison in compared},
            {comparison.right for comparison in compared},
        )
        return all(len(columns) == len(terms) for columns in sides)

    def _right(self, k: int) -> int:
        return self._space.comparisons[k].right

    def _few_values(self, k: int) -> bool:
        return self._distinct[self._right(k)] <= _FEW_GROUPS
