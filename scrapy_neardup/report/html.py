"""Templates, and the body of a page made safe to show."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import lxml.html
from lxml import etree
from lxml_html_clean import Cleaner

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.page.blocks import INLINE, is_unseen
from scrapy_neardup.page.extraction import absolute
from scrapy_neardup.report.clean import clean_text, link

# ----------------------------------------------------------------------------------------------------------------------
# Templates of this room filled in, and what a browser may do with the result.


def check_template() -> None:
    """Raise NearDupError if the library is missing that fills templates in."""
    if find_spec("jinja2") is None:
        raise NearDupError("Reports need Jinja2. Run: pip install 'scrapy-neardup[report]'")


def filled_in(name: str, filters: dict[str, Callable[..., Any]], values: dict[str, Any]) -> str:
    """The template with values in it; they are escaped unless they are Markup."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(text_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name).render(values).lstrip()


def text_of(name: str) -> str:
    """A file of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def policy(*, scripts: str = "'none'", styles: str) -> str:
    """What the browser may do with a page: apply these scripts and styles, and load nothing."""
    return f"default-src 'none'; script-src {scripts}; style-src {styles}; base-uri 'none'; form-action 'none'"


def this_one(code: str) -> str:
    """A script or style as a policy names it, to let no other one in.

    >>> this_one("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"


# ----------------------------------------------------------------------------------------------------------------------
# The body of a page as it may be shown to whoever looks at it: its structure and its text, and nothing that acts.
#
# A page is a stranger's. What remains of it are elements and attributes from two lists; links lead to http and https
# alone; what a reader does not see is gone.


# fmt: off
_ELEMENTS = frozenset((
    "a", "abbr", "address", "article", "aside", "b", "bdi", "bdo", "blockquote", "br", "caption", "cite", "code", "col",
    "colgroup", "dd", "del", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "footer", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hr", "i", "ins", "kbd", "li", "main", "nav", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s",
    "samp", "section", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "time",
    "tr", "u", "ul", "var", "wbr",
))
# fmt: on
#: What is kept of an element; ``class`` is only there where it was put in after ``without_names``.
_ATTRIBUTES = frozenset(("class", "colspan", "dir", "href", "lang", "rowspan", "start"))

_cleaner = Cleaner(
    scripts=True,
    javascript=True,
    comments=True,
    style=True,
    inline_style=True,
    links=True,
    meta=True,
    page_structure=True,
    processing_instructions=True,
    embedded=True,
    frames=True,
    forms=True,
    annoying_tags=True,
    remove_unknown_tags=False,
    allow_tags=_ELEMENTS,
    safe_attrs_only=True,
    safe_attrs=_ATTRIBUTES,
)


def without_names(body: lxml.html.HtmlElement) -> None:
    """Take off by what a style finds elements, so that none of the page can be taken for what we put in."""
    etree.strip_attributes(body, "class", "id")


def safe_html(body: lxml.html.HtmlElement, url: str) -> str:
    """The body as HTML; ``url`` is where its links start from. The tree is changed on the way."""
    if is_unseen(body, body.keys()):
        return ""
    for element in body.iter():  # lxml moves no text that holds control characters
        element.text, element.tail = clean_text(element.text or ""), clean_text(element.tail or "")
    for element in [one for one in body.iterdescendants() if is_unseen(one, one.keys())]:
        element.drop_tree()
    body.tag = "div"
    for element in body.iterdescendants():
        if element.tag not in _ELEMENTS:  # as a line, or in one, it keeps its place
            element.tag = "span" if element.tag in INLINE else "div"
    _cleaner(body)
    body.rewrite_links(lambda to: link(absolute(url, to)) or None, resolve_base_href=False)
    return clean_text(lxml.html.tostring(body, encoding="unicode", with_tail=False))
