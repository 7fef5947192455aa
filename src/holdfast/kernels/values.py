"""Values of columns: one 128-bit code per cell, equal across columns iff the values are.

A number's code is a hash of its canonical form ``± m · 2^a · 5^b`` with m coprime to 10, so that
the integer 1, the decimal 1.00 and the double 1.0 have one code, and 2^53 + 1 has not that of the
double 2^53. Text brings its 128-bit hash along. A *salt* keeps families of types apart.

An *entry* is a row of four ``uint64`` words: the code's two, the number of an attribute (a column
of a table), and how often the value occurs there, as a signed number: in a difference it may be
negative. Entries are sorted by code, then attribute. Codes are hashes, hence spread evenly, so one
pass into buckets nearly sorts them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import U64
from holdfast.kernels.bitsets import copy_row, lowest
from holdfast.kernels.hashing import mix, slot
from holdfast.kernels.jit import allocating, inlined, kernel

HASHED, INTEGER, WIDE, FLOAT = range(4)
"""How a column's words hold its values: two words of a hash; a signed integer; one of 128 bits; a
double in the order-preserving form of :func:`holdfast.kernels.encode.float_words`."""

_SLOTS = 1 << 14
"""Values of a column that are counted on the fly: those that recur come out once."""

_PER_BUCKET = 4

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_FIVE = np.uint64(5)
_U64 = np.uint64(64)
_FIFTH = np.uint64(3689348814741910323)  # 2^64 = 5 · this + 1
_LOW63 = np.int64(0x7FFFFFFFFFFFFFFF)
_FRACTION = np.int64(0xFFFFFFFFFFFFF)
_NAN = np.uint64(1 << 40)
_INFINITE = np.uint64(2 << 40)
_NULL = np.uint64(4 << 40)


class CodedColumn(NamedTuple):
    """Where the cells of an attribute are in a row of words, and how to read them."""

    attribute: int
    kind: int
    first: int  # its first value word
    scale: int  # a number is its integer divided by 10 to this power
    null_word: int
    null_bit: int
    nulls: bool  # whether a null is a value
    salt: U64  # two words


@kernel
def _hash(low: np.uint64, high: np.uint64, form: np.uint64, one: np.uint64, two: np.uint64) -> Any:
    """Two lanes of three steps, of a salt each; for a given form and high word each lane is
    one-to-one in low."""
    first = mix(low ^ mix(high ^ mix(form ^ one)))
    second = mix(low + mix(high + mix(form + two + np.uint64(0x9E3779B97F4A7C15))))
    return first, second


@kernel
def _number(low: np.uint64, high: np.uint64, negative: bool, twos: int, fives: int) -> Any:
    """The canonical form of ± (high · 2^64 + low) · 2^twos · 5^fives: the two words of m, and a
    word that has the sign and both exponents."""
    if low == _ZERO and high == _ZERO:
        return _ZERO, _ZERO, _ZERO
    if low == _ZERO:
        low, high = high, _ZERO
        twos += 64
    zeros = np.uint64(lowest(low))
    if zeros:
        low >>= zeros
        if high:
            low |= high << (_U64 - zeros)
            high >>= zeros
        twos += np.int64(zeros)
    while high:
        rest = high % _FIVE
        left = rest + low % _FIVE
        if left % _FIVE:
            break
        # rest · 2^64 + low, divided by five without leaving 64 bits.
        low = rest * _FIFTH + low // _FIVE + left // _FIVE
        high //= _FIVE
        fives += 1
    if high == _ZERO:
        while low % _FIVE == _ZERO:
            low //= _FIVE
            fives += 1
    form = (
        np.uint64(negative)
        | np.uint64(twos + 2048) << _ONE
        | np.uint64(fives + 2048) << np.uint64(16)
    )
    return low, high, form


@kernel
def _float(word: np.int64) -> Any:
    bits = word ^ ((word >> 63) & _LOW63)
    fraction = bits & _FRACTION
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        if fraction:
            return _ZERO, _ZERO, _NAN
        return _ZERO, _ZERO, _INFINITE | np.uint64(bits < 0)
    if exponent == 0:
        exponent = 1
    else:
        fraction |= 1 << 52
    return _number(np.uint64(fraction), _ZERO, bits < 0, exponent - 1075, 0)


@kernel
def _canonical(kind: int, scale: int, word: np.uint64, high: np.uint64) -> Any:
    """The canonical form of a number, by its words."""
    if kind == FLOAT:
        return _float(np.int64(word))
    if kind == INTEGER:
        negative = np.int64(word) < 0
        if negative:
            word = _ZERO - word
        return _number(word, _ZERO, negative, -scale, -scale)
    negative = np.int64(high) < 0
    if negative:
        high = ~high
        word = _ZERO - word
        if word == _ZERO:
            high += _ONE
    return _number(word, high, negative, -scale, -scale)


@kernel
def canonicals(rows: Any, column: Any, out: Any) -> None:
    """The canonical forms ``(rows, 3)`` of a column's numbers; those of nulls mean nothing."""
    kind, first, scale = column.kind, column.first, column.scale
    for i in range(rows.shape[0]):
        high = rows[i, first + 1] if kind == WIDE else _ZERO
        out[i, 0], out[i, 1], out[i, 2] = _canonical(kind, scale, rows[i, first], high)


