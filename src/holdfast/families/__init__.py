"""The kinds of constraints: a kind is one type (``base.py``), and a line in the registry here."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.families.base import Kind
from holdfast.families.functional_dependencies import FunctionalDependencies
from holdfast.families.inclusion_dependencies.kind import InclusionDependencies
from holdfast.families.keys import Keys
from holdfast.model.changes import FromForm

REGISTRY: dict[str, Kind] = {
    kind.name: kind for kind in (Keys(), FunctionalDependencies(), InclusionDependencies())
}
"""Every kind by the name that ``--kinds`` gives it, in the order in which they are told."""


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
