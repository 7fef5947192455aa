"""Records of JSON, byte by byte: whether they are well formed, what their values look like, and
where each value stands.

RFC 8259 with one liberty, which is that of most writers: the numbers NaN, Infinity and -Infinity.
The places of a record that values stand in are numbered: node 0 is the record, a field of it is
another node, the elements of a list are one node together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.kernels import text
from holdfast.kernels.arrays import I8, I64, U8
from holdfast.kernels.jit import kernel

# What a walk ends with.
GOOD = 0
MALFORMED = 1
TOO_DEEP = 2
UNKNOWN = 3  # a field that has no node
UNKNOWN_ELEMENT = 4  # a list whose elements have none
UNFIT = 5  # a value of another shape than the node's
REPEATED = 6  # a field that the record has already

# What a node takes.
LEARN = 0  # anything: the nodes inside are learned
LEAF = 1  # anything but lists and records
TEXT = 2  # anything; a list or a record is taken as the text that it is
RECORD = 3
LIST = 4
MAP = 5  # a record whose fields are entries: its element is the key, the node behind that the value

# What values at a node were, as bits.
BOOLEAN = 1
NUMBER = 2
STRING = 4
OBJECT = 8
ARRAY = 16

# How a value is written; 0 if there is none.
IS_NULL = 1
IS_TEXT = 2
IS_ESCAPED = 3  # text with escapes in it
IS_NUMBER = 4
IS_WORD = 5  # true or false
IS_NESTED = 6

NOWHERE = -1
"""Where a field leads whose value is checked and otherwise passed over."""

DEPTH = 500
"""The most lists and records inside each other."""

_BAD = -1
_TAB = 9
_LF = 10
_CR = 13
_SPACE = 32
_QUOTE = 34
_PLUS = 43
_COMMA = 44
_MINUS = 45
_POINT = 46
_ZERO = 48
_NINE = 57
_COLON = 58
_UPPER_I = 73
_UPPER_N = 78
_OPEN_LIST = 91
_BACKSLASH = 92
_CLOSE_LIST = 93
_LOWER_A = 97
_LOWER_E = 101
_LOWER_F = 102
_LOWER_N = 110
_LOWER_T = 116
_LOWER_U = 117
_OPEN_RECORD = 123
_CLOSE_RECORD = 125

_TRUE = np.frombuffer(b"true", np.uint8)
_FALSE = np.frombuffer(b"false", np.uint8)
_NULL = np.frombuffer(b"null", np.uint8)
_NAN = np.frombuffer(b"NaN", np.uint8)
_INFINITY = np.frombuffer(b"Infinity", np.uint8)
_MARK = np.frombuffer(b"\xef\xbb\xbf", np.uint8)

# What is expected next.
_KEY = 0
_ELEMENT = 1
_VALUE = 2
_AFTER = 3


class Tree(NamedTuple):
    """Nodes and the edges between them, which are the spellings of fields' names."""

    shape: I8  # of each node
    element: I64  # the node of its elements, or -1
    first: I64  # its first edge, or -1
    keys: U8  # the bytes of all edges' names, as they are written
    key_start: I64  # of each edge
    key_end: I64
    child: I64  # where it leads
    following: I64  # the next edge of the same node, or -1


class OpenValues(NamedTuple):
    """Where a walk is: the lists and records that are open, with their nodes."""

    opened: I64  # the opening bracket of each
    node: I64
    index: I64
    edge: I64  # the last one taken


class ValueSpans(NamedTuple):
    """Where each value stands: the first entry of a node's is at its ``base``."""

    base: I64
    start: I64  # of a list: its first element
    end: I64
    form: I8


class Seen(NamedTuple):
    """What was seen at each node."""

    kinds: I8  # bits
    votes: I8  # what its numbers look like, joined
    counts: I64  # elements, of nodes of elements


