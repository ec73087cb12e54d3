"""The sketch of the default method: the layout of its bytes, and the parts of a page that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.sketch import MAX_LINES, Article, Lines, Numbers, Sketch
from scrapy_neardup.text.normalize import letters, normalize
from tests.methods.cascade_pages import FERRY, LIGHTHOUSE, MILL, page, unpacked
from tests.methods.comparing import split


def sketch(text: str, title: str = "", **more: Any) -> Sketch:
    return unpacked(Cascade().fingerprint(page(text, title, **more)).sketch)


def test_the_bytes_are_written_down() -> None:
    text = bytes.fromhex(
        "00 00 00 00 00 00 00 01 00 00 00 02 00 00 03 04 00 00 00 09 00 00 00 05 00 00 00 06 02 02 02 aa bb "
        "00 00 00 04 00 00 00 05 00 06 00 08 00 00 09 01 00 06 02 00 07 00 03"
    )
    lists = frozenset((5, 4)), Numbers(frozenset((8, 6))), frozenset((9, 0x10004)), frozenset((0x10004,)), (7, 3)
    whole = Sketch(1, 2, 0x304, 9, 5, 6, b"\xaa\xbb", *lists, frozenset((7, 3)))
    assert Sketch.unpack(text, 2) == whole
    html = bytes.fromhex("02 02 00 00 00 0a 00 00 00 0c 00 00 00 0b 00 00 00 0e 0c 00 00 00 00 0d dd ee")
    lines, article = Lines(frozenset((10, 12)), {11: 12}, frozenset((14,))), Article(13, b"\xdd\xee")
    assert Sketch.unpack(text + html, 2) == replace(whole, lines=lines, article=article)
    assert Sketch.unpack(text + bytes(2), 2) == replace(whole, lines=Lines(frozenset(), {}))


def test_a_page_keeps_its_longest_sentences_title_words_numbers_and_the_order_of_both_ends() -> None:
    lines = [f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时{'啊' * (n % 7)}" for n in range(100, 200)]
    short, long = (sketch("。".join(some), " ".join(f"word{n}" for n in range(40))) for some in (lines[:14], lines))
    assert (len(short.sentences), len(short.numbers.some), len(short.words)) == (3, 28, 16)
    assert (long.numbers.is_long, len(long.numbers.some)) == (True, 32)
    assert sketch("。".join(lines[:99])).numbers.all != long.numbers.all, "the sum of all, beside a sample"
    assert sketch(FERRY).numbers == Numbers(is_long=True)
    hashes = [OPEN.of(letters(normalize(line))) & 0xFFFF for line in lines]
    assert long.order == (*hashes[:16], *hashes[-8:])
    assert sketch("。".join(lines[:24])).order == tuple(hashes[:24])
    whole = sketch(FERRY)
    longest = sorted((letters(normalize(one)) for one in FERRY.replace("\n", "").split("。")), key=len, reverse=True)
    assert whole.sentences == set(map(OPEN.short, longest[:3]))
    body = letters(normalize(FERRY))
    assert whole.shingles == whole.whole == len({body[at : at + 5] for at in range(len(body) - 4)})


def test_a_sketch_marks_title_words_that_are_numbers_and_those_in_the_text() -> None:
    for title, text, words in [
        *((title, f"{FERRY}\n{MILL}", 1) for title in ("渡口开航", "brook 1874", "brook lighthouse")),
        *((title, f"{FERRY}\n{MILL}", 0) for title in ("铜钟", "", "1982")),
        ("1874 lens", LIGHTHOUSE, 2),
        ("len", LIGHTHOUSE, 0),  # a part of a word is none
    ]:
        assert len(sketch(text, title).words_in_text) == words + (title == "渡口开航" and "开航" in text), title
    assert sorted(word & 1 for word in sketch(FERRY, "boats 7 of 1900").words) == [0, 0, 1, 1]


def test_only_a_page_from_html_has_lines_and_an_article_that_is_a_part_of_it() -> None:
    plain, article = sketch(f"{FERRY}\n{MILL}"), sketch(FERRY)
    assert sketch(f"{FERRY}\n{MILL}", headline="渡口", main=FERRY) == plain
    read = sketch(f"{FERRY}\n{MILL}", "渡口_河湾网", headline="开航\n***\n", main=FERRY, reader="article")
    assert read.lines is not None
    assert read.lines.headlines == set(map(OPEN.short, ["title 渡口", "title 河湾网", "title 开航"]))
    assert read.article == Article(article.shingles, article.minwise)
    assert (read.body, read.order, read.numbers) == (article.body, article.order, article.numbers)
    of_all = ("whole", "shingles", "minwise", "sentences")
    assert [getattr(read, name) for name in of_all] == [getattr(plain, name) for name in of_all]
    alone = read.article_view()
    assert (alone.whole, alone.shingles, alone.minwise) == (article.whole, article.shingles, article.minwise)
    assert article.article_view() is article
    for reader, main in [("prose", ""), ("article", FERRY)]:
        found = sketch(FERRY, main=main, reader=reader)
        assert replace(found, lines=None) == article, reader
        assert found.lines is not None, reader


def many(count: int) -> list[str]:
    return [f"line{number}" for number in range(count)]


def sampled(lines: list[str], headlines: Sequence[str] = ()) -> Lines:
    return Lines.unpack(Lines.encode(split(lines, OPEN), headlines))[0]


def test_lines_and_headlines_are_sampled_in_any_order() -> None:
    lines = {"ferry": 5, "渡口": 2, "x" * 255: 255, "y" * 256: 255}
    assert sampled([*lines, "ferry", ""]).lines == {OPEN.short(line): count for line, count in lines.items()}
    for count in [0, 1, MAX_LINES - 1, MAX_LINES, MAX_LINES + 1, 500]:
        found = sampled(many(count), many(count))
        hashes = sorted(map(OPEN.short, many(count)))
        assert (sorted(found.lines), sorted(found.headlines)) == (hashes[:MAX_LINES], hashes[:8])
        assert sampled(many(count)[::-1], many(count)[::-1]) == sampled(many(count) * 2, many(count)) == found
        assert found.reach == (2**32 - 1 if count < MAX_LINES else hashes[MAX_LINES - 1])


def test_two_lists_of_links_are_others_if_less_than_half_is_in_both() -> None:
    links = many(60)
    for ours, theirs, differ in [
        *((links[:4], links[at : at + 4], at > 2) for at in range(5)),
        *((links, links[at : at + 60], False) for at in range(5)),
        *((links, some, False) for some in (links[::-1], [], links[:8], links[8:16])),
        (links[:30], links[30:], True),
    ]:
        one, other = (Lines.unpack(Lines.encode(split(links, OPEN), [], some))[0] for some in (ours, theirs))
        assert one.lines == sampled(links).lines
        assert one.lists_others(other) is other.lists_others(one) is differ, (ours, theirs)
