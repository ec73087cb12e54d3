"""Marked sentences: where they stand in a text, and how they are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.commands.marking import Mark, Part, cut, marked, own_letters, printable, sentence_letters, shown
from scrapy_neardup.text.sentences import sentences

CHINESE = "渡口开航了。“船是空的！”船长说；\n渡口开航了。"
ENGLISH = 'The ferry is back. It cost 3.5 million. "Nobody paid," he says.'


def by(*known: str) -> dict[str, Mark]:
    return dict.fromkeys(known, Mark.SHARED)


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (CHINESE, ["渡口开航了"], "[[渡口开航了]]。“船是空的！”船长说；\n[[渡口开航了]]。"),
        (CHINESE, ["船是空的", "船长说"], "渡口开航了。[[“船是空的]]！”[[船长说]]；\n渡口开航了。"),
        (ENGLISH, ["itcost35million"], 'The ferry is back. [[It cost 3.5 million]]. "Nobody paid," he says.'),
        ("ＴＨＥ　ＦＥＲＲＹ。end", ["theferry"], "[[ＴＨＥ　ＦＥＲＲＹ]]。end"),
        ("a. ...。 ）a!? b", ["a"], "[[a]]. ...。 [[）a]]!? b"),
        ("nothing is known", [], "nothing is known"),
        ("", ["a"], ""),
    ],
)
def test_a_sentence_is_marked_wherever_it_stands(text: str, known: list[str], expected: str) -> None:
    parts = marked(text, lambda own: by(*known).get(own, Mark.NONE))
    assert shown(parts, coloured=False) == expected


def test_traditional_characters_are_told_apart_only_if_asked() -> None:
    assert [own_letters("開航", simplified=simplified) for simplified in (False, True)] == ["開航", "开航"]
    one = marked("渡口開航。", lambda own: by("渡口开航").get(own, Mark.NONE), simplified=True)
    assert one[0] == Part("渡口開航", Mark.SHARED)


def test_a_text_shares_all_its_sentences_with_itself_typeset_otherwise() -> None:
    known = sentence_letters("the FERRY is back。 it cost 3,5 million！“nobody paid he says”")
    parts = marked(ENGLISH, lambda own: Mark.SHARED if own in known else Mark.NONE)
    assert [part.text for part in parts if part.mark is Mark.SHARED] == sentences(ENGLISH)


@given(st.text(st.sampled_from('ab1中。.!？；;”") \n\u3000,_')), st.sets(st.sampled_from(["a", "b", "ab", "中", "1"])))
def test_the_parts_of_a_text_are_the_text(text: str, known: set[str]) -> None:
    parts = marked(text, lambda own: Mark.BOILERPLATE if own in known else Mark.NONE)
    assert "".join(part.text for part in parts) == text
    expected = [one for one in sentences(text) if own_letters(one) in known]
    assert [part.text for part in parts if part.mark is not Mark.NONE] == expected


@pytest.mark.parametrize(("limit", "expected"), [(0, ""), (4, "The "), (7, "The [[bea]]"), (99, "The [[bear]]!")])
def test_a_text_is_cut_in_the_middle_of_a_mark_if_need_be(limit: int, expected: str) -> None:
    parts = [Part("The "), Part("bear", Mark.SHARED), Part("!")]
    assert shown(cut(parts, limit), coloured=False) == expected


def test_each_mark_looks_different_and_colours_end_where_they_should() -> None:
    parts = [Part("a", mark) for mark in Mark]
    assert shown(parts, coloured=False) == "a[[a]]{{a}}"
    assert shown(parts, coloured=True) == "a\x1b[32ma\x1b[0m\x1b[90ma\x1b[0m"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;title\x07\x9b2J\0", "�]0;title��2J�"),
        ("a\r\nb\rc\u2028d\te", "a\nb\nc\nd e"),
        ("com\u00adpany \u202egnp.exe\ufeff", "company gnp.exe"),
        ("渡口\u3000开航 é🚢", "渡口\u3000开航 é🚢"),
        ("half \ud800", "half �"),
    ],
)
def test_nothing_in_a_page_commands_the_terminal(text: str, expected: str) -> None:
    assert printable(text) == expected
