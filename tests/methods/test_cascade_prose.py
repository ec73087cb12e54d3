"""Two articles around one listing are two articles, and a copy with its listing is a copy."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.model import Page
from scrapy_neardup.text import backend
from scrapy_neardup.text.backend import PythonBackend
from scrapy_neardup.text.normalize import segment
from scrapy_neardup.text.prose import LineKind, classify_lines
from scrapy_neardup.text.shingles import shingles
from tests.methods.cascade_pages import (
    BELL,
    EXACT,
    FERRY,
    LIGHTHOUSE,
    MILL,
    NONE,
    SECOND_FERRY,
    edited,
    explained,
    judged,
    page,
    respelled,
    values,
)

NOUNS = ["ferry", "berth", "dock", "crane", "buoy", "rope", "anchor", "lantern", "gate", "ledger", "tide", "crew"]
VERBS = ["open", "moor", "lift", "load", "mend", "wait"]
CODE = "\n".join(
    f"""static int {noun}_{verb}(struct {noun} *{noun[0]}, int {other}[], size_t n_{other}) {{
    if ({noun[0]} == NULL || n_{other} > MAX_{other.upper()}) return -E{verb.upper()};
    // the {other} must be free before anyone may {verb} at the {noun}
    for (size_t k = 0; k < n_{other}; k++) {noun[0]}->{other}_{verb}[k] += {other}[k] * {len(noun) * len(other)};
    return {noun[0]}->state & {noun.upper()}_IS_{verb.upper()};
}}"""
    for noun, other, verb in zip(NOUNS, NOUNS[5:] + NOUNS[:5], VERBS * 2, strict=True)
)
MINIFIED = CODE.replace("\n", "")


def table(rows: int = 60) -> str:
    dice = random.Random(7)
    return "\n".join(
        f"2025-03-{dice.randrange(1, 29):02}  {dice.randrange(5, 22):02}:{dice.randrange(60):02}  "
        f"pier {dice.randrange(9)}  {dice.randrange(1000, 99999):,}  {dice.random() * 40:.2f}"
        for _ in range(rows)
    )


GERMAN = (
    """Im Hafenamt hat am Dienstag ein einziges falsches Vorzeichen zwei Fähren an denselben Liegeplatz geschickt.
Der Leiter der Werkstatt fand den Fehler erst nach Mitternacht und will ihn jetzt öffentlich erklären.
Wer selbst einen kleinen Hafen betreibt, soll daraus lernen, sagt er, und druckt das ganze Programm ab.""",
    """Seit dreißig Jahren sammelt Frau Oltmanns alte Steuerprogramme, und dieses hier hält sie für das schönste.
Jede Zeile sei so knapp wie ein Funkspruch, schwärmt sie, und nirgends stehe ein Wort zu viel.
Ihre Enkel haben es für den Schulunterricht auf einem Rechner aus Schrott wieder zum Laufen gebracht.""",
)
RUSSIAN = (
    """Во вторник из-за одной ошибки в программе два парома одновременно подошли к третьему причалу.
Начальник мастерской нашёл её только после полуночи и теперь показывает всем, как она выглядела.
Он просит тех, кто держит маленькую пристань, проверить у себя то же самое место.""",
    """Учительница информатики из посёлка собирает старые программы, по которым когда-то работал порт.
Самую короткую из них она разбирает с детьми строка за строкой на каждом первом уроке.
В этом году школьники впервые запустили её на компьютере, собранном из выброшенных деталей.""",
)
JAPANESE = (
    """火曜日の夜、港の管理プログラムにあった符号の間違いで、二隻の渡し船が同じ桟橋に案内された。
整備係の主任は真夜中を過ぎてようやく原因を見つけ、その一部始終を公開することに決めたという。
小さな港を営んでいる人たちには、自分のところの同じ箇所をぜひ確かめてほしいと話している。""",
    """古い制御プログラムを三十年集めてきた大槻さんは、なかでもこの一本がいちばん美しいと言う。
