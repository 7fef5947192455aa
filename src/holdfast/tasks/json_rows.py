"""Records of JSON as typed rows: a kernel notes where values stand, PyArrow converts the texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from holdfast.kernels import json_records as kernels
from holdfast.kernels.arrays import I8, I64, U8
from holdfast.tasks.json_records import (
    MALFORMED,
    Nodes,
    Records,
    name_at,
    nothing_seen,
    stack,
)
from holdfast.tasks.json_values import Unfit, converted, expected_name, shape_of
from holdfast.tasks.text import Trouble
from holdfast.tasks.texts import first_unfit
from holdfast.tasks.votes import JOINS


class Reader:
    """Reads records as rows of one schema; ``paths`` says where in a record each column is.

    A field that no path leads to is trouble, unless ``others`` says of its name that it is passed
    over. With ``complete`` a record that lacks a column is trouble, too; else it is null there.

    >>> from holdfast.tasks.json_records import split
    >>> reader = Reader(pa.schema([("c0", pa.int64()), ("c1", pa.string())]), [("id",), ("x",)])
    >>> reader.parse(split(pa.array([b'{"x": 0.10, "id": 1}']), whole=False)).to_pylist()
    [{'c0': 1, 'c1': '0.10'}]
    """

    def __init__(
        self,
        schema: pa.Schema,
        paths: Sequence[tuple[str, ...]],
        others: Callable[[str], bool] = lambda _: False,
        complete: bool = False,
    ) -> None:
        self._schema = schema
        self._others, self._complete = others, complete
        self._nodes = Nodes(kernels.RECORD)
        self._types: dict[int, pa.DataType] = {}
        self._owner: dict[int, tuple[int | None, str]] = {0: (None, "")}  # column, path
        self._columns = []
        for column, (path, field) in enumerate(zip(paths, schema, strict=True)):
            node = 0
            for depth, name in enumerate(path[:-1], 1):
                above, node = node, self._nodes.fields[node].get(name, -1)
                if node < 0:
                    node = self._nodes.add_field(above, name, kernels.RECORD)
                    self._spell(above, name, node)
                    self._owner[node] = (None, ".".join(path[:depth]))
            child = self._nodes.add_field(node, path[-1], shape_of(field))
            self._spell(node, path[-1], child)
            self._inside(child, field, column, ".".join(path))
            self._columns.append(child)

    def _spell(self, node: int, name: str, child: int) -> None:
        self._nodes.spell(node, name.encode("utf-8", "surrogatepass"), child)

    def _inside(self, node: int, parent: pa.Field, column: int, path: str) -> None:
        """Add the nodes inside the node of a column."""
        type_ = parent.type
        self._types[node] = type_
        self._owner[node] = (column, path)
        if at.is_struct(type_):
            for field in type_:
                child = self._nodes.add_field(node, field.name, shape_of(field))
                self._spell(node, field.name, child)
                self._inside(child, field, column, f"{path}.{field.name}")
        elif at.is_map(type_):
            key = self._nodes.add_element(node, shape_of(type_.key_field))
            value = self._nodes.add(shape_of(type_.item_field))
            self._inside(key, type_.key_field, column, path)
            self._inside(value, type_.item_field, column, path)
        elif at.is_list(type_):
            child = self._nodes.add_element(node, shape_of(type_.value_field))
            self._inside(child, type_.value_field, column, path)

    def parse(self, records: Records) -> pa.RecordBatch | Trouble:
        """Typed rows, or the first trouble."""
        walked = records.undecoded() or self._walked(records)
        if isinstance(walked, Trouble):
            before = self._converted(records.part(0, walked.row))
            return before if isinstance(before, Trouble) else walked
        return self._converted(records, walked)

    def _walked(self, records: Records) -> _Values | Trouble:
        """Where all values stand."""
        lists = any(node >= 0 for node in self._nodes.element)
        counts = np.zeros(len(self._nodes.shape), np.int64)
        while True:
            fill = not lists
            values = _Values.room(self._nodes, records, counts)
            row, code, at_, node = kernels.walk(
                records.data, records.begins, records.ends, 0, self._nodes.tree, stack(),
                JOINS, values.seen, values.cells, fill,
            )  # fmt: skip
            if code == kernels.GOOD and fill:
                return values
            if code == kernels.GOOD:
                lists, counts = False, values.seen.counts
                continue
            if code == kernels.UNKNOWN:
                spelling, name = name_at(records, row, at_)
                if name in self._nodes.fields[node]:
                    self._nodes.spell(node, spelling, self._nodes.fields[node][name])
                    continue
                if self._others(name):
                    self._nodes.spell(node, spelling, kernels.NOWHERE)
                    continue
                _, path = self._owner[node]
                unknown = records.trouble(row, f"{path}.{name}" if path else name)
                return replace(unknown, kind="field")
            return self._refused(records, row, code, node)

    def _refused(self, records: Records, row: int, code: int, node: int) -> Trouble:
        if code != kernels.REPEATED and (code != kernels.UNFIT or node == 0):
            return records.trouble(row, MALFORMED[code])
        column, path = self._owner[node]
        if code == kernels.REPEATED:
            return records.trouble(row, f"the field {path!r} to occur once", column)
        return records.trouble(row, self._expected(node), column)

    def _expected(self, node: int, expected: str | None = None) -> str:
        """The type that is expected at a node, and inside a column also where that is."""
        column, path = self._owner[node]
        expected = expected or expected_name(self._types.get(node))
        return expected if node in self._columns or column is None else f"{expected} at {path}"

    def _converted(
        self, records: Records, values: _Values | None = None
    ) -> pa.RecordBatch | Trouble:
        if values is None:
            walked = self._walked(records)
            if isinstance(walked, Trouble):
                return walked
            values = walked
        if self._complete and (lacking := self._lacking(records, values)):
            return lacking
        try:
            columns = [self._built(node, records, values) for node in self._columns]
        except Unfit as unfit:
            if len(records) > 1:
                return self._first_unfit(records)
            column, _ = self._owner[unfit.node]
            return records.trouble(0, self._expected(unfit.node, str(unfit)), column)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _lacking(self, records: Records, values: _Values) -> Trouble | None:
        """The trouble with the first record that lacks a column."""
        for column, node in enumerate(self._columns):
            _, _, form = values.of(node)
            if not form.all():
                trouble = records.trouble(int(np.argmin(form)), self._owner[node][1], column)
                return replace(trouble, kind="lacks")
        return None

    def _first_unfit(self, records: Records) -> Trouble:
        """What is wrong with the first of some records that does not convert."""

        def converts(first: int, last: int) -> bool:
            return not isinstance(self._converted(records.part(first, last)), Trouble)

        row = first_unfit(len(records), converts)
        trouble = self._converted(records.part(row, row + 1))
        if not isinstance(trouble, Trouble):
            raise ValueError("records do not convert together, but each does by itself")
        return replace(trouble, row=row)

    def _built(self, node: int, records: Records, values: _Values) -> pa.Array:
        """The values at a node, with all that is inside them."""
        type_ = self._types[node]
        start, end, form = values.of(node)
        shape = self._nodes.shape[node]
        if shape in (kernels.LEAF, kernels.TEXT):
            try:
                return converted(type_, form, _texts(records.data, start, end, form))
            except Unfit as unfit:
                unfit.node = node
                raise
        valid = form == kernels.IS_NESTED
        mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [mask]
        inner = list(self._nodes.fields[node].values())
        if shape != kernels.RECORD:
            lengths = np.where(valid, end - start, 0)
            offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
            buffers.append(pa.py_buffer(offsets.astype(np.int32)))
            inner = [self._nodes.element[node]]
        children = [self._built(child, records, values) for child in inner]
        if shape == kernels.MAP:
            items = self._built(inner[0] + 1, records, values)
            children = [
                pa.StructArray.from_arrays(
                    [children[0], items], fields=[type_.key_field, type_.item_field]
                )
            ]
        return pa.Array.from_buffers(type_, form.size, buffers, children=children)


@dataclass(frozen=True)
class _Values:
    """Where the values of records stand, by node."""

    seen: kernels.Seen
    cells: kernels.ValueSpans
    sizes: I64  # entries of each node

    @staticmethod
    def room(nodes: Nodes, records: Records, counts: I64) -> _Values:
        """Room for the values of all nodes; ``counts`` has the numbers of elements."""
        sizes = counts.copy()
        sizes[0] = len(records)
        for node, shape in enumerate(nodes.shape):  # parents come before their children
            if shape == kernels.RECORD:
                sizes[list(nodes.fields[node].values())] = sizes[node]
            elif shape == kernels.MAP:
                sizes[nodes.element[node] + 1] = sizes[nodes.element[node]]
        base = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        total = int(base[-1])
        cells = kernels.ValueSpans(
            base[:-1],
            np.zeros(total, np.int64),
            np.zeros(total, np.int64),
            np.zeros(total, np.int8),
        )
        return _Values(nothing_seen(len(sizes)), cells, sizes)

    def of(self, node: int) -> tuple[I64, I64, I8]:
        """Start, end and form of a node's entries."""
        first = int(self.cells.base[node])
        part = slice(first, first + int(self.sizes[node]))
        return self.cells.start[part], self.cells.end[part], self.cells.form[part]


def _texts(
    data: U8,
    start: I64,
    end: I64,
    form: I8,
) -> pa.Array:
    """The texts of values, without quotes and escapes."""
    valid = form > kernels.IS_NULL
    out = np.empty(int((end - start)[valid].sum()), np.uint8)
    offsets = np.empty(form.size + 1, np.int64)
    kernels.gather(data, start, end, form, out, offsets)
    mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [mask, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), form.size, buffers)
