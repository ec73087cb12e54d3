"""Marked sentences of a text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_neardup.text.marking import (
    Mark,
    Part,
    mark_sentences,
    own_letters,
    sentence_letters,
    shared_sentences,
    truncate,
)
from scrapy_neardup.text.sentences import sentences

CHINESE = "渡口开航了。“船是空的！”船长说；\n渡口开航了。"
ENGLISH = 'The ferry is back. It cost 3.5 million. "Nobody paid," he says.'


def bracketed(parts: list[Part]) -> str:
    """The text, with its shared parts in brackets."""
    return "".join(f"[[{part.text}]]" if part.mark is Mark.SHARED else part.text for part in parts)


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
    parts = mark_sentences(text, lambda own: by(*known).get(own, Mark.NONE))
    assert bracketed(parts) == expected


def test_other_spellings_and_scripts_share_sentences() -> None:
    known = sentence_letters("the FERRY is back。 it cost 3,5 million！“nobody paid he says”")
    parts = mark_sentences(ENGLISH, lambda own: Mark.SHARED if own in known else Mark.NONE)
    assert [part.text for part in parts if part.mark is Mark.SHARED] == sentences(ENGLISH)
    pytest.importorskip("opencc")
    assert [own_letters("開航", simplified=simplified) for simplified in (False, True)] == ["開航", "开航"]
    one = mark_sentences("渡口開航。", lambda own: by("渡口开航").get(own, Mark.NONE), simplified=True)
    assert one[0] == Part("渡口開航", Mark.SHARED)


@given(st.text(st.sampled_from('ab1中。.!？；;”") \n\u3000,_')), st.sets(st.sampled_from(["a", "b", "ab", "中", "1"])))
def test_the_parts_of_a_text_are_the_text(text: str, known: set[str]) -> None:
    parts = mark_sentences(text, lambda own: Mark.BOILERPLATE if own in known else Mark.NONE)
    assert "".join(part.text for part in parts) == text
    expected = [one for one in sentences(text) if own_letters(one) in known]
    assert [part.text for part in parts if part.mark is not Mark.NONE] == expected


def test_a_marked_text_is_cut_at_the_limit() -> None:
    for limit, expected in [(0, ""), (4, "The "), (5, "The [[b]]"), (7, "The [[bea]]"), (99, "The [[bear]]!")]:
        parts = [Part("The "), Part("bear", Mark.SHARED), Part("!")]
        assert bracketed(truncate(parts, limit)) == expected


SENTENCES = ["甲", "乙", "甲乙", "乙甲", "甲,", "乙,,", ",,,甲", "①丙", "ﬃ", "㍿", "甲乙丙"]


@example(["甲乙", "丙-丁"], 3, 0)  # of two letters each, in a longer line
@given(st.lists(st.sampled_from(SENTENCES), max_size=9, unique=True), st.integers(0, 511), st.integers(0, 3))
def test_shared_sentences_are_the_longest_and_of_equally_long_ones_the_first(
    lines: list[str], mask: int, at_least: int
) -> None:
    own = {one: own_letters(one) for one in sentences("\n".join(lines))}
    known = {hash(letters) for at, letters in enumerate(own.values()) if mask >> at & 1}
    shared = [one for one, letters in own.items() if hash(letters) in known and len(letters) >= at_least]
    for limit in range(4):
        found = shared_sentences("\n".join(lines), lambda some: map(hash, some), known, at_least, limit)
        assert list(found) == sorted(shared, key=lambda one: -len(own[one]))[:limit]
