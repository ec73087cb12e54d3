"""The part of a page that may hold the article, and the main text in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from random import Random
from unittest.mock import Mock

import lxml.html
import pytest
from hypothesis import given, settings
from lxml import etree

from scrapy_neardup import Deduplicator
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.page import reading as module
from scrapy_neardup.page.blocks import find_sections
from scrapy_neardup.page.extraction import analyse
from scrapy_neardup.page.html import parse_page
from scrapy_neardup.page.reading import isolate_article, main_text, read_blocks, simplify, trafilatura_text
from tests.page.test_blocks import HTML

STORY = "".join(
    f"<p>On day {day} the ferry took {day} passengers and their baskets across the river before noon.</p>"
    for day in range(8)
)
TEASERS = "".join(f"<li><a href=/{day}>The market of day {day}</a></li>" for day in range(8))
INTRO = "<p>Every Friday we collect what readers sent us in the week, by no rule at all, and thank them for it.</p>"
NAMES = "".join(f"<li>River country {number}</li>" for number in range(99))
CARDS = STORY.replace("<p>", "<li><a href=/>").replace("</p>", "</a></li>")
WORDS = ("anchor", "bridge", "candle", "feather", "garden", "lantern", "meadow", "orchard", "paper", "ribbon", "saddle")
DATA = '<script type="application/ld+json">{"@type": "Article"}</script>'


def parse(html: str) -> lxml.html.HtmlElement:
    root = parse_page(html)
    assert root is not None
    return root


def isolate(html: str) -> tuple[bool, str]:
    root = parse(html)
    simplify(root)
    is_article = isolate_article(root, *find_sections(root)) is not None
    return is_article, " ".join("".join(root.itertext()).split())


def read(html: str) -> str:
    root = parse(html)
    simplify(root)
    return main_text(root, *find_sections(root))


@settings(deadline=None)
@given(HTML)
def test_a_simple_tree_has_the_same_lines(html: str) -> None:
    root = parse_page(html)
    before = find_sections(root)[0]
    if root is not None:
        simplify(root)
    assert find_sections(root)[0] == before


def test_a_simple_tree_keeps_what_a_script_may_show_and_data() -> None:
    root = parse(f"{DATA}<script>x</script><p>a<b>c</b><i hidden>d</i>e</p><div hidden>later</div>")
    simplify(root)
    assert [element.tag for element in root.iter()] == ["html", "head", "script", "body", "p", "div"]
    assert root.findtext(".//p") == "ace"
    assert root.findtext(".//div") == "later"


def test_what_is_beside_the_article_is_removed() -> None:
    for html, kept, removed in [
        (f"<ul>{TEASERS}</ul><div>{STORY}</div>", "baskets", "market"),
        (f"<div>{STORY}<ul>{TEASERS}</ul></div>", "baskets", "market"),
        (f"<div><nav><p>About<p>Help<p>Jobs</nav>{STORY}</div>", "baskets", "Help"),
        (f"<div><p>Fares<p>Times<p>The ferry is late today.</div><div>{STORY}</div>", "baskets", "late today"),
        (f"above<div><div>{STORY}</div>below</div>behind", "baskets", "above"),
    ]:
        is_article, text = isolate(f"<body>{html}")
        assert is_article, html
        assert kept in text
        assert removed not in text


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        pytest.param(f"<ul>{TEASERS}</ul><p>The ferry is late today.</p>", "market", id="little prose"),
        pytest.param(f"<div><ul>{NAMES}</ul></div><div>{STORY}</div>", "baskets", id="names"),
        pytest.param(f"<div><ul>{CARDS}</ul><p>The ferry is late today.</p></div>", "baskets", id="cards"),
        pytest.param(
            f"<div><ul>{''.join(f'<li><p><a href=/>Boat {n}</a><p>new<p><a href=/>Buy it</a>' for n in range(99))}</ul>"
            f"{STORY}</div>",
            "Buy",
            id="links are the content",
        ),
        pytest.param(f"<nav><div>{STORY}</div></nav><div><p>Help<p>Jobs<p>Late today</div>", "baskets", id="nav"),
        pytest.param(f"<div>{STORY}<p>a<p>b<div hidden>shown later</div></div>", "shown later", id="hidden"),
        pytest.param("text", "text", id="no section"),
    ],
)
def test_what_may_be_the_article_stays(html: str, kept: str) -> None:
    assert kept in isolate(f"<body>{html}")[1]


def test_the_main_text_is_the_article_and_its_tree_stays() -> None:
    root = parse(f"<head><title>Ferry</title>{DATA}</head><body><ul>{TEASERS}</ul>{DATA}<div>{STORY}</div>")
    simplify(root)
    assert isolate_article(root, *find_sections(root)) is not None
    assert len(root.findall(".//script")) == 2
    lines = read(f"<body><ul>{TEASERS}</ul><article><h1>The ferry</h1>{STORY}</article><p>Fares").split("\n")
    assert lines[-1].startswith("On day 7")
    assert not any("market" in line for line in lines)
    assert main_text(None, [], []) == ""
    root = parse(f"<body><ul>{TEASERS}</ul><article>{STORY}</article>")
    before = etree.tostring(root)
    for is_article in (False, True):
        assert trafilatura_text(root, is_article=is_article)
    assert etree.tostring(root) == before


def test_the_main_text_has_the_lines_of_the_page() -> None:
    root = parse(
        f"<body><article><h2>The\nfares</h2>{STORY}<p>To <a href=/pier>the\npier</a> and\nback<ul><li>Ada<li>Bob<br>Eve"
        f"</ul><table><tr><td>one\nboat<td>two</table><pre><code>a = 1\n\n  b = 2</code></pre><p>Anna</article>"
    )
    lines = [" ".join(line.split()) for line in trafilatura_text(root, is_article=True).split("\n") if line.strip()]
    expected = ["To the pier and back", "Ada", "Bob", "Eve", "one boat", "two", "a = 1", "b = 2", "Anna"]
    assert (lines[0], lines[9:]) == ("The fares", expected)


def names(day: int, count: int) -> list[str]:
    """Names of links, other ones on each day."""
    return [" ".join([*Random(f"{day} {n}").sample(WORDS, 3), f"{day}{n}"]) for n in range(count)]


#: Layouts of a page, and of the list of links in it.
FRAMES = [
    "<body>{}",
    "<body><nav><ul>{menu}</ul></nav><main><article>{}</article></main><footer><p>The Daybook, all rights</footer>",
    "<body><div><ul>{menu}</ul></div><div>{}</div><div><h3>Related</h3><ul>{related}</ul></div><p>The Daybook",
    "<body><div><ul>{menu}</ul></div><div><div>{}</div><h3>Related</h3><ul>{related}</ul></div><p>The Daybook",
    "<body><table><tr><td><ul>{menu}</ul><td>{}<p>Related<ul>{related}</ul></table>",
]
LISTS = ["<li>{}</li>", "<p>{}</p>", "<table><tr><td>7<td>{}</table>", "<dl>{}</dl>", "<h3>{}</h3>", "<li>{} new</li>"]
INTRO_ZH = "<p>每个星期五我们收集读者一周里寄来的文章，在这里谢谢大家。要是漏掉了什么，请写信告诉我们，下星期补上。</p>"


def links_of(names: list[str], line: str, size: int = 1) -> str:
    links = [f"<a href=/{name}>{name}</a>" for name in names]
    return "".join(line.format(" | ".join(links[place : place + size])) for place in range(0, len(links), size))


def page(frame: str, article: str, day: int) -> str:
    menu, related = links_of(names(0, 9), "<li>{}</li>"), links_of(names(day + 3, 3), "<li>{}</li>")
    title = "Finds of the week"
    return f"<title>{title}</title>" + frame.format(f"<h1>{title}</h1>{article}", menu=menu, related=related)


def outcome(pages: list[str], url: str) -> Outcome:
    judge = Deduplicator()
    judge.check(url="http://river.example/a", html=pages[0])
    return judge.check(url=url, html=pages[1]).outcome


def is_copy(pages: list[str], site: str = "river") -> bool:
    return outcome(pages, f"http://{site}.example/b") is Outcome.DUPLICATE


@pytest.mark.parametrize("frame", FRAMES)
def test_two_lists_of_links_with_one_introduction_are_no_copies(frame: str) -> None:
    for line in LISTS:
        for order in ("{intro}{links}", "{links}{intro}", "<div>{intro}</div><div>{links}</div>"):
            for intro, count, site in ((INTRO, 20, "sea"), (INTRO_ZH, 5, "river"), (INTRO * 3, 4, "sea")):
                lists = [order.format(intro=intro, links=links_of(names(day, count), line)) for day in (1, 2)]
                pages = [page(frame, one, day) for day, one in enumerate(lists, 1)]
                assert not is_copy(pages, site), (line, order, count)
    for article, count in ((INTRO + INTRO_ZH, 0), (STORY, 4), (STORY + "<p>Related", 9), (STORY + "<aside>", 40)):
        pages = [page(frame, article + links_of(names(day, count), "<p>{}</p>"), day) for day in (1, 2)]
        assert is_copy(pages), "related articles do not count"
    many = page(frame, INTRO + links_of(names(1, 900), LISTS[0]), 1)
    assert len(analyse(many, "", max_html=10**6).page.links) == 10_000
    lists = [INTRO * 3 + links_of(names(day, 4), "<p>{}</p>") for day in (1, 2)]
    assert is_copy([page(frame, lists[0], day) for day in (1, 2)], "sea"), "the same list"
    found = outcome([page(frame, one, 1) for one in lists], "http://river.example/a")
    assert found is Outcome.UPDATED, "another list at the same address"


@pytest.mark.parametrize(
    ("html", "main", "is_list"),
    [
        ("<div><p>May<p>Ada<p>Bob</div><div><h1>Finds</h1>{intro}<ul>{links}</ul></div>", "", True),
        ("<aside><h1>Finds</h1>{intro}<ul>{links}</ul></aside>", "", True),
        ("{intro}<p>May<ul>{links}</ul>", "", False),  # perhaps a menu
        ("<main><h1>Finds</h1>{intro}<p>May<p>Ada</main><ul>{links}</ul>", "", False),  # beside the article
        ("<div><h1>Finds</h1>{intro}<p>May</div><div>{intro}<ul>{links}</ul></div>", "", False),
        ("<div><h1>Finds</h1>{intro}<ul>{links}</ul></div>", "A paragraph that a script unfolds. " * 40, False),
        ("<div><h1>Finds</h1>" + "{intro}" * 6 + "<ul>{links}</ul></div>", "", True),
        ("<div><h1>Finds</h1><div>" + "{intro}" * 6 + "</div><ul>{links}</ul></div>", "", True),
        ("<div><h1>Finds</h1><div>" + "{intro}" * 6 + "</div><p>Related<ul>{links}</ul></div>", "", False),
        ("<div><h1>Finds</h1><div>" + "{intro}" * 6 + "</div>{next}</div>", "", False),
    ],
)
def test_a_list_needs_a_headline_and_many_links(html: str, main: str, is_list: bool) -> None:
    links, following = (links_of(names(1, 20), "<li>{}", size) for size in (1, 10))
    blocks, sections = find_sections(parse("<body>" + html.format(intro=INTRO, links=links, next=following)))
    assert (names(1, 20)[9] in read_blocks(Page(""), blocks, main, sections).page.text) is is_list


@pytest.mark.parametrize(
    ("count", "size", "line", "around"),
    [
        (20, 5, "<li>{}</li>", INTRO),  # a bibliography
        (1, 50, "<div>{}</div>", INTRO),  # a playlist
        (1, 14, "<p>{}</p>", STORY),  # a recipe
        (12, 6, "<p>{}</p>", ""),  # a post of links, a line for each subject
    ],
)
def test_lines_of_links_may_be_the_article(count: int, size: int, line: str, around: str) -> None:
    found = names(1, count * size)
    html = f"<body><article><h1>Finds</h1>{around}{links_of(found, line, size)}{around}</article>"
    text = analyse(html, "http://river.example/", max_html=len(html)).page.text
    assert all(name in text for name in found)


def test_an_article_with_few_links_is_main_text_without_its_named_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "trafilatura_text", lambda root, *, is_article: "other")
    long = "A link of this many letters is a sentence of the article, not a menu"
    more = f"<h3><a href=/n>Notes</a></h3>Anna<br>May<p><a href=/>Boats</a><p><a href=/>{long}</a><pre>a = 1</pre>"
    lines = ["Notes", "Anna", "May", long, "a = 1"]
    small = "<p class=shared>On</p>", "<p id=related>On</p>", "<form>On</form>", "<aside>On</aside>", "<p hidden></p>"
    for part in small:
        assert read(f"<ul>{TEASERS}</ul><div><h1>A</h1>{STORY * 3}{more}{part}</div>").split("\n")[24:] == lines, part
    for part in (
        f"<p id=a><a href=/>{long}</a>" * 2,
        "<p hidden>Shown later</p>",
        f"<div class=comments>{STORY}</div>",
        f"<div id=comments>{STORY}</div>",
    ):
        assert read(f"<div>{STORY}{STORY}{part}</div>") == "other", part
        assert read(f"{'<div>' * 100}{STORY}{STORY}{part}") == "", "it may take long"


@pytest.mark.parametrize("error", [ValueError, RecursionError, MemoryError])
def test_only_lack_of_memory_fails(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    monkeypatch.setattr(module, "trafilatura_text", Mock(side_effect=error))
    with pytest.raises(error) if error is MemoryError else nullcontext():
        assert read("<p>Ferry") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda n: f"{'<b hidden>x</b>y' * n}<p>{STORY}",
        lambda n: f"<p>{'<span>x' * 200}{'<b>y</b>' * n}{STORY}",
        lambda n: f"{'<div><p>a<p>b<p>c</div>' * n}<div>{STORY}</div>",
        lambda n: f"{'<div>' * 200}{'<ul><li>a<li>b<li>c</ul>' * n}",
    ],
)
def test_the_time_grows_with_the_size(make: Callable[[int], str]) -> None:
    from time import process_time

    def seconds(count: int) -> float:
        root = parse(make(count))
        begun = process_time()
        simplify(root)
        isolate_article(root, *find_sections(root))
        return process_time() - begun

    seconds(100)
    few, many = (min(seconds(count) for _ in range(3)) for count in (1_000, 16_000))
    assert many < 60 * max(0.002, few)
