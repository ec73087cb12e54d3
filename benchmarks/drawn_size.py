"""Bytes of state a page of a method, part by part, of more pages than can be fingerprinted in a while.

    python benchmarks/drawn_size.py METHOD PAGES ... [--store leveldb|sqlite] [--directory DIR]

As many keys, and as long a sketch, as the method makes of articles of 1,500 letters; what is in them is drawn, as
hashes look like that. Those of ``simhash`` are the keys of a fingerprint that is drawn, so with many pages each is that
of several. URLs have some 60 letters, none of the pages is a copy, and no more is kept of them than is needed. All rows
of a kind are written at once, in their order. The store is compacted when it is weighed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, groupby, islice
from operator import itemgetter

import numpy as np
from growth import id_of, parts
from synthetic import pages as synthetic_pages

from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.methods.literature import SimHash
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.state import layout
from scrapy_neardup.state.opening import STORES
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

BATCH = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description="Bytes of state a page of a method.")
    parser.add_argument("method")
    parser.add_argument("pages", type=int, nargs="+")
    parser.add_argument("--store", default="leveldb")
    parser.add_argument("--directory", default=None)
    given = parser.parse_args()
    method = make_method(given.method, {})
    models = [method.fingerprint(page) for page in synthetic_pages(200)]
    for pages in given.pages:
        with tempfile.TemporaryDirectory(dir=given.directory) as directory:
            begun = time.monotonic()
            with closing(open_state(STORES[given.store], f"{directory}/state", method.recipe())) as store:
                letters = fill(store, method.with_hashes(store.hashes), models, pages)
                store.compact()
                time.sleep(3)  # until the files that are no more in use are gone
                print(
                    f"{method.name}, {given.store}, {pages:,} pages, URLs of {letters / pages:.0f} "
                    f"letters: {store.size() / pages:.1f} bytes a page ({time.monotonic() - begun:.0f} s)",
                    flush=True,
                )
                for line in (*parts(store), *unpacked(store)):
                    print(line, flush=True)


def fill(store: PageStore, method: Method, models: list[Fingerprint], pages: int) -> int:
    """File pages; returns how many letters their URLs have."""
    chance, letters = random.Random(1), 0
    keys, ids, urls = array("Q"), array("Q"), array("Q")

    def records() -> Iterator[Row]:
        nonlocal letters
        for number in range(pages):
            record = drawn(number, method, models[number % len(models)], chance)
            letters += len(record.url)
            keys.extend(keys_of(record.keys))
            ids.extend([record.id] * (len(keys) - len(ids)))
            urls.append(layout.last_id(layout.url_key(record.url, store.hashes)))
            yield layout.record_key(record.id), record.pack()

    write(store, records())
    write(store, posted(keys, ids, store))
    order = np.argsort(np.frombuffer(urls, np.uint64)).tolist()
    named = ((urls[number], id_of(number)) for number in order)
    write(store, ((b"u" + url.to_bytes(8, "big"), layout.pack_seen(id, id / 1e9)) for url, id in named))
    store.pages = pages
    return letters


def write(store: PageStore, rows: Iterator[Row]) -> None:
    """Write rows, a batch at a time."""
    while batch := dict(islice(rows, BATCH)):
        store.write(Changes(batch))


def posted(keys: array[int], ids: array[int], store: PageStore) -> Iterator[Row]:
    """The rows of postings, as they are when pages come one after the other."""
    numbers, pages = np.frombuffer(keys, np.uint64), np.frombuffer(ids, np.uint64)
    order = np.lexsort((pages, numbers))
    slices = (order[at : at + 1_000_000] for at in range(0, len(order), 1_000_000))  # lists of all would be gigabytes
    pairs = chain.from_iterable(zip(numbers[some].tolist(), pages[some].tolist(), strict=True) for some in slices)
    for key, some in groupby(pairs, key=itemgetter(0)):
        changes = Changes()
        for _, id in some:
            store._rows.postings.file((key,), id, changes)
        yield from sorted(changes.puts.items())


def drawn(number: int, method: Method, model: Fingerprint, chance: random.Random) -> Record:
    """The page with a number, with keys and sketch as many and as long as those of a model."""
    id = id_of(number)
    url = f"https://news{number % 50}.example.com/2026/{number % 12 + 1:02d}/society/article-{number:08}.html"
    if isinstance(method, SimHash):
        keys = tuple(method.keys(chance.getrandbits(64)))
    else:
        keys = tuple(chance.getrandbits(64) for _ in model.keys)
    # What a sketch begins with says how it is laid out, and is not drawn.
    return Record(id, url, id, 1.0, keys, model.sketch[:13] + chance.randbytes(len(model.sketch) - 13))


def unpacked(store: PageStore) -> Iterator[str]:
    """What each kind of row takes before it is packed."""
    sizes, rows = Counter[bytes](), Counter[bytes]()
    for key, value in store.rows(b""):
        sizes[key[:1]] += len(key) + len(value)
        rows[key[:1]] += 1
    for letter, size in sizes.most_common():
        many = rows[letter] / store.pages
        yield f"{'':>10}   {size / store.pages:6.1f} bytes a page before packing, {many:.2f} rows: {letter.decode()}"


if __name__ == "__main__":
    main()
