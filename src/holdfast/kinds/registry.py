"""The kinds of constraints: each is one type (``base.py``), and one line here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.kinds.base import Kind, Role
from holdfast.kinds.columns.kind import ColumnRules
from holdfast.kinds.denial_constraints.kind import DenialConstraints
from holdfast.kinds.functional_dependencies.kind import FunctionalDependencies
from holdfast.kinds.inclusion_dependencies.kind import InclusionDependencies
from holdfast.kinds.keys.kind import Keys
from holdfast.kinds.not_null.kind import NotNullColumns
from holdfast.kinds.parts import Part, ProfilePart, TablePart
from holdfast.kinds.whole_tables.kind import WholeTables
from holdfast.model.changes import BatchChanges, Changes, FromForm
from holdfast.model.constraints import Constraint
from holdfast.model.errors import InputError
from holdfast.model.grammar import parse
from holdfast.model.lazily import Lazily
from holdfast.model.near import NEAR
from holdfast.model.options import Options

if TYPE_CHECKING:
    from holdfast.kinds.examine import Examiner
    from holdfast.model.expectations import Expectation
    from holdfast.rules.form import RuleForm, Tables
    from holdfast.table.state import Table

KEYS, FDS, INDS, DCS, COLUMNS = (
    Keys(), FunctionalDependencies(), InclusionDependencies(), DenialConstraints(), ColumnRules(),
)  # fmt: skip

REGISTRY: dict[str, Kind] = {kind.name: kind for kind in (KEYS, FDS, INDS, DCS, COLUMNS)}
"""Every kind that profiles look for by the name that ``--kinds`` gives it, in the order in which
they are shown."""

ONLY_EXPECTED: tuple[Kind, ...] = (NotNullColumns(), WholeTables())
"""Kinds whose rules are expected and explained, but that no profile searches for."""

Shown = TypeVar("Shown", bound=Part)


def every() -> tuple[Kind, ...]:
    """Every kind of rules, those first that no profile searches for."""
    return (*ONLY_EXPECTED, *REGISTRY.values())


def named(names: Iterable[str]) -> list[Kind]:
    """The kinds of these names, in the order of the registry."""
    wanted = set(names)
    return [kind for name, kind in REGISTRY.items() if name in wanted]


def named_in(fields: Iterable[str]) -> list[Kind]:
    """The kinds of these JSON names, in the order of the registry."""
    wanted = set(fields)
    return [kind for kind in REGISTRY.values() if kind.field in wanted]


def makers() -> dict[str, FromForm]:
    """What makes constraints of their JSON forms, by the field that holds them."""
    return {kind.field: kind.constraint for kind in REGISTRY.values()}


def compare_pairs(kinds: Iterable[str]) -> bool:
    """Whether some of these kinds need pairs of rows to be compared."""
    return any(kind.pairs for kind in named(kinds))


def with_role(role: Role) -> list[Kind]:
    """The kinds whose constraints databases take for that."""
    return [kind for kind in every() if kind.role == role]


def of(constraint: Constraint) -> Kind:
    """The kind that a constraint is of."""
    for kind in every():
        if type(constraint) in kind.classes:
            return kind
    raise KeyError(f"no kind has constraints of the class {type(constraint).__name__}")


def canonical(text: str, tables: Tables) -> str:
    """A rule as Holdfast writes it. One that the tables cannot have is an error."""
    rule = parse(text)
    return str(of(rule).canonical(rule, tables))


def forms(
    expectations: Iterable[Expectation], tables: Mapping[str, Table], options: Options
) -> tuple[RuleForm, ...]:
    """What rows are judged by under some expectations."""
    columns = Lazily(tables, lambda name: tables[name].columns)
    return tuple(form(expectation, columns, options) for expectation in expectations)


def form(expectation: Expectation, tables: Tables, options: Options) -> RuleForm:
    """What rows are judged by under an expectation."""
    rule = expectation.constraint
    judged = of(rule).form(rule, tables, options)
    return judged if expectation.max_rows is None else judged.with_removal(expectation.rule)


def examiner(rule: Constraint) -> Examiner[Any]:
    """What can be asked of a rule."""
    return of(rule).examiner()


def gating(
    outcome: Changes | BatchChanges, kinds: Collection[str] | None = None
) -> Collection[str]:
    """The kinds of constraints that stop a batch where one breaks, by their JSON names: those that
    are named, or none where rules are expected, or else those that gate."""
    if kinds is None:
        gates = [kind.field for kind in REGISTRY.values() if kind.gates]
        kinds = gates if outcome.expectations is None else []
    return kinds


def breaks(outcome: Changes | BatchChanges, kinds: Collection[str] | None = None) -> bool:
    """Whether a batch should stop, unless it was applied before: where rules are expected, if one
    of them breaks whose severity is an error; else if rows violate what held before, of those kinds
    that gate. Of ``kinds`` that are named (by their JSON names) in either case."""
    if outcome.applied_before:
        return False
    kinds = gating(outcome, kinds)
    return outcome.stops or any(
        each.counts["broken"]
        for table in outcome.by_table.values()
        for kind, each in table.kinds.items()
        if kind in kinds
    )


_NAMED = 3
"""So many of the rules are named that a batch would break."""


def broken_in(outcome: Changes | BatchChanges) -> str:
    """What a refused batch would break, in a few words."""
    kinds = gating(outcome)
    rules = [each.rule for each in outcome.expectations or () if each.stops] or [
        str(broken.constraint)
        for table in outcome.by_table.values()
        for kind, of_kind in table.kinds.items()
        if kind in kinds
        for broken in of_kind.broken
    ]
    more = f" and {len(rules) - _NAMED:,} more" if len(rules) > _NAMED else ""
    return f"{', '.join(rules[:_NAMED])}{more}" if rules else "what should hold"


# What is asked for


def expect(names: Iterable[str]) -> None:
    """See that there are kinds of these names."""
    for name in names:
        if name not in REGISTRY:
            raise InputError(f"unknown kind {name!r}; there are: {', '.join(REGISTRY)}")


def completed(options: Options) -> Options:
    """Options whose kinds exist: those that are given or, without any, those by default.

    >>> completed(Options()).kinds
    ('keys', 'fds', 'inds', 'columns')
    """
    if not options.kinds:
        defaults = tuple(kind.name for kind in REGISTRY.values() if kind.default)
        options = replace(options, kinds=defaults)
    expect(options.kinds)
    counting = [kind.name for kind in REGISTRY.values() if kind.counts]
    if options.max_error is not None and not {*counting} & {*options.kinds}:
        raise InputError(
            f"max_error needs counted pairs of rows: add {' or '.join(counting)} to the kinds"
        )
    return options


# What can be shown


def table_parts(names: Collection[str] | None = None) -> dict[Kind, list[TablePart]]:
    """The parts of these names (None: all) that tables have, by kind."""
    return _by_kind((k, each) for k, each in _parts(names) if isinstance(each, TablePart))


def profile_parts(names: Collection[str] | None = None) -> dict[Kind, list[ProfilePart]]:
    """The parts of these names (None: all) that the profile has, by kind."""
    return _by_kind((k, each) for k, each in _parts(names) if isinstance(each, ProfilePart))


AGREE_SETS = "agree-sets"
"""A part of what is shown that is not a list of a kind: the evidence of pairs of rows."""

COLUMN_FACTS = "columns"
"""Another one: the facts about each column."""


def part_names() -> list[str]:
    """All parts that can be shown.

    >>> part_names()[:6]
    ['columns', 'near', 'keys', 'non-keys', 'fds', 'dcs']
    """
    of_tables = [part.name for parts in table_parts().values() for part in parts]
    of_profile = [part.name for parts in profile_parts().values() for part in parts]
    return [COLUMN_FACTS, NEAR, *of_tables, AGREE_SETS, *of_profile]


def _parts(names: Collection[str] | None) -> Iterator[tuple[Kind, Part]]:
    for kind in REGISTRY.values():
        for part in kind.parts:
            if names is None or part.name in names:
                yield kind, part


def _by_kind(parts: Iterable[tuple[Kind, Shown]]) -> dict[Kind, list[Shown]]:
    by_kind: dict[Kind, list[Shown]] = {}
    for kind, part in parts:
        by_kind.setdefault(kind, []).append(part)
    return by_kind
