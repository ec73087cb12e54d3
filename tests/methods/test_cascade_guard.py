"""The default method on pages with sentences that stand on many pages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.model import Comparison, Explanation, Fingerprint, Page
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import shingles, sketch
from tests.methods.cascade_pages import (
    BELL,
    DEFAULTS,
    EXACT,
    FERRY,
    LIGHTHOUSE,
    MILL,
    NONE,
    SECOND_FERRY,
    exact_jaccard,
    judged,
    marks,
    page,
    replaced,
    respelled,
    scattered,
    unpacked,
    values,
)
from tests.methods.test_cascade_short import NUMBERED

BOILERPLATE = [
    "本站所有文章均由读者投稿，观点不代表本站立场，如有侵权请来信告知",
    "转载本站内容须注明出处，未经书面许可不得用于商业用途，违者必究",
    "举报电话全天有人接听，不良信息请拨打值班热线，我们会在两个工作日内答复",
    "下载河湾客户端，第一时间了解本地新闻、天气、班车时刻和集市行情",
    "扫描下方的二维码关注我们，每周抽取三位读者赠送电影票两张",
    "河湾网络传媒有限责任公司版权所有，地址在河湾镇码头路邮电大楼四层",
]
OTHER_BOILERPLATE = [
    "北岭在线是北岭县唯一的综合门户，欢迎企业投放广告，价目表备索",
    "凡注明原创的稿件，其著作权归北岭在线编辑部，转发须保留作者姓名",
    "老年人如果阅读困难，可以点击右上角的按钮把字号调大，或者收听朗读版",
    "求职招聘、房屋租售、二手农机，请到分类信息版块免费发布",
    "您的意见对我们十分宝贵，填写问卷的网友有机会得到一袋新米",
]
ENGLISH_BOILERPLATE = [
    "All material on these pages is supplied by readers and does not reflect the opinion of the publisher",
    "Reproduction in whole or in part needs the written consent of the Riverside Daybook and its owners",
    "Subscribe to our weekly letter and be the first to hear of floods, fairs and ferry times",
    "Complaints are answered within two working days by the desk on the second floor of the old mint",
]
ALL = marks(*BOILERPLATE, *OTHER_BOILERPLATE, *ENGLISH_BOILERPLATE)
MENU = ["首页", "镇务", "新闻", "公告", "渡口", "集市", "学校", "信箱", "地图", "关于"]
DISCLAIMER = "。\n".join([*BOILERPLATE, *OTHER_BOILERPLATE])


def with_lines(text: str, lines: Sequence[str], *, above: int = 0) -> str:
    """The text between lines of boilerplate; ``above``: the number of lines above it."""
    return "\n".join([*lines[:above], text, *lines[above:]])


def print_of(one: Page, guard: IsCommon | None = None) -> Fingerprint:
    """The fingerprint of a page; without a guard nobody knows its boilerplate."""
    return Cascade().fingerprint_own(one, guard) if guard else Cascade().fingerprint(one)


def both(
    new: Page, old: Page, guard: IsCommon = ALL, *, known_before: bool = True, **parameters: Any
) -> tuple[Comparison, Explanation]:
    """Compare two pages; ``known_before``: the boilerplate was known when the earlier page was filed."""
    method = Cascade(CascadeParameters(**parameters))
    one = method.fingerprint_own(new, guard)
    other = method.fingerprint_own(old, guard) if known_before else method.fingerprint(old)
    return method.compare(one, other.sketch, NONE), method.explain(one, other.sketch, NONE)


def compared(new: Page, old: Page, guard: IsCommon = ALL, **more: Any) -> Comparison:
    return both(new, old, guard, **more)[0]


# Sentences that are left out


@pytest.mark.parametrize(("text", "lines"), [(FERRY, BOILERPLATE), (MILL, ENGLISH_BOILERPLATE)])
@pytest.mark.parametrize("above", [0, 2])
def test_boilerplate_changes_neither_keys_nor_sketch(text: str, lines: list[str], above: int) -> None:
    full = page(with_lines(text, lines, above=above))
    found, own, plain = print_of(full, ALL), print_of(page(text)), print_of(full)
    assert found.keys == own.keys
    kept, expected, whole = (unpacked(one.sketch) for one in (found, own, plain))
    for part in ("title", "site", "shingles", "minwise", "sentences", "numbers", "words", "order"):
        assert getattr(kept, part) == getattr(expected, part), part
    assert found.own == own.own == len(letters(normalize(text)))
    # The whole page stays known.
    assert found.sentences.tolist() == plain.sentences.tolist()
    assert {OPEN.short(letters(normalize(line))) for line in lines} < set(found.sentences)
    assert (kept.body, kept.whole, found.whole) == (whole.body, whole.shingles, whole.minwise)
    assert found.whole == sketch(shingles(letters(normalize(full.text)), 5), DEFAULTS.bins, DEFAULTS.bits)


def test_a_page_with_boilerplate_of_other_sites_keeps_a_sketch_that_has_it() -> None:
    text, every = page(f"河湾网出品\n{FERRY}\n责任编辑小周"), marks("河湾网出品", "责任编辑小周")
    for own, is_kept in ((marks("河湾网出品"), True), (every, False)):
        site: Any = SimpleNamespace(is_own=own)
        assert bool(Cascade().fingerprint_own(text, every, site).site_free) is is_kept


def test_a_short_line_is_a_heading_and_stays_unless_it_is_in_a_menu() -> None:
    plain, letters_of = print_of(page(FERRY)), len(letters(normalize(FERRY)))
    found = print_of(page(f"河湾网出品\n{FERRY}\n责任编辑小周"), marks("河湾网出品", "责任编辑小周"))
    assert found.own == letters_of + 5
    assert [OPEN.short(line) in found.sentences for line in ("河湾网出品", "责任编辑小周")] == [False, True]
    menu = print_of(page("\n".join([*MENU, FERRY])), marks(*MENU))
    assert (menu.own, menu.keys) == (letters_of, plain.keys)
    assert set(map(OPEN.short, MENU)) <= set(menu.sentences)


def test_sentences_are_counted_once_and_at_both_ends_and_left_out_each_time() -> None:
    found = print_of(page(with_lines(SECOND_FERRY, [BOILERPLATE[0], BOILERPLATE[0]], above=1)), ALL)
    counts = Counts()
    assert counts.on_site("", OPEN).note(found.sentences, everywhere=True)
    assert counts.everywhere.pages(found.sentences).max() == 1
    assert found.own == len(letters(normalize(SECOND_FERRY)))
    for lines in (255, 256, 257, 3000):
        text = [f"第{at:04}号渡船已经靠岸" for at in range(lines)]
        ends = {OPEN.short(letters(line)) for line in text[:128] + text[-128:]}
        assert set(print_of(page("\n".join(text), "")).sentences) == ends, lines
    written = print_of(page("渡口今天清晨开航！\nNobody paid.", "新渡口")).sentences
    assert written.tolist() == [905689690, 2739032256, 3573069049]


def test_a_page_of_boilerplate_alone_has_nothing_of_its_own() -> None:
    found = print_of(page(DISCLAIMER, ""), ALL)
    assert (found.own, found.keys, bool(found.whole)) == (0, (), True)
    assert len(found.sentences) == len(BOILERPLATE) + len(OTHER_BOILERPLATE)
    for other in (FERRY, BOILERPLATE[0], ""):
        assert not compared(page(DISCLAIMER, ""), page(other)).duplicate


# The name of the site in the title

HEADLINE, SITE = "新渡口清晨开航", "河湾人民之声综合信息服务平台"


def title_guard(sentences: Any) -> Any:
    """Knows that this part of titles is the name of the site."""
    return np.isin(sentences, np.array([OPEN.short(f"title {letters(normalize(SITE))}")], np.uint32))


def test_a_part_of_the_title_on_many_pages_is_left_out() -> None:
    expected = print_of(page(FERRY, HEADLINE))
    for title in [f"{HEADLINE}_{SITE}", f"{SITE} | {HEADLINE}", f"{HEADLINE} - {SITE}", f"{HEADLINE}_{SITE}_{SITE}"]:
        plain, found = print_of(page(FERRY, title)), print_of(page(FERRY, title), title_guard)
        assert found.keys == expected.keys != plain.keys, title
        assert unpacked(found.sketch).words == unpacked(expected.sketch).words != unpacked(plain.sketch).words, title
        assert found.sentences.tolist() == plain.sentences.tolist(), title
        assert unpacked(found.sketch).title == unpacked(plain.sketch).title, title
    assert print_of(page(FERRY, SITE), title_guard) == print_of(page(FERRY, SITE)), "a title of the site alone"
    new, old = page(FERRY, f"{HEADLINE}_{SITE}"), page(BELL, f"石坝小学的铜钟_{SITE}")
    for comparison in (judged(new, old), compared(new, old, title_guard)):
        assert (comparison.duplicate, comparison.kind) == (False, None)


def test_lines_and_titles_are_counted_apart() -> None:
    full = page(f"{FERRY}\n{SITE}", f"{HEADLINE}_{SITE}")
    assert print_of(full, title_guard).own == print_of(full).own
    by_line = print_of(full, marks(SITE))
    assert by_line.own == print_of(page(FERRY)).own
    assert unpacked(by_line.sketch).words == unpacked(print_of(full).sketch).words


# Copies


@pytest.mark.parametrize("known_before", [True, False])
@pytest.mark.parametrize("site", ["a.example", "b.example", ""])
def test_pages_that_share_a_disclaimer_of_most_of_their_text_are_no_copies(site: str, known_before: bool) -> None:
    for one, other in zip(SECOND_FERRY.split("\n"), BELL.split("\n"), strict=False):
        new, old = page(f"{one}\n{DISCLAIMER}", site="a.example"), page(f"{other}\n{DISCLAIMER}", site=site)
        assert len(DISCLAIMER) > 0.8 * len(new.text)
        assert judged(new, old).duplicate or site != "b.example", "while nobody knows the disclaimer"
        found = compared(new, old, known_before=known_before)
        assert not found.duplicate
        assert found.similarity < 0.3
    for notice, said, others in NUMBERED[:6]:
        new, old = (page(with_lines(notice.format(one), BOILERPLATE), site="a.example") for one in (said, others))
        assert not compared(new, old, known_before=known_before).duplicate, notice
    full = page(with_lines(FERRY, BOILERPLATE), site="a.example")
    found = compared(full, full, known_before=known_before)
    assert (found.duplicate, found.identical, found.similarity) == (True, True, 1.0)


def strange_lines(dice: random.Random, count: int, length: int) -> list[str]:
    """Lines of Chinese characters by chance."""
    return ["".join(chr(dice.randrange(0x4E00, 0x9000)) for _ in range(length)) for _ in range(count)]


def test_an_earlier_page_that_is_mostly_boilerplate_by_now_is_no_original() -> None:
    for seed in range(40):
        dice = random.Random(seed)
        disclaimer, (mine,), (yours,) = (strange_lines(dice, count, 60) for count in (60, 1, 1))
        for site in ("a.example", "b.example", ""):
            new, old = (
                page("。\n".join([yours, *disclaimer]), site="a.example"),
                page("。\n".join([mine, *disclaimer]), site=site),
            )
            assert not compared(new, old, marks(*disclaimer), known_before=False).duplicate, (seed, site)


@pytest.mark.parametrize("text", [FERRY, BELL])
def test_a_copy_among_the_boilerplate_of_another_site_is_a_copy(text: str) -> None:
    for seed in range(6):
        dice = random.Random(seed)
        new = with_lines(respelled(text, 0.01, seed), dice.sample(BOILERPLATE, 4), above=seed % 3)
        old = with_lines(text, dice.sample(OTHER_BOILERPLATE, 4), above=seed % 2)
        one, other = page(new, "渡口旧闻", site="a.example"), page(old, site="b.example")
        assert compared(one, other).duplicate, seed
        assert set(print_of(one, ALL).keys) & set(print_of(other, ALL).keys), seed
        # The other site's boilerplate is a part of the earlier page, if it became known later.
        assert compared(one, other, known_before=False).similarity > judged(one, other).similarity, seed


@pytest.mark.parametrize("site", ["a.example", "b.example", ""])
@pytest.mark.parametrize(
    ("text", "other", "lines"),
    [(FERRY, BELL, BOILERPLATE), (BELL, FERRY, OTHER_BOILERPLATE), (MILL, LIGHTHOUSE, ENGLISH_BOILERPLATE)],
)
def test_boilerplate_may_become_known_after_an_earlier_page(text: str, other: str, lines: list[str], site: str) -> None:
    for seed in range(3):
        known = random.Random(seed).sample(lines, 1 + seed % 2)
        old = page(with_lines(text, known), site=site)
        for new in (respelled(text, 0.02, seed), scattered(text, 0.7, seed), replaced(text, other, 3, seed), other):
            one = page(with_lines(new, known), site="a.example")
            after, before = (compared(one, old, known_before=when) for when in (True, False))
            assert before.similarity == pytest.approx(after.similarity, abs=0.06)
            exact = [compared(one, old, known_before=when, **EXACT).similarity for when in (True, False)]
            assert exact == pytest.approx([exact_jaccard(new, text)] * 2, abs=0.05)
            assert exact[0] == pytest.approx(exact[1], abs=0.03)
            if new == other or exact_jaccard(new, text) > DEFAULTS.certain + 0.06:
                assert before.duplicate is after.duplicate is (new != other)


def test_texts_that_are_less_alike_with_their_boilerplate_are_no_copies_in_the_middle_band() -> None:
    for seed in range(8):
        half = replaced(FERRY, BELL, 2, seed)
        assert 0.6 < exact_jaccard(half, FERRY) < DEFAULTS.certain - 0.02, f"seed {seed}"
        alone: dict[str, Any] = {"base": 0.5, "least": 0.5, **EXACT}
        assert compared(page(half), page(FERRY), **alone).duplicate, f"seed {seed}"
        one = page(with_lines(half, BOILERPLATE), site="a.example")
        other = page(with_lines(FERRY, OTHER_BOILERPLATE), site="b.example")
        found, explanation = both(one, other, **alone)
        assert explanation.score >= explanation.needed, f"seed {seed}"
        assert values(explanation)["whole"] < 0.5, f"seed {seed}"
        assert "boilerplate" in explanation.decision, f"seed {seed}"
        assert not found.duplicate, f"seed {seed}"
        # The same site is taken to have the same boilerplate.
        ours, theirs = (page(with_lines(text, BOILERPLATE), site="a.example") for text in (half, FERRY))
        here, there = (
            values(both(ours, replace(theirs, site=site), **EXACT)[1])["whole"] for site in ("a.example", "")
        )
        assert here == pytest.approx(exact_jaccard(ours.text, theirs.text), abs=0.04)
        assert there < exact_jaccard(ours.text, theirs.text)


# Boilerplate that is much longer than the own text


def test_a_bare_copy_of_a_short_report_on_a_site_with_a_long_menu_is_found() -> None:
    menu = [f"{one}{other}" for one in MENU for other in MENU]
    report, known = "。\n".join(FERRY.split("。")[:6]), marks(*menu, *BOILERPLATE)
    old, new = page("\n".join([*menu, report, *BOILERPLATE])), page(f"{report}\n编辑：老周", "等了十一年，船来了")
    found, explanation = both(new, old, known)
    assert values(explanation)["whole"] < DEFAULTS.least
    assert values(explanation)["whole_containment"] > DEFAULTS.excerpt
    assert found.duplicate
    assert set(print_of(new, known).keys) & set(print_of(old, known).keys)


def test_a_short_common_text_in_different_boilerplate_makes_no_copy() -> None:
    lines = strange_lines(random.Random(1), 80, 40)
    one, other = (
        page("\n".join([*some, BELL[:400]]), title) for some, title in ((lines[:40], "甲"), (lines[40:], "乙"))
    )
    found = compared(one, other, marks(*lines))
    assert found.similarity > DEFAULTS.certain
    assert not found.duplicate
