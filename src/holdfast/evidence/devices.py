"""What pairs are counted with: the choice between processors and GPUs, by how fast they are.

A GPU is looked for where counting takes the processors a while, and its rate is measured where the
work will run: in a local session by this process, elsewhere by a task. What is found is remembered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib.util import find_spec
from typing import NamedTuple

from holdfast.evidence import strategy
from holdfast.evidence.strategy import GpuRate
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Runner
from holdfast.tasks import devices as tasks
from holdfast.tasks.devices import CPU, GPU, Measure

log = logging.getLogger("holdfast")

_WORTH = 2.0
"""Seconds of the processors from which on a GPU is looked for: to load CUDA takes about one."""


class Speed(NamedTuple):
    """What counted pairs, and how fast."""

    device: str  # "cpu", or the name of a card; several with commas
    pairs_per_second: float  # of each task


def chosen(run: Run, number: int, columns: int) -> str:
    """What to count so many pairs with: ``cpu`` or ``gpu``."""
    asked = run.device or run.options.device
    seconds = strategy.seconds_on_cpu(number, columns, run.runner.tasks)
    if seconds < _WORTH:
        return GPU if asked == GPU else CPU
    # Where there is none, all tasks should count, which are not all needed with one.
    rate = gpu_rate(run)(columns)
    return GPU if rate and (asked == GPU or number / rate < seconds) else CPU


def gpu_rate(run: Run) -> GpuRate:
    """The rate of the GPUs that a run may use, measured when it is asked for."""
    asked = run.device or run.options.device
    # A GPU is used by itself where CuPy is there: who asks for one is told what is missing.
    if asked == CPU or (asked != GPU and not _has_cupy()):
        return strategy.no_gpu
    return lambda columns: _measured(run.runner, columns, asked)


def speed(task_results: Iterable[TaskResult]) -> Speed | None:
    """What tasks counted with and how fast. Why one of them could not use its GPU is said once."""
    pairs: dict[str, int] = {}
    seconds = 0.0
    for task_result in task_results:
        if "counted" not in task_result.facts:
            continue
        for device, number, taken in task_result.facts["counted"]:
            pairs[device] = pairs.get(device, 0) + number
            seconds += taken
        _say(logging.WARNING, task_result.facts["missing"])
    if not pairs or not seconds:
        return None
    devices = sorted(pairs, key=lambda device: -pairs[device])
    return Speed(", ".join(devices), float(round(sum(pairs.values()) / seconds)))


_rates: dict[tuple[bool, int], float] = {}
"""By where tasks run and the number of columns. A process has one place besides its own machine."""

_said: set[str] = set()


def _measured(runner: Runner, columns: int, asked: str) -> float:
    place = (runner.here, columns)
    if place not in _rates:
        item = Measure(columns)
        if runner.here:
            (result,) = tasks.measure(item)
        else:
            ((result,),) = runner.run([(tasks.measure, item)])
        rate, missing = result.facts["pairs_per_second"], result.facts["missing"]
        _say(logging.WARNING if asked == GPU else logging.INFO, missing)
        if missing and runner.here:
            return 0.0  # to look again costs nothing, and a GPU that is full may be free then
        _rates[place] = rate * runner.gpus
    return _rates[place]


def _has_cupy() -> bool:
    return find_spec("cupy") is not None


def _say(level: int, missing: str) -> None:
    if missing and missing not in _said:
        _said.add(missing)
        log.log(level, "Pairs are counted on the processor. %s", missing)
