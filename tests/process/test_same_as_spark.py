"""What sources mean on Spark, they mean without it: the same tests, all that need no session."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from tests.spark import test_nanoseconds, test_sources, test_text_files

_SPARKS = {"spark", "frame"}
"""What tests ask for that are about a session."""

_OF_SPARK = {
    "test_dates_of_an_old_calendar_are_for_spark",
    "test_a_format_that_spark_lacks_names_its_package",
    "test_files_whose_footers_cannot_be_seen",
}


def _tests(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(module).items():
        is_test = name.startswith("test_") and inspect.isfunction(value)
        if (
            is_test
            and name not in _OF_SPARK
            and not _SPARKS & {*inspect.signature(value).parameters}
        ):
            yield name, value


write, parquet = test_sources.write, test_nanoseconds.parquet
globals().update(
    (name, value)
    for module in (test_sources, test_text_files, test_nanoseconds)
    for name, value in _tests(module)
)


def test_there_are_many() -> None:
    """So that none is lost by a change of a fixture's name."""
    assert sum(len([*_tests(m)]) for m in (test_sources, test_text_files, test_nanoseconds)) > 30
