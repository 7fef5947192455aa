"""Types of times by name: to the microsecond, as Spark has them, or to the nanosecond."""

from __future__ import annotations

import re

_NANOS = re.compile(r"\b(timestamp|timestamp_ntz|interval day to second)\(9\)")


def in_microseconds(name: str) -> str:
    """The type with microseconds in place of other precisions; any other as it is.

    >>> in_microseconds("timestamp_ntz(9)"), in_microseconds("array<time(9)>")
    ('timestamp_ntz', 'array<time(6)>')
    >>> in_microseconds("varchar(9)"), in_microseconds("interval day to second(9)")
    ('varchar(9)', 'interval day to second')
    """
    return re.sub(r"\btime\(\d\)", "time(6)", _NANOS.sub(r"\1", name))
