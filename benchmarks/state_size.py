"""Bytes of state a page on disk: for originals, then for titles and for copies.

python benchmarks/state_size.py [PAGES [leveldb|sqlite]]
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from synthetic import pages

from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep
from scrapy_neardup.state.urls import STORES


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for name in [sys.argv[2]] if len(sys.argv) > 2 else ["leveldb", "sqlite"]:
        with tempfile.TemporaryDirectory() as directory:
            store: PageStore = open_at(STORES[name], f"{directory}/state", {})
            found = fill(store, pages(count), Keep.NOTHING)
            size = packed(store)
            print(f"{name}: {size / store.pages:.0f} bytes a page ({store.pages} pages, {found} taken for copies)")
            fill(store, others(count // 10, 2), Keep.NOTHING)
            bare, size = packed(store) - size, packed(store)
            fill(store, others(count // 10, 3), Keep.EVIDENCE)
            titled, size = packed(store) - size, packed(store)
            print(f"{name}: {(titled - bare) / (count // 10):.0f} bytes a title, of a page that is no copy")
            for keep in (Keep.NOTHING, Keep.EVIDENCE, Keep.TEXTS):
                found, before = fill(store, copies(count // 10, keep.value), keep), size
                size = packed(store)
                print(f"{name}: {(size - before) / found:.0f} bytes a copy, NEARDUP_KEEP = {keep.value!r}", flush=True)
            store.close()
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def fill(store: PageStore, found: Iterable[Page], keep: Keep) -> int:
    """Judge the pages and keep them; returns how many are copies."""
    detector = Detector(make_method("cascade", {}), store, who="benchmark", policy=Policy(keep=keep))
    copies = sum(detector.judge_now(page, sealed=False).is_copy for page in found)
    detector.seal()
    detector.end()
    return copies


def others(count: int, seed: int) -> Iterator[Page]:
    """Further pages, none a copy, under URLs as long as those of the first ones."""
    for page in pages(count, seed=seed):
        yield replace(page, url=page.url.replace("https://news", f"https://new{seed}"))


def copies(count: int, where: str) -> Iterator[Page]:
    """The first pages again, on another site, with another footer."""
    for page in pages(count):
        url = page.url.replace("https://", f"https://{where}.")
        yield replace(page, url=url, text=f"{page.text}转载请注明出处，联系本站编辑部。")


def packed(store: PageStore) -> int:
    database: Any = vars(store.kv)["_db"]
    if store.kv.scheme == "leveldb":
        database.compact_range(start=b"\0", stop=b"\xff")
    else:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store.kv.size()


if __name__ == "__main__":
    main()
