"""The sketch of the default method: the layout of its bytes, and the parts of a page that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import MAX_LINES, Article, Lines, Numbers, Sketch
from scrapy_neardup.text.normalize import letters, normalize
from tests.methods.cascade_pages import FERRY, LIGHTHOUSE, MILL, page, unpacked
from tests.methods.comparing import split


def test_the_bytes_are_written_down() -> None:
    text = bytes.fromhex(
        "00 00 00 00 00 00 00 01 00 00 00 02 00 00 03 04 00 00 00 09 00 00 00 05 00 00 00 06 02 02 02 aa bb "
        "00 00 00 04 00 00 00 05 00 06 00 08 00 00 09 01 00 06 02 00 07 00 03"
    )
    lists = frozenset((5, 4)), Numbers(frozenset((8, 6))), frozenset((9, 0x10004)), frozenset((0x10004,)), (7, 3)
    whole = Sketch(1, 2, 0x304, 9, 5, 6, b"\xaa\xbb", *lists, frozenset((7, 3)))
    assert Sketch.unpack(text, 2) == whole
    html = bytes.fromhex("02 01 00 00 00 0a 00 00 00 0c 00 00 00 0b 0c 00 00 00 0d dd ee")
    lines, article = Lines(frozenset((10, 12)), {11: 12}), Article(13, b"\xdd\xee")
    assert Sketch.unpack(text + html, 2) == replace(whole, lines=lines, article=article)
    assert Sketch.unpack(text + bytes(2), 2) == replace(whole, lines=Lines(frozenset(), {}))


@given(st.sampled_from([FERRY, MILL, "", "渡船停航12天"]), st.booleans(), st.sampled_from(["", "boats 7 of 1900"]))
def test_a_page_is_unpacked_whatever_it_has(text: str, is_html: bool, title: str) -> None:
    lines = {"reader": "article", "main": text[:200], "headline": title} if is_html else {}
    found = unpacked(Cascade().fingerprint(page(text, title, site="a.example", **lines)).sketch)
    assert (found.lines is not None, found.article is not None) == (is_html, is_html and len(text) > 300)
    assert found.ends == set(found.order)
    assert found.words_in_text <= found.words


def test_a_page_keeps_so_many_sentences_numbers_and_title_words() -> None:
    text = "".join(f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时。" for n in range(100, 114))
    whole = unpacked(Cascade().fingerprint(page(text, " ".join(f"word{n}" for n in range(40)))).sketch)
    assert (len(whole.sentences), len(whole.numbers.some), len(whole.words)) == (3, 12, 16)


def test_a_long_text_keeps_a_sample_of_its_numbers_and_their_sum() -> None:
    lines = [f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时。" for n in range(100, 200)]
    found = [unpacked(Cascade().fingerprint(page("".join(some))).sketch).numbers for some in (lines, lines[:99])]
    assert [(numbers.is_long, len(numbers.some)) for numbers in found] == [(True, 12)] * 2
    assert found[0].all != found[1].all
    none = unpacked(Cascade().fingerprint(page(FERRY)).sketch).numbers
    assert none == Numbers(is_long=True)


def test_a_long_text_keeps_the_order_of_both_ends() -> None:
    lines = [f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时" for n in range(100, 200)]
    found = unpacked(Cascade().fingerprint(page("。".join(lines))).sketch).order
    assert found == tuple(OPEN.of(letters(normalize(line))) & 0xFFFF for line in (*lines[:16], *lines[-8:]))
    few = unpacked(Cascade().fingerprint(page("。".join(lines[:24]))).sketch).order
    assert few == tuple(OPEN.of(letters(normalize(line))) & 0xFFFF for line in lines[:24])


def test_a_sketch_marks_title_words_that_stand_in_the_text() -> None:
    def standing(title: str, text: str = f"{FERRY}\n{MILL}") -> int:
        return len(unpacked(Cascade().fingerprint(page(text, title)).sketch).words_in_text)

    assert [standing(title) for title in ("渡口开航", "铜钟", "brook 1874", "brook lighthouse", "", "1982")] == [
        1 + ("开航" in FERRY),
        0,
        1,
        1,
        0,
        0,
    ]
    assert standing("1874 lens", LIGHTHOUSE) == 2
    assert standing("len", LIGHTHOUSE) == 0, "a part of a word is none"


def test_parts_of_a_sketch_follow_the_page_and_the_parameters() -> None:
    long = "船" * 300
    assert OPEN.short(long) in unpacked(Cascade().fingerprint(page(f"{long}。{FERRY}")).sketch).sentences
    assert Cascade().shared(page(long), Cascade().fingerprint(page(long)).sketch) == (long,)
    more = CascadeParameters(bins=1024, bits=4)
    usual, large = (len(Cascade(some).fingerprint(page(FERRY)).sketch) for some in (CascadeParameters(), more))
    assert large - usual == (1024 * 4 - 512 * 2) // 8
    whole = unpacked(Cascade().fingerprint(page(FERRY, headline="渡口", main=FERRY[:200])).sketch)
    assert (whole.lines, whole.article) == (None, None)
    assert whole == unpacked(Cascade().fingerprint(page(FERRY)).sketch)


def test_a_sketch_holds_the_longest_sentences_and_the_number_of_shingles() -> None:
    whole = unpacked(Cascade().fingerprint(page(FERRY, site="a.example")).sketch)
    longest = sorted((letters(normalize(one)) for one in FERRY.replace("\n", "").split("。")), key=len, reverse=True)
    assert len(longest[3]) < len(longest[2])
    assert whole.sentences == set(map(OPEN.short, longest[:3]))
    body = letters(normalize(FERRY))
    assert whole.shingles == whole.whole == len({body[at : at + 5] for at in range(len(body) - 4)})
    assert whole.body == OPEN.of(body)


def test_a_sketch_tells_sites_apart_and_words_from_numbers() -> None:
    sites = [unpacked(Cascade().fingerprint(page(MILL, site=site)).sketch).site for site in ("a", "a", "b", "")]
    assert sites[0] == sites[1] > 0
    assert len(set(sites)) == 3
    assert sites[3] == 0
    words = unpacked(Cascade().fingerprint(page(FERRY, "boats 7 of 1900")).sketch).words
    assert sorted(word & 1 for word in words) == [0, 0, 1, 1]


def test_a_page_without_an_article_is_a_text_with_lines() -> None:
    for reader, main in [("prose", ""), ("article", FERRY)]:
        whole = unpacked(
            Cascade().fingerprint(page(FERRY, "渡口_河湾网", headline="开航", main=main, reader=reader)).sketch
        )
        plain = unpacked(Cascade().fingerprint(page(FERRY, "河湾网")).sketch)
        lines, _ = Lines.unpack(Lines.encode(split([letters(normalize(FERRY))], OPEN), []))
        assert whole.article is None, reader
        assert replace(whole, lines=None, title=plain.title) == plain, reader
        assert whole.lines is not None, reader
        assert whole.lines.headlines == set(map(OPEN.short, ["title 渡口", "title 河湾网", "title 开航"])), reader
        assert len(whole.lines.lines) > len(lines.lines), reader


def test_an_article_and_its_whole_page_are_kept_apart() -> None:
    read = page(f"{FERRY}\n{MILL}", main=FERRY, reader="article")
    whole, article = (unpacked(Cascade().fingerprint(one).sketch) for one in (read, page(FERRY)))
    assert whole.article == Article(article.shingles, article.minwise)
    assert (whole.body, whole.order) == (article.body, article.order)
    both = unpacked(Cascade().fingerprint(page(f"{FERRY}\n{MILL}")).sketch)
    assert (whole.whole, whole.shingles, whole.minwise, whole.sentences) == (
        both.whole,
        both.shingles,
        both.minwise,
        both.sentences,
    )
    alone = whole.article_view()
    assert (alone.whole, alone.shingles, alone.minwise) == (article.whole, article.shingles, article.minwise)
    assert article.article_view() is article


def test_a_headline_has_letters() -> None:
    for headline in ["", "\n", "***", " — \n!"]:
        whole = unpacked(Cascade().fingerprint(page(FERRY, "", headline=headline, reader="prose")).sketch)
        assert whole.lines is not None, headline
        assert whole.lines.headlines == frozenset(), headline


def many(count: int) -> list[str]:
    return [f"line{number}" for number in range(count)]


def sampled(lines: list[str], headlines: Sequence[str] = ()) -> Lines:
    return Lines.unpack(Lines.encode(split(lines, OPEN), headlines))[0]


def test_each_line_is_kept_with_its_letters_up_to_255() -> None:
    lines = sampled(["ferry", "", "渡口", "x" * 255, "y" * 256, "z" * 9000, "ferry"], ["late", "", "late"])
    letters = {"ferry": 5, "渡口": 2, "x" * 255: 255, "y" * 256: 255, "z" * 9000: 255}
    assert lines.lines == {OPEN.short(line): count for line, count in letters.items()}
    assert lines.headlines == {OPEN.short("late")}


def test_lines_and_headlines_are_sampled_in_any_order() -> None:
    for count in [0, 1, MAX_LINES - 1, MAX_LINES, MAX_LINES + 1, 500]:
        smallest = sorted(map(OPEN.short, many(count)))[:MAX_LINES]
        assert sorted(sampled(many(count)).lines) == smallest
        assert sampled(many(count)[::-1]) == sampled(many(count) * 2)
    for count in [1, 8, 9, 300]:
        kept = sampled([], many(count)).headlines
        assert kept == sampled([], many(count)[::-1]).headlines <= set(map(OPEN.short, many(count)))
        assert len(kept) == min(count, 8)
    for count in [0, 1, MAX_LINES - 1, MAX_LINES, MAX_LINES + 1, 500]:
        lines = sampled(many(count))
        all_lines = set(map(OPEN.short, many(count)))
        assert {one for one in all_lines if one <= lines.reach} == set(lines.lines), count
        assert lines.reach == (2**32 - 1 if count < MAX_LINES else max(lines.lines))
