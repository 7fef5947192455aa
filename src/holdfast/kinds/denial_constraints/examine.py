"""One denial constraint: which pairs of rows satisfy its predicates, and which constraints are near
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from holdfast.cover.dependencies import KEY
from holdfast.evidence.comparison import completion
from holdfast.evidence.mirrors import mirrored
from holdfast.evidence.scope import Scope
from holdfast.kernels import bitsets
from holdfast.kernels import violations as kernels
from holdfast.kernels.bitsets import Masks
from holdfast.kinds import sides
from holdfast.kinds.denial_constraints.predicates import (
    atoms_of,
    constraints,
    is_said,
    row_rule,
    space_of,
)
from holdfast.kinds.denial_constraints.reduction import closed, is_trivial
from holdfast.kinds.denial_constraints.show import SPACE
from holdfast.kinds.examine import Examiner
from holdfast.kinds.stored import KEY_RHS
from holdfast.kinds.table_state import TableState
from holdfast.model.comparisons import Space
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.errors import InputError
from holdfast.model.explanation import NEAREST, Nearby
from holdfast.model.options import Options
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.form import RuleForm, Tables, columns_of
from holdfast.rules.pairs import RowPairs
from holdfast.rules.question import Question
from holdfast.rules.single_rows import SingleRows
from holdfast.rules.version import Version

_SUBSETS_UP_TO = 8
"""Weak predicates of a rule up to which all its parts are looked at."""


class DenialExaminer(Examiner[DenialConstraint]):
    """Denial constraints over two rows, or one."""

    kind = "denial_constraints"

    def checked(self, rule: DenialConstraint, tables: Tables) -> DenialConstraint:
        """Its columns can be compared so."""
        space_of(rule, columns_of(rule.table, tables))
        return DenialConstraint(rule.table, rule.predicates)

    def canonical(self, rule: DenialConstraint, tables: Tables) -> DenialConstraint:
        """With one predicate a comparison, in column order; of two mirror images, one. A rule that
        no rows can break is an error."""
        columns = columns_of(rule.table, tables)
        for predicate in rule.predicates:
            for _, column in (predicate.left, predicate.right):
                columns.position(column, rule.table)
            if predicate.left == predicate.right:
                raise InputError(f"{rule}: {predicate} compares a cell with itself")
        rule = replace(rule, predicates=tuple(map(_in_order, rule.predicates)))
        if not rule.predicates:
            return rule
        space = space_of(rule, columns)
        atoms = atoms_of(rule, space, columns.names)
        if kernels.terms(space, atoms) is None:
            raise InputError(f"{rule}: no cells satisfy all of that, so it says nothing")
        images = bitsets.from_columns([atoms, space.mirrored(atoms)], space.atoms)
        written = constraints(images, space, rule.table, columns.names)
        # Row t comes first in a rule that is about one row.
        return min(written, key=lambda each: (each.predicates[0].left[0] != "t", str(each)))

    def form(self, rule: DenialConstraint, tables: Tables, options: Options) -> RuleForm:
        """Pairs of rows; single rows, or rows that agree, where it says no more than that."""
        columns, plain = tables[rule.table], rule.plain
        if isinstance(plain, FunctionalDependency):
            return AgreeingTuples.of(rule.table, plain.lhs, plain.rhs, columns, options, True)
        if plain is not None:
            return AgreeingTuples.of(rule.table, plain.columns, None, columns, options, True)
        if rule.is_within_a_row:
            return SingleRows(rule.table, row_rule(rule, columns))
        rule = replace(rule, predicates=tuple(map(_in_order, rule.predicates)))
        space, names = space_of(rule, columns), columns.names
        return RowPairs(rule.table, space, atoms_of(rule, space, names), _tries(rule, space, names))

    def counted_error(self, state: TableState, rule: DenialConstraint) -> float | None:
        """The share of the ordered pairs that satisfy all predicates: a row that violates a rule
        by itself does so in all its pairs, if there are any."""
        evidence, table = state.evidence.get(SPACE), state.table
        if evidence is None or (rule.is_within_a_row and table.rows == 1):
            return None
        if not is_said(rule, evidence.space, table.columns.names):
            return None
        atoms = atoms_of(rule, evidence.space, table.columns.names)
        return evidence.error(table.rows, atoms, KEY)

    def cells(self, rule: DenialConstraint) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What its predicates compare: with = rows agree, anything else decides."""
        same = [e.left[1] for e in rule.predicates if e.op == "=" and e.left[1] == e.right[1]]
        every = [column for e in rule.predicates for _, column in (e.left, e.right)]
        return tuple(dict.fromkeys(same)), tuple(c for c in dict.fromkeys(every) if c not in same)

    def names_rows(self, rule: DenialConstraint) -> bool:
        """Unless it is a key or a dependency, whose rows come in groups, or about single rows."""
        return rule.plain is None and not rule.is_within_a_row

    def nearby(
        self, question: Question, version: Version, rule: DenialConstraint, holds: bool
    ) -> Nearby:
        """Constraints with more predicates, or with fewer or weaker ones."""
        if _is_unseen(version, rule):
            return Nearby(notes=("the table has one row, so no rules near it are known",))
        known = _Stored.of(version, rule)
        if known is not None:
            return known.nearby(holds)
        why = "denial constraints of these comparisons are not looked for in the profile"
        return self._parts(question, rule, why) if holds else Nearby(notes=(why,))

    def _parts(self, question: Question, rule: DenialConstraint, why: str) -> Nearby:
        """The parts of a rule that are enough, looked for in the rows."""
        table = question.tables[rule.table]
        names = table.columns.names
        space = space_of(rule, table.columns)
        atoms = atoms_of(rule, space, names)
        [whole] = bitsets.from_columns([atoms], space.atoms)
        if table.rows < 2 or len(atoms) > _SUBSETS_UP_TO or is_trivial(whole[None], space)[0]:
            return Nearby(notes=(why,))
        sizes = range(len(atoms) + (atoms in _without_one(rule, space, names)))
        some = [each for size in sizes for each in combinations(atoms, size)]
        masks = bitsets.from_columns(some, space.atoms)
        scope = Scope.of(question.run, table, space)
        held = masks[~completion.refuted(scope, question.coded(scope), masks)]
        least = [k for k in range(len(held)) if not _contains_other(held, k)]
        parts = constraints(held[least], space, rule.table, names)
        return Nearby((), tuple(parts[:NEAREST]), not len(held))

    def source(self, version: Version, rule: DenialConstraint) -> Any:
        """Minimal sets of predicates, where they tell."""
        return None if _is_unseen(version, rule) else sides.source(version, rule.table, SPACE)

    def held(self, version: Version, rule: DenialConstraint) -> bool | None:
        """Whether it contained a minimal set of predicates."""
        if _is_unseen(version, rule):
            return None
        known = _Stored.of(version, rule)
        return None if known is None else known.says


