"""Makes a small profile to keep as a sample of the directory format that this version writes.

    python -m tests.formats.make

writes ``tests/formats/format-<n>.zip``. A sample is made once, by the release that introduced its
format, and stays: the tests open every one of them.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from holdfast.model.options import Options
from holdfast.store.directory import FORMAT
from tests.pipeline.tables import KINDS, Shop
from tests.strategies import Rows

HERE = Path(__file__).parent
KINDS_OF = [KINDS[0], KINDS[2], KINDS[3], KINDS[5]]
BEFORE: Rows = [(i, i % 3, i % 4, i % 2 or None) for i in range(12)]
INSERTS: Rows = [(20, 0, 0, 0), (21, 0, 0, 0), (2, 1, 1, 1)]
DELETES: Rows = BEFORE[3:6]
ROWS: Rows = BEFORE[:3] + BEFORE[6:] + INSERTS


def main() -> None:
    """Profile, apply one batch, and pack the directory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile"
        shop = Shop(path, KINDS_OF, BEFORE, Options(index_quota=2))
        shop.apply(inserts=INSERTS, deletes=DELETES, batch_id="first")
        shutil.make_archive(str(HERE / f"format-{FORMAT}"), "zip", path)


if __name__ == "__main__":
    main()
