"""How the constraints of a kind are written in the forms of other tools: one method for each form.

A form in ``export/`` has the frame of its files and asks the kind of each constraint for its part.
All but the query have a default: where a tool has no check of its own that says the same, the form
runs the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from holdfast.model.records import Json, JsonObject

if TYPE_CHECKING:
    from holdfast.export.contract import Choice, TableContract
    from holdfast.export.dbt import Dbt
    from holdfast.export.queries import Queries
    from holdfast.export.soda import Soda
    from holdfast.kinds.base import Kind
    from holdfast.model.inclusion_dependencies import ForeignKey
    from holdfast.model.ranking import Ranked
    from holdfast.report.snapshot import TableSnapshot

R = TypeVar("R")

Test = tuple[str, Json]
"""A column, and the test that a tool has for it; without a name it is of the table."""


@dataclass(frozen=True)
class Clause:
    """A constraint as part of a table in SQL, with the name that it gets. Without text there is
    none, and ``why`` says so."""

    rule: str
    name: str = ""
    text: str = ""
    why: str = ""
    unique: str = ""  # the columns of a key, which can be a unique index


class Exporter(Generic[R]):
    """The parts that the constraints of a kind have in exports."""

    heading: ClassVar[str] = "Rules"
    """Above a list of them on a page."""

    dimension: ClassVar[str] = "consistency"
    """The dimension of data quality that they are about."""

    renames_rows: ClassVar[bool] = False
    """Whether the query gives the rows of the table another name."""

    counts_rows: ClassVar[bool] = False
    """Whether the checks that tools have of their own count the rows that would have to go."""

    dbt_failures: ClassVar[str] = "count(*)"
    """What dbt makes of the rows of its own test, to count the rows that would have to go."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    # What is exported

    def chosen(
        self, choice: Choice, table: TableSnapshot, ranking: Sequence[Ranked]
    ) -> Iterable[Any]:
        """What is exported of a table: what was chosen, and what was found besides."""
        found = self.found(choice, table, ranking)
        return dict.fromkeys([*choice.chosen_of(self.kind, table.name), *found])

    def found(
        self,
        choice: Choice,
        table: TableSnapshot,
        ranking: Sequence[Ranked],  # noqa: ARG002
    ) -> Iterable[Any]:
        """What is exported of a table that nobody chose: nothing, unless everything that holds is
        asked for."""
        lists = self.kind.lists(table) if choice.everything else []
        return [
            each
            for part in lists[:1]
            for each in part.listed(table)
            if not getattr(each, "error", None)
        ]

    def chosen_across(self, choice: Choice) -> tuple[list[ForeignKey], list[Any]]:  # noqa: ARG002
        """What is exported between tables: foreign keys, and the others."""
        return [], []

    # How one is called

    def words(self, rule: R) -> tuple[Sequence[str], str]:
        """The words that its name consists of, and how that ends."""
        constraint: Any = rule
        return [constraint.tables[0], constraint.body], ""

    def sentence(self, rule: R) -> str | None:  # noqa: ARG002
        """It in words, where there are some."""
        return None

    def dimension_of(self, rule: R) -> str:  # noqa: ARG002  mostly that of the kind
        """The dimension of data quality that it is about."""
        return self.dimension

    # The forms

    def query(self, rule: R, sql: Queries) -> str:
        """The query that finds what violates it."""
        raise NotImplementedError(f"there is no query for {self.kind.nouns[1]}")

    def removal(self, rule: R, sql: Queries) -> tuple[str, str] | None:  # noqa: ARG002
        """The query that finds groups of rows which violate it, and the column that has how many
        of each would have to go. None: what :meth:`query` finds are single rows, all of which would
        have to go."""
        return None

    def clause(self, rule: R, sql: Queries, table: TableContract) -> Clause:  # noqa: ARG002
        """The constraint of a database."""
        return Clause(str(rule))

    def dbt_test(self, rule: R, dbt: Dbt) -> Test | None:  # noqa: ARG002
        """The column that one of dbt's own tests is for, and the test."""
        return None

    def dbt_constraint(self, rule: R, dbt: Dbt, table: TableContract) -> JsonObject | None:  # noqa: ARG002
        """What dbt can put into the table that it makes; None: nothing."""
        return None

    def great_expectation(self, rule: R) -> tuple[str, JsonObject] | None:  # noqa: ARG002
        """The expectation of Great Expectations that says the same, with its arguments."""
        return None

    def soda_check(self, rule: R, soda: Soda) -> Test | None:  # noqa: ARG002
        """The column that one of Soda's own checks is for, and the check."""
        return None
