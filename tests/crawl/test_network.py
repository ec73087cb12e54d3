"""Crawls whose way to the server of their state is bad: no item is lost, none comes twice, no verdict is guessed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.opening import close_store, open_store
from tests.crawl.conftest import NEWS, Crawl, Result, Site
from tests.crawl.pages import html
from tests.server.network import Network, network
from tests.server.redis_server import Server

COPIES = [f"/{number}" for number in range(12)]


@pytest.fixture
def bad(redis_server: Server) -> Iterator[Network]:
    with network(redis_server) as found:
        yield found


@contextmanager
def beside(step: Callable[[threading.Event], None], begun: Callable[[], object]) -> Iterator[None]:
    """Take that step over and over, from when it has begun until the block ends."""
    over = threading.Event()

    def work() -> None:
        while not begun() and not over.wait(0.01):
            pass
        while not over.is_set():
            step(over)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def crawled(news: Site, crawl: Crawl, bad: Network, state: str, **settings: object) -> Result:
    """A crawl of two articles and many copies of one of them through that network."""
    news.content |= dict.fromkeys(COPIES, html("bridge-zh"))
    waits = {"NEARDUP_STORE": bad.url(state), "NEARDUP_ON_STORE_ERROR": "wait"}
    return crawl([*NEWS, *COPIES], **waits, **settings)


def filed(server: Server, state: str) -> Callable[[], object]:
    return lambda: server.client.exists(f"{{neardup:{state}}}~#")


def holds_together(server: Server, state: str) -> None:
    """All is sealed, and every row is there that another one speaks of."""
    store = open_store(server.url(state), None)
    assert check(store).sound
    assert list(store.rows(b"j")) == []
    close_store(store)


def test_broken_connections_cost_nothing_but_time(news: Site, crawl: Crawl, bad: Network, redis_server: Server) -> None:
    """Also where the server did what it was told and its answer was lost."""
    state = redis_server.new_state()
    chance = random.Random(5)
    bad.delay = 0.005  # so that something is on its way

    def breaks(over: threading.Event) -> None:
        bad.break_off()
        over.wait(chance.uniform(0.02, 0.15))

    with beside(breaks, begun=filed(redis_server, state)):
        found = crawled(news, crawl, bad, state, DOWNLOAD_DELAY=0.03)
    assert bad.broken > 10
    assert found.paths == NEWS[:2], found.log
    assert (found.count("unique"), found.count("duplicate"), found.count("errors")) == (2, 13, 0), found.log
    assert found.count("state/pages") == 15
    holds_together(redis_server, state)


def test_a_silent_network_is_waited_for(news: Site, crawl: Crawl, bad: Network, redis_server: Server) -> None:
    """For longer than an answer is waited for, without any connection being closed."""
    state = redis_server.new_state()

    def silence(over: threading.Event) -> None:
        bad.silent = True
        over.wait(7)
        bad.silent = False
        over.wait()

    with beside(silence, begun=filed(redis_server, state)):
        found = crawled(news, crawl, bad, state, DOWNLOAD_DELAY=0.05)
    assert found.paths == NEWS[:2], found.log
    assert (found.count("unique"), found.count("duplicate"), found.count("errors")) == (2, 13, 0), found.log
    assert found.count("state/pages") == 15
    assert found.log.count("does not answer") <= 2
    holds_together(redis_server, state)