@kernel
def _space(data: U8, at: int, end: int) -> int:
    while at < end and (
        data[at] == _SPACE or data[at] == _LF or data[at] == _CR or data[at] == _TAB
    ):
        at += 1
    return at


@kernel
def _word(data: U8, at: int, end: int, word: U8) -> int:
    """Where a word that stands at ``at`` ends; -1 if another does."""
    if end - at < word.size:
        return _BAD
    for i in range(word.size):
        if data[at + i] != word[i]:
            return _BAD
    return at + word.size


@kernel
def _number(data: U8, at: int, end: int) -> int:
    """Where the number that begins at ``at`` ends; -1 if there is none."""
    if data[at] == _UPPER_N:
        return _word(data, at, end, _NAN)
    if data[at] == _MINUS:
        at += 1
    if at >= end:
        return _BAD
    if data[at] == _UPPER_I:
        return _word(data, at, end, _INFINITY)
    stop = text.digits(data, at, end)
    if stop == at or (data[at] == _ZERO and stop > at + 1):
        return _BAD
    at = stop
    if at < end and data[at] == _POINT:
        stop = text.digits(data, at + 1, end)
        if stop == at + 1:
            return _BAD
        at = stop
    if at < end and (data[at] | 32) == _LOWER_E:
        at += 1
        if at < end and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        stop = text.digits(data, at, end)
        if stop == at:
            return _BAD
        at = stop
    return at


@kernel
def _hex(data: U8, at: int, end: int) -> int:
    """The number that four hexadecimal digits write; -1 if they do not."""
    if at + 4 > end:
        return _BAD
    value = 0
    for i in range(at, at + 4):
        byte = np.int64(data[i])
        if _ZERO <= byte <= _NINE:
            digit = byte - _ZERO
        else:
            digit = (byte | 32) - _LOWER_A + 10
            if digit < 10 or digit > 15:
                return _BAD
        value = value * 16 + digit
    return value


@kernel
def _unit(data: U8, at: int, end: int) -> int:
    """The character that ``\\uXXXX`` at ``at`` writes, of a pair of surrogates that of both; -1 for
    half a pair."""
    high = _hex(data, at + 2, end)
    if high < 0xD800 or high > 0xDFFF:
        return high
    if high > 0xDBFF or at + 8 > end or data[at + 6] != _BACKSLASH or data[at + 7] != _LOWER_U:
        return _BAD
    low = _hex(data, at + 8, end)
    if low < 0xDC00 or low > 0xDFFF:
        return _BAD
    return 0x10000 + (high - 0xD800) * 1024 + low - 0xDC00


@kernel
def _plain_escape(byte: int) -> int:
    """The character that a backslash and a letter write; -1 if they write none."""
    if byte == _QUOTE or byte == _BACKSLASH or byte == 47:
        return byte
    if byte == 98:
        return 8
    if byte == _LOWER_F:
        return 12
    if byte == _LOWER_N:
        return _LF
    if byte == 114:
        return _CR
    if byte == _LOWER_T:
        return _TAB
    return _BAD


@kernel
def _escape_end(data: U8, at: int, end: int) -> int:
    """Where the escape that begins with the backslash at ``at`` ends; -1 if it is none."""
    if at + 1 >= end:
        return _BAD
    if data[at + 1] != _LOWER_U:
        return at + 2 if _plain_escape(np.int64(data[at + 1])) >= 0 else _BAD
    unit = _unit(data, at, end)
    if unit < 0:
        return _BAD
    return at + 12 if unit > 0xFFFF else at + 6


@kernel
def _string(data: U8, at: int, end: int) -> tuple[int, int]:
    """The closing quote of the text that begins at ``at``, and how it is written; or -1."""
    form = IS_TEXT
    while at < end:
        byte = data[at]
        if byte == _QUOTE:
            return at, form
        if byte < _SPACE:
            return at, _BAD
        if byte == _BACKSLASH:
            form = IS_ESCAPED
            at = _escape_end(data, at, end)
            if at < 0:
                return at, _BAD
        else:
            at += 1
    return at, _BAD


