"""Two ways to know the evidence of a space, and the choice between them.

*Counted*: every evidence with its number of pairs, which costs a comparison of all pairs once, and
of a batch with all rows later. *Witnessed*: what is maximal, with pairs that show it, which costs
searches of the rows. Counting is quicker for short tables of any width, with a GPU for longer ones,
and it alone gives errors; it grows with the square of the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import numpy as np

from holdfast.kernels import pairs
from holdfast.model.commits import Choice as Choice
from holdfast.model.errors import InputError
from holdfast.model.options import Options

COUNTED, WITNESSED = "counted", "witnessed"

_CELLS_PER_SECOND = 8e9
_MASKS_PER_SECOND = 5e6
"""Rates of one core, measured on adult (15 columns, direct) and uniprot (222 columns, hashed)."""

_DOUBT = 8.0
"""How near the limit the expected time must be for the rate to be measured here and now."""

_TRIED = 3_000
"""Rows whose pairs are counted to measure the rate."""

_FASTEST = 4e12
"""Pairs that no GPUs count in a second: ten times what one of the fastest does."""

GpuRate = Callable[[int], float]
"""Pairs of rows with so many columns that GPUs count in a second; 0 where there is none."""

_QUICK = 60.0
"""Seconds that counting all pairs may take before a table is witnessed instead."""

_MOST = 300.0
"""Seconds that counting may take where nothing else will do."""

NO_TIME = "because there was no time to compare all agree-sets"
TOO_MANY = "because there are too many different pairs of rows to count"
"""Why a table is witnessed for good that would be counted by its size."""

_SLACK = 2.0
"""How far past the limit a table may grow, or shrink, before it moves to the other way."""


def no_gpu(_columns: int) -> float:
    """The rate where there is no GPU."""
    return 0.0


def choose(
    table: str,
    rows: int,
    comparisons: int,
    tasks: int,
    options: Options,
    now: Choice | None = None,
    gpu_rate: GpuRate = no_gpu,
) -> Choice:
    """The way for a table of this size; ``now`` is the one that it goes by so far."""
    if now is not None and (now.strategy is None or now.reason in (NO_TIME, TOO_MANY)):
        return now
    limit = _QUICK if options.time_budget is None else min(_QUICK, options.time_budget)
    if options.evidence != "auto" and options.max_error is None:
        return Choice(options.evidence, _guess(rows, comparisons, tasks), limit, "asked for")
    if options.max_error is not None:
        limit = _MOST
    slack = 1.0
    if now is not None:
        slack = _SLACK if now.strategy == COUNTED else 1 / _SLACK
    seconds = expected_seconds(rows, comparisons, tasks, limit, gpu_rate)
    if options.max_error is not None:
        if seconds > slack * limit:
            raise InputError(
                f"table {table!r} has {rows:,} rows: errors need all pairs of rows to be counted, "
                f"which would take about {seconds / 60:,.0f} minutes here; profile it without "
                "--max-error, or a sample of it"
            )
        return Choice(COUNTED, seconds, limit, "errors need counts")
    chosen = COUNTED if seconds <= slack * limit else WITNESSED
    return Choice(chosen, seconds, limit, "by the time that counting all pairs would take")


def no_time(table: str, options: Options) -> str:
    """What to say where counts were asked for and took too long."""
    asked = "--max-error" if options.max_error is not None else "--evidence counted"
    return (
        f"table {table!r}: {asked} needs all pairs of rows to be counted and compared, which did "
        f"not end in the time budget of {options.time_budget:g} s; raise --time-budget, or leave "
        f"out {asked}"
    )


def expect_countable(
    table: str, rows: int, comparisons: int, tasks: int, gpu_rate: GpuRate = no_gpu
) -> None:
    """See that counting all pairs of rows takes no longer than it may."""
    seconds = expected_seconds(rows, comparisons, tasks, _MOST, gpu_rate)
    if seconds > _MOST:
        raise InputError(
            f"table {table!r} has {rows:,} rows: errors need all pairs of rows to be counted, "
            f"which would take about {seconds / 60:,.0f} minutes here; ask for a sample of it"
        )


def keys_alone(options: Options, reason: str) -> Choice:
    """Where nothing but keys is looked for."""
    limit = _QUICK if options.time_budget is None else min(_QUICK, options.time_budget)
    return Choice(None, 0.0, limit, reason)


def expected_seconds(
    rows: int, columns: int, tasks: int, limit: float, gpu_rate: GpuRate = no_gpu
) -> float:
    """About how long counting all pairs takes; the rates are measured where they matter."""
    number = rows * (rows - 1) / 2
    seconds = _guess(rows, columns, tasks)
    if limit / _DOUBT < seconds < limit * _DOUBT:
        seconds = number / pairs_per_second(columns) / max(1, tasks)
    if seconds > limit / _DOUBT and number < _FASTEST * limit:
        rate = gpu_rate(columns)
        seconds = min(seconds, number / rate) if rate else seconds
    return seconds


def _guess(rows: int, columns: int, tasks: int) -> float:
    """The same by the rates that were measured elsewhere, on processors."""
    return seconds_on_cpu(rows * (rows - 1) / 2, columns, tasks)


def seconds_on_cpu(number: float, columns: int, tasks: int) -> float:
    """About how long processors take for so many pairs."""
    seconds_a_pair = columns / _CELLS_PER_SECOND
    if 1 << columns > pairs.DIRECT:
        seconds_a_pair += 1 / _MASKS_PER_SECOND
    return number * seconds_a_pair / max(1, tasks)


@cache
def pairs_per_second(columns: int) -> float:
    """Pairs that one core counts here, of rows with few values in each column."""
    values = np.random.default_rng(0).integers(0, 16, (columns, _TRIED), np.int32)
    ones = np.arange(_TRIED)
    pairs.agree_sets(values, ones[:2], True)  # compiled by now
    started = time.perf_counter()
    pairs.agree_sets(values, ones, True)
    return _TRIED * (_TRIED - 1) / 2 / (time.perf_counter() - started)
