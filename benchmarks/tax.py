"""Tax records of any number, with rules planted in them: to try denial constraints at size.

Fifteen columns, of which five have an order: fifty predicates of two rows. Row number i depends on
the seed and i alone, so a longer table begins with a shorter one. What is planted is listed by
:func:`planted`; much else holds by chance in small tables, and less and less in larger ones.

``python -m benchmarks.tax ROWS FILE`` writes a Parquet file, or CSV where the name ends so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64

STATES = (
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS",
    "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY",
    "NC", "ND", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV",
    "WI", "WY",
)  # fmt: skip
AREAS = 6 * len(STATES)
ZIPS = 30_000
CITIES = 4_000
FIRST_NAMES = 3_000
LAST_NAMES = 20_000
NUMBERS = 20_000
"""Numbers of each area code; there are more where the rows would not have one each."""

UNTAXED = 7
"""Every so many states have no tax on income."""

SCHEMA = pa.schema(
    [
        ("first_name", pa.string()),
        ("last_name", pa.string()),
        ("gender", pa.string()),
        ("area_code", pa.string()),
        ("phone", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("zip", pa.string()),
        ("marital_status", pa.string()),
        ("has_child", pa.string()),
        ("salary", pa.int64()),
        ("rate", pa.float64()),
        ("single_exemption", pa.int64()),
        ("married_exemption", pa.int64()),
        ("child_exemption", pa.int64()),
    ]
)

_RULES = (
    "t.area_code = s.area_code and t.phone = s.phone",
    "t.area_code = s.area_code and t.state != s.state",
    "t.zip = s.zip and t.city != s.city",
    "t.zip = s.zip and t.state != s.state",
    "t.first_name = s.first_name and t.gender != s.gender",
    "t.state = s.state and t.marital_status = s.marital_status"
    " and t.single_exemption != s.single_exemption",
    "t.state = s.state and t.marital_status = s.marital_status"
    " and t.married_exemption != s.married_exemption",
    "t.state = s.state and t.has_child = s.has_child and t.child_exemption != s.child_exemption",
    "t.state = s.state and t.salary = s.salary and t.rate != s.rate",
    "t.state = s.state and t.salary < s.salary and t.rate > s.rate",
    "t.marital_status = s.marital_status and t.single_exemption < s.single_exemption"
    " and t.married_exemption != s.married_exemption",
    "t.single_exemption < s.single_exemption and t.married_exemption < s.married_exemption",
)


def planted(table: str = "tax") -> list[str]:
    """The rules that hold at every size, as the grammar of constraints writes them."""
    return [f"{table}: not ({rule})" for rule in _RULES]


def rows(number: int, seed: int = 0) -> pa.Table:
    """So many tax records."""
    row = np.arange(number)
    phone, area = _phones(row, number, seed)
    phones = int(phone.max(initial=0)) + 1
    state = area % len(STATES)
    # A zip code belongs to one state, and to one of the cities whose names other states have too.
    zip_code = state + len(STATES) * _below(ZIPS // len(STATES), row, seed, 1)
    city = _below(CITIES, zip_code, seed, 2)
    first_name = _below(FIRST_NAMES, row, seed, 3)
    married, child = _below(2, row, seed, 4), _below(3, row, seed, 5) // 2
    # The smaller of two is drawn: low salaries are common.
    salary = np.minimum(_below(19_500, row, seed, 6), _below(19_500, row, seed, 7))
    salary = 10 * salary + 5_000
    of_state = np.arange(len(STATES))
    single, by_child = (100 * _below(40, of_state, seed, k) + 1_000 for k in (8, 9))
    names = [
        _named("F", FIRST_NAMES, first_name),
        _named("L", LAST_NAMES, _below(LAST_NAMES, row, seed, 10)),
        _chosen(("F", "M"), first_name % 2),
        _chosen([f"{200 + code}" for code in range(AREAS)], area),
        _chosen([f"{n // 10_000:03d}-{n % 10_000:04d}" for n in range(phones)], phone),
        _named("C", CITIES, city),
        _chosen(STATES, state),
        _chosen([f"{code:05d}" for code in range(ZIPS)], zip_code),
        _chosen(("S", "M"), married),
        _chosen(("N", "Y"), child),
    ]  # fmt: skip
    numbers = [
        salary,
        _rates(state, salary, seed),
        np.where(married, 0, single[state]),
        np.where(married, 2 * single[state], 0),
        np.where(child, by_child[state], 0),
    ]
    return pa.table([*names, *map(pa.array, numbers)], schema=SCHEMA)


def write(path: Path, number: int, seed: int = 0) -> None:
    """Write so many tax records, as CSV where the name ends so, else as Parquet."""
    table = rows(number, seed)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path)


def _phones(row: I64, number: int, seed: int) -> tuple[I64, I64]:
    """Phone numbers and area codes, no two rows with both alike."""
    numbers = NUMBERS
    while numbers * AREAS < number:
        numbers *= 10
    turn, phone = np.divmod(row, numbers)
    # Each turn gives all numbers, in another order, to the next area code.
    area = (_below(AREAS, phone, seed, 11) + turn) % AREAS
    return phone, area


def _rates(state: I64, salary: I64, seed: int) -> NDArray[np.float64]:
    """Rates by state, which rise with the salary in steps, at other salaries in every state."""
    of_state = np.arange(len(STATES))
    lowest, rise = 20 + _below(200, of_state, seed, 12), 5 + _below(60, of_state, seed, 13)
    step = 10_000 + 500 * _below(40, of_state, seed, 14)
    rates = lowest[state] + rise[state] * (salary // step[state])
    return np.where(state % UNTAXED, rates / 100, 0.0)


def _below(end: int, number: I64, seed: int, draw: int) -> I64:
    """Numbers below ``end``, drawn for other numbers: SplitMix64 of number, seed and draw, which
    is the same under every version of NumPy."""
    with np.errstate(over="ignore"):
        salt = np.uint64(draw + 64 * seed) * np.uint64(0xD1B54A32D192ED03)
        word = number.astype(np.uint64) + salt
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            word = (word + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(factor)
            word ^= word >> np.uint64(shift)
        word ^= word >> np.uint64(31)
    return (word % np.uint64(end)).astype(np.int64)


def _named(letter: str, number: int, chosen: I64) -> pa.Array:
    return _chosen([f"{letter}{n}" for n in range(number)], chosen)


def _chosen(values: list[str] | tuple[str, ...], chosen: I64) -> pa.Array:
    return pa.array(values, pa.string()).take(pa.array(chosen))


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[1].isdecimal():
        sys.exit("usage: python -m benchmarks.tax ROWS FILE")
    write(Path(sys.argv[2]), int(sys.argv[1]))
