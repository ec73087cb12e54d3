"""The sentences of a page that says something of its own are counted, once."""

from __future__ import annotations

from scrapy_neardup.model import Fingerprint
from scrapy_neardup.stores import Store


def note_once(store: Store, url: str, site: str, fingerprint: Fingerprint, *, everywhere: bool = True) -> None:
    """Count the sentences of a page, though it was taken back in between; raises StoreError.

    Those of a copy count for its site alone: the text of an article that many sites have is not boilerplate.

    Counted twice, its own sentences would be taken for those of its site. The page is marked among them, and so
    forgotten when they are.
    """
    if len(fingerprint.sentences):
        store.note(fingerprint.sentences, site, everywhere=everywhere, page=store.hashes.short(f"page {url}"))
