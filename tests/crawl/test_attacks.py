"""Pages that are made to have somebody else's articles dropped: none does that holds too little of them.

Each attack has an article of its own to aim at, and all of them are tried in one crawl, for they have nothing in
common. The attacker knows the article, the method and its source; not the secret of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.hashing import fingerprint64
from scrapy_neardup.text.normalize import letters, normalize
from tests.build import story
from tests.crawl.engineless import crawl_items

Items = list[dict[str, Any]]

#: Texts, and gibberish with the same unkeyed farmhash, which anybody can make in seconds: the body of an article, three
#: of its longest sentences, a URL.
VICTIM = 900
FORGED = {
    "".join(story(VICTIM, 12)): "0gu2ayycfigjuztie38akbazdcxu3kp3",
    "公告清淤陶罐更换推迟博物馆修缮停靠菜单食堂铺装推迟681": "ookxmpqn0fg7svhf0wzp9d4cvexx6tw6",
    "更换博物馆桥面灯塔志愿渔港灯塔食堂合作菜单合作草坪274": "ar7q0ypkf2sp9j590qcxq66a947y1o8m",
    "上涨学生阅览茶园比赛菜单比赛投票学校反映稳定稳定267": "ym9puxqfmlx70q85uv1xe570cuu5g1a0",
}
FORGED_URL = ("http://paper.example/900", "http://evil.exa5qo9xalqr5c6rk4eo")


def item(host: str, number: object, title: str, sentences: list[str]) -> dict[str, Any]:
    return {"url": f"http://{host}/{number}", "title": title, "text": "\n".join(sentences)}


def victim(family: int) -> dict[str, Any]:
    return item("paper.example", family, f"晚报头条{family}号", story(family, 12))


def filler(family: int, count: int) -> list[str]:
    """Sentences of the attacker's own."""
    return story(100_000 + family, count)


def title_of(family: int) -> str:
    return str(victim(family)["title"])


def forged_body(family: int) -> Iterator[dict[str, Any]]:
    """Gibberish under the victim's title, with the farmhash of its body."""
    yield item("gibberish.example", family, title_of(family), [FORGED["".join(story(VICTIM, 12))]])


def forged_sentences(family: int) -> Iterator[dict[str, Any]]:
    """Gibberish with the farmhash of three of its sentences."""
    yield item("evil.example", family, title_of(family), [f"{one}。" for one in FORGED.values()])


def forged_url(family: int) -> Iterator[dict[str, Any]]:
    """A URL with the farmhash of the victim's."""
    yield {**item("evil.example", family, title_of(family), filler(family, 12)), "url": FORGED_URL[1]}


def poisoned(family: int, hosts: Callable[[int], str], spared: int) -> Iterator[dict[str, Any]]:
    """All but some sentences stand on 64 pages, then comes a page of those that are left.

    Each of the pages holds 83 % of the article, which is a copy of it if it says little else: so it says more.
    """
    sentences = story(family, 12)
    for number in range(64):
        more = filler(1000 * family + number, 14)
        yield item(hosts(number), f"{family}/{number}", f"杂谈{family}之{number}", [*sentences[spared:], *more])
    yield item(hosts(64), f"{family}/64", title_of(family), sentences[:spared])


def poisoned_by_one_site(family: int) -> Iterator[dict[str, Any]]:
    return poisoned(family, lambda number: "evil.example", 2)


def poisoned_by_hosts_of_one_owner(family: int) -> Iterator[dict[str, Any]]:
    return poisoned(family, lambda number: f"n{number}.evil.example", 2)


def poisoned_by_many_domains(family: int) -> Iterator[dict[str, Any]]:
    return poisoned(family, lambda number: f"evil{number}.example", 2)


def half_of_it(family: int) -> Iterator[dict[str, Any]]:
    yield item("evil.example", family, title_of(family), story(family, 12)[:6])


def half_of_it_twice(family: int) -> Iterator[dict[str, Any]]:
    yield item("evil.example", family, title_of(family), story(family, 12)[:6] * 2)


def half_of_it_each(family: int) -> Iterator[dict[str, Any]]:
    """Two pages that hold all of it between them."""
    yield item("evil.example", f"{family}/1", title_of(family), story(family, 12)[:6])
    yield item("evil.example", f"{family}/2", title_of(family), story(family, 12)[6:])


def longest_sentences(family: int) -> Iterator[dict[str, Any]]:
    longest = sorted(story(family, 12), key=len, reverse=True)[:5]
    yield item("evil.example", family, title_of(family), [*longest, *filler(family, 7)])


def half_under_the_canonical_link(family: int) -> Iterator[dict[str, Any]]:
    sentences = story(family, 12)[:6]
    head = f'<link rel="canonical" href="{victim(family)["url"]}"><title>{title_of(family)}</title>'
    body = "".join(f"<p>{one}</p>" for one in sentences)
    yield {"url": f"http://evil.example/{family}", "html": f"<html><head>{head}</head><body>{body}</body></html>"}


def words_in_another_order(family: int) -> Iterator[dict[str, Any]]:
    yield item(
        "evil.example", family, title_of(family), ["".join(reversed(one[:-1])) + "。" for one in story(family, 12)]
    )


