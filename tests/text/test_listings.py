"""Sentences of prose, and lines of a listing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.text.normalize import normalize, segment
from scrapy_neardup.text.prose import LineKind, classify_lines

PROSE, LISTING, OTHER = LineKind.PROSE, LineKind.LISTING, LineKind.OTHER


def kinds_of(text: str) -> list[LineKind]:
    own = segment(text, OPEN)
    return classify_lines(own.sentences, own.lines)


def test_a_sentence_is_prose_in_every_language() -> None:
    for sentence in [
        "昨天下午，村里的木匠把新船的龙骨抬进晒谷场，全村的孩子都跑来看。",
        "“渡船每天往返14趟”，何主任说，早上5点半开第一班，晚上9点收班。",
        "新しい渡し船は土曜日の朝に初めて川を渡り、三十六人の客を乗せていた。",
        "The lighthouse on Gannet Point will be lit again next month, twenty years after its keeper locked the door.",
        "Der neue Fährmann wohnt im Zollhaus und heizt den Ofen mit Treibholz.",
        "Новый паром впервые пересёк реку ранним утром в субботу, и на берегу играл оркестр.",
        "새 나룻배가 토요일 아침에 처음으로 강을 건넜고 마을 사람들이 모두 나와 손을 흔들었다.",
        "¿Quién cuidará ahora del faro que los pescadores ven cada noche desde sus barcas?",
        "เรือข้ามฟากลำใหม่ออกเดินทางครั้งแรกเมื่อเช้าวันเสาร์",
    ]:
        assert kinds_of(sentence) == [PROSE]


def test_code_logs_and_tables_are_listings() -> None:
    for line in [
        "for (int dock = 0, i = 0) { berth[dock] = find_berth(&fleet, dock)",
        "def berth_of(self, ferry: Ferry) -> dict[str, int]:",
        "#include <sys/harbour.h>",
        "SELECT * FROM berths WHERE dock_id = 7 AND ferry_id <> 9",
        '<a href="/ferries/7" class="berth">',
        '{"ferry": 7, "berth": [1, 2, 3]}',
        '10.0.0.7 - - [03/Feb/2025:06:31:07] "GET /ferries/7.html HTTP/1.1" 200 5120',
        "2025-02-03  06:31  17.5  1,204  98.2%",
        "$ tar -xzf ferry-1.2.tar.gz && cd ferry-1.2 && ./configure --prefix=/opt",
        "d2hpY2ggZmVycnkgbGVhdmVzIGF0IG5pbmUgYW5kIHdobyBpcyBvbiBib2FyZAo",
    ]:
        assert kinds_of(line) == [LISTING]


def test_an_uncertain_line_is_neither() -> None:
    for line in [
        "开航",
        "0x01 前言",
        "Second ferry",
        "• 请乘客在候船室里等候，不要站在跳板上，也不要喂狗。",
        "# moors at the first berth that is free to a ferry",
    ]:
        assert kinds_of(line) == [OTHER]


def test_the_kinds_have_these_limits() -> None:
    for line, kind in [
        # Shares of signs: 2 of 50 and 52 visible characters, 1 of 49 and 51, and fewer than two.
        ("ab " * 24 + "= /", LISTING),
        ("ab " * 25 + "= /", OTHER),
        ("ab " * 24 + "=", OTHER),
        ("ab " * 25 + "=", PROSE),
        ("ab " * 10 + "=", OTHER),
        # Shares of letters: 8 of 12 and 7 of 12 visible characters, and 6 of 11.
        ("ab ab ab ab 1234", OTHER),
        ("ab ab ab a 12345", LISTING),
        ("ab ab ab 12345", OTHER),
        # Letters a word, letters and words of prose.
        (f"{'a' * 32} {'b' * 32}", LISTING),
        (f"{'a' * 32} {'b' * 31}", OTHER),
        ("abcd " * 4 + "ab cd", PROSE),
        ("abcd " * 4 + "ab c", OTHER),
        ("abcdef " * 5, OTHER),
    ]:
        assert kinds_of(line) == [kind]


def test_a_line_between_lines_of_a_listing_is_a_part_of_it() -> None:
    code = "int dock = find_dock(f->name)\n{}\nreturn moor(f, &dock[0])"
    assert kinds_of(code.format("continue")) == [LISTING] * 3
    assert kinds_of(code.format("// the first berth that is free")) == [LISTING] * 3
    assert kinds_of(code.format("The ferry moors at whichever berth is free at that time of day.")) == [
        LISTING,
        PROSE,
        LISTING,
    ]
    assert kinds_of("continue\n" + code.format("break"))[0] == OTHER


def test_comments_in_another_script_are_not_the_writers_prose() -> None:
    comment = "it is the harbour master who says which of the berths is free"
    code = f"int dock = find_dock(f->name)\n{comment}\nreturn moor(f, &dock[0])"
    article = "码头管理程序昨天出了一个故障，两条渡船被指到了同一个泊位。"
    assert kinds_of(code) == [LISTING, PROSE, LISTING]
    assert kinds_of(f"{article}\n{code}") == [PROSE, LISTING, LISTING, LISTING]
    assert kinds_of(f"{article}\n{comment}") == [PROSE, OTHER]


@given(st.lists(st.text(min_size=1).filter(lambda text: any(map(str.isalnum, normalize(text))))))
def test_any_text_is_classified(sentences: list[str]) -> None:
    lines = ["".join(filter(str.isalnum, normalize(sentence))) for sentence in sentences]
    assert len(classify_lines(list(map(normalize, sentences)), lines)) == len(sentences)
