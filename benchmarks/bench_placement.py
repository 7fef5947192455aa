"""Bytes that a cluster fetches from an object store, with calls dealt by their files and without.

Clusters of two and of four workers with a disk each, on this machine: bytes are counted, so how
busy it is does not matter. All caches are emptied after the first profile, as those of new machines
are. The store is an S3 server on loopback (`tools/setup.sh store .venv-store` installs it).
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import DataFrame, SparkSession

from benchmarks.batches import verdict
from holdfast import Options, Profile
from holdfast.model import thresholds
from holdfast.runtime import cached
from holdfast.runtime.result import TaskResult
from holdfast.spark.runner import SparkRunner

WORKERS = (2, 4)
ROWS, SEGMENTS, BATCHES = 150_000, 24, 10


def main() -> None:
    """Print the bytes of both, and their ratio."""
    from tests.objects.server import environment, program, serving

    server = program()
    if server is None:
        sys.exit("no S3 server is installed; tools/setup.sh store .venv-store installs one")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    os.environ["HOLDFAST_CACHE"] = str(folder / "cache")
    try:
        with serving(server, folder / "s3") as port:
            os.environ.update(environment(port))
            for workers in WORKERS:
                _run(workers, port)
    finally:
        shutil.rmtree(folder)


def _run(workers: int, port: int) -> None:
    from tests.objects.server import Proxy

    proxy = Proxy(port)
    session = _session(workers, proxy.port)
    # Of a large table no segments are merged: these stand for full ones.
    thresholds.current = replace(thresholds.current, merged_segments=1 << 20)
    print(f"\n{workers} workers, {SEGMENTS} segments of {ROWS // SEGMENTS:,} rows")
    for kinds, evidence in (("keys,fds", "witnessed"), ("keys,fds,inds", "auto")):
        options = Options(kinds=kinds, evidence=evidence)
        fetched = {
            name: _fetched(session, workers, proxy, options, is_placed)
            for name, is_placed in (("left to Spark", False), ("placed", True))
        }
        for name, (first, batches) in fetched.items():
            print(
                f"  {kinds}, {name:14} first profile {first / 1e6:6.1f} MB, "
                f"batches {batches / 1e6:6.1f} MB",
                flush=True,
            )
        ratio = fetched["placed"][1] / fetched["left to Spark"][1]
        verdict(f"batches of {kinds}, placed over left to Spark", ratio, 1.0)
    session.stop()
    proxy.close()


def _session(workers: int, port: int) -> SparkSession:
    from tests.cluster.conftest import SETTINGS
    from tests.objects.server import environment

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local-cluster[{workers},2,1024]").appName("bench")
    settings = {**SETTINGS, "spark.cores.max": str(2 * workers)}
    known = {**environment(port), "HOLDFAST_CACHE": "/proc/self/cwd/cache"}
    settings |= {f"spark.executorEnv.{name}": value for name, value in known.items()}
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _fetched(
    session: SparkSession, workers: int, proxy: Any, options: Options, is_placed: bool
) -> tuple[int, int]:
    """Bytes that executors fetch for a first profile, and for batches after that."""

    def rows(first: int, count: int, partitions: int) -> DataFrame:
        return session.range(first, first + count, 1, partitions).selectExpr(
            "id", "id % 977 as a", "hash(id) % 5000 as b", "concat('name', id * 7 % 1300) as c",
            "id % 60 as d", "sha1(string(id)) as e",
        )  # fmt: skip

    _empty_caches(session, workers)
    with mock.patch("holdfast.spark.runner.may_place", return_value=is_placed):
        proxy.fetched.clear()
        profile = Profile.create(
            f"s3://profiles/{secrets.token_hex(4)}",
            {"t": rows(0, ROWS, SEGMENTS)},
            options=options,
            session=session,
        )
        first = proxy.fetched.total()
        _empty_caches(session, workers)
        proxy.fetched.clear()
        for k in range(BATCHES):
            profile.apply("t", inserts=rows(10_000_000 + 1000 * k, 1000, 1))
            if k % 2:
                profile.apply("t", deletes=rows(10 * k, 5, 1))
        return first, proxy.fetched.total()


def _empty_caches(session: SparkSession, workers: int) -> None:
    def empty(_: None) -> Iterator[TaskResult]:
        folder = cached.folder().resolve()
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        yield TaskResult({"folder": str(folder)})

    met: set[str] = set()
    while len(met) < workers:
        results = SparkRunner(session).run([(empty, None)] * 8 * workers)
        met |= {task_result.facts["folder"] for result in results for task_result in result}
