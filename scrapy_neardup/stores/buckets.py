"""Rows in dictionaries that have no order, in buckets: neither a scan nor a write touches more than a handful of them.

The longest prefixes that are ever scanned are a letter and 8 bytes, and of postings a letter and a narrow key. What
shares these lives in one bucket.
"""

from __future__ import annotations

_PREFIX, _OF_POSTINGS = 9, 6
_POSTINGS = b"k"


def bucket(key: bytes) -> bytes:
    """The name of a row's bucket."""
    return key[: _OF_POSTINGS if key.startswith(_POSTINGS) else _PREFIX]


def is_in_one(prefix: bytes) -> bool:
    """Whether all rows that begin so are in one bucket."""
    return len(prefix) >= (_OF_POSTINGS if prefix.startswith(_POSTINGS) else _PREFIX)
