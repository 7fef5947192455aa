"""What the score of a foreign key goes by."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.kinds.inclusion_dependencies.foreign_keys import Facts, foreign_keys
from holdfast.model.constraints import Key
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.values.overlaps import Overlaps
from holdfast.values.shared import Shared


def score(own: str, other: str) -> float:
    """Of a column with one type in a key with another."""
    dependent, referenced = Attribute("orders", "day"), Attribute("days", "day")
    shared = Shared((dependent, referenced), ("time", "time"), Overlaps(np.array([3, 4])))
    facts = {
        "orders": Facts((), {"day": own}, 10),
        "days": Facts((Key("days", ("day",)),), {"day": other}, 4),
    }
    [foreign_key] = foreign_keys(
        [InclusionDependency((dependent,), (referenced,), 1.0)], facts, shared
    )
    return foreign_key.score


@pytest.mark.parametrize("name", ["timestamp", "timestamp_ntz", "time", "interval day to second"])
def test_times_of_any_precision_have_one_type(name: str) -> None:
    micros = "time(6)" if name == "time" else name
    assert score(f"{name}(9)", micros) == score(micros, f"{name}(9)") == score(micros, micros)
    assert score(micros, "date") < score(micros, micros)
