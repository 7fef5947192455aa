"""What can be asked of one rule, whether or not a profile looks for its kind: an *examiner* counts
what violates it now, says whether it held in a version, and which rules are near it.

What a version says is read without kernels, because ``show`` asks for it, too; what needs rows
imports them where it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels.arrays import U64
from holdfast.kinds.stored import StoredTable
from holdfast.model.commits import Commit
from holdfast.model.constraints import Constraint
from holdfast.model.explanation import Nearby, Violations
from holdfast.model.options import Options, Settings
from holdfast.rules.form import RuleForm, Tables
from holdfast.store import Store
from holdfast.store.codecs import matrix_of

if TYPE_CHECKING:
    from holdfast.kinds.question import Question

R = TypeVar("R", bound=Constraint)


@dataclass(frozen=True)
class ExactSets:
    """Minimal sets that no pair violates, with the rhs of each."""

    masks: U64
    rhs: NDArray[np.int32]

    @staticmethod
    def of(kept: pa.Table, atoms: int) -> ExactSets:
        """Those of a file, through its buffers: pyarrow's own ways would import pandas."""
        rhs, error = _numbers(kept, "rhs", np.int32), _numbers(kept, "error", np.float64)
        masks = matrix_of(kept.column("mask"), max(1, -(-atoms // 64)))
        return ExactSets(masks[error == 0], rhs[error == 0])

    def of_rhs(self, rhs: int) -> U64:
        """The sets of one rhs."""
        sets: U64 = self.masks[self.rhs == rhs]
        return sets


def _numbers(kept: pa.Table, name: str, dtype: type) -> NDArray[Any]:
    parts: list[NDArray[Any]] = [np.empty(0, dtype)]
    for chunk in kept.column(name).chunks:
        if len(chunk):
            data: NDArray[Any] = np.frombuffer(chunk.buffers()[1], dtype)
            parts.append(data[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts)


@dataclass(frozen=True)
class Version:
    """A version that is asked about a rule; its files are read once."""

    store: Store
    commit: Commit
    _tables: dict[str, StoredTable] = field(default_factory=dict)
    _sets: dict[tuple[str, str], ExactSets] = field(default_factory=dict)

    @cached_property
    def options(self) -> Settings:
        """The options of the profile."""
        return self.commit.options.to_dict()

    @property
    def read(self) -> int:
        """How many minimal sets were read so far."""
        return sum(len(each.masks) for each in self._sets.values())

    def sets(self, name: str, space: str, atoms: int) -> ExactSets:
        """The minimal sets of a table that no pair violates."""
        if (name, space) not in self._sets:
            table = self.table(name)
            self._sets[name, space] = ExactSets.of(table.file("sets", space), atoms)
        return self._sets[name, space]

    def table(self, name: str) -> StoredTable:
        """A table's part of it."""
        if name not in self._tables:
            record = self.commit.table(name)
            self._tables[name] = StoredTable(self.store, name, record, self.options, current=False)
        return self._tables[name]


class Examiner(ABC, Generic[R]):
    """What can be asked of the rules of one form."""

    kind: ClassVar[str]
    """As JSON names its kind."""

    unit: ClassVar[str] = "group"
    """What rows that violate it together are."""

    @abstractmethod
    def checked(self, rule: R, tables: Tables) -> R:
        """The rule with its columns in table order, each once. One that the tables cannot have is
        an error."""

    def canonical(self, rule: R, tables: Tables) -> R:
        """The rule as Holdfast writes it: of several ways to say the same, one."""
        return self.checked(rule, tables)

    @abstractmethod
    def form(self, rule: R, tables: Tables, options: Options) -> RuleForm:
        """What rows are judged by."""

    def cells(self, rule: R) -> tuple[tuple[str, ...], tuple[str, ...]]:  # noqa: ARG002
        """The columns in which rows that violate it agree, and those that decide beside them."""
        return (), ()

    def names_rows(self, rule: R) -> bool:  # noqa: ARG002
        """Whether the two rows of an example are t and s."""
        return False

    @abstractmethod
    def violations(self, question: Question, rule: R) -> Violations:
        """What violates it now."""

    def tested(self, question: Question, rule: R, violations: Violations) -> int | None:  # noqa: ARG002
        """How many pairs of rows nearly violate a rule that holds: all but one of its conditions
        are met. For a dependency, those that agree on the left; for an inclusion, rows."""
        return violations.tested

    def nearby(self, question: Question, rule: R, holds: bool) -> Nearby:  # noqa: ARG002
        """The rules near it."""
        return Nearby()

    def source(self, version: Version, rule: R) -> Any:  # noqa: ARG002
        """What the answer of :meth:`held` depends on: the same in two versions where nothing
        changed that concerns the rule."""
        return None

    def held(self, version: Version, rule: R) -> bool | None:  # noqa: ARG002
        """Whether a version says that it holds; None: it says neither."""
        return None
