"""Spark's daemon of Python workers, with every kernel loaded: ``spark.python.daemon.module``.

Workers are forked from it, so a new one can work at once instead of loading for some seconds. That
pays for a session that is there before its commands are.
"""

from __future__ import annotations

from holdfast import warm
from holdfast.spark import daemon

if __name__ == "__main__":
    warm.main()
    daemon.serve()
