"""What a kind of constraint is: one type that the rest of Holdfast goes round, and never names.

A kind says what it is called, what it reads of a version's files, which lists can be shown of that
(its *parts*, ``parts.py``), what a batch did to its constraints, and how two versions differ in
them. A kind belongs to tables (:meth:`Kind.of_table`), or to the profile as a whole
(:meth:`Kind.of_profile`), or to both; what it found is in ``TableSnapshot.found`` and
``Snapshot.found``, by its name.

Kinds are imported wherever a profile is looked at, and for ``--help``, so what needs kernels or
files is imported where it is used.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from holdfast.kinds.parts import Part, ProfilePart, TablePart
from holdfast.model.changes import KindChanges
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Constraint
from holdfast.model.errors import InputError
from holdfast.model.options import Settings
from holdfast.model.ranking import Ranked
from holdfast.model.records import Json, from_form
from holdfast.model.versions import KindDiff
from holdfast.screen.text import count, plain

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.evidence.pairs import Need
    from holdfast.kinds.examine import Examiner
    from holdfast.kinds.exporter import Exporter
    from holdfast.kinds.stored import StoredProfile, StoredTable
    from holdfast.kinds.table_state import Step, TableState
    from holdfast.model.constraints import Key
    from holdfast.model.expectations import Tally
    from holdfast.model.inclusion_dependencies import Attribute
    from holdfast.model.near import NearBounds, NearRule
    from holdfast.model.options import Options
    from holdfast.model.whole_tables import Finding
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.rules.form import RuleForm, Tables
    from holdfast.runtime.run import Run
    from holdfast.screen.page import Page
    from holdfast.table.state import Table
    from holdfast.values.state import ValueState


Role = Literal["key", "not null"]


class Suggestions(NamedTuple):
    """Which constraints of a kind are worth expecting."""

    score: float  # of one that is suggested, at least
    by_chance: bool = False  # whether they hold by chance in small tables
    most: int | None = None  # of a table
    words: tuple[str, ...] = ()  # that the reason begins with


class Kind(ABC):
    """One kind of constraint."""

    name: ClassVar[str]
    """As ``--kinds`` and the stored options name it: ``fds``."""

    field: ClassVar[str]
    """As JSON and changes name it: ``functional_dependencies``."""

    nouns: ClassVar[tuple[str, str]]
    """As people name one of them, and several."""

    how_broken: ClassVar[str] = ""
    """What rows do that break one: "two rows agree on it"; empty where that is plain."""

    compares_rows: ClassVar[bool] = False
    """Whether its rules compare cells of rows of one table, which have an error and show rows."""

    sharing: ClassVar[str] = ""
    """What rows do that break one together: "share it"; empty where pairs of rows break one."""

    wrap_after: ClassVar[str | None] = None
    """Where a line that is too long for the screen is broken; None: after any word."""

    default: ClassVar[bool] = True
    """Whether it is looked for where no kinds are named."""

    how_lost: ClassVar[tuple[str, str]] = ("broken", "would break")
    """What is said of some that rows violate, and of those that they would violate."""

    how_minimal: ClassVar[str] = "shorter"
    """What those became in whose place others hold that imply them."""

    gates: ClassVar[bool] = True
    """Whether one that breaks lets ``check`` exit with 1 where no kinds are named."""

    pairs: ClassVar[bool] = False
    """Whether it needs pairs of rows to be compared."""

    counts: ClassVar[bool] = False
    """Whether it is read from counted pairs of rows where errors are asked for."""

    values: ClassVar[bool] = False
    """Whether it needs the values of all columns to be counted."""

    samples: ClassVar[bool] = False
    """Whether it needs to know what occurs in columns."""

    needs_distinct_rows: ClassVar[bool] = False
    """Whether a row that is there twice breaks all of them."""

    optional: ClassVar[bool] = False
    """Whether asking for it where it is not looked for shows none, instead of being an error."""

    space: ClassVar[str] = AGREEMENTS
    """The space of comparisons of pairs of rows that it is read from, if it needs pairs."""

    options: ClassVar[tuple[str, ...]] = ()
    """The options of a profile that concern it alone."""

    parts: ClassVar[tuple[Part, ...]] = ()
    """What ``holdfast show DIR PART`` can show of it."""

    classes: ClassVar[tuple[type, ...]] = ()
    """The classes of its constraints in ``model/``; first the one that it finds."""

    suggestions: ClassVar[Suggestions | None] = None
    """Which of them are worth expecting (``suggested.py``); None: none."""

    role: ClassVar[Role | None] = None
    """What databases take one for: a key, or a column that is never null."""

    worthwhile: ClassVar[float | None] = None
    """The score from which on one that holds is watched, if no others imply it: where a few rows
    break it, it nearly holds. None: none is."""

    # How it is found

    def needs(self, run: Run, table: Table) -> Need | None:  # noqa: ARG002  values are no pairs
        """What it asks of the pairs of a table's rows; None: nothing."""
        return None

    def count(self, known: TableState) -> int | None:  # noqa: ARG002  a kind of the profile has none
        """How many a table has, for its history; None: it was not looked for."""
        return None

    # What a version says

    def of_table(self, stored: StoredTable) -> Any:  # noqa: ARG002  a kind of the profile has none
        """What it found in a table; None: it was not looked for. What may be a million constraints
        is a sequence that makes them when they are asked for."""
        return None

    def of_profile(self, stored: StoredProfile) -> Any:  # noqa: ARG002  a kind of tables has none
        """What it found across tables; None: it was not looked for."""
        return None

    def distinct_values(self, reading: Any) -> dict[Attribute, int]:  # noqa: ARG002
        """How many distinct values columns of all tables have, where what it found says so."""
        return {}

    def within(self, sets: pa.Table, table: TableSnapshot) -> Any:
        """What it finds in a table, of all minimal sets within another bound on the error."""
        raise NotImplementedError(f"{self.nouns[1]} are not read from minimal sets")

    def left_out(self, table: TableSnapshot) -> str:  # noqa: ARG002  most look at every table
        """Why it was not looked for in a table of a profile that looks for it; empty: it was."""
        return ""

    def constraint(self, table: str, form: Json) -> Constraint:
        """The constraint of a JSON form."""
        constraint: Constraint = from_form(self.classes[0], form, table=table)
        return constraint

    def changes(self, run: Run, step: Step) -> KindChanges | None:  # noqa: ARG002
        """What a batch did to the constraints; None where the kind is not looked for."""
        return None

    def diff(self, before: Snapshot, after: Snapshot, table: str) -> KindDiff | None:
        """What holds without error in one version of a table alone; None where that is unknown."""
        old, new = (version.tables[table].found.get(self.name) for version in (before, after))
        if old is None or new is None:
            return None
        return KindDiff(self.without(new, old), self.without(old, new))

    def without(self, one: Any, other: Any) -> tuple[Constraint, ...]:
        """What it found in one version that is not in the other; in the same order."""
        known = set(other)
        return tuple(constraint for constraint in one if constraint not in known)

    # What nearly holds

    def near_form(self, rule: Any, tables: Tables, options: Options) -> RuleForm | None:  # noqa: ARG002
        """What rows are judged by under a rule that nearly holds, so that removal follows from what
        is kept; None: it does not."""
        return None

    def nearly(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        table: str,  # noqa: ARG002
        bounds: NearBounds,  # noqa: ARG002
        keys: Mapping[str, Sequence[Key]],  # noqa: ARG002
        values: ValueState | None,  # noqa: ARG002
    ) -> list[tuple[float, NearRule]]:
        """Its constraints about a table that nearly hold, with their scores, as far as values tell;
        how many rows break them is not known yet. ``keys`` are the keys of all tables that nearly
        hold; ``values`` are newer than those of the snapshot, None: they are not."""
        return []

    def nearly_in_rows(
        self,
        run: Run,  # noqa: ARG002
        state: TableState,  # noqa: ARG002
        bounds: NearBounds,  # noqa: ARG002
    ) -> list[NearRule]:
        """Its constraints about a table that nearly hold, where rows have to be counted to tell, in
        the time that there is; those of keys and dependencies are looked for together
        (:mod:`holdfast.rules.near`)."""
        return []

    def bounds_removal(self, rule: Any) -> bool:  # noqa: ARG002
        """Whether an expected rule can be bounded by the rows that would have to go."""
        return True

    def broke(self, rule: Any, step: Step) -> bool:  # noqa: ARG002
        """Whether a batch broke a rule, as far as what is kept tells."""
        return False

    def broken_elsewhere(self, step: Step) -> set[str]:  # noqa: ARG002
        """The tables with constraints that a batch broke, though it did not change the tables."""
        return set()

    # What is asked for

    def predicates(self, state: TableState, run: Run | None) -> Any:  # noqa: ARG002
        """What it compares in a table, and, with a run, what today's rows would choose; None: it
        was not looked for, or compares everything."""
        return None

    def expect(self, options: Options, tables: Mapping[str, Sequence[str]]) -> None:  # noqa: B027
        """Refuse options that name what no table has; ``tables`` are their columns."""

    def asked_with(self, reading: Any, options: Settings) -> Any:  # noqa: ARG002
        """What it found, as ``show`` asks for it with other values of its options."""
        return reading

    def missing(self, kinds: Sequence[str], table: str | None = None, why: str = "") -> InputError:
        """The error of asking for it where a profile of these kinds does not look for it."""
        of = "" if table is None else f" of {table!r}"
        because = f" ({why})" if why else ""
        wanted = ",".join(dict.fromkeys([*kinds, self.name]))
        return InputError(
            f"the profile does not look for {self.nouns[1]}{of}{because}; "
            f"profile it with --kinds {wanted}"
        )

    # What matters first

    def rank(self, snapshot: Snapshot, table: str) -> list[Ranked]:  # noqa: ARG002
        """Its constraints about a table that hold, those that matter most first, each with a score
        from 0 to 1 and its reasons; of very many, the first. What batches say of them is added by
        :func:`holdfast.kinds.ranking.ranked`."""
        return []

    def judged(self, constraint: Any, snapshot: Snapshot, table: str) -> Ranked:  # noqa: ARG002
        """How much one would matter that does not hold, on the scale of the ranks."""
        from holdfast.model.ranking import Ranked

        return Ranked(constraint, 0.0)

    def weigh(self, constraints: Sequence[Any], snapshot: Snapshot, table: str) -> list[Ranked]:
        """How much some would matter, one by one, that hold in other rows than a version's."""
        return [self.judged(each, snapshot, table) for each in constraints]

    def matters(self, each: Ranked) -> bool:
        """Whether one is told first, where it holds, came or went; the others are counted."""
        return each.stands_alone

    def score(self, constraint: Any, snapshot: Snapshot, table: str) -> float:
        """The score of one that does not hold."""
        return self.judged(constraint, snapshot, table).score

    def examiner(self) -> Examiner[Any]:
        """What can be asked of one that is written down."""
        raise NotImplementedError(f"{self.nouns[1]} have no rule in the grammar")

    def canonical(self, rule: Any, tables: Tables) -> Any:
        """One that is written down, as Holdfast writes it: of several ways to say the same, one. A
        rule that the tables cannot have is an error."""
        return self.examiner().canonical(rule, tables)

    def form(self, rule: Any, tables: Tables, options: Options) -> RuleForm:
        """What rows are judged by under one that is written down."""
        return self.examiner().form(rule, tables, options)

    def rule_of(self, constraint: Any) -> Any:
        """The rule of the grammar that a constraint is."""
        return constraint

    def exporter(self) -> Exporter[Any]:
        """How its constraints are written in the forms of other tools."""
        from holdfast.kinds.exporter import Exporter

        return Exporter(self)

    # On the terminal

    def lists(self, table: TableSnapshot) -> list[TablePart]:
        """Its lists of a table; none where it was not looked for."""
        parts = self.parts if self.name in table.found else ()
        return [part for part in parts if isinstance(part, TablePart)]

    def overview(
        self,
        page: Page,
        snapshot: Snapshot,
        table: TableSnapshot,
        ranking: Sequence[Ranked],  # noqa: ARG002  without ranks everything is shown
    ) -> None:
        """Its lines in what is shown of a table first: the few that matter."""
        for part in self.lists(table):
            if part.brief:
                part.show(page, table, snapshot.options, verbose=False)

    def overview_of_profile(self, page: Page, snapshot: Snapshot) -> None:
        """Its lines below those of all tables."""
        for part in self.parts:
            if isinstance(part, ProfilePart) and part.brief and self.name in snapshot.found:
                part.show(page, snapshot, asked=False)

    def of_rows(self, rule: Any) -> bool:  # noqa: ARG002  most are about pairs
        """Whether single rows violate one that is written down, not pairs of them."""
        return False

    def violated_by(self, rule: Any, tally: Tally) -> str:
        """How many rows or pairs violate one that is written down."""
        if tally.found is not None:
            return self.finding(rule, tally.found)
        number = tally.violations or 0
        if tally.total and self.of_rows(rule):
            return f"{count(number, 'row')} of {tally.total:,}"
        return f"{count(number, 'pair')} of rows"

    def finding(self, rule: Any, found: Finding) -> str:
        """What one about a whole table found there."""
        raise NotImplementedError(f"{rule} is not about a whole table")

    def body(self, constraint: Any) -> str:
        """A constraint that a change tells of, under its table's heading."""
        return plain(constraint.body)

    def became(self, old: Any, new: Any) -> str:
        """A constraint that a batch changed, and the one that holds in its place."""
        return f"{self.body(old)} → {self.body(new)}"

    def explain(self, page: Page, table: TableSnapshot) -> None:  # noqa: B027  most need not
        """Tell how it is known in a table, for ``show --verbose``."""
