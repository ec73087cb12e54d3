"""What a reader sees of a page: its visible lines, in order, and what kind of line each is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import lxml.html
from lxml import etree

from scrapy_neardup.page.risk import has_many_marks
from scrapy_neardup.text.marks import few_marks
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.quote_signs import Told, is_attribution

# fmt: off
#: Holds nothing that a reader reads as text of the page.
_UNSEEN = frozenset((
    "script", "style", "noscript", "template", "head", "title", "svg", "math", "iframe", "object", "applet",
    "select", "textarea", "button", "input", "datalist", "audio", "video", "canvas", "map",
))
#: Elements that do not begin a line of their own. The parser takes an ``embed`` for one that holds what follows it.
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "blink", "cite", "code", "data", "del", "dfn", "em", "embed",
    "font", "i", "img", "ins", "kbd", "label", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "samp", "small", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
))
# fmt: on
#: Shown by a script if it is hidden at first.
_WHOLE = frozenset(("html", "body"))
_FRAME = frozenset(("nav", "footer"))
#: Classes by which mail programs and forums mark quotes, what introduces them, and signatures.
_QUOTES = frozenset(
    (
        "gmail_quote",
        "gmail_attr",
        "gmail_signature",
        "moz-cite-prefix",
        "moz-forward-container",
        "moz-signature",
        "yahoo_quoted",
        "protonmail_quote",
        "bbcode_quote",
        "bbcodeblock--quote",
        "bbcodequote",
        "ipsquote",
        "ipsblockquote",
        "bbc_standard_quote",
        "bbc_alternate_quote",
        "quoteheader",
        "uncited",
        "message-signature",
    )
)
_FRAME_ROLES = frozenset(("navigation", "contentinfo"))
_END = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
_NOT_SHOWN = re.compile(r"display\s*:\s*none", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """One line of a page as a browser would set it.

    ``linked``: how many of its letters and digits are links. ``frame``: it stands in what the page itself marks as
    navigation or footer. ``headline``: it stands in an ``h1``. ``told``: whether it is marked as a quotation.
    """

    text: str
    linked: int = 0
    frame: bool = False
    headline: bool = False
    told: Told = Told.NOTHING


def visible_blocks(html: str) -> list[Block]:
    """The visible lines of a document or of a fragment of one; none if it cannot be parsed.

    >>> [(block.text, block.linked) for block in visible_blocks("<h1>Ferry</h1><p>It runs <a href=/>daily</a>.")]
    [('Ferry', 0), ('It runs daily.', 5)]
    """
    return blocks_of(root_of(html))


def blocks_of(root: lxml.html.HtmlElement | None) -> list[Block]:
    """The same of a tree."""
    return _Lines().blocks(root) if root is not None else []


def visible_texts(root: lxml.html.HtmlElement) -> list[tuple[lxml.html.HtmlElement, bool]]:
    """Where the text of the visible lines stands, in their order: in an element, or (True) behind it.

    Without white space it is the same characters as the lines.
    """
    walk = _Places()
    walk.through(root)
    return walk.found


def is_unseen(element: lxml.html.HtmlElement) -> bool:
    """Whether an element holds nothing that a reader sees as text of the page."""
    if element.tag in _WHOLE:
        return False
    if element.tag in _UNSEEN or not isinstance(element.tag, str):
        return True
    names = element.keys()  # one call where most elements have few attributes or none
    return "hidden" in names or ("style" in names and _NOT_SHOWN.search(element.get("style") or "") is not None)


def root_of(html: str) -> lxml.html.HtmlElement | None:
    """The tree of a document, or of a fragment as one; None if it cannot be parsed."""
    # The declared charset was that of the bytes; lxml must not apply it to a string. It stops at a NUL, and at the end
    # of the document, behind which browsers go on: pages are put together from parts that each end one.
    plain = _END.sub(" ", html.replace("\0", "")).encode("utf-8", "replace")
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = lxml.html.document_fromstring(plain, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):  # nothing but white space, for instance
        return None
    if has_many_marks(html, len(plain)):
        _limit_marks(root)
    return root


def _limit_marks(root: lxml.html.HtmlElement) -> None:
    """Leave no long row of combining marks in a tree: trafilatura normalises its text.

    On the tree, as marks may be written in characters or in references of several kinds.
    """
    for element in root.iter():
        if element.text:
            element.text = few_marks(element.text)
        if element.tail:
            element.tail = few_marks(element.tail)


class _Walk(ABC):
    """One way through what is seen of a tree, in the order of the document, without recursion.

    Strangers choose how deep it is.
    """

    def through(self, root: lxml.html.HtmlElement) -> None:
        """Go into each element, out of it, and behind it."""
        walk = etree.iterwalk(root, events=("start", "end"))
        skipped = False
        for event, element in walk:
            if event == "start":
                skipped = is_unseen(element)
                if skipped:
                    walk.skip_subtree()  # so that its end comes next
                else:
                    self._open(element)
            else:
                if not skipped:
                    self._close(element)
                skipped = False
                if element is not root:
                    self._behind(element)

    @abstractmethod
    def _open(self, element: lxml.html.HtmlElement) -> None: ...

    @abstractmethod
    def _close(self, element: lxml.html.HtmlElement) -> None: ...

    @abstractmethod
    def _behind(self, element: lxml.html.HtmlElement) -> None: ...


class _Places(_Walk):
    """Finds where text may stand."""

    def __init__(self) -> None:
        self.found: list[tuple[lxml.html.HtmlElement, bool]] = []

    def _open(self, element: lxml.html.HtmlElement) -> None:
        self.found.append((element, False))

    def _close(self, element: lxml.html.HtmlElement) -> None:
        pass

    def _behind(self, element: lxml.html.HtmlElement) -> None:
        self.found.append((element, True))


class _Lines(_Walk):
    """Sets the lines of a page."""

    def __init__(self) -> None:
        self._found: list[Block] = []
        self._parts: list[str] = []
        self._linked = 0
        #: How many elements of each kind are open; of those that frame others, which.
        self._links = self._headlines = self._preformatted = 0
        self._frames: list[lxml.html.HtmlElement] = []
        #: The quotations that are open, each with what it is told to be, together with those around it.
        self._quotations: list[tuple[lxml.html.HtmlElement, Told]] = []

    def blocks(self, root: lxml.html.HtmlElement) -> list[Block]:
        self.through(root)
        self._end_line()
        return self._found

    def _open(self, element: lxml.html.HtmlElement) -> None:
        tag = element.tag
        if tag == "a":
            self._links += (
                element.get("href") is not None
            )  # without one it is a place to link to, often around much text
        elif tag == "br" and self._links:
            self._parts.append(" ")
        elif tag not in INLINE:
            self._end_line()
            self._headlines += tag == "h1"
            self._preformatted += tag == "pre"
            names = element.keys()
            if tag in _FRAME or ("role" in names and element.get("role") in _FRAME_ROLES):
                self._frames.append(element)
            if ("class" in names or tag == "blockquote") and (told := _told_by(element)):
                self._quotations.append((element, max(told, self._told)))
        if text := element.text:
            self._add(text)

    def _close(self, element: lxml.html.HtmlElement) -> None:
        tag = element.tag
        if tag == "a":
            self._links -= element.get("href") is not None
        elif tag not in INLINE and tag != "br":
            self._end_line()
            self._headlines -= tag == "h1"
            self._preformatted -= tag == "pre"
            if self._frames and self._frames[-1] is element:
                self._frames.pop()
            if self._quotations and self._quotations[-1][0] is element:
                self._quotations.pop()

    @property
    def _told(self) -> Told:
        return self._quotations[-1][1] if self._quotations else Told.NOTHING

    def _behind(self, element: lxml.html.HtmlElement) -> None:
        if text := element.tail:
            self._add(text)

    def _add(self, text: str) -> None:
        self._parts.append(text)
        if self._links and not text.isspace():
            self._linked += len(letters(text))

    def _end_line(self) -> None:
        if not self._parts:
            return
        text, linked = "".join(self._parts), self._linked
        self._parts, self._linked = [], 0
        lines = text.split("\n") if self._preformatted else [text]
        if len(lines) > 1:
            linked = 0
        for words in map(str.split, lines):
            if words:
                line = " ".join(words)
                self._found.append(Block(line, linked, bool(self._frames), self._headlines > 0, self._told))


def _told_by(element: lxml.html.HtmlElement) -> Told:
    """Whether an element is a quotation, and one that mail programs or forums have made."""
    names = element.get("class")
    if names and not _QUOTES.isdisjoint(names.lower().split()):
        return Told.QUOTED
    if element.tag == "aside":  # of Discourse
        return Told.QUOTED if names and "data-post" in element.attrib and "quote" in names.split() else Told.NOTHING
    if element.tag != "blockquote":
        return Told.NOTHING
    if element.get("type") == "cite":
        return Told.QUOTED
    first = next(element.iterdescendants(), None)
    if first is not None and first.tag == "div":  # of phpBB
        first = next(first.iterchildren(), None)
    if first is not None and first.tag == "cite" and is_attribution("".join(first.itertext())):
        return Told.QUOTED
    return Told.CITED
