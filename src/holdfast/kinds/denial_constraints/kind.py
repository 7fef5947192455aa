"""Denial constraints: sets of predicates that no two rows satisfy all of."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.base import Kind, Suggestions
from holdfast.kinds.denial_constraints.show import SPACE, WRAP_AFTER, DenialList
from holdfast.kinds.parts import explain_evidence
from holdfast.model.changes import KindChanges
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.errors import InputError
from holdfast.model.limits import Limits
from holdfast.model.names import listed
from holdfast.model.ranking import Ranked, broke
from holdfast.screen.page import FEW

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.cover.counts import EvidenceCounts, SampledPairs
    from holdfast.evidence.pairs import Need
    from holdfast.kernels.bitsets import Masks
    from holdfast.kinds.denial_constraints.examine import DenialExaminer
    from holdfast.kinds.denial_constraints.export import DenialExporter
    from holdfast.kinds.denial_constraints.predicate_listing import Predicates
    from holdfast.kinds.denial_constraints.reading import Denials
    from holdfast.kinds.stored import StoredTable
    from holdfast.kinds.table_state import Step, TableState
    from holdfast.model.near import NearBounds, NearRule
    from holdfast.model.options import Options
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.rules.form import RuleForm, Tables
    from holdfast.runtime.run import Run
    from holdfast.screen.page import Page
    from holdfast.table.state import Table


log = logging.getLogger("holdfast")


class DenialConstraints(Kind):
    """Minimal denial constraints over two rows, one of two mirror images. Most hold by accident, so
    that they are looked for when they are named, and none of them stops a batch."""

    name = "dcs"
    field = "denial_constraints"
    nouns = ("denial constraint", "denial constraints")
    how_broken = "two rows satisfy it"
    compares_rows = True
    wrap_after = WRAP_AFTER
    space = SPACE
    default = False
    gates = False
    counts = True
    options = ("max_predicates", "cross_columns", "columns")
    parts = (DenialList(),)
    suggestions = Suggestions(0.7, by_chance=True, most=3)
    classes = (DenialConstraint,)

    def needs(self, run: Run, table: Table) -> Need:
        """No two rows may satisfy a set of atoms of the space that is chosen for the table."""
        from holdfast.cover.dependencies import KEY
        from holdfast.evidence.pairs import Need
        from holdfast.kinds.denial_constraints.space import chosen

        return Need(chosen(run, table), (KEY,), Limits(keys=run.options.max_predicates))

    def expect(self, options: Options, tables: Mapping[str, Sequence[str]]) -> None:
        """Every column that is named is one of a table's. Without values there is no order."""
        if not options.keep_values:
            log.warning(
                "a profile without values knows no order: denial constraints compare by = and != "
                "alone"
            )
        known = {name for columns in tables.values() for name in columns}
        known |= {f"{table}.{name}" for table, columns in tables.items() for name in columns}
        for each in options.columns:
            name = each.partition("=")[0].strip()
            if name not in known:
                has = "; ".join(f"{table}: {listed(names)}" for table, names in tables.items())
                raise InputError(f"no table has the column {name!r} (columns); there are {has}")

    def predicates(self, state: TableState, run: Run | None) -> Predicates | None:
        """The comparisons that were chosen at the first profile."""
        from holdfast.kinds.denial_constraints.predicate_listing import Predicates
        from holdfast.kinds.denial_constraints.space import chosen

        if SPACE not in state.evidence:
            return None
        today = None if run is None else chosen(run, state.table)
        return Predicates(state.table.columns.names, state.evidence[SPACE].space, today)

    def count(self, known: TableState) -> int | None:
        """Those that are reported, without error."""
        from holdfast.kinds.denial_constraints.reduction import reported

        evidence = known.evidence.get(SPACE)
        if evidence is None:
            return None
        return len(reported(evidence.covers.keys.minimal, evidence.space))

    def of_table(self, stored: StoredTable) -> Denials | None:
        """Those of a table, however many."""
        from holdfast.kinds.denial_constraints.reading import Denials

        record = stored.record.evidence.get(SPACE)
        if record is None or record.space is None:
            return None
        space = record.space
        files = record.files if stored.current else {}

        def counts() -> EvidenceCounts:
            from holdfast.evidence.storage import AGREE, load_counts

            return load_counts(stored.store, files[AGREE], space.atoms)

        def sampled() -> EvidenceCounts:
            from holdfast.evidence.storage import SAMPLED, load_sampled

            return load_sampled(stored.store, files[SAMPLED], space.atoms)

        def equal() -> list[SampledPairs]:
            from holdfast.evidence.storage import EQUAL, load_equal

            return load_equal(stored.store, files[EQUAL], space.atoms)

        sets = stored.file("sets", SPACE)
        return Denials(
            sets,
            space,
            stored.name,
            stored.columns,
            counts if "agree" in files else None,
            sampled if "sampled" in files else None,
            equal if "equal" in files else None,
        )

    def within(self, sets: pa.Table, table: TableSnapshot) -> Denials:
        """The constraints."""
        from holdfast.kinds.denial_constraints.reading import Denials

        space = table.evidence[SPACE].space
        assert space is not None
        return Denials(sets, space, table.name, table.columns)

    def changes(self, run: Run, step: Step) -> KindChanges | None:
        """Those that came and went."""
        from holdfast.cover.dependencies import KEY
        from holdfast.kernels import bitsets
        from holdfast.kinds.denial_constraints.changes import ReportedChanges
        from holdfast.kinds.denial_constraints.predicates import constraints
        from holdfast.kinds.denial_constraints.reduction import reported
        from holdfast.kinds.sets import changes_of_kind

        pairs = step.evidence(SPACE)
        if pairs is None:
            return None
        space, table = pairs[1].space, step.before.table

        def constraint(atoms: tuple[int, ...], _rhs: int, error: float | None) -> DenialConstraint:
            masks = bitsets.from_columns([atoms], space.atoms)
            [plain] = constraints(masks, space, table.name, table.columns.names)
            return DenialConstraint(plain.table, plain.predicates, error or 0.0)

        def reading(sets: Masks) -> Masks:
            return reported(sets, space)

        covers = pairs[0].covers.by_rhs[KEY], pairs[1].covers.by_rhs[KEY]
        sets = ReportedChanges(KEY, *covers, space)
        return changes_of_kind(run, step, SPACE, [sets], constraint, reading=reading)

    def without(self, one: Denials, other: Denials) -> tuple[DenialConstraint, ...]:
        """Those that hold without error; without making the others."""
        return one.without(other)

    def of_rows(self, rule: DenialConstraint) -> bool:
        """Some compare cells of one row alone."""
        return rule.is_within_a_row

    def exporter(self) -> DenialExporter:
        """Its part of every form."""
        from holdfast.kinds.denial_constraints.export import DenialExporter

        return DenialExporter(self)

    def examiner(self) -> DenialExaminer:
        """One by one, whether or not they are looked for."""
        from holdfast.kinds.denial_constraints.examine import DenialExaminer

        return DenialExaminer()

    def near_form(
        self, rule: DenialConstraint, tables: Tables, options: Options
    ) -> RuleForm | None:
        """Single rows, or rows in order."""
        from holdfast.kinds.denial_constraints.near import near_form

        return near_form(rule, self.examiner(), tables, options)

    def nearly_in_rows(self, run: Run, state: TableState, bounds: NearBounds) -> list[NearRule]:
        """Comparisons of two cells of a row, and order rules."""
        from holdfast.kinds.denial_constraints.near import near_rules

        return near_rules(run, state, bounds, self.examiner())

    def bounds_removal(self, rule: DenialConstraint) -> bool:
        """Where single rows violate it."""
        return rule.is_within_a_row

    def broke(self, rule: DenialConstraint, step: Step) -> bool:
        """By the minimal sets before and after."""
        from holdfast.kinds.denial_constraints.near import was_broken

        return was_broken(rule, step)

    def rank(self, snapshot: Snapshot, table: str) -> list[Ranked]:
        """Order rules and short ones first."""
        from holdfast.kinds.denial_constraints.rank import ranked

        return ranked(snapshot, table)

    def weigh(
        self, constraints: Sequence[DenialConstraint], snapshot: Snapshot, table: str
    ) -> list[Ranked]:
        """By the pairs of rows that could break them."""
        from holdfast.kinds.denial_constraints.rank import weighed

        return weighed(constraints, snapshot.tables[table])

    def matters(self, each: Ranked) -> bool:
        """Those that are more than chance, and of a form that says something."""
        from holdfast.kinds.denial_constraints.rank import WORTHWHILE

        return each.stands_alone and each.score >= WORTHWHILE

    def overview(
        self, page: Page, snapshot: Snapshot, table: TableSnapshot, ranking: Sequence[Ranked]
    ) -> None:
        """The first rules."""
        denials: Denials | None = table.found.get(self.name)
        if denials is None:
            return
        part = DenialList()
        first = [*filter(self.matters, ranking)][:FEW]
        heading = part.heading(len(denials))
        if ranking:
            heading += "; those that matter:" if first else ", none of which matters"
        page.line(heading + part.limited(table, snapshot.options), "", 2)
        for each in first:
            part.line(page, each.constraint, broke(each), table)  # type: ignore[arg-type]
        if by_chance := sum(each.by_chance for each in ranking):
            looked_at = "all" if by_chance == len(denials) else f"{by_chance:,}"
            of = "" if len(ranking) == len(denials) else f" of {len(ranking):,} that were looked at"
            page.line(f"{looked_at}{of} may well hold by chance", "dim", 4)
        page.rest(len(denials) - len(first))

    def explain(self, page: Page, table: TableSnapshot) -> None:
        """By which strategy, and why."""
        explain_evidence(page, table, SPACE, self.nouns[1])
