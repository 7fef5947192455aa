"""Lines to rows to words, on one core."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from benchmarks.tpch import lineitem
from holdfast.tasks import encode, text
from holdfast.tasks.segments import row_codes
from holdfast.tasks.votes import arrow_type


def main() -> None:
    """Print megabytes of CSV per second for parsing and for encoding."""
    path = lineitem("0.1")
    header, *lines = path.read_text().splitlines(keepends=True)
    names = text.header(header)
    if isinstance(names, text.Trouble):
        raise SystemExit(f"{path}: {names.expected}")
    chunks = [pa.array(lines[i : i + 50_000]) for i in range(0, len(lines), 50_000)]
    votes = text.infer(chunks[0], len(names))
    if isinstance(votes, text.Trouble):
        raise SystemExit(f"{path}: {votes.expected}")
    schema = pa.schema([(n, arrow_type(v)) for n, v in zip(names, votes, strict=True)])
    layout = encode.layout(schema)
    for warm in (False, True):
        start = time.perf_counter()
        batches = [text.parse(chunk, schema) for chunk in (chunks if warm else chunks[:1])]
        parsed = time.perf_counter()
        words = [encode.encode(batch, layout) for batch in batches]
        encoded = time.perf_counter()
        for matrix in words:
            row_codes(matrix.T.view(np.uint64))
        hashed = time.perf_counter()
    size = path.stat().st_size / 1e6
    print(f"lineitem at scale factor 0.1: {len(lines):,} rows, {size:.0f} MB")
    for what, taken in (
        ("parse", parsed - start),
        ("encode", encoded - parsed),
        ("row hashes", hashed - encoded),
    ):
        print(f"  {what:<12}{taken:7.3f} s {size / taken:8.0f} MB/s")
