"""The settings of a profile, stored in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from holdfast.model.errors import InputError

EVIDENCE = ("auto", "counted", "witnessed")
"""The ways to know the evidence for functional dependencies, and the choice between them."""

DEVICES = ("auto", "cpu", "gpu")
"""What pairs of rows can be counted with, and the choice between them."""


@dataclass(frozen=True)
class Options:
    """What a profile looks for, and how. Which kinds there are is known where a profile is created.

    >>> Options(nulls="unequal").nulls
    'unequal'
    >>> Options(kinds="keys, fds").kinds
    ('keys', 'fds')
    """

    kinds: Sequence[str] = ()  # or text, with commas; without any, those by default
    nulls: str = "equal"  # or "unequal": a null differs from every null, as in SQL's UNIQUE
    named: Sequence[str] | None = None  # kinds asked for by name; None: all that are given
    evidence: str = "auto"  # or "counted", "witnessed": how functional dependencies are known
    device: str = "auto"  # or "cpu", "gpu": what pairs of rows are counted with
    max_columns: int | None = None  # the longest key or left side to look for
    time_budget: float | None = None  # seconds of search in a table before it is left incomplete
    max_error: float | None = None  # also what so small a share of row pairs violates
    max_predicates: int | None = None  # the most comparisons of a denial constraint
    cross_columns: float | None = 0.3  # columns that share so many values are compared; None: off
    columns: Sequence[str] = ()  # that denial constraints compare, and how: "id", "zip=equality"
    min_coverage: float = 1.0  # also columns of whose values so large a share is in another
    max_arity: int = 1  # columns on each side of an inclusion dependency
    inclusion_nulls: str = "ignored"  # or "values": a null must occur in the referenced column too
    empty_columns: bool = False  # whether a column without values is contained in all others
    within_tables: bool = False  # whether columns of one table are looked for in each other, too
    insert_only: bool = False  # count no values: smaller and faster, but deletes are refused
    index_quota: int = 8  # indexed columns in all, once every key is covered
    start: str = "full"  # or "sample": profile a sample, then apply the rest as inserts
    keep_rows: bool = True  # without raw rows witnesses are shown by row id
    keep_values: bool = True  # or keyed hashes in place of all cells, and no raw rows either

    def __post_init__(self) -> None:
        named = self.kinds.split(",") if isinstance(self.kinds, str) else self.kinds
        object.__setattr__(self, "kinds", tuple(kind.strip() for kind in named))
        given = self.kinds if self.named is None else self.named
        object.__setattr__(self, "named", tuple(given))
        columns = self.columns.split(",") if isinstance(self.columns, str) else self.columns
        object.__setattr__(self, "columns", tuple(column.strip() for column in columns))
        if not self.keep_values:
            object.__setattr__(self, "keep_rows", False)
        if self.nulls not in ("equal", "unequal"):
            raise InputError(f"nulls can be 'equal' or 'unequal', not {self.nulls!r}")
        if self.start not in ("full", "sample"):
            raise InputError(f"start can be 'full' or 'sample', not {self.start!r}")
        if self.max_columns is not None and self.max_columns < 1:
            raise InputError(f"max_columns must be at least 1, not {self.max_columns}")
        if self.max_predicates is not None and self.max_predicates < 1:
            raise InputError(f"max_predicates must be at least 1, not {self.max_predicates}")
        if self.cross_columns is not None and not 0 <= self.cross_columns <= 1:
            raise InputError(
                f"cross_columns must be a share from 0 to 1, or off, not {self.cross_columns}"
            )
        if self.evidence not in EVIDENCE:
            raise InputError(
                f"evidence can be 'auto', 'counted' or 'witnessed', not {self.evidence!r}"
            )
        expect_device(self.device)
        if self.time_budget is not None and not self.time_budget > 0:
            raise InputError(f"time_budget must be above 0 seconds, not {self.time_budget}")
        if self.max_error is not None and not 0 <= self.max_error <= 1:
            raise InputError(f"max_error must be a share from 0 to 1, not {self.max_error}")
        if self.max_error is not None and self.evidence == "witnessed":
            raise InputError("max_error needs counted pairs of rows, not witnessed ones")
        expect_coverage(self.min_coverage)
        if self.max_arity < 1:
            raise InputError(f"max_arity must be at least 1, not {self.max_arity}")
        if self.inclusion_nulls not in ("ignored", "values"):
            raise InputError(
                f"inclusion_nulls can be 'ignored' or 'values', not {self.inclusion_nulls!r}"
            )
        if self.index_quota < 0:
            raise InputError(f"index_quota cannot be negative, but is {self.index_quota}")

    def to_dict(self) -> dict[str, Any]:
        """The form that a commit stores."""
        lists = {name: list(getattr(self, name) or ()) for name in ("kinds", "named", "columns")}
        return {**asdict(self), **lists}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> Options:
        """The options that a commit stored; ones it does not know keep their defaults."""
        known = {field.name for field in fields(Options)}
        given = {name: value for name, value in form.items() if name in known}
        return Options(**{**given, "kinds": tuple(given["kinds"])})


def expect_device(device: str) -> None:
    """See that pairs can be counted with it."""
    if device not in DEVICES:
        raise InputError(f"device can be 'auto', 'cpu' or 'gpu', not {device!r}")


def expect_coverage(share: float) -> None:
    """See that a share of the values can be asked for."""
    if not 0 < share <= 1:
        raise InputError(f"min_coverage must be above 0 and at most 1, not {share}")
