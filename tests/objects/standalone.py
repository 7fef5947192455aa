"""A standalone cluster of Spark on this machine: master and workers, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Cluster:
    """Where a cluster is, and its workers."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Cluster]:
    """A cluster of so many workers of one core, each with a folder of its own."""
    with ExitStack() as stack:
        log = folder / "master.log"
        master = stack.enter_context(_process(log, "master.Master"))
        address = _said(master, log, r"spark://[\d.]+:\d+(?=\s)")  # a line may be half written
        started = []
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            given = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"{number}"))
            worker = stack.enter_context(_process(log, "worker.Worker", *given, address))
            _said(worker, log, "Successfully registered with master")
            started.append(worker)
        yield Cluster(address, started)


@contextmanager
def _process(log: Path, name: str, *given: str) -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    ports = ("--host", HOST, "--port", "0", "--webui-port", "0")
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *ports, *given]
    known = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    known |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST}
    with log.open("wb") as sink:
        process = subprocess.Popen(command, env=known, stdout=sink, stderr=sink)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a process says of itself once it is there."""
    while not (found := re.search(pattern, log.read_text())):
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    return found[0]
