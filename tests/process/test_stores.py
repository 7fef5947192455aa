"""A profile on an object store, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Options, Profile
from tests.limits import varied
from tests.objects.conftest import cache, memory  # noqa: F401


def test_an_object_store(
    memory: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    varied(monkeypatch, joined_bytes=200, light_rows=1, merged_segments=3)
    rows = tmp_path / "t.csv"
    rows.write_text("id,name\n" + "".join(f"{i},n{i % 7}\n" for i in range(100)))
    kept = Profile.create(
        f"{memory}/p", rows, options=Options(kinds="keys,fds"), engine="process", parallelism=3
    )
    assert [key.columns for key in kept.keys("t")] == [("id",)]
    rows.write_text("id,name\n7,n0\n")
    again = Profile.open(f"{memory}/p", engine="process")
    assert again.apply("t", deletes=rows).rows == 99
    assert again.apply("t", inserts=rows).rows == 100
    assert again.verify().equal
