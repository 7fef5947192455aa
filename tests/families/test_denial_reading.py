"""Which minimal sets of weak predicates are reported: against every assignment of small values."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cover.cover import Cover
from holdfast.evidence.comparisons import (
    BOTH,
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
    agreements,
)
from holdfast.families.denial_constraints.reading import closed, mirrored, reported
from holdfast.kernels import bitsets
from tests.data import MISSING, data_dir, read_table

HOLDS = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
    "=": lambda a, b: a == b,
}


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Two columns that are compared with themselves, with each other, or within a row."""
    found = [Comparison(c, c, draw(st.sampled_from([ORDER, EQUALITY]))) for c in range(2)]
    operators = draw(st.sampled_from([ORDER, EQUALITY]))
    if draw(st.booleans()):
        found += [Comparison(0, 1, operators), Comparison(1, 0, operators)]
    if draw(st.booleans()):
        found += [Comparison(0, 1, operators, FIRST), Comparison(0, 1, operators, SECOND)]
    return Space("drawn", 2, tuple(found))


def satisfied(space: Space, cells: tuple[int, ...]) -> list[bool]:
    """Which atoms hold where the cells are t.0, t.1, s.0, s.1."""
    out = []
    for each in space.comparisons:
        left = each.left + (2 if each.rows == SECOND else 0)
        right = each.right + (0 if each.rows == FIRST else 2)
        out += [HOLDS[operator](cells[left], cells[right]) for operator in each.operators]
    return out


@given(data=st.data(), space=spaces())
def test_what_follows_is_what_no_values_contradict(data: st.DataObject, space: Space) -> None:
    atoms = data.draw(st.sets(st.integers(0, space.atoms - 1)))
    everything = [satisfied(space, cells) for cells in product(range(4), repeat=4)]
    models = [holds for holds in everything if all(holds[atom] for atom in atoms)]
    closures, satisfiable = closed(bitsets.from_columns([atoms], space.atoms), space)
    assert satisfiable[0] == bool(models)
    if models:
        follows = [atom for atom in range(space.atoms) if all(m[atom] for m in models)]
        assert bitsets.to_columns(closures)[0] == tuple(follows)


@given(data=st.data(), space=spaces())
def test_a_mirror_image_is_what_the_other_row_sees(data: st.DataObject, space: Space) -> None:
    cells = data.draw(st.tuples(*[st.integers(0, 2)] * 4))
    seen = [k for k, holds in enumerate(satisfied(space, cells)) if holds]
    other = [k for k, holds in enumerate(satisfied(space, (*cells[2:], *cells[:2]))) if holds]
    assert space.mirrored(seen) == tuple(other)
    image = mirrored(bitsets.from_columns([seen], space.atoms), space)
    assert bitsets.to_columns(image) == [tuple(other)]


@given(data=st.data(), space=spaces())
def test_what_is_reported_implies_all_that_holds(data: st.DataObject, space: Space) -> None:
    """And nothing that is reported is implied by another one."""
    rows = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=5))
    pairs = [(*t, *s) for i, t in enumerate(rows) for j, s in enumerate(rows) if i != j]
    evidence = [[k for k, holds in enumerate(satisfied(space, p)) if holds] for p in pairs]
    masks = bitsets.from_columns(evidence, space.atoms)
    minimal = Cover.build(space.atoms, masks).minimal
    kept = reported(minimal, space)
    everything = [satisfied(space, cells) for cells in product(range(4), repeat=4)]

    def models(atoms: tuple[int, ...]) -> set[int]:
        return {k for k, holds in enumerate(everything) if all(holds[a] for a in atoms)}

    told = bitsets.to_columns(kept)
    denied = [(models(atoms), models(space.mirrored(atoms))) for atoms in told]

    def implied(atoms: tuple[int, ...], by: tuple[set[int], set[int]]) -> bool:
        return any(models(atoms) <= each for each in by)

    for atoms in bitsets.to_columns(minimal):
        assert any(implied(atoms, each) for each in denied) or not models(atoms)
    for k, atoms in enumerate(told):
        assert models(atoms)
        assert not any(implied(atoms, each) for j, each in enumerate(denied) if j != k)


def test_agreement_has_an_atom_a_column() -> None:
    space = agreements(3)
    assert (space.atoms, space.only_agreement, space.mirror) == (3, True, (0, 1, 2))
    assert not Space("o", 1, (Comparison(0, 0, ORDER, BOTH),)).only_agreement


ABALONE = pytest.param("abalone", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["iris", "bridges", ABALONE])
def test_known_results(name: str) -> None:
    folder = data_dir()
    if folder is None:
        pytest.skip(MISSING)
    header, rows = read_table(folder / f"{name}.csv")
    columns = list(zip(*rows, strict=True))
    comparisons, codes = [], []
    for c, cells in enumerate(columns):
        ordered = all(cell.replace(".", "", 1).lstrip("-").isdigit() for cell in cells)
        comparisons.append(Comparison(c, c, ORDER if ordered else EQUALITY))
        values = np.array([float(cell) for cell in cells]) if ordered else np.array(cells)
        codes.append(np.unique(values, return_inverse=True)[1])
    space = Space("known", len(header), tuple(comparisons))
    table = np.array(codes)
    seen: set[bytes] = set()
    for i in range(len(rows)):
        others = np.delete(table, i, axis=1)
        atoms = []
        for c, each in enumerate(comparisons):
            atoms += [HOLDS[operator](table[c, i], others[c]) for operator in each.operators]
        seen.update(map(bytes, np.unique(np.packbits(atoms, axis=0, bitorder="little").T, axis=0)))
    data = np.frombuffer(b"".join(sorted(seen)), np.uint8).reshape(len(seen), -1)
    flags = np.unpackbits(data, axis=1, count=space.atoms, bitorder="little").astype(np.bool_)
    cover = Cover.build(space.atoms, bitsets.from_flags(flags))
    expected = json.loads((folder / "known-results.json").read_text())[name]
    count = expected.get("denial_constraint_count") or len(expected["denial_constraints"])
    assert len(reported(cover.minimal, space)) == count
