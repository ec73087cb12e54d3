"""Short notices and forms with figures, in which one word or number makes another page."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import product

from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import POSTS, PROFILES
from scrapy_neardup.model import Kind
from tests.methods.cascade_pages import (
    COMMON_CHARACTERS,
    DEFAULTS,
    LIGHTHOUSE,
    NONE,
    common_keys,
    exact_jaccard,
    judged,
    page,
)

# Posts


def test_one_sentence_in_other_words_is_a_copy_between_sites_or_with_the_profile_posts() -> None:
    first = "The coal barge is free again and on its way to the upper lock, the harbour office says"
    later = "The coal barge is free again and on its way to the upper lock, says the office"
    posts = PROFILES[POSTS]
    for here, there, is_copy in [("a", "a", False), ("a", "b", True), ("", "", False)]:
        new, earlier = page(later, "", site=here), page(first, "", site=there)
        assert judged(new, earlier).duplicate is is_copy, (here, there)
        assert judged(new, earlier, **posts).duplicate
    assert not judged(page(later, "The barge"), page(first, "The barge")).duplicate, "one title may be that of a form"
    headline = "Coal barge free and on its way to the upper lock"
    assert not judged(page(later, headline), page(first, headline)).duplicate, "a bulletin repeats a long title too"
    assert judged(page(later, headline), page(first, headline), **posts).duplicate
    for one, low, high in NUMBERED:
        assert not judged(page(one.format(low), headline), page(one.format(high), headline)).duplicate
        assert not judged(page(one.format(low), ""), page(one.format(high), ""), **posts).duplicate
    named = page(later, "harbour office"), page(first, "barge says")
    assert judged(*named, **posts).duplicate is False


def test_the_same_short_text_under_quite_another_title_is_another_notice_of_a_site() -> None:
    for site, other in [("a.example", "a.example"), ("", "a.example"), ("", "")]:
        text = "Every evening the harbour bulletin sums up the day in three minutes."
        first = page(text, "Coal barge runs aground at the lock", site=other)
        assert not judged(page(text, "Eel traders open a second market hall", site=site), first).duplicate
        assert judged(page(text, "Coal barge aground at the lock", site=site), first).duplicate
        seventh, eighth = (page(text, f"Coal barge aground for day {day}", site=site) for day in (7, 8))
        assert not judged(eighth, seventh).duplicate
        here, there = (replace(one, url=f"http://a/{two}-9934341") for one, two in ((eighth, "go"), (seventh, "ran")))
        assert judged(here, there).duplicate is (site == "a.example"), "the URLs have the number of one article"
        longer = [
            page(f"{text} {LIGHTHOUSE}", f"The day in the harbour, volume {volume}", site=site) for volume in (7, 8)
        ]
        assert judged(longer[1], longer[0]).duplicate is not (site == "a.example"), "only a known site repeats it"
        source = page(f"{text}\nBy our office.", "Eel traders open a second market hall", site=site)
        assert not judged(source, first).duplicate, "nor if it is not quite equal"


BULLETINS = [
    ("Weather for the coast and the islands today: {} wind, mild later.", "sunny with light", "rain, strong"),
    ("Results of the Sunday league: {} and lead the table.", "Rovers beat Mill United", "Mill United beat Rovers"),
    ("Police ask for help in the search for {}, missing since the market on Saturday.", "Anna Wren", "Peter Nowak"),
    ("The court decided on the appeal of the former harbour master. It found him {}.", "guilty", "not guilty"),
    ("Status report: the upper lock on the coal canal is {} to all barges today, says the office.", "open", "closed"),
    ("Garden hose with spray gun for the balcony, colour {}, of recycled rubber, with a brass tap.", "green", "blue"),
    ("The swimming pool on Reed Street is closed for cleaning on {}. Season tickets stay valid.", "Monday", "Thursday"),
    ("河湾镇自来水公司停水通知：因检修水管，明天上午{}大街停水，请各家提前蓄水。", "北门", "南门"),
]


def test_a_bulletin_under_one_long_title_that_its_text_repeats_says_something_else_each_day() -> None:
    for form, one, other in BULLETINS:
        title = form.split("{")[0].strip(" :,")
        for site in ("a.example", ""):
            found = judged(page(form.format(other), title, site=site), page(form.format(one), title, site=site))
            assert found.similarity > DEFAULTS.least, form
            assert not found.duplicate, (form, site)


# Notices that differ in their numbers alone

NUMBERED = [
    ("There were {} coal barges waiting at the lock", "three", "seven"),
    ("There were {} coal barges waiting at the lock this morning, the harbour office said", "3", "7"),
    ("{} tugs were under repair and five at work in the basin, the dockmaster reported on Friday", "Eight", "Two"),
    ("The eel traders sold {} tons and carried over twelve, slightly more than in the week before", "forty", "ninety"),
    ("Line {} will not stop at Mill Lane on Monday. Please use the stop at the church.", "12", "14"),
    ("Crates of early pears went at {} at the morning sale, after 31.40 the day before.", "30.85", "32.10"),
    ("The gauge at the chapel bridge stood at {} metres at noon. The meadow path stays open.", "1.8", "2.3"),
    ("今天码头上停着{}艘运粮船，港务处说下午装完货就开船离港，请车辆绕行北门。", "13", "17"),
    ("今天码头上停着{}艘运粮船，港务处说下午装完货就开船离港，请车辆绕行北门。", "十三", "十七"),
    ("今天码头上停着{}艘运粮船，港务处说下午装完货就开船离港，请车辆绕行北门。", "３", "７"),
    ("河湾镇水文站今天早上八点的水位是{}米，比昨天同一时刻略有上涨，渡船照常开行。", "12.40", "12.65"),
    ("今天早上码头上停着{}艘运粮船，下午装完货就开船离港，请前往集市的车辆绕行北门，渡船照常开行。", "三", "七"),
]


def test_a_short_notice_is_a_copy_only_with_the_same_numbers() -> None:
    for title in ["通知", ""]:
        for notice, one, other in NUMBERED:
            found = judged(page(notice.format(one), title), page(notice.format(other), title))
            assert not found.duplicate, (notice, one, other)
            assert found.kind not in (Kind.IDENTICAL, Kind.NEAR, Kind.RETITLED), (notice, one, other)
    notice = "今天码头上停着13艘运粮船，港务处说下午装完货就开船离港，请来往的车辆绕行北门，夜间渡船照常开行。"
    assert judged(page(notice + "特此通知"), page(notice)).duplicate


WATER = (
    "河湾镇水文站发布今日水情。截至今天上午，老渡口断面水位{}米，比昨天同一时刻略有上涨；柳林断面流量每秒{}立方米，涨势趋缓。"
    "预计今晚到明天上游仍有小到中雨，沿河各村要安排专人看守堤坝，低洼地带的牲畜应尽快转移。"
    "昨日全镇平均降雨{}毫米，雨量最大的是石坝村，水库蓄水{}万立方米。如遇险情，请立即拨打值班电话{}，并通知附近住户。"
)
HARVEST = (
    "Growers of the upper valley picked {} tons of plums this season, the cooperative reports, after {} the year "
    "before. Of these {} went to the cannery, {} were dried and {} were sold by the road. The average price rose to "
    "{} a basket from {}. Rain in August spoiled {} crates, and wasps took another {}."
)


def filled_in(form: str, seed: int, digits: int = 0) -> str:
    """The form with figures drawn by chance, of so many digits, or (0) of all kinds."""
    dice = random.Random(seed)

    def figure(_: re.Match[str]) -> str:
        if digits:
            return f"{dice.randrange(10 ** (digits - 1), 10**digits)}"
        return dice.choice([f"{dice.randrange(100, 9999)}", f"{dice.randrange(10, 999)}.{dice.randrange(10, 99)}"])

    return re.sub(r"\{\}", figure, form)


def test_a_report_whose_figures_all_differ_is_no_copy_and_with_the_same_figures_one() -> None:
    for form in (WATER, HARVEST):
        for seed, digits in product(range(12), (0, 3, 4)):
            one, other = filled_in(form, seed, digits), filled_in(form, seed + 1000, digits)
            assert 150 <= len(one) <= 350
            assert 0.5 < exact_jaccard(one, other) < 0.72
            assert not judged(page(one, "Report 通报"), page(other, "Report 通报")).duplicate, (form[:9], seed, digits)
            sourced = judged(page(f"{one}（来源：县广播站）", "转载"), page(one, "通报"))
            assert sourced.duplicate, (form[:9], seed, digits)


# Notices of one sentence

NOTICES = [
    "因检修水管，明天上午城北片区将会停水，请各家提前蓄水备用。",
    "今天下午的班车因为大雾停开，请旅客改乘明天早上的头班车。",
    "石坝小学定于星期五晚上召开家长会，请各位家长准时参加。",
    "河湾镇卫生院从下个月起开设儿科门诊，挂号处设在门厅左侧。",
    "受强冷空气影响，今天夜里我县北部山区有雨夹雪，请注意保暖。",
    "柳林村的果农合作社招收季节工，有意的请到村委会报名登记。",
    "The swimming pool on Reed Street stays closed until the new boiler has been fitted and tested.",
    "Council leaders met in the old mint on Friday to talk about the future of the cattle market.",
    "Police are looking for the owner of a brown suitcase that was left on the ferry last night.",
    "The parish choir needs tenors and asks anyone who can hold a tune to come on Wednesday evening.",
    "Heavy snow has blocked the road over Gannet Hill, and drivers should go round by the coast.",
    "A fire in the rope works on the quay was put out by volunteers before anybody was hurt.",
]
#: No word of the notices, so that each makes another one.
OTHER_WORDS = "Brendel", "walnuts", "quietly", "seldom", "vicar", "Oxbridge", "umbrella", "never", "reopened", "seventh"


def no_copies(one: str, other: str) -> None:
    found = judged(page(one, "通知"), page(other, "通知"))
    assert not found.duplicate, (one, other)
    assert found.kind is Kind.SAME_TITLE, (one, other)


def test_a_notice_with_one_word_or_character_changed_is_another() -> None:
    for notice, seed in product(NOTICES, range(5)):
        places = [match.span() for match in re.finditer("[\u4e00-\u9fff]|[A-Za-z]+", notice)]
        dice = random.Random(seed)
        start, end = dice.choice(places) if seed else places[-1]
        was = notice[start:end]
        word = dice.choice(OTHER_WORDS if was.isascii() else COMMON_CHARACTERS.replace(was, ""))
        no_copies(notice[:start] + word + notice[end:], notice)


def test_a_notice_with_a_short_line_of_its_source_is_a_copy() -> None:
    method = Cascade()
    for notice, source in product(NOTICES, ("来源：河湾网", "（记者 罗田）", "Photo: Tern", "\n编辑：小周")):
        plain = method.fingerprint(page(notice, "通知"))
        for text in (f"{notice}\n{source}", f"{source}\n{notice}"):
            assert exact_jaccard(text, notice) > 0.65, text
            sourced = method.fingerprint(page(text, "快讯"))
            assert method.compare(sourced, plain.sketch, NONE).duplicate, text
            assert method.compare(plain, sourced.sketch, NONE).duplicate, text
            assert set(sourced.keys) & set(plain.keys), text


def test_sentences_in_another_order_are_the_same_notice() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        few = dice.sample(NOTICES[:6], 3) if seed % 2 else dice.sample(NOTICES[6:], 2)
        turned = few[1:] + few[:1]
        one, other = page(" ".join(turned), "快讯"), page(" ".join(few), "通知")
        found = judged(one, other)
        assert (found.duplicate, found.identical) == (True, False), few
        assert common_keys(one, other), few


def test_another_second_sentence_or_one_character_makes_another_notice() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        kept, one, other = dice.sample(NOTICES[:6] if seed % 2 else NOTICES[6:], 3)
        no_copies(f"{kept}\n{one}", f"{kept}\n{other}")
        text = "\n".join(dice.sample(NOTICES[:6], 3))
        at = dice.choice([match.start() for match in re.finditer("[\u4e00-\u9fff]", text)])
        other = text[:at] + dice.choice(COMMON_CHARACTERS.replace(text[at], "")) + text[at + 1 :]
        assert judged(page(text), page(other)).similarity > DEFAULTS.least, (text, other)
        no_copies(text, other)


def test_a_line_too_short_for_a_sentence_counts() -> None:
    for notice in NOTICES:
        for one, other in (("票价3元", "票价5元"), ("共12人", ""), ("Fare: 3.50", "Fare: 4.50")):
            new, old = f"{notice}\n{one}", f"{notice}\n{other}"
            assert not judged(page(new, "快讯"), page(old, "通知")).duplicate
            assert judged(page(new, "快讯"), page(f"{one}\n{notice}", "通知")).duplicate
        no_copies(f"{notice}\n地点：东站。", f"{notice}\n地点：西站。")
        no_copies(f"{notice}\nNo fines.", f"{notice}\nBe quick!")


def test_a_sentence_under_a_common_key_is_no_evidence() -> None:
    one, other = page(f"{NOTICES[0]}\n来源：河湾网", "快讯"), page(NOTICES[0], "通知")
    assert judged(one, other).duplicate
    assert not judged(one, other, common_keys(one, other)).duplicate
    one, other = (page(f"{NOTICES[6]}\n{more}") for more in ("The bread is out of the oven.", "Wet paint on the door."))
    assert not judged(one, other, common_keys(one, other)).duplicate