@kernel
def _same(data: U8, begin: int, end: int, tree: Tree, edge: int) -> bool:
    first = tree.key_start[edge]
    if tree.key_end[edge] - first != end - begin:
        return False
    for i in range(end - begin):
        if data[begin + i] != tree.keys[first + i]:
            return False
    return True


@kernel
def _edge(data: U8, begin: int, end: int, tree: Tree, node: int, last: int) -> int:
    """The edge that a name takes from a node; most records have their fields in one order, so the
    one behind the last is tried first."""
    guess = tree.following[last] if last >= 0 else tree.first[node]
    if guess >= 0 and _same(data, begin, end, tree, guess):
        return guess
    edge = tree.first[node]
    while edge >= 0 and not _same(data, begin, end, tree, edge):
        edge = tree.following[edge]
    return edge


@kernel
def _look(data: U8, begin: int, end: int, joins: I8, votes: I8, node: int) -> None:
    """Join the vote of a number to those of the other numbers at its node."""
    first = data[begin + 1] if data[begin] == _MINUS else data[begin]
    looks = np.int64(text.DOUBLE)  # NaN and the infinities
    if first <= _NINE:
        looks = text.kind(data, begin, end)
    votes[node] = joins[votes[node], looks]


@kernel
def _walk(
    data: U8,
    begin: int,
    end: int,
    row: int,
    tree: Tree,
    stack: OpenValues,
    joins: I8,
    seen: Seen,
    cells: ValueSpans,
    fill: bool,
) -> tuple[int, int, int]:
    """Walk through one record: the code that the walk ends with, the position, and the node."""
    depth = 0
    node = 0
    index = row
    at = begin
    state = _VALUE
    while True:
        at = _space(data, at, end)
        if state == _AFTER and depth == 0:
            return GOOD if at == end else MALFORMED, at, 0
        if at >= end:
            return MALFORMED, at, node
        byte = data[at]

        if state == _KEY:
            if byte != _QUOTE:
                return MALFORMED, at, node
            first = at + 1
            last, form = _string(data, first, end)
            if form < 0:
                return MALFORMED, at, node
            at = _space(data, last + 1, end)
            if at >= end or data[at] != _COLON:
                return MALFORMED, at, node
            at += 1
            parent = stack.node[depth - 1]
            if parent < 0 or tree.shape[parent] == TEXT:
                node = -1
            elif tree.shape[parent] == MAP:
                key = tree.element[parent]
                index = seen.counts[key]
                seen.counts[key] += 1
                if fill:
                    cells.start[cells.base[key] + index] = first
                    cells.end[cells.base[key] + index] = last
                    cells.form[cells.base[key] + index] = form
                node = key + 1
            else:
                edge = _edge(data, first, last, tree, parent, stack.edge[depth - 1])
                if edge < 0:
                    return UNKNOWN, first, parent
                stack.edge[depth - 1] = edge
                node = tree.child[edge]
                index = stack.index[depth - 1]
            state = _VALUE
            continue

        if state == _ELEMENT:
            parent = stack.node[depth - 1]
            if parent < 0 or tree.shape[parent] == TEXT:
                node = -1
            else:
                node = tree.element[parent]
                if node < 0:
                    return UNKNOWN_ELEMENT, at, parent
                index = seen.counts[node]
                seen.counts[node] += 1
            state = _VALUE

        if state == _AFTER:
            close = _CLOSE_RECORD if stack.opened[depth - 1] == _OPEN_RECORD else _CLOSE_LIST
            at += 1
            if byte == _COMMA:
                state = _KEY if close == _CLOSE_RECORD else _ELEMENT
            elif byte == close:
                depth -= 1
                node = stack.node[depth]
                if fill and node >= 0:
                    place = cells.base[node] + stack.index[depth]
                    if tree.shape[node] == TEXT:
                        cells.end[place] = at
                    elif tree.shape[node] != RECORD:
                        cells.end[place] = seen.counts[tree.element[node]]
            else:
                return MALFORMED, at - 1, node
            continue

        # A value.
        shape = tree.shape[node] if node >= 0 else TEXT
        if byte == _OPEN_RECORD or byte == _OPEN_LIST:
            if depth == 0 and byte != _OPEN_RECORD:
                return UNFIT, at, node
            if (
                shape == LEAF
                or (shape == LIST and byte == _OPEN_RECORD)
                or ((shape == RECORD or shape == MAP) and byte == _OPEN_LIST)
            ):
                return UNFIT, at, node
            if node >= 0:
                seen.kinds[node] |= OBJECT if byte == _OPEN_RECORD else ARRAY
                if fill:
                    place = cells.base[node] + index
                    if cells.form[place] != 0:
                        return REPEATED, at, node
                    cells.form[place] = IS_NESTED
                    if shape == TEXT:
                        cells.start[place] = at
                    elif shape != RECORD:
                        cells.start[place] = seen.counts[tree.element[node]]
            if depth == DEPTH:
                return TOO_DEEP, at, node
            stack.opened[depth] = byte
            stack.node[depth] = node
            stack.index[depth] = index
            stack.edge[depth] = -1
            depth += 1
            at = _space(data, at + 1, end)
            state = _KEY if byte == _OPEN_RECORD else _ELEMENT
            close = _CLOSE_RECORD if byte == _OPEN_RECORD else _CLOSE_LIST
            if at < end and data[at] == close:
                state = _AFTER
            continue

        first = at
        if byte == _QUOTE:
            first = at + 1
            last, form = _string(data, first, end)
            kind = STRING
            at = last + 1
        elif byte == _LOWER_N:
            form, kind = IS_NULL, 0
            at = _word(data, at, end, _NULL)
            last = at
        elif byte == _LOWER_T or byte == _LOWER_F:
            form, kind = IS_WORD, BOOLEAN
            at = _word(data, at, end, _TRUE if byte == _LOWER_T else _FALSE)
            last = at
        else:
            form, kind = IS_NUMBER, NUMBER
            at = _number(data, at, end)
            last = at
        if at < 0 or form < 0:
            return MALFORMED, first, node
        if depth == 0:
            return UNFIT, first, node
        if node >= 0:
            seen.kinds[node] |= kind
            if shape == LEARN and kind == NUMBER:
                _look(data, first, last, joins, seen.votes, node)
            if shape > TEXT and form != IS_NULL:
                return UNFIT, first, node
            if fill:
                place = cells.base[node] + index
                if cells.form[place] != 0:
                    return REPEATED, first, node
                cells.start[place] = first
                cells.end[place] = last
                cells.form[place] = form
        state = _AFTER


