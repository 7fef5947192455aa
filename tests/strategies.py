"""Generated inputs for property tests."""

from __future__ import annotations

import math
import os
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES", "12"))
"""How many tables the law is tried on; other properties get more or fewer examples alike."""

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
"""Whether kernels run as plain Python."""


def examples(number: int) -> int:
    """How many examples of a property to try, where it has so many for 40 tables of the law: an
    eighth of them where kernels run as plain Python."""
    return max(5, number * EXAMPLES // (320 if INTERPRETED else 40))


# --- sets ---------------------------------------------------------------------------------


def families(
    atoms: int, max_members: int = 12, min_size: int = 0
) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Lists of sets of atoms, with repetition, each as ascending column numbers."""
    if atoms == 0:
        return st.lists(st.just(()), max_size=max_members)
    one = st.sets(st.integers(0, atoms - 1), min_size=min_size, max_size=atoms)
    return st.lists(one.map(lambda each: tuple(sorted(each))), max_size=max_members)


# --- numbers ---------------------------------------------------------------------------------

DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-2.3e-308, 2.3e-308),
    st.floats(1e15, 1e23),
    st.integers(-1074, 1023).map(lambda power: math.ldexp(1.0, power)),
    st.integers(-323, 308).map(lambda power: float(f"1e{power}")),
    st.sampled_from([0.0, -0.0, 1e22, 1e23, 5e-324, 2.0**53, 0.1 + 0.2, math.pi]),
)
"""Doubles of all magnitudes."""

LONG_DECIMALS = st.builds(
    lambda sign, digits, places, power: f"{sign}{digits[:-places]}.{digits[-places:]}{power}",
    st.sampled_from(["", "-"]),
    st.from_regex(r"[1-9][0-9]{14,18}[1-9]", fullmatch=True),
    st.integers(1, 15),
    st.just("") | st.integers(-345, 310).map(lambda power: f"e{power}"),
)
"""Decimals of 16 to 20 digits."""


@st.composite
def near_doubles(draw: st.DrawFn) -> str:
    """Shortest decimals, decimals beside them, and longer ones that are read as the same double."""
    double = draw(DOUBLES)
    written = draw(st.sampled_from(["r", ".15e", ".16e", ".17e"]))
    number = Decimal(repr(double) if written == "r" else format(double, written))
    digits = number.as_tuple().digits
    other = abs(int("".join(map(str, digits))) + draw(st.integers(-2, 2))) or 1
    exponent = int(number.as_tuple().exponent)
    shape = draw(st.sampled_from(["{}.0e{}", "{}000.0E{}", "0.{}e{}"]))
    shift = {"{}.0e{}": 0, "{}000.0E{}": -3, "0.{}e{}": len(str(other))}[shape]
    return shape.format(other, exponent + shift)


# --- tables and changes -------------------------------------------------------------------

Rows = list[tuple[Any, ...]]


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 14, max_columns: int = 5) -> tuple[int, Rows]:
    """A number of columns and rows of small values: duplicates, nulls and skew are common."""
    columns = draw(st.integers(1, max_columns))
    return columns, draw(rows_of(columns, max_rows))


def rows_of(columns: int, most: int) -> st.SearchStrategy[Rows]:
    """Rows whose cells have few values, fewer in some columns than in others."""
    cells = [
        st.one_of(st.integers(0, 1 + 2 * (c % 3)), st.sampled_from([None, 0]))
        for c in range(columns)
    ]
    return st.lists(st.tuples(*cells), max_size=most)


@st.composite
def changes(draw: st.DrawFn, columns: int, rows: Rows) -> tuple[Rows, Rows, Rows]:
    """Inserts, deletes of rows that are there, and the rows afterwards."""
    gone = draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
    inserts = draw(rows_of(columns, 6))
    deletes = [rows[i] for i in gone]
    after = [row for i, row in enumerate(rows) if i not in set(gone)] + inserts
    return inserts, deletes, after
