"""By what the very bytes of a page are known again, before anything in them is decoded or parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.page.raw import Raw


class Bodies:
    """Digests of what pages are read from, under the secret of a state, so that nobody can make two with one digest.

    ``rules``: all that the verdict on a page depends on beside the page, its URL and what else the state holds. Once
    they have changed, every digest has, and each page is read once more.
    """

    def __init__(self, hashes: Keyed, rules: Mapping[str, Any]) -> None:
        self._hash = blake2b(key=hashes.secret, digest_size=8, person=b"neardup bodies")
        self._hash.update(_packed(rules))

    def of(self, raw: Raw, *about: object) -> int:
        """64 bits of a body and of all that decides how it is read; ``about``: what else is known of the page.

        0 for one of which only its own HTML can tell whether it is the page of its URL.

        >>> bodies = Bodies(Keyed(b"secret"), {})
        >>> bodies.of(Raw("u:1", b"<p>x")) == bodies.of(Raw("u:2", b"<p>x")) != bodies.of(Raw("u:1", "<p>x"))
        True
        """
        if not raw.is_named:
            return 0
        hashed = self._hash.copy()
        is_text = isinstance(raw.content, str)
        hashed.update(_packed([is_text, raw.content_type, *about]))
        hashed.update(raw.content.encode("utf-8", "surrogatepass") if isinstance(raw.content, str) else raw.content)
        return int.from_bytes(hashed.digest(), "big") or 1


def _packed(value: object) -> bytes:
    """As JSON, with its length before it."""
    packed = json.dumps(value, sort_keys=True, default=repr).encode()
    return len(packed).to_bytes(8, "big") + packed
