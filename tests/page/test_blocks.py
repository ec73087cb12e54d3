"""Visible lines: their ends, links, navigation, headlines, quotes and hidden elements."""

from __future__ import annotations

from time import process_time

import lxml.html
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from scrapy_neardup.page.blocks import Block, find_sections
from scrapy_neardup.page.html import parse_page
from scrapy_neardup.text.quotes import QuoteMarkup as Q


def visible_blocks(html: str) -> list[Block]:
    return find_sections(parse_page(html))[0]


def lines(html: str) -> list[str]:
    return [block.text for block in visible_blocks(html)]


def linked(html: str) -> list[tuple[str, int]]:
    return [(block.text, block.linked) for block in visible_blocks(html)]


def test_lines_end_as_in_a_browser() -> None:
    for html, expected in [
        ("<h1>Ferry</h1><p>It is late.</p><div>Wait here.</div>", ["Ferry", "It is late.", "Wait here."]),
        ("<div>above<p>within</p>below</div>after", ["above", "within", "below", "after"]),
        ("<p>the <b>old <i>wooden</i></b> <span>boat</span>s</p>", ["the old wooden boats"]),
        ("<p>fer<wbr>ry<sup>2</sup>, <code>x</code><img alt=no>!</p>", ["ferry2, x!"]),
        ("<b>bold<p>line</p>again</b>", ["bold", "line", "again"]),
        ("<p>one<br>two<br/><br>three", ["one", "two", "three"]),
        ("<p>one<b>, two<br>three</b> four", ["one, two", "three four"]),
        ("one<hr>two", ["one", "two"]),
        ("<ul><li>boats<li>ropes<ul><li>thin</ul>and thick</ul>", ["boats", "ropes", "thin", "and thick"]),
        ("<dl><dt>pier<dd>where boats lie</dl>", ["pier", "where boats lie"]),
        ("<table><tr><th>boat<th>fare<tr><td>Reed<td>4</table>", ["boat", "fare", "Reed", "4"]),
        ("<table><tr><td>out<table><tr><td>in</table>side</table>", ["out", "in", "side"]),
        ("<details><summary>Fares</summary>four</details>", ["Fares", "four"]),
        ("<fare-box>four</fare-box>five", ["four", "five"]),
        ("<p>one\n  two\t three\u00a0four\u3000five</p>", ["one two three four five"]),
        ("<pre>one\n  two  three\n\nfour</pre>five\nsix", ["one", "two three", "four", "five six"]),
        ("<pre>one\n<b>two\nthree</b> four</pre>", ["one", "two", "three four"]),
    ]:
        assert lines(html) == expected


def test_letters_of_links_are_counted() -> None:
    for html, expected in [
        ("<p>see <a href=/>the boats</a> here", [("see the boats here", 8)]),
        ("<p><a href=/a>one</a> | <a href=/b>two</a>", [("one | two", 6)]),
        ("<p><a href=/>the <b>old</b> boat</a>", [("the old boat", 10)]),
        ("<li>2012-01-12 <a href=/>the boats", [("2012-01-12 the boats", 16)]),
        ("<li><a href=/>boats</a> 3.50 4.50", [("boats 3.50 4.50", 5)]),
        ("<p><a>the boats</a>", [("the boats", 0)]),
        ("<p><a name=top>the <a href=/>boats</a>", [("the boats", 5)]),
        ("<p><a href=/>  the\n   boats  </a>", [("the boats", 8)]),
        ("<a href=/><h2>Boats</h2><p>are late</p></a>", [("Boats", 5), ("are late", 7)]),
        ("<p><a href=/>one<br>two</a><br>three", [("one two", 6), ("three", 0)]),
        ("<p><a href=/>one<p>two</a>three", [("one", 3), ("two", 3), ("three", 0)]),
        ("<p><a href=/>one", [("one", 3)]),
        ("<p><a href=/></a>one", [("one", 0)]),
        ("<pre><a href=/>one</a>\ntwo</pre>", [("one", 0), ("two", 0)]),
    ]:
        assert linked(html) == expected


