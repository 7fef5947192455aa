"""Holdfast finds the constraints that hold in tables and keeps them true as rows change.

>>> from holdfast import Profile
>>> profile = Profile.open("shop")  # doctest: +SKIP
>>> profile.keys("orders")  # doctest: +SKIP
[Key(columns=('id',))]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast.api import Profile
    from holdfast.changes import Changes, Lost
    from holdfast.constraints import (
        Attribute,
        Cluster,
        ForeignKey,
        InclusionDependency,
        Key,
        NonKey,
    )
    from holdfast.errors import HoldfastError
    from holdfast.options import Options
    from holdfast.sources import Source

_PLACES = {
    "Profile": "api",
    "Changes": "changes",
    "Lost": "changes",
    "Attribute": "constraints",
    "Cluster": "constraints",
    "ForeignKey": "constraints",
    "InclusionDependency": "constraints",
    "Key": "constraints",
    "NonKey": "constraints",
    "HoldfastError": "errors",
    "Options": "options",
    "Source": "sources",
}

__all__ = [
    "Attribute",
    "Changes",
    "Cluster",
    "ForeignKey",
    "HoldfastError",
    "InclusionDependency",
    "Key",
    "Lost",
    "NonKey",
    "Options",
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
