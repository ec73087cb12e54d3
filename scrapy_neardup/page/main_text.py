"""The main text of a page, from the part of its tree that may hold it.

trafilatura searches the whole tree many times, and its time grows with the number of elements. On a page of the web two
of three elements are scripts, inline markup, menus, and columns beside the article. Without them it takes half the time
and finds the same lines.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

import lxml.html
from lxml import etree

from scrapy_neardup.page.blocks import LINKED, Block, Section, is_hidden
from scrapy_neardup.page.reading import is_link_line
from scrapy_neardup.text.normalize import letters

if TYPE_CHECKING:
    from trafilatura.settings import Extractor

#: Elements whose text neither browsers show nor extractors read. ``template`` and ``math`` are no such.
_SILENT = (
    "svg", "iframe", "object", "applet", "select", "textarea", "button", "input", "datalist", "audio", "video",
    "canvas", "map", "noscript", "link", "meta", "title", "base", "picture", "source",
)  # fmt: skip
#: Inline elements without a meaning for lines, links, quotes and code.
_MARKUP = (
    "abbr", "acronym", "b", "bdi", "bdo", "big", "data", "dfn", "em", "font", "i", "img", "ins", "kbd", "mark", "nobr",
    "ruby", "samp", "small", "strong", "sub", "sup", "tt", "u", "var", "wbr",
)  # fmt: skip
#: The new name of elements that are removed together: lxml does that in one pass, without copies of the text behind.
#: No page has it, because the parser writes names in small letters.
_REMOVED = "REMOVED"
#: Elements that are removed if they have no text. Others end lines or fill the cells of a row.
_OFTEN_EMPTY = ("a", "aside", "article", "div", "figure", "form", "label", "li", "p", "section", "span", "ul")
#: A script whose data trafilatura may read.
_DATA = "application/ld+json"

#: The article has this share of the prose at least. The rest is beside it.
_SHARE = 0.8
#: With fewer letters of prose, the page may have no article, and nothing is removed.
_LEAST_PROSE = 500
#: Shorter lines may be names in a list.
_PHRASE = 25
#: A link of this many letters is a sentence, not an entry of a menu.
_SENTENCE = 50

# At DEBUG, Scrapy's default, trafilatura logs several lines per page, and its errors do not name the page. Callers log
# the errors that matter. A level that the user has set stays.
if logging.getLogger("trafilatura").level == logging.NOTSET:
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


def simplify(root: lxml.html.HtmlElement) -> None:
    """Remove elements that have no visible text, and inline markup. ``find_blocks`` returns the same lines.

    What a script may show later stays, and so does the data in scripts.
    """
    markup = _MARKUP if root.find(".//pre") is not None else (*_MARKUP, "span")  # a span in ``pre`` is code
    for element in root.iter(*markup):
        if (names := element.keys()) and is_hidden(element, names):
            element.tag = _REMOVED
    for script in root.iter("script"):
        if script.get("type") != _DATA:
            script.tag = _REMOVED
    etree.strip_elements(root, _REMOVED, "style", with_tail=False)
    etree.strip_tags(root, *markup)


def isolate_article(root: lxml.html.HtmlElement, blocks: list[Block], sections: list[Section]) -> bool:
    """Remove what is beside the smallest element with most of the prose, and menus in it. False if all stays.

    ``sections``: smaller ones first, as ``find_sections`` returns them.
    """
    prose, phrases, links = [0], [0], [0]  # letters before each line
    for block in blocks:
        line = letters(block.text)
        size = len(line)
        is_link = size < _SENTENCE and (block.frame or is_link_line(block, line))
        prose.append(prose[-1] + size * (not is_link))
        phrases.append(phrases[-1] + size * (not is_link and size >= _PHRASE))
        links.append(links[-1] + size * is_link)
    least, least_phrases = _SHARE * prose[-1], _SHARE * phrases[-1]
    if prose[-1] < _LEAST_PROSE:
        return False
    place = next(
        (
            n
            for n, one in enumerate(sections)
            if prose[one.end] - prose[one.start] >= least and phrases[one.end] - phrases[one.start] >= least_phrases
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
    for element in root.iter(*_OFTEN_EMPTY):
        if not len(element) and not (element.text or "").strip():
            element.tag = _REMOVED
    etree.strip_elements(root, _REMOVED, *_SILENT, with_tail=False)
    return True


def _mark_menus(sections: list[Section], article: Section, links: list[int], prose: list[int]) -> None:
    """Mark the outermost sections of the article that are nearly only links. Their letters are counted to each line."""
    done = article.end
    for section in reversed(sections):  # outer ones first
        start, end = section.start, section.end
        if start < article.start:
            break
        if start < done and links[end] - links[start] >= LINKED * (
            links[end] - links[start] + prose[end] - prose[start]
        ):
            section.element.tag = _REMOVED
            done = start


def _remove_siblings(element: lxml.html.HtmlElement) -> None:
    """Remove all elements beside one and beside its ancestors, except the head and data."""
    while (parent := element.getparent()) is not None and parent.tag != "html":
        parent[:] = [child for child in parent if child is element or child.tag == "script"]
        element.tail = parent.text = None
        element = parent


def main_text(root: lxml.html.HtmlElement | None, blocks: list[Block], sections: list[Section]) -> str:
    """Reduce a tree to its article and return the main text.

    Empty if there is none or trafilatura fails: the prose is enough then.
    """
    if root is None:
        return ""
    is_article = isolate_article(root, blocks, sections)
    try:
        return trafilatura_text(root, is_article=is_article) or ""
    except MemoryError:  # the page needs a process with more memory, not a verdict on half its text
        raise
    except Exception:  # no page may stop the crawl
        return ""


def trafilatura_text(root: lxml.html.HtmlElement, *, is_article: bool) -> str | None:
    """Return the main text of a tree without comments. The tree stays unchanged.

    Run it in one thread only: two at once crash the process. It sometimes returns menus, which ``reading`` rejects.
    """
    import trafilatura  # only where there is HTML: the import takes 50 ms

    return trafilatura.extract(root, options=_options(is_article))


@cache
def _options(is_article: bool) -> Extractor:
    """Return the options of trafilatura, which take a fifth of a millisecond to make.

    In an article it keeps what it doubts. Elsewhere it reads a page that gave little text once more. It would remember
    texts across pages and drop those that it meets a fourth time; that is off.
    """
    from trafilatura.settings import Extractor

    return Extractor(fast=True, recall=is_article, comments=False, dedup=False)
