"""Freezes what a refactoring must not move: the verdicts on corpora, and the rows of a state.

    python benchmarks/freeze.py OUT [CORPUS ...]
    diff -r OUT_BEFORE OUT_AFTER

CORPUS is a JSONL file of articles (it may be packed as .xz), or a folder with ``docs.jsonl.xz``. OUT gets two kinds of
text files, and the command prints a digest of each:

    verdicts.CORPUS.txt     a line for each article: its place and id, verdict, kind, original, similarity
    rows.STORE.txt          a line for each row of the state that made-up crawls leave: key and value, in hexadecimal

Articles have a URL of their corpus, or none; then they are known by their text. The crawls run in Scrapy, without a
network. The clock stands still while a page is crawled. All randomness has a seed, and the state has a fixed secret.
The first crawl is stored. Those after it update pages: the feed of the second and the fourth fails, so their pages
stay unsealed. The third rolls the second back. A state in memory is that of the first crawl.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SECRET = "a secret that is frozen"
#: Articles of a corpus that are judged.
ARTICLES = 5_000
KINDS = ("leveldb", "sqlite", "memory")
#: Crawls of one state, and whether the feed of each is stored.
CRAWLS = (True, False, True, False)
#: Seconds since 1970 at which the first crawl begins.
BEGIN = 1_700_000_000
SITES, PAGES = 7, 300

_SYLLABLES = "bacedifogulameniporusatevi"
_CHARACTERS = (
    "山河日月风云水火木石田城市人民会议新闻报道经济发展科技学校医院道路桥梁船车书信花草鸟鱼东西南北春夏秋冬年季天地"
)


# Verdicts.


def verdicts(corpus: Path) -> Iterator[str]:
    """A line for each article of a corpus."""
    from scrapy_neardup import Deduplicator

    file = corpus / "docs.jsonl.xz" if corpus.is_dir() else corpus
    ids: dict[str, str] = {}
    with (
        (lzma.open if file.suffix == ".xz" else open)(file, "rt", encoding="utf-8") as lines,
        Deduplicator(secret=SECRET) as seen,
    ):
        for place, line in zip(range(ARTICLES), lines, strict=False):
            article = json.loads(line)
            names = ("url", "text", "html", "title", "keywords", "description")
            verdict = seen.check(**{name: article[name] for name in names if article.get(name)})
            id = ids[verdict.url] = str(article.get("id", place))
            match = verdict.match
            original = ids.get(match.url, match.url) if match else "-"
            similarity = repr(match.similarity) if match else "-"
            yield " ".join((str(place), id, verdict.outcome.value, verdict.headline, original, similarity))


# A crawl of invented pages.


class Site:
    """Pages by URL, in a first version and in later ones."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._words = [self._word() for _ in range(900)]
        self._terms = [
            "".join(self._chance.choices(_CHARACTERS, k=self._chance.choice((1, 2, 2, 3)))) for _ in range(900)
        ]
        self._frames = [[self._sentence(site % 2 == 0) for _ in range(6)] for site in range(SITES)]
        self.articles: dict[str, tuple[int, str, list[str]]] = {}
        self.bodies: dict[str, str] = {}
        for number in range(PAGES):
            self._add(number)

    def _word(self) -> str:
        places = self._chance.choices(range(0, len(_SYLLABLES), 2), k=self._chance.choice((1, 2, 3, 3)))
        return "".join(_SYLLABLES[place : place + 2] for place in places)

    def _sentence(self, english: bool) -> str:
        if english:
            return " ".join(self._chance.choices(self._words, k=self._chance.randint(6, 16))).capitalize() + "."
        return "".join(self._chance.choices(self._terms, k=self._chance.randint(6, 16))) + "。"

    def _article(self, english: bool, sentences: int) -> list[str]:
        return [self._sentence(english) for _ in range(sentences)]

    def _add(self, number: int) -> None:
        chance, site = self._chance, number % SITES
        english = site % 2 == 0
        title, text = self._sentence(english).strip("。."), self._article(english, chance.randint(8, 24))
        url = f"https://site{site}.example/{number // 50}/{number}.html"
        if number >= SITES and number % 5 < 3:  # after some others, most are like one of them
            earlier, (_, its_title, its_text) = chance.choice(list(self.articles.items()))
            change = chance.choice(("bytes", "copy", "copy", "edit", "edit", "retitled", "excerpt", "longer", "short"))
            english = its_text[0].isascii()
            if change == "bytes":
                self.bodies[url] = self.html(earlier)
            title, text = (title if change == "retitled" else its_title), list(its_text)
            if change == "edit":
                for _ in range(chance.choice((1, 2, len(text) // 2))):
                    text[chance.randrange(len(text))] = self._sentence(english)
            elif change == "excerpt":
                text = text[: max(3, len(text) // 2)]
            elif change == "longer":
                text += self._article(english, 4)
            elif change == "short":
                text = [self._sentence(english)[:20]]
        self.articles[url] = site, title, text

    def html(self, url: str) -> str:
        """A page with the frame of its site around the article."""
        if url in self.bodies:
            return self.bodies[url]
        site, title, text = self.articles[url]
        menu = "".join(f"<li><a href='/{n}'>{line[:12]}</a></li>" for n, line in enumerate(self._frames[site]))
        paragraphs = "".join(f"<p>{' '.join(text[at : at + 3])}</p>" for at in range(0, len(text), 3))
        footer = " ".join(self._frames[site])
        return (
            f"<html><head><meta charset='utf-8'><title>{title} - site {site}</title></head><body><ul>{menu}</ul>"
            f"<article><h1>{title}</h1>{paragraphs}</article><footer><p>{footer}</p></footer></body></html>"
        )

    def update(self, crawl: int) -> list[str]:
        """Change some pages and add others; returns the URLs of a later crawl."""
        chance, known = self._chance, list(self.articles)
        again = known[crawl::4]
        for place, url in enumerate(again):
            site, title, text = self.articles[url]
            if place % 3 == 0 and url not in self.bodies:
                text = [*text[1:], *self._article(text[0].isascii(), 1 + place % 7)]
                self.articles[url] = site, title, text
        for number in range(PAGES * (1 + crawl), PAGES * (1 + crawl) + 20):
            self._add(number)
        added = [url for url in self.articles if url not in known]
        mixed = again + added
        chance.shuffle(mixed)
        return mixed


def crawl(store: str, number: int, rows: str) -> None:
    """Run one crawl in this process. ``rows``: the file for the rows of a state in memory."""
    import scrapy
    from scrapy.crawler import CrawlerProcess
    from scrapy.extensions.feedexport import BlockingFeedStorage
    from scrapy.http import HtmlResponse
    from scrapy.statscollectors import MemoryStatsCollector
    from scrapy.utils.reactor import install_reactor

    site = Site(1)
    urls = list(site.articles)
    for earlier in range(1, number + 1):
        urls = site.update(earlier)
    clock = [BEGIN + number * 86_400]

    class Pages:
        """Serves the pages without a network; each takes one second of the clock."""

        lazy = False

        def __init__(self, *_: Any) -> None: ...

        @classmethod
        def from_crawler(cls, crawler: Any) -> Pages:
            return cls()

        async def download_request(self, request: Any) -> Any:
            clock[0] += 1
            return HtmlResponse(request.url, body=site.html(request.url).encode(), encoding="utf-8")

        async def close(self) -> None: ...

    class Feed(BlockingFeedStorage):
        """Stored nowhere; that of some crawls fails."""

        def __init__(self, uri: str, *, feed_options: Any = None) -> None: ...

        def _store_in_thread(self, file: Any) -> None:
            if not CRAWLS[number]:
                raise OSError("this feed is not stored")

    class Stats(MemoryStatsCollector):
        """Without what another run measures otherwise."""

        def set_value(self, key: str, value: Any, *others: Any) -> None:
            varies = key.startswith("neardup/time/") or key == "neardup/state/bytes"
            super().set_value(key, 0 if varies else value, *others)

    class Invented(scrapy.Spider):
        """Requests one page after the other."""

        name = "invented"

        async def start(self) -> Any:
            yield self._next()

        def _next(self) -> Any:
            return scrapy.Request(urls.pop(0), callback=self.parse, dont_filter=True)

        def parse(self, response: Any) -> Any:
            yield {"url": response.url}
            if urls:
                yield self._next()

    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")  # with the clock of the machine
    # The package takes the clock that it finds, so it is imported after this.
    time.time = lambda: float(clock[0])
    time.time_ns = lambda: clock[0] * 10**9
    os.urandom = bytes
    if rows:
        _keep_rows_of_memory(Path(rows))
    process = CrawlerProcess(
        {
            "ADDONS": {"scrapy_neardup.Addon": 100},
            "NEARDUP_STORE": store,
            "NEARDUP_SECRET": SECRET,
            "NEARDUP_WORKERS": 0,
            "FEEDS": {f"frozen://feeds/{number}.jsonl": {"format": "jsonl"}},
            "FEED_STORAGES": {"frozen": Feed},
            "STATS_CLASS": Stats,
            "DOWNLOAD_HANDLERS": {"https": Pages},
            "LOG_LEVEL": "CRITICAL",
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Invented)
    process.start()


def _keep_rows_of_memory(file: Path) -> None:
    """Have a state in memory write its rows when it is closed."""
    from scrapy_neardup.kv.base import Changes
    from scrapy_neardup.kv.memory import Memory

    close = Memory.close

    def keep_and_close(self: Memory, last: Changes | None = None) -> None:
        if last is not None:
            self.write(last, sync=False)
        _write_rows(file, dict(self.scan(b"")))
        close(self)

    Memory.close = keep_and_close  # type: ignore[method-assign]


def _rows(kind: str, place: Path) -> dict[bytes, bytes]:
    """The rows of a state on disk, as its files hold them."""
    if kind == "sqlite":
        with sqlite3.connect(place) as db:
            return dict(db.execute("SELECT k, v FROM kv"))
    import plyvel

    with plyvel.DB(str(place / "db")) as db:
        return dict(db)


def _write_rows(file: Path, rows: Mapping[bytes, bytes]) -> None:
    """Write rows with readable first bytes: the kind of a row is its first letter."""
    lines = (f"{chr(key[0])} {key[1:].hex()} {value.hex()}\n" for key, value in sorted(rows.items()))
    file.write_text("".join(lines), encoding="utf-8")


def freeze_rows(kind: str, file: Path) -> None:
    """Crawl, each crawl in a process of its own, and write the rows that are left."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, f"state.{kind}")
        url = "memory:" if kind == "memory" else f"{kind}://{place}"
        crawls = range(1 if kind == "memory" else len(CRAWLS))
        for number in crawls:
            rows = str(file) if kind == "memory" else ""
            environment = {**os.environ, "TMPDIR": folder, "PYTHONHASHSEED": "0"}
            command = [sys.executable, __file__, "--crawl", url, str(number), rows]
            subprocess.run(command, check=True, env=environment)
        if kind != "memory":
            _write_rows(file, _rows(kind, place))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", type=Path)
    parser.add_argument("corpora", metavar="CORPUS", type=Path, nargs="*")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        freeze_rows(kind, given.out / f"rows.{kind}.txt")
        _print_digest(given.out / f"rows.{kind}.txt")
    for corpus in given.corpora:
        file = given.out / f"verdicts.{corpus.name.partition('.')[0]}.txt"
        file.write_text("".join(f"{line}\n" for line in verdicts(corpus)), encoding="utf-8")
        _print_digest(file)


def _print_digest(file: Path) -> None:
    content = file.read_bytes()
    print(hashlib.sha256(content).hexdigest()[:16], content.count(b"\n"), file.name, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--crawl"]:
        crawl(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
