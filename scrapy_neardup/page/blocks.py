"""The visible lines of an HTML page."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import field

import lxml.html
from lxml import etree

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.quotes import QuoteMarkup, is_attribution

# fmt: off
#: Elements without text of the page.
_HIDDEN = frozenset((
    "script", "style", "noscript", "template", "head", "title", "svg", "math", "iframe", "object", "applet",
    "select", "textarea", "button", "input", "datalist", "audio", "video", "canvas", "map",
))
#: Elements that do not begin a new line. lxml takes an ``embed`` for a container of the text after it.
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "blink", "cite", "code", "data", "del", "dfn", "em", "embed",
    "font", "i", "img", "ins", "kbd", "label", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "samp", "small", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
))
#: Classes of quotes, of the lines that introduce them, and of signatures in mail programs and forums.
_QUOTE_CLASSES = frozenset((
    "gmail_quote", "gmail_attr", "gmail_signature", "moz-cite-prefix", "moz-forward-container", "moz-signature",
    "yahoo_quoted", "protonmail_quote", "bbcode_quote", "bbcodeblock--quote", "bbcodequote", "ipsquote",
    "ipsblockquote", "bbc_standard_quote", "bbc_alternate_quote", "quoteheader", "uncited", "message-signature",
))
# fmt: on
_FRAME = frozenset(("nav", "footer"))
_FRAME_ROLES = frozenset(("navigation", "contentinfo"))
#: Elements that change the context of their lines under any class. A ``main`` within a frame ends it: HTML forbids
#: that, and a browser reads on in a ``nav`` whose end is missing.
_CONTEXT_TAGS = frozenset((*_FRAME, "main", "h1", "pre", "blockquote", "aside"))
#: How an element takes part in lines.
_BLOCK, _INLINE, _LINK, _BREAK, _SKIPPED = range(5)
_LAYOUT: dict[object, int] = {
    **dict.fromkeys(INLINE, _INLINE),
    **dict.fromkeys((*_HIDDEN, etree.Comment, etree.ProcessingInstruction, etree.Entity), _SKIPPED),
    "a": _LINK,
    "br": _BREAK,
}
#: The share of letters in links from which a line is a menu entry, a teaser or a related page.
LINKED = 0.8
#: Fewer lines are no section.
_LEAST_LINES = 3
_DIGIT = re.compile("[0-9]")
#: Not "visibility: hidden", which WeChat's articles have until a script shows them.
_NOT_SHOWN = re.compile(r"display\s*:\s*none", re.IGNORECASE)


@fast_dataclass(frozen=True, slots=True)
class Block:
    """One line as a browser would show it.

    ``linked``: the number of letters and digits in links, and of digits beside them. ``frame``: the line is in
    navigation or a footer. ``headline``: it is in an ``h1``. ``quote``: how the markup quotes it.
    """

    text: str
    linked: int = 0
    frame: bool = False
    headline: bool = False
    quote: QuoteMarkup = QuoteMarkup.NONE
    #: Letters and digits of the text. Lines are compared by them.
    letters: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "letters", letters(self.text))

    @property
    def is_link(self) -> bool:
        """Whether the line is only links: a menu entry, a teaser or a related page."""
        return self.linked > LINKED * len(self.letters)


@fast_dataclass(frozen=True, slots=True)
class Section:
    """An element with three lines at least: those from ``start`` to before ``end``. Its element may lose its tag."""

    element: lxml.html.HtmlElement
    start: int
    end: int
    tag: str


def find_sections(root: lxml.html.HtmlElement | None) -> tuple[list[Block], list[Section]]:
    """Return the visible lines of a tree, and its sections in the order of their ends: inner ones first.

    >>> root = lxml.html.fromstring("<h1>Ferry</h1><p>It runs <a href=/>daily</a>.")
    >>> [(block.text, block.linked) for block in find_sections(root)[0]]
    [('Ferry', 0), ('It runs daily.', 5)]
    """
    finder = _BlockFinder()
    if root is not None:
        finder.visit(root, _Context(), is_linked=False)
        finder.end_line(_Context())
    return finder.blocks, finder.sections


def is_hidden(element: lxml.html.HtmlElement, attributes: Collection[str]) -> bool:
    """Whether an element with attributes of these names shows no text."""
    tag = element.tag
    if tag in ("html", "body"):  # a script shows them later
        return False
    if tag in _HIDDEN or not isinstance(tag, str):
        return True
    return "hidden" in attributes or (
        "style" in attributes and _NOT_SHOWN.search(element.get("style") or "") is not None
    )


@fast_dataclass(frozen=True, slots=True)
class _Context:
    """The properties that a line takes from the elements around it."""

    frame: bool = False
    headline: bool = False
    preformatted: bool = False
    quote: QuoteMarkup = QuoteMarkup.NONE


class _BlockFinder:
    """Walks through a tree. It may use recursion, because the parser nests elements 256 deep at most."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.sections: list[Section] = []
        #: Text and link text of the current line.
        self._parts: list[str] = []
        self._linked: list[str] = []
        #: Values of ``class`` without effect on the context, as most values repeat.
        self._plain = set[str | None]()

    def visit(self, element: lxml.html.HtmlElement, context: _Context, *, is_linked: bool) -> None:
        """Add the lines and sections of an element; ``is_linked``: it is in a link."""
        tag, names = element.tag, element.keys()
        layout = _LAYOUT.get(tag, _BLOCK)
        if layout == _SKIPPED or (names and ("hidden" in names or "style" in names) and is_hidden(element, names)):
            return
        start = len(self.blocks)
        if layout == _BLOCK:
            self.end_line(context)
            start = len(self.blocks)
            if tag in _CONTEXT_TAGS or (
                names and ("role" in names or ("class" in names and element.get("class") not in self._plain))
            ):
                context = self._context_in(element, context)
        elif layout == _LINK:
            is_linked = is_linked or "href" in names  # else an anchor, often around much text
        elif layout == _BREAK:
            if is_linked:
                self._parts.append(" ")
            else:
                self.end_line(context)
        # Without a method for these two cases, as this is the slowest loop of ours.
        parts, linked = self._parts, self._linked
        if text := element.text:
            parts.append(text)
            if is_linked:
                linked.append(text)
        for child in element:
            self.visit(child, context, is_linked=is_linked)
            if text := child.tail:
                parts.append(text)
                if is_linked:
                    linked.append(text)
        if layout == _BLOCK:
            self.end_line(context)
            if len(self.blocks) - start >= _LEAST_LINES:
                self.sections.append(Section(element, start, len(self.blocks), str(tag)))

    def _context_in(self, element: lxml.html.HtmlElement, context: _Context) -> _Context:
        tag = element.tag
        frame = tag in _FRAME or element.get("role") in _FRAME_ROLES
        quote = _quote_markup(element)
        if quote or frame or tag in _CONTEXT_TAGS:
            return _Context(
                (context.frame or frame) and tag != "main",
                context.headline or tag == "h1",
                context.preformatted or tag == "pre",
                max(context.quote, quote),
            )
        self._plain.add(element.get("class"))
        return context

    def end_line(self, context: _Context) -> None:
        """Add the current line, if it has text."""
        if not self._parts:
            return
        text, count = "".join(self._parts), 0
        self._parts.clear()
        lines = text.split("\n") if context.preformatted else [text]
        if self._linked:
            if len(lines) == 1:
                count = len(letters(within := "".join(self._linked)))
                beside = len(_DIGIT.findall(text)) - len(_DIGIT.findall(within))
                if beside <= count:  # a date or a rank belongs to the link, but not a row of more figures
                    count += beside
            self._linked.clear()
        for line in lines:
            if words := line.split():
                self.blocks.append(Block(" ".join(words), count, context.frame, context.headline, context.quote))


def _quote_markup(element: lxml.html.HtmlElement) -> QuoteMarkup:
    names = element.get("class")
    if names and not _QUOTE_CLASSES.isdisjoint(names.lower().split()):
        return QuoteMarkup.QUOTED
    if element.tag == "aside" and names and "data-post" in element.attrib and "quote" in names.split():  # Discourse
        return QuoteMarkup.QUOTED
    if element.tag != "blockquote":
        return QuoteMarkup.NONE
    if element.get("type") == "cite":
        return QuoteMarkup.QUOTED
    first = next(element.iterdescendants(), None)
    if first is not None and first.tag == "div":  # phpBB
        first = next(first.iterchildren(), None)
    if first is not None and first.tag == "cite" and is_attribution("".join(first.itertext())):
        return QuoteMarkup.QUOTED
    return QuoteMarkup.CITED
