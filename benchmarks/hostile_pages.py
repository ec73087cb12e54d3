"""Pages that strangers could write to make a crawl slow or large, of any size: for ``hostile.py`` and for tests.

Each kind is a function of how many characters and how many tags the page may have, so that the same page is there in
the size that is too much, and in the size that just does not look so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

PROSE = (
    "The ferry of the town sails again after seven long months, and the first boat carried twenty-three passengers.",
    "The old ferryman stood at the rail and said that he had waited for this day since the flood of last autumn.",
    "渡口停航七个月后今天重新开航，第一班船载着二十三名乘客驶过河面，岸上的老人们鼓起掌来。",
)
#: Prose around the hostile part, without which a page would be too short to be judged.
AROUND = "".join(f"<p>{one}</p>" for one in PROSE)
#: Every two of them are out of order, so that whoever orders a run of them takes time quadratic in its length.
MARKS = "\u0300\u0316"


@dataclass(frozen=True)
class Room:
    """How much a page may hold: bytes, or with ``chars_count`` characters."""

    size: int
    tags: int
    chars_count: bool = False

    def of(self, piece: str, tags: int = 0) -> str:
        """A piece repeated as often as there is room for; ``tags``: how many it has, if they count."""
        size = len(piece) if self.chars_count else len(piece.encode("utf-8", "replace"))
        times = max(1, (self.size - 2_000) // size)
        return piece * (min(times, max(1, (self.tags - 20) // tags)) if tags else times)

    def numbered(self, template: str, tags: int = 0) -> str:
        """The same with ``%d`` in the piece, which is its number."""
        last = max(1, (self.size - 2_000) // (len(template.encode()) + 4))
        count = min(last, max(1, (self.tags - 20) // tags)) if tags else last
        return "".join([template.replace("%d", str(n)) for n in range(count)])

    def nested(self, opening: str, closing: str, inner: str = "x") -> str:
        """Elements in each other."""
        deep = min((self.size - 2_000) // len(opening + closing), (self.tags - 20) // 2)
        return opening * deep + inner + closing * deep

    def chars(self, bytes_each: int) -> int:
        """How many characters of so many bytes there is room for."""
        return (self.size - 2_000) // (1 if self.chars_count else bytes_each)


Outcome = Callable[[Room], "str | bytes"]
KINDS: dict[str, Outcome] = {}


def page(body: str, head: str = "<title>The ferry sails again</title>") -> str:
    """A document."""
    return f"<!doctype html><html><head><meta charset=utf-8>{head}</head><body>{AROUND}{body}</body></html>"


def _add(name: str, make: Outcome) -> None:
    assert name not in KINDS, name
    KINDS[name] = make


def _body(name: str, make: Callable[[Room], str]) -> None:
    _add(name, lambda room: page(make(room)))


def _head(name: str, make: Callable[[Room], str]) -> None:
    _add(name, lambda room: page("", make(room)))


# --- combining marks ---------------------------------------------------------------------------------------------
_body("marks: 200,000 in a row", lambda r: "<p>a" + MARKS * min(100_000, r.chars(4)))
_body("marks: as many as there is room for", lambda r: "<p>a" + r.of(MARKS))
_body("marks: hexadecimal references", lambda r: "<p>a" + r.of("&#x300;&#x316;"))
_body("marks: decimal references", lambda r: "<p>a" + r.of("&#768;&#790;"))
_body("marks: named references", lambda r: "<p>a" + r.of("&DownBreve;&tdot;"))
_body("marks: in 30s, an element each", lambda r: "<p>a" + r.of("<b>" + MARKS * 15 + "</b>", 2))
_body("marks: one an element", lambda r: "<p>a" + r.of("<b>\u0300</b>\u0316", 2))
_body("marks: with scripts between", lambda r: "<p>a" + r.of(MARKS * 15 + "<script>b</script>", 2))
_body("marks: with comments between", lambda r: "<p>a" + r.of(MARKS * 15 + "<!--b-->", 1))
_body("marks: with line breaks between", lambda r: "<p>a" + r.of(MARKS * 15 + "<br>", 1))
_body("marks: joined by graphemes", lambda r: "<p>a" + r.of(MARKS * 15 + "\u034f"))
_body("marks: in order", lambda r: "<p>a" + "\u0316" * (r.chars(4)) + "\u0300" * r.chars(4))
_body("marks: Hebrew and Arabic", lambda r: "<p>\u05d0" + r.of("\u05b0\u0591\u064b\u0653"))
_body("marks: decomposed twice", lambda r: "<p>a" + r.of("\u0344\u0316"))
_body("marks: astral", lambda r: "<p>a" + r.of("\U0001d165\U0001d16d"))
_body("marks: in an h1", lambda r: "<h1>a" + r.of(MARKS) + "</h1>")
_body("marks: in attributes", lambda r: f'<p title="a{r.of(MARKS)}">x<img alt="a{MARKS * 1000}">')
_body("marks: in a pre", lambda r: "<pre>a" + r.of(MARKS) + "</pre>")
_body("marks: in a link", lambda r: "<p>a <a href=/>b" + r.of(MARKS) + "</a>")
_body("marks: in cells", lambda r: "<table><tr>" + r.of("<td>a" + MARKS * 20, 1) + "</table>")
_head("marks: in the title", lambda r: "<title>a" + MARKS * min(16_000, r.chars(4)) + "</title>")
_head("marks: in the description", lambda r: f'<meta name=description content="a{MARKS * min(16_000, r.chars(4))}">')
_head("marks: in the keywords", lambda r: f'<meta name=keywords content="a{MARKS * min(16_000, r.chars(4))}">')
# --- characters that become many -----------------------------------------------------------------------------------
_body("expanding: U+FDFA", lambda r: "<p>" + r.of("\ufdfa"))
_body("expanding: U+FDFA by reference", lambda r: "<p>" + r.of("&#xfdfa;"))
_body("expanding: U+FDFA, a sentence each", lambda r: "<p>" + r.of("\ufdfa.\n"))
_body("expanding: U+FDFB", lambda r: "<p>" + r.of("\ufdfb"))
_body("expanding: squared words", lambda r: "<p>" + r.of("㌖㌗㍿㋿"))
_body("expanding: in brackets", lambda r: "<p>" + r.of("㈝㈞⒇⒜"))
_body("expanding: ligatures", lambda r: "<p>" + r.of("ﬃﬄﬁ"))
_body("expanding: by folding", lambda r: "<p>" + r.of("\u0390\u1fb7ßŉ"))
_body("expanding: Hangul in parts", lambda r: "<p>" + r.of("\u1112\u1161\u11ab"))
_body("expanding: mathematical letters", lambda r: "<p>" + r.of("\U0001d400\U0001d7ce"))
_body("expanding: fractions", lambda r: "<p>" + r.of("⅐⅛¾"))
_head("expanding: in the title", lambda r: "<title>" + "\ufdfa" * min(20_000, r.chars(3)) + "</title>")
_head("expanding: in the keywords", lambda r: f'<meta name=keywords content="{chr(0xFDFA) * min(20_000, r.chars(3))}">')
# --- text ----------------------------------------------------------------------------------------------------------
_body("text: Chinese without a full stop", lambda r: "<p>" + _han(r.chars(3)))
_body("text: Chinese sentences", lambda r: "<p>" + _sentences(r.chars(3)))
_add("text: Chinese as GBK", lambda r: page("<p>" + _han(r.chars(2))).replace("utf-8", "gbk").encode("gb18030"))
_body("text: one word", lambda r: "<p>" + r.of("x"))
_body("text: words", lambda r: "<p>" + r.of("ferry harbour "))
_body("text: different words", lambda r: "<p>" + r.numbered("w%d "))
_body("text: sentences of one letter", lambda r: "<p>" + r.of("a. "))
_body("text: different sentences", lambda r: "<p>" + r.numbered("s%d。"))
_body("text: Chinese sentences of one letter", lambda r: "<p>" + "。".join(_han(r.chars(6))))
_body("text: lines of a listing", lambda r: "<pre>" + r.of("a\n") + "</pre>")
_body("text: different lines of a listing", lambda r: "<pre>" + r.numbered("l%d\n") + "</pre>")
_body("text: full stops", lambda r: "<p>" + r.of("."))
_body("text: full stops apart", lambda r: "<p>" + r.of(". "))
_body("text: Chinese full stops", lambda r: "<p>" + r.of("。"))
_body("text: closing quotes", lambda r: "<p>." + r.of("”"))
_body("text: spaces", lambda r: "<p>a" + r.of(" ") + "b")
_body("text: wide spaces", lambda r: "<p>a" + r.of("\u3000") + "b")
_body("text: spaces by reference", lambda r: "<p>a" + r.of("&nbsp;") + "b")
_body("text: line breaks", lambda r: "<p>a" + r.of("\n") + "b")
_body("text: separators of lines", lambda r: "<pre>a" + r.of("\u2028") + "b</pre>")
_body("text: tabs in a listing", lambda r: "<pre>a" + r.of("\t") + "b</pre>")
_body("text: numbers", lambda r: "<p>" + r.of("1,"))
_body("text: different numbers", lambda r: "<p>" + r.numbered("%d "))
_body("text: number words", lambda r: "<p>" + r.of("thirty thirtee sevent "))
_body("text: Chinese numbers", lambda r: "<p>" + r.of("一二三"))
_body("text: underscores", lambda r: "<p>" + r.of("_"))
_body("text: hyphens", lambda r: "<p>" + r.of(" - "))
_body("text: quotation marks", lambda r: "<p>" + r.of("'\""))
_body("text: signs alone", lambda r: "<p>" + r.of("★☆♪"))
_body("text: invisible", lambda r: "<p>a" + r.of("\u200b\u00ad") + "b")
_body("text: directions", lambda r: "<p>a" + r.of("\u202e\u202c") + "b")
_body("text: controls", lambda r: "<p>a" + r.of("\x01\x1b\x7f") + "b")
_body("text: NUL", lambda r: "<p>a" + r.of("\0") + "b")
_body("text: private characters", lambda r: "<p>" + r.of("\ue000\U000f0000"))
_body("text: Thai", lambda r: "<p>" + r.of("กำลังแล่น"))
_body("text: Japanese syllables", lambda r: "<p>" + r.of("フェリーが"))
_body("text: Hindi", lambda r: "<p>" + r.of("नौका "))
_body("text: Vietnamese, decomposed", lambda r: "<p>" + r.of("tie\u0302\u0301ng "))
_body("text: emoji", lambda r: "<p>" + r.of("👨‍👩‍👧🏽"))
_body("text: addresses", lambda r: "<p>" + r.of("http://a.example/x "))
_body("text: mail addresses", lambda r: "<p>" + r.of("a@a.example "))
_body("text: percent signs", lambda r: "<p>" + r.of("%41%"))
_body("text: brackets", lambda r: "<p>" + r.of("([{"))
_body("text: letters at random", lambda r: "<p>" + _random_text(r.chars(3)))
# --- references ----------------------------------------------------------------------------------------------------
_body("references: &amp;", lambda r: "<p>" + r.of("&amp;"))
_body("references: &lt;", lambda r: "<p>" + r.of("&lt;b&gt;"))
_body("references: unknown", lambda r: "<p>" + r.of("&nosuch;"))
_body("references: unfinished", lambda r: "<p>" + r.of("&"))
_body("references: without end", lambda r: "<p>&" + r.of("a"))
_body("references: long numbers", lambda r: "<p>&#" + r.of("9") + ";")
_body("references: surrogates", lambda r: "<p>" + r.of("&#xd800;&#xdfff;"))
_body("references: beyond Unicode", lambda r: "<p>" + r.of("&#x110000;"))
_body("references: semicolons left out", lambda r: "<p>" + r.of("&notin&copy"))
_add(
    "references: an entity bomb",
    lambda r: (
        '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY a "aaaaaaaaaa">'
        + "".join(f'<!ENTITY a{n} "{f"&a{n - 1 or str()};" * 10}">' for n in range(1, 10))
        + f"]><html><body>{AROUND}<p>&a9;{r.of('&a9;')}</body></html>"
    ),
)
# --- many elements -------------------------------------------------------------------------------------------------
_body("elements: a row of cells", lambda r: "<table><tr>" + r.of("<td>x", 1) + "</table>")
_body("elements: a row of empty cells", lambda r: "<table><tr>" + r.of("<td>", 1) + "</table>")
_body("elements: cells with text", lambda r: "<table><tr>" + r.of(f"<td>{PROSE[0][:40]}", 1) + "</table>")
_body("elements: cells that differ", lambda r: "<table><tr>" + r.numbered("<td>cell %d of it", 1) + "</table>")
_body("elements: cells of headings", lambda r: "<table><tr>" + r.of("<th>x", 1) + "</table>")
_body("elements: cells that span", lambda r: "<table><tr>" + r.of("<td colspan=99999>x", 1) + "</table>")
_body("elements: rows", lambda r: "<table>" + r.of("<tr><td>x", 2) + "</table>")
_body("elements: tables", lambda r: r.of("<table><tr><td>x</table>", 4))
_body("elements: cells without a table", lambda r: r.of("<td>x", 1))
_body("elements: paragraphs", lambda r: r.of("<p>x", 1))
_body("elements: paragraphs of prose", lambda r: r.numbered(f"<p>%d {PROSE[0][:40]}", 1))
_body("elements: empty paragraphs", lambda r: r.of("<p></p>", 2))
_body("elements: line breaks", lambda r: "<p>" + r.of("<br>", 1))
_body("elements: line breaks in words", lambda r: "<p>" + r.of("<br>x", 1))
_body("elements: line breaks in a div", lambda r: "<div>" + r.numbered("<br>line %d of the poem", 1) + "</div>")
_body("elements: boxes", lambda r: r.of("<div>x</div>", 2))
_body("elements: spans", lambda r: "<p>" + r.of("<span>x</span>", 2))
_body("elements: bold", lambda r: "<p>" + r.of("<b>x</b> ", 2))
_body("elements: links", lambda r: "<p>" + r.of("<a href=/x>x</a> ", 2))
_body("elements: links that differ", lambda r: "<p>" + r.numbered("<a href=/%d>link %d</a>\n", 2))
_body("elements: links in a list", lambda r: "<ul>" + r.of("<li><a href=/x>x</a>", 3) + "</ul>")
_body("elements: entries", lambda r: "<ul>" + r.of("<li>x", 1) + "</ul>")
_body("elements: entries of prose", lambda r: "<ul>" + r.numbered("<li>Entry %d is a line of its own", 1) + "</ul>")
_body("elements: lists", lambda r: r.of("<ul><li>x</ul>", 3))
_body("elements: definitions", lambda r: "<dl>" + r.of("<dt>x<dd>y", 2) + "</dl>")
_body("elements: h1", lambda r: r.numbered("<h1>h%d</h1>", 2))
_body("elements: h2", lambda r: r.of("<h2>x</h2>", 2))
_body("elements: quotes", lambda r: r.of("<blockquote>x</blockquote>", 2))
_body("elements: listings", lambda r: r.of("<pre>x</pre>", 2))
_body("elements: code", lambda r: "<p>" + r.of("<code>x</code>", 2))
_body("elements: images", lambda r: r.of("<img src=x.png alt=x>", 1))
_body("elements: figures", lambda r: r.of("<figure><img src=x.png><figcaption>x</figure>", 4))
_body("elements: fields", lambda r: "<form>" + r.of("<input name=x value=y>", 1) + "</form>")
_body("elements: choices", lambda r: "<select>" + r.of("<option>x", 1) + "</select>")
_body("elements: scripts", lambda r: r.of("<script>x</script>", 2))
_body("elements: styles", lambda r: r.of("<style>x</style>", 2))
_body("elements: frames", lambda r: r.of("<iframe src=x></iframe>", 2))
_body("elements: articles", lambda r: r.of("<article><p>x</p></article>", 4))
_body("elements: sections", lambda r: r.of(f"<section><p>{PROSE[0]}</section>", 3))
_body("elements: asides", lambda r: r.of("<aside>x</aside>", 2))
_body("elements: main", lambda r: r.of("<main>x</main>", 2))
_body("elements: rules", lambda r: r.of("<hr>", 1))
_body("elements: forms", lambda r: r.of("<form>x</form>", 2))
_body("elements: labels", lambda r: r.of("<label>x<label>", 2))
_body("elements: nobody's", lambda r: r.of("<lb/>x<own-tag>y", 2))
_body("elements: comments", lambda r: "<p>" + r.of("<!--x-->", 1))
_body("elements: instructions", lambda r: "<p>" + r.of("<?x?>", 1))
_body("elements: documents", lambda r: r.of("<html><body class=x>", 2))
_body("elements: ends without a beginning", lambda r: r.of("</p>", 1))
_body("elements: breaks that end", lambda r: r.of("</br>", 1))
_body("elements: bare brackets", lambda r: "<p>" + r.of("< ", 1))
_body("elements: hidden", lambda r: r.of("<p hidden>x</p>", 2))
_body("elements: hidden by style", lambda r: r.of('<p style="display :none">x</p>', 2))
_body("elements: SVG", lambda r: "<svg>" + r.of("<path d=x />", 1) + "</svg>")
_body("elements: ruby", lambda r: "<p>" + r.of("<ruby>x<rt>y</ruby>", 3))
# --- deep ----------------------------------------------------------------------------------------------------------
_body("deep: boxes", lambda r: r.nested("<div>", "</div>"))
_body("deep: boxes that stay open", lambda r: r.of("<div>", 1))
_body("deep: bold", lambda r: "<p>" + r.nested("<b>", "</b>"))
_body("deep: bold that stays open", lambda r: r.of("<p><b><i>x", 3))
_body("deep: links", lambda r: "<p>" + r.of("<a href=x>x", 1))
_body("deep: links in boxes", lambda r: "<a href=x><p>" * 125 + r.of("<a href=x>menu</a> ", 2))
_body("deep: lists", lambda r: r.nested("<ul><li>", ""))
_body("deep: tables", lambda r: r.nested("<table><tr><td>", ""))
_body("deep: quotes", lambda r: r.nested("<blockquote>", "</blockquote>", PROSE[0]))
_body("deep: spans", lambda r: "<p>" + r.nested("<span>", "</span>"))
_body("deep: articles", lambda r: r.nested("<article>", "</article>", PROSE[0]))
_body("deep: 250 boxes, over and over", lambda r: r.of("<div>" * 100 + "x" + "</div>" * 100, 200))
_body("deep: fonts and paragraphs", lambda r: r.of("<font><p>", 2))
_body("deep: forms", lambda r: r.nested("<form>", "</form>"))
# --- attributes ----------------------------------------------------------------------------------------------------
_body("attributes: a million", lambda r: "<p" + r.numbered(" a%d") + ">x")
_body("attributes: the same", lambda r: "<p" + r.of(" a=b") + ">x")
_body("attributes: a long value", lambda r: '<p title="' + r.of("x") + '">x')
_body("attributes: a long name", lambda r: "<p " + r.of("x") + "=1>x")
_body("attributes: classes", lambda r: '<p class="' + r.numbered("c%d ") + '">x')
_body("attributes: a style", lambda r: '<p style="' + r.of("display: ") + '">x')
_body("attributes: a style of spaces", lambda r: '<p style="display' + r.of(" ") + '">x')
_body("attributes: a role", lambda r: '<div role="' + r.of("navigation ") + '">x</div>')
_body("attributes: identifiers", lambda r: r.numbered('<p id="i%d" class="c%d">x', 1))
_body("attributes: long addresses", lambda r: "<p>" + r.of(f'<a href="{"x" * 4_000}">x</a> ', 2))
_body("attributes: quotes left open", lambda r: '<p title="' + r.of("<p>x", 1))
_body("attributes: an unfinished tag", lambda r: "<p " + r.of("x "))
_body("attributes: comment-like classes", lambda r: r.of('<div class="comment-list share-buttons">x</div>', 2))
# --- head ----------------------------------------------------------------------------------------------------------
_head("head: a title", lambda r: "<title>" + r.of("x") + "</title>")
_head("head: a title of separators", lambda r: "<title>" + r.of("a_") + "</title>")
_head("head: a title of dashes", lambda r: "<title>" + r.of(" - ") + "</title>")
_head("head: a title of dashes without spaces", lambda r: "<title>" + r.of("-网") + "</title>")
_head("head: a title of spaces", lambda r: "<title>a" + r.of("\u3000") + "b</title>")
_head("head: a Chinese title", lambda r: "<title>" + _han(r.chars(3)) + "</title>")
_head("head: keywords", lambda r: '<meta name=keywords content="' + r.numbered("k%d,") + '">')
_head("head: Chinese keywords", lambda r: '<meta name=keywords content="' + _han(r.chars(3)) + '">')
_head("head: commas", lambda r: '<meta name=keywords content="' + r.of(",") + '">')
_head("head: a description", lambda r: '<meta name=description content="' + _sentences(r.chars(3)) + '">')
_head("head: a description of spaces", lambda r: '<meta name=description content="' + r.of(" ") + '">')
_head("head: an address", lambda r: '<link rel=canonical href="' + r.of("../") + '">')
_head("head: an address of brackets", lambda r: '<link rel=canonical href="http://[' + r.of(":") + '">')
_head("head: relations", lambda r: '<link rel="' + r.of("x ") + '" href=y>')
_head("head: metas", lambda r: r.numbered("<meta name=n%d content=x>", 1))
_head("head: links", lambda r: r.of("<link rel=canonical href=/>", 1))
_head("head: JSON", lambda r: '<script type="application/ld+json">' + r.of('[{"a":') + "</script>")
_head("head: a script", lambda r: "<script>" + r.of("x ") + "</script>")
_head("head: a style", lambda r: "<style>" + r.of("p{}") + "</style>")
_head("head: a comment", lambda r: "<!--" + r.of("- -") + "-->")
_head("head: a comment that stays open", lambda r: "<!--" + r.of("--!"))
_head("head: ends that are none", lambda r: r.of("</head "))
_head("head: an open title", lambda r: "<title>" + r.of("</titl"))
_add("head: a long doctype", lambda r: "<!doctype html " + r.of("x ") + f"><html><body>{AROUND}")
_add("head: nothing but white space", lambda r: r.of(" \n"))
_add("head: an XML prolog", lambda r: '<?xml version="1.0" encoding="' + r.of("x") + '"?>' + page(""))
# --- oddities of parsing -------------------------------------------------------------------------------------------
_body("odd: plaintext", lambda r: "<plaintext>" + r.of("<p>x", 1))
_body("odd: an open textarea", lambda r: "<textarea>" + r.of("<p>x", 1))
_body("odd: an open script", lambda r: "<script>" + r.of("<!-- <script> ", 2))
_body("odd: CDATA", lambda r: "<![CDATA[" + r.of("]] >"))
_body("odd: frames", lambda r: "<frameset>" + r.of("<frame src=x>", 1))
_body("odd: templates", lambda r: r.of("<template><p>x</template>", 3))
_body("odd: ends of the body", lambda r: r.of("</body><p>x", 2))
_body("odd: ends of the document, with spaces", lambda r: "<p>x" + r.of("</body") + r.of(" "))
_body("odd: math", lambda r: r.of("<math><mi>x</math>", 3))
_body("odd: tags out of order", lambda r: r.of("<b><p><i></b></p></i>x", 6))
_body("odd: tables out of order", lambda r: "<table>" + r.of("<p>x<tr>y<td>z", 3))
_body("odd: selects within tables", lambda r: "<table>" + r.of("<select><tr><td>", 3))
_body("odd: buttons", lambda r: r.of("<button><p>x", 2))
_body("odd: headings within headings", lambda r: r.of("<h1><h2>x", 2))
_body("odd: noscript", lambda r: r.of("<noscript><p>x</noscript>", 3))
_body("odd: fragments at random", lambda r: "<div>" + _fragments(r))
# --- charsets ------------------------------------------------------------------------------------------------------
_add("charset: bytes at random", lambda r: b"<html><body><p>" + random.Random(1).randbytes(r.chars(1)))
_add("charset: high bytes", lambda r: b"<html><body><p>" + b"\x81\xfe" * r.chars(2))
_add("charset: UTF-16", lambda r: page("<p>" + _sentences(r.chars(2))).encode("utf-16"))
_add("charset: UTF-7", lambda r: page("<p>" + "+AGE-" * r.chars(5)).replace("utf-8", "utf-7").encode())
_add(
    "charset: ISO-2022-JP", lambda r: page("<p>" + "\x1b$B\x1b(B" * r.chars(6)).replace("utf-8", "iso-2022-jp").encode()
)
_add("charset: HZ", lambda r: page("<p>" + "~{~}" * r.chars(4)).replace("utf-8", "hz-gb-2312").encode())
_add("charset: Big5 that is none", lambda r: page("<p>").replace("utf-8", "big5").encode() + b"\xff\xa4" * r.chars(2))
_add("charset: punycode", lambda r: page("<p>" + r.of("x-")).replace("utf-8", "punycode").encode())
_add("charset: many declared", lambda r: b"<html><head>" + r.of("<meta charset=big5>", 1).encode() + b"\x80<p>")


def _han(count: int) -> str:
    """Chinese characters at random."""
    chance = random.Random(count)
    letters = [chr(chance.randrange(0x4E00, 0x9F00)) for _ in range(10_007)]
    return ("".join(letters) * (count // len(letters) + 1))[:count]


def _sentences(count: int) -> str:
    """Chinese sentences, all of them different."""
    chance, room = random.Random(count), count
    pieces: list[str] = []
    base = _han(10_007)
    while room > 40:
        start, length = chance.randrange(9_900), chance.randrange(8, 32)
        pieces.append(f"{base[start : start + length]}{len(pieces)}。")
        room -= length + 8
    return "".join(pieces)


def _random_text(count: int) -> str:
    """Letters of all scripts."""
    chance = random.Random(count)
    return "".join([chr(chance.randrange(0xA1, 0xD7FF)) for _ in range(count)])


# fmt: off
_PIECES = (
    "<p>", "</p>", "<div>", "</div>", "<b>", "</b>", "<i>", "</i>", "<a href='x'>", "</a>", "<table>", "<tr>", "<td>",
    "</table>", "<ul>", "<li>", "</ul>", "<h1>", "</h1>", "<br>", "<!--", "-->", "<script>", "</script>", "<title>",
    "</title>", "<select>", "</select>", "<svg>", "</svg>", "<math>", "<form>", "</form>", "<template>", "</template>",
    "&amp;", "&#x300;", "&#xfdfa;", "\0", "x", "渡口", "a sentence of some length. ", "\n", "<", ">", '"', "<p a='",
    "<frameset>", "<body>", "</body>", "</html>", "<noscript>", "<pre>", "</pre>", "<plaintext", "<![CDATA[", "]]>",
)
# fmt: on


def _fragments(room: Room) -> str:
    """What tests of parsers are made of, at random."""
    chance, size, tags = random.Random(7), room.size - 2_000, room.tags - 20
    pieces: list[str] = []
    while size > 0 and tags > 0:
        piece = chance.choice(_PIECES)
        pieces.append(piece)
        size -= len(piece.encode())
        tags -= "<" in piece
    return "".join(pieces)


# --- what items bring ----------------------------------------------------------------------------------------------
Item = dict[str, "str | list[str]"]
ITEMS: dict[str, Callable[[Room], Item]] = {
    "item: Chinese letters": lambda r: {"text": _han(r.size)},
    "item: sentences": lambda r: {"text": _sentences(r.size)},
    "item: sentences of one letter": lambda r: {"text": "。".join(_han(r.size // 2))},
    "item: different sentences": lambda r: {"text": r.numbered("s%d。")},
    "item: fifty megabytes": lambda r: {"text": PROSE[0] * (10 * r.size // len(PROSE[0]))},
    "item: a list of lines": lambda r: {"text": [PROSE[0]] * (r.size // len(PROSE[0]))},
    "item: marks": lambda r: {"text": PROSE[0] + MARKS * (r.size // 2)},
    "item: U+FDFA": lambda r: {"text": PROSE[0] + "\ufdfa" * r.size},
    "item: squared words": lambda r: {"text": PROSE[0] + "㌖" * r.size},
    "item: folding": lambda r: {"text": PROSE[0] + "\u0390" * r.size},
    "item: line breaks": lambda r: {"text": PROSE[0] + "\n" * r.size},
    "item: a title": lambda r: {"text": PROSE[0], "title": _han(r.size)},
    "item: a title of marks": lambda r: {"text": PROSE[0], "title": "a" + MARKS * (r.size // 2)},
    "item: a title of U+FDFA": lambda r: {"text": PROSE[0], "title": "\ufdfa" * r.size},
    "item: a title of separators": lambda r: {"text": PROSE[0], "title": "a_" * (r.size // 2)},
    "item: keywords": lambda r: {"text": PROSE[0], "keywords": [str(n) for n in range(r.size // 8)]},
    "item: one keyword": lambda r: {"text": PROSE[0], "keywords": _han(r.size)},
    "item: a description": lambda r: {"text": PROSE[0], "description": _han(r.size)},
    "item: a description of marks": lambda r: {"text": PROSE[0], "description": "a" + MARKS * (r.size // 2)},
    "item: HTML": lambda r: {"html": page("<table><tr>" + r.of("<td>x", 1) + "</table>")},
    "item: a part": lambda r: {"text": PROSE[0], "part": "a" + MARKS * (r.size // 2)},
}


def kinds() -> Iterator[str]:
    """The names of all kinds, those of bodies first."""
    yield from KINDS
    yield from ITEMS


def some(count: int) -> list[str]:
    """Names of so many kinds of bodies, spread over all of them."""
    return list(islice(KINDS, 0, None, max(1, len(KINDS) // count)))
