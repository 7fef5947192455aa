"""What can be asked of one rule, whether or not a profile looks for its kind: an *examiner* counts
what violates it now, says whether it held in a version, and which rules are near it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from holdfast.families.stored import StoredTable
from holdfast.model.commits import Commit
from holdfast.model.constraints import Constraint
from holdfast.model.explanation import Example, Nearby, Violations
from holdfast.store import Store
from holdfast.store.run import Run
from holdfast.table.state import Table
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.examine import Shown
from holdfast.tasks.result import TaskResult
from holdfast.tasks.runner import Call

R = TypeVar("R", bound=Constraint)


@dataclass(frozen=True)
class Version:
    """A version that is asked about a rule; its files are read once."""

    store: Store
    commit: Commit
    _tables: dict[str, StoredTable] = field(default_factory=dict)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options of the profile."""
        return self.commit.options.to_dict()

    def table(self, name: str) -> StoredTable:
        """A table's part of it."""
        if name not in self._tables:
            record = self.commit.table(name)
            self._tables[name] = StoredTable(self.store, name, record, self.options, current=False)
        return self._tables[name]


@dataclass(frozen=True)
class Question:
    """Rows that are asked about a rule: those of the version that a run is about."""

    run: Run
    commit: Commit
    shown: Shown

    @cached_property
    def version(self) -> Version:
        """What the version says itself."""
        return Version(self.run.store, self.commit)

    def table(self, name: str) -> Table:
        """A table's rows."""
        return Table.stored(name, self.commit.table(name))

    def asked(self, calls: Sequence[Call]) -> list[TaskResult]:
        """What tasks answer, in one job."""
        return [each for results in self.run.runner.run(calls) for each in results]

    def examples(self, table: Table, results: Sequence[TaskResult]) -> tuple[Example, ...]:
        """The largest groups of all tasks, with rows."""
        found = [
            (int(size), ids[ids >= 0])
            for each in results
            for size, ids in zip(each.arrays["sizes"], each.arrays["ids"], strict=True)
        ]
        found.sort(key=lambda each: (-each[0], each[1].tolist()))
        found = found[: self.shown.groups]
        return tuple(
            Example(size, rows)
            for (size, _), rows in zip(
                found, self.rows(table, [ids for _, ids in found]), strict=True
            )
        )

    def rows(self, table: Table, ids: Sequence[Any]) -> list[tuple[dict[str, Any], ...]]:
        """Rows to show, some for each of several examples."""
        names = table.columns.names
        every = np.unique(np.concatenate([np.empty(0, np.int64), *ids]))
        text = rows_as_text(self.run.store.path, table.segments, names, every)
        return [tuple(json.loads(text[int(id_)]) for id_ in some) for some in ids]


class Examiner(ABC, Generic[R]):
    """What can be asked of the rules of one form."""

    kind: ClassVar[str]
    """As JSON names its kind."""

    unit: ClassVar[str] = "group"
    """What rows that violate it together are."""

    def expected(self, version: Version, rule: R) -> R:  # noqa: ARG002
        """The rule, if the profile has its tables and columns; as the version would write it."""
        return rule

    @abstractmethod
    def tables(self, rule: R) -> tuple[str, ...]:
        """The tables that it is about; the rows are those of the first."""

    def cells(self, rule: R) -> tuple[tuple[str, ...], tuple[str, ...]]:  # noqa: ARG002
        """The columns in which rows that violate it agree, and those that decide beside them."""
        return (), ()

    def names_rows(self, rule: R) -> bool:  # noqa: ARG002
        """Whether the two rows of an example are t and s."""
        return False

    @abstractmethod
    def violations(self, question: Question, rule: R) -> Violations:
        """What violates it now."""

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
