"""Why feeds stopped: a small file for each in ``feeds/``, apart from versions, as nothing is
committed where a feed stops. It is there until the feed goes on, and nothing depends on it."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress

from holdfast.model.following import FeedStop
from holdfast.model.records import FormError, from_form
from holdfast.store.storage import Storage

_FOLDER = "feeds"


def read(storage: Storage) -> dict[str, FeedStop]:
    """What is known of feeds that stopped, by their names."""
    stops = []
    for name in storage.entries(_FOLDER):
        # One that cannot be read is damaged, or of a feed that goes on right now.
        with suppress(OSError, ValueError, FormError):
            stops.append(from_form(FeedStop, json.loads(storage.read(f"{_FOLDER}/{name}"))))
    return {stop.feed: stop for stop in stops}


def keep(storage: Storage, stop: FeedStop) -> None:
    """Say why a feed stopped, in place of what was said before."""
    storage.replace(_name(stop.feed), json.dumps(stop.to_dict()).encode())


def forget(storage: Storage, feed: str) -> None:
    """A feed goes on."""
    with suppress(FileNotFoundError):
        storage.delete(_name(feed))


def _name(feed: str) -> str:
    return f"{_FOLDER}/{hashlib.sha256(feed.encode()).hexdigest()[:16]}.json"
