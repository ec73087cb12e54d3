"""What a reader sees of a page: its visible lines, in order, and what kind of line each is."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

import lxml.html
from lxml import etree

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.quotes import QuoteMarkup, is_attribution

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
#: Tell of the lines in them by what they are, or by more than their class.
_TELLING = frozenset((*_FRAME, "h1", "pre", "blockquote", "aside"))
#: What an element is to lines: it has its own, is a part of one, a part that may be a link, an end of one, nothing.
_OWN, _PART, _LINK, _BREAK, _NOTHING = range(5)
_KINDS: dict[object, int] = {
    **dict.fromkeys(INLINE, _PART),
    **dict.fromkeys((*_UNSEEN, etree.Comment, etree.ProcessingInstruction, etree.Entity), _NOTHING),
    "a": _LINK,
    "br": _BREAK,
}
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
_NOT_SHOWN = re.compile(r"display\s*:\s*none", re.IGNORECASE)


@fast_dataclass(frozen=True, slots=True)
class Block:
    """One line of a page as a browser would set it.

    ``linked``: how many of its letters and digits are links. ``frame``: it stands in what the page itself marks as
    navigation or footer. ``headline``: it stands in an ``h1``. ``told``: whether it is marked as a quotation.
    """

    text: str
    linked: int = 0
    frame: bool = False
    headline: bool = False
    told: QuoteMarkup = QuoteMarkup.NONE


def blocks_of(root: lxml.html.HtmlElement | None) -> list[Block]:
    """The visible lines of a tree; none if there is no tree.

    >>> root = lxml.html.fromstring("<h1>Ferry</h1><p>It runs <a href=/>daily</a>.")
    >>> [(block.text, block.linked) for block in blocks_of(root)]
    [('Ferry', 0), ('It runs daily.', 5)]
    """
    return _Lines().blocks(root) if root is not None else []


def visible_texts(root: lxml.html.HtmlElement) -> list[tuple[lxml.html.HtmlElement, bool]]:
    """Where the text of the visible lines stands, in their order: in an element, or (True) behind it.

    Without white space it is the same characters as the lines.
    """
    found = []
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if event == "end":
            found.append((element, True))
        elif is_unseen(element, element.keys()):
            walk.skip_subtree()
        else:
            found.append((element, False))
    return found[:-1]  # behind the root is nothing of it


def is_unseen(element: lxml.html.HtmlElement, names: Collection[str]) -> bool:
    """Whether an element, which has attributes of these names, holds nothing that a reader sees as text of the page."""
    tag = element.tag
    if tag in _WHOLE:
        return False
    if tag in _UNSEEN or not isinstance(tag, str):
        return True
    return "hidden" in names or ("style" in names and _NOT_SHOWN.search(element.get("style") or "") is not None)


@fast_dataclass(frozen=True, slots=True)
class _Around:
    """What the elements around a line tell of it."""

    frame: bool = False
    headline: bool = False
    preformatted: bool = False
    told: QuoteMarkup = QuoteMarkup.NONE


class _Lines:
    """Sets the lines of a page."""

    def __init__(self) -> None:
        self._found: list[Block] = []
        #: Of the line that is being set: its text, and that of it which is linked.
        self._parts: list[str] = []
        self._linked: list[str] = []
        self._around = _Around()
        #: Values of ``class`` that tell nothing: they come again and again.
        self._plain = set[str | None]()

    def blocks(self, root: lxml.html.HtmlElement) -> list[Block]:
        """Set them all, on the way through what is seen of a tree: into each element and out of it again.

        Without recursion, as strangers choose how deep a tree is, and by the elements' order alone, which lxml tells in
        a third of the time that it takes to tell of their ends: an element ends with the last of its children. In one
        function, as a page has thousands of them and a call takes as long as asking lxml for a tag.
        """
        parts, linked, plain, links = self._parts, self._linked, self._plain, 0
        open_ = list[tuple[lxml.html.HtmlElement, int, _Around]]()
        left = list[int]()  # children of each of these that are still to come
        walk = root.iter()
        for element in walk:
            tag, names, children = element.tag, element.keys(), len(element)
            kind, before = _KINDS.get(tag, _OWN), self._around
            if names and ("hidden" in names or "style" in names) and is_unseen(element, names):
                kind = _NOTHING
            if kind == _NOTHING:
                if children:
                    inside = sum(1 for _ in element.iterdescendants())
                    next(islice(walk, inside, inside), None)
            else:
                if kind == _OWN:
                    if parts:
                        self._end_line()
                    if tag in _TELLING or (
                        names and ("role" in names or ("class" in names and element.get("class") not in plain))
                    ):
                        self._around = self._within(element)
                elif kind == _LINK:
                    if "href" in names:
                        links += 1
                    else:  # a place to link to, often around much text
                        kind = _PART
                elif kind == _BREAK:
                    if links:
                        parts.append(" ")
                    elif parts:
                        self._end_line()
                if text := element.text:
                    parts.append(text)
                    if links:
                        linked.append(text)
                if children:
                    open_.append((element, kind, before))
                    left.append(children)
                    continue
            closed = element
            while left:
                if kind == _OWN:
                    if parts:
                        self._end_line()
                    self._around = before
                elif kind == _LINK:
                    links -= 1
                if text := closed.tail:
                    parts.append(text)
                    if links:
                        linked.append(text)
                left[-1] -= 1
                if left[-1]:
                    break
                left.pop()
                closed, kind, before = open_.pop()
        if parts:
            self._end_line()
        return self._found

    def _within(self, element: lxml.html.HtmlElement) -> _Around:
        """What an element and those around it tell of the lines in it."""
        around, tag = self._around, element.tag
        frame = tag in _FRAME or element.get("role") in _FRAME_ROLES
        told = _told_by(element)
        if told or frame or tag in _TELLING:
            return _Around(
                around.frame or frame,
                around.headline or tag == "h1",
                around.preformatted or tag == "pre",
                max(around.told, told),
            )
        self._plain.add(element.get("class"))
        return around

    def _end_line(self) -> None:
        text, linked, around = "".join(self._parts), "".join(self._linked), self._around
        self._parts.clear()
        self._linked.clear()
        lines = text.split("\n") if around.preformatted else [text]
        count = len(letters(linked)) if linked and len(lines) == 1 else 0
        for words in map(str.split, lines):
            if words:
                self._found.append(Block(" ".join(words), count, around.frame, around.headline, around.told))


def _told_by(element: lxml.html.HtmlElement) -> QuoteMarkup:
    """Whether an element is a quotation, and one that mail programs or forums have made."""
    names = element.get("class")
    if names and not _QUOTES.isdisjoint(names.lower().split()):
        return QuoteMarkup.QUOTED
    if element.tag == "aside":  # of Discourse
        return (
            QuoteMarkup.QUOTED
            if names and "data-post" in element.attrib and "quote" in names.split()
            else QuoteMarkup.NONE
        )
    if element.tag != "blockquote":
        return QuoteMarkup.NONE
    if element.get("type") == "cite":
        return QuoteMarkup.QUOTED
    first = next(element.iterdescendants(), None)
    if first is not None and first.tag == "div":  # of phpBB
        first = next(first.iterchildren(), None)
    if first is not None and first.tag == "cite" and is_attribution("".join(first.itertext())):
        return QuoteMarkup.QUOTED
    return QuoteMarkup.CITED
