"""What a reader sees of a page: its visible lines, in order, and what kind of line each is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice

import lxml.html

from scrapy_neardup.page.trees import root_of
from scrapy_neardup.quick import quick
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
#: Where one goes in ``_steps``.
_INTO, _OUT, _PAST = range(3)
_NOT_SHOWN = re.compile(r"display\s*:\s*none", re.IGNORECASE)


@quick(frozen=True, slots=True)
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
    steps = _steps(root)
    return [(element, step != _INTO) for step, element, _ in steps if step == _INTO or element is not root]


def is_unseen(element: lxml.html.HtmlElement, names: Collection[str]) -> bool:
    """Whether an element, which has attributes of these names, holds nothing that a reader sees as text of the page."""
    tag = element.tag
    if tag in _WHOLE:
        return False
    if tag in _UNSEEN or not isinstance(tag, str):
        return True
    return "hidden" in names or ("style" in names and _NOT_SHOWN.search(element.get("style") or "") is not None)


def _steps(root: lxml.html.HtmlElement) -> Iterator[tuple[int, lxml.html.HtmlElement, list[str]]]:
    """The way through what is seen of a tree, in the order of the document: into each element (with the names of its
    attributes), and out of it again; of what is not seen, only past it.

    Without recursion, as strangers choose how deep a tree is, and by the elements' order alone, which lxml tells in a
    third of the time that it takes to tell of their ends: an element ends with the last of its children.
    """
    walk = root.iter()
    open_ = list[tuple[lxml.html.HtmlElement, list[str]]]()
    left = list[int]()  # children of each of these that are still to come
    for element in walk:
        names = element.keys()
        children = len(element)
        if is_unseen(element, names):
            if children:
                inside = sum(1 for _ in element.iterdescendants())
                next(islice(walk, inside, inside), None)
            yield _PAST, element, names
        else:
            yield _INTO, element, names
            if children:
                open_.append((element, names))
                left.append(children)
                continue
            yield _OUT, element, names
        while left:
            left[-1] -= 1
            if left[-1]:
                break
            left.pop()
            yield (_OUT, *open_.pop())


class _Lines:
    """Sets the lines of a page."""

    def __init__(self) -> None:
        self._found: list[Block] = []
        #: Of the line that is being set: its text, and that of it which is linked.
        self._parts: list[str] = []
        self._linked: list[str] = []
        #: How many elements of each kind are open; of those that frame others, which.
        self._links = self._headlines = self._preformatted = 0
        self._frames: list[lxml.html.HtmlElement] = []
        #: The quotations that are open, each with what it is told to be, together with those around it.
        self._quotations: list[tuple[lxml.html.HtmlElement, Told]] = []

    def blocks(self, root: lxml.html.HtmlElement) -> list[Block]:
        """Set them all."""
        for step, element, names in _steps(root):
            tag = element.tag
            if step == _INTO:
                if tag == "a":  # without an address it is a place to link to, often around much text
                    self._links += "href" in names
                elif tag == "br" and self._links:
                    self._parts.append(" ")
                elif tag not in INLINE:
                    self._end_line()
                    self._open(element, names)
                text = element.text
            else:
                if step == _OUT:
                    if tag == "a":
                        self._links -= "href" in names
                    elif tag not in INLINE and tag != "br":
                        self._end_line()
                        self._close(element)
                text = element.tail if element is not root else None
            if text:
                self._parts.append(text)
                if self._links:
                    self._linked.append(text)
        self._end_line()
        return self._found

    def _open(self, element: lxml.html.HtmlElement, names: list[str]) -> None:
        tag = element.tag
        self._headlines += tag == "h1"
        self._preformatted += tag == "pre"
        if tag in _FRAME or ("role" in names and element.get("role") in _FRAME_ROLES):
            self._frames.append(element)
        if ("class" in names or tag == "blockquote") and (told := _told_by(element)):
            self._quotations.append((element, max(told, self._told)))

    def _close(self, element: lxml.html.HtmlElement) -> None:
        tag = element.tag
        self._headlines -= tag == "h1"
        self._preformatted -= tag == "pre"
        if self._frames and self._frames[-1] is element:
            self._frames.pop()
        if self._quotations and self._quotations[-1][0] is element:
            self._quotations.pop()

    @property
    def _told(self) -> Told:
        return self._quotations[-1][1] if self._quotations else Told.NOTHING

    def _end_line(self) -> None:
        if not self._parts:
            return
        text, linked = "".join(self._parts), "".join(self._linked)
        self._parts, self._linked = [], []
        lines = text.split("\n") if self._preformatted else [text]
        count = len(letters(linked)) if linked and len(lines) == 1 else 0
        for words in map(str.split, lines):
            if words:
                line = " ".join(words)
                self._found.append(Block(line, count, bool(self._frames), self._headlines > 0, self._told))


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
