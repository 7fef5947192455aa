"""Look-ups: how the rows are found that may violate constraints together with a new one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LookUp:
    """The rows s that satisfy some atoms with a row t, found in an index of every segment."""

    index: str  # its name; none where the atoms are about row t alone, and all rows go with it
    atoms: tuple[int, ...]
    share: float  # of all pairs that satisfied them when it was chosen
