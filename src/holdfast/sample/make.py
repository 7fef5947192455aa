"""Makes the sample shop, byte for byte the same every time.

What holds in the four tables by design, so that a first profile finds few keys and good ones:

    customers     keys {customer_id}, {email}; city → country
    products      keys {product_id}, {name, size}
    orders        keys {order_id}, {customer_id, ordered_on}; shipped_on ≥ ordered_on;
                  a higher order_id is never ordered earlier
    order_items   keys {order_id, line_no}, {order_id, product_id}; product_id → unit_price;
                  a larger quantity never has a smaller discount; the total follows from
                  quantity, unit_price and discount, and of one product rises with quantity

Foreign keys: orders.customer_id, order_items.order_id and order_items.product_id.
In a table this small, chance would make keys of many other columns. Each table therefore has
planted pairs of rows that agree on everything except what its keys need ("near-duplicates" below).

Three days follow. *Monday* only adds rows and changes no key. *Tuesday* repeats an email, has a
customer order twice in one day, and uses an (order_id, line_no) again. *Wednesday* takes
Tuesday's mistakes back, by deletes and an update, and with them the keys return.

``python -m holdfast.sample.make`` writes the files again beside this module.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import TypeVar

Row = tuple[object, ...]
T = TypeVar("T")

CUSTOMERS = ("customer_id", "email", "name", "city", "country", "joined_on", "tier")
PRODUCTS = ("product_id", "name", "size", "category", "price")
ORDERS = ("order_id", "customer_id", "ordered_on", "shipped_on", "channel", "note")
ORDER_ITEMS = (
    "order_id", "line_no", "product_id", "quantity", "unit_price", "discount", "total",
)  # fmt: skip

FIRST_NAMES = (
    "Ada", "Bruno", "Chidi", "Dana", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas",
    "Kavya", "Lena", "Mateo", "Noor", "Olga", "Pavel", "Quinn", "Rosa", "Sven", "Tomoko",
)  # fmt: skip
LAST_NAMES = (
    "Adeyemi", "Bauer", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Horvat",
    "Ito", "Jensen", "Kaya", "Lindqvist", "Moreau", "Novak", "Okafor", "Peña",
)  # fmt: skip
CITIES = (
    ("Lisbon", "PT"), ("Porto", "PT"), ("Lyon", "FR"), ("Nantes", "FR"), ("Graz", "AT"),
    ("Bergen", "NO"), ("Oslo", "NO"), ("Málaga", "ES"), ("Zadar", "HR"), ("Gdańsk", "PL"),
)  # fmt: skip
NOTES = ("gift", "leave at the door", "call first, then ring", 'write "thank you"', "no bag")
GOODS = (
    ("Espresso, dark", "coffee", 690),
    ("Espresso, mild", "coffee", 690),
    ("Filter blend", "coffee", 640),
    ("Decaf", "coffee", 720),
    ("Sencha", "tea", 540),
    ("Earl Grey", "tea", 480),
    ("Rooibos", "tea", 450),
    ("Mint, whole leaf", "tea", 450),
    ("Oat biscuits", "pantry", 320),
    ("Dark chocolate", "pantry", 390),
    ("Honey", "pantry", 580),
    ("Cup", "kitchen", 950),
)
SIZES = ("small", "medium", "large")

FIRST_DAY = date(2026, 1, 5)
DAYS = 88
MONDAY = date(2026, 4, 6)
TUESDAY = MONDAY + timedelta(days=1)


class Dice:
    """Seeded choices that come out the same under every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random  # the one method whose sequence is guaranteed

    def below(self, n: int) -> int:
        return int(self._random() * n)

    def pick(self, things: Sequence[T]) -> T:
        return things[self.below(len(things))]


def files() -> dict[str, str]:
    """Every file of the sample: its path below the shop's folder, and its text."""
    dice = Dice(20260105)
    customers = _customers(dice)
    products = _products()
    orders = _orders(dice, customers)
    items = _order_items(dice, orders[:-2], products) + _twin_items(orders[-2:], products)

    next_order, next_customer = len(orders) + 1, len(customers) + 1
    monday_orders = _days_orders(dice, next_order, customers, MONDAY, 20)
    monday_items = _order_items(dice, monday_orders, products)
    next_order += len(monday_orders)
    tuesday_orders = _days_orders(dice, next_order, customers, TUESDAY, 20)
    tuesday_items = _order_items(dice, tuesday_orders, products)

    # The same customer, the same day, another channel: only the channel tells the two apart.
    first = tuesday_orders[0]
    wrong_order = (next_order + len(tuesday_orders), *first[1:4], "phone", first[5])
    mended_order = (*wrong_order[:2], TUESDAY + timedelta(days=1), None, *wrong_order[4:])
    wrong_order_item = (wrong_order[0], *_line(1, products[0], 1))

    # A line number used again within an order: the same price, in the other of two sizes.
    order_id, line_no, product_id, *rest = next(row for row in monday_items if row[4] == "6.90")
    other = next(row[0] for row in products if row[4] == "6.90" and row[0] != product_id)
    wrong_item = (order_id, line_no, other, *rest)

    # A customer who registers again, with the same email.
    again = customers[41]
    wrong_customer = (next_customer, *again[1:5], TUESDAY, again[6])
    new_customer = (
        next_customer + 1, "tomoko.ito@example.org", "Tomoko Ito", "Graz", "AT", TUESDAY, None,
    )  # fmt: skip

    return {
        "customers.csv": _csv(CUSTOMERS, customers),
        "products.csv": _csv(PRODUCTS, products),
        "orders.csv": _csv(ORDERS, orders),
        "order_items.csv": _csv(ORDER_ITEMS, items),
        "monday/orders-inserts.csv": _csv(ORDERS, monday_orders),
        "monday/order_items-inserts.csv": _csv(ORDER_ITEMS, monday_items),
        "tuesday/customers-inserts.csv": _csv(CUSTOMERS, [wrong_customer, new_customer]),
        "tuesday/orders-inserts.csv": _csv(ORDERS, [*tuesday_orders, wrong_order]),
        "tuesday/order_items-inserts.csv": _csv(
            ORDER_ITEMS, [*tuesday_items, wrong_order_item, wrong_item]
        ),
        "wednesday/customers-deletes.csv": _csv(CUSTOMERS, [wrong_customer]),
        "wednesday/orders-updates.csv": _csv(ORDERS, [mended_order]),
        "wednesday/order_items-deletes.csv": _csv(ORDER_ITEMS, [wrong_item]),
    }


