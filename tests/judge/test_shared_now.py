"""Records and scripts on a state that others judge by at the same time: of two that meet one article, one keeps it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scrapy_neardup import Deduplicator
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.records import JudgeNow, open_judge
from scrapy_neardup.judge.remote import RemoteJudgement
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.server.engine import Redis
from scrapy_neardup.state.opening import close_store, open_at, open_store
from scrapy_neardup.state.urls import parse_url
from tests.build import story
from tests.server.redis_server import Server

METHOD = make_method("cascade", {})


def article(family: int, host: str) -> dict[str, Any]:
    text = "".join(story(family, 8)) + f"{host}转载。"
    return {"url": f"http://{host}.example/{family}", "title": f"标题{family}", "text": text}


def page(family: int, host: str) -> Page:
    return Page(**article(family, host), site=f"{host}.example")


@pytest.fixture
def url(redis_server: Server) -> str:
    return redis_server.url(redis_server.new_state())


@contextmanager
def opened(url: str, wait: float = 10.0) -> Iterator[JudgeNow]:
    """As of a process of its own: with connections and a lease of its own."""
    kind, location = parse_url(url)
    store = open_at(kind, location, METHOD.recipe())
    try:
        with open_judge(Detector(METHOD, store, who="test"), wait, sealed=True) as judge:
            yield judge
    finally:
        store.close()


def test_a_page_waits_for_what_another_is_about_to_say_of_a_copy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept meanwhile. If that takes too long it is judged without it, and known from then on."""
    monkeypatch.setattr(Redis, "lease", 2.0)
    with opened(url) as one, opened(url, wait=0.2) as hasty, opened(url) as patient:
        goes_on, is_filed = threading.Event(), threading.Event()
        filed = RemoteJudgement._register

        async def stays(self: RemoteJudgement) -> None:
            await filed(self)
            if self._page.url.startswith("http://a.example/"):
                is_filed.set()
                await asyncio.to_thread(goes_on.wait)

        monkeypatch.setattr(RemoteJudgement, "_register", stays)
        slow = threading.Thread(target=one, args=(page(1, "a"),))
        slow.start()
        is_filed.wait()
        threading.Timer(0.3, goes_on.set).start()
        begun = time.monotonic()
        assert patient(page(1, "c")).headline == "duplicate (near)"
        assert time.monotonic() - begun > 0.25
        slow.join()
        goes_on.clear()
        is_filed.clear()
        slow = threading.Thread(target=one, args=(page(2, "a"),))
        slow.start()
        is_filed.wait()
        assert hasty(page(2, "b")).headline == "unjudged (in_flight)"
        assert hasty(page(2, "b")).headline == "unchanged"
        assert patient(page(2, "c")).headline == "duplicate (near)"
        goes_on.set()
        slow.join()


def test_two_of_one_process_share_a_state_and_one_that_only_looks_leaves_no_trace(url: str) -> None:
    """Also where a loop is running."""

    async def cell() -> None:
        with Deduplicator(url) as one, Deduplicator(url) as other:
            assert one.check(**article(1, "a"), remember=False).headline == "unique"
            assert [one.check(**article(1, host)).headline for host in "aba"] == [
                *("unique", "duplicate (near)", "unchanged")
            ]
            assert other.check(**article(1, "c"), remember=False).headline == "duplicate (near)"
            html = f"<html><body><article><p>{article(1, 'c')['text']}</p></article></body></html>"
            assert other.check(url="http://c.example/1", html=html).is_copy

    asyncio.run(cell())
    store = open_store(url, None)
    assert store.pages == 3
    assert check(store).sound
    assert list(store.rows(b"j")) == []
    close_store(store)


def test_a_page_after_a_failure_is_judged(url: str, redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(url) as now:
        monkeypatch.setattr(RemoteJudgement, "_fetch_earlier", _fails)
        with pytest.raises(StoreError, match="gone"):
            now(page(1, "a"))
        monkeypatch.undo()
        assert now(page(1, "b")).headline == "unique"
    state = url.rpartition("=")[2].encode()
    assert list(redis_server.client.scan_iter(match=b"{neardup:" + state + b"}p*", count=1000)) == []
    assert not redis_server.client.exists(b"{neardup:" + state + b"}~w")


def test_a_script_that_closes_nothing_ends(url: str) -> None:
    script = (
        f"from scrapy_neardup import Deduplicator; one = Deduplicator({url!r}); print(one.check(text='船来了' * 20))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("Verdict(outcome=<Outcome.UNIQUE")
    assert done.stderr == ""


async def _fails(judgement: RemoteJudgement) -> None:
    raise StoreError("The server is gone.")
