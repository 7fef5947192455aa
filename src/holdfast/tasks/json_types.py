"""The types that hold the values of JSON exactly.

A number has the type that its text would have in CSV, so one that a double or a bigint would change
makes its column text. Values of different kinds in one place make it text, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from holdfast.kernels import json_records as kernels
from holdfast.tasks.json_records import (
    MALFORMED,
    Nodes,
    Records,
    name_at,
    nothing_seen,
    stack,
)
from holdfast.tasks.text import Trouble
from holdfast.tasks.votes import JOINS, VOTES, join, type_name

_NOWHERE = np.empty(0, np.int64)
_NO_CELLS = kernels.ValueSpans(_NOWHERE, _NOWHERE, _NOWHERE, np.empty(0, np.int8))


@dataclass
class JsonForm:
    """What the values at a place look like, and those at the places inside it."""

    kinds: int = 0
    vote: str = "null"  # of numbers
    fields: dict[str, JsonForm] = field(default_factory=dict)
    element: JsonForm | None = None

    def join(self, other: JsonForm) -> JsonForm:
        """What the values of both look like."""
        names = dict.fromkeys([*self.fields, *other.fields])
        elements = [form for form in (self.element, other.element) if form is not None]
        return JsonForm(
            self.kinds | other.kinds,
            join(self.vote, other.vote),
            {n: self.fields.get(n, _NOTHING).join(other.fields.get(n, _NOTHING)) for n in names},
            reduce(JsonForm.join, elements) if elements else None,
        )

    @property
    def kind(self) -> str:
        """The name of the type that holds the values exactly; for ``struct`` and ``array`` without
        the types inside."""
        if self.kinds == kernels.OBJECT and self.fields:
            return "struct"
        if self.kinds == kernels.ARRAY:
            return "array"
        if self.kinds == kernels.BOOLEAN:
            return "boolean"
        return type_name(self.vote) if self.kinds == kernels.NUMBER else "string"

    def packed(self) -> list[Any]:
        """As a task sends it."""
        inner = self.element.packed() if self.element else None
        fields = {name: form.packed() for name, form in self.fields.items()}
        return [self.kinds, self.vote, fields, inner]

    @staticmethod
    def unpacked(packed: list[Any]) -> JsonForm:
        """As a task sent it."""
        kinds, vote, fields, inner = packed
        named = {name: JsonForm.unpacked(form) for name, form in fields.items()}
        return JsonForm(kinds, vote, named, JsonForm.unpacked(inner) if inner else None)


_NOTHING = JsonForm()


class Learned:
    """What the records seen so far look like.

    >>> import pyarrow as pa
    >>> from holdfast.tasks.json_records import split
    >>> learned = Learned()
    >>> learned.add(split(pa.array([b'{"a": 1, "b": [0.1, 2]}', b'{"a": true}']), whole=False))
    >>> {name: form.kind for name, form in learned.form.fields.items()}
    {'a': 'string', 'b': 'array'}
    >>> learned.form.fields["b"].element.kind
    'double'
    """

    def __init__(self) -> None:
        self._nodes = Nodes(kernels.LEARN)
        self._seen = nothing_seen(1)

    def add(self, records: Records) -> Trouble | None:
        """Look at more records; returns what is wrong with the first malformed one."""
        row = 0
        trouble = records.undecoded()
        if trouble is not None:
            return trouble
        while row < len(records):
            self._seen = _grown(self._seen, len(self._nodes.shape))
            row, code, at_, node = kernels.walk(
                records.data, records.begins, records.ends, row, self._nodes.tree, stack(),
                JOINS, self._seen, _NO_CELLS, False,
            )  # fmt: skip
            if code == kernels.UNKNOWN_ELEMENT:
                self._nodes.add_element(node, kernels.LEARN)
            elif code == kernels.UNKNOWN:
                spelling, name = name_at(records, row, at_)
                if name not in self._nodes.fields[node]:
                    self._nodes.add_field(node, name, kernels.LEARN)
                self._nodes.spell(node, spelling, self._nodes.fields[node][name])
            elif code != kernels.GOOD:
                return records.trouble(row, MALFORMED[code])
        return None

    @property
    def form(self) -> JsonForm:
        """What all of them look like."""
        return self._form(0)

    def _form(self, node: int) -> JsonForm:
        element = self._nodes.element[node]
        return JsonForm(
            int(self._seen.kinds[node]),
            VOTES[self._seen.votes[node]],
            {name: self._form(child) for name, child in self._nodes.fields[node].items()},
            self._form(element) if element >= 0 else None,
        )


def _grown(seen: kernels.Seen, nodes: int) -> kernels.Seen:
    """The same with room for more nodes."""
    more = (0, nodes - seen.kinds.size)
    kinds, votes, counts = seen
    return kernels.Seen(np.pad(kinds, more), np.pad(votes, more), np.pad(counts, more))
