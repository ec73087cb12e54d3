"""A copy that is better than the page of its group: it passes, stands there from then on, is taken back like any."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from scrapy_neardup.inspect.pages import inspect_pages
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import KeepPolicy, Policy, make_preference
from scrapy_neardup.maintenance.export import OpenState
from scrapy_neardup.maintenance.forget import of_host, pages_where
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Kind, Likeness, Page, Verdict
from scrapy_neardup.settings import Config
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore, newest_replacement
from scrapy_neardup.state.records import Clock
from scrapy_neardup.state.urls import STORES
from tests.build import answer, find_record, kind, make_detector, make_former, page, reserve, story
from tests.state.test_contract import copy_as_killed

TEXT = story(1, 30)
#: One article on five hosts, each time a little different.
WIRE, PAPER, TIMES, BLOG, LATE = (
    page(name, [*TEXT[:-1], f"{name}的编辑部供稿。"], "标题甲", site=f"{name}.example")
    for name in ("wire", "paper", "times", "blog", "late")
)
HOSTS = ("times.example", "paper.example")


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


def crawl(store: PageStore, policy: KeepPolicy = HOSTS, method: str = "cascade") -> Detector:
    """The detector of one more crawl."""
    return make_detector(store, method, policy=policy)


def changed(one: Page, *sentences: str) -> Page:
    return replace(one, text=one.text + "".join(sentences))


def said(found: Verdict) -> tuple[Kind, str | None]:
    """The kind, and the page that stands for the group."""
    return found.kind, found.as_tag()["original"]


def is_sound(store: PageStore) -> bool:
    """Whether it holds together, but for crawls that have not been ended."""
    return set(check(store).counts) <= {"left over"}


def test_a_better_page_passes_and_says_what_it_supersedes(store: PageStore) -> None:
    detector = crawl(store)
    first = answer(detector, WIRE)
    better = answer(detector, PAPER)
    assert (better.kind, better.likeness, better.is_copy) == (Kind.BETTER, Likeness.NEAR, False)
    tag = better.as_tag()
    assert (tag["verdict"], tag["supersedes"], tag["like"], tag["original"]) == ("better", WIRE.url, WIRE.url, None)
    assert better.sentence().startswith(f"better (near): {PAPER.url} supersedes {WIRE.url} (similarity 0.9")
    copy = answer(detector, BLOG)
    assert said(copy) == (Kind.DUPLICATE, PAPER.url)
    assert copy.as_tag()["supersedes"] is None
    best = answer(detector, TIMES)
    assert (best.kind, best.as_tag()["supersedes"]) == (Kind.BETTER, PAPER.url)
    assert said(answer(detector, LATE)) == (Kind.DUPLICATE, TIMES.url)
    assert {one.similar_id for one in (first, better, copy, best)} == {first.similar_id}
    assert is_sound(store)


def test_pages_of_a_former_recipe_show_the_same_group_as_its_better_page(store: PageStore) -> None:
    """As after a migration that has a text of the better page only."""
    detector = crawl(store)
    first = answer(detector, WIRE)
    for one in (PAPER, BLOG):
        answer(detector, one)
    make_former(store, detector.method, WIRE)
    found = [answer(crawl(store), one) for one in (BLOG, WIRE)]
    assert [said(one) for one in found] == [(Kind.DUPLICATE, PAPER.url), (Kind.UNCHANGED, PAPER.url)]
    assert {one.similar_id for one in found} == {first.similar_id}


# What is on its way


def test_a_lost_item_leaves_the_group_as_it_was(store: PageStore) -> None:
    detector = crawl(store)
    answer(detector, WIRE)
    before = list(store.rows(b""))
    detector.release(reserve(detector, TIMES))
    assert [row for row in store.rows(b"") if row[0][:1] in b"rku"] == [row for row in before if row[0][:1] in b"rku"]
    assert said(answer(detector, LATE)) == (Kind.DUPLICATE, WIRE.url)


def test_better_pages_that_are_taken_back_leave_their_places_to_those_before_them(store: PageStore) -> None:
    detector = crawl(store)
    answer(detector, WIRE)
    ids = []
    for one in (PAPER, TIMES):
        reservation = reserve(detector, one)
        detector.commit(reservation, sealed=False)
        ids.append(reservation.record.id)
    group = find_record(store, WIRE).id
    detector.roll_back(ids[1])
    assert newest_replacement(store, group) == find_record(store, PAPER)
    assert kind(detector, TIMES) is Kind.BETTER
    detector.roll_back(ids[0])
    assert newest_replacement(store, group) == find_record(store, TIMES)
    detector.roll_back(find_record(store, TIMES).id)
    assert newest_replacement(store, group) is None
    assert said(answer(detector, LATE)) == (Kind.DUPLICATE, WIRE.url)


@pytest.fixture(params=[scheme for scheme in STORES if scheme != "memory"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    if request.param == "leveldb" and find_spec("plyvel") is None:
        pytest.skip("plyvel is not installed, so there is no LevelDB")
    (tmp_path / "one").mkdir()
    return request.param, tmp_path


def test_a_killed_crawl_leaves_the_old_original_what_it_was_and_a_stored_feed_the_better_one(
    lasting: tuple[str, Path],
) -> None:
    scheme, root = lasting
    recipe = make_method("cascade", {}).recipe()
    store = open_at(STORES[scheme], str(root / "one" / "state"), recipe)
    answer(crawl(store), WIRE)
    detector = crawl(store)
    detector.commit(reserve(detector, TIMES), sealed=False)
    assert kind(detector, BLOG) is Kind.DUPLICATE
    copy_as_killed(root / "one", root / "two")
    killed = open_at(STORES[scheme], str(root / "two" / "state"), recipe)
    assert killed.rolled_back.pages == 1
    assert killed.find(TIMES.url) is None
    assert said(answer(crawl(killed), WIRE)) == (Kind.UNCHANGED, WIRE.url)
    assert said(answer(crawl(killed), BLOG)) == (Kind.DUPLICATE, WIRE.url)
    assert kind(crawl(killed), TIMES) is Kind.BETTER
    assert is_sound(killed)
    killed.close()

    detector.seal()
    copy_as_killed(root / "one", root / "three")
    store.close()
    stored = open_at(STORES[scheme], str(root / "three" / "state"), recipe)
    assert stored.rolled_back.pages == 0
    assert said(answer(crawl(stored), WIRE)) == (Kind.UNCHANGED, TIMES.url)
    assert said(answer(crawl(stored), LATE)) == (Kind.DUPLICATE, TIMES.url)
    assert is_sound(stored)
    stored.close()


def test_a_better_page_that_is_forgotten_leaves_its_place_and_the_first_takes_the_group_along(store: PageStore) -> None:
    for one in (WIRE, TIMES, BLOG):
        answer(crawl(store), one)
    assert store.forget(pages_where(store, of_host("times.example")).ids) == 1
    assert said(answer(crawl(store), LATE)) == (Kind.DUPLICATE, WIRE.url)
    assert kind(crawl(store), TIMES) is Kind.BETTER
    assert store.forget(pages_where(store, of_host("wire.example")).ids) == 4
    assert store.pages == 0


# With whatever there is


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_every_policy(store: PageStore, name: str) -> None:
    """By the same text on another host, that names itself, and is held against one that names it."""
    first = page("wire", TEXT, "标题甲", canonical="http://times.example/")
    better = replace(first, url="http://times.example/", canonical="http://times.example/")
    for policy in (HOSTS, "canonical"):
        store = memory_state({})
        assert kind(crawl(store, policy, method=name), first) is Kind.UNIQUE
        found = answer(crawl(store, policy, method=name), better)
        assert (found.kind, found.as_tag()["supersedes"]) == (Kind.BETTER, first.url)
        third = replace(first, url="http://late.example/")
        assert said(answer(crawl(store, policy, method=name), third)) == (Kind.DUPLICATE, better.url)
        assert kind(crawl(store, policy, method=name), better) is Kind.UNCHANGED


@pytest.mark.parametrize("name", METHODS)
def test_every_method_knows_the_longer_of_two_copies(name: str) -> None:
    """As far as it finds that they are copies: under its mildest threshold, where one has an eighth more."""
    mildest = {make_method(name, {}).threshold: make_method(name, {}).sweep[0]}
    texts = {"short": page("short", TEXT[:24], "标题甲"), "long": page("long", TEXT[:27], "标题甲")}
    kinds = {}
    for first, second in (("short", "long"), ("long", "short")):
        detector = Detector(
            make_method(name, mildest),
            memory_state({}),
            who="test",
            policy=Policy(preference=make_preference("longest")),
        )
        assert kind(detector, texts[first]) is Kind.UNIQUE
        kinds[second] = kind(detector, texts[second])
    if name in ("idf_terms", "segments", "term_profile"):  # by which they are no copies
        assert set(kinds.values()) == {Kind.UNIQUE}
    elif name == "punctuation":  # too rough to say that one page holds the other
        assert set(kinds.values()) == {Kind.DUPLICATE}
    else:
        assert kinds == {"long": Kind.BETTER, "short": Kind.DUPLICATE}


# With other states


def test_a_merge_takes_the_better_page_along_under_the_id_that_its_group_has_here() -> None:
    ours, theirs = memory_state({}), memory_state({})
    answer(crawl(ours), page("other", story(7, 30)))
    answer(crawl(ours), WIRE)
    answer(crawl(theirs), WIRE)
    answer(crawl(theirs), TIMES)
    merge(OpenState(theirs), ours, make_method("cascade", {}).with_hashes(ours.hashes))
    here = find_record(ours, WIRE)
    assert here.id != find_record(theirs, WIRE).id
    assert newest_replacement(ours, here.id) == find_record(ours, TIMES)
    assert said(answer(crawl(ours), LATE)) == (Kind.DUPLICATE, TIMES.url)
    assert is_sound(ours)


def test_the_better_page_of_a_group_that_is_a_copy_here_is_one_of_those_copies() -> None:
    ours, theirs = memory_state({}), memory_state({})
    answer(crawl(ours), BLOG)
    answer(crawl(theirs), WIRE)
    answer(crawl(theirs), TIMES)
    merge(OpenState(theirs), ours, make_method("cascade", {}).with_hashes(ours.hashes))
    assert find_record(ours, TIMES).original == find_record(ours, BLOG).id
    assert newest_replacement(ours, find_record(ours, BLOG).id) is None
    assert said(answer(crawl(ours), TIMES)) == (Kind.UNCHANGED, BLOG.url)
    assert is_sound(ours)


def test_the_state_tells_who_superseded_whom(store: PageStore) -> None:
    for one in (WIRE, PAPER, TIMES, LATE):
        answer(crawl(store), one)
    records = [find_record(store, one) for one in (WIRE, PAPER, TIMES, LATE)]
    found = inspect_pages(store, records, Config())
    assert [one.verdict for one in found] == [Kind.UNIQUE, Kind.BETTER, Kind.BETTER, Kind.DUPLICATE]
    assert [one.superseded for one in found] == [True, True, False, False]
    assert [one.original and one.original.url for one in found] == [TIMES.url, TIMES.url, None, TIMES.url]
    assert not any(one.original_is_gone for one in found)


def test_what_pages_are_weighed_by_is_kept_with_them_and_nothing_else_is(store: PageStore) -> None:
    answer(crawl(store, "canonical"), replace(WIRE, canonical="http://origin.example/"))
    assert store.evidence(find_record(store, WIRE).id) == Evidence(
        letters=len(WIRE.text), canonical="http://origin.example/"
    )
    answer(crawl(store, "canonical"), page("other", story(5, 30)))
    assert len(list(store.rows(b"e"))) == 1


def test_the_first_page_of_a_group_is_seen_in_the_better_one_and_in_its_copies(
    store: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it expires no sooner than they do; but an older version of a page is not what is known of its URL."""
    now = [4_000_000_000.0]
    monkeypatch.setattr(Clock, "now", lambda _: now[0])
    for one, verdict in (
        (WIRE, Kind.UNIQUE),
        (PAPER, Kind.BETTER),
        (PAPER, Kind.UNCHANGED),
        (BLOG, Kind.DUPLICATE),
        (BLOG, Kind.DUPLICATE),
        (changed(WIRE, "又有一句。"), Kind.UPDATED),
    ):
        now[0] += 60
        assert kind(crawl(store), one) is verdict
        assert store.last_seen(WIRE.url) == now[0]
    newest = find_record(store, WIRE)
    assert (newest.is_original, newest.delivered) == (False, True)
