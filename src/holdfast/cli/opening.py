"""Opening a profile with an engine, and reporting what an interrupted command committed."""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from holdfast.cli import arguments, waits
from holdfast.cli.command import flag
from holdfast.cli.failures import interrupted
from holdfast.model import engine
from holdfast.model.errors import InputError, StoreError

if TYPE_CHECKING:
    from holdfast.api import Profile
    from holdfast.cli.printing import Printing
    from holdfast.cli.progress import Progress


def _spark_flag(name: str, text: str, metavar: str) -> Any:
    return flag(name, text, metavar, "Spark")


Master = Annotated[str | None, _spark_flag("--master", "Spark's master, such as local[4].", "URL")]
Conf = Annotated[
    list[str] | None, _spark_flag("--conf", "A setting of the session. Repeatable.", "KEY=VALUE")
]


class EngineOptions(TypedDict, total=False):
    """Arguments of ``Profile.create`` and ``Profile.open``."""

    engine: str
    parallelism: int | None
    session: Callable[[], Any]


@dataclass(frozen=True)
class Spark:
    """What a command works with: which engine, which session of Spark, how many tasks."""

    engine: Annotated[
        str | None,
        _spark_flag("--engine", "spark, or process: this one, without Spark and Java.", "NAME"),
    ] = None
    master: Master = None
    remote: Annotated[str | None, _spark_flag("--remote", "A Spark Connect server.", "URL")] = None
    conf: Conf = None
    parallelism: Annotated[
        int | None,
        _spark_flag("--parallelism", "The number of tasks into which work is divided.", "N"),
    ] = None

    def __post_init__(self) -> None:
        # Wrong arguments are reported before anything is opened.
        arguments.pairs(self.conf, "--conf")
        of_spark = {"--master": self.master, "--remote": self.remote, "--conf": self.conf}
        given = [name for name, value in of_spark.items() if value]
        if given and self.engine is not None and engine.chosen(self.engine) == engine.PROCESS:
            raise InputError(f"{given[0]} is about Spark, and --engine process does without it")

    @property
    def _engine(self) -> str:
        """Which engine; an option that is about Spark asks for it."""
        if self.engine is None and (self.master or self.remote or self.conf):
            return engine.SPARK
        return engine.chosen(self.engine)

    def engine_options(self, progress: Progress | None) -> EngineOptions:
        """What a profile takes of it. A session is opened when it is needed."""
        options = EngineOptions(engine=self._engine, parallelism=self.parallelism)
        if self._engine == engine.SPARK:
            options["session"] = functools.partial(self._session, progress)
        return options

    def _session(self, progress: Progress | None) -> Any:
        from holdfast.spark.session import open_session

        if progress:
            progress("session")
        # Spark installs a handler that calls the JVM in the middle of another call.
        before, started = signal.getsignal(signal.SIGINT), time.monotonic()
        try:
            return open_session(self.master, self.remote, arguments.pairs(self.conf, "--conf"))
        finally:
            signal.signal(signal.SIGINT, before)
            if not (self.master or self.remote or self.conf):
                waits.note(time.monotonic() - started)

    @contextmanager
    def profile(self, directory: str, printing: Printing) -> Iterator[Profile]:
        """A profile that works in the session, and shows its progress while the block runs."""
        from holdfast.api import Profile

        with printing.progress() as progress:
            yield Profile.open(directory, progress=progress, **self.engine_options(progress))


@contextmanager
def committing(directory: str) -> Iterator[None]:
    """Tell the user of an interrupted command correctly whether a version was committed."""
    before = _head(directory)
    try:
        yield
    except BaseException as error:
        if interrupted(error) and (after := _head(directory)) != before:
            raise KeyboardInterrupt(f"interrupted, but version {after} is committed") from error
        raise


def _head(directory: str) -> int:
    from holdfast.store import Store

    try:
        return Store.open(directory).head()
    except StoreError:
        return 0
