"""What matters first: the declared keys of TPC-H's tables, and the designed rules of the shop.

TPC-H is ranked at a small scale factor, where chance makes most keys: 0.01, or the one given.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks import tpch
from holdfast import Options, Profile, sample
from holdfast.model.constraints import Key
from holdfast.model.grammar import parse

DECLARED = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
"""The primary keys that the specification declares."""

PLACES = 10
"""A designed rule should be among so many of its kind."""


def main(scale: str = "0.01") -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as folder:
        _tpch(Path(folder), scale)
        _shop(Path(folder))


def _tpch(folder: Path, scale: str) -> None:
    paths = {name: str(path) for name, path in tpch.tables(scale).items()}
    # Longer keys would be declared by nobody, and lineitem has very many.
    options = Options(kinds="keys,inds", max_columns=3)
    profile = Profile.create(folder / "tpch", paths, options=options)
    started = time.perf_counter()
    ranking = profile.ranking_of(profile.snapshot())
    seconds = time.perf_counter() - started
    right = 0
    for name, declared in DECLARED.items():
        keys = [entry.constraint for entry in ranking[name]["keys"]]
        place = keys.index(Key(name, declared)) + 1 if Key(name, declared) in keys else None
        right += place == 1
        print(f"{name:10} {', '.join(declared):28} place {place} of {len(keys):,}")
    ok = "ok" if right == len(DECLARED) else "MISSED"
    print(f"declared keys that are first: {right} of {len(DECLARED)} (target: all) {ok}")
    print(f"ranking all tables: {seconds:.2f} s")


def _shop(folder: Path) -> None:
    shop = Path(sample.__file__).with_name("shop")
    tables = {path.stem: str(path) for path in shop.glob("*.csv")}
    options = Options(kinds="keys,fds,inds,dcs")
    profile = Profile.create(folder / "shop", tables, options=options)
    ranking = profile.ranking_of(profile.snapshot())
    listings = [listing for table in ranking.values() for listing in table.kinds.values()]
    places = {str(entry): at for listing in listings for at, entry in enumerate(listing, 1)}
    right = 0
    for text in sample.DESIGNED:
        rule = str(parse(text))
        place = places.get(rule)
        right += place is not None and place <= PLACES
        print(f"place {place}: {rule}")
    ok = "ok" if right == len(sample.DESIGNED) else "MISSED"
    print(f"designed rules among the first {PLACES}: {right} of {len(sample.DESIGNED)} {ok}")


if __name__ == "__main__":
    main(*sys.argv[1:])
