"""Pages that are made to have somebody else's articles dropped: none does that holds too little of them.

Each attack has an article of its own to aim at, and all of them are tried in one crawl, for they have nothing in
common. The attacker knows the article, the method and its source; not the secret of the state.
"""

from __future__ import annotations

from collections.abc import Callable
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


def evil(family: int, sentences: list[str], *, part: object = "", **more: Any) -> dict[str, Any]:
    """A page of the attacker under the victim's title."""
    return {**item("evil.example", f"{family}/{part}", str(victim(family)["title"]), sentences), **more}


def filler(family: int, count: int) -> list[str]:
    """Sentences of the attacker's own."""
    return story(100_000 + family, count)


def poisoned(family: int, host: str) -> Items:
    """All but two sentences stand on 64 pages, then comes a page of those that are left.

    Each of the pages holds 83 % of the article, which is a copy of it if it says little else: so it says more.
    """
    sentences, pages = story(family, 12), list[dict[str, Any]]()
    for number in range(64):
        more = filler(1000 * family + number, 14)
        pages.append(
            item(host.format(number), f"{family}/{number}", f"杂谈{family}之{number}", [*sentences[2:], *more])
        )
    return [*pages, evil(family, sentences[:2], url=f"http://{host.format(64)}/{family}/64")]


def under_the_canonical_link(family: int) -> dict[str, Any]:
    """Half of the article."""
    head = f'<link rel="canonical" href="{victim(family)["url"]}"><title>{victim(family)["title"]}</title>'
    body = "".join(f"<p>{one}</p>" for one in story(family, 12)[:6])
    return {"url": f"http://evil.example/{family}", "html": f"<html><head>{head}</head><body>{body}</body></html>"}


def flooded(family: int) -> Items:
    """A sentence of it on each of 48 pages, so that its keys find too many to be of use."""
    sentences, pages = story(family, 12), list[dict[str, Any]]()
    for number in range(48):
        own = [sentences[number % 12], *filler(1000 * family + number, 8)]
        pages.append(item(f"evil{number}.example", family, f"{victim(family)['title']}之{number}", own))
    return [*pages, evil(family, sentences[:6])]


#: With the same farmhash as the article: gibberish under its title, three of its sentences, and its URL.
FORGERIES: dict[str, Callable[[int], Items]] = {
    "forged body": lambda n: [evil(n, [FORGED["".join(story(VICTIM, 12))]], part="body")],
    "forged sentences": lambda n: [evil(n, [f"{one}。" for one in FORGED.values()], part="sentences")],
    "forged URL": lambda n: [evil(n, filler(n, 12), url=FORGED_URL[1])],
}
ATTACKS: dict[str, Callable[[int], Items]] = {
    **FORGERIES,
    "boilerplate by one site": lambda n: poisoned(n, "evil.example"),
    "boilerplate by hosts of one owner": lambda n: poisoned(n, "n{}.evil.example"),
    "boilerplate by many domains": lambda n: poisoned(n, "evil{}.example"),
    "half of it": lambda n: [evil(n, story(n, 12)[:6])],
    "half of it twice": lambda n: [evil(n, story(n, 12)[:6] * 2)],
    "half of it on each of two pages": lambda n: [evil(n, story(n, 12)[:6], part=1), evil(n, story(n, 12)[6:], part=2)],
    "its longest sentences": lambda n: [evil(n, [*sorted(story(n, 12), key=len)[-5:], *filler(n, 7)])],
    "half under the canonical link": lambda n: [under_the_canonical_link(n)],
    "words in another order": lambda n: [evil(n, ["".join(reversed(one[:-1])) + "。" for one in story(n, 12)])],
    "flooded": flooded,
    "a third of it between gibberish": lambda n: [
        evil(n, [a[:8] + b for a, b in zip(story(n, 12), filler(n, 12), strict=True)])
    ],
}
#: Family of the article that each attack aims at.
TARGETS = {attack: VICTIM + number for number, attack in enumerate(ATTACKS)} | dict.fromkeys(FORGERIES, VICTIM)


def test_what_is_said_to_be_forged_is() -> None:
    for text, gibberish in FORGED.items():
        assert fingerprint64(letters(normalize(text))) == fingerprint64(gibberish)
    assert fingerprint64(FORGED_URL[0]) == fingerprint64(FORGED_URL[1])


def test_no_page_that_holds_too_little_of_an_article_has_it_dropped_nor_its_copy_kept(tmp_path: Path) -> None:
    attacks = [one for attack, family in TARGETS.items() for one in ATTACKS[attack](family)]
    victims = [victim(family) for family in dict.fromkeys(TARGETS.values())]
    copies = [{**one, "url": one["url"].replace("paper", "mirror")} for one in victims]
    settings: dict[str, Any] = {"NEARDUP_MIN_LETTERS": 20, "NEARDUP_STORE": f"sqlite://{tmp_path}/state"}
    result = crawl_items(*attacks, *victims, *copies, **settings)
    assert [one["url"] for one in victims if one["url"] not in result.urls] == []
    # Boilerplate everywhere it takes some forty owners of domains to make; then copies pass as well.
    poisoned = victim(TARGETS["boilerplate by many domains"])["url"].replace("paper", "mirror")
    assert {one["url"] for one in copies} & set(result.urls) <= {poisoned}
    again = crawl_items(*attacks, *victims, **settings)
    assert {one["url"] for one in victims} & set(again.urls) == set()
    assert again.count("updated") == 0


@pytest.mark.parametrize("method", ["nshash", "segments", "simhash", "minhash", "punctuation"])
def test_no_method_takes_gibberish_for_what_has_the_same_farmhash(method: str) -> None:
    items = [*(one for forgery in FORGERIES.values() for one in forgery(VICTIM)), victim(VICTIM)]
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
