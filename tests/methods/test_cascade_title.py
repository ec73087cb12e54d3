"""The words of a title that stand in the text, and whether they are gone from the other page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_neardup.methods.cascade import reading
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.reading import url_number
from scrapy_neardup.model import Fingerprint, Kind, Page
from scrapy_neardup.text.tokens import spaced_words
from tests.methods.cascade_pages import BELL, DEFAULTS, FERRY, LIGHTHOUSE, MILL, NONE, explained, judged, page, values

NOTICE = (
    "{name}系统近日被发现存在安全问题，攻击者不需要登录就能够读取服务器上的任意文件，请使用{name}的单位尽快核查。\n"
    "受影响的单位应当立即关闭对外的访问，检查访问日志当中有没有异常的请求，并且按照厂商的说明升级到最新的版本。\n"
    "不能立即升级的，可以先在防火墙上限制来源地址，只允许内部网络访问管理页面，同时更换所有管理员的登录口令。\n"
    "如果发现服务器已经被人入侵，请保留现场并且与应急中心联系，不要自行删除文件，以免破坏取证所需要的各种线索。\n"
    "今后我们还会继续关注这一问题的进展，有新的情况会在第一时间发布，也欢迎各个单位向我们提供有关的样本和线索。"
)


def notice(name: str, title: str = "{name}系统任意文件读取") -> Page:
    return page(NOTICE.replace("{name}", name), title.replace("{name}", name), site="alerts.example")


PHONE = "の更新が本日から始まりました。対象となる端末をお使いの方は、設定の画面から更新を行ってください。" * 4


def gone(new: Page, old: Page) -> float:
    method = Cascade()
    return values(method.explain(method.fingerprint(new), method.fingerprint(old).sketch, NONE))["gone"]


def test_the_same_notice_of_another_product_is_no_copy_on_one_site() -> None:
    one, other = notice("渡口排班"), notice("果园仓储")
    assert judged(one, other).similarity > 0.8
    assert gone(one, other) == gone(other, one) == 1.0
    assert not judged(one, other).duplicate
    assert judged(one, notice("渡口排班", "渡口排班有重大问题")).duplicate


def test_the_headline_is_the_title_though_the_name_of_the_site_is_longer() -> None:
    one, other = (
        replace(page(text, f"{name} - The River Daybook"), headline=f"The River Daybook\n{name}", reader="article")
        for text, name in ((MILL, "Mill"), (FERRY, "Ferry"))
    )
    assert judged(replace(one, headline=""), replace(other, headline="")).kind is Kind.SAME_TITLE
    assert judged(one, other).kind is None
    one, other = (replace(one, title=f"★ - {one.title}", headline="★") for one in (one, other))
    assert judged(one, other).kind is Kind.SAME_TITLE, "without letters it is none"


def test_a_word_is_gone_that_stands_in_one_text_alone() -> None:
    for one, other, expected in [
        *(
            ((text, ours), (text, theirs), 0.0)
            for text, ours, theirs in [
                (FERRY, "渡口开航", "果农高兴"),
                (MILL, "Flour again", "The sisters of Arrow Brook"),
                (MILL, "Flour again", "Something else entirely"),
                (FERRY, "渡口 1982", "渡口 2024"),
            ]
        ),
        ((MILL, "The mill"), (LIGHTHOUSE, "The lighthouse"), 1.0),
        ((MILL, "The mill"), (LIGHTHOUSE, "The castle"), 0.5),
        ((MILL, "The castle"), (LIGHTHOUSE, "The lighthouse"), 0.5),
        ((MILL, ""), (LIGHTHOUSE, "The lighthouse"), 0.5),
        ((MILL, ""), (LIGHTHOUSE, ""), 0.0),
        ((f"{MILL} 1874", "1874"), (MILL, "1874"), 0.0),
        # A word is whole, and a name in katakana is one.
        ((f"The cat sat here.\n{LIGHTHOUSE}", "A cat"), (f"The catalogue is out.\n{LIGHTHOUSE}", "A catalogue"), 1.0),
        ((f"スカイフォン{PHONE}", "スカイフォンの更新"), (f"リバーフォン{PHONE}", "リバーフォンの更新"), 1.0),
    ]:
        (new, title), (old, old_title) = one, other
        pair = page(f"{new}\n{BELL}{FERRY}", title), page(f"{old}\n{BELL}{FERRY}", old_title)
        assert gone(*pair) == gone(*reversed(pair)) == expected, (title, old_title)
    # The earlier title is without it, and of the earlier text no more is known than its sentences.
    old_page = page(FERRY, "开航")
    assert gone(page(f"{BELL[:80]}。{FERRY}", "流沙 开航"), old_page) == 0.0
    assert gone(page(FERRY.replace("全是流沙", "尽是些流沙"), "流沙 开航"), old_page) == 0.5
    apart, joined = (page(f"{MILL} {word}", word) for word in ("note book", "notebook"))
    assert not judged(apart, joined).in_form


@pytest.mark.parametrize("more", [{}, {"reader": "prose"}, {"reader": "article", "main": None}])
@pytest.mark.parametrize("title", ["夙愿得偿", "夙愿得偿？盼了多年！", "夙愿得偿_河湾网"])
def test_a_headline_that_stands_above_the_text_is_no_part_of_it(title: str, more: dict[str, Any]) -> None:
    """Whatever the title says stands there, of a copy under another title as well."""

    def headed(headline: str, title: str) -> Page:
        text = f"{headline}\n{FERRY}"
        read = more | {"main": text} if "main" in more else more
        return page(text, title, **({"headline": headline} if more else {}), **read)

    one, other = headed(title.split("_")[0] if more else title, title), headed("水上坦途", "水上坦途")
    assert gone(one, other) == gone(other, one) == 0.0
    said = replace(one, text=f"{one.text}\n夙愿终于得偿了。", main=one.main and f"{one.main}\n夙愿终于得偿了。")
    assert gone(said, other) == 0.5


#: More words than are kept of a title.
LONG = " ".join(dict.fromkeys(MILL.lower().replace(",", "").replace(".", "").split()))


def test_a_word_is_gone_only_if_a_longer_title_would_have_kept_it() -> None:
    others = "ostrich", "zebra", "walrus", "lynx", "heron", "otter"
    new = MILL.replace(".", ", they say.") + BELL
    found = [gone(page(new, f"{LONG} {word}"), page(MILL, LONG)) for word in others]
    assert found == [0.0] * len(others), "all words of both titles are in both texts"
    found = [gone(page(f"{MILL} Nobody had asked the {word}.", f"{LONG} {word}"), page(MILL, LONG)) for word in others]
    assert 0.5 in found


def test_without_the_new_text_nothing_is_known_to_be_gone() -> None:
    """Two sketches are all there is when states are merged, and both pages were delivered by then."""
    method = Cascade()
    one, other = (method.fingerprint(page(*some)) for some in ((f"{MILL}{FERRY}", "Mill"), (FERRY, "渡口")))
    bare = Fingerprint(one.keys, one.sketch)
    assert [values(method.explain(some, other.sketch, NONE))["gone"] for some in (one, bare)] == [0.5, 0.0]


def test_pages_of_one_site_whose_titles_alone_name_other_things_are_no_copies() -> None:
    other = notice("渡口排班", "某系统敏感信息泄露")
    for new, title, copy in [
        (notice("渡口排班"), "同一通告的补充说明", False),
        (replace(notice("渡口排班"), site=""), "同一通告的补充说明", True),
        (replace(notice("渡口排班"), site="mirror.example"), "同一通告的补充说明", True),
        (notice("渡口排班"), "敏感信息泄露", True),
    ]:
        edited = replace(new, title=title, text=new.text.replace("今后我们还会", "接下来几个月里我们的小组都会"))
        assert 0.8 < judged(edited, other).similarity < 0.94
        assert judged(edited, other).duplicate is copy, (new.site, title)
    brief = page("\n".join(NOTICE.split("\n")[1:4]), "某系统敏感信息泄露", site="alerts.example")
    again = replace(brief, title="同一通告的补充说明", text=f"{brief.text}\n请转告。")
    assert judged(again, brief).duplicate, "a short text goes on where its title ends"
    nearly = replace(notice("渡口排班"), title="同一通告的补充说明", text=other.text.replace("入侵", "攻陷"))
    method, equal = Cascade(), replace(other, title=nearly.title)
    for alike in nearly, equal:
        assert judged(alike, other).duplicate
        assert not judged(alike, other, catalogue=0.0).duplicate
    fingerprint = replace(method.fingerprint(equal), in_form=True)
    assert not method.compare(fingerprint, method.fingerprint(other).sketch, NONE).duplicate, "as a third page shows"
    named = replace(nearly, text=f"{other.text}\n请看补充。")
    assert judged(named, other).similarity > 0.94
    assert not judged(named, other).duplicate, "a title word is gone, so they are in one form"
    long, again = (replace(one, text=f"{one.text}\n{FERRY}\n{BELL}\n{MILL}") for one in (other, named))
    assert judged(again, long).duplicate, "but no form is so long"


def test_a_title_is_looked_up_once_for_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile page has a long title, a long text, and many of them."""
    method, calls = Cascade(), list[int]()
    new, *earlier = (
        method.fingerprint(page(f"{MILL} {title}", title, site="a.example")) for title in (LONG, "heron", "otter")
    )

    def split(text: str) -> list[str]:
        calls.append(len(text))
        return spaced_words(text)

    monkeypatch.setattr(reading, "spaced_words", split)
    found = [(method.compare(new, one.sketch, NONE).in_form, len(calls)) for one in earlier]
    assert found == [(True, found[0][1])] * 2
    assert calls


