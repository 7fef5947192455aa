"""The settings of a profile, stored in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeAlias

from holdfast.model.errors import InputError
from holdfast.model.records import JsonObject

EVIDENCE = ("auto", "counted", "witnessed")
"""The ways to know the evidence for functional dependencies, and the choice between them."""

DEVICES = ("auto", "cpu", "gpu")
"""What pairs of rows can be counted with, and the choice between them."""

Settings: TypeAlias = Mapping[str, Any]
"""Options by their names, as a commit stores them."""


def _option(default: Any, text: str, form: str = "", **limits: Any) -> Any:
    """A field of :class:`Options`: its default, what ``--help`` says of it, the form of its values
    (as in ``N``), and its limits (``least``, ``choices`` or ``share``).

    The help of a field that is True by default is that of the option that turns it off.
    """
    return field(default=default, metadata={"help": text, "form": form, **limits})


def _choice(choices: Sequence[str], text: str) -> Any:
    """A field that has one of these values; the first is the default."""
    return _option(choices[0], text, "|".join(choices), choices=choices)


@dataclass(frozen=True)
class Options:
    """What a profile looks for, and how. Which kinds there are is known where a profile is created.

    The command line makes the options of ``holdfast profile`` from these fields.

    >>> Options(nulls="unequal").nulls
    'unequal'
    >>> Options(kinds="keys, fds").kinds
    ('keys', 'fds')
    """

    kinds: Sequence[str] = _option((), "What to look for", "KINDS")
    nulls: str = _choice(("equal", "unequal"), "Whether two nulls are equal.")
    named: Sequence[str] | None = None  # kinds asked for by name; None: all that are given
    max_columns: int | None = _option(
        None, "Look for keys and left-hand sides of at most N columns.", "N", least=1
    )
    time_budget: float | None = _option(
        None, "Stop searching a table after so many seconds.", "SECONDS"
    )
    evidence: str = _choice(EVIDENCE, "How pairs of rows are compared: all, or by searching.")
    device: str = _choice(DEVICES, "What counts pairs of rows; auto: a GPU where it is faster.")
    max_error: float | None = _option(
        None, "Also list what at most this share of row pairs violates.", "SHARE", share=True
    )
    near: str = _choice(("on", "off"), "Whether to look for rules that nearly hold.")
    near_strength: float = _option(
        0.8, "What a near dependency explains beyond chance, at least.", "SHARE", share=True
    )
    near_removal: float = _option(
        0.1, "The most rows that break a near dependency.", "SHARE", share=True
    )
    near_key_removal: float = _option(
        0.01, "The most rows that break a near key or denial constraint.", "SHARE", share=True
    )
    near_missing: float = _option(
        0.05, "The most values that a near foreign key misses.", "SHARE", share=True
    )
    near_columns: int = _option(
        2, "Left sides of rules that nearly hold have at most N columns.", "N", least=1
    )
    max_predicates: int | None = _option(
        None, "Look for denial constraints of at most N comparisons.", "N", least=1
    )
    cross_columns: float | None = _option(
        0.3, "Compare two columns that share this many of their values.", "SHARE|off"
    )
    columns: Sequence[str] = _option(
        (), "The columns that denial constraints compare, with commas.", "COLUMNS"
    )
    min_coverage: float = _option(
        1.0, "Also list inclusions that hold for this share of the values.", "SHARE"
    )
    max_arity: int | None = _option(
        None,
        "Look for all inclusions of at most N columns; without it, of two columns into keys.",
        "N",
        least=1,
    )
    inclusion_nulls: str = _choice(
        ("ignored", "values"), "Whether nulls must occur in the referenced column, too."
    )
    empty_columns: bool = _option(False, "Count a column without values as contained in others.")
    within_tables: bool = _option(False, "Also look for inclusions within one table.")
    insert_only: bool = _option(False, "Keep no counts of values; then deletes are refused.")
    index_quota: int = _option(
        8, "How many columns to index, once every key has an index.", "N", least=0
    )
    start: str = _choice(("full", "sample"), "sample: profile a sample, then insert the rest.")
    keep_rows: bool = _option(True, "Keep no raw rows, so that none can be shown.")
    keep_values: bool = _option(True, "Keep no values at all, only keyed hashes of them.")

    def __post_init__(self) -> None:
        names = self.kinds.split(",") if isinstance(self.kinds, str) else self.kinds
        object.__setattr__(self, "kinds", tuple(kind.strip() for kind in names))
        object.__setattr__(self, "named", tuple(self.kinds if self.named is None else self.named))
        columns = self.columns.split(",") if isinstance(self.columns, str) else self.columns
        object.__setattr__(self, "columns", tuple(column.strip() for column in columns))
        if not self.keep_values:
            object.__setattr__(self, "keep_rows", False)
        for option in fields(self):
            _expect(option.name, getattr(self, option.name), **option.metadata)
        if self.cross_columns is not None and not 0 <= self.cross_columns <= 1:
            raise InputError(
                f"cross_columns must be a share from 0 to 1, or off, not {self.cross_columns}"
            )
        if self.time_budget is not None and not self.time_budget > 0:
            raise InputError(f"time_budget must be above 0 seconds, not {self.time_budget}")
        if self.max_error is not None and self.evidence == "witnessed":
            raise InputError("max_error needs counted pairs of rows, not witnessed ones")
        expect_coverage(self.min_coverage)

    @property
    def arity(self) -> int:
        """The most columns on each side of an inclusion dependency."""
        return 2 if self.max_arity is None else self.max_arity

    def to_dict(self) -> JsonObject:
        """The form that a commit stores."""
        lists = {name: list(getattr(self, name) or ()) for name in ("kinds", "named", "columns")}
        return {**asdict(self), **lists}

    @staticmethod
    def from_dict(form: Settings) -> Options:
        """The options that a commit stored; ones it does not know keep their defaults."""
        known = {option.name for option in fields(Options)}
        given = {name: value for name, value in form.items() if name in known}
        return Options(**{**given, "kinds": tuple(given["kinds"])})


def expect_device(device: str) -> None:
    """See that pairs can be counted with it."""
    _expect("device", device, choices=DEVICES)


def expect_coverage(share: float) -> None:
    """See that a share of the values can be asked for."""
    if not 0 < share <= 1:
        raise InputError(f"min_coverage must be above 0 and at most 1, not {share}")


def _expect(
    name: str,
    value: Any,
    *,
    choices: Sequence[str] = (),
    least: int | None = None,
    share: bool = False,
    **_: Any,
) -> None:
    """See that the value of an option is within its limits; None is."""
    if choices and value not in choices:
        *first, last = map(repr, choices)
        raise InputError(f"{name} can be {', '.join(first)} or {last}, not {value!r}")
    if value is None:
        return
    if least is not None and value < least:
        raise InputError(f"{name} must be at least {least}, not {value}")
    if share and not 0 <= value <= 1:
        raise InputError(f"{name} must be a share from 0 to 1, not {value}")