# Cells are read as numbers: a row or a column that a kernel hands to another one is counted as
# referred to, which takes longer than to code a cell.


@inlined
def _is_null(rows: Any, position: int, column: Any) -> bool:
    word = rows[position, column.null_word]
    return word >> np.uint64(column.null_bit) & _ONE == _ONE


@kernel
def _coded(
    kind: int, scale: int, low: np.uint64, high: np.uint64, one: np.uint64, two: np.uint64
) -> Any:
    """The code of a value, by its words and a salt."""
    if kind == HASHED:
        return low ^ one, high ^ two
    low, high, form = _canonical(kind, scale, low, high)
    return _hash(low, high, form, one, two)


@inlined
def _code(rows: Any, position: int, column: Any) -> Any:
    """The code of one cell, which is not null."""
    first, high = column.first, _ZERO
    if column.kind == HASHED or column.kind == WIDE:
        high = rows[position, first + 1]
    return _coded(
        column.kind, column.scale, rows[position, first], high, column.salt[0], column.salt[1]
    )


@inlined
def _code_of_null(column: Any) -> Any:
    return _hash(_ZERO, _ZERO, _NULL, column.salt[0], column.salt[1])


@kernel
def codes(rows: Any, positions: Any, column: Any, out: Any, present: Any) -> None:
    """The codes of a column's cells, and which of them are values."""
    for i in range(positions.size):
        if _is_null(rows, positions[i], column):
            present[i] = column.nulls
            out[i, 0], out[i, 1] = _code_of_null(column)
        else:
            present[i] = True
            out[i, 0], out[i, 1] = _code(rows, positions[i], column)


@kernel
def combine(codes: Any, present: Any, others: Any, others_present: Any) -> None:
    """The codes of tuples: those so far, each followed by one more value. Order counts."""
    for i in range(codes.shape[0]):
        present[i] = present[i] and others_present[i]
        codes[i, 0] = mix(codes[i, 0] + mix(others[i, 0] ^ np.uint64(0xA0761D6478BD642F)))
        codes[i, 1] = mix(codes[i, 1] + mix(others[i, 1] ^ np.uint64(0xE7037ED1A0B428DB)))


@kernel
def combine_within(codes: Any, present: Any, others: Any, others_present: Any) -> None:
    """The codes of tuples that keep the first word of those so far: so entries of the rows that
    agree so far are next to each other, whatever follows."""
    for i in range(codes.shape[0]):
        present[i] = present[i] and others_present[i]
        other = mix(others[i, 1] ^ np.uint64(0xE7037ED1A0B428DB))
        other = mix(others[i, 0] ^ other ^ np.uint64(0xA0761D6478BD642F))
        codes[i, 1] = mix(codes[i, 1] + other)


