"""Types with other types inside them: what stands at the innermost places."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as at

Change = Callable[[pa.DataType], pa.DataType]


def replaced(type_: pa.DataType, change: Change) -> pa.DataType:
    """The type with every innermost one changed.

    >>> replaced(pa.list_(pa.int8()), lambda leaf: pa.int64() if leaf == pa.int8() else leaf)
    ListType(list<item: int64>)
    """

    def field(inner: pa.Field) -> pa.Field:
        return inner.with_type(replaced(inner.type, change))

    if at.is_struct(type_):
        return pa.struct([field(part) for part in type_])
    if at.is_map(type_):
        key, item = field(type_.key_field), field(type_.item_field)
        return pa.map_(key, item, keys_sorted=type_.keys_sorted)
    if at.is_list(type_):
        return pa.list_(field(type_.value_field))
    if at.is_large_list(type_):
        return pa.large_list(field(type_.value_field))
    if at.is_fixed_size_list(type_):
        return pa.list_(field(type_.value_field), type_.list_size)
    return change(type_)


def has(type_: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    """Whether an innermost type passes a test.

    >>> has(pa.list_(pa.int8()), lambda leaf: leaf == pa.int8())
    True
    """
    leaves: list[pa.DataType] = []

    def note(leaf: pa.DataType) -> pa.DataType:
        leaves.append(leaf)
        return leaf

    replaced(type_, note)
    return any(map(test, leaves))
