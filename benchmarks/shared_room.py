"""Bytes a page in the memory of a redis-server, of originals with a title and nine keys, as articles have.

python benchmarks/shared_room.py [PAGES [PAGES_A_SECOND]]

The rows are written as they are, without judging, so that a hundred thousand pages take a minute. Sketches are random.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.opening import parse_url
from scrapy_neardup.state.record import Record

PARTS = {b"r": "records", b"e": "titles", b"k": "postings", b"u": "URLs", b"/": "directory"}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else 100.0
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", "0", "--unixsocket", f"{folder}/s", "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            kind, location = parse_url(f"unix://{folder}/s?state=a")
            store = kind(location, {"method": "none"})
            assert isinstance(store, RedisStore)
            client = store.kv.link.call(lambda client: client)
            before = client.info("memory")["used_memory"]
            fill(store, count, round(1e9 / rate))
            taken = client.info("memory")["used_memory"] - before
            found: Counter[str] = Counter()
            for key in client.scan_iter(count=10_000):
                found[PARTS.get(key[len(store.kv.link.prefix) :][:1], "rest")] += client.memory_usage(key) or 0
            parts = ", ".join(f"{part} {size / count:.0f}" for part, size in found.most_common())
            print(f"{taken / count:.0f} bytes a page of {count:,} ({parts})")
            store.close()
        finally:
            server.terminate()
            server.wait()


def fill(store: RedisStore, count: int, step: int) -> None:
    chance, begun = random.Random(1), 1_790_000_000
    title = Evidence(letters=1500, title="标题" * 8).pack()
    for at in range(0, count, 200):
        changes = Changes()
        for number in range(at, min(count, at + 200)):
            id = begun * 10**9 + number * step
            url = f"https://news{number % 50}.example.com/2026/{number % 12 + 1:02d}/article-{number}.html"
            record = Record(id, url, id, 1.0, tuple(chance.getrandbits(40) for _ in range(9)), chance.randbytes(245))
            for key in record.keys:
                changes.put(layout.posting_key(key, id), b"")
            changes.put(layout.record_key(id), record.pack())
            changes.put(layout.evidence_key(id), title)
            changes.put(layout.url_key(url, store.hashes), layout.pack_seen(id, begun))
        store._pages = at
        store.kv.write(changes, sync=False)


if __name__ == "__main__":
    main()
