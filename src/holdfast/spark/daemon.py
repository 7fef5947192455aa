"""The process from which Spark forks Python workers."""

from __future__ import annotations

import gc

from pyspark import daemon


def serve() -> None:
    """Be that process, until Spark ends it."""
    # Nothing that is there by now is garbage: forked workers need not look through it.
    gc.freeze()
    daemon.manager()
