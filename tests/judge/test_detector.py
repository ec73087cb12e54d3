"""The detector: candidates, kinds of likeness, common keys, boilerplate, variants, pages on their way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import BITS, key_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.methods.literature.base import PublishedMethod, signature_of, unpack_hashes
from scrapy_neardup.model import Kind, Likeness, Page
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from tests.build import answer, judge_page, kind, page, reserve, story, summary


@pytest.fixture
def store() -> Iterator[PageStore]:
    opened = open_store("memory:", {})
    yield opened
    close_store(opened)


@pytest.fixture
def detector(store: PageStore) -> Detector:
    return Detector(make_method("cascade", {}), store, who="test")


def test_a_copy_names_its_original_and_a_sentence_that_both_share(detector: Detector) -> None:
    text = story(1)
    judge_page(detector, page("first", text))
    verdict = judge_page(detector, page("second", [*text[1:], "本站转载。"])).verdict
    assert verdict.match is not None
    assert (verdict.kind, verdict.match.url) == (Kind.DUPLICATE, "http://first.example/")
    assert verdict.match.similarity > 0.85
    assert set(verdict.match.shared) <= {sentence.rstrip("。") for sentence in text}
    assert len(verdict.match.shared) == 3


@pytest.mark.parametrize(
    ("sites", "filed"), [(1, 16), (20, METHODS["cascade"].common), (52, 30)], ids=["one site", "some", "many"]
)
def test_a_sentence_that_many_originals_share_is_no_evidence_and_its_postings_stop_growing(
    detector: Detector, store: PageStore, sites: int, filed: int
) -> None:
    """On one site it is soon known for boilerplate, and on many; on some its key is known for common first."""
    disclaimer = (
        "本文仅代表作者个人观点与本站立场无关转载请注明出处如有侵权请在三十日内与编辑部联系我们将及时处理" * 2 + "。"
    )
    key = make_method("cascade", {}).with_hashes(store.hashes).fingerprint(Page("", text=disclaimer)).keys[0]
    for number in range(METHODS["cascade"].common + 20):
        site = f"{number % sites}.example"
        assert kind(detector, page(f"site{number}", [*story(100 + number), disclaimer], site=site)) is Kind.UNIQUE
    assert len(store.postings(key, 1000)) == filed


def test_the_canonical_link_proposes_a_candidate_and_the_text_decides(detector: Detector) -> None:
    method = make_method("cascade", {"shingle_keys": 1, "sentence_keys": 1})
    poor = Detector(method, open_store("memory:", {}), who="test")
    text = story(1, 12)
    judge_page(poor, page("first", text))
    # Every sentence is touched, so that the poor keys miss the page, though its shingles are much the same.
    touched = [sentence[:14] + "的" + sentence[14:] for sentence in text]
    named = page("second", touched, "first", canonical="http://first.example/")
    assert not set(method.fingerprint(named).keys) & set(method.fingerprint(page("first", text)).keys)
    assert kind(poor, named) is Kind.DUPLICATE
    assert kind(poor, page("third", story(9), canonical="http://first.example/")) is Kind.UNIQUE


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "no_text"), (" \n ", "no_text"), ("一张照片。", "too_short"), ("首页\n新闻\n" * 40, "too_short")],
)
def test_a_page_with_too_little_prose_is_not_judged(detector: Detector, text: str, reason: str) -> None:
    for _ in range(2):
        verdict = answer(detector, Page("http://a.example/", text=text))
        assert (verdict.kind, verdict.reason) == (Kind.UNJUDGED, reason)


def test_a_hash_whose_key_is_common_is_no_evidence_whatever_of_it_is_a_key() -> None:
    """These methods hold hashes of their sketches, which are whole, against keys, which are parts of such."""
    for method in ["nshash", "segments", "punctuation"]:
        judge = make_method(method, {}).with_hashes(Keyed(b"secret"))
        assert isinstance(judge, PublishedMethod), method
        made = judge.for_state(page("first", story(1, 30)), None)
        signature = signature_of(made.sketch)
        common = {key_of(hash) for hash in unpack_hashes(signature) if hash}
        assert common, method
        assert {key.bit_length() <= BITS for key in common} == {True}, method
        assert judge.agreement(made, signature, signature, frozenset()).duplicate, method
        assert not judge.agreement(made, signature, signature, common).duplicate, method


# In which way a page is like another.

HEADLINE = "渡口清晨开航第一班"
# Its beginning holds the keys of the longest sentences of the whole: without one, an excerpt is not found.
LONG = sorted(story(5, 20), key=len, reverse=True)
ALIKE = {
    Likeness.IDENTICAL: page("second", LONG, "图书馆夜间开放"),
    Likeness.NEAR: page("second", [*LONG[1:], *story(2, 2)], HEADLINE),
    Likeness.RETITLED: page("second", [*LONG[1:], *story(2, 2)], "图书馆夜间开放"),
    Likeness.EXCERPT: page("second", LONG[:7], "图书馆夜间开放"),
    Likeness.SAME_TITLE: page("second", story(2), HEADLINE),
}
PASSING = [Likeness.EXCERPT, Likeness.SAME_TITLE]


def copying(store: PageStore, *also: Likeness) -> Detector:
    return Detector(make_method("cascade", {}), store, who="test", policy=Policy(also_copies=set(also)))


@pytest.mark.parametrize("likeness", Likeness)
def test_a_verdict_says_in_which_way_a_page_is_like_its_match(detector: Detector, likeness: Likeness) -> None:
    assert summary(answer(detector, page("first", LONG, HEADLINE))) == (Kind.UNIQUE, None, None)
    found = answer(detector, ALIKE[likeness])
    assert summary(found) == (Kind.UNIQUE if likeness in PASSING else Kind.DUPLICATE, likeness, "first")
    assert found.is_copy is (likeness not in PASSING)


@pytest.mark.parametrize("likeness", PASSING)
def test_what_passes_otherwise_is_a_copy_if_that_is_asked_for(store: PageStore, likeness: Likeness) -> None:
    [other] = {*PASSING} - {likeness}
    strict = copying(store, likeness)
    first = answer(strict, page("first", LONG, HEADLINE))
    assert summary(answer(strict, replace(ALIKE[other], url="http://other.example/"))) == (Kind.UNIQUE, other, "first")
    found = answer(strict, ALIKE[likeness])
    assert summary(found) == (Kind.DUPLICATE, likeness, "first")
    assert found.similar_id == first.similar_id
    assert summary(answer(strict, ALIKE[likeness])) == (Kind.DUPLICATE, likeness, "first")


def test_a_longer_text_that_comes_after_its_excerpt_is_told_of_and_passes(detector: Detector) -> None:
    answer(detector, ALIKE[Likeness.EXCERPT])
    found = answer(detector, page("first", LONG, HEADLINE))
    assert summary(found) == (Kind.UNIQUE, Likeness.EXCERPT, "second")
    assert found.match is not None
    assert found.match.containment > 0.9 > 0.4 > found.match.similarity
    assert set(found.match.shared) <= {sentence.rstrip("。") for sentence in LONG[:7]}


@pytest.mark.parametrize("likeness", PASSING)
def test_only_a_copy_waits_for_a_page_on_its_way(store: PageStore, likeness: Likeness) -> None:
    """So an excerpt names the longer text only if that came through before it."""
    first = reserve(copying(store), page("first", LONG, HEADLINE))
    assert copying(store, likeness).check(ALIKE[likeness]) == Blocked(first)
    passing = reserve(copying(store), ALIKE[likeness])
    assert summary(passing.verdict) == (Kind.UNIQUE, None, None)


def test_the_best_match_is_a_copy_before_an_excerpt_before_the_same_title(store: PageStore) -> None:
    """Whatever they say of similarity: that of the page with the same title is larger than that of the excerpt."""
    copied = page("copied", [*LONG[:16], *story(2, 2)], "灯塔修缮老人志愿")
    excerpt = page("excerpt", LONG[:6], "茶园采摘工人合作")
    title = page("title", [*LONG[6:16], *story(4, 6)], HEADLINE)
    for place, expected in enumerate(
        [
            (Kind.DUPLICATE, Likeness.RETITLED, "copied"),
            (Kind.UNIQUE, Likeness.EXCERPT, "excerpt"),
            (Kind.UNIQUE, Likeness.SAME_TITLE, "title"),
        ]
    ):
        detector = copying(open_store("memory:", {}))
        for earlier in [copied, excerpt, title][place:]:
            answer(detector, earlier)
        found = answer(detector, page("new", LONG[:16], HEADLINE))
        assert summary(found) == expected
        assert found.match is not None
        assert found.match.similarity > 0.25


def test_a_copy_is_the_better_match_also_where_an_excerpt_is_a_copy(detector: Detector, store: PageStore) -> None:
    """Both can be originals of one state: the policy is no part of its recipe."""
    answer(detector, page("copied", [*LONG[:16], *story(2, 2)], HEADLINE))
    answer(detector, page("excerpt", LONG[:4], "茶园采摘工人合作"))
    found = answer(copying(store, Likeness.EXCERPT), page("new", LONG[:16], HEADLINE))
    assert summary(found) == (Kind.DUPLICATE, Likeness.NEAR, "copied")


@pytest.mark.parametrize("likeness", PASSING)
def test_a_page_that_has_become_like_another_is_updated(detector: Detector, likeness: Likeness) -> None:
    answer(detector, page("first", LONG, HEADLINE))
    answer(detector, page("second", story(7)))
    found = answer(detector, ALIKE[likeness])
    assert summary(found) == (Kind.UPDATED, None, "second")
    assert found.match is not None
    assert found.match.similarity < 0.1
    assert summary(answer(detector, ALIKE[likeness])) == (Kind.UNCHANGED, None, "second")


# What stands on many pages.

CLAUSES = story(9, 12)


def board(number: int, *, clauses: list[str] = CLAUSES, site: str = "board.example") -> Page:
    """Short news, 81 letters, above a disclaimer that is four times as long; ``number`` also makes its HTML."""
    text = "\n".join([*story(1000 + number, 3), *clauses])
    return Page(f"http://{site}/{number}", f"第{number}号短讯", text=text, html=number + 1, site=site)


def known(store: PageStore, sentences: list[str] = CLAUSES, site: str = "board.example") -> int:
    """How many of these the state knows for boilerplate of a site."""
    method = make_method("cascade", {}).with_hashes(store.hashes)
    counted = method.fingerprint(Page("", text="\n".join(sentences))).sentences
    return int(store.on_site(site).is_common(counted).sum())


def test_pages_that_differ_in_a_fifth_pass_before_the_rest_is_boilerplate(detector: Detector, store: PageStore) -> None:
    for number in range(40):
        assert summary(answer(detector, board(number))) == (Kind.UNIQUE, None, None)
        assert known(store) == (len(CLAUSES) if number >= 15 else 0)


@pytest.mark.parametrize("clauses", [15, 18], ids=["five sixths", "six sevenths"])
def test_a_disclaimer_makes_hardly_a_copy_of_the_first_pages(
    detector: Detector, store: PageStore, clauses: int
) -> None:
    """Until that is known they have other titles and other openings; now and then two openings seem to be alike."""
    pages = [board(number, clauses=story(9, clauses)) for number in range(60)]
    kinds = [kind(detector, one) for one in pages]
    assert kinds[:16].count(Kind.DUPLICATE) <= 1
    assert known(store, story(9, clauses)) == clauses
    assert set(kinds[32:]) == {Kind.UNIQUE}


@pytest.mark.parametrize("number", [0, 7, 15, 16, 30], ids="filed {}".format)
@pytest.mark.parametrize("site", ["board.example", "mirror.example"])
def test_a_copy_with_boilerplate_is_found_whenever_that_was_known(detector: Detector, number: int, site: str) -> None:
    for one in range(32):
        answer(detector, board(one))
    copy = replace(board(number), url=f"http://{site}/copy", site=site)
    assert summary(answer(detector, copy))[:2] == (Kind.DUPLICATE, Likeness.IDENTICAL)
    longer = replace(copy, url=f"http://{site}/longer", text=f"{copy.text}\n本报记者现场报道")
    found = answer(detector, longer)
    if (number < 16) == (site == "board.example"):
        # The earlier sketch is boilerplate for four fifths, which leaves too little to tell more than identity. Or it
        # is without that, which is boilerplate to no other site: then it holds a fifth of what the other one shows.
        assert found.kind is Kind.UNIQUE
    else:
        assert (found.kind, found.match and found.match.url) == (Kind.DUPLICATE, board(number).url)


def test_most_copies_of_pages_that_were_filed_with_boilerplate_are_found(detector: Detector) -> None:
    """Not all: a page filed before the guard knew may have no key of the body but those of its boilerplate."""
    for number in range(32):
        answer(detector, board(number))
    copies = (
        replace(board(number), url=f"http://m.example/{number}", title=f"转载第{number}号短讯") for number in range(16)
    )
    found = [kind(detector, copy) for copy in copies]
    assert found[-1] is Kind.DUPLICATE
    assert found.count(Kind.DUPLICATE) >= 10
    # Once it is {DUPLICATE}, docs/en/how-it-works/reading.md need no longer say so.
    assert set(found) == {Kind.DUPLICATE, Kind.UNIQUE}


def test_a_page_judged_before_its_boilerplate_was_known_is_unchanged_after(detector: Detector) -> None:
    for number in range(32):
        answer(detector, board(number))
    assert {kind(detector, board(number)) for number in range(32)} == {Kind.UNCHANGED}
    changed = board(3).text.replace(CLAUSES[0], "另有一条。")
    assert kind(detector, replace(board(3), text=changed)) is Kind.UPDATED


def test_a_page_of_boilerplate_passes_again_only_if_its_html_has_changed(detector: Detector) -> None:
    menu = Page("http://board.example/menu", "版面目录", text="\n".join(CLAUSES[:6]), html=99, site="board.example")
    for number in range(16):
        answer(detector, board(number))
    for html in (99, 100):
        found = answer(detector, replace(menu, html=html))
        assert (found.kind, found.reason, found.likeness, found.match) == (Kind.UNJUDGED, "boilerplate", None, None)
        assert kind(detector, replace(menu, html=html)) is Kind.UNCHANGED
    assert answer(detector, replace(menu, url="http://board.example/second")).reason == "boilerplate"


def test_a_page_whose_item_is_lost_does_not_count(detector: Detector, store: PageStore) -> None:
    for number in range(40):
        lost = reserve(detector, board(number))
        detector.release(lost)
    assert known(store) == 0
    for number in range(15):
        answer(detector, board(number))
    assert known(store) == 0
    answer(detector, board(15))
    assert known(store) == len(CLAUSES)


def test_a_page_counts_once_however_often_it_is_seen(detector: Detector, store: PageStore) -> None:
    for number in range(15):
        answer(detector, board(number))
    for number in range(100, 120):
        seen = replace(board(number), url=board(3).url)
        assert [kind(detector, seen) for _ in range(2)] == [Kind.UPDATED, Kind.UNCHANGED]
    copy = replace(board(7), url="http://board.example/copy")
    assert [kind(detector, copy) for _ in range(20)] == [Kind.DUPLICATE] * 20
    assert known(store) == 0


def test_a_copy_counts_once_though_it_copies_another_page_each_time(detector: Detector, store: PageStore) -> None:
    texts = LONG, story(6, 20)
    for name, text in zip(("first", "second"), texts, strict=True):
        answer(detector, page(name, text, HEADLINE, site="a.example"))
    for number in range(40):
        copy = page("copy", [*texts[number % 2][:18], *story(700 + number, 2)], HEADLINE, site="a.example")
        assert kind(detector, copy) is Kind.DUPLICATE
    assert known(store, LONG) + known(store, texts[1]) == 0


@pytest.mark.parametrize("added", [0, 1, 2])
def test_a_popular_article_does_not_become_boilerplate(detector: Detector, store: PageStore, added: int) -> None:
    """60 hosts bring it, each with ``added`` sentences of its own."""
    for number in range(60):
        site = f"host{number}.example"
        text = [*LONG, *story(500 + number, added)]
        found = answer(detector, page(f"host{number}", text, HEADLINE, site=site))
        assert found.kind is (Kind.DUPLICATE if number else Kind.UNIQUE)
        assert (number == 0) or summary(found)[2] == "host0"
    assert known(store, LONG) == 0