@kernel
def walk(
    data: U8,
    begins: I64,
    ends: I64,
    row: int,
    tree: Tree,
    stack: OpenValues,
    joins: I8,
    seen: Seen,
    cells: ValueSpans,
    fill: bool,
) -> tuple[int, int, int, int]:
    """Walk through records from a row on to the first that does not end with ``GOOD``: its number,
    the code, the position and the node. If all are good, the number of records.

    With ``fill`` it is noted in ``cells`` where each value stands.
    """
    while row < begins.size:
        code, at, node = _walk(
            data, begins[row], ends[row], row, tree, stack, joins, seen, cells, fill
        )
        if code != GOOD:
            return row, code, at, node
        row += 1
    return row, GOOD, 0, 0


@kernel
def _record_end(data: U8, at: int, end: int) -> int:
    """Where a record ends, as far as brackets and quotes tell; -1 if it does not."""
    depth = 0
    while at < end:
        byte = data[at]
        if byte == _QUOTE:
            at, form = _string(data, at + 1, end)
            if form < 0:
                return _BAD
        elif byte == _OPEN_LIST or byte == _OPEN_RECORD:
            depth += 1
        elif byte == _CLOSE_LIST or byte == _CLOSE_RECORD:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return _BAD


@kernel
def _split(data: U8, at: int, end: int, begins: I64, ends: I64, count: int) -> int:
    """Find the records of a text, which stand in lists or with space between them. Anything else
    becomes one record with all that follows it, which the walk refuses."""
    while True:
        at = _space(data, at, end)
        if at >= end:
            return count
        listed = data[at] == _OPEN_LIST
        start = at
        if listed:
            at = _space(data, at + 1, end)
            if at < end and data[at] == _CLOSE_LIST:
                at += 1
                continue
        while True:
            begin = at
            at = _record_end(data, at, end) if at < end and data[at] == _OPEN_RECORD else _BAD
            if at < 0:
                begins[count], ends[count] = start, end
                return count + 1
            begins[count], ends[count] = begin, at
            count += 1
            if not listed:
                break
            at = _space(data, at, end)
            start = at
            if at < end and data[at] == _CLOSE_LIST:
                at += 1
                break
            if at >= end or data[at] != _COMMA:
                begins[count], ends[count] = start, end
                return count + 1
            at = _space(data, at + 1, end)


