"""The promises of every method. The tests run over ``METHODS``."""

from __future__ import annotations

import json
import random
from dataclasses import fields, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.methods.base import nothing_is_common
from scrapy_neardup.model import Fingerprint, Page

GOLDEN = Path(__file__).with_name("golden.json")

PAGES = {
    "ferry": Page(
        "http://river.example/ferry",
        "新渡口清晨开航，第一班船载客三十六位_河湾网",
        ("渡口", "开航", "柳林村"),
        "河湾镇的新渡口星期六清晨开航，结束了两岸居民绕道铁桥的日子。",
        "河湾镇的新渡口星期六清晨正式开航，第一班船载着36位乘客和他们的行李，从对岸的柳林村慢慢驶来。\n"
        "卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年，“今天的豆浆不收钱！”\n"
        "旧渡船是1982年造的木船，去年春天的大水冲断了缆绳，船撞在石墩上沉了下去；两岸的人从此只能绕道上游的铁桥，来回要走40公里。",
    ),
    "grafting": Page(
        "http://river.example/grafting",
        "柿子树下的嫁接比赛",
        ("嫁接", "比赛", "果农"),
        "十二个村的果农带着自己的剪刀比试手艺。",
        "县农业站昨天在石桥乡办了一场嫁接比赛，来自十二个村的果农带着自己的剪刀和薄膜，在一片老柿子林里比试手艺。\n"
        "每人领三根砧木和三根接穗，要在半个小时里全部接好，评委不看速度，只看切口是不是平整，形成层有没有对齐。\n"
        "七十三岁的田奶奶用的是一把磨了三十年的小刀，她偏要用泡软的麻皮，说麻皮会自己烂掉，不用再回来拆。",
    ),
    "traditional": Page(
        "http://river.example/traditional",
        "老戲院的最後一盞燈",
        ("戲院", "放映機"),
        "鎮上的戲院在週末放映最後一場電影。",
        "鎮上的老戲院在週末放映了最後一場電影，放映師把那台用了四十年的機器擦得發亮，然後親手關掉了燈。\n"
        "觀眾坐滿了樓上樓下，有人帶著當年的票根，有人帶著孫子，電影放到一半的時候外面下起了大雨，沒有人離開。",
    ),
    "lighthouse": Page(
        "http://river.example/lighthouse",
        "Gannet Point Lighthouse to Be Lit Again | The Daybook",
        ("lighthouse", "Gannet Point", "harbour"),
        "Twenty years after its keeper locked the door, the lighthouse gets a new clockwork.",
        "The lighthouse on Gannet Point will be lit again next month, 20 years after its keeper locked the door.\n"
        "Volunteers have spent three winters scraping salt from the lens, which was ground in 1874. "
        "The old clockwork could not be saved, so a retired bicycle maker built one of chains and two flywheels. "
        "Ships no longer need the light, the harbour master says, but the people who live below it missed the beam.",
    ),
    "mixed": Page(
        "http://river.example/mixed",
        "River Radio 88.4 在河湾镇试播",
        (),
        "",
        "River Radio 88.4 FM 昨天在河湾镇试播，第一个节目是 Tern Sisters 乐队的现场演奏，听众打来了 217 个电话。\n"
        "电台设在旧粮仓的二楼，发射机是从海港的修船厂买来的二手货，开机要等 15 分钟才能听到声音。",
    ),
}
EDGES = {
    "nothing": Page("http://river.example/0"),
    "no text": Page("http://river.example/1", "只有题目", ("渡口",), "只有简介"),
    "white space": Page("http://river.example/2", " \n", (" ",), "\t", "\u3000\n \n"),
    "punctuation": Page("http://river.example/3", "！", ("，",), "。", "……。！？——"),
    "one character": Page("http://river.example/4", text="船"),
    "one sentence": Page("http://river.example/5", "停航", text="今天风大，渡船停航一天。"),
    "one hundred thousand characters": Page("http://river.example/6", text="渡口的船今天又开了。第二班是空的\n" * 5883),
    "without a full stop": Page("http://river.example/7", "船" * 5000, ("船" * 5000,), "船" * 5000, "船" * 100_000),
    "all different": Page("http://river.example/8", text="".join(chr(0x4E00 + n % 20_000) for n in range(100_000))),
    "lone surrogates": Page("http://river.example/9", "船\ud800", ("\udfff",), "\ud800", "船\ud800来了\udfff" * 30),
}

#: Words of the pages below with invented counts, as methods that need a lexicon refuse English without one.
LEXICON = Path(__file__).with_name("lexicon.txt")
GIVEN: dict[str, dict[str, Any]] = {"idf_terms": {"lexicon": str(LEXICON)}, "imatch": {"lexicon": str(LEXICON)}}


