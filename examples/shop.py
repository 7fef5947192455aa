"""A shop's tables, profiled and kept current from Python.

    python examples/shop.py [MASTER]

Four tables are profiled, then three days of changes come in. Tuesday's rows break keys: which
ones, and the rows that did it, come back from ``apply``. Wednesday's corrections restore them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from holdfast import Changes, Profile
from holdfast.sample import copy_to

TABLES = ("customers", "products", "orders", "order_items")


def main(master: str = "local[2]") -> None:
    builder = SparkSession.builder.master(master).appName("holdfast shop")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        try:
            walk_through(spark, Path(folder))
        finally:
            spark.stop()


def walk_through(spark: SparkSession, folder: Path) -> None:
    shop = folder / "csv"
    copy_to(shop)
    tables = {name: read(spark, shop / f"{name}.csv") for name in TABLES}

    profile = Profile.create(folder / "profile", tables)
    for name in TABLES:
        for key in profile.keys(name):
            print(key)

    for day in ("monday", "tuesday", "wednesday"):
        for name in TABLES:
            changes = {
                kind: read(spark, path, like=tables[name])
                for kind in ("inserts", "deletes", "updates")
                if (path := shop / day / f"{name}-{kind}.csv").exists()
            }
            if not changes:
                continue
            # Deletes name whole rows; an update names its row by the key.
            row_key = ["order_id"] if "updates" in changes else None
            change = profile.apply(name, **changes, row_key=row_key, batch_id=day)
            report(day, change)

    print(f"\nversions: {len(profile.history())}")


def report(day: str, change: Changes) -> None:
    """What a batch did to the keys, and the rows that did it."""
    print(f"\n{day}, {change.table}: {change.rows} rows now")
    keys = change["keys"]
    if not keys.any:
        print("  the same keys as before")
    for broken in keys.broken:
        print(f"  broken {broken.constraint.body}")
        for row in broken.witness:
            print(f"         {', '.join(str(row[column]) for column in row)}")
    for shorter in keys.superseded:
        print(f"  {shorter.constraint.body}: {shorter.by.body} is enough")
    for key in keys.gained:
        print(f"  gained {key.body}")


def read(spark: SparkSession, path: Path, like: DataFrame | None = None) -> DataFrame:
    """A CSV file, with the types of another table or else with inferred ones."""
    reader = spark.read.option("header", True).option("escape", '"')
    reader = reader.schema(like.schema) if like else reader.option("inferSchema", True)
    return reader.csv(str(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
