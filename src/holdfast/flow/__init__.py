"""The order of things: profile tables, apply a batch, verify, ask."""

from holdfast.flow.apply import apply
from holdfast.flow.ask import error, missing_values, within
from holdfast.flow.profile import extend, profile
from holdfast.flow.verify import verify
from holdfast.table.batch import Batch

__all__ = ["Batch", "apply", "error", "extend", "missing_values", "profile", "verify", "within"]
