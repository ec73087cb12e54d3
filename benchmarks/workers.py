"""Pages a second, and how late the event loop is, with 0, 1 and 2 workers and 1, 2, 4 or 16 pages in flight.

    python benchmarks/workers.py                    # drawn pages of 100 kB
    python benchmarks/workers.py --pages FOLDER     # files of HTML

A site runs in a process of its own, and so does each crawl, with a new state in LevelDB. The rows take turns; each
shows the median of its rounds. The time includes the start of the workers. ``lag``: a timer that fires every 5 ms
fires so much later. ``CPU``: of the crawl's own process. Rows without the add-on: ``none``, ``trafilatura`` (the
callback extracts the text) and ``fast`` (in the fast mode, as the add-on does).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import scrapy
import trafilatura
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess

_EVERY = 0.005
#: Rows without the add-on: the options of trafilatura in the callback; None: it is not called.
WITHOUT: dict[str, dict[str, Any] | None] = {
    "none": None,
    "trafilatura": {},
    "fast": {"fast": True, "include_comments": False},
}
#: Syllables of a language that nobody speaks.
_SYLLABLES = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]


def words(chance: random.Random, many: int) -> str:
    """Words of no language."""
    return " ".join("".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(many))


def made_page(number: int, size: int = 100_000) -> bytes:
    """A page as a newspaper's site has them: menus, scripts, an article, lists of others, comments, a footer."""
    own, common = random.Random(number), random.Random("site")
    menu = "".join(
        f'<li class="m{n}"><a href="/s/{n}" title="{words(common, 1)}"><span>{words(common, 1)}</span></a></li>'
        for n in range(250)
    )
    article = "".join(
        f'<p class="t">{words(own, 15).capitalize()}. {words(own, 12)}, <b>{words(own, 2)}</b>. {words(own, 10)}.</p>'
        for _ in range(12)
    )
    others = "".join(
        f'<div class="card"><a href="/a/{own.random()}"><img src="/i/{n}.jpg" alt=""><h3>{words(own, 4)}</h3></a>'
        f'<span class="date"><i>2026</i>-<i>11</i>-<i>{n % 28 + 1:02}</i></span></div>'
        for n in range(120)
    )
    comments = "".join(f'<li class="c"><i>{words(own, 1)}</i><p>{words(own, 5)}</p></li>' for _ in range(30))
    body = (
        f"<nav><ul>{menu}</ul></nav><main><article><h1>{words(own, 9)}</h1>{article}</article>"
        f'<section class="more">{others}</section><ul class="comments">{comments}</ul></main>'
        f"<footer><p>{words(common, 60)}</p></footer>"
    )
    script = f"<script>var x = {json.dumps(words(common, 200))};</script>"
    page = f"<!doctype html><html><head><meta charset=utf-8><title>{words(own, 9)}</title>{script}</head><body>{body}"
    missing = max(0, size - len(page))
    return f"{page}<script>/* {'x' * missing} */</script></body></html>".encode()


