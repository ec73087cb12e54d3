"""Every setting, read and checked once, into one frozen object.

``values`` reads values by their kind, ``readers`` is the table of settings, ``names`` tells which one was meant by a
name that is none, ``extractor`` loads a function of the user's, and ``config`` is what comes of it.
"""

from __future__ import annotations

from scrapy_neardup.config.config import Config, is_enabled, item_fields
from scrapy_neardup.config.extractor import load_extractor
from scrapy_neardup.config.readers import (
    ACTIONS,
    AUTO,
    DEFAULT_FIELDS,
    DEFAULT_POLICY,
    DROP,
    PASS,
    SETTINGS,
    TAG,
    many_pages,
    many_workers,
    read_keep_policy,
)

__all__ = [
    "ACTIONS",
    "AUTO",
    "DEFAULT_FIELDS",
    "DEFAULT_POLICY",
    "DROP",
    "PASS",
    "SETTINGS",
    "TAG",
    "Config",
    "is_enabled",
    "item_fields",
    "load_extractor",
    "many_pages",
    "many_workers",
    "read_keep_policy",
]
