"""Two dirty tables: 6,000 invoices and the 300 customers that they are for, with 14 errors.

They are made, not shipped, and the same each time. What is wrong is written down in
:data:`ERRORS`; ``corrections/`` repairs it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random

_CURRENCIES = {
    "CH": ("CHF", "8.1"), "DE": ("EUR", "19"), "FR": ("EUR", "20"), "GB": ("GBP", "20"),
    "PL": ("PLN", "23"), "SE": ("SEK", "25"), "US": ("USD", "0"),
}  # fmt: skip
_CUSTOMERS = 300
_INVOICES = 6000
_A_DAY = 20

CUSTOMER_COLUMNS = ("customer_id", "name", "country", "email", "tier")
INVOICE_COLUMNS = (
    "invoice_no", "customer_id", "customer_name", "country", "currency", "vat_rate", "issued",
    "net", "status",
)  # fmt: skip

ERRORS: dict[tuple[int, str], Callable[[str], str]] = {
    # The place of an invoice, the column of the cell, and what becomes of it.
    (411, "currency"): lambda _: "CHF",
    (1207, "currency"): lambda _: "eur",
    (2950, "currency"): lambda _: "USD",
    (5100, "currency"): lambda _: "EUR",
    (702, "customer_name"): str.lower,
    (2601, "customer_name"): str.lower,
    (4444, "customer_name"): str.lower,
    (1500, "customer_id"): lambda value: value.replace("C00", "CO0"),
    (2222, "customer_id"): lambda value: value.replace("C00", "C0O"),
    (3030, "customer_id"): lambda value: value.replace("C00", "C0"),
    (5999, "customer_id"): lambda _: "C00999",
}
"""Wrong cells."""

REPEATED = (1001, 3600, 4801)
"""Invoices that have the number of the one before."""


def write_to(directory: Path) -> None:
    """Write the tables into ``directory``, which is created if it does not exist."""
    random = Random(7)
    customers = [_customer(random, number) for number in range(1, _CUSTOMERS + 1)]
    right = [_invoice(random, place, customers) for place in range(_INVOICES)]
    wrong = [[*row] for row in right]
    for (place, column), error in ERRORS.items():
        at = INVOICE_COLUMNS.index(column)
        wrong[place][at] = error(wrong[place][at])
    for place in REPEATED:
        wrong[place][0] = wrong[place - 1][0]
    places = sorted({*REPEATED, *(place for place, _ in ERRORS)})
    _write(directory / "customers.csv", CUSTOMER_COLUMNS, customers)
    _write(directory / "invoices.csv", INVOICE_COLUMNS, wrong)
    for kind, rows in (("deletes", wrong), ("inserts", right)):
        path = directory / "corrections" / f"invoices-{kind}.csv"
        _write(path, INVOICE_COLUMNS, [rows[place] for place in places])


def _customer(random: Random, number: int) -> list[str]:
    kind = random.choice(["Acme", "Nord", "Blue", "Kraft", "Solar", "Delta", "Iron"])
    name = f"{kind} {random.choice(['Labs', 'Works', 'Group', 'Foods', 'Media'])} {number}"
    country, tier = random.choice([*_CURRENCIES]), random.choice(["gold", "silver", "bronze"])
    return [f"C{number:05}", name, country, f"info@{kind.lower()}{number}.example", tier]


def _invoice(random: Random, place: int, customers: Sequence[Sequence[str]]) -> list[str]:
    customer_id, name, country, *_ = random.choice(customers)
    currency, vat_rate = _CURRENCIES[country]
    issued = date(2026, 1, 1) + timedelta(days=place // _A_DAY)
    net, status = random.randrange(100, 900_000), random.choice(["paid", "open", "overdue"])
    return [
        f"INV-{place + 1:06}", customer_id, name, country, currency, vat_rate, issued.isoformat(),
        f"{net // 100}.{net % 100:02}", status,
    ]  # fmt: skip


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])
