"""What a page costs whose very bytes were judged before, against one that comes for the first time, in one run.

    python benchmarks/identical.py                    # its own pages, of 100 kB each
    python benchmarks/identical.py --pages FOLDER     # files of HTML

Each page is judged at its URL, once more there in a next crawl, and at another URL of its site, by a state in LevelDB,
without Scrapy: from the item and its response to the verdict, and what is written with it. The time is that of the
processor, the median over all pages. Then the same without the short way, whose verdicts must be the same ones.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median
from time import process_time

from workers import made_page

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page, Verdict
from scrapy_neardup.page.response import PageResponse
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import STORES, open_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret

#: One for both ways: another secret gives other hashes, and so other verdicts on pages that are in doubt.
SECRET = Secret(b"one secret for both of them", is_own=False)
#: Where the pages are: at first and in the next crawl, and at last.
VISITS = {
    "first time": "http://www.site{site}.example/a/{number}.html",
    "again": "http://www.site{site}.example/a/{number}.html",
    "at another URL": "https://site{site}.example/a/{number}.html?print=1",
    "there again": "https://site{site}.example/a/{number}.html?print=1",
}


class Crawl:
    """One crawl on a state."""

    def __init__(self, store: PageStore, *, short_way: bool) -> None:
        self.detector = Detector(make_method("cascade", {}), store, who="benchmark", policy=Policy(keep=Keep.EVIDENCE))
        bodies = self.detector.bodies if short_way else None
        self.source = PageSource(
            DEFAULT_FIELDS, 5_000_000, None, is_unchanged=self.detector.is_unchanged, bodies=bodies
        )

    def judge(self, url: str, body: bytes) -> Verdict | None:
        """What a crawl does about an item without content; None for a page that is none."""
        try:
            made = self.source.prepare({}, PageResponse(url, body), url)
            ruling = None if isinstance(made, Page) else self.detector.check_bytes(url, site_of(url), made.body)
            if ruling is None:
                ruling = self.detector.check(made if isinstance(made, Page) else self.source.read(made))
        except ExtractionError:
            return None
        assert isinstance(ruling, Ruled)
        if ruling.reservation is not None:
            self.detector.commit(ruling.reservation, sealed=True)
        return ruling.verdict


def told(verdict: Verdict | None) -> str:
    """What must be the same with the short way and without."""
    return "none" if verdict is None else f"{verdict.headline} {verdict.match.url if verdict.match else ''}"


def visits(pages: Sequence[bytes], sites: int, *, short_way: bool) -> tuple[list[str], float]:
    """All verdicts, and the bytes that a page takes that comes for the first time; prints what a page took."""
    found: list[str] = []
    first = size = 0.0
    with tempfile.TemporaryDirectory() as folder:
        store = open_state(
            STORES["leveldb"], f"{folder}/state", state_recipe(make_method("cascade", {}), None), "", SECRET
        )
        for name, form in VISITS.items():
            crawl, spent, said, by_bytes = Crawl(store, short_way=short_way), [], list[str](), 0
            for number, body in enumerate(pages):
                url = form.format(site=number % sites, number=number)
                begun = process_time()
                verdict = crawl.judge(url, body)
                spent.append(process_time() - begun)
                said.append(told(verdict))
                by_bytes += verdict is not None and verdict.same_bytes
            crawl.detector.seal()
            crawl.detector.end()
            first = first or median(spent)
            if not size:
                store.compact()
                size = store.size() / store.pages
            kinds = ", ".join(f"{many} {kind}" for kind, many in Counter(one.split()[0] for one in said).most_common())
            took = " | ".join(f"{1000 * one:.3f}" for one in (median(spent), mean(spent)))
            way = "yes" if short_way else "no"
            print(f"| {way} | {name} | {took} | {first / median(spent):.1f} | {by_bytes} | {kinds} |", flush=True)
            found += said
        store.close()
    return found, size


def main(arguments: Iterable[str] | None = None) -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--sites", type=int, default=4, help="on which the pages stand")
    given = parser.parse_args(None if arguments is None else list(arguments))
    files = sorted(given.pages.iterdir())[: given.count] if given.pages else []
    pages = [one.read_bytes() for one in files] or [made_page(number) for number in range(given.count)]
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()}")
    size, same = sum(map(len, pages)) / len(pages) / 1000, len(pages) - len(set(pages))
    print(f"{len(pages)} pages of {size:.0f} kB, {same} of them again, load {os.getloadavg()[0]:.1f}\n")
    print("| short way | visit | ms a page, median | mean | times as fast | by bytes | verdicts |")
    print("|---|---|---|---|---|---|---|")
    (with_it, here), (without, there) = (visits(pages, given.sites, short_way=way) for way in (True, False))
    differ = sum(one != other for one, other in zip(with_it, without, strict=True))
    print(f"\n{differ} of {len(without)} verdicts differ")
    print(f"bytes of state a page after the first visit: {here:.0f} with it, {there:.0f} without")


if __name__ == "__main__":
    main()
