"""An extractor of a user that misbehaves when the page says so; a pool with it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from scrapy_neardup.page.extraction import PageContent
from scrapy_neardup.workers.pool import WorkerPool
from scrapy_neardup.workers.worker import ReadingOptions

URL = "http://river.example/ferry"
READING = ReadingOptions(1_000_000, 100_000, seconds=30.0)
_KEPT: list[bytes] = []


def misbehave(order: str) -> None:
    """Follow an order, such as ``die`` or ``wait:/path``: a file that is made when the order begins."""
    order, _, path = order.partition(":")
    if order == "die" or (order == "die once" and not Path(path).exists()):
        Path(path or os.devnull).touch()
        os._exit(3)
    if order == "fork" and not os.fork():
        time.sleep(6)
        os._exit(0)
    if order in ("fork", "hang", "wait"):
        Path(path or os.devnull).touch()
        time.sleep(100)
    if order == "pause":
        time.sleep(0.3)
    if order == "grow":
        _KEPT.append(b"x" * 100_000_000)
    if order == "swell":
        _KEPT.append(b"x" * 10**9)
    if order == "raise":
        raise ValueError("nothing found")


def extract(html: str, url: str) -> str | None:
    sys.stdout.write("no answer\n")
    misbehave(html)
    return f"{html} by {os.getpid()}"


def reading(extractor: str = f"{__name__}.extract", seconds: float = 30.0) -> ReadingOptions:
    return replace(READING, extractor=extractor, seconds=seconds)


@contextmanager
def opened(options: ReadingOptions, size: int = 1) -> Iterator[WorkerPool]:
    """A pool that leaves no process behind."""
    pool = WorkerPool(options, size)
    with closing(pool):
        yield pool
    assert pool.process_ids == []


def raw(html: str, url: str = URL) -> PageContent:
    return PageContent(url, html)
