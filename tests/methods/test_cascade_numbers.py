"""The numbers of two texts: of a form they differ, of a report in two wordings they are the same."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CATALOGUE, PROFILES, CascadeParameters
from scrapy_neardup.methods.cascade.sketch import Numbers, sketch_form
from scrapy_neardup.model import Page
from tests.methods.cascade_pages import BELL, DEFAULTS, FERRY, MILL, explained, judged, page, scattered, values
from tests.methods.comparing import split

KEYED = Keyed(b"the secret of a state")
SITE = "river.example"
#: More than 400 different 5-grams, and 14 numbers.
REPORT = """河湾镇的浮桥在2031年4月17日通车，当天一共有5260人和384辆农用车从桥上走过，镇里的广播从清早一直响到了天黑。
负责修桥的工程队说，浮桥由48只铁皮浮箱拼成，全长126米，每只浮箱能够承受9吨的重量，涨水的时候会跟着水面一起升高。
在这之前两岸的居民只能乘坐渡船，一趟要等上25分钟，遇到大雾就得停航，去年光是因为大雾停航的日子就有63天。
柳林村的果农最盼望这座桥，梨子熟了以后每天要运出去70筐，过去坐船一次只能带上6筐，烂在码头上的比卖掉的还要多。
桥头立着一块木牌，写着限速15公里和不许停车，旁边的小屋里住着看桥的夫妻，他们养的黄狗认得每一位过桥的邮递员。
镇上打算等浮桥用旧以后再修一座石桥，图纸已经画好，只是河床下面全是流沙，打桩的钱还没有着落，谁也说不准要等多久。
卖豆浆的老周把摊子从码头搬到了桥头，他说从前的客人都是等船等得不耐烦才来喝一碗，如今大家走得急，生意反倒冷清了些。
小学的老师打算带着孩子们量一量浮箱之间的缝隙，把每个月的数字记在黑板上，看看铁皮在热天和冷天里究竟会伸缩多少。"""
TOLD_AGAIN = scattered(REPORT, 0.66, 5)
#: No word of either stands in the text.
TITLES = "水上坦途", "夙愿得偿"


def on_site(text: str, title: str = TITLES[1], site: str = SITE) -> Page:
    return page(text, title, site=site)


def filled_in(text: str, share: float, seed: int) -> str:
    """The text with that share of its numbers replaced by others that it does not hold."""
    dice = random.Random(seed)
    own = sorted(set(re.findall("[0-9]+", text)))
    others = dict(zip(dice.sample(own, round(share * len(own))), map(str, range(7001, 8000)), strict=False))
    return re.sub("[0-9]+", lambda number: others.get(number[0], number[0]), text)


def seen(new: Page, old: Page) -> tuple[float, float]:
    found = values(explained(new, old))
    return found["reworded"], found["numbers"]


OLD = on_site(REPORT, TITLES[0])


def test_a_report_in_other_words_is_a_copy_unless_a_number_differs() -> None:
    new = on_site(TOLD_AGAIN)
    assert seen(new, OLD) == (1.0, 0.0)
    assert 0.6 < judged(new, OLD).similarity < 0.7
    assert judged(new, OLD).duplicate
    assert not judged(new, OLD, by_reworded=0.0).duplicate
    assert not judged(new, OLD, **PROFILES[CATALOGUE]).duplicate, "the products of a family have the same numbers"
    for number, other in [("5260", "5261"), ("63天", "没有几天"), ("126米", "126米又80")]:
        new = on_site(TOLD_AGAIN.replace(number, other))
        assert new.text != TOLD_AGAIN, number
        assert seen(new, OLD)[0] == 0.0, number
        assert not judged(new, OLD).duplicate, number
    again = f"{TOLD_AGAIN}从此不必再等25分钟，也不用怕那63天的大雾。".replace("5260", "5,260").replace("126", "１２６")
    assert seen(on_site(again), OLD)[0] == 1.0
    assert seen(on_site(TOLD_AGAIN, site="hill.example"), OLD)[0] == 0.0
    few = "\n".join(REPORT.split("\n")[:3])
    assert seen(on_site(scattered(few, 0.66, 5)), on_site(few, TITLES[0]))[0] == 0.0


def test_numbers_in_what_both_have_word_for_word_are_no_evidence() -> None:
    """As in a footer with an address: only a date, three numbers, stands in what the two pages say."""
    footer = "地址是河湾镇72号码头，电话0551和884213，邮编233100，夜里请拨打第9号分机，或者写信到308信箱找何主任。"
    dated = "2031年4月17日，"
    one, other = (f"{dated}{re.sub('[0-9]+', '几', text)}\n{footer}" for text in (REPORT, TOLD_AGAIN))
    assert seen(on_site(other), on_site(one, TITLES[0])) == (0.0, 0.0)
    told = "来的有5260人。"
    assert seen(on_site(f"{told[:-1]}啊。{other}"), on_site(f"{told}{one}", TITLES[0]))[0] == 1.0


def test_whoever_has_it_say_more_has_pages_compared_that_are_less_alike() -> None:
    """What is not compared is told by the least similarity that may be enough."""
    new = on_site(scattered(REPORT, 0.4, 5))
    assert judged(new, OLD).similarity < 0.45
    for p, may_be in ((CascadeParameters(), False), (CascadeParameters(by_reworded=0.6, least=0.3), True)):
        method = Cascade(p)
        one, other = method.fingerprint(new), method.fingerprint(OLD).sketch
        assert method.may_be_alike(one, other) is may_be
        assert method.compare(one, other, frozenset()).duplicate is may_be


def test_a_form_that_is_filled_in_with_other_numbers_is_another_page() -> None:
    for seed in range(4):
        new = on_site(filled_in(scattered(REPORT, 0.78, seed), 0.7, seed))
        reworded, numbers = seen(new, OLD)
        assert reworded == 0.0, seed
        assert numbers == pytest.approx(0.7, abs=0.1)
        assert not judged(new, OLD).duplicate, seed
        same_title = on_site(filled_in(REPORT, 0.7, seed), TITLES[0])
        assert not judged(same_title, OLD).duplicate, "as of the notices of two days"
        for readers in ("prose", "prose"), ("prose", ""), ("", "prose"):  # these may be counters
            read = (replace(one, reader=reader) for one, reader in zip((same_title, OLD), readers, strict=True))
            assert "numbers" not in explained(*read).decision
        assert not judged(on_site(same_title.text, "", ""), on_site(REPORT, "", "")).duplicate
        assert judged(replace(same_title, site="hill.example"), OLD).duplicate, "the frames of two sites have dates"
        long, edited = (f"{text}\n{MILL}" for text in (REPORT, REPORT.replace("5260", "7260")))
        assert judged(on_site(edited, TITLES[0]), on_site(long, TITLES[0])).duplicate, "a copy may correct a number"


ISSUE = "浮桥通车第 7 期"


@pytest.mark.parametrize(
    ("edit", "title", "earlier", "site", "duplicate"),
    [
        (("5260人", "7260人"), TITLES[1], TITLES[0], SITE, False),
        (("5260人", "7260人"), TITLES[1], TITLES[0], "", False),
        (("5260人", "7260人"), TITLES[1], TITLES[0], "hill.example", True),  # a copy may correct a number
        (("5260人", "7260人"), TITLES[0], TITLES[0], SITE, False),
        (("5260人", "7260人"), "", "", SITE, True),
        (("5260人", "许多人"), TITLES[1], TITLES[0], SITE, True),
        (("5260人", "5260人7次"), TITLES[1], TITLES[0], SITE, True),
        (("广播", "喇叭"), TITLES[1], TITLES[0], SITE, True),
        (("5260人", "许多人"), "浮桥通车第 8 期", ISSUE, SITE, False),
        (("广播", "喇叭"), "浮桥通车第 8 期", ISSUE, SITE, True),
        (("5260人", "许多人"), "浮桥通车第 7 期的 8 张照片", ISSUE, SITE, False),
    ],
)
def test_pages_in_one_form_with_other_numbers_under_another_title_are_two(
    edit: tuple[str, str], title: str, earlier: str, site: str, duplicate: bool
) -> None:
    """As of the updates of a phone: another date, another version, and one sentence."""
    new = on_site(REPORT.replace(*edit), title, site)
    assert new.text != REPORT
    assert judged(new, on_site(REPORT, earlier)).duplicate is duplicate


#: The default one.
FORM = sketch_form(CascadeParameters())


def held(count: int, first: int = 0, *, short: bool = False) -> Numbers:
    text, shingles = split([f"第{number}号船" for number in range(first, first + count)], KEYED), 300 if short else 500
    packed = Numbers.encode(text, text.sketch(FORM), shingles)
    return Numbers.unpack(tuple(packed[at] << 8 | packed[at + 1] for at in range(0, len(packed), 2)), shingles)


def test_pages_of_two_sites_whose_titles_give_other_numbers_are_two_if_they_open_differently() -> None:
    first, second = (BELL.split("\n")[part] for part in (slice(2), slice(-2, None)))
    for opens_alike in True, False:
        one, other = (
            page("\n".join([FERRY, *own] if opens_alike else [*own, FERRY]), f"新渡口第{number}号简报", site=site)
            for own, number, site in ((first, 12, "a.example"), (second, 13, "b.example"))
        )
        assert 0.7 < judged(one, other).similarity < DEFAULTS.certain
        assert judged(one, other).duplicate is opens_alike


def test_the_same_numbers_and_those_that_are_missing() -> None:
    for one, other, same, missing in [
        (held(5), held(5), True, 0.0),
        (held(4), held(4), False, 0.0),
        (held(900), held(900), True, 0.0),
        (held(900), held(901), False, 0.0),
        (held(9), held(9, 100), False, 1.0),
        (held(4), held(9, 100), False, 0.0),
        (held(0), held(9), False, 0.0),
        (held(0), held(0), False, 0.0),
        (held(9), Numbers(held(9).some), False, 0.0),
        (Numbers(frozenset((2, 5))), Numbers(frozenset((2, 9, 8))), False, 0.5),
        (Numbers(frozenset((2, 5))), Numbers(frozenset((2, 5))), False, 0.0),
        # Of both only a sample is kept, and of the longer one it is another one.
        *((held(count), held(more), False, 0.0) for count in (6, 12, 13, 40) for more in (count + 2, 3 * count)),
        *((held(count), held(count + 2, count), False, 1.0) for count in (6, 12, 13, 40)),
        *((held(count, short=True), held(more, short=True), False, 0.0) for count in (31, 60) for more in (64, 200)),
        # Of six hundred the twelve that are kept have so small hashes that hardly one of the six is below them.
        (held(6), held(600, 6), False, 0.0),
    ]:
        assert one.equals(other) == other.equals(one) == same
        assert one.missing_share(other) == other.missing_share(one) == pytest.approx(missing)
    short = Numbers(held(9).some)
    assert [one.adds_to(held(9)) for one in (short, held(9))] == [True, False], "of texts of two lengths nobody knows"
    assert held(9).adds_to(short)
    assert not short.contradicts(held(9, 100))
    assert not any(held(40, short=True).contradicts(held(more, short=True)) for more in range(41, 80))