class _Stored:
    """The minimal sets of predicates of a version, beside a rule's."""

    def __init__(
        self, rule: DenialConstraint, space: Space, names: Sequence[str], sets: Masks
    ) -> None:
        self.rule, self.space, self.names, self.sets = rule, space, names, sets
        self.limit: int | None = None
        atoms = atoms_of(rule, space, names)
        [self.mask] = bitsets.from_columns([atoms], space.atoms)
        self.repeats = atoms in _without_one(rule, space, names)  # it says a thing twice

    @staticmethod
    def of(version: Version, rule: DenialConstraint) -> _Stored | None:
        """None: the version does not look for such rules."""
        table = version.commit.table(rule.table)
        names = table.columns.names
        record = table.evidence.get(SPACE)
        if record is None or record.space is None:
            return None
        space = record.space
        if not is_said(rule, space, names):
            return None
        sets = version.sets(rule.table, SPACE, space.atoms).of_rhs(KEY_RHS)
        stored = _Stored(rule, space, names, sets)
        stored.limit = record.limits.keys
        return stored

    @property
    def says(self) -> bool | None:
        """Whether the rule holds; None: it is longer than what was looked for."""
        if is_trivial(self.mask[None], self.space)[0]:
            return True
        if ((self.sets & ~self.mask) == 0).all(axis=1).any():
            return True
        return None if self.limit is not None and self._comparisons > self.limit else False

    @property
    def _comparisons(self) -> int:
        [atoms] = bitsets.to_columns(self.mask[None])
        return len({self.space.comparison_of[atom] for atom in atoms})

    def nearby(self, holds: bool) -> Nearby:
        """The shortest extensions that hold, or what is enough."""
        notes: tuple[str, ...] = ()
        if self.limit is not None:
            notes = (f"denial constraints are known up to {self.limit} comparisons",)
        sets = self.sets[~is_trivial(self.sets, self.space)]
        if not holds:
            joined = bitsets.distinct(sets | self.mask)
            return Nearby(self._shortest(self._satisfiable(joined)), notes=notes)
        if is_trivial(self.mask[None], self.space)[0]:
            return Nearby(notes=("it says nothing: no cells satisfy all its predicates",))
        [whole], _ = closed(self.mask[None], self.space)
        inside = sets[((sets & ~whole) == 0).all(axis=1)]
        images = np.stack([self.mask, mirrored(self.mask[None], self.space)[0]])
        others = inside if self.repeats else inside[~bitsets.is_member(inside, images)]
        if not len(inside):
            return Nearby(notes=notes)
        return Nearby((), self._shortest(others), not len(others), notes)

    def _satisfiable(self, sets: Masks) -> Masks:
        _, satisfiable = closed(sets, self.space)
        return sets[satisfiable & ~is_trivial(sets, self.space)]

    def _shortest(self, sets: Masks) -> tuple[DenialConstraint, ...]:
        """Those of fewest comparisons, and then of fewest weak predicates; one of mirror images."""
        shortest: dict[frozenset[Predicate], DenialConstraint] = {}
        rules = constraints(sets, self.space, self.rule.table, self.names)
        sizes = bitsets.popcount(sets).tolist()
        least = min(
            ((len(e.predicates), n) for e, n in zip(rules, sizes, strict=True)), default=None
        )
        for each, size in zip(rules, sizes, strict=True):
            if (len(each.predicates), size) == least:
                image = frozenset(_mirror(e) for e in each.predicates)
                if image not in shortest:
                    shortest[frozenset(each.predicates)] = each
        return tuple(shortest.values())[:NEAREST]