def test_an_h1_is_a_headline_and_a_line_break_changes_no_context() -> None:
    html = "<h1>The <i>ferry</i><br>is late</h1><h2>Why</h2><h1><a href=/>Daybook</a></h1>"
    assert visible_blocks(html) == [
        Block("The ferry", headline=True),
        Block("is late", headline=True),
        Block("Why"),
        Block("Daybook", linked=7, headline=True),
    ]
    for end in ("<br class=gmail_quote>", "<br role=navigation>", "<br class=uncited hidden>"):
        blocks = visible_blocks(f"<p>one{end}two</p><p>three")
        assert {(block.frame, block.quote) for block in blocks} == {(False, Q.NONE)}, end


#: Elements and their effect on the lines in them.
_CONTEXTS: list[tuple[str, dict[str, str], str]] = [
    ("nav", {}, "frame"),
    ("main", {}, "main"),
    ("div", {"role": "contentinfo"}, "frame"),
    ("b", {"role": "navigation"}, ""),
    ("h1", {}, "headline"),
    ("h1", {"class": "uncited"}, "headline quoted"),
    ("pre", {}, ""),
    ("blockquote", {}, "cited"),
    ("blockquote", {"type": "cite"}, "quoted"),
    ("aside", {}, ""),
    ("aside", {"class": "quote"}, ""),
    ("aside", {"class": "quote", "data-post": "1"}, "quoted"),
    ("div", {"class": "quote", "data-post": "1"}, ""),
    ("div", {"class": "quote Gmail_Quote"}, "quoted"),
    ("footer", {"class": "gmail_quote"}, "frame quoted"),
    ("span", {"class": "gmail_quote"}, ""),
    ("a", {"href": "/"}, "link"),
    ("a", {}, ""),
    ("section", {"class": "quote"}, ""),
    ("div", {"class": "nav", "id": "footer"}, ""),
    ("div", {"role": "navigation"}, "frame"),
    ("div", {"role": "main"}, ""),
    ("header", {}, ""),
]


@given(st.lists(st.tuples(st.sampled_from(_CONTEXTS), st.integers(0, 3)), max_size=12))
@example([(("nav", {}, "frame"), 0), (("main", {}, "main"), 0)])
def test_the_elements_around_a_line_are_its_context(steps: list[tuple[tuple[str, dict[str, str], str], int]]) -> None:
    """Into an element and then out of some, with a line after each."""
    root = lxml.html.Element("html")
    open_, kinds, expected = [root], [""], []

    def line() -> None:
        etree.SubElement(open_[-1], "div").text = "ferry"
        context = " ".join(kinds)
        quotation = Q.QUOTED if "quoted" in context else Q.CITED if "cited" in context else Q.NONE
        is_frame = "frame" in context.rpartition("main")[2]
        expected.append(Block("ferry", 5 * ("link" in context), is_frame, "headline" in context, quotation))

    for (tag, attributes, kind), outs in steps:
        open_.append(etree.SubElement(open_[-1], tag, attributes))
        kinds.append(kind)
        line()
        for _ in range(min(outs, len(open_) - 1)):
            open_.pop()
            kinds.pop()
            line()
    assert find_sections(root)[0] == expected


def test_hidden_text_is_ignored_and_the_text_after_it_is_kept() -> None:
    for unseen in [
        "<script>no</script>",
        "<script>if (a < b) document.write('<p>no</p>')</script>",
        "<style>no</style>",
        "<noscript>no</noscript>",
        "<template><p>no</p></template>",
        "<select><option>no<option>no</select>",
        "<textarea>no</textarea>",
        "<button>no</button>",
        "<svg><text>no</text></svg>",
        "<math><mi>no</mi></math>",
        "<iframe>no</iframe>",
        "<object><p>no</p></object>",
        "<audio>no</audio>",
        "<video><p>no</p></video>",
        "<canvas>no</canvas>",
        "<div hidden>no</div>",
        "<span hidden=hidden>no</span>",
        "<div style='display:none'><p>no</p></div>",
        "<span style='color: red; DISPLAY : NONE !important'>no</span>",
        "<div hidden><p style='display:block'>no</p><script>no</script></div>",
        "<nav hidden><h1>no</h1></nav>",
        "<a href=/ hidden>no</a>",
        "<!-- no -->",
        "<?php no ?>",
        "<!-- <p>no</p> --><!---->",
        "<![CDATA[no]]>",
    ]:
        blocks = visible_blocks(f"<div>the {unseen}ferry</div><p>is late")
        assert " ".join(block.text for block in blocks) == "the ferry is late", unseen
        assert {(block.linked, block.frame, block.headline) for block in blocks} == {(0, False, False)}, unseen


