"""The files of pair evidence.

========  =====================================================================================
sets      minimal sets of every rhs, with their errors; stays readable for every version
non_keys  maximal non-keys; stays readable, too
cover     evidence that is maximal for some rhs, and for which
evidence  the same with witnesses, and the rows that non-keys are shown with
agree     all agree-sets with their numbers of pairs, where they are counted
recount   what a version changed of those; stays readable
past      sets that held once, and on which rows they still do
hidden    evidence with witnesses that was maximal once, and that other evidence contains now
near      sets of columns, most of them keys without one column, and the pairs that agree in one
sampled   evidence of a few random pairs with how many showed it, where they are not counted
equal     the same of pairs that are equal in one comparison, with how many such pairs there are
========  =====================================================================================

A role has a file of its kind and differences to it; those of ``agree`` are of the kind ``recount``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.cover.counts import EvidenceCounts, SampledPairs
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.agreement.listed_pairs import ListedPairs
from holdfast.evidence.counted import Counted, groups_of
from holdfast.evidence.pairs import PairEvidence
from holdfast.evidence.strategy import no_time
from holdfast.evidence.upkeep import FormerSets, Upkeep
from holdfast.evidence.witnessed import Witnessed
from holdfast.kernels import bitsets
from holdfast.kernels import counts as kernels
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.evidence import WITNESSES
from holdfast.model.commits import EvidenceRecord
from holdfast.model.comparisons import agreements
from holdfast.model.errors import InputError
from holdfast.model.limits import OutOfTime, Time
from holdfast.runtime.run import Run
from holdfast.store import Store
from holdfast.store.codecs import encoded, masks_of, matrix_of, stored, stored_file, write
from holdfast.store.differences import saved, worthwhile
from holdfast.table.state import Table
from holdfast.tasks.shown import rows_as_text

AGREE = "agree"
"""The role of counted agree-sets."""

PAST = "past"
"""The role of sets that held once."""

HIDDEN = "hidden"
"""The role of evidence that other evidence contains now."""

NEAR = "near"
"""The role of listed pairs."""

_SINCE = b"before"
"""Where their file says before which segment the rows of the first ones lie."""

SAMPLED = "sampled"
"""The role of a few random pairs."""

EQUAL = "equal"
"""The role of a few random pairs that are equal in one comparison."""


def record(pairs: PairEvidence) -> EvidenceRecord:
    """What a commit stores."""
    choice = replace(pairs.choice, seconds=round(pairs.choice.seconds, 3))
    space = None if pairs.space.agreement else pairs.space
    upkeep = pairs.witnessed.upkeep if pairs.witnessed else None
    chosen = (upkeep.lookups, upkeep.chosen_at, upkeep.drawn_at) if upkeep else ()
    return EvidenceRecord(choice, pairs.limits, pairs.files, space, *chosen)


def load(store: Store, record: EvidenceRecord, columns: int) -> PairEvidence:
    """The evidence that a commit stored."""
    space = agreements(columns) if record.space is None else record.space
    atoms, groups = space.atoms, groups_of(space)
    words = bitsets.words_for(atoms)
    files, choice, limits = record.files, record.choice, record.limits
    keys_alone = choice.strategy is None or not space.agreement
    roles = [role for role in ("sets", "cover", "evidence", PAST, HIDDEN) if role in files]
    read = {role: stored(store, files[role]) for role in roles}
    minimal = by_rhs(read["sets"], [KEY] if keys_alone else [KEY, *range(atoms)], words)
    masks = matrix_of(read["cover"].column("mask"), words)
    maximal_for = matrix_of(read["cover"].column("maximal_for"), bitsets.words_for(atoms + 1))
    covers = Covers.restored(atoms, masks, maximal_for, minimal, limits, groups)
    counted, witnessed = None, None
    if AGREE in files:
        sets = load_counts(store, files[AGREE], atoms)
        nothing = (sets.masks[:0], sets.counts[:0])
        rhs = covers.columns if space.agreement else (KEY,)
        counted = Counted(sets, nothing, covers.only(rhs), Evidence.none(atoms))
    if "evidence" in files:
        evidence = _witnessed(read["evidence"], words)
        upkeep = _upkeep(record, read.get(PAST), read.get(HIDDEN), atoms)
        covers = covers if counted is None else covers.only([KEY])
        lists = partial(_load_lists, store, files[NEAR], words) if NEAR in files else None
        witnessed = Witnessed(evidence, covers, upkeep, lists)
    return PairEvidence(space, choice, limits, witnessed, counted, files, read=read)


def load_counts(store: Store, files: tuple[str, ...], atoms: int) -> EvidenceCounts:
    """The counted agree-sets alone: a base, and changes that are added up."""
    words = bitsets.words_for(atoms)
    base, *changes = (stored_file(store, path) for path in files)
    sets = EvidenceCounts(matrix_of(base.column("mask"), words), base.column("pairs").to_numpy())
    masks = [matrix_of(change.column("mask"), words) for change in changes]
    return sets.changed(masks, [change.column("change").to_numpy() for change in changes])[0]


def load_sampled(store: Store, files: tuple[str, ...], atoms: int) -> EvidenceCounts:
    """A few random pairs."""
    content = stored(store, files)
    masks = matrix_of(content.column("mask"), bitsets.words_for(atoms))
    return EvidenceCounts(masks, content.column("pairs").to_numpy())


def load_equal(store: Store, files: tuple[str, ...], atoms: int) -> list[SampledPairs]:
    """A few random pairs that are equal in one comparison, of every comparison."""
    content = stored(store, files)
    masks = matrix_of(content.column("mask"), bitsets.words_for(atoms))
    equal, of_pairs, pairs = (
        content.column(name).to_numpy() for name in ("comparison", "of_pairs", "pairs")
    )
    bounds = [*np.flatnonzero(bitsets.begins_run(equal)).tolist(), len(equal)]
    return [
        SampledPairs(EvidenceCounts(masks[a:b], pairs[a:b]), int(of_pairs[a]), int(equal[a]))
        for a, b in pairwise(bounds)
    ]


def _equal_table(drawn: Sequence[SampledPairs], words: int) -> pa.Table:
    masks = np.concatenate([np.empty((0, words), np.uint64), *(e.sets.masks for e in drawn)])
    repeats = [len(each.sets.masks) for each in drawn]
    equal = np.array([each.equal for each in drawn], np.int32)
    of_pairs = np.array([each.of_pairs for each in drawn], np.int64)
    pairs = np.concatenate([np.empty(0, np.int64), *(each.sets.counts for each in drawn)])
    return pa.table(
        {
            "comparison": np.repeat(equal, repeats),
            "of_pairs": np.repeat(of_pairs, repeats),
            "mask": masks_of(masks),
            "pairs": pairs,
        }
    )


def _witnessed(content: pa.Table, words: int) -> Evidence:
    pairs = content.column("witnesses").combine_chunks().flatten().to_numpy()
    return Evidence(
        matrix_of(content.column("mask"), words), pairs.reshape(-1, WITNESSES, 2).astype(np.int64)
    )


def _with_witnesses(evidence: Evidence) -> dict[str, pa.Array]:
    witnesses = pa.array(evidence.witnesses.ravel())
    return {
        "mask": masks_of(evidence.masks),
        "witnesses": pa.FixedSizeListArray.from_arrays(witnesses, 2 * WITNESSES),
    }


def _upkeep(
    record: EvidenceRecord, past: pa.Table | None, hidden: pa.Table | None, atoms: int
) -> Upkeep:
    words, former, evidence = bitsets.words_for(atoms), FormerSets.none(atoms), Evidence.none(atoms)
    if hidden is not None:
        evidence = _witnessed(hidden, words)
    if past is not None:
        masks = matrix_of(past.column("mask"), words)
        former = FormerSets.of(masks, past.column("before").to_numpy())
        if "rhs" in past.column_names:
            former = replace(former, rhs=past.column("rhs").to_numpy().astype(np.int64))
    return Upkeep(record.lookups, record.lookups_at, former, evidence, drawn_at=record.sampled_at)


def _lists_table(lists: ListedPairs) -> pa.Table:
    """Sets, then agree-sets with pairs."""
    sets = len(lists.sets)
    ends = np.concatenate([[0], 2 * np.cumsum(lists.counts)]).astype(np.int32)
    pairs = pa.ListArray.from_arrays(ends, lists.pairs.ravel())
    content = pa.table(
        {
            "mask": masks_of(np.concatenate([lists.sets, lists.masks])),
            "pairs": pa.chunked_array([pa.nulls(sets, pairs.type), pairs]).combine_chunks(),
            "more": np.concatenate([np.zeros(sets, np.bool_), lists.more]),
            "before": np.concatenate([lists.before, np.zeros(len(lists.masks), np.int64)]),
        }
    )
    return content.replace_schema_metadata({_SINCE: str(lists.since)})


def _load_lists(store: Store, files: tuple[str, ...], words: int) -> ListedPairs:
    content = stored(store, files)
    masks, pairs = (
        matrix_of(content.column("mask"), words),
        content.column("pairs").combine_chunks(),
    )
    sets, since = pairs.null_count, int(content.schema.metadata[_SINCE])
    numbered = "before" in content.column_names  # not in the first such files
    before = content.column("before").to_numpy()[:sets] if numbered else np.full(sets, since)
    return ListedPairs(
        masks[:sets],
        before,
        since,
        masks[sets:],
        pairs[sets:].value_lengths().to_numpy().astype(np.int64) // 2,
        pairs.flatten().to_numpy().reshape(-1, 2),
        content.column("more").to_numpy()[sets:],
    )


def by_rhs(content: pa.Table, rhs: list[int], words: int) -> dict[int, U64]:
    """The sets in a file that hold without error, by rhs."""
    left = matrix_of(content.column("mask"), words)
    right = content.column("rhs").to_numpy()
    exact = content.column("error").to_numpy() == 0
    left, right = left[exact], right[exact]
    order = np.argsort(right, kind="stable")
    left, right = left[order], right[order]
    lo, hi = np.searchsorted(right, rhs, "left"), np.searchsorted(right, rhs, "right")
    return {one: left[lo[i] : hi[i]] for i, one in enumerate(rhs)}


def save(run: Run, table: Table, pairs: PairEvidence, before: PairEvidence | None) -> PairEvidence:
    """Write what changed."""
    files = dict(before.files) if before else {}
    for role, content in _contents(run, table, pairs, before):
        old = before.read.get(role) if before else None
        files[role] = saved(run.store, run.lease, role, content, files.get(role, ()), old)
    files.pop(AGREE, None)
    if pairs.witnessed is None:
        for role in ("evidence", "non_keys", PAST, HIDDEN, NEAR, SAMPLED, EQUAL):
            files.pop(role, None)
    else:
        new_lists, upkeep = pairs.witnessed.new_lists, pairs.witnessed.upkeep
        if new_lists is not None:
            files[NEAR] = (write(run.store, run.lease, NEAR, _lists_table(new_lists)),)
        elif pairs.witnessed.stored_lists is None:
            files.pop(NEAR, None)  # what was found anew has none
        if upkeep is not None and upkeep.drawn:
            random, *equal = upkeep.drawn
            content = _counts(random.sets, "pairs")
            files[SAMPLED] = (write(run.store, run.lease, SAMPLED, content),)
            content = _equal_table(equal, random.sets.masks.shape[1])
            files[EQUAL] = (write(run.store, run.lease, EQUAL, content),)
    if pairs.counted is not None:
        files[AGREE] = _saved_counts(run, pairs.counted.sets, before)
    return replace(pairs, files=files, read={})


def _saved_counts(run: Run, sets: EvidenceCounts, before: PairEvidence | None) -> tuple[str, ...]:
    """The files of counted agree-sets: whole, or with what the version changed as the last of them.

    It is the last one always, because earlier numbers are those of today less all later changes. So
    where it is time for a new base, that has the numbers before the change.
    """
    if before is None or before.counted is None:
        return (write(run.store, run.lease, AGREE, _counts(sets, "pairs")),)
    files, old = before.files[AGREE], before.counted.sets
    change = EvidenceCounts(*kernels.added(sets.masks, sets.counts, old.masks, -old.counts)[:2])
    if not len(change.masks):
        return files
    content = encoded(_counts(change, "change"))
    if len(files) > 1 and not worthwhile(files, content.size):
        files = (write(run.store, run.lease, AGREE, _counts(old, "pairs")),)
    return (*files, run.store.write(run.lease.new_path("recount", "arrow"), content))


def _counts(sets: EvidenceCounts, what: str) -> pa.Table:
    return pa.table({"mask": masks_of(sets.masks), what: sets.counts})


def _contents(
    run: Run, table: Table, pairs: PairEvidence, before: PairEvidence | None
) -> Iterator[tuple[str, pa.Table]]:
    old, new = before.covers if before else None, pairs.covers
    if old is None or run.options.max_error is not None or not _same_sets(old, new):
        # A table that has errors keeps them, however long its batches take.
        time = run.upkeep_time if old is None else Time()
        try:
            yield "sets", sets_table(pairs, run.options.max_error, time)
        except OutOfTime:
            raise InputError(no_time(table.name, run.options)) from None
    if pairs.space.agreement and (
        old is None or not np.array_equal(old.keys.evidence, new.keys.evidence)
    ):
        yield "non_keys", pa.table({"mask": masks_of(new.keys.evidence)})
    if old is None or not all(map(np.array_equal, old.parts, new.parts)):
        masks, maximal_for = new.parts
        yield "cover", pa.table({"mask": masks_of(masks), "maximal_for": masks_of(maximal_for)})
    if pairs.witnessed is not None and (before is None or not _same_evidence(before, pairs)):
        yield "evidence", _evidence(run, table, pairs, before)
    upkeep = pairs.witnessed.upkeep if pairs.witnessed else None
    if upkeep is None:
        return
    former, hidden = upkeep.former, upkeep.hidden
    if len(former.masks) or (before and PAST in before.files):
        rhs = {"rhs": former.rhs} if pairs.space.agreement else {}
        yield PAST, pa.table({"mask": masks_of(former.masks), "before": former.before, **rhs})
    if len(hidden.masks) or (before and HIDDEN in before.files):
        yield HIDDEN, pa.table(_with_witnesses(hidden))


def sets_table(pairs: PairEvidence, max_error: float | None, time: Time | None = None) -> pa.Table:
    """The minimal sets of every rhs, shortest first, those of keys last; with a bound also
    the approximate ones, or :class:`OutOfTime`."""
    if max_error not in pairs.cache:
        pairs.cache[max_error] = _sets_table(pairs, max_error, time or Time())
    return pairs.cache[max_error]


def approximate_sets(
    store: Store, pairs: PairEvidence, max_error: float
) -> dict[tuple[tuple[int, ...], int], float]:
    """The errors of the sets that some pairs violate, by their words and their rhs; of evidence
    that was loaded, as it was stored."""
    files = pairs.files.get("sets")
    sets = sets_table(pairs, max_error) if files is None else stored(store, files)
    near = sets.filter(pc.greater(sets.column("error"), 0))
    masks = matrix_of(near.column("mask"), bitsets.words_for(pairs.covers.atoms))
    words = (tuple(mask) for mask in masks.tolist())
    keys = zip(words, near.column("rhs").to_pylist(), strict=True)
    return dict(zip(keys, near.column("error").to_pylist(), strict=True))


def _sets_table(pairs: PairEvidence, max_error: float | None, time: Time) -> pa.Table:
    covers = pairs.covers
    left, right = covers.dependencies
    keys = covers.keys.minimal
    parts = [(left, right, np.zeros(len(left))), (keys, _all(KEY, keys), np.zeros(len(keys)))]
    if max_error is not None and pairs.counts is not None:
        every_rhs = tuple(covers.by_rhs)
        # Right-hand sides share nothing that changes, and kernels leave the interpreter free.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            near = pool.map(lambda rhs: pairs.approximate(rhs, max_error, time), every_rhs)
            for rhs, (masks, errors) in zip(every_rhs, near, strict=True):
                parts.append((masks, _all(rhs, masks), errors))
    left, right, error = (np.concatenate(blocks) for blocks in zip(*parts, strict=True))
    order = np.lexsort((right, _ranks(left), right == KEY))
    return pa.table({"mask": masks_of(left[order]), "rhs": right[order], "error": error[order]})


def _all(rhs: int, masks: U64) -> NDArray[np.int32]:
    return np.full(len(masks), rhs, np.int32)


def _ranks(left: U64) -> I64:
    """A number per mask that sorts like the canonical order of masks, equal for equal ones."""
    order = bitsets.canonical_order(left)
    fresh = np.zeros(len(left), np.int64)
    fresh[1:] = (left[order][1:] != left[order][:-1]).any(axis=1)
    ranks = np.empty(len(left), np.int64)
    ranks[order] = np.cumsum(fresh)
    return ranks


def _evidence(run: Run, table: Table, pairs: PairEvidence, before: PairEvidence | None) -> pa.Table:
    """Evidence with witnesses, and the rows that non-keys are shown with."""
    evidence = pairs.evidence
    non_keys = bitsets.is_member(evidence.masks, pairs.covers.keys.evidence)
    non_keys &= pairs.space.agreement
    ids = evidence.witnesses[non_keys, 0].ravel()
    text = _shown(run.store, before) if before and before.witnessed else {}
    new = ids[~np.isin(ids, [*text])]
    text |= rows_as_text(run.store.path, table.segments, table.columns.names, new)
    rows = [
        pa.array([text.get(int(id_)) for id_ in evidence.witnesses[:, 0, side]], pa.string())
        for side in (0, 1)
    ]
    return pa.table(
        {
            **_with_witnesses(evidence),
            "one": rows[0].dictionary_encode(),
            "two": rows[1].dictionary_encode(),
        }
    )


def _shown(store: Store, pairs: PairEvidence) -> dict[int, str]:
    """The text of the rows that non-keys were last shown with, by id."""
    content = pairs.read.get("evidence")
    content = stored(store, pairs.files["evidence"]) if content is None else content
    text: dict[int, str] = {}
    for side, name in enumerate(("one", "two")):
        ids = pairs.evidence.witnesses[:, 0, side].tolist()
        rows = zip(ids, content.column(name).to_pylist(), strict=True)
        text.update((id_, row) for id_, row in rows if row is not None)
    return text


def _same_evidence(one: PairEvidence, two: PairEvidence) -> bool:
    return (
        one.choice.strategy == two.choice.strategy
        and np.array_equal(one.evidence.masks, two.evidence.masks)
        and np.array_equal(one.evidence.witnesses, two.evidence.witnesses)
    )


def _same_sets(one: Covers, two: Covers) -> bool:
    return one.by_rhs.keys() == two.by_rhs.keys() and all(
        np.array_equal(one.by_rhs[rhs].minimal, two.by_rhs[rhs].minimal) for rhs in two.by_rhs
    )
