"""TPC-H's tables at a scale factor, and random rows of one."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

DATA = Path(__file__).with_name("data")


TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def lineitem(scale: str) -> Path:
    """The CSV file, made on first use."""
    return tables(scale, ("lineitem",))["lineitem"]


def tables(scale: str, names: tuple[str, ...] = TABLES) -> dict[str, Path]:
    """The CSV files of some tables, made on first use."""
    return made(scale, names, "csv")


def made(scale: str, names: tuple[str, ...], form: str) -> dict[str, Path]:
    """The files of some tables, CSV or Parquet, made on first use."""
    folder = DATA / (f"sf{scale}" if form == "csv" else f"sf{scale}-{form}")
    paths = {name: folder / f"{name}.{form}" for name in names}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        tool = Path(sys.executable).with_name("tpchgen-cli")
        command = str(tool) if tool.exists() else shutil.which("tpchgen-cli")
        if command is None:
            sys.exit("tpchgen-cli is missing: install the development dependencies (make lint)")
        print(f"making {', '.join(missing)} at scale factor {scale} …", flush=True)
        options = [form, "-s", scale, f"--tables={','.join(missing)}", f"--output-dir={folder}"]
        subprocess.run([command, *options], check=True)
    return paths


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


def without_views(rows: pa.Table) -> pa.Table:
    """With plain texts, which Arrow can pick rows of."""
    fields = [
        pa.field(field.name, pa.string()) if pa.types.is_string_view(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