@allocating
def refuted(entries: Any, words: int, left: Any, right: Any, seen: Any) -> Any:
    """For each pair of attributes where the left one has a code that the right one has not, the
    most frequent such; or -1. ``seen`` is set where the left one has any."""
    out = np.full(left.size, -1, np.int64)
    mask = np.empty(words, np.uint64)
    i = 0
    while i < entries.shape[0]:
        first = i
        mask[:] = _ZERO
        while i < entries.shape[0] and _same_code(entries, i, first):
            mask[np.int64(entries[i, 2] >> np.uint64(6))] |= _ONE << (entries[i, 2] & np.uint64(63))
            i += 1
        for k in range(left.size):
            if mask[left[k] >> 6] >> np.uint64(left[k] & 63) & _ONE:
                seen[k] = True
                if not mask[right[k] >> 6] >> np.uint64(right[k] & 63) & _ONE:
                    at = first
                    while entries[at, 2] != np.uint64(left[k]):
                        at += 1
                    if out[k] < 0 or entries[at, 3] > entries[out[k], 3]:
                        out[k] = at
    return out


@allocating
def tally(rows: Any, positions: Any, column: Any, one: np.uint64, out: Any) -> int:
    """Write entries of a column's cells, each counting ``one``, to ``out``; returns how many.

    Values that recur soon are counted together; others come out more than once, and sorting brings
    them together.
    """
    cache = np.zeros((_SLOTS, 3), np.uint64)
    size = 0
    for i in range(positions.size):
        if not _is_null(rows, positions[i], column):
            high, low = _code(rows, positions[i], column)
        elif column.nulls:
            high, low = _code_of_null(column)
        else:
            continue
        at = np.int64(low & np.uint64(_SLOTS - 1))
        if cache[at, 0] == high and cache[at, 1] == low:
            cache[at, 2] += one
            continue
        size = _emit(cache, at, column.attribute, out, size)
        cache[at, 0] = high
        cache[at, 1] = low
        cache[at, 2] = one
    for at in range(_SLOTS):
        size = _emit(cache, at, column.attribute, out, size)
    return size


@allocating
def tally_codes(codes: Any, present: Any, attribute: int, one: np.uint64, out: Any) -> int:
    """The same for tuples, whose codes are at hand."""
    cache = np.zeros((_SLOTS, 3), np.uint64)
    size = 0
    for i in range(codes.shape[0]):
        if not present[i]:
            continue
        high, low = codes[i, 0], codes[i, 1]
        at = np.int64(low & np.uint64(_SLOTS - 1))
        if cache[at, 0] == high and cache[at, 1] == low:
            cache[at, 2] += one
            continue
        size = _emit(cache, at, attribute, out, size)
        cache[at, 0] = high
        cache[at, 1] = low
        cache[at, 2] = one
    for at in range(_SLOTS):
        size = _emit(cache, at, attribute, out, size)
    return size


@inlined
def _emit(cache: Any, at: int, attribute: int, out: Any, size: int) -> int:
    """Write an entry for what a slot of the cache has counted, if anything; returns how many
    entries there are then."""
    if cache[at, 2] == _ZERO:
        return size
    out[size, 0] = cache[at, 0]
    out[size, 1] = cache[at, 1]
    out[size, 2] = np.uint64(attribute)
    out[size, 3] = cache[at, 2]
    return size + 1


@inlined
def _same_code(entries: Any, i: int, j: int) -> bool:
    return bool(entries[i, 0] == entries[j, 0] and entries[i, 1] == entries[j, 1])


@inlined
def _is_after(entries: Any, i: int, high: np.uint64, low: np.uint64, attribute: np.uint64) -> bool:
    """Whether an entry comes after another one, of which its words are given."""
    if entries[i, 0] != high:
        return bool(entries[i, 0] > high)
    if entries[i, 1] != low:
        return bool(entries[i, 1] > low)
    return bool(entries[i, 2] > attribute)


@inlined
def _comes_before(ones: Any, i: int, others: Any, j: int) -> bool:
    return _is_after(others, j, ones[i, 0], ones[i, 1], ones[i, 2])


@kernel
def _sort_few(entries: Any, low: int, high: int) -> None:
    """Shell sort: plain insertion for the few entries that a bucket mostly has."""
    gap = 1
    while 9 * gap < high - low:
        gap = 3 * gap + 1
    while gap:
        for i in range(low + gap, high):
            one, two, attribute, count = entries[i, 0], entries[i, 1], entries[i, 2], entries[i, 3]
            at = i
            while at >= low + gap and _is_after(entries, at - gap, one, two, attribute):
                for w in range(4):
                    entries[at, w] = entries[at - gap, w]
                at -= gap
            if at < i:
                entries[at, 0], entries[at, 1] = one, two
                entries[at, 2], entries[at, 3] = attribute, count
        gap //= 3