def _without_one(
    rule: DenialConstraint, space: Space, names: Sequence[str]
) -> list[tuple[int, ...]]:
    """The atoms of all predicates of a rule but one. They are those of the rule itself where it
    says a thing twice."""
    return [
        atoms_of(DenialConstraint(rule.table, fewer), space, names)
        for left_out in range(len(rule.predicates))
        for fewer in [rule.predicates[:left_out] + rule.predicates[left_out + 1 :]]
    ]


def _tries(
    rule: DenialConstraint, space: Space, names: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """Sets of atoms, one of which a pair satisfies that could have broken a rule: cells that it
    compares by equality are equal, and those that it compares by order are less or more. None could
    break a rule that contradicts itself."""
    atoms: dict[int, set[int]] = {}
    for atom in atoms_of(rule, space, names):
        atoms.setdefault(space.comparison_of[atom], set()).add(atom)
    ways: list[list[tuple[int, ...]]] = []
    for comparison, shown in atoms.items():
        first, equal = space.first[comparison], space.agreeing(comparison)
        if len(shown) == len(space.comparisons[comparison].operators):
            ways.append([])
        elif shown == {*equal}:
            ways.append([equal])
        elif not shown.isdisjoint(equal):
            ways.append([(first, first + 2), (first + 1, first + 2)])
    return tuple(tuple(sorted(chain(*each))) for each in product(*ways))


def _in_order(predicate: Predicate) -> Predicate:
    """A predicate about two cells of one row, with these in one order."""
    same_row = predicate.left[0] == predicate.right[0]
    return predicate.turned if same_row and predicate.left > predicate.right else predicate


def _mirror(predicate: Predicate) -> Predicate:
    """The predicate with t and s in each other's place, row t on the left."""
    swap = {"t": "s", "s": "t"}
    (row, left), (other, right) = predicate.left, predicate.right
    turned = Predicate((swap[row], left), predicate.op, (swap[other], right))
    return turned.turned if turned.left[0] == "s" and turned.right[0] == "t" else turned


def _contains_other(masks: Masks, at: int) -> bool:
    inside = ((masks & ~masks[at]) == 0).all(axis=1)
    return bool(inside.sum() > 1)


def _is_unseen(version: Version, rule: DenialConstraint) -> bool:
    """Whether a rule is about single rows in a version whose table has one: its minimal sets are
    about pairs of rows, of which there are none."""
    return rule.is_within_a_row and version.commit.table(rule.table).rows == 1
