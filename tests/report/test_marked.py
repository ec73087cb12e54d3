"""A page with its parts marked: its text as it stands, its structure, and nothing of it that acts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import analyse
from scrapy_neardup.page.reading import Line, LineRole, classify_lines
from scrapy_neardup.report.marked import render_marked_page
from tests.page.pages import ARTICLE, ASIDE, HOSTILE, NONE, PARAGRAPHS, PROSE
from tests.report.browser import shown

URL = "https://daybook.example/news/ferry.html"
#: Elements that act, or load what does.
ACTING = (
    "script, iframe, object, embed, svg, math, form, input, button, img, video, audio, base, link, template, noscript"
)


def lines_in(html: str, **pages: int) -> tuple[Page, list[Line]]:
    found = analyse(html, URL, max_html=100_000)
    return found.page, classify_lines(found.blocks, found.reading, lambda sentence: pages.get(sentence, 0))


def of_page(html: str, **pages: int) -> str:
    page, lines = lines_in(html, **pages)
    return render_marked_page(html, page, lines, [("title", page.title), ("reader", page.reader)])


def shown_of(html: str, role: LineRole) -> str:
    """The text of a role in the body, without white space."""
    tree = lxml.html.document_fromstring(html)
    return "".join("".join(tree.xpath(f"//main//*[@class='{role.value}']//text()")).split())


@pytest.mark.parametrize("html", [ARTICLE, PROSE, NONE, HOSTILE])
def test_every_line_stands_in_the_page_under_its_role(html: str) -> None:
    _, lines = lines_in(html)
    marked = of_page(html).replace("\N{REPLACEMENT CHARACTER}", "")
    for role in set(LineRole) - {LineRole.UNSEEN}:
        expected = "".join("".join(line.text.split()) for line in lines if line.role is role)
        assert shown_of(marked, role) == re.sub("[\x1b\u202e]", "", expected)


def test_boilerplate_is_marked_within_its_line() -> None:
    html = ARTICLE.replace(ASIDE, f"Write to us. {ASIDE}")
    marked = of_page(html, writetous=30)
    assert '<p><span class="boilerplate">Write to us</span><span class="prose">. Readers' in marked
    assert shown_of(marked, LineRole.ARTICLE).endswith("".join(PARAGRAPHS[-1].split()))


def test_the_structure_of_the_page_stays() -> None:
    marked = of_page(ARTICLE)
    for part in (
        '<h1><span class="article">The ferry sails again</span></h1>',
        f'<p><span class="article">{PARAGRAPHS[0]}</span></p>',
        '<li><a href="https://daybook.example/1"><span class="links">The bridge is closed</span></a></li>',
        '<footer><p><span class="frame">All rights',
    ):
        assert part in marked


def test_the_legend_counts_the_lines_of_each_role() -> None:
    marked = of_page(ARTICLE)
    assert re.findall(r'<li><span class="\w+">(\w+)</span> [^(]*\(([^)]*)\)</li>', marked) == [
        *[("article", "4 lines"), ("prose", "1 line"), ("frame", "2 lines"), ("links", "1 line"), ("other", "1 line")]
    ]
    assert '<span class="boilerplate">' not in marked


def test_judged_lines_that_are_not_visible_stand_above() -> None:
    found = analyse(ARTICLE, URL, max_html=100_000, extractor=lambda html, url: "Nowhere <b>on</b> the page")
    marked = render_marked_page(
        ARTICLE, found.page, classify_lines(found.blocks, found.reading, lambda sentence: 0), []
    )
    assert '<p dir="auto"><span class="unseen">Nowhere &lt;b&gt;on&lt;/b&gt; the page</span></p>' in marked
    assert marked.index("Nowhere") < marked.index("<main>")


def acting(html: str) -> list[str]:
    """Parts of the body that could act: elements, handlers, styles, addresses beside plain links."""
    [body] = lxml.html.document_fromstring(html).xpath("//main")
    found = [one.tag for one in body.cssselect(ACTING)]
    for element in body.iter():
        for name, value in element.attrib.items():
            plain = name in ("class", "colspan", "dir", "lang", "rowspan", "start")
            if not plain and not (name == "href" and value.startswith(("https://", "http://"))):
                found.append(f"{name}={value}")
    return found


def test_nothing_of_a_hostile_page_acts() -> None:
    marked = of_page(HOSTILE)
    assert acting(marked) == []
    assert "hidden words" not in marked
    assert not re.search("[\x1b\u202e]", marked)
    assert "http-equiv=refresh" not in marked
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', marked)
    assert re.sub("sha256-[^&]*", "", policy).startswith(
        "default-src &#39;none&#39;; script-src &#39;none&#39;; style-"
    )
    assert "unsafe" not in policy


def test_a_page_cannot_pass_its_own_marks_for_ours() -> None:
    html = HOSTILE.replace("no article, whatever its class says of it", "<a href=/1>no article</a>")
    assert "noarticle" in shown_of(of_page(html), LineRole.LINKS)
    assert "noarticle" not in shown_of(of_page(html), LineRole.ARTICLE)


# fmt: off
PIECES = [
    "<p>", "</p>", "<b>", "</b>", "<pre>", "</pre>", "<svg>", "</svg>", "<style>", "</style>", "<title>", "</title>",
    "<textarea>", "<noscript>", "<math>", "<mtext>", "<script>", "</script>", "<!--", "-->", "<![CDATA[", "]]>",
    "<xmp>", "<plaintext>", "<table>", "<td>", "</table>", "<select>", "</select>", "</main>", "</div>", "</body>",
    "&lt;script&gt;", "&#27;", "&#xfffe;", "text ", "<a href='javascript:x()'>", "<a href=/y onclick=z()>",
    "<img src=x onerror=z()>", "<form action=/x>", "<embed src=x>", "<body onload=z()>", "<own-one style='x'>", "\x0c",
    "\u2028",
]
# fmt: on


@settings(deadline=None)
@example("<p>text<svg>a&#27;<b>b</b>&#27;c<math>d</math>&#27;e</svg>&#27;text")
@example("<p>text</p>&#28;<svg></svg>&#28;<svg></svg>&#28;")
@example("<xmp><p><p><p><p><p><p>&lt;script&gt;")
@example(f"<noscript>&#27;<svg></svg>{'<div>' * 3000}&#27;text")
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_nothing_of_any_page_acts_and_no_letter_is_lost(html: str) -> None:
    page, lines = lines_in(html)
    marked = render_marked_page(html, page, lines, [])
    assert acting(marked) == []
    visible = [line.text for line in lines if line.role is not LineRole.UNSEEN]
    count = sum(map(str.isalnum, "".join(visible)))
    tree = lxml.html.document_fromstring(marked)
    assert sum(map(str.isalnum, "".join(tree.xpath("//main//span[@class]//text()")))) == count


def test_in_a_browser_it_is_quiet_and_asks_for_nothing(chromium: Any, tmp_path: Path) -> None:
    file = tmp_path / "marked.html"
    file.write_text(of_page(HOSTILE), encoding="utf-8")
    with shown(chromium, file) as (page, seen):
        assert page.title().startswith("Extracted: Evil <script>alert('title')</script>")
        assert page.eval_on_selector(".known", "one => getComputedStyle(one).display") == "block"
        assert (
            page.eval_on_selector("main .article", "one => getComputedStyle(one).backgroundColor")
            == "rgb(205, 235, 201)"
        )
        assert page.evaluate("document.querySelector('main').innerText.includes('<script>alert(22)</script>')")
        assert page.evaluate("document.querySelector('main').parentElement === document.body")
        assert page.evaluate(f"document.querySelectorAll('{ACTING}').length") == 0
    assert (seen.said, seen.asked) == ([], [file.as_uri()])
