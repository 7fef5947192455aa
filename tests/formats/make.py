"""Makes a small profile to keep as a sample of the directory format that this version writes.

    python -m tests.formats.make

writes ``tests/formats/format-<n>.zip`` for each ``<n>`` that there is none of. A sample is made
once, by the release that introduced its format, and stays: the tests open every one of them.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from holdfast import flow
from holdfast.flow.apply import Moved
from holdfast.model.commits import FeedRecord
from holdfast.model.keeping import Keeping
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.store.directory import CONCEALED, EXPIRED, FOLLOWING, FORMAT, GROUPED
from tests.flow.tables import KINDS, Shop
from tests.strategies import Rows

HERE = Path(__file__).parent
KINDS_OF = [KINDS[0], KINDS[2], KINDS[3], KINDS[5]]
BEFORE: Rows = [(i, i % 3, i % 4, i % 2 or None) for i in range(12)]
INSERTS: Rows = [(20, 0, 0, 0), (21, 0, 0, 0), (2, 1, 1, 1)]
DELETES: Rows = BEFORE[3:6]
ROWS: Rows = BEFORE[:3] + BEFORE[6:] + INSERTS


OPTIONS = {
    FORMAT: Options(index_quota=2),
    CONCEALED: Options(index_quota=2, keep_values=False),
    GROUPED: Options(index_quota=2, near_key_removal=0.5),  # c0 is nearly a key after the batch
    FOLLOWING: Options(index_quota=2),
    EXPIRED: Options(index_quota=2),
}
"""Those of a profile that has the format."""

FEEDS = {"changes": FeedRecord("t", "changes/", {"path": "/changes"}, {"files": {"1": [9, 9]}})}
"""Those that a profile follows, with the positions after the batch."""


def main() -> None:
    """Profile, apply one batch, and pack the directory."""
    for number, options in OPTIONS.items():
        sample = HERE / f"format-{number}"
        if sample.with_suffix(".zip").exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "profile"
            shop = Shop(path, KINDS_OF, BEFORE, options)
            apply_first(shop, number)
            shutil.make_archive(str(sample), "zip", path)


def apply_first(shop: Shop, number: int) -> None:
    """Apply the batch, as that of a feed if the format needs it, or as the only version left."""
    batch = {"t": shop.batch(inserts=INSERTS, deletes=DELETES, batch_id="first")}
    feeds = {
        name: Moved(None, after, "the first", time.monotonic())
        for name, after in FEEDS.items()
        if number == FOLLOWING
    }
    flow.apply_together(
        shop.runner, shop.store, batch, no_progress, secret=shop.secret, feeds=feeds
    )
    if number == EXPIRED:
        shop.store.expire(Keeping(1))


if __name__ == "__main__":
    main()
