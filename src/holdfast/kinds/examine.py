"""What a kind says of one rule that is written down, whether or not a profile looks for the kind.
An *examiner* gives the form that rows are judged by, says whether the rule held in a version, and
which rules are near it.

What a version says is read without kernels, because ``show`` asks for it, too; what needs rows
imports them where it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from holdfast.model.constraints import Constraint
from holdfast.model.explanation import Nearby
from holdfast.model.options import Options
from holdfast.rules.form import RuleForm, Tables
from holdfast.rules.version import Version

if TYPE_CHECKING:
    from holdfast.kinds.table_state import TableState
    from holdfast.rules.question import Question

R = TypeVar("R", bound=Constraint)


class Examiner(ABC, Generic[R]):
    """What a kind says of its rules, one by one."""

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

    def counted_error(self, state: TableState, rule: R) -> float | None:  # noqa: ARG002
        """Its error as the counted pairs of rows have it; None: there are none that say it."""
        return None

    def cells(self, rule: R) -> tuple[tuple[str, ...], tuple[str, ...]]:  # noqa: ARG002
        """The columns in which rows that violate it agree, and those that decide beside them."""
        return (), ()

    def names_rows(self, rule: R) -> bool:  # noqa: ARG002
        """Whether the two rows of an example are t and s."""
        return False

    def nearby(
        self,
        question: Question,  # noqa: ARG002
        version: Version,  # noqa: ARG002
        rule: R,  # noqa: ARG002
        holds: bool,  # noqa: ARG002
    ) -> Nearby:
        """The rules near it."""
        return Nearby()

    def source(self, version: Version, rule: R) -> Any:  # noqa: ARG002
        """What the answer of :meth:`held` depends on: the same in two versions where nothing
        changed that concerns the rule."""
        return None

    def held(self, version: Version, rule: R) -> bool | None:  # noqa: ARG002
        """Whether a version says that it holds; None: it says neither."""
        return None
