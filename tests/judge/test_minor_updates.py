"""A delivered page whose text changes by a few letters: it is dropped unless the policy lets it pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.recipe import NO_SECRET
from tests.build import BAKERY, answer, find_record, join_text, make_detector, outcome, story

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
    for policy, passes in ((Config(), False), (Config(policy={**Config().policy, Outcome.MINOR_UPDATE: "tag"}), True)):
        detector = make_detector(memory_state({}, secret=NO_SECRET), passes=policy.passes)
        assert outcome(detector, article(before)) is Outcome.UNIQUE
        found = answer(detector, article(after))
        assert (found.outcome, found.is_copy) == (Outcome.MINOR_UPDATE if is_minor else Outcome.UPDATED, is_minor)
        assert found.match is not None
        assert found.match.url == URL
        delivered = before if is_minor and not passes else after
        assert outcome(detector, article(delivered)) is Outcome.UNCHANGED, "the state knows what was delivered last"
        assert int(found.similar_id, 16) == find_record(detector.store, article(before)).id


@pytest.mark.parametrize(("method", "title"), [("cascade", "The bakery is sold"), ("minhash", "")])
def test_neither_another_headline_nor_another_method_makes_a_minor_update(method: str, title: str) -> None:
    detector = make_detector(memory_state({}, secret=NO_SECRET), method)
    assert outcome(detector, article(LONG)) is Outcome.UNIQUE
    after = article(LONG.replace("44", "45"))
    assert outcome(detector, replace(after, title=title or after.title)) is Outcome.UPDATED


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
            assert edits[url] != 1 or found.outcome is Outcome.MINOR_UPDATE
            assert edits[url] < 3 or found.outcome is Outcome.UPDATED
            edits[url] = edits[url] if found.is_copy else 0
    assert max(edits.values()) <= 2


def test_a_dropped_edit_leaves_the_page_to_its_copies_and_its_bytes_unknown() -> None:
    detector = make_detector(memory_state({}, secret=NO_SECRET))
    before = replace(article(LONG), body=1)
    after = replace(article(LONG.replace("44", "45")), body=2)
    assert outcome(detector, before) is Outcome.UNIQUE
    for _ in range(2):
        assert outcome(detector, after) is Outcome.MINOR_UPDATE
        assert (detector.may_know(URL, after.body), detector.may_know(URL, before.body)) == (False, True)
    mirror = replace(after, url="https://mirror.example/1", site="mirror.example", body=0)
    assert outcome(detector, mirror) is Outcome.DUPLICATE