どの行も無線の電文のように短く、余計な言葉がひとつもないところに惹かれたのだそうだ。
孫たちは廃品から組み立てた計算機でそれを動かし、学校の授業で披露して拍手を浴びた。""",
)
KOREAN = (
    """화요일 밤 항구 관리 프로그램의 부호 하나가 틀려서 나룻배 두 척이 같은 부두로 안내되었다.
정비 책임자는 자정이 지나서야 원인을 찾아냈고 그 과정을 모두 공개하기로 마음을 먹었다.
작은 항구를 꾸리는 사람들은 자기 프로그램의 같은 곳을 꼭 살펴보라고 그는 당부했다.
그날 밤 배에 타고 있던 승객들은 영문도 모른 채 갑판에서 한 시간 넘게 기다려야 했다.""",
    """옛날 제어 프로그램을 서른 해 동안 모아 온 오 선생은 그 가운데 이것이 가장 아름답다고 말한다.
어느 줄이나 무전처럼 짧고 쓸데없는 말이 하나도 없다는 점이 처음부터 마음에 들었다고 한다.
손주들은 버려진 부품으로 만든 컴퓨터에서 그것을 돌려 학교 수업 시간에 보여 주었다.
다음 달에는 마을 도서관에서 누구나 볼 수 있도록 작은 전시회를 열 계획도 세워 두었다.""",
)
CHINESE = BELL[:420], SECOND_FERRY
ENGLISH = "\n".join(MILL.split("\n")[:3]), "\n".join(LIGHTHOUSE.split("\n")[:3])
LISTINGS = {"code": CODE, "minified code": MINIFIED, "table": table()}
ARTICLES = {
    "Chinese": CHINESE,
    "English": ENGLISH,
    "German": GERMAN,
    "Russian": RUSSIAN,
    "Japanese": JAPANESE,
    "Korean": KOREAN,
}


def two(articles: tuple[str, str], listing: str, **more: str) -> tuple[Page, Page]:
    """Two pages with an article each, in front of the listing and behind it."""
    first, last = (article.rpartition("\n") for article in articles)
    old = page(f"{first[0]}\n{listing}\n{first[2]}", "harbour.c", **{"site": "one.example", **more})
    return page(f"{last[0]}\n{listing}\n{last[2]}", "harbour.c", **{"site": "two.example", **more}), old


def test_two_articles_around_one_listing_are_two_and_an_edited_copy_is_one() -> None:
    for language in ARTICLES:
        article, other = ARTICLES[language]
        head, _, last = article.rpartition("\n")
        edited_head, _, edited_last = respelled(article, 0.04, 1).rpartition("\n")
        for name, listing in LISTINGS.items():
            new, old = two(ARTICLES[language], listing)
            assert not judged(new, old).duplicate, name
            assert not judged(old, new).duplicate, name
            old = page(f"{head}\n{listing}\n{last}", "harbour.c", site="one.example")
            copy = f"{other.split(chr(10))[0]}\n{edited_head}\n{listing}\n{edited_last}"
            assert judged(page(copy, "harbour.c", site="two.example"), old).duplicate, name


def test_a_listing_alone_would_make_them_copies() -> None:
    for language in ["Chinese", "English", "Japanese"]:
        new, old = two(ARTICLES[language], CODE + table())
        found = explained(new, old)
        assert values(found)["similarity"] > 0.6, language
        assert found.score >= found.needed, language
        assert "two articles" in found.decision, language
        assert values(found)["prose"] < 0.3, language
        assert values(found)["listing"] > 0.7, language
        assert "two articles" in explained(replace(new, site=old.site), old).decision, language


def test_a_lesson_or_a_program_alone_is_a_copy() -> None:
    sentences, code = FERRY.split("\n"), CODE.split("\n")
    pieces = [f"{sentence}\n" + "\n".join(code[5 * at : 5 * at + 5]) for at, sentence in enumerate(sentences)]
    old = page("\n".join(pieces), "harbour.c", site="one.example")
    new = page("\n".join([BELL[:150], *pieces[1:-1], SECOND_FERRY[:150]]), "harbour.c", site="two.example")
    assert judged(new, old).duplicate
    new, old = two(("\n", CHINESE[1]), CODE)
    assert judged(new, old).duplicate
    assert judged(old, new).duplicate


def test_one_sentence_that_both_hold_speaks_against_two_writers() -> None:
    new, old = two(CHINESE, CODE)
    assert not judged(new, old).duplicate
    quoted = FERRY.split("\n")[1]
    assert judged(
        page(f"{quoted}\n{new.text}", new.title, site=new.site), page(f"{quoted}\n{old.text}", old.title)
    ).duplicate


def test_pages_longer_than_the_kept_order_are_judged_alike() -> None:
    long = "\n".join([BELL, SECOND_FERRY]), FERRY
    new, old = two(long, "\n".join(part + table(20) for part in (CODE, CODE.replace("int", "long"), CODE[::-1])))
    assert judged(new, old).similarity > 0.6
    assert not judged(new, old).duplicate
    copy = page(edited(old.text, 0.03, 3), old.title, site="two.example")
    assert judged(copy, old).duplicate


def test_without_a_listing_the_share_is_shown_and_decides_nothing() -> None:
    new, old = page(f"{FERRY}\n{BELL}"), page(f"{FERRY}\n{SECOND_FERRY}")
    explanation = explained(new, old)
    assert values(explanation)["prose"] == pytest.approx(_exact(new.text, old.text), abs=0.1)
    assert values(explanation)["listing"] == 0.0
    assert "two articles" not in explanation.decision


def test_a_page_with_hardly_any_prose_decides_nothing() -> None:
    explanation = values(explained(page(f"{BELL[:60]}\n{CODE}"), page(f"{FERRY}\n{CODE}")))
    assert (explanation["prose"], explanation["listing"]) == (1.0, 0.0)


def test_the_share_of_prose_is_estimated_well() -> None:
    for shared in [0.0, 0.3, 0.6, 1.0]:
        sentences = FERRY.split("\n") + BELL.split("\n")
        kept = sentences[: round(shared * len(sentences))]
        new = page("\n".join([*sentences, CODE]), site="two.example")
        old = page("\n".join([*kept, CODE, MILL]), site="one.example")
        explanation = values(explained(new, old, **EXACT))
        assert explanation["prose"] == pytest.approx(_exact(new.text, old.text), abs=0.06), shared


def _exact(new: str, old: str) -> float:
    own = segment(new, OPEN)
    both = zip(own.lines, classify_lines(own.sentences, own.lines), strict=True)
    prose = {gram for line, kind in both if kind is LineKind.PROSE for gram in shingles(line, 5).tolist()}
    there = {gram for line in segment(old, OPEN).lines for gram in shingles(line, 5).tolist()}
    return len(prose & there) / len(prose)


def test_another_process_and_a_machine_without_a_compiler_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    method = Cascade()
    new, old = two(CHINESE, CODE)
    title, sketch = method.fingerprint(new).title, method._unpack(method.fingerprint(old).sketch)
    explanation = title.prose(5, 512, 2).compare(sketch)
    assert explanation.is_separate
    monkeypatch.setattr(backend, "active", PythonBackend())
    assert Cascade().fingerprint(new).title.prose(5, 512, 2).compare(sketch) == explanation


def test_two_sketches_without_the_new_text_decide_nothing() -> None:
    method = Cascade()
    new, old = two(CHINESE, CODE + table())
    fingerprint, sketch = method.fingerprint(new), method.fingerprint(old).sketch
    assert not method.compare(fingerprint, sketch, NONE).duplicate
    assert method.compare(replace(fingerprint, title=None), sketch, NONE).duplicate


def test_the_article_of_a_page_from_html_decides() -> None:
    new, old = two(CHINESE, CODE + table())
    menus = [" ".join(part[at : at + 30] for at in range(0, 300, 60)) for part in (FERRY, FERRY[30:])]
    framed, earlier = (
        replace(one, text=f"{menu}\n{one.text}\n{menu[::-1]}", main=one.text, reader="article")
        for one, menu in zip((new, old), menus, strict=True)
    )
    assert "two articles" in explained(framed, earlier).decision
    copy = respelled(old.text, 0.02, 2)
    assert judged(replace(framed, text=f"{menus[0]}\n{copy}", main=copy), earlier).duplicate
