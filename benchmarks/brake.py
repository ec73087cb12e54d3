"""How soon the safety brake comes on where articles are lost, and whether it does where copies are dropped rightly.

    python benchmarks/brake.py                  # drawn sites on which something goes wrong, and two where nothing does
    python benchmarks/brake.py TAGGED.jsonl …   # verdicts on real articles

The drawn sites are judged by the default method. TAGGED.jsonl is what ``scrapy neardup dedup --tag`` wrote; ``url``
and ``title`` of its records are read, and those without a URL are taken for pages of one site.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from scrapy_neardup.config import Config
from scrapy_neardup.crawl.brake import Alarm, Brake
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.reservations import Ruled
from scrapy_neardup.model import Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.stores import MemoryStore

CONSONANTS, VOWELS = "bdfgklmnprstv", "aeiou"
CONFIG = Config()


def words(chance: random.Random, many: int) -> list[str]:
    """Words of no language."""
    return ["".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(3)) for _ in range(many)]


def prose(seed: str, letters: int) -> str:
    """Sentences of ten words, about so many letters of them; another seed gives others."""
    chance = random.Random(seed)
    return " ".join(" ".join(words(chance, 10)).capitalize() + "." for _ in range(max(1, letters // 70)))


def page(host: str, name: object, text: str) -> Page:
    """A page with a title of its own."""
    url = f"http://{host}.example/{name}"
    return Page(url, f"Of {' '.join(words(random.Random(str(name)), 4))}", text=text, site=site_of(url))


def disclaimer() -> Iterator[Page]:
    """One foreign page holds the disclaimer that is 70 % of the text of 60 pages of a site."""
    common = prose("disclaimer", 1400)
    yield page("foreign", "terms", common)
    for number in range(60):
        yield page("victim", number, f"{prose(f'own {number}', 600)} {common}")


def relaunch() -> Iterator[Page]:
    """After 200 normal pages of a site, nothing but the footer is read of the next 100."""
    yield from (page("victim", number, prose(f"own {number}", 1500)) for number in range(200))
    footer = prose("footer", 400)
    yield from (page("victim", number, footer) for number in range(200, 300))


def forged() -> Iterator[Page]:
    """For each of 50 articles of a site a foreign site has a page under its title, before the site has it."""
    texts = [prose(f"own {number}", 1500) for number in range(150)]
    yield from (page("victim", number, texts[number]) for number in range(100))
    for number in range(100, 150):
        yield page("foreign", number, texts[number])
        yield page("victim", number, texts[number])


def mirror() -> Iterator[Page]:
    """Two sites have the same 300 articles, and are crawled at once: nothing is wrong."""
    both = [page(host, number, prose(f"own {number}", 1500)) for number in range(300) for host in ("one", "other")]
    random.Random(1).shuffle(both)
    yield from both


def reposted() -> Iterator[Page]:
    """One article on 200 sites, under 30 titles: nothing is wrong."""
    text = prose("own", 1500)
    for number in range(200):
        yield page(f"site{number}", number % 30, text)


class Crawl:
    """Pages judged in their order by the default method, with the brake and without."""

    def __init__(self, *, acts: bool) -> None:
        self.brake = Brake(acts)
        self.alarms: list[tuple[int, Alarm]] = []
        self.dropped = self.passed = self.pages = 0
        self._missing: set[str] = set()
        self._detector = Detector(
            CONFIG.make_method(),
            MemoryStore("memory:", {}),
            min_letters=CONFIG.min_letters,
            who="",
            passes=self._passes,
        )

    def judge(self, one: Page) -> None:
        """Judge a page; its item comes through if it is not dropped."""
        ruled = self._detector.check(one)
        assert isinstance(ruled, Ruled)
        if ruled.reservation is not None:
            self._detector.commit(ruled.reservation, sealed=True)
        copy = ruled.verdict.kind is Kind.DUPLICATE
        self.pages += 1
        self.dropped += copy and ruled.reservation is None
        self.passed += copy and ruled.reservation is not None
        (self._missing.add if copy and ruled.reservation is None else self._missing.discard)(one.url)
        alarm = self.brake.see(one, ruled.verdict, dropped=copy and ruled.reservation is None)
        if alarm is not None:
            self.alarms.append((self.dropped, alarm))

    @property
    def missing(self) -> int:
        """Pages that were dropped whenever they came."""
        return len(self._missing)

    def _passes(self, verdict: Verdict) -> bool:
        return CONFIG.passes(verdict) or self.brake.lets_pass(verdict)


def drawn() -> None:
    """A line for each of the drawn sites."""
    print("| site | pages | dropped without the brake | with it | passed | it comes on for | missing after two |")
    print("|---|---|---|---|---|---|---|")
    for make in (disclaimer, relaunch, forged, mirror, reposted):
        without, braked = Crawl(acts=False), Crawl(acts=True)
        for one in make():
            without.judge(one)
            braked.judge(one)
        told = ", ".join("a site" if alarm.is_of_site else "an original" for _, alarm in braked.alarms) or "nothing"
        line = f"| {make.__name__} | {braked.pages} | {without.dropped} | {braked.dropped} | {braked.passed} | {told} |"
        for one in make():  # it stays on
            braked.judge(one)
        print(f"{line} {braked.missing} |")


def verdicts(path: Path) -> Iterator[tuple[Page, Verdict]]:
    """What ``dedup --tag`` wrote."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            record = json.loads(line)
            tag, url = record["neardup"], record.get("url") or f"http://{path.name}/{number}"
            match = None
            if tag["similar_id"] and tag["original"]:
                shared = tuple(tag["shared"])
                match = Match(int(tag["similar_id"], 16), tag["original"], 0.0, tag["similarity"], 0.0, shared)
            likeness = Likeness(tag["kind"]) if tag["kind"] else None
            verdict = Verdict(Kind(tag["verdict"]), url, number, match, tag["reason"] or "", likeness)
            yield Page(url, record.get("title") or ""), verdict


def replayed(path: Path) -> None:
    """When the brake would come on over the verdicts of a feed, every copy being dropped."""
    brake, pages, drops = Brake(acts=False), 0, 0
    alarms: list[tuple[int, Alarm]] = []
    for one, verdict in verdicts(path):
        dropped = verdict.kind is Kind.DUPLICATE and not CONFIG.passes(verdict)
        pages, drops = pages + 1, drops + dropped
        alarm = brake.see(one, verdict, dropped=dropped)
        if alarm is not None:
            alarms.append((pages, alarm))
    sites = sum(alarm.is_of_site for _, alarm in alarms)
    print(f"{path.name}: {pages:,} pages, {drops:,} dropped; on for {sites} sites, {len(alarms) - sites} originals")
    for place, alarm in alarms[:10]:
        match = alarm.verdict.match
        assert match is not None
        said = f', both say "{match.shared[0][:60]}"' if match.shared else ""
        print(f"  at page {place:,}, {alarm.site}: {match.url}{said}")


def main(arguments: Iterable[str] | None = None) -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tagged", nargs="*", type=Path, metavar="TAGGED.jsonl")
    given = parser.parse_args(None if arguments is None else list(arguments))
    for path in given.tagged:
        replayed(path)
    if not given.tagged:
        drawn()


if __name__ == "__main__":
    main()
