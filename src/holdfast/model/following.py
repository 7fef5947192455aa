"""What following feeds of changes came to: steps, failures, and how far each feed is."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.model.changes import BatchChanges
from holdfast.model.commits import LastStep
from holdfast.model.errors import HoldfastError
from holdfast.model.records import JsonObject, Serializable


@dataclass(frozen=True)
class FeedStep(Serializable):
    """A step of a feed that was taken, or refused."""

    FORM = ("feed", "span", "applied", "version", "rows", "seconds", "behind", "changes")

    feed: str
    span: str  # of the source
    changes: BatchChanges
    seconds: float
    behind: str  # how far the profile is behind now; empty if it is not

    @property
    def refused(self) -> bool:
        """Whether the step was not applied, because it breaks what it should not."""
        return self.changes.refused

    @property
    def applied(self) -> bool:
        """Whether the step was applied."""
        return not self.refused

    @property
    def version(self) -> int:
        """The version that has it; of one that was refused, the last one before it."""
        return self.changes.version

    @property
    def rows(self) -> int:
        """How many rows changed."""
        return self.changes.changed


@dataclass(frozen=True)
class FeedFailure:
    """A feed that stopped, and why."""

    feed: str
    error: HoldfastError

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        return {"feed": self.feed, "error": str(self.error)}


@dataclass(frozen=True)
class FeedStop(Serializable):
    """Why a feed could not go on, until it did: the profile keeps it beside its versions."""

    feed: str
    time: str
    error: str


@dataclass
class FeedRun:
    """What following came to."""

    steps: int = 0
    rows: int = 0
    refused: list[FeedStep] = field(default_factory=list)  # each of another feed, which stopped
    failed: list[FeedFailure] = field(default_factory=list)


@dataclass(frozen=True)
class FeedStatus(Serializable):
    """How far a profile follows a feed."""

    FORM = (
        "name", "table", "address", "version", "time", "position", "head", "behind", "error",
        "last", "stopped", "apart",
    )  # fmt: skip

    name: str
    table: str
    address: str
    position: JsonObject
    version: int  # that went there last; 0: none
    time: str  # of that version
    head: JsonObject | None = None  # the newest position; None: that is not known
    behind: str | None = None  # None: that is not known
    error: str | None = None  # why not
    last: LastStep | None = None  # the last step; None: there was none, or it was not kept
    stopped: FeedStop | None = None  # None: nothing stopped it since
    apart: bool | None = None  # whether its tables may be at different moments; None: not known
