"""Candidates for foreign keys of two columns: what may refer to a key of another table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.likeness import alike
from holdfast.values.n_ary import Candidate
from holdfast.values.overlaps import Stretch
from holdfast.values.shared import Pairs

LEAST_ALIKE = 0.55
"""How alike the names of two columns are to those of a key, at least, on average."""

Keys = Mapping[str, Sequence[tuple[int, int]]]
"""Of each table the keys of two columns that others may refer to, as positions."""

_alike = lru_cache(maxsize=1 << 16)(alike)


def candidates(
    pairs: Pairs,
    keys: Keys,
    attributes: Sequence[Attribute],
    stretches: Mapping[str, Stretch],
) -> Iterator[Candidate]:
    """Two columns of a table, each of which is contained in a column of a key of another table, and
    has, on average, a name like that. ``pairs`` are the dependencies of one column."""
    numbers = {
        table: [tuple(stretches[table][0] + c for c in key) for key in of_table]
        for table, of_table in keys.items()
    }
    keyed = np.array(
        [c for of_table in numbers.values() for key in of_table for c in key], np.int64
    )
    chosen = np.isin(pairs.referenced, keyed)
    inside: dict[tuple[str, int], list[int]] = defaultdict(list)
    referring: dict[str, set[str]] = defaultdict(set)
    for a, b in zip(
        pairs.dependent[chosen].tolist(), pairs.referenced[chosen].tolist(), strict=True
    ):
        table = attributes[a].table
        inside[table, b].append(a)
        referring[attributes[b].table].add(table)
    for other, tables in referring.items():
        for table, key in product(tables - {other}, numbers[other]):
            for pair in product(*(inside.get((table, c), ()) for c in key)):
                names = zip(pair, key, strict=True)
                if (
                    pair[0] == pair[1]
                    or sum(_alike(attributes[a], attributes[b]) for a, b in names) < 2 * LEAST_ALIKE
                ):
                    continue
                left, right = zip(*sorted(zip(pair, key, strict=True)), strict=True)
                yield Candidate(
                    table,
                    tuple(a - stretches[table][0] for a in left),
                    other,
                    tuple(b - stretches[other][0] for b in right),
                )