def made(name: str, **parameters: Any) -> Method:
    return make_method(name, {**parameters, **GIVEN.get(name, {})})


PLAIN_METHODS = {name: made(name) for name in METHODS}
every_method = pytest.mark.parametrize("method", PLAIN_METHODS.values(), ids=PLAIN_METHODS)
ALL_PAGES = {**PAGES, **EDGES}
NONE: frozenset[int] = frozenset()


@cache
def prints(name: str) -> dict[str, Fingerprint]:
    """The fingerprints of all pages by a method, made once: some of the pages are long."""
    return {page_name: PLAIN_METHODS[name].fingerprint(page) for page_name, page in ALL_PAGES.items()}


def changed(page: Page, change: dict[int, str] | None = None, between: str = "") -> Page:
    """The page with its characters translated, or with something between each two of them."""

    def one(text: str) -> str:
        return between.join(text.translate(change or {}))

    return Page(page.url, one(page.title), tuple(map(one, page.keywords)), one(page.description), one(page.text))


UPPER = {code: chr(code).upper() for code in range(0x61, 0x7B)}
#: Not the marks between a title and its site, nor the dot: their wide forms are others, with a meaning of their own.
WIDE = {code: chr(code + 0xFEE0) for code in range(0x21, 0x7F) if chr(code) not in "_|."}
OTHER_MARKS = {ord("，"): ",", ord("！"): "!", ord("；"): ";", ord("“"): "「", ord("”"): "」"}
NO_MARKS = dict.fromkeys(map(ord, "，、；“”"), "")
SPELLINGS = {
    "upper case": (UPPER, ""),
    "full width": (WIDE, ""),
    "other punctuation": (OTHER_MARKS, ""),
    "no punctuation": (NO_MARKS, ""),
    "zero-width spaces": ({}, "\u200b"),
    "soft hyphens": ({}, "\u00ad"),
    "byte order marks": ({}, "\ufeff"),
    "Hangul fillers": ({}, "\u3164\uffa0\u115f\u1160"),
    "selectors and tags": ({}, "\ufe0f\U000e0041"),
}


@every_method
def test_a_fingerprint_has_keys_and_a_sketch_and_is_identical_to_itself(method: Method) -> None:
    for name, page in ALL_PAGES.items():
        own = prints(method.name)[name]
        assert type(own.sketch) is bytes, name
        assert type(own.keys) is tuple, name
        assert len(set(own.keys)) == len(own.keys), name
        assert all(type(key) is int and 0 <= key < 2**64 for key in own.keys), name
        assert own.keys or name in EDGES, name
        assert (own.sentences.dtype.name, own.sentences.ndim) == ("uint32", 1), name
        found = method.compare(own, own.sketch, NONE)
        assert (found.similarity, found.containment) == (1.0, 1.0), name
        assert (found.duplicate, found.certain, found.identical) == (True, True, True), name
        for limit in (0, 1, 3):
            shared = method.shared(page, own.sketch, limit)
            assert len(shared) <= limit, name
            assert all(passage and passage in page.text for passage in shared), (name, limit)
            assert list(map(len, shared)) == sorted(map(len, shared), reverse=True), (name, limit)


@every_method
def test_two_pages_are_compared_alike_from_both_sides(method: Method) -> None:
    for (one, ours), (other, theirs) in combinations(prints(method.name).items(), 2):
        found, back = method.compare(ours, theirs.sketch, NONE), method.compare(theirs, ours.sketch, NONE)
        assert found == back, (one, other)
        assert 0.0 <= found.similarity <= 1.0, (one, other)
        assert 0.0 <= found.containment <= 1.0, (one, other)
        assert found.identical <= found.certain <= found.duplicate, (one, other)
        explained = method.explain(ours, theirs.sketch, NONE)
        if explained is not None:
            added_up = sum(feature.value * feature.weight for feature in explained.features)
            assert explained.score == pytest.approx(added_up), (one, other)
            assert explained.decision.endswith("."), (one, other)


@every_method
def test_unrelated_articles_are_no_duplicates_and_share_no_passage(method: Method) -> None:
    made_of = prints(method.name)
    for one, other in product(PAGES, PAGES):
        assert bool(method.shared(PAGES[one], made_of[other].sketch)) is (other == one), (one, other)
        if one != other:
            found = method.compare(made_of[one], made_of[other].sketch, NONE)
            assert not found.duplicate, (one, other)
            # Half of the bits of two unrelated texts are equal by chance.
            assert found.similarity < 0.75, (one, other)


