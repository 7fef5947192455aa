"""``python -m holdfast.sample DIR``: copy the sample shop into DIR."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.sample import copy_to

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit("usage: python -m holdfast.sample DIR")
copy_to(Path(sys.argv[1]))