def test_other_styles_hide_nothing_and_an_empty_page_has_no_lines() -> None:
    for style in ("color:red", "display:block", "displaynone", "visibility:hidden", ""):
        assert lines(f"<p style='{style}'>ferry") == ["ferry"], style
    for hidden in ("<body style='display:none'>", "<body hidden>", "<html hidden><body>"):
        assert lines(f"{hidden}<p>ferry</p><p hidden>no") == ["ferry"], hidden
    for html in ("", " \n", "\0", "<!-- -->", "<p>", "<a href=/>", "<br>", "<body></body>", "<p>\u00a0"):
        assert visible_blocks(html) == [], html


def test_broken_and_joined_documents_are_read() -> None:
    for html, expected in [
        ("ferry", ["ferry"]),
        ("<", ["<"]),
        ("a < b", ["a < b"]),
        ("ferry<p", ["ferry"]),
        ("<td>one<td>two", ["one", "two"]),
        ("</p></div>ferry</nav>late", ["ferrylate"]),
        ("<html><p>one<html><body><p>two", ["one", "two"]),
        ("<body><p>one</body><p>two", ["one", "two"]),
        ("<html><body><p>one</body><p>two</html><div>three</div>", ["one", "two", "three"]),
        ("<html><body>one</body><body><p>two</body></html>", ["one", "two"]),
        ("<frameset><noframes>ferry</noframes></frameset>", ["ferry"]),
        ("one\0two", ["onetwo"]),
        ("<p>\0</p><p>one</p>\0\0<p>two", ["one", "two"]),
        ("<p>one &amp; two &lt;p&gt; &#28193;&nbsp;!", ["one & two <p> 渡 !"]),
        ("<?xml version='1.0' encoding='gb2312'?><html><body><p>渡口", ["渡口"]),
        ("<meta charset=gb2312><p>渡口", ["渡口"]),
        ("<meta http-equiv=Content-Type content='text/html; charset=latin-1'><p>渡口", ["渡口"]),
        ("<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN'><html xmlns='http://x.example/'><p>渡口", ["渡口"]),
        ("\ufeff<p>渡口", ["渡口"]),
    ]:
        assert [line.removeprefix("\ufeff") for line in lines(html) if line != "\ufeff"] == expected


# fmt: off
UNITS = [
    "<p>", "<div>", "<b>", "<a/href=/>", "<table><tr><td>", "<nav>", "<div/hidden>", "<br>", "<b><p>", "<ul><li>x",
    "<p>x</p>", "<pre>x", "<a/href=/>x</p>", "</div>", "<div>x</b>", "<!--", "<svg>", "<select>", "&lt;", "</html>",
    "</body",
]
# fmt: on


def test_large_and_deep_pages_are_read_in_time() -> None:
    for unit in UNITS:
        assert _time(unit * 24_000) < 24 * max(_time(unit * 3_000), 0.002)
    found = lines("<p>ferry</p>" + "<div>x" * 100_000)
    assert found[0] == "ferry"
    assert 200 < len(found) < 300


# fmt: off
_TAGS = (
    "<p>", "</p>", "<br>", "<a href=x>", "<a>", "</a>", "<nav>", "</nav>", "<h1>", "</h1>", "<b>", "<pre>", "</pre>",
    "<td>", "<div hidden>", "</div>", "<script>", "</script>", "<!--", "-->", "<body>", "</body>", "<html>", "</html>",
    "<head>", "<frameset>", "<?x", "\n", " ", "&#", "&nbsp;", "<b hidden>", "</b>", "<span style='display: none'>",
    "<i>", "<style>", "</style>", "<removed>", "<svg>", "<blockquote>", "<cite>", '<script type="application/ld+json">',
    "ferry",
)
# fmt: on
HTML = st.lists(
    st.one_of(st.sampled_from(_TAGS), st.text(st.characters(exclude_categories=()), max_size=9)), max_size=25
).map("".join)


@settings(deadline=None)
@given(HTML)
def test_any_html_gives_plain_lines(html: str) -> None:
    for block in visible_blocks(html):
        assert block.text == " ".join(block.text.split()) != ""
        assert 0 <= block.linked <= len(block.text)


def _time(html: str) -> float:
    times = []
    for _ in range(3):
        begun = process_time()
        visible_blocks(html)
        times.append(process_time() - begun)
    return min(times)
