"""Edits keep what they promise: how much they change, that they repeat, and that odd texts do no harm."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.lab.edits import (
    EDITS,
    Material,
    add,
    delete,
    edit_page,
    reorder,
    replace,
    retitle,
    script,
    split_sentences,
    why_unavailable,
    width,
    wrap,
)
from scrapy_neardup.model import Page

ZH = (
    "昨天下午，青石镇的渡口重新开放。第一班船载着三十二名乘客过河！“我等了四个月，”一位老人说。\n"
    "镇政府表示，新码头花费２６０万元，比预算少一成。雨季到来以前，工人还要加固北岸的护坡；夜班船暂不恢复。\n"
    "船长说，水位已经降到3.5米以下。乘客可以在岸边的小屋买票，儿童免费。下周起，班次将增加到每天十二班。"
)
EN = (
    "The ferry at Stone Landing opened again on Tuesday. Thirty-two people crossed on the first boat! "
    "“I waited for four months,” said an old man.\n"
    "The council paid 2.6 million for the new pier, a tenth less than planned. Before the rains come, workers will "
    "strengthen the northern bank; boats will not run at night.\n"
    "The water has fallen below 3.5 metres, the captain said. Tickets are sold in the hut. Children travel free"
)
LENDERS = [
    Page(
        "",
        "果园丰收",
        text="山坡上的桃子熟了。果农老周雇了六个人采摘，一天装满两车！价格却跌了三成？合作社正在联系外地买家。",
    ),
    Page(
        "",
        "Library stays open",
        text="The library keeps its longer hours. Readers had signed a letter! Who pays for it?",
    ),
]
MATERIAL = Material.of(LENDERS)
AMOUNTS = (0.01, 0.05, 0.20)
LONG = {"zh": ZH * 5, "en": EN * 5}
#: Texts, amounts and seeds.
CASES = list(product(LONG.values(), AMOUNTS, range(3)))
#: Texts with nothing, or next to nothing, to edit.
ODD = ["", " ", "\n\n", "。", "!?", "船", "渡口开了", "渡口开了。", "One sentence only.", "a b", "３．５", "\u3000\n。"]
ODD += ["\ud800", "e\u0301"]
ANY_TEXT = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from('。！.!?; \n”"')), max_size=80)


def rng(seed: object = 1) -> Random:
    return Random(f"{seed}")


def units(text: str) -> list[str]:
    return re.findall(r"[\u3400-\u9fff]|[A-Za-z]+|\d+|\w", text)


@given(ANY_TEXT)
def test_pieces_join_to_the_text(text: str) -> None:
    assert "".join(split_sentences(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (
            "It cost 3.5 million. See a.example.com now! Yes.",
            ["It cost 3.5 million. ", "See a.example.com now! ", "Yes."],
        ),
        ("(Really.) Yes.", ["(Really.) ", "Yes."]),
        (" \n ", [" \n "]),
        ("第一句。第二句", ["第一句。", "第二句"]),
        ("\n第一句。\n\n第二句。\n", ["\n第一句。\n\n", "第二句。\n"]),
        ("走吧！”他说；船开了……", ["走吧！”", "他说；", "船开了……"]),
        ("行一\r\n行二", ["行一\r\n", "行二"]),
        ("。 。\n。", ["。 ", "。\n", "。"]),
    ],
)
def test_pieces_end_with_sentences(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_add_inserts_the_amount_and_keeps_all_that_was_there() -> None:
    for text, amount, seed in CASES:
        whole = [piece.strip() for piece in split_sentences(text)]
        result = add(text, amount, rng(seed), MATERIAL)
        more = len(result) - len(text) - round(amount * len(text))
        assert 0 <= more <= 2, (amount, seed)  # the end of a sentence that had none
        kept = iter(result)
        assert all(char in kept for char in text), (amount, seed)
        assert [piece.strip() for piece in split_sentences(result) if piece.strip() in whole] == whole, (amount, seed)


def test_delete_takes_the_amount_and_leaves_the_rest_in_order() -> None:
    for text, amount, seed in CASES:
        result = delete(text, amount, rng(seed), MATERIAL)
        assert len(text) - len(result) == round(amount * len(text)), (amount, seed)
        rest = iter(text)
        assert all(char in rest for char in result), (amount, seed)


def test_replace_changes_the_amount_of_characters_and_words() -> None:
    for text, amount, seed in CASES:
        before, after = units(text), units(replace(text, amount, rng(seed), MATERIAL))
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert len(changed) == pytest.approx(amount * len(before), abs=1), (amount, seed)
        for old, new in changed:
            assert ("\u3400" <= old[0] <= "\u9fff") == ("\u3400" <= new[0] <= "\u9fff"), (amount, seed, old, new)


def test_replace_without_material_of_a_kind_leaves_that_kind() -> None:
    english = Material.of(LENDERS[1:])
    assert replace("渡口开了", 1.0, rng(), english) == "渡口开了"
    assert replace("渡口 ferry", 1.0, rng(), english).startswith("渡口 ")
    assert replace("渡口 ferry", 1.0, rng(), english) != "渡口 ferry"


def test_reorder_keeps_every_sentence() -> None:
    for text, seed in product((ZH, EN, "甲来了。乙走了", "One came. Two left"), range(3)):
        result = reorder(text, 0.0, rng(seed), MATERIAL)
        before, after = ([piece.strip() for piece in split_sentences(one)] for one in (text, result))
        assert sorted(after) == sorted(before), seed


@pytest.mark.parametrize(("text", "word", "foreign"), [(ZH, "本站", "site"), (EN, "site", "本站")])
def test_wrap_puts_lines_in_the_language_around_the_text(text: str, word: str, foreign: str) -> None:
    for seed in range(10):
        above, below = wrap(text, 0.0, rng(seed), MATERIAL).split(text)
        assert len(above.splitlines()) >= 2
        assert len(below.strip().splitlines()) >= 2
        assert foreign not in above + below
    around = "".join(wrap(text, 0.0, rng(seed), MATERIAL).replace(text, "") for seed in range(20))
    assert word in around


@given(ANY_TEXT)
def test_width_twice_is_the_text_again(text: str) -> None:
    assert width(width(text, 0.0, rng(), MATERIAL), 0.0, rng(), MATERIAL) == text


def test_small_edits() -> None:
    assert width("Ab9~ ！ｚ、 ", 0.0, rng(), MATERIAL) == "Ａｂ９～ !z、 "
    assert retitle("果园丰收", 0.0, rng(), MATERIAL) == "Library stays open"
    assert retitle("果园丰收", 0.0, rng(), Material(titles=("果园丰收",))) == "果园丰收"


def test_without_opencc_the_reason_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_unavailable("script") == ""
    monkeypatch.setattr("scrapy_neardup.lab.edits.find_spec", lambda name: None)
    assert [name for name in EDITS if why_unavailable(name)] == ["script"]
    assert "scrapy-neardup[opencc]" in why_unavailable("script")


#: Every edit of the text below with this generator.
GOLDEN = {
    "add": "第一句。第二句话！One. The end. 第三句。",
    "delete": "第一句。第二句话 end. 第三句。",
    "replace": "第一句。第甲甲话！The end. 第三句。",
    "reorder": "第二句话！第一句。The end. 第三句。",
    "retitle": "题",
    "wrap": "我要评论\u3000收藏本页\u3000打印\n来源：本站综合\u3000责任编辑：小禾\n首页 > 资讯中心 > 正文\n"
    "第一句。第二句话！The end. 第三句。\n版权声明：未经授权不得转载、摘编本站文字与图片，违者必究。\n"
    "本文仅代表作者个人观点，与本站立场无关，请读者自行核实相关内容。",
    "width": "第一句。第二句话!Ｔｈｅ ｅｎｄ． 第三句。",
    "script": "第一句。第二句話！The end. 第三句。",
}


def test_edits_are_the_same_everywhere() -> None:
    material = Material(("一句话。", "One."), ("题",), ("甲", "乙"), ("one",))
    text = "第一句。第二句话！The end. 第三句。"
    assert {name: edit.change(text, 0.2, Random("5"), material) for name, edit in EDITS.items()} == GOLDEN


def test_script_goes_both_ways_and_leaves_english() -> None:
    assert script("镇上的渔船开进码头", 0.0, rng(), MATERIAL) == "鎮上的漁船開進碼頭"
    assert script("鎮上的漁船開進碼頭", 0.0, rng(), MATERIAL) == "镇上的渔船开进码头"
    assert script(EN, 0.0, rng(), MATERIAL) == EN


@given(st.one_of(ANY_TEXT, st.sampled_from([*ODD, ZH, EN])), st.sampled_from(sorted(EDITS)), st.floats(0.01, 1))
def test_an_edit_repeats_and_takes_any_text(text: str, name: str, amount: float) -> None:
    page = Page("http://a.example/", text, text=text)
    for material in (Material.of([page, *LENDERS]), Material()):
        once, again = (edit_page(page, name, amount, rng("same"), material) for _ in range(2))
        assert once == again
        assert once.url == page.url
        assert once.title == page.title or "title" in EDITS[name].parts
        assert once.text == page.text or "text" in EDITS[name].parts


def test_an_unknown_edit_is_refused_with_the_list() -> None:
    with pytest.raises(SettingsError, match=r"no edit 'shuffle'.*add, delete, replace"):
        edit_page(Page(""), "shuffle", 0.1, rng(), MATERIAL)


def test_long_runs_without_an_end_take_no_time() -> None:
    for run in (" " * 100_000, "\n" * 100_000, "。" * 100_000, ". " * 50_000, "a" * 100_000, "”" * 100_000):
        assert "".join(split_sentences(run)) == run
        assert len(delete(run, 0.1, rng(), MATERIAL)) == 90_000
