"""A process that is at work on a state, as a crawl is, until its standard input ends.

    python -m tests.kv.writer URL

Pages come, are updated, sealed and rolled back; a line is printed once the first ones are there. Records are
large, so that tables are made and merged all the time.
"""

from __future__ import annotations

import random
import select
import sys

from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record


def main() -> None:
    store = open_store(sys.argv[1], {})
    draw = random.Random(7)
    generation = store.journal.begin("writer")
    urls: list[str] = []
    steps = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        step(store, generation, draw, urls)
        steps += 1
        if steps == 200:
            sys.stdout.write("at work\n")
            sys.stdout.flush()
        if steps % 1000 == 0:
            store.journal.seal(generation, list(store.journal.unsealed(generation))[:800])
    store.journal.end(generation)
    close_store(store)


def step(store: PageStore, generation: int, draw: random.Random, urls: list[str]) -> None:
    kind = draw.random()
    if kind < 0.05:
        last = next(store.journal.unsealed(generation), 0)
        if last:
            store.journal.roll_back(generation, last)
        return
    known = store.find(draw.choice(urls)) if urls and kind < 0.2 else None
    url = known.url if known else f"http://{draw.randrange(50)}.example/{draw.getrandbits(60)}"
    id = store.new_id()
    keys = tuple(draw.getrandbits(40) for _ in range(6))
    record = Record(id, url, id, 1.0, keys, draw.randbytes(1500))
    store.add(record, generation=generation, replaces=known.id if known else 0)
    if known is None:
        urls.append(url)


if __name__ == "__main__":
    main()
