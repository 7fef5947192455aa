"""Workers must run what we run: checked by the first tasks in a session that we did not make.

Where Holdfast is not installed on the workers it is shipped there, as a zip of its sources.
"""

from __future__ import annotations

import gc
import json
import platform
import tempfile
import zipfile
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numba
import numpy as np
from pyspark.sql import SparkSession

import holdfast
from holdfast.model.errors import SetupError
from holdfast.spark.jobs import collect

# Run on workers that may lack Holdfast: so it is sent as a value, not as a name to import.
_REPORT = """
def report(batches):
    import importlib, json, platform
    import pyarrow as pa
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("numpy", "numba", "holdfast"):
        try:
            versions[name] = importlib.import_module(name).__version__
        except ImportError:
            versions[name] = None
    for _ in batches:
        pass
    yield pa.record_batch([[json.dumps(versions)]], names=["versions"])
"""

_SAME = (
    "set PYSPARK_PYTHON (or spark.pyspark.python) to one Python on all machines, "
    "with the same packages"
)

_ENOUGH = 1 << 14
"""Rows that are enough for every partition to have some, however many Spark makes of them."""

_checked: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()

_frozen: set[Any] = set()


def freeze(task: Any) -> None:
    """On a worker, after a task: what its first run loaded stays, so leave it out of the garbage
    collection that Spark makes after every task. Going through all of Numba's and pandas' objects
    takes 30 ms of a core each time."""
    if task not in _frozen:
        _frozen.add(task)
        gc.freeze()


def prepare(session: SparkSession) -> int:
    """See to it that workers can run our tasks; an error that says what to do if they cannot.
    Returns into how many partitions Spark divides a job by itself."""
    if session in _checked:
        return _checked[session]
    versions = _versions(session)
    if any(worker["holdfast"] is None for worker in versions):
        _ship(session)
        versions = _versions(session)
    here = _here()
    for worker in versions:
        for name, version in here.items():
            if worker[name] != version:
                raise SetupError(
                    f"the workers have {name} {worker[name] or 'missing'}, the driver {version}: "
                    f"{_remedy(name, version)}"
                )
    _checked[session] = len(versions)
    return len(versions)


def _here() -> dict[str, str]:
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "holdfast": holdfast.__version__,
    }


def _remedy(name: str, version: str) -> str:
    if name == "python":
        return _SAME
    return f"install {name}=={version} on the workers, or run the driver with their version"


def _versions(session: SparkSession) -> list[dict[str, str]]:
    """What each partition of a job tells, as many as Spark makes of it."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(_REPORT, space)
    try:
        rows = collect(
            session,
            lambda: session.range(_ENOUGH).mapInArrow(space["report"], "versions string"),
        )
    except SetupError as failure:
        # Another Python, or one without PyArrow, fails before it could tell its versions.
        raise SetupError(f"the workers cannot run Python tasks: {failure}; {_SAME}") from failure
    return [json.loads(text) for text in sorted(row["versions"] for row in rows)]


def _ship(session: SparkSession) -> None:
    """Send our sources to the workers."""
    root = Path(holdfast.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="holdfast-"))
    archive = folder / f"holdfast-{holdfast.__version__}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path in sorted(root.rglob("*.py")):
            zipped.write(path, Path("holdfast") / path.relative_to(root))
    session.addArtifacts(str(archive), pyfile=True)
