"""Which denial constraints follow from others: by transitivity, by a rule about single rows that is
applied to both rows, from keys and dependencies, and from rules that nearly hold.

A constraint follows if two rows that satisfied its predicates would satisfy all predicates of
another one. What is known of the two rows grows as in unit propagation: if they satisfy all
predicates of a known rule but one, they do not satisfy that one. Of cells that may be null nothing
follows from ``not (t.A < s.A)``: a null has no order.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints.predicates import atoms_of, denial_of, is_said
from holdfast.kinds.denial_constraints.reduction import closed
from holdfast.model.comparisons import FIRST, ORDER, SECOND, Space
from holdfast.model.constraints import Constraint, FunctionalDependency, Key
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.ranking import Ranked

if TYPE_CHECKING:
    from holdfast.report.snapshot import TableSnapshot

MOST = 500
"""So many rules are looked at, the first."""

_Image = tuple[int, Constraint]
"""The atoms of a rule, or of its mirror image, as bits; and the rule."""


def covered(
    scored: Sequence[Ranked],
    plain_rules: Iterable[DenialConstraint],
    table: TableSnapshot,
    space: Space,
) -> list[Ranked]:
    """Those that follow from no better ones, and then the others, each with what it follows from:
    better ones, keys and dependencies (``plain_rules``), and rules that nearly hold."""
    rules = _Rules(table, space)
    for plain in plain_rules:
        rules.add(plain, plain.plain or plain)
    for near in table.near_rules:
        if isinstance(near.rule, Key | FunctionalDependency | DenialConstraint):
            rules.add(denial_of(near.rule), near.rule)
    cover: list[Ranked] = []
    by: dict[int, tuple[Constraint, ...]] = {}
    looked_at = [each for each in scored[:MOST] if not each.by_chance]
    for each in looked_at:
        if not rules.proof(each.constraint):
            cover.append(each)
            rules.add(each.constraint, each.constraint)
    # One may follow from others that are as good, and come behind it.
    for each in reversed(cover):
        worse = {other.constraint for other in cover if other.score < each.score}
        if rules.proof(each.constraint, {each.constraint, *worse}):
            rules.remove(each.constraint)
    for each in looked_at:
        if not rules.has(each.constraint):
            by[id(each)] = rules.proof(each.constraint)
    first = [each for each in scored if id(each) not in by]
    implied = [replace(each, implied_by=by[id(each)]) for each in scored if id(each) in by]
    return [*first, *implied]


class _Rules:
    """Rules that are known, and what follows from them."""

    def __init__(self, table: TableSnapshot, space: Space) -> None:
        self._table, self._space = table, space
        self._images: list[_Image] = []
        without_nulls = {each.name for each in table.facts if each.nulls == 0}
        columns = [at for at, name in enumerate(table.columns) if name in without_nulls]
        self._never_null = {(row, column) for row in (0, 1) for column in columns}
        self._cells = [
            ((int(each.rows == SECOND), each.left), (int(each.rows != FIRST), each.right))
            for each in space.comparisons
        ]
        self._wholes = [
            _bits(range(first, first + len(each.operators)))
            for first, each in zip(space.first, space.comparisons, strict=True)
        ]
        self._across = any(each.left != each.right for each in space.comparisons)

    def has(self, rule: Constraint) -> bool:
        """Whether a rule is known."""
        return any(of == rule for _, of in self._images)

    def remove(self, rule: Constraint) -> None:
        """One rule less."""
        self._images = [image for image in self._images if image[1] != rule]

    def add(self, rule: Constraint, as_: Constraint) -> None:
        """One more rule, if the space has its predicates."""
        assert isinstance(rule, DenialConstraint)
        if rule.predicates and is_said(rule, self._space, self._table.columns):
            atoms = atoms_of(rule, self._space, self._table.columns)
            images = {_bits(atoms), _bits(self._space.mirrored(atoms))}
            self._images += [(image, as_) for image in sorted(images)]

    def proof(
        self, rule: Constraint, without: Container[Constraint] = ()
    ) -> tuple[Constraint, ...]:
        """Known rules from which another one follows, none of which can be left out."""
        assert isinstance(rule, DenialConstraint)
        atoms = _bits(atoms_of(rule, self._space, self._table.columns))
        images = [image for image in self._images if image[1] not in without]
        used = self._used(atoms, images)
        if used is None:
            return ()
        for each in dict.fromkeys(of for _, of in used):
            fewer = [image for image in used if image[1] != each]
            if self._used(atoms, fewer) is not None:
                used = fewer
        return tuple(dict.fromkeys(of for _, of in used))

    def _used(self, facts: int, images: Sequence[_Image]) -> list[_Image] | None:
        """Rules that two rows which show some atoms cannot keep; None: they can keep all."""
        used: list[_Image] = []
        growing = True
        while growing:
            growing = False
            closed_facts = self._closed(facts)
            if closed_facts is None:
                return used
            facts = closed_facts
            for image in images:
                missing = image[0] & ~facts
                if not missing:
                    return [*used, image]
                more = self._negated(missing, facts) & ~facts
                if more:
                    facts |= more
                    used.append(image)
                    growing = True
        return None

    def _closed(self, facts: int) -> int | None:
        """With all that follows from the order of values; None: no values satisfy that."""
        if any(facts & whole == whole for whole in self._wholes):
            return None
        if not self._across:
            return facts
        masks = bitsets.from_columns([_places(facts)], self._space.atoms)
        closures, satisfiable = closed(masks, self._space)
        return _bits(bitsets.to_columns(closures)[0]) if satisfiable[0] else None

    def _negated(self, missing: int, facts: int) -> int:
        """What two rows show that do not satisfy some atoms: nothing is known where these belong to
        several comparisons."""
        k = self._space.comparison_of[missing.bit_length() - 1]
        whole, first = self._wholes[k], self._space.first[k]
        if missing & ~whole:
            return 0
        if self._space.comparisons[k].operators != ORDER:
            return whole & ~missing
        less, more, differ = 1 << first, 2 << first, 4 << first
        if missing == less | more:
            return differ
        if missing == differ:
            return less | more
        if not facts & (less | more) and not self._values(facts).issuperset(self._cells[k]):
            return 0 if missing & differ else differ
        return {
            less: more | differ,
            more: less | differ,
            less | differ: more,
            more | differ: less,
        }.get(missing, 0)

    def _values(self, facts: int) -> set[tuple[int, int]]:
        """The cells that are no nulls: those that are less or more than another, or as much as one
        that is no null."""
        values = {*self._never_null}
        ordered = [
            (cells, facts >> first)
            for each, first, cells in zip(
                self._space.comparisons, self._space.first, self._cells, strict=True
            )
            if each.operators == ORDER and facts >> first & 3
        ]
        for _ in ordered:
            before = len(values)
            for cells, bits in ordered:
                if bits & 4 or not values.isdisjoint(cells):
                    values.update(cells)
            if len(values) == before:
                break
        return values


def _bits(atoms: Iterable[int]) -> int:
    return sum(1 << atom for atom in atoms)


def _places(bits: int) -> tuple[int, ...]:
    text = np.frombuffer(bits.to_bytes(-(-bits.bit_length() // 8), "little"), np.uint8)
    return tuple(np.flatnonzero(np.unpackbits(text, bitorder="little")).tolist())