@kernel
def _spread(entries: Any, lowest_code: np.uint64, shift: np.uint64, starts: Any, out: Any) -> None:
    """Move entries to their buckets; ``starts`` become the buckets' ends."""
    for i in range(entries.shape[0]):
        bucket = np.int64((entries[i, 0] - lowest_code) >> shift)
        at = starts[bucket]
        starts[bucket] = at + 1
        for w in range(4):
            out[at, w] = entries[i, w]


@kernel
def _sizes(entries: Any, lowest_code: np.uint64, shift: np.uint64, sizes: Any) -> None:
    for i in range(entries.shape[0]):
        sizes[np.int64((entries[i, 0] - lowest_code) >> shift) + 1] += 1


@kernel
def _sort_buckets(out: Any, ends: Any) -> None:
    low = 0
    for bucket in range(ends.size - 1):
        if ends[bucket] - low > 1:
            _sort_few(out, low, ends[bucket])
        low = ends[bucket]


@kernel
def _summed(entries: Any) -> int:
    """Add up the entries of each code and attribute, in place; those with the sum 0 are dropped."""
    size = 0
    i = 0
    while i < entries.shape[0]:
        total = entries[i, 3]
        j = i + 1
        while j < entries.shape[0] and _same_code(entries, i, j) and entries[j, 2] == entries[i, 2]:
            total += entries[j, 3]
            j += 1
        if total:
            for w in range(3):
                entries[size, w] = entries[i, w]
            entries[size, 3] = total
            size += 1
        i = j
    return size


