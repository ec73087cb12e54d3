"""Articles that are lost as copies: by updates after a longer page, by forged and broken pages; and false alarms.

    python benchmarks/drops.py

The default method judges drawn sites, each state under a secret of its own. Then honest mirrors in random order follow.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable

from scrapy.crawler import Crawler
from scrapy.spiders import Spider
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.judge.lists import ManualKind, ManualVerdict, write_manual_verdicts
from scrapy_neardup.maintenance.tables import SITES, add_site_drops
from scrapy_neardup.model import Match, Outcome, Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import memory_state

CONSONANTS, VOWELS = "bdfgklmnprstv", "aeiou"
CONFIG = Config()
#: Trials of the honest mirrors of each size.
TRIALS = 500


def words(chance: random.Random, many: int) -> list[str]:
    """Words of no language."""
    return ["".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(3)) for _ in range(many)]


def prose(seed: str, letters: int) -> str:
    """Sentences of ten words, about so many letters of them; another seed gives others."""
    chance = random.Random(seed)
    return " ".join(" ".join(words(chance, 10)).capitalize() + "." for _ in range(max(1, letters // 70)))


def page(host: str, name: object, text: str, title: object = None) -> Page:
    """A page with a title of its own."""
    url = f"http://{host}.example/{name}"
    drawn = " ".join(words(random.Random(str(name if title is None else title)), 4))
    return Page(url, f"Of {drawn}", text=text, site=site_of(url))


def article(number: int) -> str:
    """What the victim's page says first."""
    return prose(f"own {number}", 1500)


def edited(number: int, version: int) -> str:
    """The article with another sentence in place of one."""
    sentences = article(number).split(". ")
    sentences[version % len(sentences)] = prose(f"edit {number} {version}", 70).rstrip(".")
    return ". ".join(sentences)


def longer(number: int) -> str:
    """The article and so much more that it is no copy of it."""
    return f"{article(number)} {prose(f'more {number}', 1350)}"


#: The crawls of a case: the pages of each, in order.
Crawls = list[list[Page]]


def later_page() -> Crawls:
    """A foreign page holds each of 60 delivered articles and 90 % more; then every article is edited, four times."""
    old = [page("victim", number, article(number)) for number in range(60)]
    forged = [page("foreign", number, longer(number)) for number in range(60)]
    updates = [[page("victim", number, edited(number, version)) for number in range(60)] for version in range(1, 5)]
    return [[*old, *forged], *updates]


def disclaimer() -> Crawls:
    """One foreign page holds the disclaimer that is 70 % of the text of 60 pages of a site."""
    common = prose("disclaimer", 1400)
    victim = [page("victim", number, f"{prose(f'own {number}', 600)} {common}") for number in range(60)]
    return [[page("foreign", "terms", common), *victim]]


def relaunch() -> Crawls:
    """After 200 normal pages of a site, nothing but the footer is read of the next 100."""
    footer = prose("footer", 400)
    old = [page("victim", number, article(number)) for number in range(200)]
    return [[*old, *(page("victim", number, footer) for number in range(200, 300))]]


def unread() -> Crawls:
    """60 delivered pages. The second crawl reads only their footer, which an older page holds."""
    footer = prose("footer", 400)
    old = [page("victim", "about", footer), *(page("victim", number, article(number)) for number in range(60))]
    return [old, [page("victim", number, footer) for number in range(60)]]


def forged() -> Crawls:
    """For each of 50 articles of a site a foreign site has a page under its title, before the site has it."""
    found = [page("victim", number, article(number)) for number in range(100)]
    for number in range(100, 150):
        found += page("foreign", number, article(number)), page("victim", number, article(number))
    return [found]


def stranger() -> Crawls:
    """A site posts 20 pages of its own and then 300 copies of another one."""
    own = [page("stranger", f"own {number}", prose(f"stranger {number}", 1500)) for number in range(20)]
    copied = [page("victim", number, article(number)) for number in range(300)]
    return [[*own, *copied, *(page("stranger", number, article(number)) for number in range(300))]]


def six_titles() -> Crawls:
    """A site posts each of 1,001 short texts under six titles, and another site copies 20 pages of a third one."""
    posts = [
        page("posts", f"{number}-{title}", prose(f"short {number}", 210), title=f"title {title}")
        for number in range(1001)
        for title in range(6)
    ]
    return [[*posts, *(page(host, number, article(number)) for host in ("one", "other") for number in range(20))]]


def mirror() -> Crawls:
    """Two sites have the same 300 articles, in random order: nothing is wrong."""
    both = [page(host, number, article(number)) for number in range(300) for host in ("one", "other")]
    random.Random(1).shuffle(both)
    return [both]


