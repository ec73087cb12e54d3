"""A state on a redis-server of this machine, beside LevelDB: pages a second, time of a verdict, bytes a page.

    python benchmarks/shared_state.py [PAGES [AT_ONCE [PROCESSES...]]] [--html] [--url URL]

It starts a server on a port of the loopback. Each process judges pages of its own; one in five is a copy of a page that
all processes have. Once a second it reads the counts of the others, as a crawl does. The time begins when all processes
have loaded their dictionaries. AT_ONCE: pages in flight in each process; with 1, the time of a verdict is that of the
server alone. LevelDB: as many processes, each with a state of its own. ``--html``: each process also reads a page of
100 kB of HTML for each page, as a crawl does. ``--url``: of an empty server that runs already, such as Kvrocks.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

from redis.exceptions import ResponseError
from synthetic import pages
from workers import made_page

from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.judge.remote import RemoteCrawl
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import analyse
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state.boilerplate import publisher
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep
from scrapy_neardup.state.urls import STORES, parse_url

Answers = SimpleQueue[tuple[list[float], float]]


@dataclass(frozen=True)
class Job:
    """The work of each process."""

    count: int
    at_once: int
    reads_html: bool

    def pages(self, number: int) -> list[Page]:
        """The pages of one process, after dictionaries are loaded."""
        found = list(mine(self.count, number))
        make_method("cascade", {}).fingerprint(found[0])
        publisher("www.example.com")
        for number in range(20):
            self.read(number)
        gc.collect()
        gc.freeze()  # else the slowest verdicts are those during two collections of all imported modules
        return found

    def read(self, number: int) -> None:
        """Read a page of HTML, as a crawl does."""
        if self.reads_html:
            analyse(html(number % 20), "https://www.example.com/", max_html=5_000_000)


@cache
def html(number: int) -> str:
    """One of the pages of HTML."""
    return made_page(number).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=int, nargs="?", default=3000)
    parser.add_argument("at_once", type=int, nargs="?", default=16)
    parser.add_argument("processes", type=int, nargs="*", default=[1, 4, 8])
    parser.add_argument("--html", action="store_true")
    parser.add_argument("--url")
    given = parser.parse_args()
    job = Job(given.pages, given.at_once, given.html)
    for many in given.processes:
        seconds, _, busy = together(on_leveldb, "", job, many)
        pages = job.count * many
        print(
            f"leveldb, {many} processes, each alone: {pages / seconds:,.0f} pages a second in sum, "
            f"{busy / pages * 1000:.2f} ms of CPU a page",
            flush=True,
        )
        if given.url:
            about(f"{given.url}?state=benchmark{many}", job, many)
            continue
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder, "--loglevel", "warning"]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            try:
                time.sleep(0.5)
                about(f"redis://127.0.0.1:{port}/0", job, many)
            finally:
                server.terminate()
                server.wait()


def about(url: str, job: Job, many: int) -> None:
    seconds, latencies, busy = together(on_server, url, job, many)
    ordered, (used, held, server), pages = sorted(latencies), looked(url), job.count * many
    print(
        f"redis, {many} processes, {job.at_once} pages at a time: {pages / seconds:,.0f} pages a second in sum, "
        f"{busy / pages * 1000:.2f} ms of CPU a page and {server / pages * 1000:.2f} ms of the server's; "
        f"a verdict takes {ordered[len(ordered) // 2] * 1000:.1f} ms, of 100 all but one at most "
        f"{ordered[len(ordered) * 99 // 100] * 1000:.1f} ms; {used / held:.0f} bytes a page ({held:,} pages)",
        flush=True,
    )


def looked(url: str) -> tuple[int, int, float]:
    """Return the bytes of the state on the server, its pages, and seconds of the server's processor."""
    kind, location = parse_url(url)
    store = open_at(kind, location, None)
    assert isinstance(store, RedisStore)
    weighed = 0
    client = store.kv.link.call(lambda client: client)
    cpu = client.info("cpu")
    try:
        for key in client.scan_iter(count=10_000):
            if not key.endswith((b"}~+", b"}b")):  # counts have a bound of their own
                weighed += client.memory_usage(key, samples=0) or 0
    except ResponseError:  # Kvrocks has no such command
        weighed = store.kv.size()
    held = store.pages
    store.close()
    return weighed, held, cpu["used_cpu_user"] + cpu["used_cpu_sys"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def mine(count: int, number: int) -> Iterator[Page]:
    """The pages of one process; each fifth is a copy of a page that all processes have."""
    own = (
        replace(page, url=page.url.replace("https://", f"https://p{number}.")) for page in pages(count, seed=number + 9)
    )
    shared = pages(count // 5, seed=5)
    for at, page in enumerate(islice(own, count)):
        if at % 5 == 4:
            copied = next(shared)
            url = copied.url.replace("https://", f"https://copies{number}.")
            yield replace(copied, url=url, text=f"{copied.text}{number}号转载。")
        else:
            yield page


Work = Callable[[str, Job, int, Barrier, Answers], None]


def together(work: Work, url: str, job: Job, many: int) -> tuple[float, list[float], float]:
    """Let processes work at once; returns seconds, the time of each verdict, and seconds of processor."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(many + 1), context.SimpleQueue()
    running = [context.Process(target=work, args=(url, job, n, barrier, answers)) for n in range(many)]
    for process in running:
        process.start()
    barrier.wait()
    begun, latencies, busy = time.perf_counter(), list[float](), 0.0
    for _ in running:
        more, cpu = answers.get()
        latencies, busy = latencies + more, busy + cpu
    taken = time.perf_counter() - begun
    for process in running:
        process.join()
    return taken, latencies, busy


def on_leveldb(url: str, job: Job, number: int, barrier: Barrier, answers: Answers) -> None:
    """Work on a LevelDB state of its own."""
    found, latencies = job.pages(number), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        store: PageStore = open_at(STORES["leveldb"], f"{folder}/state", make_method("cascade", {}).recipe())
        detector = Detector(make_method("cascade", {}), store, who="benchmark", policy=Policy(keep=Keep.EVIDENCE))
        barrier.wait()
        idle = time.process_time()
        for at, page in enumerate(found):
            job.read(at)
            begun = time.perf_counter()
            detector.judge_now(page, sealed=False)
            latencies.append(time.perf_counter() - begun)
        detector.seal()
        answers.put((latencies, time.process_time() - idle))
        detector.end()
        store.close()


def on_server(url: str, job: Job, number: int, barrier: Barrier, answers: Answers) -> None:
    """Work on the state that all share."""
    answers.put(asyncio.run(crawl(url, job, number, barrier)))


async def crawl(url: str, job: Job, number: int, barrier: Barrier) -> tuple[list[float], float]:
    found = job.pages(number)
    method = make_method("cascade", {})
    kind, location = parse_url(url)
    store = open_at(kind, location, method.recipe())
    assert isinstance(store, RedisStore)
    detector = Detector(method, store, who=f"benchmark {number}", policy=Policy(keep=Keep.EVIDENCE))
    errors, latencies = list[Exception](), list[float]()
    shared = RemoteCrawl(detector, errors.append)
    todo, ids = enumerate(found), list[int]()

    async def worker() -> None:
        for at, page in todo:
            job.read(at)
            begun = time.perf_counter()
            async with shared.judgement() as judgement:
                while isinstance(ruling := await judgement.check(page), Blocked):
                    await judgement.wait(ruling.by, 3600)
            latencies.append(time.perf_counter() - begun)
            if ruling.reservation is not None:
                ids.append(ruling.reservation.record.id)
                shared.commit(ruling.reservation, sealed=False)

    over = asyncio.Event()

    async def kept_up() -> None:
        while not over.is_set():
            await shared.catch_up()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(over.wait(), 1.0)

    barrier.wait()
    idle = time.process_time()
    upkeep = asyncio.ensure_future(kept_up())
    await asyncio.gather(*(worker() for _ in range(job.at_once)))
    over.set()
    await upkeep
    await shared.finish()
    shared.seal(ids)
    await shared.finish()
    busy = time.process_time() - idle
    assert not errors, errors
    detector.end()
    await shared.close()
    store.close()
    return latencies, busy


if __name__ == "__main__":
    main()
