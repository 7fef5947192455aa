"""``python -m holdfast.sample DIR [shop | invoices]``: write sample tables into DIR."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.sample import copy_to, invoices

SAMPLES = {"shop": copy_to, "invoices": invoices.write_to}

arguments = [*sys.argv[1:], "shop"][: max(2, len(sys.argv) - 1)]
if len(arguments) != 2 or arguments[0].startswith("-") or arguments[1] not in SAMPLES:
    sys.exit("usage: python -m holdfast.sample DIR [shop | invoices]")
SAMPLES[arguments[1]](Path(arguments[0]))