def flooded(family: int) -> Iterator[dict[str, Any]]:
    """A sentence of it on each of 48 pages, so that its keys find too many to be of use."""
    sentences = story(family, 12)
    for number in range(48):
        own = [sentences[number % 12], *filler(1000 * family + number, 8)]
        yield item(f"evil{number}.example", family, f"{title_of(family)}之{number}", own)
    yield item("evil.example", family, title_of(family), sentences[:6])


def stuffed_with_gibberish(family: int) -> Iterator[dict[str, Any]]:
    """A third of it, cut into small pieces between others."""
    pieces = [one[:8] for one in story(family, 12)]
    yield item(
        "evil.example", family, title_of(family), [a + b for a, b in zip(pieces, filler(family, 12), strict=True)]
    )


ATTACKS = [
    forged_body,
    forged_sentences,
    forged_url,
    poisoned_by_one_site,
    poisoned_by_hosts_of_one_owner,
    poisoned_by_many_domains,
    half_of_it,
    half_of_it_twice,
    half_of_it_each,
    longest_sentences,
    half_under_the_canonical_link,
    words_in_another_order,
    flooded,
    stuffed_with_gibberish,
]
#: Family of the article that each attack aims at.
TARGETS = {attack: VICTIM + number for number, attack in enumerate(ATTACKS)}
TARGETS |= dict.fromkeys((forged_body, forged_sentences, forged_url), VICTIM)


def test_what_is_said_to_be_forged_is() -> None:
    for text, gibberish in FORGED.items():
        assert fingerprint64(letters(normalize(text))) == fingerprint64(gibberish)
    assert fingerprint64(FORGED_URL[0]) == fingerprint64(FORGED_URL[1])


def test_no_page_that_holds_too_little_of_an_article_has_it_dropped_nor_its_copy_kept(tmp_path: Path) -> None:
    attacks = [one for attack, family in TARGETS.items() for one in attack(family)]
    victims = [victim(family) for family in dict.fromkeys(TARGETS.values())]
    copies = [{**one, "url": one["url"].replace("paper", "mirror")} for one in victims]
    settings: dict[str, Any] = {"NEARDUP_MIN_LETTERS": 20, "NEARDUP_STORE": f"sqlite://{tmp_path}/state"}
    result = crawl_items(*attacks, *victims, *copies, **settings)
    assert [one["url"] for one in victims if one["url"] not in result.urls] == []
    # Boilerplate everywhere it takes some forty owners of domains to make; then copies pass as well.
    poisoned = victim(TARGETS[poisoned_by_many_domains])["url"].replace("paper", "mirror")
    assert {one["url"] for one in copies} & set(result.urls) <= {poisoned}
    again = crawl_items(*attacks, *victims, **settings)
    assert {one["url"] for one in victims} & set(again.urls) == set()
    assert again.count("updated") == 0


@pytest.mark.parametrize("method", ["nshash", "segments", "simhash", "minhash", "punctuation"])
def test_no_method_takes_gibberish_for_what_has_the_same_farmhash(method: str) -> None:
    items = [*forged_body(VICTIM), *forged_sentences(VICTIM), *forged_url(VICTIM), victim(VICTIM)]
    settings: dict[str, Any] = {"NEARDUP_METHOD": method, "NEARDUP_MIN_LETTERS": 20, "NEARDUP_STORE": "memory:"}
    assert victim(VICTIM)["url"] in crawl_items(*items, **settings).urls


DISCLAIMER = [f"本站{place}所载内容仅供参考，{one}" for place, one in enumerate(story(77_777, 11))]


@pytest.mark.parametrize("title", ["免责声明", ""])
def test_a_foreign_page_with_the_disclaimer_of_a_site_swallows_nothing_of_it(title: str) -> None:
    foreign = item("evil.example", "disclaimer", title, DISCLAIMER)
    pages = [
        item("notices.example", number, f"通知{number}号", [*story(50_000 + number, 6), *DISCLAIMER])
        for number in range(60)
    ]
    share = len("".join(DISCLAIMER)) / len(str(pages[0]["text"]))
    assert 0.65 < share < 0.75
    result = crawl_items(foreign, *pages, NEARDUP_STORE="memory:")
    assert [one["url"] for one in pages if one["url"] not in result.urls] == []


def test_longer_pages_that_appear_after_articles_keep_none_of_their_updates(tmp_path: Path) -> None:
    """An attacker, or an honest longer report, holds each article and 90 % more; then the articles are corrected."""
    store = {"NEARDUP_STORE": f"sqlite://{tmp_path}/state.db"}

    def version(family: int, correction: int) -> dict[str, Any]:
        sentences = story(family, 20)
        if correction:
            sentences[correction] = f"更正：第{correction}版，无人受伤。"
        return item("paper.example", family, title_of(family), sentences)

    families = range(1, 7)
    longer = [item("evil.example", one, title_of(one), [*story(one, 20), *filler(one, 18)]) for one in families]
    articles = [version(one, 0) for one in families]
    assert len(crawl_items(*articles, *longer, **store).items) == 12
    for correction in (1, 2, 3):
        found = crawl_items(*(version(one, correction) for one in families), **store)
        assert (found.count("updated"), len(found.items)) == (6, 6), correction
