"""Every example runs, as its reader would run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(example: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        result = subprocess.run(
            [sys.executable, example],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": scratch},
            capture_output=True,
            text=True,
            check=False,
        )
        left = [path.name for path in Path(scratch).glob("holdfast-*") if path.is_dir()]
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout
    assert not left, "a session's own folder goes with it"
