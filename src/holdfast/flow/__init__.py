"""The order of the steps of each command: profile, apply, alter, verify, explain, expect."""

from holdfast.flow.alter import Alteration, alter, planned
from holdfast.flow.apply import apply, apply_together
from holdfast.flow.ask import (
    error,
    missing_values,
    points,
    predicates,
    violations,
    within,
)
from holdfast.flow.evolve import evolution
from holdfast.flow.expectations import expect, expected, forget
from holdfast.flow.explain import explain
from holdfast.flow.follow import QUARANTINE, STOP, Follower, expect_violations, follow, status
from holdfast.flow.near import dismiss, look_for_near
from holdfast.flow.profile import extend, profile
from holdfast.flow.suspects import Asked, streamed, suspects
from holdfast.flow.verify import verify
from holdfast.table.batch import Batch

__all__ = [
    "QUARANTINE",
    "STOP",
    "Alteration",
    "Asked",
    "Batch",
    "Follower",
    "alter",
    "apply",
    "apply_together",
    "dismiss",
    "error",
    "evolution",
    "expect",
    "expect_violations",
    "expected",
    "explain",
    "extend",
    "follow",
    "forget",
    "look_for_near",
    "missing_values",
    "planned",
    "points",
    "predicates",
    "profile",
    "status",
    "streamed",
    "suspects",
    "verify",
    "violations",
    "within",
]
