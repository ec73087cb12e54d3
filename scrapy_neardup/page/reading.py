"""The lines of a page that are judged.

No single extractor is enough. Main-content extraction works on article pages; elsewhere it returns a teaser, a footer
or nothing. On pages of 421 sites its text misses 12 % of the expected phrases. The visible prose, without links,
navigation and footers, misses 2 %. It also holds other text of the layout, which counts no more once it was on enough
pages (``state/boilerplate``). So the prose plus the lines of the main text are judged. The main text is a second view
of the page, if it is credible.

trafilatura finds the main text. It searches the whole tree many times, and its time grows with the number of elements.
On a page of the web two of three elements are scripts, inline markup, menus, and columns beside the article. Without
them trafilatura takes half the time (``benchmarks/extraction.py``). An article with few links needs no search: only
short links and named parts, such as a share bar, are left out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import dropwhile
from typing import TYPE_CHECKING

import lxml.html
from lxml import etree

from scrapy_neardup.model import Page
from scrapy_neardup.page.blocks import INLINE, LINKED, Block, Section, find_sections, is_hidden
from scrapy_neardup.text.characters import MARKS
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.quotes import find_quotes

if TYPE_CHECKING:
    from trafilatura.settings import Extractor

#: The main text is credible from this many letters and this share of the judged text. Less is a caption or a teaser.
_LEAST_MAIN = 60
_CREDIBLE = 1 / 3
#: Above this share of letters in links, the main text is a menu, and the page has no article.
_MENU = 0.3
#: The least letters of a line of the main text that is not visible (a script unfolds it) and added all the same.
_LEAST_UNSEEN = 12
#: The least letters of a line that is searched within the main text, where lines may be joined.
_LEAST_PART = 8
#: The most characters that these searches scan, because pages may have very long lines and texts.
_MAX_SCANNED = 100_000_000

#: trafilatura tests the links in each element again, so its time grows with the depth. Of 5,380 pages none has 70.
_IS_DEEP = etree.XPath(f"boolean({'/*' * 100})")

#: The name of the reader if the user's own extractor returned the text.
EXTRACTOR = "extractor"

#: Elements that trafilatura removes too, but only after searches of the whole tree. An article is in none of them.
_NEVER_READ = (
    "applet", "audio", "base", "button", "canvas", "datalist", "embed", "iframe", "input", "label", "legend", "link",
    "map", "meta", "noscript", "object", "picture", "select", "source", "svg", "textarea", "time", "title", "video",
)  # fmt: skip
#: Inline elements without a meaning for lines, links, quotes and code.
_STYLE_TAGS = (
    "abbr", "acronym", "b", "bdi", "bdo", "big", "data", "dfn", "em", "font", "i", "img", "ins", "kbd", "mark", "nobr",
    "ruby", "samp", "small", "strong", "sub", "sup", "tt", "u", "var", "wbr",
)  # fmt: skip
#: A temporary name of elements to remove. lxml removes all of them in one pass, and keeps the text behind each.
#: No page has it, because the parser writes names in small letters.
_REMOVED = "REMOVED"
#: Elements that are removed if they have no text. Others end lines or fill the cells of a row.
_OFTEN_EMPTY = ("a", "aside", "article", "div", "figure", "form", "li", "p", "section", "span", "ul")
#: Elements that may lie beside an article, and words in their classes and ids that say so.
_BOXES = ("div", "dl", "li", "ol", "p", "section", "table", "ul")
_SIDE_NAMES = re.compile(
    "author|avatar|banner|bread-?crumb|button|by-?line|caption|comment|consent|cookie|footer|hidden|hide|menu|message"
    "|meta|nav|newsletter|noprint|outbrain|overlay|popular|promo|rating|related|reply|shar(?:e|ing)|sidebar|social"
    "|sponsor|taboola|tags|teaser|widget",
    re.IGNORECASE,
)
#: Elements that are never a part of the text of an article.
_SIDE_TAGS = ("aside", "dialog", "fieldset", "footer", "form", "menu", "nav")
#: The type of a script with data that trafilatura may read.
_JSON_LD = "application/ld+json"

#: The article has at least this share of the prose. The rest is beside it.
_ARTICLE_SHARE = 0.8
#: With fewer letters of prose, the page may have no article, and nothing is removed.
_LEAST_PROSE = 500
#: With a larger share of links, trafilatura decides which of them belong to the article.
_FEW_LINKS = 0.05
#: Letters of a phrase. Shorter lines may be names in a list.
_PHRASE = 25
#: A link of this many letters is a sentence, not an entry of a menu.
_SENTENCE = 50
#: With fewer letters of prose, the links may be teasers of other articles.
_LEAST_INTRO = 40
#: An element around another one holds the same prose if the inner one has at least this share of it.
_SAME_SHARE = 0.9
#: Links beside the prose in one element are a part of the article if they have this share of its letters.
_LIST_SHARE = 0.5
#: A smaller share shows no list: the links that a page has beside a long article differ from site to site.
_LINKS_SHARE = 0.15
#: Links below an article are teasers of other ones up to this share of its letters.
_TEASERS_SHARE = 1 / 3
#: Most characters of ``Page.links``.
_MOST_LINKED = 10_000
#: So many lines of links may lead to the previous and the next page.
_FEW_LINES = 2

# At DEBUG, Scrapy's default, trafilatura logs several lines per page, and its errors do not name the page. After an
# error the visible prose is judged. A level that the user has set stays.
if logging.getLogger("trafilatura").level == logging.NOTSET:
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


class LineRole(str, Enum):
    """How a line of a page is used; the value is its name in JSON."""

    #: Judged, and part of the article.
    ARTICLE = "article"
    #: Judged, but outside the article, or on a page without a credible one.
    PROSE = "prose"
    #: Judged though not visible: a paragraph that a script unfolds.
    UNSEEN = "unseen"
    #: Ignored, because it is on many pages. The state knows that, not this module.
    BOILERPLATE = "boilerplate"
    #: Ignored: a quote or a signature.
    QUOTE = "quote"
    #: Ignored: navigation or a footer.
    FRAME = "frame"
    #: Ignored: only links.
    LINKS = "links"
    #: Ignored: no letters.
    OTHER = "other"


#: Lines with these roles are in the text of the page. ``Page.quotes`` numbers its quotes, which are not judged.
_IN_TEXT = (LineRole.ARTICLE, LineRole.PROSE, LineRole.QUOTE)


@dataclass(frozen=True, slots=True)
class Reading:
    """A page, and how its text was found.

    ``roles``: of each visible line of ``blocks``. ``unseen``: judged lines that are not visible. ``letters``,
    ``main_letters``: letters and digits of the text, and of the main text.

    ``page.reader`` is ``article`` (prose and a credible main text), ``prose`` (no credible main text), ``none`` or
    ``extractor`` (the user's own). ``page.main`` is empty without a credible main text.
    """

    page: Page
    blocks: list[Block]
    roles: list[LineRole]
    unseen: list[str]
    letters: int
    main_letters: int = 0

    def lines(self) -> Iterator[tuple[str, LineRole]]:
        """Return the visible lines in order, then the judged lines that are not visible."""
        yield from ((block.text, role) for block, role in zip(self.blocks, self.roles, strict=True))
        yield from ((text, LineRole.UNSEEN) for text in self.unseen)

    def explain(self) -> str:
        """Return as a sentence why the page was read in this way."""
        count = f"{self.letters:,} letter" if self.letters == 1 else f"{self.letters:,} letters"
        if self.page.reader == EXTRACTOR:
            return f"NEARDUP_EXTRACTOR gave {count}, which are judged unchanged."
        if self.page.reader == "none":
            return f"none of its {len(self.blocks):,} visible lines is prose." if self.blocks else "it shows no text."
        if not self.main_letters:
            return f"there is no main text, so only the {count} of visible prose are judged."
        then = "and is also judged on its own."
        if self.page.reader != "article":
            needs = f"{_LEAST_MAIN} letters, {_CREDIBLE:.0%} of the prose, and at most {_MENU:.0%} of links"
            then = f"but it is ignored: an article needs {needs}."
        return f"the main text has {self.main_letters:,} of {count} of the visible prose, {then}"


def read_blocks(head: Page, blocks: list[Block], main_text: str, sections: Sequence[Section] = ()) -> Reading:
    """Combine the visible lines with the main text of an extractor. ``head``: the page with its metadata.

    >>> read_blocks(Page("a"), [Block("Ferry", headline=True), Block("Menu", linked=4)], "").page.headline
    'Ferry'
    """
    roles, unseen = _match_lines(blocks, main_text)
    more = sum(len(letters(text)) for text in unseen)
    links = _find_links(blocks, roles, sections, more)
    _drop_teasers(blocks, roles, links)
    judged = [number for number, role in enumerate(roles) if role in _IN_TEXT]
    main = [blocks[number] for number in judged if roles[number] is LineRole.ARTICLE]
    count = sum(len(blocks[number].letters) for number in judged) + more
    main_count = sum(len(block.letters) for block in main) + more
    linked = sum(len(block.letters) for block in main if block.is_link)
    is_credible = main_count >= _LEAST_MAIN and main_count >= _CREDIBLE * count and linked <= _MENU * main_count
    quotes = sorted(find_quotes([blocks[n].text for n in judged], [blocks[n].quote for n in judged]))
    for number in quotes:
        roles[judged[number]] = LineRole.QUOTE
    own = [block.text for block, role in zip(blocks, roles, strict=True) if role is LineRole.ARTICLE]
    if not is_credible:
        roles = [LineRole.PROSE if role is LineRole.ARTICLE else role for role in roles]
    page = replace(
        head,
        text="\n".join((*(blocks[number].text for number in judged), *unseen)),
        main="\n".join((*own, *unseen)) if is_credible else "",
        headline="\n".join(block.text for block in blocks if block.headline),
        links="\n".join(blocks[number].text for number in links)[:_MOST_LINKED],
        reader="article" if is_credible else "prose" if count else "none",
        quotes=tuple(quotes),
    )
    return Reading(page, blocks, roles, unseen, count, main_count)


def read_text(page: Page) -> Reading:
    """Return the reading of a page with the text of the user's own extractor: all its lines are judged."""
    blocks = [Block(line) for line in page.text.split("\n") if line.strip()]
    return Reading(page, blocks, [LineRole.PROSE] * len(blocks), [], sum(len(block.letters) for block in blocks))


def _match_lines(blocks: list[Block], main_text: str) -> tuple[list[LineRole], list[str]]:
    """Return the role of each visible line, and the lines of the main text that are not visible."""
    main = [(text, letters(text)) for text in main_text.split("\n")]
    whole, visible = dict.fromkeys(line for _, line in main if line), [block.letters for block in blocks]
    shown = set(visible)
    # Joined in order, because the main text may join visible lines, and cut one line into several.
    is_in_main = _search_in("".join(line for line in whole if line not in shown), when_too_long=False)
    is_visible = _search_in("".join(visible), when_too_long=True)

    def role(block: Block) -> LineRole:
        line = block.letters
        if block.frame or not line:
            return LineRole.FRAME if block.frame else LineRole.OTHER
        if line in whole or (len(line) >= _LEAST_PART and is_in_main(line)):  # a line of the article may be a link
            return LineRole.ARTICLE
        return LineRole.LINKS if block.is_link else LineRole.PROSE

    unseen = [(text, line) for text, line in main if len(line) >= _LEAST_UNSEEN and line not in shown]
    return [role(block) for block in blocks], [" ".join(text.split()) for text, line in unseen if not is_visible(line)]


def _find_links(blocks: list[Block], roles: list[LineRole], sections: Sequence[Section], unseen: int) -> list[int]:
    """Return the lines of ``Page.links``, and change ``roles``: the links of a list that is an article are ARTICLE.

    trafilatura takes a bibliography, a playlist or a table of contents for a menu. Then two lists with one introduction
    look like copies. The element of the article is the smallest one with the longest line and links, without other
    prose. It may begin with a menu above the headline, and an ``aside`` leads to other articles. So do links after a
    label, such as "Related". Few links, or labelled ones around the element with the prose, make a list only if they
    are longer than the texts. ``unseen``: letters of the main text that are not visible.
    """
    own, linked = [], []  # letters of each line
    for block, role in zip(blocks, roles, strict=True):
        size = len(block.letters)
        own.append(size * (role in _IN_TEXT and not block.is_link))
        linked.append(size * (block.is_link and role is not LineRole.FRAME))
    main = [size * (role is LineRole.ARTICLE) for size, role in zip(own, roles, strict=True)]
    if not any(main):
        main = own
    if sum(own) < _LEAST_INTRO or sum(linked) <= _LINKS_SHARE * sum(main):  # most pages
        return []
    longest = main.index(max(main))
    around = [one for one in sections if one.start <= longest < one.end]
    for one in sections:
        if one.tag == "aside" and one not in around:
            linked[one.start : one.end] = [0] * (one.end - one.start)
    article = next((one for one in around if one.tag in ("article", "main") or any(linked[one.start : one.end])), None)
    if article is None:
        return []
    inner, start, end = around[0], article.start, article.end
    if sum(own[inner.start : inner.end]) < _SAME_SHARE * sum(own[start:end]):
        return []
    first = end if article.tag == "body" else start
    start = next((n for n in range(start, end) if blocks[n].headline), first)
    text, links, is_labelled = max(sum(main) + unseen, sum(own[start:end])), list[int](), False
    for n in range(start, end):
        if linked[n] and not is_labelled:
            links.append(n)
        elif own[n] and not blocks[n].letters.isdigit():
            is_labelled = own[n] < _PHRASE and not blocks[n].headline and blocks[n].text[-1] not in f".{MARKS}"
    is_list = len(links) > _FEW_LINES and sum(linked[n] for n in links) > _LINKS_SHARE * text
    if sum(linked[start:end]) > (_LIST_SHARE if article is inner or is_list else 1) * text:
        roles[start:end] = [LineRole.ARTICLE if linked[n] else roles[n] for n in range(start, end)]
    return links if is_list else []


def _drop_teasers(blocks: list[Block], roles: list[LineRole], links: list[int]) -> None:
    """Change ``roles``: links below a long article are no part of it, if they are few and not a list of its own."""
    article = [n for n, role in enumerate(roles) if role is LineRole.ARTICLE]
    prose = [n for n in article if not blocks[n].is_link]
    last = next((n for n in reversed(prose) if len(blocks[n].letters) >= _PHRASE), len(blocks))
    own = set(links)
    below = [n for n in article if n > last and blocks[n].is_link and n not in own]
    size = sum(len(blocks[n].letters) for n in prose)
    if size >= _LEAST_PROSE and sum(len(blocks[n].letters) for n in below) <= _TEASERS_SHARE * size:
        for n in below:
            roles[n] = LineRole.LINKS


def _search_in(text: str, *, when_too_long: bool) -> Callable[[str], bool]:
    """Return a search for parts of a text. After ``_MAX_SCANNED`` characters it answers ``when_too_long``."""
    searches_left = _MAX_SCANNED // max(1, len(text))

    def search(part: str) -> bool:
        nonlocal searches_left
        searches_left -= 1
        return part in text if searches_left >= 0 else when_too_long

    return search


def simplify(root: lxml.html.HtmlElement) -> None:
    """Remove scripts, styles and hidden inline elements, and the tags of other inline elements.

    ``find_sections`` finds the same lines before and after. Hidden blocks stay, as a script may show them. So does data
    in JSON-LD.
    """
    markup = _STYLE_TAGS if root.find(".//pre") is not None else (*_STYLE_TAGS, "span")  # a span in ``pre`` is code
    for element in root.iter(*markup):
        if (names := element.keys()) and is_hidden(element, names):
            element.tag = _REMOVED
    for script in root.iter("script"):
        if script.get("type") != _JSON_LD:
            script.tag = _REMOVED
    etree.strip_elements(root, _REMOVED, "style", with_tail=False)
    etree.strip_tags(root, *markup)


def isolate_article(
    root: lxml.html.HtmlElement, blocks: list[Block], sections: list[Section]
) -> tuple[lxml.html.HtmlElement, float] | None:
    """Keep only the smallest element with 80 % of the prose and of the phrases, without menus in it.

    Returns this element and its letters of links per letter of prose. Of little prose, or more links, all stays: None.
    ``sections``: in the order of their ends, as from ``find_sections``, so inner ones come before outer ones.
    """
    prose, phrases, links, linked = [0], [0], [0], [0]  # letters before each line
    for block in blocks:
        size = len(block.letters)
        is_link = size < _SENTENCE and (block.frame or block.is_link)
        prose.append(prose[-1] + size * (not is_link))
        phrases.append(phrases[-1] + size * (not is_link and size >= _PHRASE))
        links.append(links[-1] + size * is_link)
        linked.append(linked[-1] + size * block.is_link)
    least, least_phrases = _ARTICLE_SHARE * prose[-1], _ARTICLE_SHARE * phrases[-1]
    if prose[-1] < _LEAST_PROSE:
        return None

    def within(letters: list[int], section: Section) -> int:
        return letters[section.end] - letters[section.start]

    large = (n for n, one in enumerate(sections) if within(prose, one) >= least)
    place = next((n for n in large if within(phrases, sections[n]) >= least_phrases), None)
    if place is None or within(links, sections[place]) > within(prose, sections[place]):  # a list of products
        return None
    article = sections[place]
    _remove_siblings(article.element)
    menus = _mark_menus(sections[:place], article, links, prose)
    left = within(linked, article) - sum(within(linked, menu) for menu in menus)
    etree.strip_elements(root, _REMOVED, *_NEVER_READ, with_tail=False)
    for element in reversed(list(root.iter(*_OFTEN_EMPTY))):  # inner ones first
        if not (element.text or "").strip() and all(
            child.tag == _REMOVED and not (child.tail or "").strip() for child in element
        ):
            element.tag = _REMOVED
    etree.strip_elements(root, _REMOVED, with_tail=False)
    return article.element, left / within(prose, article)


def _mark_menus(sections: list[Section], article: Section, links: list[int], prose: list[int]) -> list[Section]:
    """Mark for removal the outermost sections of the article that are nearly only links, and return them.

    Entry n of ``links`` and ``prose`` is the number of letters before line n.
    """
    first_removed, marked = article.end, []
    for section in reversed(sections):  # from the last end to the first
        start, end = section.start, section.end
        if start < article.start:
            break
        if start < first_removed and links[end] - links[start] >= LINKED * (
            links[end] - links[start] + prose[end] - prose[start]
        ):
            section.element.tag = _REMOVED
            first_removed = start
            marked.append(section)
    return marked


def _remove_siblings(element: lxml.html.HtmlElement) -> None:
    """Remove the siblings of an element and of its ancestors, and text between these. Scripts stay: they hold data."""
    while (parent := element.getparent()) is not None and parent.tag != "html":
        parent[:] = [child for child in parent if child is element or child.tag == "script"]
        parent.text = None
        for child in parent:
            child.tail = None
        element = parent


def _read_article(article: lxml.html.HtmlElement, link_ratio: float) -> list[str]:
    """Return the lines of an article that needs no trafilatura, or none.

    These are all lines but short links, small parts whose class or id names them, such as a share bar, and a headline
    above, which stands outside on other sites. trafilatura reads an article with large named parts, and a hidden
    paragraph that a script may show. An article without names may have any number of links. ``link_ratio``: letters of
    links per letter of prose. Changes the tree.
    """
    if link_ratio > _FEW_LINKS and article.xpath("boolean(.//@class | .//@id)"):
        return []
    beside = list(article.iterdescendants(*_SIDE_TAGS))
    for element in article.iterdescendants(*_BOXES):
        names = element.keys()
        if is_hidden(element, names) and element.text_content().strip():
            return []
        if names and _SIDE_NAMES.search(f"{element.get('class')} {element.get('id')}"):
            beside.append(element)
    if sum(len(element.text_content()) for element in beside) > (1 - _ARTICLE_SHARE) * len(article.text_content()):
        return []
    for element in beside:
        element.tag = _REMOVED
    etree.strip_elements(article, _REMOVED, with_tail=False)
    for heading in article.iterdescendants("h1", "h2", "h3", "h4", "h5", "h6"):  # a link in one is no menu
        etree.strip_tags(heading, "a")
    lines = dropwhile(lambda line: line.headline, find_sections(article)[0])
    return [line.text for line in lines if not line.is_link or len(line.letters) >= _SENTENCE]


def main_text(root: lxml.html.HtmlElement | None, blocks: list[Block], sections: list[Section]) -> str:
    """Reduce a tree to its article and return the main text, without trafilatura if the article has few links.

    Empty if the page has no main text, or if trafilatura fails or would take long. Then the caller takes the visible
    prose.
    """
    if root is None:
        return ""
    article = isolate_article(root, blocks, sections)
    if article is not None and (lines := _read_article(*article)):
        return "\n".join(lines)
    if _IS_DEEP(root.getroottree()):
        return ""
    try:
        return trafilatura_text(root, is_article=article is not None)
    except MemoryError:  # the caller tries again with more memory
        raise
    except Exception:  # no page may stop the crawl
        return ""


def trafilatura_text(root: lxml.html.HtmlElement, *, is_article: bool) -> str:
    """Return the lines of the main text of a tree without readers' comments. The tree stays unchanged.

    Run it in one thread only: two at once crash the process. It sometimes returns menus, which ``read_blocks`` rejects.
    """
    import trafilatura  # only where there is HTML: the import takes 50 ms
    from trafilatura.settings import Document

    document = trafilatura.bare_extraction(root, options=_options(is_article))
    parts: list[str] = []
    if isinstance(document, Document):
        for code in document.body.iterchildren("code"):
            code.tag = "pre"
        # Its own conversion to text takes three times as long, and joins the cells of a row.
        _add_lines(parts, document.body, is_code=False)
    return "".join(parts).strip()


def _add_lines(parts: list[str], element: etree._Element, *, is_code: bool) -> None:
    """Add the text of an element, and the ends of its lines. Code has line ends in its text."""
    is_code = is_code or element.tag == "pre"
    end = "\n" if is_code or element.tag not in INLINE else ""
    text = element.text or ""
    parts += (end, text if is_code else text.replace("\n", " "))
    for child in element:
        _add_lines(parts, child, is_code=is_code)
        text = child.tail or ""
        parts.append(text if is_code else text.replace("\n", " "))
    parts.append(end)


@cache
def _options(is_article: bool) -> Extractor:
    """Return the options of trafilatura, which take a fifth of a millisecond to make.

    ``recall``: in an isolated article, keep doubtful parts instead of reading a page with little text a second time.
    ``dedup`` would drop a text that stood on three earlier pages.
    """
    from trafilatura.settings import Extractor

    return Extractor(fast=True, recall=is_article, comments=False, dedup=False)
