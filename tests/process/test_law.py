"""The law without Spark, whatever the rows come as and however files are divided."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Options, Profile
from tests.limits import varied
from tests.process.forms import FORMS, given_as
from tests.spark.test_law import assert_exact
from tests.strategies import Rows, changes, examples, tables


@pytest.mark.law
@settings(max_examples=examples(12), deadline=None)
@given(
    data=st.data(),
    table=tables(),
    nulls=st.sampled_from(["equal", "unequal"]),
    bytes_of_a_task=st.sampled_from([20, 1_000]),
)
def test_inserts_and_deletes(
    data: st.DataObject, table: tuple[int, Rows], nulls: str, bytes_of_a_task: int
) -> None:
    width, rows = table
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        varied(patch, merged_segments=3, joined_bytes=bytes_of_a_task, light_rows=1)
        source = given_as(data.draw(st.sampled_from(FORMS)), folder, width, rows)
        options = Options(kinds=("keys", "fds"), nulls=nulls)
        profile = Profile.create(
            folder / "p", {"t": source}, options=options, engine="process", parallelism=3
        )
        assert_exact(profile, width, rows, nulls)
        for _ in range(data.draw(st.integers(1, 2))):
            inserts, deletes, rows = data.draw(changes(width, rows))
            form = data.draw(st.sampled_from(FORMS))
            profile.apply(
                "t",
                inserts=given_as(form, folder, width, inserts),
                deletes=given_as(form, folder, width, deletes),
            )
            assert_exact(profile, width, rows, nulls)
        assert profile.verify().equal