def write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def _customers(dice: Dice) -> list[Row]:
    rows: list[Row] = []
    for number in range(1, 151):
        first, last = dice.pick(FIRST_NAMES), dice.pick(LAST_NAMES)
        city, country = dice.pick(CITIES)
        # Written the other way round where a clerk typed it in.
        name = f"{last}, {first}" if dice.below(8) == 0 else f"{first} {last}"
        joined = FIRST_DAY - timedelta(days=dice.below(400))
        tier = dice.pick(("gold", "silver", None, None))
        email = f"{first}.{last}{number}@example.com".lower().replace("ñ", "n")
        rows.append((number, email, name, city, country, joined, tier))
    # Near-duplicates: one person with two accounts.
    rows.append((151, "ada.again@example.org", *rows[16][2:]))
    return rows


def _products() -> list[Row]:
    # Near-duplicates come by themselves: both espressos cost the same, and so do the first two
    # sizes.
    rows: list[Row] = []
    for name, category, price in GOODS:
        for size, extra in zip(SIZES, (0, 0, 250), strict=True):
            rows.append((len(rows) + 1, name, size, category, _money(price + extra)))
    return rows


def _orders(dice: Dice, customers: Sequence[Row]) -> list[Row]:
    rows: list[Row] = []
    for day in range(DAYS):
        count = 2 + dice.below(4)
        rows += _days_orders(dice, len(rows) + 1, customers, FIRST_DAY + timedelta(days=day), count)
    # Near-duplicates: on one day two customers, and one customer on two days, with all else alike.
    last = FIRST_DAY + timedelta(days=DAYS)
    for customer, ordered in ((7, last), (8, last), (7, last + timedelta(days=1))):
        shipped = last + timedelta(days=2)
        rows.append((len(rows) + 1, customer, ordered, shipped, "web", None))
    return rows


def _days_orders(
    dice: Dice, first_id: int, customers: Sequence[Row], day: date, count: int
) -> list[Row]:
    """Orders of one day, each by another customer."""
    start = dice.below(len(customers))
    rows: list[Row] = []
    for n in range(count):
        customer = customers[(start + 13 * n) % len(customers)][0]
        shipped = None if dice.below(9) == 0 else day + timedelta(days=dice.below(5))
        channel = dice.pick(("web", "web", "web", "shop"))
        note = dice.pick(NOTES) if dice.below(6) == 0 else None
        rows.append((first_id + n, customer, day, shipped, channel, note))
    return rows


def _order_items(dice: Dice, orders: Sequence[Row], products: Sequence[Row]) -> list[Row]:
    rows: list[Row] = []
    for order in orders:
        start = dice.below(len(products))
        for line in range(1 + dice.below(4)):
            # Seven is prime to the number of products, so a product comes once per order.
            product = products[(start + 7 * line) % len(products)]
            quantity = dice.pick((1, 1, 1, 2, 2, 3, 5, 6, 10, 12))
            rows.append((order[0], *_line(line + 1, product, quantity)))
    return rows


def _twin_items(orders: Sequence[Row], products: Sequence[Row]) -> list[Row]:
    # Near-duplicates: an order with two products alike in price, and two orders that share a line.
    one, other = orders
    first, second = (_line(n, products[n - 1], 1) for n in (1, 2))
    return [(one[0], *first), (one[0], *second), (other[0], *first)]


def _line(line_no: object, product: Row, quantity: int) -> Row:
    """The rest of an order item: line, product, quantity, unit price, discount, total."""
    percent = 10 if quantity >= 10 else 5 if quantity >= 5 else 0
    cents = int(str(product[4]).replace(".", ""))
    total = (cents * quantity * (100 - percent) + 50) // 100
    return (line_no, product[0], quantity, product[4], f"0.{percent:02d}", _money(total))


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _csv(header: Sequence[str], rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # None is written as an empty cell
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


if __name__ == "__main__":
    write(Path(__file__).with_name("shop"), files())
