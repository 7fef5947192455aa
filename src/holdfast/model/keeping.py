"""Which versions of a profile stay, where old ones expire."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.model.errors import InputError


@dataclass(frozen=True)
class Keeping:
    """The last so many versions, and those that were the last one at some time in so many days; at
    least one of the two."""

    versions: int | None = None
    days: float | None = None

    @staticmethod
    def of(versions: int | None, days: float | None) -> Keeping | None:
        """What is asked for; None: all versions stay."""
        if versions is not None and versions < 1:
            raise InputError(f"the last version always stays: keep 1 or more, not {versions}")
        if days is not None and days < 0:
            raise InputError(f"the days for which versions stay cannot be negative, but are {days}")
        return None if versions is None and days is None else Keeping(versions, days)
