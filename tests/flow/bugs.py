"""Bugs to be planted in the code while a test runs: such as would lose or keep evidence in silence.

Each function plants one with a monkeypatch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from holdfast.cover.counts import EvidenceCounts
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence import counting
from holdfast.evidence.agreement import engine as agreement
from holdfast.evidence.agreement import listed_pairs, planning
from holdfast.evidence.agreement.listed_pairs import ListedPairs
from holdfast.evidence.comparison import engine as comparison
from holdfast.evidence.pairs import PairEvidence
from holdfast.evidence.upkeep import FormerSets
from holdfast.flow import near_kept
from holdfast.kernels import counts as count_kernels
from holdfast.kernels import index, values
from holdfast.kernels.tuples import MAJORITY
from holdfast.kinds.inclusion_dependencies.kind import InclusionDependencies
from holdfast.model.near import NearBounds
from holdfast.model.samples import Listing, Sample
from holdfast.rules import orders, single_rows
from holdfast.rules.orders import OrderedRows
from holdfast.table import batch, columns
from holdfast.table.change import RowChange, TableRows
from holdfast.table.state import Table
from holdfast.tasks import batch_indexes as lookup_tasks
from holdfast.tasks import evidence as evidence_tasks
from holdfast.tasks import listed_pairs as list_tasks
from holdfast.tasks import looked_up_groups as group_tasks
from holdfast.tasks import segments
from holdfast.tasks import tuples as tuple_tasks
from holdfast.tasks import values as value_tasks
from holdfast.tasks.view import View
from holdfast.values import n_ary
from holdfast.values.state import ValueState
from holdfast.values.tuples import TupleCounts

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], None]


def lists_forget_that_more_pairs_exist(patch: Patch) -> None:
    of = list_tasks.Merged.of

    def forgetful(*given: Any) -> Any:
        merged = of(*given)
        return merged._replace(more=np.zeros_like(merged.more))

    patch.setattr(list_tasks.Merged, "of", staticmethod(forgetful))


def deletes_make_a_list_whole(patch: Patch) -> None:
    """Agree-sets all listed pairs of which are gone are forgotten, though there were more."""
    living = ListedPairs.living

    def forgetful(near: ListedPairs, *given: Any) -> ListedPairs:
        left = living(near, *given)
        some = left.counts > 0
        return replace(left, masks=left.masks[some], counts=left.counts[some], more=left.more[some])

    patch.setattr(ListedPairs, "living", forgetful)


def lists_keep_dead_pairs(patch: Patch) -> None:
    patch.setattr(listed_pairs, "are_living", lambda _r, _t, ids: np.ones(ids.shape, np.bool_))


def lists_keep_pairs_that_lost_one_row(patch: Patch) -> None:
    living = listed_pairs.are_living

    def either(*given: Any) -> Any:
        alive = living(*given)
        return np.repeat(alive.any(axis=1, keepdims=True), 2, axis=1)

    patch.setattr(listed_pairs, "are_living", either)


def hidden_evidence_keeps_dead_rows(patch: Patch) -> None:
    patch.setattr(agreement, "are_living", lambda _r, _t, ids: np.ones(ids.shape, np.bool_))


def lists_reach_one_segment_too_far(patch: Patch) -> None:
    merged = listed_pairs.merged

    def far(runner: Any, root: Any, files: Any, sets: Any, before: int) -> ListedPairs:
        return merged(runner, root, files, sets, before + 1)

    patch.setattr(listed_pairs, "merged", far)


def listed_evidence_stays_hidden(patch: Patch) -> None:
    none = property(lambda lists: Evidence.none(64 * lists.masks.shape[1]))
    patch.setattr(ListedPairs, "evidence", none)


def new_lists_hide_what_old_ones_lack(patch: Patch) -> None:
    joined = ListedPairs.joined

    def certain(near: ListedPairs, newer: ListedPairs) -> ListedPairs | None:
        both = joined(near, newer)
        return both and replace(both, more=np.zeros_like(both.more))

    patch.setattr(ListedPairs, "joined", certain)


def what_held_once_reaches_one_segment_too_far(patch: Patch) -> None:
    after = FormerSets.after
    patch.setattr(
        FormerSets,
        "after",
        lambda past, held, before, covers: after(past, held, before + 1, covers),
    )


def what_held_once_is_dated_anew(patch: Patch) -> None:
    after = FormerSets.after

    def anew(past: FormerSets, held: Any, before: int, covers: Any) -> FormerSets:
        kept = after(past, held, before, covers)
        return replace(kept, before=np.full_like(kept.before, before))

    patch.setattr(FormerSets, "after", anew)


def the_first_recent_segment_is_passed_over(patch: Patch) -> None:
    recent = planning.recent_segments
    patch.setattr(planning, "recent_segments", lambda table, number: recent(table, number + 1))


def what_held_once_holds_again_unseen(patch: Patch) -> None:
    """As if no row had come since."""
    patch.setattr(
        planning,
        "unchanged_since",
        lambda premises, _table, candidates: premises.former.of_candidates(candidates).by_rhs(
            candidates
        ),
    )


def rows_since_are_not_looked_at(patch: Patch) -> None:
    """Denial constraints that held once are taken to hold again."""
    with_recent = comparison._Batch.with_recent

    def unseen(batch: Any, known: Any) -> Any:
        return batch._known(known.evidence, with_recent(batch, known).validated)

    patch.setattr(comparison._Batch, "with_recent", unseen)


def witnesses_keep_a_dead_row(patch: Patch) -> None:
    without = Evidence.without

    def kept(evidence: Evidence, deleted: Any) -> Any:
        return without(evidence, deleted.all(axis=2, keepdims=True) & deleted)

    patch.setattr(Evidence, "without", kept)


def deletes_take_no_evidence(patch: Patch) -> None:
    patch.setattr(RowChange, "took", lambda _c, _root, ids: np.zeros(ids.shape, np.bool_))


def merging_leaves_witnesses_where_they_were(patch: Patch) -> None:
    patch.setattr(PairEvidence, "renumbered", lambda pairs, _moves: pairs)


def merging_leaves_repeated_rows_where_they_were(patch: Patch) -> None:
    patch.setattr(Table, "renumbered", lambda table, _old, _new: table)


def probes_see_deleted_rows(patch: Patch) -> None:
    probe = index.probe

    def blind(batch: Any, ranges: Any, stored: Any, *given: Any) -> None:
        probe(batch, ranges, stored._replace(dead=stored.dead[:0]), *given)

    patch.setattr(index, "probe", blind)


def searches_see_deleted_rows(patch: Patch) -> None:
    left_out = View._left_out

    def blind(view: View, segment: Any, *given: Any) -> Any:
        return left_out(view, replace(segment, dead=None), *given)

    patch.setattr(View, "_left_out", blind)


def lookups_see_deleted_rows(patch: Patch) -> None:
    live = segments.live_positions
    patch.setattr(
        lookup_tasks,
        "live_positions",
        lambda root, segment: live(root, replace(segment, dead=None)),
    )


def repeats_see_deleted_rows(patch: Patch) -> None:
    duplicates = index.duplicates

    def blind(batch: Any, ranges: Any, stored: Any, *given: Any) -> None:
        duplicates(batch, ranges, stored._replace(dead=stored.dead[:0]), *given)

    patch.setattr(index, "duplicates", blind)


def probes_miss_the_last_of_equal_codes(patch: Patch) -> None:
    look_up = segments.look_up

    def short(*given: Any) -> Any:
        ranges = look_up(*given)
        return ranges._replace(hi=np.where(ranges.hi - ranges.lo > 1, ranges.hi - 1, ranges.hi))

    patch.setattr(evidence_tasks, "look_up", short)


def lookups_miss_the_last_of_a_stretch(patch: Patch) -> None:
    stretches = lookup_tasks._stretches

    def short(*given: Any) -> Any:
        found = stretches(*given)
        stop = np.where(found.stop - found.start > 1, found.stop - 1, found.stop)
        return found._replace(stop=stop)

    patch.setattr(lookup_tasks, "_stretches", short)


def the_cover_does_not_shorten_after_deletes(patch: Patch) -> None:
    changed = Covers.changed
    patch.setattr(
        Covers,
        "changed",
        lambda covers, appeared, vanished, *given: changed(covers, appeared, vanished[:0], *given),
    )


def a_batch_holds_what_deletes_left(patch: Patch) -> None:
    """What is minimal without the deleted evidence counts as having held before the batch."""
    of_batch = planning.Premises.of_batch

    def wrong(batch: Any, _minimal: Any, covers: Covers, *given: Any) -> Any:
        return of_batch(batch, covers.minimal, covers, *given)

    patch.setattr(planning.Premises, "of_batch", staticmethod(wrong))


def a_value_counts_once_a_batch(patch: Patch) -> None:
    entries = value_tasks.ChangedEntries.entries

    def once(item: Any) -> Any:
        delta, old = entries(item)
        signed = delta.copy()
        signed[:, 3] = np.clip(delta[:, 3].view(np.int64), -1, 1).view(np.uint64)
        return signed, old

    patch.setattr(value_tasks.ChangedEntries, "entries", once)


def the_last_occurrence_of_a_value_stays(patch: Patch) -> None:
    transitions = values.transitions

    def staying(delta: Any, old: Any, words: int) -> Any:
        masks, counts, wrong = transitions(delta, old, words)
        lost = (masks[:, :words] & ~masks[:, words:]).any(axis=1)
        return masks[~lost], counts[~lost], wrong

    patch.setattr(values, "transitions", staying)


def merged_runs_lose_what_adds_up(patch: Patch) -> None:
    """Of a value that two runs have only one counts."""
    merge = value_tasks.merge

    def lossy(item: Any) -> Any:
        fewer = replace(item, runs=item.runs[:-1] or item.runs)
        yield from merge(fewer)

    patch.setattr(value_tasks, "merge", lossy)


def a_missing_tuple_is_missed_once(patch: Patch) -> None:
    """However many rows have it."""
    refuted = n_ary._refuted

    def once(*given: Any) -> Any:
        return replace(refuted(*given), rows=1)

    patch.setattr(n_ary, "_refuted", once)


def a_missing_tuple_that_comes_again_is_not_counted(patch: Patch) -> None:
    looks = n_ary._lookups
    patch.setattr(
        n_ary, "_lookups", lambda *given: (each for each in looks(*given) if each[0] != "come")
    )


def counts_take_nothing_away(patch: Patch) -> None:
    """Pairs of deleted rows stay counted."""
    total = count_kernels.total

    def only_added(masks: Any, numbers: Any, words: int) -> Any:
        return total(masks, [np.maximum(each, 0) for each in numbers], words)

    patch.setattr(count_kernels, "total", only_added)


def counts_keep_evidence_that_vanished(patch: Patch) -> None:
    """Covers go by it still."""
    added = counting._added

    def unseen(before: EvidenceCounts, *given: Any) -> Any:
        after = added(before, *given)
        return replace(after, vanished=after.vanished[:0])

    patch.setattr(counting, "_added", unseen)


def counts_miss_evidence_that_appeared(patch: Patch) -> None:
    """The last of several."""
    added = counting._added

    def unseen(before: EvidenceCounts, *given: Any) -> Any:
        after = added(before, *given)
        some = slice(None, -1) if len(before.masks) and len(after.appeared) > 1 else slice(None)
        return replace(after, appeared=after.appeared[some], pairs=after.pairs[some])

    patch.setattr(counting, "_added", unseen)


def only_the_first_new_row_is_counted(patch: Patch) -> None:
    lines = counting.lines_of

    def one_less(change: RowChange) -> Any:
        stayed, new, went = lines(change)
        return stayed, new.between(0, 1), went

    patch.setattr(counting, "lines_of", one_less)


def deleted_rows_still_break_near_rules(patch: Patch) -> None:
    """Tuples of rows that went stay counted."""
    change = TupleCounts.change
    patch.setattr(
        TupleCounts,
        "change",
        lambda counts, run, rows: change(counts, run, [e for e in rows if e.weight > 0]),
    )


def majorities_stay_as_they_were(patch: Patch) -> None:
    _recounts(patch, lambda arrays: arrays["sides"][:, MAJORITY].fill(0))


def groups_that_are_looked_up_see_deleted_rows(patch: Patch) -> None:
    patch.setattr(group_tasks, "are_dead", lambda _r, _s, rows: np.zeros(rows.shape, np.bool_))


def groups_that_are_looked_up_have_no_new_rows(patch: Patch) -> None:
    """They are taken to have had all their rows before the batch."""
    patch.setattr(group_tasks, "_living", lambda *_given: np.empty(0, np.int64))


def rows_of_a_missing_value_count_once(patch: Patch) -> None:
    _recounts(
        patch, lambda arrays: np.copyto(arrays["references"][:, 1], arrays["references"][:, 0])
    )


def values_that_come_again_stay_missing(patch: Patch) -> None:
    """A reference loses values, and gains none."""
    _recounts(patch, lambda arrays: np.minimum(arrays["references"], 0, out=arrays["references"]))


def _recounts(patch: Patch, spoil: Callable[[dict[str, Any]], Any]) -> None:
    """Spoil by how much a batch changes the sums over counted tuples."""
    recount = tuple_tasks.recount

    def spoiled(item: Any) -> Any:
        for result in recount(item):
            if not item.fresh:
                spoil(result.arrays)
            yield result

    patch.setattr(tuple_tasks, "recount", spoiled)


def keys_that_broke_are_referred_to(patch: Patch) -> None:
    """Two columns stay a key for good."""
    change = ValueState.change

    def kept(state: ValueState, run: Any, rows: Any, tables: Any, keys: Any) -> ValueState:
        all_keys = {n: {*state.keys.get(n, ()), *of_table} for n, of_table in keys.items()}
        return change(state, run, rows, tables, {n: tuple(each) for n, each in all_keys.items()})

    patch.setattr(ValueState, "change", kept)


def keys_that_come_are_not_referred_to(patch: Patch) -> None:
    change = ValueState.change

    def known(state: ValueState, run: Any, rows: Any, tables: Any, keys: Any) -> ValueState:
        fewer = {n: tuple({*state.keys.get(n, ())} & {*keys[n]}) for n in keys}
        return change(state, run, rows, tables, fewer)

    patch.setattr(ValueState, "change", known)


def tuples_of_former_candidates_stay_as_they_were(patch: Patch) -> None:
    """What is no candidate is not counted on, though it stays."""
    change = TupleCounts.change

    def without(counts: TupleCounts, run: Any, rows: Any) -> TupleCounts:
        after = change(counts, run, rows)
        new = {ref.left: ref for ref in after.record.references}
        old = [ref for ref in counts.record.references if not ref.distinct]
        references = tuple(ref if ref in old else new[ref.left] for ref in counts.record.references)
        return TupleCounts(replace(after.record, references=references))

    patch.setattr(TupleCounts, "change", without)


def lists_of_tables_that_refer_to_changed_ones_stay(patch: Patch) -> None:
    patch.setattr(near_kept, "_about", lambda *_given: [])


def what_a_referenced_table_breaks_is_not_watched(patch: Patch) -> None:
    patch.setattr(InclusionDependencies, "broken_elsewhere", lambda _kind, _step: set())


def near_rules_leave_as_soon_as_they_fail(patch: Patch) -> None:
    patch.setattr(NearBounds, "twice", lambda bounds: bounds)


def order_rules_are_not_counted_again(patch: Patch) -> None:
    patch.setattr(OrderedRows, "change", lambda _run, _forms, _changes, before: [*before])


def order_rules_forget_their_groups(patch: Patch) -> None:
    right = orders.counted

    def among_all(run: Any, table: Table, asked: Any) -> Any:
        return right(run, table, [replace(each, within=None) for each in asked])

    patch.setattr(orders, "counted", among_all)


def deleted_rows_still_break_rules_about_rows(patch: Patch) -> None:
    right = single_rows._tests

    def only_new(run: Any, rows: TableRows, *given: Any) -> Any:
        return right(run, rows, *given) if rows.weight > 0 else []

    patch.setattr(single_rows, "_tests", only_new)


def deleted_values_still_prove(patch: Patch) -> None:
    patch.setattr(Sample, "without", lambda sample, _gone: sample)


def proofs_that_ran_out_count(patch: Patch) -> None:
    patch.setattr(Sample, "shows", lambda *_: True)


def a_shape_goes_with_the_values_that_show_it(patch: Patch) -> None:
    """Though other rows may have it."""
    right = Sample.shows

    def only_values(sample: Sample, before: Sample, listing: Listing) -> bool:
        return (bool(listing.each) and not sample.more) or right(sample, before, listing)

    patch.setattr(Sample, "shows", only_values)


def values_of_a_batch_replace_those_before(patch: Patch) -> None:
    right = Sample.joined

    def forgetful(sample: Sample, newer: Sample, listing: Listing) -> Sample:
        return right(sample, newer, listing) if not newer.entries else newer

    patch.setattr(Sample, "joined", forgetful)


def the_highest_value_stays(patch: Patch) -> None:
    """Though no row has it any more."""
    patch.setattr(columns, "_is_lost", lambda *_: False)


def newest_values_are_compared_with_the_first_rows(patch: Patch) -> None:
    """Not with the batch that changed the table last."""
    right = batch._changed

    def as_before(run: Any, before: Table, *given: Any) -> RowChange:
        change: RowChange = right(run, before, *given)
        return replace(change, after=replace(change.after, changed=before.changed))

    patch.setattr(batch, "_changed", as_before)


OF_SAMPLES: tuple[Bug, ...] = (
    deleted_values_still_prove,
    proofs_that_ran_out_count,
    a_shape_goes_with_the_values_that_show_it,
    values_of_a_batch_replace_those_before,
    the_highest_value_stays,
    newest_values_are_compared_with_the_first_rows,
)
OF_NEAR: tuple[Bug, ...] = (
    deleted_rows_still_break_near_rules,
    majorities_stay_as_they_were,
    groups_that_are_looked_up_see_deleted_rows,
    groups_that_are_looked_up_have_no_new_rows,
    rows_of_a_missing_value_count_once,
    values_that_come_again_stay_missing,
    lists_of_tables_that_refer_to_changed_ones_stay,
    what_a_referenced_table_breaks_is_not_watched,
    near_rules_leave_as_soon_as_they_fail,
)
OF_REFERENCES: tuple[Bug, ...] = (
    deleted_rows_still_break_near_rules,
    values_that_come_again_stay_missing,
    keys_that_broke_are_referred_to,
    keys_that_come_are_not_referred_to,
    tuples_of_former_candidates_stay_as_they_were,
)
OF_NEAR_DENIALS: tuple[Bug, ...] = (
    order_rules_are_not_counted_again,
    order_rules_forget_their_groups,
    deleted_rows_still_break_rules_about_rows,
)
OF_COUNTS: tuple[Bug, ...] = (
    counts_take_nothing_away,
    counts_keep_evidence_that_vanished,
    counts_miss_evidence_that_appeared,
    only_the_first_new_row_is_counted,
)
OF_KEYS: tuple[Bug, ...] = (
    lists_forget_that_more_pairs_exist,
    deletes_make_a_list_whole,
    lists_keep_dead_pairs,
    lists_keep_pairs_that_lost_one_row,
    lists_reach_one_segment_too_far,
    listed_evidence_stays_hidden,
    hidden_evidence_keeps_dead_rows,
    new_lists_hide_what_old_ones_lack,
    what_held_once_reaches_one_segment_too_far,
    what_held_once_is_dated_anew,
    the_first_recent_segment_is_passed_over,
    what_held_once_holds_again_unseen,
    witnesses_keep_a_dead_row,
    deletes_take_no_evidence,
    merging_leaves_witnesses_where_they_were,
    merging_leaves_repeated_rows_where_they_were,
    probes_see_deleted_rows,
    searches_see_deleted_rows,
    repeats_see_deleted_rows,
    probes_miss_the_last_of_equal_codes,
    the_cover_does_not_shorten_after_deletes,
    a_batch_holds_what_deletes_left,
    *OF_COUNTS,
)
OF_DENIAL_CONSTRAINTS: tuple[Bug, ...] = (
    what_held_once_reaches_one_segment_too_far,
    what_held_once_is_dated_anew,
    rows_since_are_not_looked_at,
    witnesses_keep_a_dead_row,
    deletes_take_no_evidence,
    merging_leaves_witnesses_where_they_were,
    lookups_see_deleted_rows,
    lookups_miss_the_last_of_a_stretch,
    *OF_COUNTS,
)
OF_VALUES: tuple[Bug, ...] = (
    a_value_counts_once_a_batch,
    the_last_occurrence_of_a_value_stays,
    merged_runs_lose_what_adds_up,
    a_missing_tuple_is_missed_once,
    a_missing_tuple_that_comes_again_is_not_counted,
)
