"""Keyed hashes, which replace the cells in a profile without values.

Equal values of one family of types have the same hash, whatever their types: numbers are hashed in
canonical form, text and binary values by their bytes, and nested values by their words. Each family
has its own key, so values of different families never match. A null stays a null.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from holdfast.kernels import siphash, values
from holdfast.kernels.arrays import U64
from holdfast.tasks.coding import word_form
from holdfast.tasks.encode import has_bytes, hash_bytes, nulls_of, readable, words_of

_HASH = pa.binary(16)


@dataclass(frozen=True)
class Concealing:
    """The key, and the family of each column's type."""

    key: bytes = field(repr=False)
    families: tuple[str, ...]


def concealed_schema(given: pa.Schema) -> pa.Schema:
    """The schema of concealed rows."""
    return pa.schema([(field.name, _HASH) for field in given])


def concealed(batch: pa.RecordBatch, how: Concealing) -> pa.RecordBatch:
    """The rows with hashes in place of their cells."""
    arrays = readable(batch).columns
    with np.errstate(over="ignore"):
        columns = [
            _hashed(array, _family_key(how.key, family))
            for array, family in zip(arrays, how.families, strict=True)
        ]
    return pa.record_batch(columns, schema=concealed_schema(batch.schema))


def _family_key(key: bytes, family: str) -> U64:
    digest = hashlib.blake2b(family.encode(), key=key, digest_size=16).digest()
    return np.frombuffer(digest, np.uint64).copy()


def _hashed(array: pa.Array, key: U64) -> pa.Array:
    if at.is_dictionary(array.type):
        array = array.dictionary_decode()
    hashes = np.empty((2, len(array)), np.int64)
    if has_bytes(array.type):
        hash_bytes(array, hashes, partial(siphash.of_bytes, key))
    else:
        siphash.of_words(key, _messages(array), hashes[0], hashes[1])
    content = pa.py_buffer(np.ascontiguousarray(hashes.T))
    there = None
    if array.null_count:
        there = pa.py_buffer(np.packbits(~nulls_of(array), bitorder="little"))
    return pa.Array.from_buffers(_HASH, len(array), [there, content])


def _messages(array: pa.Array) -> U64:
    """The words that are hashed, a row for each cell."""
    kind, scale = word_form(array.type)
    words = np.ascontiguousarray(words_of(array)[0].T).view(np.uint64)
    if kind == values.HASHED:
        return words
    column = values.CodedColumn(0, kind, 0, scale, 0, 0, False, np.zeros(2, np.uint64))
    out = np.empty((len(array), 3), np.uint64)
    values.canonicals(words, column, out)
    return out
