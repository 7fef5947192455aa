"""TPC-H's lineitem at a scale factor, and random rows of it."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).with_name("data")


def lineitem(scale: str) -> Path:
    """The CSV file, made on first use."""
    folder = DATA / f"sf{scale}"
    path = folder / "lineitem.csv"
    if not path.exists():
        tool = Path(sys.executable).with_name("tpchgen-cli")
        command = str(tool) if tool.exists() else shutil.which("tpchgen-cli")
        if command is None:
            sys.exit("tpchgen-cli is missing: install the development dependencies (make lint)")
        print(f"making lineitem at scale factor {scale} …", flush=True)
        options = ["csv", "-s", scale, "--tables=lineitem", f"--output-dir={folder}"]
        subprocess.run([command, *options], check=True)
    return path


def random_lines(path: Path, count: int, seed: int) -> tuple[str, list[str]]:
    """The header, and so many different lines from anywhere in the file."""
    size = path.stat().st_size
    generator = random.Random(seed)
    chosen: dict[str, None] = {}
    with path.open("rb") as file:
        header = file.readline().decode()
        while len(chosen) < count:
            file.seek(generator.randrange(len(header), size))
            file.readline()
            line = file.readline().decode()
            if line:
                chosen[line] = None
    return header, list(chosen)


def write(path: Path, header: str, lines: list[str]) -> Path:
    """Lines as a CSV file."""
    path.write_text(header + "".join(lines))
    return path
