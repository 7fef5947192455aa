"""Holdfast finds the constraints that hold in tables and keeps them true as rows change.

>>> from holdfast import Profile
>>> profile = Profile.open("shop")  # doctest: +SKIP
>>> profile.keys("orders")  # doctest: +SKIP
[Key(table='orders', columns=('id',), error=None)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast.api import Profile
    from holdfast.input.sources import Source
    from holdfast.model.changes import Changes, Lost
    from holdfast.model.constraints import (
        Attribute,
        Cluster,
        DenialConstraint,
        ForeignKey,
        FunctionalDependency,
        InclusionDependency,
        Key,
        NonKey,
        NotNull,
        Predicate,
    )
    from holdfast.model.errors import HoldfastError
    from holdfast.model.options import Options

_PLACES = {
    "Profile": "api",
    "Changes": "model.changes",
    "Lost": "model.changes",
    "Attribute": "model.constraints",
    "Cluster": "model.constraints",
    "DenialConstraint": "model.constraints",
    "ForeignKey": "model.constraints",
    "FunctionalDependency": "model.constraints",
    "InclusionDependency": "model.constraints",
    "Key": "model.constraints",
    "NonKey": "model.constraints",
    "NotNull": "model.constraints",
    "Predicate": "model.constraints",
    "HoldfastError": "model.errors",
    "Options": "model.options",
    "Source": "input.sources",
}

__all__ = [
    "Attribute",
    "Changes",
    "Cluster",
    "DenialConstraint",
    "ForeignKey",
    "FunctionalDependency",
    "HoldfastError",
    "InclusionDependency",
    "Key",
    "Lost",
    "NonKey",
    "NotNull",
    "Options",
    "Predicate",
    "Profile",
    "Source",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import holdfast` is quick."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"holdfast.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
