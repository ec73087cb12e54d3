"""A delivered page whose text changes by a few letters: it is dropped unless the policy lets it pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_neardup.model import Kind, Page
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.recipe import NO_SECRET
from tests.build import BAKERY, PEARS, answer, find_record, join_text, kind, make_detector, story

URL = "https://daily.example/bakery"
LONG = "\n".join([f"{one}." for one in BAKERY] + ["44 views"])
SHORT = join_text(*BAKERY[:2], "The sale is on 14 May")
CHINESE = "".join(story(1, 40))


def article(text: str, title: str = "Two sisters buy the bakery") -> Page:
    return Page(URL, title, text=text, site="daily.example")


CASES = {
    "a counter in a line of its own": (LONG, LONG.replace("44 views", "1,045 views"), True),
    "a corrected typo": (LONG, LONG.replace("counter", "conuter"), True),
    "a word more": (LONG, LONG.replace("the drivers", "the tram drivers"), True),
    "a corrected typo in a short text": (SHORT, SHORT.replace("depot", "depto"), True),
    "another character": (CHINESE, CHINESE.replace(CHINESE[200], "梨", 1), True),
    "a new paragraph": (LONG, f"{LONG}\nThe neighbours have withdrawn their complaint about the smoke.", False),
    "a new sentence": (LONG, LONG.replace("1931.", "1931. It burnt on Monday."), False),
    "a new Chinese sentence": (CHINESE, f"{CHINESE}今晨又有两人不幸受伤。", False),
    "a sentence less": (LONG, LONG.replace(f"{BAKERY[3]}.\n", ""), False),
    "another number in a short text": (SHORT, SHORT.replace("14 May", "15 May"), False),
    "another number in a sentence": (LONG, LONG.replace("eleven thousand", "12000"), False),
    "another year in a sentence": (LONG, LONG.replace("1931", "1932"), False),
}


@pytest.mark.parametrize("name", CASES)
def test_few_letters_make_a_minor_update(name: str) -> None:
    before, after, is_minor = CASES[name]
    for policy, passes in ((Config(), False), (Config(policy={**Config().policy, Kind.MINOR_UPDATE: "tag"}), True)):
        store = memory_state({}, secret=NO_SECRET)
        detector = make_detector(store, passes=policy.passes)
        assert kind(detector, article(before)) is Kind.UNIQUE
        found = answer(detector, article(after))
        assert found.kind is (Kind.MINOR_UPDATE if is_minor else Kind.UPDATED), name
        assert found.match is not None
        assert found.match.url == URL
        assert found.is_copy is is_minor
        delivered = before if is_minor and not passes else after
        assert kind(detector, article(delivered)) is Kind.UNCHANGED, "the state knows what was delivered last"
        assert int(found.similar_id, 16) == find_record(store, article(before)).id


def test_neither_another_headline_nor_another_method_makes_a_minor_update() -> None:
    detector = make_detector(memory_state({}, secret=NO_SECRET))
    assert kind(detector, article(LONG)) is Kind.UNIQUE
    assert kind(detector, article(LONG.replace("44", "45"), "The bakery is sold")) is Kind.UPDATED
    detector = make_detector(memory_state({}, secret=NO_SECRET), "minhash")
    assert kind(detector, article(LONG)) is Kind.UNIQUE
    assert kind(detector, article(LONG.replace("44", "45"))) is Kind.UPDATED


def test_small_edits_of_many_articles_are_dropped_and_those_that_add_up_are_delivered() -> None:
    store = memory_state({}, secret=NO_SECRET)
    texts = {f"https://{n % 7}.example/{n}": story(n, 30) for n in range(60)}
    edits = dict.fromkeys(texts, 0)
    for crawl in range(5):
        detector = make_detector(store)
        for url, sentences in texts.items():
            if crawl:
                sentences[3 * crawl] = f"更新{sentences[3 * crawl][2:]}"
                edits[url] += 1
            found = answer(detector, Page(url, url[-2:], text="".join(sentences)))
            if edits[url] == 1:
                assert found.kind is Kind.MINOR_UPDATE
            elif edits[url] >= 3:
                assert found.kind is Kind.UPDATED
            edits[url] = edits[url] if found.is_copy else 0
    assert max(edits.values()) <= 2


def test_the_bytes_of_a_minor_update_are_never_taken_for_the_delivered_ones() -> None:
    store = memory_state({}, secret=NO_SECRET)
    detector = make_detector(store)
    before, after = replace(article(LONG), body=1), replace(article(LONG.replace("44", "45")), body=2)
    assert kind(detector, before) is Kind.UNIQUE
    for _ in range(2):
        assert kind(detector, after) is Kind.MINOR_UPDATE
        assert not detector.may_know(URL, after.body)
        assert detector.may_know(URL, before.body)


def test_a_delivered_page_stays_where_its_copies_find_it() -> None:
    detector = make_detector(memory_state({}, secret=NO_SECRET))
    text = join_text(*PEARS)
    assert kind(detector, Page("https://a.example/1", "梨", text=text, site="a.example")) is Kind.UNIQUE
    edited = text.replace("二百单", "三百单")
    assert kind(detector, Page("https://a.example/1", "梨", text=edited, site="a.example")) is not Kind.UNIQUE
    assert kind(detector, Page("https://b.example/1", "梨", text=edited, site="b.example")) is Kind.DUPLICATE
