"""Spark's daemon of Python workers, with everything imported: ``spark.python.daemon.module``.

Workers are forked from it, so that only one process imports what they all need.
"""

from __future__ import annotations

from holdfast import flow
from holdfast.spark import daemon

__all__ = ["flow"]  # which imports all tasks

if __name__ == "__main__":
    daemon.serve()
