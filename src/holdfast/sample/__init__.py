"""A small shop to try Holdfast on: four tables and three days of changes, as CSV files.

``python -m holdfast.sample DIR`` copies the files into DIR. What is planted in them is
written down in :mod:`holdfast.sample.make`, which made them.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree


def copy_to(directory: Path) -> None:
    """Copy the sample files into ``directory``, which is made if it does not exist."""
    with as_file(files(__name__) / "shop") as shop:
        copytree(shop, directory, dirs_exist_ok=True)
