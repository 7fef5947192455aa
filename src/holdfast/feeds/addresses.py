"""Which feed an address means: ``delta:lake/orders``, or the path of a folder."""

from __future__ import annotations

import importlib

from holdfast.feeds.contract import Feed, Given
from holdfast.model.errors import InputError

ADAPTERS = {"delta": "holdfast.feeds.delta", "kafka": "holdfast.feeds.kafka"}
"""The modules of feeds, by what their addresses begin with. Without any of these an address is that
of a folder."""


def opened(address: str, given: Given) -> Feed:
    """The feed of an address; its adapter is imported only now."""
    if not address:
        raise InputError("the address of the feed is empty; give --from, such as a folder of files")
    module = ADAPTERS.get(address.partition(":")[0], "holdfast.feeds.folder")
    feed: Feed = importlib.import_module(module).opened(address, given)
    return feed
