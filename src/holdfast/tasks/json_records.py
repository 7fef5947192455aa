"""Where records of JSON stand in a text, and the places in a record that values stand in.

A file has a record in each line, or a list of records; where it is read as a whole, any number of
either with space between them. Bad data is returned as a :class:`Trouble`, never raised.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from holdfast.kernels import json_records as kernels
from holdfast.kernels.arrays import I64, U8
from holdfast.tasks.text import SHOWN, Trouble
from holdfast.tasks.texts import bytes_of

MALFORMED = {
    kernels.MALFORMED: "a record in JSON",
    kernels.TOO_DEEP: f"at most {kernels.DEPTH} lists and records inside each other",
    kernels.UNFIT: "a record in braces",
}
"""What is expected where a record as a whole is refused."""


@dataclass(frozen=True)
class Records:
    """Where records stand in the text of some lines."""

    data: U8
    begins: I64
    ends: I64
    lines: I64  # the line that each is in
    whole: bool

    def __len__(self) -> int:
        return len(self.begins)

    def part(self, first: int, last: int) -> Records:
        """Those from a first one to before a last one."""
        part = slice(first, last)
        return Records(self.data, self.begins[part], self.ends[part], self.lines[part], self.whole)

    def pieces(self, size: int) -> Iterator[Records]:
        """The same in parts of about so many bytes."""
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self.ends, self.begins[first] + size, "right"))
            last = max(last, first + 1)
            yield self.part(first, last)
            first = last

    def undecoded(self) -> Trouble | None:
        """The trouble with the first record that is no text in UTF-8."""
        if not len(self):
            return None
        try:
            str(self.data[self.begins[0] : self.ends[-1]].data, "utf-8")
        except UnicodeError:
            for row, (begin, end) in enumerate(zip(self.begins, self.ends, strict=True)):
                try:
                    str(self.data[begin:end].data, "utf-8")
                except UnicodeError:
                    return self.trouble(row, "text in UTF-8")
        return None

    def trouble(self, row: int, expected: str, column: int | None = None) -> Trouble:
        """What is wrong with a record."""
        begin, end = int(self.begins[row]), int(self.ends[row])
        text = self.data[begin : min(end, begin + 4 * SHOWN)].tobytes()
        line = str(text, "utf-8", "replace").rstrip("\r\n")[:SHOWN]
        number = None
        if self.whole:
            number = int(np.count_nonzero(self.data[:begin] == ord("\n"))) + 1
        return Trouble(
            "line" if column is None else "cell", line, column, expected, row, number=number
        )


def split(lines: pa.Array, whole: bool) -> Records:
    """The records in some lines, or (``whole``) in some files.

    >>> len(split(pa.array([b'{"a": 1}\\n', b'[{"a": 2}, {"a": 3}]\\n', b"\\n"]), whole=False))
    3
    """
    buffer, starts = bytes_of(lines.cast(pa.large_binary()))
    data = np.frombuffer(buffer, np.uint8)
    braces = np.count_nonzero(data[starts[0] : starts[-1]] == ord("{"))
    begins, ends, places = (np.empty(braces + len(lines) + 1, np.int64) for _ in range(3))
    count = kernels.split(data, starts, whole, begins, ends, places)
    return Records(data, begins[:count], ends[:count], places[:count], whole)


def stack() -> kernels.OpenValues:
    """Room for what the kernel has open."""
    return kernels.OpenValues(*(np.empty(kernels.DEPTH, np.int64) for _ in range(4)))


class Nodes:
    """The places in a record where values stand, in the form that the kernel takes."""

    def __init__(self, shape: int) -> None:
        self.shape: list[int] = []
        self.element: list[int] = []
        self.fields: list[dict[str, int]] = []  # the nodes of a node's fields
        self._edges: list[tuple[int, bytes, int]] = []  # from a node, by a spelling, to another
        self.add(shape)

    def add(self, shape: int) -> int:
        """Add a node; its number."""
        self.__dict__.pop("tree", None)
        self.shape.append(shape)
        self.element.append(-1)
        self.fields.append({})
        return len(self.shape) - 1

    def add_element(self, node: int, shape: int) -> int:
        """Add a node for the elements of a list or the keys of a map."""
        self.element[node] = self.add(shape)
        return self.element[node]

    def add_field(self, node: int, name: str, shape: int) -> int:
        """Add a node for a field."""
        self.fields[node][name] = self.add(shape)
        return self.fields[node][name]

    def spell(self, node: int, spelling: bytes, child: int) -> None:
        """Add a spelling of the name of a field, which may have escapes in it."""
        self._edges.append((node, spelling, child))
        self.__dict__.pop("tree", None)

    @cached_property
    def tree(self) -> kernels.Tree:
        """The nodes as arrays."""
        first = np.full(len(self.shape), -1, np.int64)
        following = np.full(len(self._edges), -1, np.int64)
        last: dict[int, int] = {}
        for edge, (node, _, _) in enumerate(self._edges):
            if node in last:
                following[last[node]] = edge
            else:
                first[node] = edge
            last[node] = edge
        spellings = [spelling for _, spelling, _ in self._edges]
        ends = np.cumsum([0, *map(len, spellings)], dtype=np.int64)
        return kernels.Tree(
            np.array(self.shape, np.int8),
            np.array(self.element, np.int64),
            first,
            np.frombuffer(b"".join(spellings), np.uint8),
            ends[:-1],
            ends[1:],
            np.array([child for _, _, child in self._edges], np.int64),
            following,
        )


def name_at(records: Records, row: int, at: int) -> tuple[bytes, str]:
    """The name of a field that begins behind a quote: its bytes, and the text without escapes."""
    raw = records.data[at : records.ends[row]].tobytes()
    length = 0
    while raw[length] != ord('"'):
        length += 2 if raw[length] == ord("\\") else 1
    spelling = raw[:length]
    return spelling, json.loads(b'"' + spelling + b'"')


def nothing_seen(nodes: int) -> kernels.Seen:
    """What is known of so many nodes before any record."""
    return kernels.Seen(
        np.zeros(nodes, np.int8), np.zeros(nodes, np.int8), np.zeros(nodes, np.int64)
    )
