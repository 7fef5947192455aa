"""What a task sends back: facts that JSON can hold, and NumPy arrays, in one Arrow row."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA = pa.schema([("facts", pa.string()), ("arrays", pa.binary())])
"""The columns of every task's result."""


@dataclass(frozen=True)
class Parcel:
    """One result of a task."""

    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def batch(self) -> pa.RecordBatch:
        """The parcel as one Arrow row."""
        described = []
        chunks = []
        for name, array in self.arrays.items():
            described.append([name, array.dtype.str, list(array.shape)])
            chunks.append(np.ascontiguousarray(array).tobytes())
        facts = json.dumps({"facts": self.facts, "arrays": described})
        return pa.record_batch([[facts], [b"".join(chunks)]], schema=SCHEMA)


def unpack(facts: str, arrays: bytes) -> Parcel:
    """The parcel that :meth:`Parcel.batch` made a row of."""
    told = json.loads(facts)
    out: dict[str, NDArray[Any]] = {}
    offset = 0
    for name, dtype, shape in told["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        out[name] = np.frombuffer(arrays, dtype, count, offset).reshape(shape)
        offset += count * np.dtype(dtype).itemsize
    return Parcel(told["facts"], out)
