"""The safety brake: when it comes on, for what, and when it does not; told by verdicts alone."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import count

import pytest

from scrapy_neardup.crawl import brake as module
from scrapy_neardup.crawl.brake import Alarm, Brake
from scrapy_neardup.model import Kind, Match, Page, Verdict

NUMBERS = count(1)
NORMAL, DROP = Kind.UNIQUE, Kind.DUPLICATE


def see(brake: Brake, kind: Kind, site: str = "river.example", *, original: int = 0, title: str = "") -> Alarm | None:
    """A page with a number of its own; its title too is, unless one is given. A copy is dropped unless it may pass."""
    number = next(NUMBERS)
    original = original or 10_000 + number
    match = Match(original, f"http://other.example/{original}", 0.0, 0.9, 0.9) if kind is DROP else None
    verdict = Verdict(kind, f"http://{site}/{number}", number, match)
    dropped = kind is DROP and not brake.lets_pass(verdict)
    return brake.see(Page(verdict.url, title or f"Title {number}"), verdict, dropped=dropped)


def alarms(brake: Brake, kinds: Iterable[Kind], site: str = "river.example") -> list[tuple[int, Alarm]]:
    """The alarms, each with the number of pages after which it was given."""
    told = ((place, see(brake, kind, site)) for place, kind in enumerate(kinds, 1))
    return [(place, alarm) for place, alarm in told if alarm is not None]


def mixed(share: float, pages: int) -> list[Kind]:
    """So many pages, of which a share is dropped, in an order without a rule."""
    drops = round(share * pages)
    return random.Random(pages).sample([DROP] * drops + [NORMAL] * (pages - drops), pages)


# One original, many titles.


def test_the_fifth_title_of_a_site_under_which_pages_are_dropped_for_one_original_is_one_too_many() -> None:
    brake = Brake(acts=True)
    told = [see(brake, DROP, original=7) for _ in range(9)]
    assert [alarm is not None for alarm in told] == [False] * 4 + [True] + [False] * 4
    alarm = told[4]
    assert alarm is not None
    assert (alarm.site, alarm.is_of_site, len(alarm.dropped)) == ("river.example", False, 5)
    assert alarm.verdict.id == alarm.dropped[-1]


def test_from_then_on_copies_of_that_original_pass_on_every_site_and_others_do_not() -> None:
    brake = Brake(acts=True)
    for _ in range(5):
        see(brake, DROP, original=7)
    for site, original, passes in (("river.example", 7, True), ("lake.example", 7, True), ("river.example", 8, False)):
        verdict = Verdict(DROP, f"http://{site}/", 1, Match(original, "http://other.example/", 0.0, 0.9, 0.9))
        assert brake.lets_pass(verdict) is passes


def test_what_only_warns_lets_nothing_pass_and_warns_once() -> None:
    brake = Brake(acts=False)
    told = [see(brake, DROP, original=7) for _ in range(20)]
    assert sum(alarm is not None for alarm in told) == 1
    verdict = Verdict(DROP, "http://river.example/", 1, Match(7, "http://other.example/", 0.0, 0.9, 0.9))
    assert not brake.lets_pass(verdict)


def test_an_article_that_many_sites_repost_under_many_titles_is_no_alarm() -> None:
    brake = Brake(acts=True)
    assert not any(
        see(brake, DROP, f"site{number}.example", original=7, title=f"Title {number % 30}") for number in range(800)
    )


@pytest.mark.parametrize(
    "titles",
    [
        ["The ferry sails again"] * 50,
        [
            "The ferry sails again",
            "THE FERRY – sails again",
            "The ferry, sails again!",
            "The ferry sails again | Daybook",
        ]
        * 9,
        [""] * 12,
    ],
    ids=["the same", "written otherwise", "none"],
)
def test_titles_that_are_the_same_are_one(titles: list[str]) -> None:
    brake = Brake(acts=True)
    told = []
    for title in titles:
        number = next(NUMBERS)
        verdict = Verdict(DROP, f"http://river.example/{number}", number, Match(7, "http://o.example/", 0.0, 1.0, 1.0))
        told.append(brake.see(Page(verdict.url, title), verdict, dropped=True))
    assert not any(told)


def test_headlines_tell_pages_apart_that_have_the_title_of_their_site() -> None:
    brake, told = Brake(acts=True), []
    for number in range(5):
        verdict = Verdict(DROP, f"http://river.example/{number}", number + 1, Match(7, "http://o.example/", 0, 1, 1))
        told.append(brake.see(Page(verdict.url, "The Daybook", headline=f"Ferry {number}"), verdict, dropped=True))
    assert told[4] is not None


def test_copies_that_the_policy_lets_pass_and_pages_without_a_site_are_no_evidence() -> None:
    brake = Brake(acts=True)
    for number in range(50):
        match = Match(7, "http://other.example/", 0.0, 0.9, 0.9)
        tagged = Verdict(DROP, f"http://river.example/{number}", number + 1, match)
        nameless = Verdict(DROP, f"text:{number}", number + 1, match)
        assert brake.see(Page(tagged.url, f"Title {number}"), tagged, dropped=False) is None
        assert brake.see(Page(nameless.url, f"Title {number}"), nameless, dropped=True) is None


# A site that was no mirror.


def test_a_site_that_was_no_mirror_and_is_one_now_is_an_alarm_after_thirteen_drops() -> None:
    brake = Brake(acts=True)
    [(place, alarm)] = alarms(brake, [NORMAL] * 40 + [DROP] * 60)
    assert place == 53
    assert (alarm.site, alarm.is_of_site, alarm.before) == ("river.example", True, 0.0)
    assert len(alarm.dropped) == 13
    assert alarm.dropped[-1] == alarm.verdict.id


def test_from_then_on_copies_on_that_site_pass_whatever_their_original() -> None:
    brake = Brake(acts=True)
    alarms(brake, [NORMAL] * 40 + [DROP] * 13)
    match = Match(99, "http://other.example/", 0.0, 0.9, 0.9)
    assert brake.lets_pass(Verdict(DROP, "http://www.river.example/new", 1, match))
    assert not brake.lets_pass(Verdict(DROP, "http://lake.example/new", 1, match))
    assert not brake.lets_pass(Verdict(Kind.UNCHANGED, "http://river.example/new", 1, match))


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([DROP] * 300, False),
        ([NORMAL] * 10 + [DROP] * 300, False),
        (mixed(0.5, 200), False),
        (mixed(0.3, 100) + [DROP] * 50, False),
        (mixed(0.1, 100) + [DROP] * 50, True),
        ([NORMAL] * 100 + mixed(0.5, 60), False),
        ([NORMAL] * 100 + [DROP] * 12 + [NORMAL] * 3 + [DROP] * 9, False),
        ([NORMAL] * 100 + [DROP] * 6 + [NORMAL] + [DROP] * 8, True),
        ([kind for _ in range(9) for kind in [NORMAL] * 100 + [DROP] * 12], False),
    ],
    ids=[
        "a mirror from its beginning",
        "before much is known",
        "half of a site",
        "one that copies much",
        "one that copies little",
        "half of the new ones",
        "a run that ends",
        "with one between",
        "runs",
    ],
)
def test_when_a_share_has_jumped(kinds: list[Kind], expected: bool) -> None:
    assert bool(alarms(Brake(acts=True), kinds)) is expected


@pytest.mark.parametrize("seed", range(20))
def test_two_mirrors_that_are_crawled_at_once_are_no_alarm(seed: int) -> None:
    """The share of drops rises from nothing to all, but slowly."""
    pages = [(site, number) for number in range(400) for site in ("one.example", "other.example")]
    random.Random(seed).shuffle(pages)
    brake, seen = Brake(acts=True), set[int]()
    told = []
    for site, number in pages:
        told.append(see(brake, DROP if number in seen else NORMAL, site, original=number + 1))
        seen.add(number)
    assert not any(told)


def test_pages_that_come_again_are_no_drops_and_unjudged_ones_nothing_at_all() -> None:
    brake = Brake(acts=True)
    assert alarms(brake, [NORMAL] * 40 + [Kind.UNCHANGED] * 500) == []
    assert alarms(brake, [DROP, Kind.UPDATED] * 100) == []
    unjudged = Brake(acts=True)
    [(place, _)] = alarms(unjudged, [NORMAL] * 40 + [DROP, Kind.UNJUDGED] * 30)
    assert place == 40 + 2 * 13 - 1


def test_a_second_crawl_in_which_the_copies_of_the_first_are_dropped_again_is_no_alarm() -> None:
    """New pages first, then the old ones: those that passed are unchanged, the copies are copies again."""
    old = [Kind.UNCHANGED if kind is NORMAL else DROP for kind in mixed(0.15, 400)]
    assert alarms(Brake(acts=True), [NORMAL] * 30 + old) == []


def test_each_site_is_counted_by_itself() -> None:
    brake, told = Brake(acts=True), []
    for kind in [NORMAL] * 40 + [DROP] * 20:
        told += [see(brake, kind, "river.example"), see(brake, NORMAL, "lake.example")]
    assert [alarm.site for alarm in told if alarm] == ["river.example"]


# Strangers choose how many sites and originals there are.


def test_what_is_watched_is_bounded_and_what_was_seen_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SITES", 50)
    monkeypatch.setattr(module, "_ORIGINALS", 50)
    brake = Brake(acts=True)
    told: list[Alarm | None] = []
    for number in range(600):
        see(brake, DROP, f"site{number}.example")
        told.append(see(brake, NORMAL if number < 60 else DROP, "river.example", original=number + 1, title="Same"))
    assert len(brake._sites) == 50
    assert len(brake._originals) <= 50
    assert [alarm is not None for alarm in told].index(True) == 60 + 12


def test_once_it_is_on_for_more_than_can_be_remembered_it_is_on_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 3)
    brake = Brake(acts=True)
    verdict = Verdict(DROP, "http://lake.example/", 1, Match(99, "http://other.example/", 0.0, 0.9, 0.9))
    for original in range(1, 5):
        assert not brake.lets_pass(verdict)
        for _ in range(5):
            see(brake, DROP, f"site{original}.example", original=original)
    assert brake.lets_pass(verdict)
    assert len(brake._on) == 4