def test_every_part_of_an_item_title_counts_on_a_site() -> None:
    titles = "港口工具库 - 排班模块", "港口工具库 - 计费模块"
    one, other = (notice("港口", title) for title in titles)
    assert values(explained(one, other))["same_title"] == 0.0
    whole = replace(other, title="港口工具库")
    assert values(explained(one, whole))["same_title"] == values(explained(whole, one))["same_title"] == 1.0
    first, second = (replace(one, title=f"港口工具库的管理 - {word}", site="") for word in ("攻击者", "服务器"))
    assert values(explained(first, second))["form"] == 1.0
    one = replace(one, text=one.text.replace("今后我们还会", "接下来几个月里我们的小组都会"))
    assert not judged(one, other).duplicate
    assert "two things" in explained(one, other).decision


def test_other_names_in_both_titles_speak_for_a_form_of_an_unknown_site() -> None:
    old = replace(notice("港口", "{name}通告 排班"), site="")
    for title, form in [("港口通告 计费", 1.0), ("港口通告 排班 攻击者", 0.0)]:
        found = values(explained(replace(old, title=title), old))
        assert (found["form"], found["gone"], found["same_title"], found["other_name"]) == (form, 0.0, 0.0, form)
        assert found["title"] >= DEFAULTS.retitled


