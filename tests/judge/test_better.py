"""A copy that is better than the page of its group: it passes, stands there from then on, is taken back like any."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import KeepPolicy, Policy, make_preference
from scrapy_neardup.maintenance.export import OpenState
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore, newest_replacement
from tests.build import answer, find_record, kind, make_detector, page, story

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
    return make_detector(store, method, policy=policy)


def said(found: Verdict) -> tuple[Kind, str | None]:
    return found.kind, found.as_tag()["original"]


def is_sound(store: PageStore) -> bool:
    """Whether it holds together, but for crawls that have not been ended."""
    return set(check(store).counts) <= {"left over"}


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


def test_every_method_knows_the_longer_of_two_copies() -> None:
    """As far as it finds that they are copies: under its mildest threshold, where one has an eighth more."""
    for name in METHODS:
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
            assert kind(detector, texts[first]) is Kind.UNIQUE, name
            kinds[second] = kind(detector, texts[second])
        if name in ("idf_terms", "segments", "term_profile"):  # by which they are no copies
            assert set(kinds.values()) == {Kind.UNIQUE}, name
        elif name == "punctuation":  # too rough to say that one page holds the other
            assert set(kinds.values()) == {Kind.DUPLICATE}, name
        else:
            assert kinds == {"long": Kind.BETTER, "short": Kind.DUPLICATE}, name


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


def test_what_pages_are_weighed_by_is_kept_with_them_and_nothing_else_is(store: PageStore) -> None:
    answer(crawl(store, "canonical"), replace(WIRE, canonical="http://origin.example/"))
    assert store.evidence(find_record(store, WIRE).id) == Evidence(
        letters=len(WIRE.text), canonical="http://origin.example/"
    )
    answer(crawl(store, "canonical"), page("other", story(5, 30)))
    assert len(list(store.rows(b"e"))) == 1
