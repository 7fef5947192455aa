"""What tests of the pipeline share."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.evidence.agreement.search_plans import IndexSearch
from holdfast.tasks.view import View


@pytest.fixture
def brought_together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each search was given."""
    sizes: list[int] = []
    between = View.between

    def counted(*given: Any) -> Any:
        rows = between(*given)
        sizes.append(len(rows.ids))
        return rows

    monkeypatch.setattr(View, "between", counted)
    return sizes


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many candidates each search through all rows was for."""
    numbers: list[int] = []
    calls = IndexSearch.calls

    def counted(look: IndexSearch, scope: Any) -> Any:
        numbers.append(len(look.candidates.lhs))
        return calls(look, scope)

    monkeypatch.setattr(IndexSearch, "calls", counted)
    return numbers
