"""The order of things: profile tables, apply a batch, verify, ask."""

from holdfast.flow.apply import apply
from holdfast.flow.ask import denial_error, error, missing_values, predicates, violations, within
from holdfast.flow.profile import extend, profile
from holdfast.flow.verify import verify
from holdfast.table.batch import Batch

__all__ = [
    "Batch",
    "apply",
    "denial_error",
    "error",
    "extend",
    "missing_values",
    "predicates",
    "profile",
    "verify",
    "violations",
    "within",
]
