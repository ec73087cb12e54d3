"""What it takes to look into a state at rest and at work, and the memory of a dry run for each page that it judges.

python benchmarks/looking.py [PAGES [JUDGED]]
"""

from __future__ import annotations

import sys
import tempfile
import tracemalloc
from itertools import islice
from time import perf_counter

from synthetic import pages

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.state.opening import STORES, close_store, open_snapshot, open_store
from scrapy_neardup.state.pages import PageStore


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    judged = int(sys.argv[2]) if len(sys.argv) > 2 else 3_000
    source = pages(count + 2 * judged)
    first, new = list(islice(source, count)), source
    for name in ("leveldb", "sqlite"):
        with tempfile.TemporaryDirectory() as directory:
            url = STORES[name].url(f"{directory}/state")
            store = open_store(url, {})
            judge(store, first)
            at_work = timed(url)
            close_store(store)
            print(f"{name}, {count} pages: {at_work:.2f} s at work, {timed(url):.2f} s at rest")
            tried, some = open_store(url, {}, dry_run=True), list(islice(new, judged))
            tracemalloc.start()
            judge(tried, some)
            grown, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            print(f"{name}: a dry run holds {grown / judged:,.0f} bytes a page", flush=True)
            close_store(tried)


def judge(store: PageStore, found: list[Page]) -> None:
    """Judge the pages as a crawl does, and leave them unsealed."""
    detector = Detector(make_method("cascade", {}), store, who="benchmark")
    for page in found:
        detector.judge_now(page, sealed=False)
    detector.seal()
    detector.end()


def timed(url: str) -> float:
    """Seconds until the state can be read; the best of three."""
    times = []
    for _ in range(3):
        begun = perf_counter()
        close_store(open_snapshot(url))
        times.append(perf_counter() - begun)
    return min(times)


if __name__ == "__main__":
    main()
