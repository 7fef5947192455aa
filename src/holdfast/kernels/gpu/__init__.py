"""Counting pairs on a CUDA device, where there is one.

:func:`device` says which device there is, or in a sentence why it is not used. CuPy, which comes
with the extra ``gpu``, is imported only there and where pairs are counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

OLDEST = 70
"""The compute capability, times ten, from which on threads of a warp can wait for each other."""

LEAST = 1 << 30
"""Bytes of free memory without which a device is not used."""


class CudaDevice(NamedTuple):
    """A CUDA device, or why there is none to count on."""

    name: str
    memory: int  # bytes
    missing: str  # a sentence; empty: it can be used

    @property
    def usable(self) -> bool:
        return not self.missing


def device(number: int | None = None) -> CudaDevice:
    """The first device, or with a number that one of CUDA's, which this thread then uses. It is
    looked for each time: a device may be full now and free later."""
    try:
        import cupy
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            return _none("CuPy is not installed; pip install 'holdfast[gpu]' brings it.")
        return _none(f"CuPy cannot be imported: {line(error)}.")
    try:
        return _first(cupy, number)
    except (RuntimeError, OSError) as error:  # CUDA's and the driver's errors are RuntimeErrors
        return _none(f"CUDA finds no GPU that it can use: {line(error)}.")


def _first(cupy: Any, number: int | None) -> CudaDevice:
    """The device that CUDA has chosen, which is the first one unless a number is given."""
    runtime = cupy.cuda.runtime
    there = runtime.getDeviceCount()
    if not there:
        return _none("CUDA finds no GPU.")
    if number is not None:
        if number >= there:
            return _none(f"CUDA finds no GPU number {number}: it has {there}, from 0 on.")
        cupy.cuda.Device(number).use()
    properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
    name = properties["name"].decode()
    free, memory = runtime.memGetInfo()
    capability = 10 * properties["major"] + properties["minor"]
    if capability < OLDEST:
        return CudaDevice(
            name,
            memory,
            f"{name} is too old: compute capability {capability / 10} of {OLDEST / 10} or more.",
        )
    # What CuPy holds for us and does not use is free, too.
    free += cupy.get_default_memory_pool().free_bytes()
    if free < LEAST:
        return CudaDevice(
            name, memory, f"{name} is full: {free >> 20:,} MiB free of {LEAST >> 20:,} at least."
        )
    cupy.cuda.nvrtc.getVersion()  # raises where the compiler of kernels is not installed
    return CudaDevice(name, memory, "")


def _none(why: str) -> CudaDevice:
    return CudaDevice("", 0, why)


def line(error: Exception) -> str:
    """The first line of what an error says; CuPy's import error has thirty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =")]
    return lines[0].rstrip(".") if lines else type(error).__name__
