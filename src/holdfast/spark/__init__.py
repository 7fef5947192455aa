"""The only room that imports pyspark: sessions, sources, and placing tasks on workers."""

from __future__ import annotations

import re

from holdfast.model.engine import WITHOUT_SPARK
from holdfast.model.errors import SetupError

OLDEST = (4, 1)
"""The oldest PySpark that has what is used here."""

_INSTALL = f"install one with: pip install 'holdfast[local]', {WITHOUT_SPARK}"


def _expect_pyspark() -> None:
    """Said here, before any module of this folder imports from it, in one sentence."""
    needed = f"PySpark {'.'.join(map(str, OLDEST))} or newer"
    try:
        import pyspark
    except ImportError as missing:
        raise SetupError(
            f"Holdfast needs {needed}, and there is none ({missing}); {_INSTALL}"
        ) from missing
    version = re.match(r"(\d+)\.(\d+)", pyspark.__version__)
    if version and (int(version[1]), int(version[2])) < OLDEST:
        raise SetupError(
            f"Holdfast needs {needed}, but {pyspark.__file__} is {pyspark.__version__}; {_INSTALL}"
        )


_expect_pyspark()
