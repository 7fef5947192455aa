"""The law is sharp: it fails when bugs are planted, such as would lose or keep evidence in silence.

A bug that no longer is one, because the code that it changes is gone, fails here too: it is to be
planted in what took its place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flow import bugs, test_composite, test_planted
from tests.flow.bugs import Bug
from tests.rules import test_near_denials, test_near_foreign
from tests.table import test_samples

TABLES = 120
"""How many tables of the law a bug may pass through. Most are noticed by the first few, and three
of those in lists of pairs by none of the first sixty."""

LAWS: dict[Callable[[Path, int], None], tuple[Bug, ...]] = {
    test_planted.test_keys_and_dependencies: bugs.OF_KEYS,
    test_planted.test_denial_constraints: bugs.OF_DENIAL_CONSTRAINTS,
    test_planted.test_inclusion_dependencies: bugs.OF_VALUES,
    test_near_foreign.near_rules_of_two_tables: bugs.OF_NEAR,
    test_composite.references_of_two_tables: bugs.OF_REFERENCES,
    test_near_denials.near_denials: bugs.OF_NEAR_DENIALS,
    test_samples.what_proves_goes_first: bugs.OF_SAMPLES,
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("law", "bug"),
    [
        pytest.param(law, bug, id=f"{law.__name__.removeprefix('test_')}-{bug.__name__}")
        for law, some in LAWS.items()
        for bug in some
    ],
)
def test_the_law_notices(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    law: Callable[[Path, int], None],
    bug: Bug,
) -> None:
    bug(monkeypatch)
    assert any(fails(law, tmp_path / str(seed), seed) for seed in range(TABLES))


def fails(law: Callable[[Path, int], None], path: Path, seed: int) -> bool:
    """Whether a table is not as it should be, or an error ends it."""
    path.mkdir()
    try:
        law(path, seed)
    except Exception:  # noqa: BLE001  whatever the bug leads to
        return True
    return False
