"""What holds for all tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.places import memory
from tests.strategies import examples

# A busy machine is no failure: neither an example nor drawing one has a time limit.
settings.register_profile(
    "patient",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("patient")

# Where pytest makes its temporary folders, unless --basetemp says so.
if place := memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))

# A shell that runs them in the background has interrupts ignored, also by the commands that they
# start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A session that somebody started for his own commands is none of the tests'.
os.environ["HOLDFAST_SESSION"] = "off"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow tests come first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
