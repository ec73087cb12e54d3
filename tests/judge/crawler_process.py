"""One crawler in a process of its own, for tests that kill it: judges pages, writes what passed to a feed, seals it.

    python -m tests.judge.crawler_process URL NUMBER FEED

It goes through all articles in an order of its own, each from a host of its own, some twenty at once. An item of a page
that passed takes its time, and some are lost on the way. Those that came through stand in FEED, a line each, once that
was stored: as a crawl would do, in batches, each stored whole before its pages are sealed.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, Reservation
from scrapy_neardup.judge.remote import RemoteCrawl
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.server.engine import Redis
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import parse_url
from tests.build import story

ARTICLES = 30
LEASE = 1.5
#: What a process ends with that got no turn on a busy machine for longer than that; it is as good as killed.
NOT_HEARD_OF = 3
_AT_ONCE, _BATCH = 12, 10


def article(family: int, host: str) -> Page:
    name = f"{host}.example"
    return Page(f"http://{name}/{family}", f"标题{family}", text="".join(story(family, 8)) + f"{host}转载。", site=name)


async def crawl(url: str, number: int, feed: Path) -> None:
    method = make_method("cascade", {})
    kind, location = parse_url(url)
    store = open_at(kind, location, method.recipe())
    assert isinstance(store, RedisStore)
    detector = Detector(method, store, who=f"crawler {number}")
    errors: list[StoreError] = []
    shared = RemoteCrawl(detector, errors.append)
    chance = random.Random(f"{number} {os.getpid()}")
    there: list[tuple[int, int]] = []
    lost: set[int] = set()

    async def comes(family: int) -> None:
        page = article(family, f"host{number}x{chance.randrange(10**9)}")
        async with shared.judgement() as judgement:
            while isinstance(ruling := await judgement.check(page), Blocked):
                await judgement.wait(ruling.by, 30)
        assert ruling.verdict.kind in (Kind.UNIQUE, Kind.DUPLICATE), ruling
        if ruling.reservation is not None:
            await comes_through(family, ruling.reservation)

    async def comes_through(family: int, reservation: Reservation) -> None:
        await asyncio.sleep(chance.random() * 0.05)
        if chance.random() < 0.2:
            shared.release(reservation)
            lost.add(family)
        else:
            shared.commit(reservation, sealed=False)
            there.append((reservation.record.id, family))

    async def store_feed() -> None:
        await shared.finish()
        if errors:
            raise errors[0]
        done, there[:] = list(there), []
        name = feed.with_suffix(f".{os.getpid()}.{len(list(feed.parent.iterdir()))}")
        draft = name.with_name(f".{name.name}")
        draft.write_text("".join(f"{id} {family}\n" for id, family in done))
        draft.rename(name)
        # A kill right here leaves a feed of which the state knows nothing: as of any crawl.
        shared.seal([id for id, _ in done])
        await shared.finish()
        if errors:
            raise errors[0]

    families = list(range(ARTICLES)) * 2
    chance.shuffle(families)
    todo = families
    while todo:
        for at in range(0, len(todo), _AT_ONCE):
            await asyncio.gather(*map(comes, todo[at : at + _AT_ONCE]))
            if len(there) >= _BATCH:
                await store_feed()
        todo = sorted(lost)
        lost.clear()
    await store_feed()
    detector.end()
    await shared.close()
    store.close()


if __name__ == "__main__":
    Redis.lease = LEASE
    try:
        asyncio.run(crawl(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
    except StoreError as error:
        if "was silent for" in str(error):
            os._exit(NOT_HEARD_OF)
        raise
