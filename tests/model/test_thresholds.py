"""Thresholds are described, read where they are used, and replaced in one place."""

from __future__ import annotations

import ast
import re
from dataclasses import FrozenInstanceError, fields
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.model import thresholds
from holdfast.model.thresholds import Costs, Thresholds
from tests.limits import varied

HOME = Path(thresholds.__file__)
OTHERS = [path for path in HOME.parents[1].rglob("*.py") if path != HOME]
TEXTS = [path.read_text() for path in OTHERS]
READ = set(re.findall(r"\b(?:thresholds\.current|limits|costs)\.(\w+)", "\n".join(TEXTS)))
NAMES = [field.name for kind in (Thresholds, Costs) for field in fields(kind)]


def test_each_has_a_sentence_about_it() -> None:
    for each in ast.parse(HOME.read_text()).body:
        if isinstance(each, ast.ClassDef):
            members = [*each.body[1:], None]
            for member, after in pairwise(members):
                if isinstance(member, ast.AnnAssign):
                    assert isinstance(after, ast.Expr), ast.unparse(member)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_read(name: str) -> None:
    assert name in READ


def test_nobody_keeps_the_current_ones() -> None:
    """A name that was imported, or set when a module was, would stay what it was."""
    for path, text in zip(OTHERS, TEXTS, strict=True):
        assert not re.search(r"thresholds import .*\bcurrent\b", text), path
        assert not re.search(r"^\w.*\bthresholds\.current\b", text, re.MULTILINE), path


def test_one_value_is_replaced() -> None:
    with pytest.MonkeyPatch.context() as patch:
        varied(patch, segment_rows=5)
        varied(patch, tile_rows=3)
        assert thresholds.current == Thresholds(segment_rows=5, tile_rows=3)
    assert thresholds.current == Thresholds()
    with pytest.raises(FrozenInstanceError):
        thresholds.current.part = 1  # type: ignore[misc]
