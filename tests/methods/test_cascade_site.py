"""Two pages of one site: one article, or two in one form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.site import Headlines, Ruling, SiteEvidence, compare_on_site
from scrapy_neardup.methods.cascade.sketch import MAX_LINES, Lines
from scrapy_neardup.model import Outcome, Page, SiteCounts, Verdict
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.text.normalize import letters as letters_in
from scrapy_neardup.text.normalize import normalize
from scrapy_neardup.text.sentences import sentences
from tests.build import answer, story, story_without_numbers

SAME, ALIKE, NO_HEADLINE, OTHER = Headlines
COPY, UNDECIDED, APART = Ruling

# What the letters come to


def test_what_two_pages_may_be_is_the_same_from_either_side() -> None:
    for headlines, shared, new, old, pages, ruling in [
        # Another headline is another article, however much is shared, unless the articles are equal.
        (OTHER, 5000, 0, 0, 0, APART),
        # Without a headline in common there must be something else.
        (ALIKE, 40, 0, 0, 8, UNDECIDED),
        (ALIKE, 39, 0, 0, 8, APART),
        (NO_HEADLINE, 40, 0, 0, 0, UNDECIDED),
        (SAME, 0, 0, 0, 0, UNDECIDED),
        # Pages of a little known site must be nearly the same, unless no template is so long.
        (SAME, 380, 20, 20, 7, UNDECIDED),
        (SAME, 380, 21, 0, 7, APART),
        (SAME, 600, 150, 150, 1, UNDECIDED),
        (ALIKE, 600, 150, 150, 1, UNDECIDED),
        (SAME, 599, 150, 150, 1, APART),
        (NO_HEADLINE, 5000, 1250, 1250, 1, APART),
        # Under a headline that is alike, and where neither has one.
        (ALIKE, 600, 400, 400, 8, UNDECIDED),
        (ALIKE, 600, 401, 0, 8, APART),
        (NO_HEADLINE, 600, 401, 0, 8, APART),
        # Under the same headline one may be within the other.
        (SAME, 380, 21, 0, 8, COPY),
        (SAME, 100, 100, 5, 8, COPY),
        (SAME, 100, 101, 5, 8, APART),
        (SAME, 100, 100, 6, 8, APART),
        (SAME, 99, 99, 0, 8, APART),
        # Or else differ for the most part, if there is much that they share.
        (SAME, 400, 400, 50, 8, UNDECIDED),
        (SAME, 399, 399, 50, 8, APART),
        (SAME, 320, 80, 80, 8, UNDECIDED),
        (SAME, 320, 81, 80, 8, APART),
    ]:
        assert SiteEvidence(headlines, shared, new, old, pages).ruling is ruling
        assert SiteEvidence(headlines, shared, old, new, pages).ruling is ruling
    # On the first pages of a site a print version has the same article, with a title or without one.
    for headlines, shared, ruling in [
        (SAME, 200, UNDECIDED),
        (NO_HEADLINE, 200, UNDECIDED),
        (NO_HEADLINE, 199, APART),
        (OTHER, 5000, APART),
    ]:
        assert SiteEvidence(headlines, shared, shared // 4, shared // 4, 1, same_article=True).ruling is ruling
    assert SiteEvidence(SAME, 599, 150, 150, 1, edited=True).ruling is APART
    assert SiteEvidence(SAME, 320, 81, 80, 8, edited=True).ruling is UNDECIDED
    said = str(SiteEvidence(ALIKE, 12, 34, 56, 78))
    assert all(figure in said for figure in ("12 letters", "34 more", "56", "78 known pages", "headlines are alike"))


def test_one_article_under_several_addresses_is_dropped_on_the_first_pages_of_a_site() -> None:
    judge = detector()
    article = story(1, 16)
    names = ["13.html", "13.html?utm_source=x", "13.html?print=1", *(f"13.html?session={n}" for n in range(3))]
    pages = [shown(name, article, story(20 + place, 4), told=True) for place, name in enumerate(names)]
    assert [answer(judge, one).outcome for one in pages] == [Outcome.UNIQUE] + [Outcome.DUPLICATE] * 5
    other = shown("14.html", story(2, 16), story(30, 4), OTHER_TITLE, told=True)
    assert answer(judge, other).outcome is Outcome.UNIQUE


# Which letters are whose


def site_with(stood: dict[int, int]) -> SiteCounts:
    """The counts of a site on which each of these lines stood on so many pages."""
    counts = Counts().on_site("river", OPEN)
    for line, pages in stood.items():
        for _ in range(pages):
            counts.note(np.array([line], np.uint32), everywhere=False)
    return counts


def lines(*headlines: int, **letters: int) -> Lines:
    """Of lines that are named by their fingerprints: ``_7=30`` is line 7, of thirty letters."""
    return Lines(frozenset(headlines), {int(name[1:]): count for name, count in letters.items()})


def compared(new: Lines, old: Lines, counts: SiteCounts, *, titles_alike: bool = False) -> SiteEvidence:
    common = new.headlines & old.headlines
    return compare_on_site(new, old, counts, common_headlines=common, titles_alike=titles_alike)


def letters(found: SiteEvidence) -> tuple[int, int, int]:
    return found.shared, found.new, found.old


def test_what_stands_on_other_pages_of_the_site_is_nobodys_own() -> None:
    for line, stood, expected in [
        ("shared", 0, (10, 200, 3000)),
        ("shared", 1, (10, 200, 3000)),
        ("shared", 2, (0, 200, 3000)),
        ("new", 0, (10, 200, 3000)),
        ("new", 1, (10, 0, 3000)),
        ("old", 1, (10, 200, 3000)),
        ("old", 2, (10, 200, 0)),
    ]:
        counts = site_with({{"shared": 1, "new": 2, "old": 3}[line]: stood})
        assert letters(compared(lines(_1=10, _2=200), lines(_1=10, _3=3000), counts)) == expected
    assert compared(lines(), lines(), site_with({7: 3})).pages == 3


def test_beyond_the_reach_of_either_sample_nothing_is_compared() -> None:
    """A full sample reaches as far as half of all fingerprints, so a page has twice as many letters as are seen."""
    step, counts = 2**31 // MAX_LINES, site_with({})
    few = Lines(frozenset(), {step: 10, 4_000_000_000: 200})
    many = Lines(frozenset(), dict.fromkeys(range(step, 2**31 + 1, step), 10))
    more = 20 * (MAX_LINES - 1)
    assert letters(compared(many, few, counts)) == (20, more, 0)
    assert letters(compared(few, many, counts)) == (20, 0, more)
    assert letters(compared(many, many, counts)) == (20 + more, 0, 0)


def test_headlines_that_many_pages_of_the_site_have_are_none() -> None:
    for ours, theirs, stood, expected in [
        ((1,), (1,), {1: 2}, SAME),
        ((1, 2), (3, 1), {}, SAME),
        ((1,), (1,), {1: 3}, NO_HEADLINE),
        ((1, 9), (1, 8), {1: 3}, OTHER),
        ((1, 9), (1, 9), {1: 3}, SAME),
        ((1,), (2,), {}, OTHER),
        ((), (2,), {}, NO_HEADLINE),
    ]:
        counts = site_with(stood)
        for one, other in ((lines(*ours), lines(*theirs)), (lines(*theirs), lines(*ours))):
            assert compared(one, other, counts).headlines is expected
            alike = ALIKE if expected is OTHER else expected
            assert compared(one, other, counts, titles_alike=True).headlines is alike


# Whole pages

FORM = story(900, 24)
TITLE, OTHER_TITLE = "渡口清晨开航第一班", "图书馆夜间开放"


def detector(min_letters: int = 40) -> Detector:
    return Detector(make_method("cascade", {}), memory_state({}), who="test", policy=Policy(min_letters=min_letters))


def shown(
    name: str, article: list[str], around: list[str], title: str = TITLE, site: str = "river", *, told: bool = False
) -> Page:
    """A page as it is read from HTML; ``told``: which of its lines are the article could be told."""
    return Page(
        f"http://{site}.example/{name}",
        title,
        text="\n".join([*around[: len(around) // 2], title, *article, *around[len(around) // 2 :]]),
        site=f"{site}.example",
        main="\n".join(article) if told else "",
        headline=title,
        reader="article" if told else "prose",
    )


def known_site(pages: int = 12) -> Detector:
    judge = detector()
    for number in range(pages):
        verdict = answer(judge, shown(f"earlier{number}", story(500 + number, 12), FORM, f"第{number}号旧闻"))
        assert verdict.outcome is Outcome.UNIQUE
    return judge


def copied(verdict: Verdict) -> str | None:
    return verdict.match.url.rpartition("/")[2] if verdict.match and verdict.outcome is Outcome.DUPLICATE else None


def test_two_articles_in_one_form_are_two_from_the_sites_second_page_on() -> None:
    for told in [False, True]:
        judge = detector()
        first, second = (
            shown(f"{n}", story(n, 5), FORM, title, told=told) for n, title in ((1, TITLE), (2, OTHER_TITLE))
        )
        assert answer(judge, first).outcome is Outcome.UNIQUE, told
        assert answer(judge, second).outcome is Outcome.UNIQUE, told
        assert copied(answer(judge, replace(second, url="http://river.example/3"))) == "2", told


def test_a_heading_that_names_the_site_is_no_headline() -> None:
    """It is beside the real headline of each page, or the page shows menu headings only."""
    titles = ("渡口清晨开航第一班船", "图书馆夜间开放到十点")
    for headline, teasers in (("River news\n{}", titles), ("Fares\nRiver news", ())):
        judge = detector()
        for number, title in enumerate(titles):
            page = shown(f"{number}", story(number, 4), [*story(900, 60), *teasers], title)
            verdict = answer(judge, replace(page, headline=headline.format(title)))
            assert verdict.outcome is Outcome.UNIQUE
    for number, month in enumerate(("of May", "in June")):
        page = shown(month[-3:], [*story(1, 24), *story(number, 1)], FORM, f"River news {month}")
        verdict = answer(judge, replace(page, headline="渡口停航"))
    assert copied(verdict) == "May"


def test_a_text_that_came_without_html_is_judged_as_it_always_was() -> None:
    judge = detector()
    first, second = (replace(shown(f"{n}", story_without_numbers(n, 5), FORM), reader="", headline="") for n in (1, 2))
    assert answer(judge, first).outcome is Outcome.UNIQUE
    assert copied(answer(judge, second)) == "1"


def test_an_article_beside_other_teasers_is_a_copy_once_the_site_is_known() -> None:
    for told in [False, True]:
        judge = known_site()
        article = story(1, 24)
        answer(judge, shown("first", article, [*FORM, *story(2, 3)], told=told))
        assert copied(answer(judge, shown("second", article, [*FORM, *story(3, 3)], told=told))) == "first"
        assert copied(answer(judge, shown("third", story(4, 24), [*FORM, *story(2, 3)], told=told))) is None


def test_of_a_gallery_pages_are_copies_only_where_the_captions_are_a_small_part_of_its_text() -> None:
    """One title, and below each picture another caption."""
    for story_lines, copies in [(0, 0), (4, 0), (16, 1)]:
        judge = known_site()
        text = story(7, story_lines)
        first, second = (shown(f"{number}", [*text, *story(600 + number, 2)], FORM) for number in range(2))
        assert answer(judge, first).outcome is Outcome.UNIQUE, story_lines
        assert (copied(answer(judge, second)) == "0") == copies


def test_notices_of_one_form_are_two_if_most_numbers_of_the_articles_differ() -> None:
    judge, form = detector(), ["".join(filter(str.isalpha, line)) for line in story(7, 23)]
    notices = (2084, 1396, 27, "river"), (1350, 880, 30, "river"), (990, 610, 12, "sea")
    for number, (shares, price, day, site) in enumerate(notices):
        bought = f"渡口{day}日买入{shares}股，共{price}元，每股{price / shares:.2f}元，{day + 1}日告知码头上的人，"
        page = shown(f"{number}", [f"{bought}钟敲了很久。", *form], story(2, 2), site=site, told=True)
        assert answer(judge, page).is_copy == (site == "sea"), "another site has other counters"


def test_a_print_version_is_a_copy_of_the_full_page_and_the_other_way_round() -> None:
    for first, links in ("full", "Ada"), ("print", "Ada"), ("full", "Bob"):
        judge = known_site()
        article = story(1, 16)
        versions = {"full": shown("full", article, [*FORM, *story(2, 8)]), "print": shown("print", article, [])}
        assert answer(judge, replace(versions.pop(first), links="Ada")).outcome is Outcome.UNIQUE
        found = answer(judge, replace(*versions.values(), links=links))
        assert copied(found) == first if links == "Ada" else not found.is_copy, "another list is another article"


def test_a_repost_on_another_site_is_found_by_the_article_in_it() -> None:
    article = story(1, 12)
    here = shown("first", article, story(2, 20), told=True)
    repost, edited = (
        shown("second", lines, story(3, 20), "码头上的第一个早晨", "mirror", told=True)
        for lines in (article, [*article[1:], "河湾网转载"])
    )
    unread = replace(repost, main="", reader="prose")
    for new, expected in ((repost, "first"), (edited, "first"), (unread, None)):
        judge = detector()
        assert answer(judge, here).outcome is Outcome.UNIQUE
        assert copied(answer(judge, new)) == expected


def test_of_a_headline_that_is_alike_less_must_agree_than_under_another_one() -> None:
    for title, copy in [
        ("Ferry sails before dawn with pear growers aboard", True),
        ("Ferry sails before dawn with 7 pear growers aboard", True),
        ("The old rope locker is open to visitors", False),
    ]:
        judge, article = known_site(), story(1, 24)
        first = shown("first", article, FORM, "Ferry sails before dawn with pear growers")
        answer(judge, first)
        second = shown("second", [*article[3:], *story(2, 2)], FORM, title)
        assert (copied(answer(judge, second)) == "first") is copy
        # The title of both is the site's name, as only the headlines differ.
        judge = known_site()
        for number in range(3):
            answer(judge, shown(f"front{number}", story(30 + number, 12), FORM, "River news"))
        named = [replace(one, title="River news") for one in (first, second)]
        assert [copied(answer(judge, one)) for one in named] == [None, None]


def test_of_a_page_read_from_html_short_lines_are_counted_too() -> None:
    """A heading that every page of a site has is its form's."""
    text = "\n".join([*story(1, 3), "读者来信", *story(2, 3)])
    heading = OPEN.short("读者来信")
    for reader, counted in (("", False), ("prose", True)):
        page = Page("http://river.example/", text=text, reader=reader)
        assert (heading in make_method("cascade", {}).fingerprint(page).sentences) is counted