@every_method
def test_a_state_keeps_the_lower_bits_of_keys(method: Method) -> None:
    keyed = method.with_hashes(Keyed(b"a secret"))
    for name, page in PAGES.items():
        keys = keyed.for_state(page, None).keys
        assert keys == keys_of(keyed.fingerprint_own(page, nothing_is_common).keys), name
        assert max(keys, default=0) < 2**40, name


#: Methods that read punctuation: where sentences, segments or lines end.
READS_MARKS = {"nshash", "segments", "punctuation"}


@every_method
def test_case_width_punctuation_and_invisible_marks_make_no_difference(method: Method) -> None:
    for (spelling, (change, between)), (name, page) in product(SPELLINGS.items(), PAGES.items()):
        fingerprint, other = prints(method.name)[name], method.fingerprint(changed(page, change, between))
        found = method.compare(other, fingerprint.sketch, NONE)
        assert (found.similarity, found.duplicate, found.identical) == (1.0, True, True), (name, spelling)
        if not (method.name in READS_MARKS and change in (OTHER_MARKS, NO_MARKS)):
            assert set(fingerprint.keys) & set(other.keys), (name, spelling)


@every_method
def test_urls_are_no_part_of_a_fingerprint_and_a_title_only_of_an_identical_page(method: Method) -> None:
    page, own = PAGES["ferry"], prints(method.name)["ferry"]
    assert method.fingerprint(replace(page, url="http://other.example/", canonical="http://a.example/")) == own
    found = method.compare(method.fingerprint(Page(page.url, "等了十一年", text=page.text)), own.sketch, NONE)
    assert (found.duplicate, found.identical) == (True, False)


@every_method
def test_a_fingerprint_does_not_depend_on_earlier_pages(method: Method) -> None:
    order = list(PAGES.values()) * 2
    random.Random(8).shuffle(order)
    fresh = {page.url: made(method.name).fingerprint(page) for page in PAGES.values()}
    assert all(method.fingerprint(page) == fresh[page.url] for page in order)


@every_method
@pytest.mark.parametrize("way", ["compiled", "pure"])
def test_fingerprints_are_written_down(method: Method, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the parameters written down there too: a state by itself refuses other ones, as its recipe names them."""
    if way == "pure":
        monkeypatch.setattr(compiled, "kernels", None)
    elif compiled.kernels is None:
        pytest.skip("The compiled module was not built here.")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    place = f"{method.name} {method.version}"
    written = golden.get(place, {"parameters": method.recipe()["parameters"], "pages": None})
    same = made(method.name, **written["parameters"])
    found = {name: same.fingerprint(page) for name, page in PAGES.items()}
    pages = {name: {"keys": list(one.keys), "sketch": one.sketch.hex()} for name, one in found.items()}
    assert place in golden, f"Add to {GOLDEN.name}: {json.dumps({place: {**written, 'pages': pages}})}"
    assert pages == written["pages"], (
        f"The fingerprints of {method.name} have changed, so states on disk would be misread: raise its version "
        f"and add the new fingerprints to {GOLDEN.name} as {method.name} {method.version + 1}."
    )


@every_method
def test_a_recipe_is_plain_data_with_the_method_and_its_version(method: Method) -> None:
    recipe = method.recipe()
    assert type(method) is METHODS[method.name]
    assert isinstance(method.version, int)
    assert method.version >= 1
    assert (recipe["method"], recipe["method version"]) == (method.name, method.version)
    assert json.loads(json.dumps(recipe)) == recipe == made(method.name).recipe()


def test_an_unknown_parameter_is_refused_with_the_valid_ones() -> None:
    for name in METHODS:
        with pytest.raises(SettingsError, match=f"{name} has no parameter colour") as refused:
            make_method(name, {"colour": 1})
        for field in fields(METHODS[name].parameters_type):
            assert field.name in str(refused.value), name


def test_unknown_and_incomplete_methods_are_refused() -> None:
    with pytest.raises(SettingsError, match="There is no method 'magic'") as refused:
        make_method("magic", {})
    assert all(name in str(refused.value) for name in METHODS)
    with pytest.raises(SettingsError, match="lacks name, parameters_type, signature"):
        make_method("scrapy_neardup.methods.literature.base.PublishedMethod", {})


@every_method
def test_a_method_without_a_guard_judges_the_article_if_it_is_known(method: Method) -> None:
    article = PAGES["ferry"]
    framed = replace(article, text=f"河湾镇日报\n{article.text}\n版权所有，转载请注明出处", main=article.text)
    if type(method).fingerprint_own is Method.fingerprint_own:
        assert method.fingerprint_own(framed, nothing_is_common) == prints(method.name)["ferry"]
