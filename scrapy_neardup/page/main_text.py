"""The main text of a page, from the part of its tree that may hold it.

trafilatura searches the whole tree many times, and its time grows with the number of elements. On a page of the web two
of three elements are scripts, inline markup, menus, and columns beside the article. Without them it takes half the time
(``benchmarks/extraction.py``).
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, cast

import lxml.html
from lxml import etree

from scrapy_neardup.page.blocks import LINKED, Block, Section, find_blocks, is_hidden

if TYPE_CHECKING:
    from trafilatura.settings import Extractor

#: Elements that trafilatura removes too, but only after searches of the whole tree. An article is in none of them.
_NEVER_READ = (
    "applet", "audio", "base", "button", "canvas", "datalist", "embed", "iframe", "input", "label", "legend", "link",
    "map", "meta", "noscript", "object", "picture", "select", "source", "svg", "textarea", "time", "title", "video",
)  # fmt: skip
#: Inline elements without a meaning for lines, links, quotes and code.
_INLINE = (
    "abbr", "acronym", "b", "bdi", "bdo", "big", "data", "dfn", "em", "font", "i", "img", "ins", "kbd", "mark", "nobr",
    "ruby", "samp", "small", "strong", "sub", "sup", "tt", "u", "var", "wbr",
)  # fmt: skip
#: A temporary name of elements to remove. lxml removes all of them in one pass, without copies of the text behind.
#: No page has it, because the parser writes names in small letters.
_REMOVED = "REMOVED"
#: Elements that are removed if they have no text. Others end lines or fill the cells of a row.
_OFTEN_EMPTY = ("a", "aside", "article", "div", "figure", "form", "label", "li", "p", "section", "span", "ul")
#: The type of a script with data that trafilatura may read.
_JSON_LD = "application/ld+json"

#: The article has at least this share of the prose. The rest is beside it.
_ARTICLE_SHARE = 0.8
#: With fewer letters of prose, the page may have no article, and nothing is removed.
_LEAST_PROSE = 500
#: Letters of a phrase. Shorter lines may be names in a list.
_PHRASE = 25
#: A link of this many letters is a sentence, not an entry of a menu.
_SENTENCE = 50

# At DEBUG, Scrapy's default, trafilatura logs several lines per page, and its errors do not name the page. After an
# error the visible prose is judged. A level that the user has set stays.
if logging.getLogger("trafilatura").level == logging.NOTSET:
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


def simplify(root: lxml.html.HtmlElement) -> None:
    """Remove scripts, styles and hidden inline elements, and the tags of other inline elements.

    ``find_blocks`` returns the same lines. Hidden blocks stay, as a script may show them, and so does data in JSON-LD.
    """
    markup = _INLINE if root.find(".//pre") is not None else (*_INLINE, "span")  # a span in ``pre`` is code
    for element in root.iter(*markup):
        if (names := element.keys()) and is_hidden(element, names):
            element.tag = _REMOVED
    for script in root.iter("script"):
        if script.get("type") != _JSON_LD:
            script.tag = _REMOVED
    etree.strip_elements(root, _REMOVED, "style", with_tail=False)
    etree.strip_tags(root, *markup)


def isolate_article(root: lxml.html.HtmlElement, blocks: list[Block], sections: list[Section]) -> bool:
    """Keep only the smallest element with 80 % of the prose and of the phrases, without menus in it.

    Returns whether there is one; otherwise all stays. ``sections``: in the order of their ends, as from
    ``find_sections``, so inner ones come before outer ones.
    """
    prose, phrases, links = [0], [0], [0]  # letters before each line
    for block in blocks:
        size = len(block.letters)
        is_link = size < _SENTENCE and (block.frame or block.is_link)
        prose.append(prose[-1] + size * (not is_link))
        phrases.append(phrases[-1] + size * (not is_link and size >= _PHRASE))
        links.append(links[-1] + size * is_link)
    least, least_phrases = _ARTICLE_SHARE * prose[-1], _ARTICLE_SHARE * phrases[-1]
    if prose[-1] < _LEAST_PROSE:
        return False
    place = next(
        (
            n
            for n, section in enumerate(sections)
            if prose[section.end] - prose[section.start] >= least
            and phrases[section.end] - phrases[section.start] >= least_phrases
        ),
        None,
    )
    if place is None:
        return False
    article = sections[place]
    if links[article.end] - links[article.start] > prose[article.end] - prose[article.start]:  # a list of products
        return False
    _remove_siblings(article.element)
    _mark_menus(sections[:place], article, links, prose)
    etree.strip_elements(root, _REMOVED, *_NEVER_READ, with_tail=False)
    for element in reversed(list(root.iter(*_OFTEN_EMPTY))):  # inner ones first
        if _has_no_text(element.text) and all(child.tag == _REMOVED and _has_no_text(child.tail) for child in element):
            element.tag = _REMOVED
    etree.strip_elements(root, _REMOVED, with_tail=False)
    return True


def _has_no_text(text: str | None) -> bool:
    return not text or text.isspace()


def _mark_menus(sections: list[Section], article: Section, links: list[int], prose: list[int]) -> None:
    """Mark for removal the outermost sections of the article that are nearly only links.

    Entry n of ``links`` and ``prose`` is the number of letters before line n.
    """
    first_removed = article.end
    for section in reversed(sections):  # from the last end to the first
        start, end = section.start, section.end
        if start < article.start:
            break
        if start < first_removed and links[end] - links[start] >= LINKED * (
            links[end] - links[start] + prose[end] - prose[start]
        ):
            section.element.tag = _REMOVED
            first_removed = start


def _remove_siblings(element: lxml.html.HtmlElement) -> None:
    """Remove the siblings of an element and of its ancestors, and text between these. Scripts stay: they hold data."""
    while (parent := element.getparent()) is not None and parent.tag != "html":
        parent[:] = [child for child in parent if child is element or child.tag == "script"]
        element.tail = parent.text = None
        element = parent


def main_text(root: lxml.html.HtmlElement | None, blocks: list[Block], sections: list[Section]) -> str:
    """Reduce a tree to its article and return the main text.

    Empty if there is none or trafilatura fails. The caller then takes the visible prose.
    """
    if root is None:
        return ""
    is_article = isolate_article(root, blocks, sections)
    try:
        return trafilatura_text(root, is_article=is_article)
    except MemoryError:  # the caller tries again with more memory
        raise
    except Exception:  # no page may stop the crawl
        return ""


def trafilatura_text(root: lxml.html.HtmlElement, *, is_article: bool) -> str:
    """Return the main text of a tree without readers' comments. The tree stays unchanged.

    Run it in one thread only: two at once crash the process. It sometimes returns menus, which ``reading`` rejects.
    """
    import trafilatura  # only where there is HTML: the import takes 50 ms
    from trafilatura.settings import Document

    document = trafilatura.bare_extraction(root, options=_options(is_article))
    if not isinstance(document, Document):
        return ""
    # Its own conversion to text takes three times as long, and joins the cells of a row.
    body = cast(lxml.html.HtmlElement, document.body)
    for heading in body.iter("head"):
        heading.tag = "h2"
    for code in body.iterchildren("code"):
        code.tag = "pre"
    return "\n".join(block.text for block in find_blocks(body))


@cache
def _options(is_article: bool) -> Extractor:
    """Return the options of trafilatura, which take a fifth of a millisecond to make.

    ``recall``: in an isolated article, keep doubtful parts instead of reading a page with little text a second time.
    ``dedup`` would drop a text that stood on three earlier pages.
    """
    from trafilatura.settings import Extractor

    return Extractor(fast=True, recall=is_article, comments=False, dedup=False)
