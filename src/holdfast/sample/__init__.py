"""A sample shop: four tables and three days of changes, as CSV files; and two dirty tables.

``python -m holdfast.sample DIR`` copies the files into DIR. What is planted in them is
written down in :mod:`holdfast.sample.make`, which wrote them; that in dirty tables in
:mod:`holdfast.sample.invoices`, which makes these.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree

DESIGNED = (
    "customers: key(customer_id)",
    "customers: key(email)",
    "customers: city -> country",
    "products: key(product_id)",
    "products: key(name, size)",
    "orders: key(order_id)",
    "orders: key(customer_id, ordered_on)",
    "orders: not (t.ordered_on > t.shipped_on)",
    "orders: not (t.order_id <= s.order_id and t.ordered_on > s.ordered_on)",
    "orders(customer_id) in customers(customer_id)",
    "order_items: key(order_id, line_no)",
    "order_items: key(order_id, product_id)",
    "order_items: product_id -> unit_price",
    "order_items: quantity, unit_price -> total",
    "order_items: not (t.quantity <= s.quantity and t.discount > s.discount)",
    "order_items: not (t.product_id = s.product_id and t.quantity <= s.quantity"
    " and t.total > s.total)",
    "order_items(order_id) in orders(order_id)",
    "order_items(product_id) in products(product_id)",
)
"""What ``make.py`` says that holds by design."""


def copy_to(directory: Path) -> None:
    """Copy the sample files into ``directory``, which is created if it does not exist."""
    with as_file(files(__name__) / "shop") as shop:
        copytree(shop, directory, dirs_exist_ok=True)
