"""Searching for evidence: pairs of rows that refute candidates.

Four ways, one result: *sample* compares near neighbours of some rows, *search* goes through all
pairs that could agree on an lhs, *representatives* keeps one row for each combination of values on
an lhs (where rows are divided among tasks, *merge* then compares those that they kept), *probe*
looks the rows of a batch up in the indexes. Each returns the masks that matter, with
witnesses: the maximal ones, or with ``every_rhs`` those that are maximal for some rhs. The caller
decides which, whatever the right-hand sides of the candidates are: a key that holds validates
dependencies too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets, evidence, index, maximal, signatures
from holdfast.kernels import search as searches
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.checksums import in_memory
from holdfast.kernels.evidence import Candidates, NumberedRows
from holdfast.kernels.index import Ranges
from holdfast.model import thresholds
from holdfast.runtime.reads import note
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.runtime.timed import is_bounded, is_over, look
from holdfast.tasks import listed_pairs
from holdfast.tasks.segments import (
    Segment,
    agreeing,
    are_dead,
    index_codes,
    index_columns,
    live_positions,
    look_up,
    look_up_groups,
    map_passing,
    map_words,
    write_arrays,
)
from holdfast.tasks.view import Among, View

_REACH = 2

_REPRESENTATIVE_WORDS = 1 << 24
"""Words of representatives that are kept at once; more candidates take another pass."""

_LOT = 1 << 25
"""Rows times candidates that a kernel searches before the clock is looked at: about a second."""

_FIRST = 256
"""Rows of a segment that stand for all of them where the lhs is empty."""

_NEAR = 32
"""How many times larger that one may be: its positions are read one after the other, and rows
here and there."""


@dataclass(frozen=True)
class SampleNeighbours:
    """Compare some rows of these segments with their neighbours in every column; of as many
    segments as there is time for."""

    view: View
    every_rhs: bool
    rows: int  # per segment


@dataclass(frozen=True)
class Refute:
    """Find pairs of rows that refute some candidates."""

    view: View
    every_rhs: bool
    candidates: Candidates

    def findings(self, most: int = evidence.WITNESSES) -> tuple[evidence.Findings, U64]:
        """Room for what is found, with so many pairs of each mask; and for the right-hand sides of
        each candidate that are refuted."""
        room = thresholds.current.mask_room
        findings = evidence.findings(self.view.shape.full.size, room, most)
        return findings, np.zeros_like(self.candidates.rhs)


@dataclass(frozen=True)
class SearchRange(Refute):
    """Find pairs that refute some candidates, each lhs of which contains all columns of an index.

    Looks only at the rows whose code in that index is from ``low`` to below ``high``, and of these
    at those ``among`` some.
    """

    chosen: I64  # which of the candidates are meant
    order: tuple[int, ...]  # columns, most selective first
    index: str
    low: int
    high: int | None
    among: Among | None = None
    parts: int = 1  # that the rows are divided into; this is one of them
    lists: str = ""  # how the path of a list of all wanted pairs begins, if there is to be one

    @property
    def work(self) -> int:
        """Rows that it goes through, about."""
        return self.view.live // self.parts


@dataclass(frozen=True)
class SurveyRows(Refute):
    """Find pairs that refute some candidates whose left-hand sides have few combinations of values,
    in all rows, in those ``among`` some, or in one of several parts of them. With parts, a pair may
    have its rows in two of them: rows that were kept go to a file, for :class:`MergeSurveys`."""

    chosen: I64  # which of the candidates are meant
    among: Among | None = None
    part: int = 0
    parts: int = 1
    prefix: str = ""

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live // self.parts


@dataclass(frozen=True)
class MergeSurveys(Refute):
    """Find pairs that refute candidates, among the rows that were kept in parts of the rows;
    ``places`` says where each candidate is among those of the files."""

    places: tuple[int, ...]
    files: tuple[str, ...]


@dataclass(frozen=True)
class ProbeBatch(Refute):
    """Find pairs of a batch row and an earlier row that refute candidates.

    ``lookups`` has one entry for every group of left-hand sides that share their indexes; of those,
    each batch row uses the one or two that return the fewest rows. ``filters[name]`` are columns of
    which every lhs that goes by that index has at least one. ``groups`` says which candidates have
    an index of their own (by name, ``""`` for the empty lhs): there the rows that agree with a
    batch row are a group with one value on the right, and one of them is enough.
    """

    batch: tuple[Segment, ...]
    order: tuple[int, ...]  # columns, most selective first
    lookups: tuple[tuple[str, ...], ...]
    filters: dict[str, tuple[int, ...]]
    groups: tuple[tuple[int, str], ...] = ()


def sample(item: SampleNeighbours) -> Iterator[TaskResult]:
    """Evidence from near neighbours."""
    view = item.view
    findings = evidence.findings(view.shape.full.size, thresholds.current.mask_room)
    everything = any_pair(view.shape.full.size)
    for segment in item.view.segments:
        if is_over():
            break
        live = live_positions(view.path, segment)
        if live.size > item.rows:
            chosen = np.random.default_rng(segment.number).choice(live.size, item.rows, False)
            live = live[np.sort(chosen)]
        rows = NumberedRows(view.rows(segment, live), live + segment.base)
        evidence.neighbours(rows, view.shape, _REACH, everything, findings)
    yield _task_result(findings, view.columns, item.every_rhs)


def any_pair(words: int) -> Candidates:
    """The candidate that every two rows refute, unless they are equal: the empty key."""
    rhs = np.zeros((1, words + 1), np.uint64)
    rhs[0, words] = 1
    return Candidates(np.zeros((1, words), np.uint64), rhs)


def search(item: SearchRange) -> Iterator[TaskResult]:
    """All evidence against the candidates, in one part of the rows."""
    view = item.view
    rows = view.between(item.index, item.low, item.high, item.among)
    listed = thresholds.current.listed_pairs_a_mask if item.lists else 0
    findings, partial = item.findings(max(evidence.WITNESSES, listed))
    for lot in _at_once(item, len(rows.ids)):
        look()
        trie = _trie(item.candidates.lhs, item.order, lot)
        searches.search(rows, view.shape, trie, item.candidates, findings, partial)
    task_result = _task_result(findings, view.columns, item.every_rhs, partial, item.candidates)
    task_result.facts["rows"] = len(rows.ids)
    if item.lists:
        path = unique(item.lists, "listed")
        task_result.facts["listed"] = listed_pairs.write(view.path, path, findings)
    yield task_result


def _at_once(item: SearchRange, rows: int) -> list[I64]:
    """The candidates, all together; where time is bounded in several lots, so that no kernel is
    busy for long with many of them."""
    lots = -(-rows * len(item.chosen) // _LOT) if is_bounded() else 1
    return np.array_split(item.chosen, max(1, min(lots, len(item.chosen))))


def representatives(item: SurveyRows) -> Iterator[TaskResult]:
    """Evidence against the candidates from one row for each combination on their lhs."""
    view = item.view
    shape = view.shape
    findings, partial = item.findings()
    full = np.zeros(len(partial), np.bool_)
    places, ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for places_of_pile, pile, room in _piles(item.candidates, item.chosen, shape):
        differing = np.zeros_like(pile.rhs)
        for segment, living in _surveyed(item):
            look()
            stored = view.stored(segment, map_words(view.path, segment).at(living))
            searches.compare_with_representatives(
                stored, living, shape, pile, room, findings, differing
            )
        full[places_of_pile] = room.full
        partial[places_of_pile] = differing
        # A candidate that is refuted throughout, or has too many combinations, is not merged.
        is_open = (pile.rhs & ~differing).any(axis=1) & ~room.full
        for k in np.flatnonzero(is_open).tolist() if item.parts > 1 else ():
            ids.append(room.ids[k, : room.used[k]].copy())
            places.append(np.full(len(ids[-1]), places_of_pile[k]))
    # Where there was no room for all combinations there may be evidence that was not seen.
    partial[full] = item.candidates.rhs[full]
    task_result = _task_result(findings, view.columns, item.every_rhs, partial, item.candidates)
    task_result.arrays["full"] = full
    if item.parts > 1:
        arrays = {"candidate": np.concatenate(places), "id": np.concatenate(ids)}
        path = write_arrays(view.path, unique(item.prefix, "kept"), arrays)
        task_result.facts["kept"] = path
    yield task_result


def _piles(
    candidates: Candidates, chosen: I64, shape: evidence.RowShape
) -> Iterator[tuple[I64, Candidates, searches.RepresentativeRows]]:
    """Some candidates with room for their representatives, as many at a time as memory allows."""
    width = 2 * (shape.owner.size + shape.full.size)  # of a row and its key
    room = thresholds.current.representatives
    at_once = max(1, _REPRESENTATIVE_WORDS // (room * width))
    for start in range(0, len(chosen), at_once):
        places_of_pile = chosen[start : start + at_once]
        pile = Candidates(candidates.lhs[places_of_pile], candidates.rhs[places_of_pile])
        yield places_of_pile, pile, searches.representatives(pile, shape, room)


def _surveyed(item: SurveyRows) -> Iterator[tuple[Segment, I64]]:
    """The living rows that are meant, by their positions: about as many in each part."""
    view = item.view
    rows = sum(segment.rows for segment in view.segments)
    ends = [rows * part // item.parts for part in (item.part, item.part + 1)]
    start = 0
    for segment in view.segments:
        first, last = (at - start for at in ends)
        start += segment.rows
        if last <= 0 or first >= segment.rows:
            continue
        if item.among is None:
            living = live_positions(view.path, segment)
        else:
            living = view.having(segment, item.among)
        yield segment, living[(living >= first) & (living < last)] if item.parts > 1 else living


def merge(item: MergeSurveys) -> Iterator[TaskResult]:
    """Evidence against the candidates from the rows that were kept for each combination on their
    lhs, wherever: where these agree on the right, so do all rows that they stand for."""
    view, shape = item.view, item.view.shape
    findings, partial = item.findings()
    full = np.zeros(len(partial), np.bool_)
    no_bitmap = np.empty(0, np.uint8)
    ids: list[I64] = [np.empty(0, np.int64)]
    count = 0
    for numbers, pile, pile_room in _piles(item.candidates, np.arange(len(partial)), shape):
        for k in range(len(pile.lhs)):
            look()
            one = Candidates(pile.lhs[k : k + 1], pile.rhs[k : k + 1])
            room = pile_room.of(k)
            at = slice(numbers[k], numbers[k] + 1)
            for file in item.files:
                ids_of_rows = _kept(view, file, item.places[numbers[k]])
                # Rows go by their numbers here, and by their ids in what is found.
                rows = view.rows_with(ids_of_rows)
                rows.setflags(write=False)  # as maps are: one kernel for both
                stored = index.SegmentRows(rows, count, no_bitmap)
                searches.compare_with_representatives(
                    stored, np.arange(len(ids_of_rows)), shape, one, room, findings, partial[at]
                )
                ids.append(ids_of_rows)
                count += len(ids_of_rows)
        full[numbers] = pile_room.full
    partial[full] = item.candidates.rhs[full]
    task_result = _task_result(findings, view.columns, item.every_rhs, partial)
    seen = np.arange(evidence.WITNESSES)[None, :] < task_result.arrays["seen"][:, None]
    pairs = np.concatenate(ids)[np.where(seen[:, :, None], task_result.arrays["witnesses"], 0)]
    task_result.arrays["witnesses"] = np.sort(pairs, axis=2)
    task_result.arrays["full"] = full
    yield task_result


def _kept(view: View, file: str, place: int) -> I64:
    """The ids of the rows that were kept for a candidate."""
    arrays = map_passing(view.path / file)
    lo, hi = np.searchsorted(arrays["candidate"], [place, place + 1])
    ids: I64 = arrays["id"][lo:hi]
    note(ids.nbytes)
    return ids


def probe(item: ProbeBatch) -> Iterator[TaskResult]:
    """Evidence between a batch and these segments (the batch's own may be among them)."""
    view = item.view
    findings, partial = item.findings()
    by_index = bitsets.to_flags(item.candidates.lhs, view.columns)
    by_index = np.delete(by_index, [k for k, _ in item.groups], axis=0)
    wanted = signatures.wanted(by_index, item.order)
    for arrived in item.batch:
        positions = live_positions(view.path, arrived)
        batch = NumberedRows(view.rows(arrived, positions), positions + arrived.base)
        codes = _codes(item, batch.words)
        own = signatures.signatures(batch.words, view.shape)
        for segment in view.segments:
            if segment.number > arrived.number or not segment.live:
                continue
            look()
            for name, ranges in _ranges(item, segment, codes):
                filters = np.array(item.filters[name], np.int64)
                column = index_columns(name)[0]
                rest = _search_heavy(item, batch, ranges, segment, name, findings, partial)
                rest = agreeing(view.path, segment, rest, own, wanted)
                stored = view.looked_up(segment, rest)
                index.probe(
                    batch, rest, stored, column, filters, view.shape, item.candidates, findings
                )
            for k, name in item.groups:
                _probe_group(item, batch, segment, k, name, codes, findings, partial)
    yield _task_result(findings, view.columns, item.every_rhs, partial)


def _search_heavy(
    item: ProbeBatch,
    batch: NumberedRows,
    ranges: Ranges,
    segment: Segment,
    name: str,
    findings: evidence.Findings,
    partial: U64,
) -> Ranges:
    """Search the stored rows that many rows of a batch would each be compared with, once for all of
    them; what is left to compare. It decides by the rows that look-ups did return: whatever share
    of the batch or the table has a value, no look-up costs more than a search does."""
    view, limits = item.view, thresholds.current
    sizes = ranges.hi - ranges.lo
    large = np.flatnonzero(sizes > limits.narrowed_rows)
    starts, where, times = np.unique(ranges.lo[large], return_inverse=True, return_counts=True)
    hi = ranges.hi.copy()
    candidates: I64 | None = None
    for k in np.flatnonzero(times > limits.search_cost):
        same = large[where == k]
        size = int(sizes[same[0]])
        if (sizes[same] != size).any() or same.size * size <= limits.cheap_probe // 16:
            continue
        if candidates is None:
            flags = bitsets.to_flags(item.candidates.lhs, view.columns)
            candidates = np.flatnonzero(flags[:, list(index_columns(name))].all(axis=1))
        positions = ranges.positions[starts[k] : starts[k] + size].astype(np.int64)
        positions = positions[~are_dead(view.path, segment, positions)]
        rows = NumberedRows(view.rows(segment, positions), positions + segment.base)
        # The batch's own segment has its rows already.
        if segment.base != batch.ids[0] >> 32 << 32:
            words = np.concatenate([rows.words, batch.words[same]])
            rows = NumberedRows(words, np.concatenate([rows.ids, batch.ids[same]]))
        trie = _trie(item.candidates.lhs, item.order, candidates)
        searches.search(rows, view.shape, trie, item.candidates, findings, partial)
        hi[same] = ranges.lo[same]
    return Ranges(ranges.lo, hi, ranges.positions)


def _codes(item: ProbeBatch, rows: U64) -> dict[str, U64]:
    """The batch's codes in every index that is used, and none for the empty lhs."""
    names = {name for group in item.lookups for name in group}
    names |= {name for _, name in item.groups if name}
    shape = item.view.shape
    return {"": rows[:, 0], **{name: index_codes(rows, name, shape) for name in names}}


def _probe_group(
    item: ProbeBatch,
    batch: NumberedRows,
    segment: Segment,
    k: int,
    name: str,
    codes: dict[str, U64],
    findings: evidence.Findings,
    partial: U64,
) -> None:
    """Compare each batch row with rows that agree with it on the whole lhs of a candidate. Mostly
    one row of a range is read, so the kernel checks what it reads."""
    view = item.view
    words = map_words(view.path, segment)
    stored = view.stored(segment, words.rows)
    if name:
        group = look_up_groups(view.path, segment, name, codes[name])
        ranges, place = group.ranges, group.place
    else:
        first = live_positions(view.path, segment)[:_FIRST].astype(np.int32)
        count = len(codes[""])
        ranges = Ranges(np.zeros(count, np.int64), np.full(count, first.size), first)
        group, place = None, in_memory()
    note(int((ranges.hi > ranges.lo).sum()) * words.place.size)
    index.probe_group(
        batch, ranges, stored, place, words.place, view.shape, item.candidates, k,
        thresholds.current.group_rows, findings, partial,
    )  # fmt: skip
    words.file.require_undamaged()
    if group is not None:
        group.file.require_undamaged()


def _ranges(
    item: ProbeBatch, segment: Segment, codes: dict[str, U64]
) -> Iterator[tuple[str, Ranges]]:
    """The look-ups to follow, each with an index that the rows it returns agree in. A batch row
    follows the smallest of every group; where that returns many rows, only those that the second
    smallest returns too."""
    names = sorted({name for group in item.lookups for name in group})
    ranges = [look_up(item.view.path, segment, name, codes[name]) for name in names]
    used: dict[tuple[int, int], NDArray[np.bool_]] = {}
    for lookups in item.lookups:
        group = [names.index(name) for name in lookups]
        sizes = np.stack([ranges[k].hi - ranges[k].lo for k in group])
        order = np.argsort(sizes, axis=0, kind="stable")[[0, min(1, len(group) - 1)]]
        least, next_ = np.take_along_axis(sizes, order, axis=0)
        alone = (least <= thresholds.current.narrowed_rows) | (next_ > _NEAR * least)
        order[1, alone] = order[0, alone]
        pairs = np.sort(np.array(group)[order], axis=0)
        for one, two in np.unique(pairs[:, least > 0], axis=1).T.tolist():
            these = (pairs[0] == one) & (pairs[1] == two) & (least > 0)
            used[one, two] = these | used.get((one, two), np.False_)
    for (one, two), rows in used.items():
        lo, hi, positions = ranges[one]
        chosen = Ranges(lo, np.where(rows, hi, lo), positions)
        yield names[one], chosen if one == two else index.shared(chosen, ranges[two])


def _task_result(
    findings: evidence.Findings,
    atoms: int,
    every_rhs: bool,
    partial: U64 | None = None,
    candidates: Candidates | None = None,
) -> TaskResult:
    masks, witnesses, seen, complete = evidence.harvest(findings)
    if candidates is not None and (candidates.rhs[:, -1] & evidence.LISTED).any():
        # Pairs that agree in a subkey are only listed.
        rhs = candidates.rhs.copy()
        rhs[:, -1] &= ~evidence.LISTED
        counts = evidence.refuting(masks, Candidates(candidates.lhs, rhs))
        masks, witnesses, seen = masks[counts], witnesses[counts], seen[counts]
    best = maximal.maximal_evidence(masks, atoms) if every_rhs else bitsets.maximal(masks)
    keep = np.flatnonzero(bitsets.is_member(masks, best))
    arrays: dict[str, NDArray[Any]] = {
        "masks": masks[keep],
        "witnesses": witnesses[keep, : evidence.WITNESSES],
        "seen": np.minimum(seen[keep], evidence.WITNESSES),
    }
    if partial is not None:
        # Of most candidates there is nothing to say, and every task has them all.
        arrays["refuted"] = np.flatnonzero(partial.any(axis=1))
        arrays["partial"] = partial[arrays["refuted"]]
    return TaskResult({"complete": complete}, arrays)


def _trie(candidates: U64, order: tuple[int, ...], chosen: I64 | None = None) -> searches.Trie:
    """All or some candidates as paths, sharing their beginnings."""
    chosen = np.arange(len(candidates)) if chosen is None else chosen
    rank = {column: position for position, column in enumerate(order)}
    column, child, sibling, ends = [-1], [-1], [-1], [-1]
    nodes: dict[tuple[int, int], int] = {}
    for k, columns in zip(chosen.tolist(), bitsets.to_columns(candidates[chosen]), strict=True):
        at = 0
        for c in sorted(columns, key=rank.__getitem__):
            if (at, c) not in nodes:
                nodes[at, c] = len(column)
                column.append(c)
                ends.append(-1)
                sibling.append(child[at])
                child[at] = nodes[at, c]
                child.append(-1)
            at = nodes[at, c]
        ends[at] = k
    arrays = [np.array(part, np.int64) for part in (column, child, sibling, ends)]
    return searches.Trie(*arrays)