def reposted() -> Crawls:
    """One article on 200 sites, under 30 titles: nothing is wrong."""
    return [[page(f"site{number}", number % 30, article(0)) for number in range(200)]]


def notes() -> Notes:
    """Stats without a crawl."""
    return Notes(MemoryStatsCollector(Crawler(Spider)))


def alarms(of: Notes) -> Counter[str]:
    """How many sites each alarm warned of."""
    prefix = "neardup/suspicious_drops/"
    return Counter({name.removeprefix(prefix): n for name, n in of.stats.get_stats().items() if prefix in name})


class State:
    """One state and the crawls on it; ``missing``: pages whose last version was dropped."""

    def __init__(self) -> None:
        self.store = memory_state({})
        self.missing: dict[str, str] = {}
        self.pages = 0

    def crawl(self, pages: Iterable[Page]) -> tuple[int, Counter[str]]:
        """Judge pages; returns how many were dropped, and the warnings."""
        detector = Detector(
            CONFIG.make_method(),
            self.store,
            who="",
            policy=Policy(min_letters=CONFIG.min_letters, passes=CONFIG.passes),
        )
        told, drops = notes(), 0
        watch = SiteWatch(told, {one.site: one for one in SITES.read(self.store)})
        for one in pages:
            ruled = detector.check(one)
            assert isinstance(ruled, Ruled)
            if ruled.reservation is not None:
                detector.commit(ruled.reservation, sealed=True)
            watch.see(one, ruled)
            match, verdict = ruled.verdict.match, ruled.verdict
            dropped = verdict.outcome is Outcome.DUPLICATE and ruled.reservation is None
            self.pages += 1
            drops += dropped
            if dropped and match is not None:
                self.missing[one.url] = match.url
            else:
                self.missing.pop(one.url, None)
        add_site_drops(self.store, watch.counts(), self.pages)
        return drops, alarms(told)

    def keep(self) -> None:
        """Keep the victim's pages, as ``scrapy neardup keep --last --site`` does."""
        wrong = [url for url in self.missing if "//victim." in url]
        write_manual_verdicts(self.store, *(ManualVerdict(url, ManualKind.KEEP, self.missing[url], 1) for url in wrong))


def drawn() -> None:
    """Print a row for each of the drawn sites."""
    cases: tuple[Callable[[], Crawls], ...] = (
        later_page,
        disclaimer,
        relaunch,
        unread,
        forged,
        stranger,
        six_titles,
        mirror,
        reposted,
    )
    print("| case | pages | dropped | of the victim | warnings | missing after keep and one more crawl |")
    print("|---|---|---|---|---|---|")
    for case in cases:
        state, dropped, told = State(), 0, Counter[str]()
        crawls = case()
        for pages in crawls:
            drops, warned = state.crawl(pages)
            dropped, told = dropped + drops, told + warned
        pages_seen, victim = state.pages, sum("//victim." in url for url in state.missing)
        state.keep()
        state.crawl(crawls[-1])
        left = sum("//victim." in url for url in state.missing)
        said = ", ".join(f"{n} × {name}" for name, n in sorted(told.items())) or "none"
        print(f"| {case.__name__} | {pages_seen:,} | {dropped:,} | {victim} | {said} | {left} |")


def mirrors(pages: int, chance: random.Random, sites: int) -> bool:
    """Whether a crawl of honest mirrors in random order raises an alarm."""
    order = [(f"{site}.example", number) for number in range(pages) for site in range(sites)]
    chance.shuffle(order)
    told, known = notes(), set[int]()
    watch = SiteWatch(told, {})
    for id, (host, number) in enumerate(order, 1):
        url = f"http://{host}/{number}"
        match = Match(10**6 + number, f"http://0.example/{number}", 0.0, 1.0, 1.0) if number in known else None
        verdict = Verdict(Outcome.DUPLICATE if match else Outcome.UNIQUE, url, id, match)
        watch.see(Page(url, f"Title {number}"), Ruled(verdict))
        known.add(number)
    return bool(alarms(told))


def honest() -> None:
    """How often a crawl of small mirrors warns."""
    print("\n| mirrors | " + " | ".join(str(n) for n in (20, 30, 40, 50, 60, 80, 120, 200)) + " pages each |")
    print("|---|" + "---|" * 8)
    for sites in (2, 3):
        chance = random.Random(sites)
        found = [sum(mirrors(n, chance, sites) for _ in range(TRIALS)) for n in (20, 30, 40, 50, 60, 80, 120, 200)]
        print(f"| {sites} | " + " | ".join(f"{one / TRIALS:.1%}" for one in found) + " |")


if __name__ == "__main__":
    logging.getLogger("scrapy_neardup").setLevel(logging.ERROR)
    drawn()
    honest()