def merged(blocks: list[U64]) -> U64:
    """The entries of some blocks in order, added up by code and attribute, without those whose sum
    is 0."""
    count = sum(len(block) for block in blocks)
    out = np.empty((count, 4), np.uint64)
    if not count:
        return out
    least = min(int(block[:, 0].min()) for block in blocks if len(block))
    span = max(int(block[:, 0].max()) for block in blocks if len(block)) - least
    buckets = max(1, count // _PER_BUCKET).bit_length()
    shift = np.uint64(max(0, span.bit_length() - buckets))
    starts = np.zeros((span >> int(shift)) + 2, np.int64)
    for block in blocks:
        _sizes(block, np.uint64(least), shift, starts)
    starts = np.cumsum(starts)
    for block in blocks:
        _spread(block, np.uint64(least), shift, starts, out)
    _sort_buckets(out, starts)
    return out[: _summed(out)]


@kernel
def in_common(entries: Any, most: int, common: Any) -> None:
    """Add up, for every two attributes, how often sorted entries' codes occur in both; without
    those that occur more often than ``most`` in an attribute."""
    start = 0
    for stop in range(1, entries.shape[0] + 1):
        if stop < entries.shape[0] and _same_code(entries, stop, start):
            continue
        for i in range(start, stop):
            for j in range(i, stop):
                one, two = np.int64(entries[i, 2]), np.int64(entries[j, 2])
                if max(np.int64(entries[i, 3]), np.int64(entries[j, 3])) > most:
                    continue
                least = np.int64(min(entries[i, 3], entries[j, 3]))
                common[one, two] += least
                if one != two:
                    common[two, one] += least
        start = stop


@allocating
def distinct_codes(entries: Any) -> Any:
    """The codes of sorted entries, each once."""
    out = np.empty((entries.shape[0], 2), np.uint64)
    size = 0
    for i in range(entries.shape[0]):
        if i and _same_code(entries, i - 1, i):
            continue
        out[size, 0] = entries[i, 0]
        out[size, 1] = entries[i, 1]
        size += 1
    return out[:size]


@allocating
def positions(codes: Any, lo: Any, hi: Any, rest: Any) -> Any:
    """The positions of a run's entries that have one of the codes.

    ``lo`` and ``hi`` say for every code where the run's entries with its first word begin and end;
    ``rest`` are the second words of the run.
    """
    out = np.empty(codes.shape[0], np.int64)
    size = 0
    for k in range(codes.shape[0]):
        for at in range(lo[k], hi[k]):
            if rest[at] == codes[k, 1]:
                if size == out.size:
                    wider = np.empty(2 * size, np.int64)
                    copy_row(out, wider)
                    out = wider
                out[size] = at
                size += 1
    return out[:size]


@allocating
def transitions(delta: Any, old: Any, words: int) -> Any:
    """How many values move from which cluster to which.

    ``delta`` are entries of what changed, ``old`` those of the same codes before. A cluster is the
    mask of the attributes in which a value occurs. Returns rows of the mask before and the mask
    after, how many values have them, and whether some value would occur less than never.
    """
    capacity = 64
    rows = np.empty((capacity, 2 * words), np.uint64)
    counts = np.zeros(capacity, np.int64)
    slots = np.full(4 * capacity, -1, np.int64)
    size = 0
    wrong = False
    pair = np.empty(2 * words, np.uint64)
    i = 0
    k = 0
    while i < delta.shape[0]:
        high = delta[i, 0]
        low = delta[i, 1]
        pair[:] = _ZERO
        while True:
            changed = i < delta.shape[0] and delta[i, 0] == high and delta[i, 1] == low
            stored = k < old.shape[0] and old[k, 0] == high and old[k, 1] == low
            if not changed and not stored:
                break
            if changed and (not stored or delta[i, 2] <= old[k, 2]):
                attribute = delta[i, 2]
            else:
                attribute = old[k, 2]
            before = np.int64(0)
            if stored and old[k, 2] == attribute:
                before = np.int64(old[k, 3])
                k += 1
            after = before
            if changed and delta[i, 2] == attribute:
                after += np.int64(delta[i, 3])
                i += 1
            if after < 0:
                wrong = True
            word = np.int64(attribute >> np.uint64(6))
            bit = _ONE << (attribute & np.uint64(63))
            if before > 0:
                pair[word] |= bit
            if after > 0:
                pair[words + word] |= bit
        moved = False
        for w in range(words):
            if pair[w] != pair[words + w]:
                moved = True
        if not moved:
            continue
        if 2 * size >= capacity:
            capacity *= 2
            wider = np.empty((capacity, 2 * words), np.uint64)
            for r in range(size):
                copy_row(rows[r], wider[r])
            rows = wider
            longer = np.zeros(capacity, np.int64)
            copy_row(counts[:size], longer)
            counts = longer
            slots = np.full(4 * capacity, -1, np.int64)
            for r in range(size):
                slots[slot(rows[r], rows, slots)] = r
        at = slot(pair, rows, slots)
        if slots[at] < 0:
            slots[at] = size
            rows[size] = pair
            size += 1
        counts[slots[at]] += 1
    return rows[:size], counts[:size], wrong


@allocating
def arrivals(delta: Any, old: Any) -> Any:
    """Positions of the entries of ``delta`` whose code and attribute ``old`` has not."""
    out = np.empty(delta.shape[0], np.int64)
    size = 0
    k = 0
    for i in range(delta.shape[0]):
        while k < old.shape[0] and _comes_before(old, k, delta, i):
            k += 1
        if k == old.shape[0] or _comes_before(delta, i, old, k):
            out[size] = i
            size += 1
    return out[:size]


@allocating
def add_overlaps(masks: Any, counts: Any, low: int, high: int, out: Any) -> None:
    """Add to ``out[a - low, b]`` how many values attributes a and b share, for every attribute a
    from ``low`` to below ``high``, and every other one b."""
    members = np.empty(out.shape[1], np.int64)
    for i in range(masks.shape[0]):
        in_range = False
        for w in range(low >> 6, ((high - 1) >> 6) + 1):
            if masks[i, w]:
                in_range = True
        if not in_range:
            continue
        size = 0
        first = 0
        last = 0
        for w in range(masks.shape[1]):
            left = masks[i, w]
            while left:
                member = 64 * w + lowest(left)
                members[size] = member
                size += 1
                if member < low:
                    first = size
                if member < high:
                    last = size
                left &= left - _ONE
        for one in range(first, last):
            for two in range(size):
                if two != one:
                    out[members[one] - low, members[two]] += counts[i]


@kernel
def add_distinct(masks: Any, counts: Any, out: Any) -> None:
    """Add to ``out[a]`` how many values attribute a has."""
    for i in range(masks.shape[0]):
        for w in range(masks.shape[1]):
            left = masks[i, w]
            while left:
                out[64 * w + lowest(left)] += counts[i]
                left &= left - _ONE