async def serve(pages: Sequence[bytes]) -> None:
    """Answer /N with the N-th page, until standard input ends; the port is printed."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = pages[int(head.split()[1][1:]) % len(pages)]
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                )
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


class Site(scrapy.Spider):
    """Requests pages, and yields an item for each."""

    name = "site"
    base = ""
    count = 0
    #: As in ``WITHOUT``.
    extracts: dict[str, Any] | None = None

    async def start(self) -> AsyncIterator[Any]:
        for number in range(self.count):
            yield scrapy.Request(f"{self.base}/{number}")

    def parse(self, response: scrapy.http.Response) -> Any:
        item = {"url": response.url}
        if self.extracts is not None:
            item["text"] = trafilatura.extract(response.text, url=response.url, **self.extracts) or ""
        yield item


class Lag:
    """Measures how late the event loop is."""

    def __init__(self, crawler: Any) -> None:
        self.late: list[float] = []
        self.seconds = self.processor = 0.0
        self._begun = self._begun_processor = 0.0
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    def _opened(self) -> None:
        self._begun, self._begun_processor = perf_counter(), process_time()
        self._task = asyncio.get_running_loop().create_task(self._look())

    def _closed(self) -> None:
        self.seconds = perf_counter() - self._begun
        self.processor = process_time() - self._begun_processor
        self._task.cancel()

    async def _look(self) -> None:
        while True:
            due = perf_counter() + _EVERY
            await asyncio.sleep(_EVERY)
            self.late.append(perf_counter() - due)


def crawl(job: dict[str, Any]) -> None:
    """Crawl in this process, and print the figures as JSON."""
    quiet = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False}
    quiet |= {"METAREFRESH_ENABLED": False, "MEMUSAGE_ENABLED": False}
    process = AsyncCrawlerProcess({**quiet, **job["settings"]})
    crawler = process.create_crawler(Site)
    lag = Lag(crawler)
    process.crawl(crawler, base=job["base"], count=job["count"], extracts=job["extracts"])
    process.start()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats().items()
    verdicts = {name[8:]: value for name, value in stats if name.startswith(("neardup/un", "neardup/dup"))}
    told = {"seconds": lag.seconds, "processor": lag.processor, "late": lag.late, "verdicts": verdicts}
    print(json.dumps(told))


def ran(base: str, count: int, flight: int, workers: str) -> dict[str, Any]:
    """The figures of a crawl with so many pages in flight, and so many workers or a row of ``WITHOUT``."""
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"CONCURRENT_REQUESTS": flight, "CONCURRENT_REQUESTS_PER_DOMAIN": flight}
        if workers not in WITHOUT:
            settings |= {"ADDONS": {"scrapy_neardup.Addon": 500}, "NEARDUP_WORKERS": workers, "NEARDUP_KEEP": "nothing"}
            settings |= {
                "NEARDUP_STORE": f"leveldb://{folder}/state",
                "NEARDUP_SECRET": "one for all that are compared",
            }
        job = {"base": base, "count": count, "extracts": WITHOUT.get(workers), "settings": settings}
        command = [sys.executable, __file__, "--job", json.dumps(job)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def of_all(results: Sequence[dict[str, Any]], count: int) -> list[float]:
    """Pages a second and milliseconds of processor a page: medians of the rounds."""
    if not results:
        return []
    rate = median(count / one["seconds"] for one in results)
    return [rate, median(1000 * one["processor"] / count for one in results)]


def table(base: str, count: int, rounds: int, flights: Sequence[int], workers: Sequence[str]) -> None:
    """Print all rows, which take turns."""
    cases = [(flight, many) for flight in flights for many in workers]
    found: dict[tuple[int, str], list[dict[str, Any]]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            found[case].append(ran(base, count, *case))
    print("| in flight | workers | pages/s | against 0 | CPU, ms a page | against 0 | lag p50 ms | p99 ms | max ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for flight, many in cases:
        results = found[flight, many]
        inline = found.get((flight, "0"), [])
        rate, processor = of_all(results, count)
        ratios = [f"{mine / other:.2f}" for mine, other in zip((rate, processor), of_all(inline, count), strict=False)]
        lags = [median(1000 * percentile(one["late"], share) for one in results) for share in (0.5, 0.99, 1.0)]
        faster, dearer = ratios or ["", ""]
        cells = [flight, many, f"{rate:.1f}", faster, f"{processor:.1f}", dearer, *(f"{lag:.1f}" for lag in lags)]
        print(f"| {' | '.join(map(str, cells))} |")
    print("verdicts:", *sorted({json.dumps(found[case][0]["verdicts"], sort_keys=True) for case in cases}))


def main(arguments: Iterable[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flight", type=int, nargs="+", default=[1, 2, 4, 16])
    parser.add_argument("--workers", nargs="+", default=["0", "1", "2"], help="numbers, auto, or see above")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(None if arguments is None else list(arguments))
    if given.job:
        crawl(json.loads(given.job))
        return
    if given.serve:
        files = sorted(given.pages.iterdir())[: given.count] if given.pages else []
        asyncio.run(serve([one.read_bytes() for one in files] or [made_page(n) for n in range(given.count)]))
        return
    folder = ["--pages", str(given.pages.absolute())] if given.pages else []
    command = [sys.executable, __file__, "--serve", "--count", str(given.count), *folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        base = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()}")
        print(f"{given.count} pages, {given.rounds} rounds, load before: {os.getloadavg()[0]:.1f}")
        table(base, given.count, given.rounds, given.flight, given.workers)
        server.communicate()


if __name__ == "__main__":
    main()