def test_a_text_without_html_is_found_as_the_article_of_a_page() -> None:
    judge = detector()
    article = story(1, 12)
    answer(judge, shown("first", article, story(2, 20), told=True))
    plain = Page("http://mirror.example/second", "", text="\n".join(article), site="mirror.example")
    assert copied(answer(judge, plain)) == "first"


def test_one_frame_around_different_articles_makes_no_copies_of_two_sites() -> None:
    judge = detector()
    first = shown("first", story(1, 20), story(9, 200), told=True)
    second = shown("second", story(2, 20), story(9, 200), OTHER_TITLE, "mirror", told=True)
    assert answer(judge, first).outcome is Outcome.UNIQUE
    assert answer(judge, second).outcome is Outcome.UNIQUE
    unread = (replace(one, url=f"{one.url}/text", main="", reader="") for one in (first, second))
    judge = detector()
    assert [copied(answer(judge, one)) for one in unread] == [None, "text"]


def test_a_known_page_is_unchanged_if_only_what_stands_around_its_article_is_new() -> None:
    for new, outcome in [
        (shown("a", story(1, 16), story(3, 10), told=True), Outcome.UNCHANGED),
        (shown("a", story(1, 16), [], told=True), Outcome.UNCHANGED),
        (shown("a", story(1, 16), story(2, 10), "新的标题在这里", told=True), Outcome.UPDATED),
        (shown("a", [*story(1, 15), "更正：渡口明天停航一天。"], story(2, 10), told=True), Outcome.UPDATED),
        (shown("a", story(1, 16), story(3, 10)), Outcome.UPDATED),
        (shown("a", story(1, 16), [*story(2, 10), *story(4, 10)], told=True), Outcome.UPDATED),
        (shown("a", story(1, 16), [*story(2, 10), *story(4, 2)], told=True), Outcome.UNCHANGED),
    ]:
        judge = detector()
        answer(judge, shown("a", story(1, 16), story(2, 10), told=True))
        assert answer(judge, new).outcome is outcome


@pytest.mark.parametrize(("common", "copies"), [(False, True), (True, False)])
def test_an_article_that_is_boilerplate_makes_no_copies_between_sites(common: bool, copies: bool) -> None:
    """A consent text that was taken for the article of pages that say different things beside it."""
    consent = story(9, 12)
    one, other = (
        replace(shown(name, consent, story(family, 10), told=True), site=f"{name}.example", title=name)
        for name, family in (("river", 2), ("lake", 3))
    )
    known = {OPEN.short(letters_in(normalize(line))) for text in consent for line in sentences(text)}

    def is_common(asked: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        return np.array([common and one in known for one in asked.tolist()], np.bool_)

    method = Cascade()
    found = method.compare(
        method.fingerprint_own(other, is_common), method.fingerprint_own(one, is_common).sketch, frozenset()
    )
    assert found.duplicate is copies
