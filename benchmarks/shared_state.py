"""A state on a redis-server of this machine against LevelDB: pages a second, how long a verdict takes, bytes a page.

python benchmarks/shared_state.py [PAGES [AT_ONCE [PROCESSES...]]]

The server is one of its own, on a port of the loopback. Each process judges pages of its own, of which one in five is a
copy of one that all have, some at a time, and looks once a second at what others count, as a crawl does; the time
begins when all are ready, and have loaded their dictionaries. With one at a time it is seen how long a verdict takes;
with more, a page waits for the fingerprints of the others.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from multiprocessing.synchronize import Barrier

from synthetic import pages

from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.reservations import Blocked, Earlier
from scrapy_neardup.judging.shared import SharedCrawl
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.stores import STORES, Keep, Store, parse_url
from scrapy_neardup.stores.counts import publisher
from scrapy_neardup.stores.redis import RedisStore
from scrapy_neardup.stores.redis_async import AsyncLink

AT_ONCE = int(sys.argv[2]) if len(sys.argv) > 2 else 16


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    processes = [int(one) for one in sys.argv[3:]] or [1, 4, 8]
    seconds, busy = on_leveldb(count)
    print(f"leveldb, one process: {count / seconds:,.0f} pages a second, {busy / count * 1000:.2f} ms of CPU a page")
    for many in processes:
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder, "--loglevel", "warning"]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            try:
                time.sleep(0.5)
                about(f"redis://127.0.0.1:{port}/0", count, many)
            finally:
                server.terminate()
                server.wait()


def about(url: str, count: int, many: int) -> None:
    seconds, latencies, busy = on_server(url, count, many)
    ordered, (used, held, server) = sorted(latencies), looked(url)
    print(
        f"redis, {many} processes, {AT_ONCE} pages at a time: {count * many / seconds:,.0f} pages a second in sum, "
        f"{busy / count / many * 1000:.2f} ms of CPU a page and {server / count / many * 1000:.2f} ms of the server's; "
        f"a verdict takes {ordered[len(ordered) // 2] * 1000:.1f} ms, of 100 all but one at most "
        f"{ordered[len(ordered) * 99 // 100] * 1000:.1f} ms; {used / held:.0f} bytes a page ({held:,} pages)",
        flush=True,
    )


def looked(url: str) -> tuple[int, int, float]:
    """What the keys of the state take, as the server weighs them; the number of pages; seconds of the server's CPU."""
    kind, location = parse_url(url)
    store = kind(location, None)
    assert isinstance(store, RedisStore)
    weighed = 0
    with store._link.used() as client:
        cpu = client.info("cpu")
        for key in client.scan_iter(count=10_000):
            if not key.endswith((b"}+", b"}*b")):  # what is counted has its bound, whatever the number of pages
                weighed += client.memory_usage(key, samples=0) or 0
    held = store.pages
    store.close()
    return weighed, held, cpu["used_cpu_user"] + cpu["used_cpu_sys"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def mine(count: int, number: int) -> Iterator[Page]:
    """Pages of one process, and between them copies of those that all processes have."""
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


def warmed_up(found: list[Page]) -> list[Page]:
    """With the dictionary and the list of public suffixes in memory, which are loaded once in a crawl."""
    make_method("cascade", {}).fingerprint(found[0])
    publisher("www.example.com")
    return found


def on_leveldb(count: int) -> tuple[float, float]:
    found = warmed_up(list(mine(count, 0)))
    with tempfile.TemporaryDirectory() as folder:
        store: Store = STORES["leveldb"](f"{folder}/state", make_method("cascade", {}).recipe())
        detector = Detector(make_method("cascade", {}), store, min_letters=40, who="benchmark", keep=Keep.EVIDENCE)
        begun, idle = time.perf_counter(), time.process_time()
        for page in found:
            detector.judge_now(page, sealed=False)
        detector.seal()
        taken = time.perf_counter() - begun, time.process_time() - idle
        detector.end()
        store.close()
    return taken


def on_server(url: str, count: int, many: int) -> tuple[float, list[float], float]:
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(many + 1), context.SimpleQueue()
    running = [context.Process(target=work, args=(url, count, n, barrier, answers, AT_ONCE)) for n in range(many)]
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


def work(
    url: str,
    count: int,
    number: int,
    barrier: Barrier,
    answers: multiprocessing.SimpleQueue[tuple[list[float], float]],
    at_once: int,
) -> None:
    found = warmed_up(list(mine(count, number)))
    answers.put(asyncio.run(crawl(url, found, number, barrier, at_once)))


async def crawl(url: str, found: list[Page], number: int, barrier: Barrier, at_once: int) -> tuple[list[float], float]:
    method = make_method("cascade", {})
    kind, location = parse_url(url)
    store = kind(location, method.recipe())
    assert isinstance(store, RedisStore)
    detector = Detector(
        method, store, min_letters=40, who=f"benchmark {number}", keep=Keep.EVIDENCE, in_flight=Earlier()
    )
    link, errors, latencies = AsyncLink(location, "NEARDUP_STORE"), list[Exception](), list[float]()
    shared = SharedCrawl(detector, store, link, errors.append)
    todo, ids = iter(found), list[int]()

    async def worker() -> None:
        for page in todo:
            begun = time.perf_counter()
            async with shared.filing(page) as filing:
                while isinstance(ruling := await filing.check(), Blocked):
                    settled = asyncio.Event()
                    ruling.by.when_settled(settled.set)
                    await settled.wait()
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
    await asyncio.gather(*(worker() for _ in range(at_once)))
    over.set()
    await upkeep
    await shared.settled()
    shared.seal(ids)
    await shared.settled()
    busy = time.process_time() - idle
    assert not errors, errors
    detector.end()
    await link.close()
    store.close()
    return latencies, busy


if __name__ == "__main__":
    main()
