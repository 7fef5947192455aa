"""A machine that lacks what Holdfast runs on: one line that says what to install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.spark import OLDEST
from tests.cli.conftest import ORDERS, write

ROOT = Path(__file__).parent.parent.parent

HIDE = """
import sys

class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden)
"""


def profile(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``holdfast profile`` where the Python files in ``folder/lib`` come first."""
    write(folder, "orders", ORDERS)
    command = ["profile", "orders.csv", "--into", "new/p", "--quiet", *arguments]
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "lib"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """A folder of modules that are found before all others."""
    (tmp_path / "lib").mkdir()
    return tmp_path / "lib"


def refused(result: subprocess.CompletedProcess[str], folder: Path, *said: str) -> None:
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for each in said:
        assert each in result.stderr
    assert not (folder / "new").exists()


@pytest.mark.slow
def test_without_pyspark(lib: Path, tmp_path: Path) -> None:
    (lib / "sitecustomize.py").write_text(HIDE.format(name="pyspark"))
    result = profile(tmp_path)
    refused(result, tmp_path, "PySpark 4.1 or newer", "pip install 'holdfast[local]'")


@pytest.mark.slow
def test_an_old_pyspark(lib: Path, tmp_path: Path) -> None:
    (lib / "pyspark").mkdir()
    (lib / "pyspark" / "__init__.py").write_text('__version__ = "3.5.10"\n')
    result = profile(tmp_path)
    refused(result, tmp_path, "PySpark 4.1 or newer", "is 3.5.10", "pip install 'holdfast[local]'")
    assert str(lib / "pyspark") in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("way", ["--remote", "SPARK_REMOTE"])
def test_a_remote_session_without_grpc(lib: Path, tmp_path: Path, way: str) -> None:
    (lib / "sitecustomize.py").write_text(HIDE.format(name="grpc"))
    server = "sc://localhost:1"
    if way == "--remote":
        result = profile(tmp_path, way, server)
    else:
        result = profile(tmp_path, **{way: server})
    refused(result, tmp_path, "grpc", "pip install 'holdfast[connect]'")


def test_the_oldest_pyspark_is_the_one_that_we_ask_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in ("local", "connect"):
        (bound,) = re.findall(
            r"^pyspark(?:\[connect\])?>=(\d+)\.(\d+)",
            "\n".join(project["optional-dependencies"][extra]),
            re.MULTILINE,
        )
        assert tuple(map(int, bound)) == OLDEST