@kernel
def split(data: U8, starts: I64, whole: bool, begins: I64, ends: I64, lines: I64) -> int:
    """The bounds of the records in some lines, and the line of each; returns how many there are.

    A line is a record, or a list of records; with ``whole`` a "line" is a file with any number of
    either. ``begins`` has room for one more than there are braces and lines.
    """
    count = 0
    for line in range(starts.size - 1):
        at = starts[line]
        end = starts[line + 1]
        if _word(data, at, end, _MARK) > 0:
            at += _MARK.size
        at = _space(data, at, end)
        before = count
        if at < end and not whole and data[at] == _OPEN_RECORD:
            begins[count], ends[count] = at, end
            count += 1
        else:
            count = _split(data, at, end, begins, ends, count)
        lines[before:count] = line
    return count


@kernel
def _encoded(character: int, out: U8, size: int) -> int:
    """Write a character in UTF-8."""
    if character < 0x80:
        out[size] = character
        return size + 1
    if character < 0x800:
        out[size] = 0xC0 | character >> 6
        out[size + 1] = 0x80 | character & 0x3F
        return size + 2
    if character < 0x10000:
        out[size] = 0xE0 | character >> 12
        out[size + 1] = 0x80 | character >> 6 & 0x3F
        out[size + 2] = 0x80 | character & 0x3F
        return size + 3
    out[size] = 0xF0 | character >> 18
    out[size + 1] = 0x80 | character >> 12 & 0x3F
    out[size + 2] = 0x80 | character >> 6 & 0x3F
    out[size + 3] = 0x80 | character & 0x3F
    return size + 4


@kernel
def gather(data: U8, start: I64, end: I64, form: I8, out: U8, offsets: I64) -> None:
    """Write the texts of values one behind the other, without escapes. ``out`` has room for all of
    them as they stand in the data: none becomes longer."""
    size = 0
    for i in range(form.size):
        offsets[i] = size
        if form[i] <= IS_NULL:
            continue
        if form[i] != IS_ESCAPED:
            for at in range(start[i], end[i]):
                out[size] = data[at]
                size += 1
            continue
        at = start[i]
        while at < end[i]:
            if data[at] != _BACKSLASH:
                out[size] = data[at]
                size += 1
                at += 1
                continue
            if data[at + 1] == _LOWER_U:
                unit = _unit(data, at, end[i])
                at += 12 if unit > 0xFFFF else 6
            else:
                unit = _plain_escape(np.int64(data[at + 1]))
                at += 2
            size = _encoded(unit, out, size)
    offsets[form.size] = size
