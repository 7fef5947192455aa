"""Keys of lineitem on an object store beside a local disk: first profile and batches, by turns.

The store is an S3 server on loopback (`tools/setup.sh store` installs it), on the same disk and the
same processors; or the one that HOLDFAST_BENCH_STORE names, an address such as s3://bucket/bench,
with credentials from the environment.
"""

from __future__ import annotations

import os
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.batches import BATCH, KEY, TABLE, timed, verdict
from benchmarks.bench_keys import KEYS, _changed
from benchmarks.tpch import lineitem, random_lines, write
from holdfast import Profile, Source
from holdfast.runtime import cached

REPEATS = 5
SCALE = os.environ.get("HOLDFAST_BENCH_SCALE", "1")


def main() -> None:
    """Print the figures of both, and their ratios with the targets."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    os.environ["HOLDFAST_CACHE"] = str(folder / "cache")
    try:
        with _address(folder) as address:
            _run(folder, address)
    finally:
        shutil.rmtree(folder)


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """Where profiles go on the store."""
    given = os.environ.get("HOLDFAST_BENCH_STORE")
    if given:
        yield f"{given.rstrip('/')}/{secrets.token_hex(4)}"
        return
    from tests.objects.server import BUCKET, environment, program, serving

    server = program()
    if server is None:
        sys.exit("no S3 server is installed; tools/setup.sh store .venv-store installs one")
    with serving(server, folder / "s3") as port:
        os.environ.update(environment(port))
        yield f"s3://{BUCKET}/bench"


def _run(folder: Path, address: str) -> None:
    from holdfast.spark.session import open_session

    session = open_session()
    places = {"disk": str(folder / "disk"), "store": address}
    _warm(session, folder, places)
    path = lineitem(SCALE)
    print(f"\nlineitem at scale factor {SCALE}", flush=True)
    profiles, first = {}, {}
    for name, place in places.items():
        start = time.perf_counter()
        profiles[name] = Profile.create(
            f"{place}/full", {TABLE: Source(str(path))}, session=session, options=KEYS
        )
        first[name] = time.perf_counter() - start
        print(f"  first profile, {name:6} {first[name]:7.2f} s", flush=True)
    batches = _batches(profiles, folder, path)
    same = profiles["disk"].keys(TABLE) == profiles["store"].keys(TABLE)
    print(f"  the same keys: {same}")
    size = sum(file.stat().st_size for file in cached.folder().iterdir())
    print(f"  the cache has {size / 1e6:.0f} MB")
    print("\ntargets")
    verdict("first profile, store over disk", first["store"] / first["disk"], 1.5)
    for what, taken in batches.items():
        verdict(f"1,000 {what}s, store over disk", taken["store"] / taken["disk"], 2.0)
    session.stop()


def _warm(session: Any, folder: Path, places: dict[str, str]) -> None:
    """Start the workers and load their kernels: batches are measured in a warm session."""
    header, lines = random_lines(lineitem("0.1"), 5_000, 1)
    path = write(folder / "warm.csv", header, lines)
    few_rows = write(folder / "some.csv", header, lines[:50])
    for place in places.values():
        profile = Profile.create(
            f"{place}/warm", {TABLE: Source(str(path))}, session=session, options=KEYS
        )
        profile.apply(TABLE, deletes=few_rows)
        profile.apply(TABLE, inserts=few_rows)
        profile.apply(TABLE, updates=few_rows, row_key=KEY)


def _batches(profiles: dict[str, Profile], folder: Path, path: Path) -> dict[str, dict[str, float]]:
    """Medians of inserts, deletes and updates, the disk and the store by turns."""
    header, lines = random_lines(path, 2 * REPEATS * BATCH, 2)
    removed, others = lines[: REPEATS * BATCH], lines[REPEATS * BATCH :]
    gone = write(folder / "held.csv", header, removed)
    for profile in profiles.values():
        profile.apply(TABLE, deletes=gone)
    times: dict[str, dict[str, list[float]]] = {}
    for k in range(REPEATS):
        part = slice(k * BATCH, (k + 1) * BATCH)
        files = {
            "insert": ("inserts", write(folder / "some.csv", header, removed[part]), None),
            "delete": ("deletes", write(folder / "gone.csv", header, others[part]), None),
            "update": ("updates", write(folder / "new.csv", header, _changed(removed[part])), KEY),
        }
        for what, (kind, file, key) in files.items():
            for name, profile in profiles.items():
                taken = timed(profile, TABLE, **{kind: file}, row_key=key)
                times.setdefault(what, {}).setdefault(name, []).append(taken)
    medians = {}
    for what, by_name in times.items():
        medians[what] = {name: statistics.median(seconds) for name, seconds in by_name.items()}
        for name, seconds in by_name.items():
            spread = " ".join(f"{one:.2f}" for one in sorted(seconds))
            print(f"  1,000 {what}s, {name:6} {medians[what][name]:7.2f} s  ({spread})", flush=True)
    return medians