# The number of an article in its URL

TEASER = "摆渡人老罗在河湾镇撑了三十一年的船，秋天他要把竹篙交给自己的女儿，镇上的人都去码头送他，也有人从县城赶来。"
#: The same in other words, and with a number that is new.
EDITED = TEASER.replace("也有人从县城赶来", "还有人从省城赶来")
NEWER = EDITED.replace("镇上的人都", "镇上5260人")


def numbered(address: str, text: str = TEASER, title: str = "老罗的竹篙") -> Page:
    return replace(page(text, title, site="river.example"), url=f"http://river.example/{address}")


def test_a_url_has_the_number_of_an_article_behind_words() -> None:
    for url, number in [
        ("http://a.example/news/ferry-stays-ashore-4993434.html", "/news/4993434"),
        ("http://a.example/ferry_4993434/", "/4993434"),
        ("http://a.example/ferry-20260112145929087.htm#top", "/20260112145929087"),
        # A day or a minute, with the year before or behind, or by its number in the year.
        *((f"http://a.example/ferry-{date}.htm", "") for date in ("20260112", "12012026", "01122026", "2026012")),
        *((f"http://a.example/ferry-{date}.htm", "") for date in ("202601121459", "20260112145929", "120120261459")),
        # A month, a short date, a postal code, a phone.
        *((f"http://a.example/ferry-{number}", "") for number in ("202601", "260112", "400001", "02079460123")),
        # A number alone, before words or a page, of another part; a query.
        *(("http://a.example/" + path, "") for path in ("4993434.html", "4993434-ferry", "4993434-2", "--4993434")),
        ("http://a.example/catalogue-4993434/ferry.html", ""),
        ("http://a.example/ferry-4993434.html?page=2", ""),
    ]:
        assert url_number(url) == number, url


def test_an_article_that_moved_with_its_number_is_a_copy_if_it_says_no_new_number() -> None:
    old, title = numbered("lao-luo-4993434.html"), "竹篙有了新主人"
    for new, copy in [
        (numbered("zhu-gao-4993434.html", EDITED, title), True),
        (numbered("zhu-gao-4993434.html", NEWER, title), False),
        (numbered("zhu-gao-4993434.html", EDITED, "老罗的 32 年"), False),
        (numbered("zhu-gao-4993434.html", MILL, title), False),
        (numbered("zhu-gao-4993435.html", EDITED, title), False),
        (numbered("other/zhu-gao-4993434.html", EDITED, title), False),
        (numbered("zhu-gao-4993434.html", EDITED + "他说自己还要再教她一个冬天，等河面结冰才上岸。", title), False),
    ]:
        assert judged(new, old).duplicate is copy, new.url
        assert not judged(new, old, catalogue=0.0).duplicate, "variants of a product may share the number"
    named = replace(numbered("zhu-gao-4993434.html", EDITED, title), url="d7", address="http://river.example/a-4993434")
    assert judged(named, old).duplicate, "a record with an id has its own address"
    for url in ("http://river.example/item?id=7", "d7"):
        linked = replace(named, url=url, address="", canonical=named.address)
        assert not judged(linked, old).duplicate, "variants of a product name one page as canonical"
    first, edited = (f"{FERRY}{ending}" for ending in (BELL[:90], BELL[90:180]))
    long = numbered("zhu-gao-4993434.html", edited, title), numbered("lao-luo-4993434.html", first, "Heron Egret")
    assert judged(*long).duplicate, "though each title has a word that the other page lacks"
    claimed = replace(named, text=f"{EDITED[:20]}{MILL}")
    assert not judged(claimed, old).duplicate, "a page may name any address; its text decides"
    assert "number of one article" in explained(numbered("zhu-gao-4993434.html", EDITED, title), old).decision
